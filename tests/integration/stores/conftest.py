"""A server for all tests of stores, and an environment that says nothing of any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stores.server import ObjectStore, object_store


@pytest.fixture(scope="session")
def running_store() -> Iterator[ObjectStore]:
    """The server, started once."""
    pytest.importorskip("moto.server", reason="moto[server] is not installed: no S3 server to ask")
    with object_store() as store:
        yield store


@pytest.fixture
def environment_without_stores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that says nothing of any store."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "STORAGE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def store(running_store: ObjectStore, environment_without_stores: None) -> Iterator[ObjectStore]:
    """The server, to which nothing has been said and where nothing goes wrong."""
    running_store.asked.clear()
    yield running_store
    running_store.fault = lambda what, key: None
