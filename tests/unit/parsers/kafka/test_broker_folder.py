"""A broker's folders and its small files: which partitions there are, and what is said before a segment is read."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.inputs.partitions import BrokerLayout
from cklog.parsers.kafka.parser import Kafka
from cklog.parsers.kafka.side_files import (
    BadCheckpoint,
    BadSnapshot,
    UnknownVersion,
    aborted,
    epochs,
    offsets,
    producers,
)
from cklog.storage import Root
from tests.builders.kafka_broker import TopicLog, broker_files, snapshot
from tests.reading.kafka_broker import logs_of


def layout(folder: Path) -> BrokerLayout:
    return Kafka(Root(str(folder))).partitions()


def told(folder: Path) -> list[tuple[str, str]]:
    return [(finding.id, finding.subject) for finding in layout(folder).findings]


def a_log(*counts: int) -> TopicLog:
    log = TopicLog()
    for count in counts:
        log.data(count)
    return log


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"0\n", 2),
        (b"0\n2\nt 0 5\n", 2),
        (b"0\n1\nt 0 5\nt 1 5\n", 2),
        (b"0\n1\nt 5\n", 3),
        (b"0\n1\nt 0 -5\n", 3),
        (b"0\n1\nt 0 99999999999999999999\n", 3),
        (b"\xff\xfe", 1),
    ],
)
def test_a_checkpoint_that_does_not_add_up_is_refused(data: bytes, line: int) -> None:
    with pytest.raises(BadCheckpoint) as refused:
        offsets(data)
    assert refused.value.line == line


def test_another_version_is_no_damage() -> None:
    with pytest.raises(UnknownVersion, match="version 1, known is 0"):
        offsets(b"1\n0\n")
    written = snapshot((9, 2, 17, 44, 0, -1))
    with pytest.raises(UnknownVersion, match="version 5, known is 1"):
        producers(b"\0\5" + written[2:] + b"more")
    with pytest.raises(UnknownVersion, match="version 5, known is 1"):  # though its CRC is right as of version 1
        producers(b"\0\5" + written[2:])
    with pytest.raises(BadSnapshot, match="-1 is no version"):
        producers(b"\xff\xff" + written[2:])
    with pytest.raises(UnknownVersion, match="version 1, known is 0"):
        aborted(bytes(34) + b"\0\1" + bytes(32))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_checkpoint_or_are_refused(data: bytes) -> None:
    for decode, refusal in ((offsets, BadCheckpoint), (epochs, BadCheckpoint), (producers, BadSnapshot)):
        with contextlib.suppress(refusal, UnknownVersion):
            decode(data)
    with contextlib.suppress(UnknownVersion):
        aborted(data)


def test_an_offset_checkpoint_is_split_on_any_space() -> None:
    assert offsets(b"0\n2\na-b  3\t7\nc 0 0\n\n") == {("a-b", 3): 7, ("c", 0): 0}


def test_a_producer_snapshot() -> None:
    data = snapshot((9, 2, 17, 44, 1700000000000, -1), (4, 0, 3, 8, 1700000000001, 6))
    assert [tuple(state) for state in producers(data)] == [
        (4, 0, 3, 8, 1700000000001, 6),
        (9, 2, 17, 44, 1700000000000, None),
    ]
    assert len(data) == 10 + 2 * 46


@pytest.mark.parametrize(("at", "why"), [(4, "crc"), (12, "crc"), (-1, "crc")])
def test_a_changed_snapshot_is_refused(at: int, why: str) -> None:
    data = bytearray(snapshot((9, 2, 17, 44, 0, -1)))
    data[at] ^= 4
    with pytest.raises(BadSnapshot, match=why):
        producers(bytes(data))


def test_a_broker_with_two_data_folders(tmp_path: Path) -> None:
    a_log(3).write(tmp_path / "disk1" / "a.b-c-0")
    a_log(3).write(tmp_path / "disk2" / "a.b-c-10")
    broker_files(tmp_path / "disk1", replication={"a.b-c-0": 3, "a.b-c-10": 1})
    broker_files(tmp_path / "disk2", clean=True, replication={"a.b-c-10": 2}, recovery_point={"a.b-c-10": 1})
    found = layout(tmp_path)
    assert [(f.topic, f.partition, f.high_watermark, f.recovery_point, f.clean) for f in found.folders] == [
        ("a.b-c", 0, 3, None, False),
        ("a.b-c", 10, 2, 1, True),
    ]
    assert [(used.path, used.format) for used in found.inputs] == [("disk1", "kafka"), ("disk2", "kafka")]
    assert not found.findings


def test_one_partition_given_alone(tmp_path: Path) -> None:
    a_log(3).write(tmp_path / "orders-7")
    (found,) = layout(tmp_path / "orders-7").folders
    assert (found.name, found.path, found.clean, found.high_watermark) == ("orders-7", "", None, None)
    assert logs_of(tmp_path / "orders-7").partitions()["orders-7"].log_end == 3


def test_a_folder_that_is_not_named_like_a_partition(tmp_path: Path) -> None:
    a_log(3).write(tmp_path / "evidence")
    assert [folder.name for folder in layout(tmp_path).folders] == ["evidence-0"]
    assert [folder.name for folder in layout(tmp_path / "evidence").folders] == ["evidence-0"]


@pytest.mark.parametrize("suffix", ["delete", "future", "stray"])
def test_folders_that_are_no_partition_are_reported(tmp_path: Path, suffix: str) -> None:
    a_log(3).write(tmp_path / "t-0")
    a_log(5).write(tmp_path / f"t-0.0123456789abcdef0123456789abcdef-{suffix}")
    assert [folder.path for folder in layout(tmp_path).folders] == ["t-0"]
    assert told(tmp_path) == [("skipped-folder", f"t-0.0123456789abcdef0123456789abcdef-{suffix}")]


def test_deleted_segments_are_named(tmp_path: Path) -> None:
    folder = a_log(3).write(tmp_path / "t-0")
    (folder / f"{0:020}.log").rename(folder / f"{0:020}.log.deleted")
    (folder / f"{3:020}.log").write_bytes(b"")
    (found,) = layout(tmp_path).folders
    assert [segment.base for segment in found.deleted] == [0]
    assert told(tmp_path) == [("deleted-segment", "t-0")]
    p = logs_of(tmp_path).partitions()["t-0"]
    assert (p.log_start, p.log_end, p.records) == (3, 3, 0)


def test_a_partition_without_segments(tmp_path: Path) -> None:
    a_log(1).write(tmp_path / "t-0")
    (tmp_path / "t-1").mkdir()
    (tmp_path / "t-1" / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert told(tmp_path) == [("missing-segment", "t-1")]


@pytest.mark.parametrize("left", ["an index", "recovery-point", "log-start", "replication"])
def test_a_partition_that_lost_its_only_segment(tmp_path: Path, left: str) -> None:
    """Its index, or an offset that its broker has noted, tells that there was one; a log at 0 may have been empty."""
    a_log(1).write(tmp_path / "t-0")
    (tmp_path / "t-1").mkdir()
    (tmp_path / "t-1" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    broker_files(tmp_path, replication={"t-1": 0})
    assert told(tmp_path) == []
    if left == "an index":
        (tmp_path / "t-1" / f"{0:020}.index").write_bytes(b"")
    else:
        broker_files(tmp_path, False, **{left.replace("-", "_"): {"t-1": 5}})
    assert told(tmp_path) == [("missing-segment", "t-1")]


def test_a_linked_segment_of_an_interrupted_compaction_is_unread(tmp_path: Path) -> None:
    """A starting broker follows the link, and takes it in place of what lies at its offsets."""
    folder = a_log(3).write(tmp_path / "run" / "t-0")
    (folder / f"{0:020}.log").rename(tmp_path / "there")
    (folder / f"{0:020}.log.swap").symlink_to(tmp_path / "there")
    (folder / f"{3:020}.log").write_bytes(b"")
    p = logs_of(tmp_path / "run").partitions()["t-0"]
    assert (p.log_start, p.unread) == (0, True)


def test_one_partition_twice(tmp_path: Path) -> None:
    for disk in ("disk1", "disk2"):
        a_log(1).write(tmp_path / disk / "t-0")
    assert [folder.path for folder in layout(tmp_path).folders] == ["disk1/t-0"]
    assert told(tmp_path) == [("duplicate-partition", "t-0")]


def test_small_files_that_cannot_be_read_are_not_used(tmp_path: Path) -> None:
    folder = a_log(1).write(tmp_path / "t-0")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n5\nt 0 1\n")
    (folder / "leader-epoch-checkpoint").write_bytes(b"\xff")
    (folder / f"{0:020}.snapshot").write_bytes(b"\0\1")
    (folder / f"{0:020}.txnindex").write_bytes(bytes(40))
    (found,) = layout(tmp_path).folders
    assert (found.high_watermark, found.epochs, found.snapshot) == (None, (), None)
    assert len(found.aborted) == 1
    assert {id for id, _ in told(tmp_path)} == {"bad-checkpoint-file"}
    assert len(told(tmp_path)) == 3


def test_what_is_recognised(tmp_path: Path) -> None:
    assert not Kafka.recognises(Root(str(tmp_path)))
    (tmp_path / "000123.log").write_bytes(b"a RocksDB log")
    assert not Kafka.recognises(Root(str(tmp_path)))
    a_log(1).write(tmp_path / "a" / "b" / "c" / "t-0")
    assert not Kafka.recognises(Root(str(tmp_path)))
    a_log(1).write(tmp_path / "t-0")
    assert Kafka.recognises(Root(str(tmp_path)))
    assert Kafka.recognises(Root(str(tmp_path / "t-0")))


def test_a_segment_is_cut_into_splits_at_batches(tmp_path: Path) -> None:
    log = a_log(*[4] * 30)
    log.write(tmp_path / "t-0")
    parser = Kafka(Root(str(tmp_path)))
    segments = parser.partitions().folders[0].segments
    made = parser.batch_splits(segments, 500)
    assert len(made) > 5
    assert [split.start for split in made[1:]] == [split.end for split in made[:-1]]
    assert {split.start for split in made} <= {at for _, at in log.sizes}
    assert {split.reader for split in made} == {"cklog.parsers.kafka.headers:read"}


def test_empty_segments_are_fine(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(5)
    log.roll()
    log.write(tmp_path / "t-0")
    p = logs_of(tmp_path).partitions()["t-0"]
    assert (p.log_end, p.restart_end, len(p.folder.segments)) == (5, 5, 2)
