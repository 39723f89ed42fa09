"""Segments as tables of batches: every column, gaps and offsets that go backwards, markers, damage, real files."""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cklog.engine.scan import Damage, Split, reader_of
from cklog.inputs.record_batches import BATCHES
from cklog.parsers.kafka import headers as kafka_headers
from cklog.parsers.kafka import segment as kafka_segment
from cklog.parsers.kafka.headers import READER, READER_UNCHECKED
from cklog.storage import Root
from tests.builders import kafka as kb
from tests.builders.kafka import Row, batch, marker
from tests.reading.kafka_dump import dumped

COLUMNS = (*BATCHES.names, "_path", "_offset")
Answer = tuple[list[dict[str, Any]], list[Damage]]


def read_file(path: Path, reader: str = READER, columns: Sequence[str] = COLUMNS, start: int = 0) -> Answer:
    """Rows and damage of one segment."""
    size = path.stat().st_size
    rows, damage = [], []
    split = Split(str(path), path.name, reader, start, size, size)
    for one in reader_of(split)(split, "batches", tuple(columns)):
        if isinstance(one, Damage):
            damage.append(one)
        else:
            assert one.schema.names == list(columns)
            rows += one.to_pylist()
    return rows, damage


def read_bytes(folder: Path, data: bytes, reader: str = READER, base: int = 0) -> Answer:
    path = folder / f"{base:020}.log"
    path.write_bytes(data)
    return read_file(path, reader)


def places(answer: Answer) -> list[tuple[str, int | None, int]]:
    return [(d.id, d.offset, d.count) for d in answer[1]]


def spans(answer: Answer) -> list[tuple[int, int]]:
    return [(row["base"], row["last"]) for row in answer[0]]


def test_a_row_has_every_field_of_its_header(tmp_path: Path) -> None:
    rows = [Row(b"v", time=1000), Row(b"w", time=900)]
    data = bytearray(batch(70, rows, "gzip", kb.TRANSACTIONAL | kb.LOG_APPEND_TIME, 9, last_delta=4))
    struct.pack_into(">i", data, 12, 3)  # no CRC covers the leader epoch
    (row,), damage = read_bytes(tmp_path, bytes(data), base=70)
    assert not damage
    assert row == {
        "at": 0,
        "bytes": len(data),
        "base": 70,
        "last": 74,
        "records": 2,
        "format": 2,
        "codec": 1,
        "leader_epoch": 3,
        "base_time": 1000,
        "max_time": 1000,
        "append_time": True,
        "producer": 9,
        "producer_epoch": -1,
        "sequence": -1,
        "transactional": True,
        "control": False,
        "marker": None,
        "_path": f"{70:020}.log",
        "_offset": 0,
    }


@pytest.mark.parametrize("columns", [("last",), ("_path", "marker"), ("_offset", "transactional", "base_time")])
def test_only_the_columns_that_were_asked_for(tmp_path: Path, columns: tuple[str, ...]) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0, [Row(b"v")]) + kb.messages(1, [Row(b"old")], 0) + marker(2, kb.COMMIT, 1))
    whole, _ = read_file(path)
    assert read_file(path, columns=columns)[0] == [{name: row[name] for name in columns} for row in whole]


def test_old_messages_have_no_columns_of_newer_formats(tmp_path: Path) -> None:
    data = kb.messages(0, [Row(b"a", time=5), Row(b"b", time=9), Row(b"c", time=7)], 0, "gzip")
    data += kb.messages(3, [Row(b"a", time=5), Row(b"b", time=9), Row(b"c", time=7)], 1, "lz4")
    data += kb.messages(6, [Row(b"a", time=5), Row(b"c", time=7)], 1, "gzip", append_time=True)
    rows, damage = read_bytes(tmp_path, data)
    assert not damage
    names = (
        "base",
        "last",
        "records",
        "format",
        "codec",
        "base_time",
        "max_time",
        "append_time",
        "producer",
        "control",
    )
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, 2, 3, 0, 1, None, None, None, None, None),
        (3, 5, 3, 1, 3, 5, 9, False, None, None),
        (6, 7, 2, 1, 1, 7, 7, True, None, None),
    ]


def test_gaps_are_what_compaction_leaves(tmp_path: Path) -> None:
    data = batch(5, [Row(b"v")]) + batch(90, [Row(b"v")], last_delta=9) + batch(100, [], last_delta=3)
    found = read_bytes(tmp_path, data, base=2)
    assert (spans(found), found[1]) == ([(5, 5), (90, 99), (100, 103)], [])


@pytest.mark.parametrize(("second", "count"), [(9, 1), (5, 5), (0, 10)])
@pytest.mark.parametrize("reader", [READER, READER_UNCHECKED])
def test_offsets_that_were_taken_already_are_damage(tmp_path: Path, second: int, count: int, reader: str) -> None:
    first = batch(0, [Row(b"v")], last_delta=9)
    found = read_bytes(tmp_path, first + batch(second, [Row(b"w")]) + batch(20, [Row(b"x")]), reader)
    assert places(found) == [("offset-backwards", len(first), count)]
    assert spans(found) == [(0, 9), (second, second), (20, 20)]


def test_offsets_of_old_messages_that_go_backwards_are_damage(tmp_path: Path) -> None:
    first, second = kb.messages(7, [Row(b"v")], 0), kb.messages(6, [Row(b"v")], 0)
    assert places(read_bytes(tmp_path, first + second)) == [("offset-backwards", len(first), 2)]


def test_a_segment_that_begins_before_its_name_is_damage(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, batch(3, [Row(b"v")]), base=5)
    assert (places(found), spans(found)) == ([("offset-backwards", 0, 2)], [(3, 3)])


@pytest.mark.parametrize(("kind", "said"), [(0, "abort"), (1, "commit"), (2, "other"), (6, "other")])
@pytest.mark.parametrize("time", [0, 1])
def test_markers(tmp_path: Path, kind: int, said: str, time: int) -> None:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 77)
    flags = kb.TRANSACTIONAL | kb.CONTROL
    base_time = kb.encoded(Row(value, key, time), 0, 0)  # a time delta is no part of the usual marker
    rows, damage = read_bytes(tmp_path, batch(0, [Row(b"v")]) + batch(1, [], flags=flags, payload=base_time, count=1))
    assert ([row["marker"] for row in rows], damage) == ([None, said], [])


@pytest.mark.parametrize(("version", "kind"), [(1, 1), (0, 7), (0, 258), (99, 99)])
@pytest.mark.parametrize("time", [0, 1])
def test_markers_of_later_versions_say_nothing(tmp_path: Path, version: int, kind: int, time: int) -> None:
    payload = kb.encoded(Row(struct.pack(">hi", 0, 77), struct.pack(">hh", version, kind), time), 0, 0)
    data = batch(1, [], flags=kb.TRANSACTIONAL | kb.CONTROL, payload=payload, count=1)
    rows, damage = read_bytes(tmp_path, data)
    assert [row["marker"] for row in rows] == [None]
    assert [d.id for d in damage] == ["unknown-version"]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (kb.encoded(Row(b"v", b"\0\0"), 0, 0), "a control record without a version and a type"),
        (b"\x02\0", "a number that is cut short"),
    ],
)
def test_a_control_batch_without_a_marker_is_a_row_and_damage(tmp_path: Path, payload: bytes, why: str) -> None:
    data = batch(4, [], flags=kb.CONTROL, payload=payload, count=1)
    rows, damage = read_bytes(tmp_path, data)
    assert [(row["control"], row["marker"]) for row in rows] == [(True, None)]
    assert damage == [Damage(f"{0:020}.log", "bad-record", 0, f"Kafka offset 4: {why}")]


@pytest.mark.parametrize(
    "wrong",
    [
        batch(5, [Row(b"w")], count=2),
        batch(5, [Row(b"w"), Row(b"w")], last_delta=0),
        batch(5, [], count=-1),
        batch(5, [], last_delta=-1),
        batch(-1, [Row(b"w")]),
        batch((1 << 63) - 1, [Row(b"w")]),
    ],
    ids=["one too many", "one too few offsets", "records below 0", "ends before it begins", "before 0", "beyond all"],
)
@pytest.mark.parametrize("reader", [READER, READER_UNCHECKED])
def test_a_header_that_no_broker_writes_is_no_row_and_costs_only_itself(
    tmp_path: Path, wrong: bytes, reader: str
) -> None:
    first = batch(0, [Row(b"v")])
    found = read_bytes(tmp_path, first + wrong + batch(9, [Row(b"x")]), reader)
    assert spans(found) == [(0, 0), (9, 9)]
    assert [d.offset for d in found[1] if d.id != "offset-jump"] == [len(first)]


@pytest.mark.parametrize("garbage", [*range(50, 170, 7), *range(93, 103)])
def test_an_empty_batch_behind_damage_is_found_at_any_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, garbage: int
) -> None:
    """Compaction leaves batches without records: 61 bytes, the fewest there are; also at the very end of a file."""
    monkeypatch.setattr(kafka_segment, "BLOCK_BYTES", 100)
    first, empty = batch(0, [Row(b"v")]), batch(5, [], last_delta=3)
    assert len(empty) == 61
    found = read_bytes(tmp_path, first + b"\xff" * garbage + empty)
    assert spans(found) == [(0, 0), (5, 8)]
    assert [(d.id, d.offset) for d in found[1]] == [("corrupt-file", len(first))]


def test_bytes_that_changed_are_seen_by_the_crc_alone(tmp_path: Path) -> None:
    one = batch(0, [Row(b"value")])
    data = one + batch(1, [Row(b"value")]).replace(b"value", b"wrong") + batch(2, [Row(b"v")])
    assert places(read_bytes(tmp_path, data)) == [("corrupt-batch", len(one), 1)]
    assert len(read_bytes(tmp_path, data, READER_UNCHECKED)[0]) == 3


def test_damage_between_old_messages(tmp_path: Path) -> None:
    made = [kb.messages(i, [Row(b"value %d" % i, b"k")], 1) for i in range(6)]
    at = [sum(map(len, made[:i])) for i in range(7)]
    spoilt = [made[0], made[1].replace(b"value", b"wrong"), made[2], b"?" * 30, made[4], made[5][:-3]]
    found = read_bytes(tmp_path, b"".join(spoilt))
    assert [row["base"] for row in found[0]] == [0, 2, 4]
    gone = at[3] + 30 + len(made[4])
    assert places(found) == [("corrupt-batch", at[1], 1), ("corrupt-file", at[3], 1), ("torn-tail", gone, 1)]


def test_a_wrapper_that_does_not_decompress_is_a_corrupt_batch(tmp_path: Path) -> None:
    broken = kb.message(3, Row(b"this is no gzip"), 1, attributes=1)
    found = read_bytes(tmp_path, broken + kb.messages(4, [Row(b"v")], 1))
    assert (places(found), spans(found)) == ([("corrupt-batch", 0, 1)], [(4, 4)])


def test_arrow_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{0:020}.log"
    one = bytearray(batch(0, [Row(b"v")]))
    made = []
    for i in range(1000):
        struct.pack_into(">q", one, 0, i)
        made.append(bytes(one))
    path.write_bytes(b"".join(made))
    monkeypatch.setattr(kafka_headers, "ROWS_AT_ONCE", 300)
    size = path.stat().st_size
    split = Split(str(path), path.name, READER, 0, size, size)
    found = [one.num_rows for one in reader_of(split)(split, "batches", ("base",)) if not isinstance(one, Damage)]
    assert max(found) <= 300
    assert sum(found) == 1000
    assert len(found) <= 5


def test_a_file_that_is_gone_or_shorter_is_damage(tmp_path: Path) -> None:
    gone = Split(str(tmp_path / f"{0:020}.log"), "x", READER, 0, 100, 100)
    (damage,) = reader_of(gone)(gone, "batches", ("base",))
    assert isinstance(damage, Damage)
    assert (damage.id, damage.offset) == ("unreadable-file", None)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0, [Row(b"v")]))
    longer = Split(str(path), path.name, READER, 0, 4000, 4000)
    *damaged, whole = reader_of(longer)(longer, "batches", ("base",))
    assert [d.id for d in damaged if isinstance(d, Damage)] == ["unreadable-file"]
    assert not isinstance(whole, Damage)
    assert whole.num_rows == 1


# Real files


@pytest.fixture(scope="module")
def broker(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed."""
    folder = tmp_path_factory.mktemp("broker")
    subprocess.run(["tar", "-xzSf", str(shared_data / "kafka" / "broker-crash.tar.gz"), "-C", str(folder)], check=True)
    return folder / "crash"


@pytest.mark.parametrize("topic", ["none", "gzip", "snappy", "lz4", "zstd", "txn", "lat", "compact"])
@pytest.mark.parametrize("reader", [READER, READER_UNCHECKED])
def test_batches_of_a_real_log_are_those_that_kafka_prints(
    shared_data: Path, broker: Path, topic: str, reader: str
) -> None:
    dump = shared_data / "kafka" / "dump-log" / f"ck-{topic}-0.dump.txt.gz"
    printed = dumped(dump)
    expected = [x[1:11] for x in printed if x[0] == "batch"]
    said = re.findall("endTxnMarker: (COMMIT|ABORT)", gzip.decompress(dump.read_bytes()).decode())
    names = ("base", "last", "records", "producer", "transactional", "control", "at", "max_time", "bytes", "codec")
    rows, damage = [], []
    for path in sorted((broker / f"ck-{topic}-0").glob("*.log")):
        more, bad = read_file(path, reader)
        rows += more
        damage += bad
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert not damage
    assert [row["marker"].upper() for row in rows if row["control"]] == said
    assert len(said) == (6 if topic == "txn" else 0)


def test_every_log_of_a_killed_broker_reads_without_damage(broker: Path) -> None:
    root = Root(str(broker))
    logs = [entry.path for entry in root.list() if re.search(r"/\d{20}\.log$", entry.path)]
    assert len(logs) > 20
    for path in logs:
        _, damage = read_file(broker / path)
        assert damage == [], path


@pytest.mark.parametrize(
    ("name", "batches", "records", "expected"),
    [
        ("bad_crc_middle-0", 5, 50, [("corrupt-batch", 722, 10)]),
        ("torn_mid_batch-0", 5, 50, [("torn-tail", 1805, 1)]),
        ("zero_tail-0", 6, 60, [("torn-tail", 2166, 1)]),
        ("compacted-0", 2, 6, []),
        ("codec_gzip-0", 40, 1165, []),
        ("codec_none-0", 40, 1164, []),
        ("codec_zstd-0", 40, 1146, []),
        ("txn-0", 8, 19, []),
        ("legacy_v0_gzip-0", 1, 25, []),
        ("legacy_v1_none-0", 25, 25, []),
    ],
)
def test_segments_of_kafka_python(
    shared_data: Path, name: str, batches: int, records: int, expected: list[tuple[str, int, int]]
) -> None:
    (path,) = (shared_data / "kafka" / "segments" / name).glob("*.log")
    found = read_file(path)
    assert (len(found[0]), sum(row["records"] for row in found[0])) == (batches, records)
    assert places(found) == expected
