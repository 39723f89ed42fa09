"""Real restarts with logs of offsets, commits, sources and sinks changed: they fail where it was said, only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.codecs.hadoop_crc import encode, sidecar_of
from tests.builders.spark_restarts import Restarts

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Change a file, its checksum with it."""

    def damage(path: Path) -> None:
        data = change(path.read_bytes())
        path.write_bytes(data)
        Path(sidecar_of(str(path))).write_bytes(encode(data))

    return damage


def wrong_sum(path: Path) -> None:
    """The last bit of the checksum is flipped."""
    side = Path(sidecar_of(str(path)))
    data = side.read_bytes()
    side.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def another_key(data: bytes) -> bytes:
    return data.replace(b"{", b'{"unknown":[1],', 1)


def no_key(data: bytes) -> bytes:
    return data.split(b"\n")[0] + b"\n{}"


def later_version(data: bytes) -> bytes:
    return b"v99" + data[2:]


COMMIT, PLAN, BEFORE = "ck/commits/6", "ck/offsets/7", "ck/offsets/6"
TRIALS: list[tuple[str, Callable[[Path], None]]] = [
    *((path, wrong_sum) for path in (COMMIT, PLAN, BEFORE, "ck/metadata")),
    (COMMIT, rewritten(another_key)),
    (COMMIT, rewritten(no_key)),
    (COMMIT, rewritten(later_version)),
    (COMMIT, rewritten(cut)),
    ("ck/commits/5", rewritten(cut)),
    (PLAN, rewritten(cut)),
    (PLAN, rewritten(later_version)),
    (BEFORE, rewritten(cut)),
    ("ck/metadata", rewritten(cut)),
    ("ck/metadata", rewritten(another_key)),
]


def test_with_a_log_changed_a_restart_does_what_was_said(restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, "hdfs", tmp_path)
    said = [(path, damage.__name__, restarts.disproved([path], damage)) for path, damage in TRIALS]
    wrong = [one for one in said if one[2]]
    assert not wrong, "\n".join(map(str, wrong))


_BEFORE, _AFTER = 6, 20
"""Batches before and after the folder is changed; Spark compacts a sink's log after ten."""


def test_a_new_folder_needs_a_compact_file_of_no_results(restarting: Any, tmp_path: Path) -> None:
    read, checkpoint, old, bare, anchored = (tmp_path / name for name in ("in", "ck", "old", "bare", "anchored"))
    read.mkdir()

    def run(target: Path, first: int, end: int) -> str:
        for i in range(first, end):
            (read / f"{i:03}.txt").write_text(f"row {i}\n")
        stream = restarting.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(read)).writeStream
        query = stream.format("text").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        try:
            query.start(str(target)).awaitTermination()
        except Exception as error:
            return str(error)
        return ""

    assert run(old, 0, _BEFORE) == ""
    assert "BATCH_METADATA_NOT_FOUND" in run(bare, _BEFORE, _AFTER)
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (anchored / "_spark_metadata").mkdir(parents=True)
    (anchored / "_spark_metadata" / f"{last}.compact").write_text("v1")
    assert run(anchored, _AFTER, 2 * _AFTER) == ""
    listed = {row.value for folder in (old, anchored) for row in restarting.read.text(str(folder)).collect()}
    loose = {line for part in bare.glob("part-*") for line in part.read_text().splitlines()}  # nobody can list them
    assert listed | loose == {f"row {i}" for i in range(2 * _AFTER)}
