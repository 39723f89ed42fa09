"""What the operating system refuses in the midst of reading is unread, in every format, and never damage."""

from __future__ import annotations

import errno
import importlib
import json
import pkgutil
import sys
from typing import Any

import pyarrow as pa
import pytest

import cklog
from cklog import storage
from tests.conftest import SAMPLES
from tests.program import cklog as run

QUESTIONS = {
    "uncoordinated-join/checkpoints": "recovery-line uncoordinated-join",
    "uncoordinated-join/channels": "replay uncoordinated-join",
    "uncoordinated-join/job.json": "inspect uncoordinated-join",
    "uncoordinated-join-parquet/channels": "replay uncoordinated-join-parquet",
    "cec-aggregate/outputs": "extent cec-aggregate --operator agg1",
    "cec-aggregate-parquet/outputs": "extent cec-aggregate-parquet --operator agg1",
    "cec-aggregate-kafka/outputs": "extent cec-aggregate-kafka --operator agg1 --forward",
    "checkmate-uncoordinated/universalis-snapshots": "recovery-line checkmate-uncoordinated",
    "checkmate-uncoordinated/worker-1-logs": "recovery-line checkmate-uncoordinated",
    "flink-orders/125c88b9401f9252baa1b39e412cc4b8/chk-13": "recovery-line flink-orders",
    "kafka-broker": "recovery-line kafka-broker",
    "kafka-streams-state/state": "recovery-line kafka-streams-state/state",
    "spark-wordcount/ck/commits/5": "recovery-line spark-wordcount",
    "spark-state-hdfs/ck/state": "recovery-line spark-state-hdfs",
    "patent-store": "chain patent-store",
}
"""What cannot be read, by the question that would read it."""

DAMAGED = {"corrupt-file", "corrupt-metadata", "corrupt-batch", "bad-manifest", "bad-record", "missing-file"}


class _FailingDisk:
    """A file that opens, and knows its size; every read of it fails."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.fixture(scope="module")
def openers() -> list[Any]:
    """Every module that opens files by `cklog.storage.open_file`."""
    for found in pkgutil.walk_packages(cklog.__path__, "cklog."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    names = [name for name in sys.modules if name.startswith("cklog.")]
    return [sys.modules[name] for name in names if getattr(sys.modules[name], "open_file", None) is storage.open_file]


@pytest.mark.parametrize("place", QUESTIONS)
def test_a_disk_that_fails_is_not_damage(place: str, openers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    opened = storage.open_file

    def open_failing(uri: str, listed: int | None = None) -> Any:
        file = opened(uri)
        return pa.PythonFile(_FailingDisk(file), mode="r") if f"/{place}" in uri else file

    for module in openers:
        monkeypatch.setattr(module, "open_file", open_failing)
    monkeypatch.chdir(SAMPLES)
    ended = run(*QUESTIONS[place].split(), "--json")
    assert ended.code == 5, ended
    found = json.loads(ended.out)
    if "error" in found:
        assert found["error"]["id"] == "unreadable-file"
        return
    findings = found["findings"]
    assert "unreadable-file" in {finding["id"] for finding in findings}
    below = place.partition("/")[2]
    assert not [f for f in findings if f["id"] in DAMAGED and f["subject"].startswith(below)]
