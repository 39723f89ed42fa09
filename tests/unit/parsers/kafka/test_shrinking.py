"""A log that somebody cuts while it is read: what is left is read, and the rest is a finding, never a signal."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from cklog.model.question import Question
from tests.builders.kafka import Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files
from tests.conftest import REPOSITORY
from tests.reading.kafka_broker import inspected, log_of, logs_of

CHILD = """
import os, sys
from cklog.engine.scan import Damage, Split
from cklog.parsers.kafka import groups, headers

path, reader, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
size = os.path.getsize(path)
split = Split(path, "0.log", "", 0, size, size)
parts = headers.heads(split) if reader == "headers" else groups.read_records(split)
read = 0
try:
    for part in parts:
        read += len(part.at)
        if os.path.getsize(path) == size:
            os.truncate(path, left)
except OSError as error:
    print(read, error)
"""


def a_segment(folder: Path, batches: int, rows: int = 10) -> tuple[Path, int]:
    """A segment of equal batches of about 10 kB, and the size of each."""
    one = bytearray(batch(0, [Row(b"x" * 1000)] * rows))
    path = folder / f"{0:020}.log"
    with path.open("wb") as file:
        for i in range(batches):
            struct.pack_into(">q", one, 0, i * rows)  # no CRC covers it
            file.write(one)
    return path, len(one)


@pytest.mark.parametrize("reader", ["headers", "records"])
@pytest.mark.parametrize("more", [0, 30, 5000])
def test_a_segment_that_is_cut_in_the_middle_of_a_scan(tmp_path: Path, reader: str, more: int) -> None:
    """In a process of its own, which a mapped file would end; what had been read ahead may be told, too."""
    path, size = a_segment(tmp_path, 4000)
    left = 3000 * size + more
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), reader, str(left)], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    read, _, told = ended.stdout.strip().partition(" ")
    assert int(read) == 3000
    assert told == f"it ends at byte {left} and had {4000 * size} bytes when it was listed: ask again, or of a copy"


def two_partitions(folder: Path) -> Path:
    for name in ("t-0", "u-0"):
        log = TopicLog()
        for _ in range(300):
            log.data(10)
        log.write(folder / name)
    broker_files(folder, replication={"t-0": 3000, "u-0": 3000})
    return folder


def test_a_cut_log_is_not_known_to_its_end_and_nothing_is_said_of_a_broker(tmp_path: Path) -> None:
    log = log_of(two_partitions(tmp_path))
    assert log.analyses.logs.layout.folders  # the folder is listed now
    path = tmp_path / "t-0" / f"{0:020}.log"
    os.truncate(path, path.stat().st_size // 2)
    answer = log.recovery_line(Question())
    assert (answer.verdict, answer.exit_code) == ("indeterminate", 5)
    assert [(f.id, f.subject) for f in answer.findings] == [("unreadable-file", f"t-0/{path.name}")]
    assert "not known" in answer.result.details["headline"]
    ends = {entry.operator: entry.checkpoint for entry in answer.result.line}
    assert ends["u"] == 3000
    assert 1400 < (ends["t"] or 0) <= 1500
    assert inspected(log).exit_code == 5


def test_an_index_that_is_cut_is_a_hint_less(tmp_path: Path) -> None:
    path, size = a_segment(tmp_path, 100)
    places = range(1, 100)
    index = path.with_suffix(".index")
    index.write_bytes(b"".join(struct.pack(">ii", i * 10 + 9, i * size) for i in places))
    whole = logs_of(tmp_path, split_bytes=10 * size).partitions()
    for left in (400, 13, 0):
        logs = logs_of(tmp_path, split_bytes=10 * size)
        assert logs.layout.folders
        os.truncate(index, left)
        assert logs.partitions() == whole
