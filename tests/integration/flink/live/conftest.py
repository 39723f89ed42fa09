"""Flink itself, for the tests that run it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.flink.live.jobs import Flink


@pytest.fixture(scope="module")
def flink() -> Flink:
    home = os.environ.get("CKLOG_FLINK")
    if not home:
        pytest.skip(
            "CKLOG_FLINK names no folder; Flink is fetched to there (330 MB, once) and run with Java 17 or newer"
        )
    folder = Path(home)
    folder.mkdir(parents=True, exist_ok=True)
    return Flink(folder)
