"""Kafka partitions as output queues: batches by the specification, damage that costs only itself, real broker files."""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine import Damage, Split, reader_of
from cklog.model import OUTPUTS
from cklog.parsers import kafka_segment
from cklog.parsers.kafka_batches import BadBatch, Record, decompress, header, records, varint, verify
from cklog.parsers.kafka_log import READER, first_at, read, reconcile, splits, tail_splits
from cklog.parsers.kafka_segment import Segment, segments, walk
from cklog.storage import Entry, Root, open_file
from tests import kafka_builder as kb
from tests.kafka_builder import Log, Row, batch, cec

COLUMNS = (*OUTPUTS.names, "_path", "_offset")
NAME = f"{0:020}.log"


def decoded(data: bytes) -> list[Record]:
    head = header(data)
    verify(head, data)
    return list(records(head, data))


def rows_of(found: Iterator[pa.RecordBatch | Damage]) -> tuple[list[dict[str, Any]], list[Damage]]:
    rows, damage = [], []
    for one in found:
        if isinstance(one, Damage):
            damage.append(one)
        else:
            assert one.schema.names == list(COLUMNS)
            rows += one.to_pylist()
    return rows, damage


def scan(folder: Path, made: list[Split] | None = None) -> tuple[list[dict[str, Any]], list[Damage]]:
    """Rows and damage of a partition, by the given splits or one per segment."""
    root = Root(str(folder))
    whole = [Split(root.uri(e.path), e.path, READER, 0, e.size, e.size) for e in segments(root.list())]
    rows, damage = [], []
    for split in whole if made is None else made:
        more, bad = rows_of(reader_of(split)(split, "outputs", COLUMNS))
        rows += more
        damage += bad
    return rows, damage


def written(folder: Path, *batches: bytes, interval: int = 4096) -> Log:
    log = Log(interval=interval)
    for one in batches:
        log.add(one)
    log.write(folder)
    return log


def ids(damage: list[Damage]) -> list[tuple[str, int | None, int]]:
    return [(d.id, d.offset, d.count) for d in damage]


# Batches


values = st.none() | st.binary(max_size=300)
rows = st.builds(
    Row,
    value=values,
    key=values,
    time=st.integers(-(2**40), 2**62),
    headers=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), values), max_size=3),
)


@pytest.mark.parametrize("codec", kb.CODECS)
@given(base=st.integers(0, 2**60), written=st.lists(rows, min_size=1, max_size=20))
@settings(max_examples=30)
def test_a_batch_decodes_to_what_was_written(codec: str, base: int, written: list[Row]) -> None:
    found = decoded(batch(base, written, codec))
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in found] == [
        (base + i, row.time, row.key, row.value, list(row.headers)) for i, row in enumerate(written)
    ]
    assert [r.size for r in found] == [len(kb.encoded(row, i, written[0].time)) for i, row in enumerate(written)]


def test_every_record_of_log_append_time_has_the_batch_s_time() -> None:
    data = batch(5, [Row(b"a", time=1), Row(b"b", time=2)], flags=kb.LOG_APPEND_TIME, max_time=99)
    assert [r.timestamp for r in decoded(data)] == [99, 99]


def test_compaction_leaves_holes_and_empty_batches() -> None:
    data = batch(5, [Row(b"a", delta=1), Row(b"b", delta=4)], last_delta=6)
    assert [r.offset for r in decoded(data)] == [6, 9]
    assert header(data).last == 11
    assert decoded(batch(5, [], last_delta=3)) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (batch(0, [Row(b"a"), Row(b"b")], count=1), "bytes behind the last of 1 records"),
        (batch(0, [Row(b"a")], count=2, last_delta=1), "cut short"),
        (batch(0, [Row(b"a", delta=3)], last_delta=2), "offset 3 after -1"),
        (batch(0, [Row(b"a", delta=1), Row(b"b", delta=1)]), "offset 1 after 1"),
        (batch(0, [], count=1, payload=kb.varint(1 << 30)), "a record of 1073741824 bytes"),
        (batch(0, [], count=1, payload=b"\xff" * 9), "a number beyond 32 bits"),
        (batch(0, [], count=1, payload=b"\xff" * 4 + b"\x7f"), "a number beyond 32 bits"),
        (batch(0, [], count=1, payload=b"\xff"), "cut short"),
        (batch(0, [Row(b"a")], count=5, last_delta=1), "5 records in 2 offsets"),
        (batch(0, [Row(b"", time=2**63 - 1)], payload=kb.encoded(Row(b"", time=5), 0, 0)), "a timestamp of 9223372036"),
        (batch(0, [], count=1, payload=kb.varint(7) + b"\0\0\0\1\1\0?"), "ends 1 bytes from where"),
        (batch(0, [], count=1, payload=kb.varint(7) + b"\0\0\0\1\1\xfe\1"), "127 headers in 0 bytes"),
        (batch(0, [], count=1, flags=5, payload=b"x"), "compression codec 5"),
        (batch(0, [], count=1, codec="zstd", payload=b"x" * 20), "zstd"),
        (batch(0, [], count=1, codec="lz4", payload=kb.compressed(b"x" * 99, "lz4")[:-5]), "Truncated"),
        (batch(0, [], count=1, codec="snappy", payload=b"\xff\xff\xff\x7f" + b"x" * 9), "claims to hold"),
        (batch(0, [], count=1, codec="snappy", payload=b""), "without a length"),
        (batch(0, [], count=1, codec="xerial", payload=kb.compressed(b"x" * 99, "xerial")[:-1]), "snappy block of"),
    ],
)
def test_what_is_no_batch_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadBatch, match=reason):
        decoded(data)


@pytest.mark.parametrize("codec", kb.CODECS)
def test_a_payload_is_decompressed_up_to_its_limit_and_not_further(codec: str) -> None:
    packed = kb.compressed(bytes(1 << 22), codec)
    assert decompress(kb.CODECS[codec], packed, 1 << 22) == bytes(1 << 22)
    if codec != "none":
        with pytest.raises(BadBatch, match="more than"):
            decompress(kb.CODECS[codec], packed, (1 << 22) - 1)


@pytest.mark.parametrize("codec", kb.CODECS)
@given(st.data())
@settings(max_examples=60)
def test_hostile_payloads_under_a_right_crc_raise_nothing_else(codec: str, data: st.DataObject) -> None:
    plain = b"".join(kb.encoded(Row(b"v" * 30, b"k", i, [("h", None)]), i, 0) for i in range(5))
    payload = bytearray(kb.compressed(plain, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    forged = batch(0, [], codec, count=5, last_delta=4, payload=bytes(payload))
    try:
        found = decoded(forged)
    except BadBatch:
        return
    assert [r.offset for r in found] == list(range(5))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_of_64_bits_come_back(number: int) -> None:
    data = kb.varint(number)
    assert varint(data, 0, bits=64) == (number, len(data))


# Records as rows


def test_both_encodings_give_the_same_rows(tmp_path: Path) -> None:
    as_json = Row(
        json.dumps(
            {"type": "check", "window": "w", "ts": 7, "open_windows": 2, "state": {"n": [1, None]}, "input": 5}
        ).encode()
    )
    of_several = Row(b'{"type":"open","window":"w","ts":8,"open_windows":1,"input":{"a/0->b/0":3}}')
    named = [("cec.type", b"check"), ("cec.window", b"w"), ("cec.ts", b"7"), ("cec.open_windows", b"2")]
    in_headers = Row(b' {"n": [1, null]}', headers=[*named, ("cec.input", b"5"), ("other", b"\xff")])
    counted = [("cec.type", b"open"), ("cec.window", b"w"), ("cec.ts", b"8"), ("cec.open_windows", b"1")]
    several_in_headers = Row(None, headers=[*counted, ("cec.input", b'{"a/0->b/0":3}')])
    written(tmp_path, batch(0, [as_json, of_several, in_headers, several_in_headers]))
    found, damage = scan(tmp_path)
    assert damage == []
    bare = [{k: v for k, v in row.items() if k not in ("pos", "bytes")} for row in found]
    assert bare[:2] == bare[2:]
    assert bare[0]["state"] == '{"n":[1,null]}'
    assert (bare[0]["input"], bare[1]["inputs"]) == (5, [("a/0->b/0", 3)])


def test_position_and_size_are_the_record_s_own_or_kafka_s(tmp_path: Path) -> None:
    own, none = cec(70, 1, bytes=123), cec(None, 2)
    log = written(tmp_path, batch(0, [cec(0, 0)]), batch(1, [own, none]))
    found, _ = scan(tmp_path)
    assert [(r["pos"], r["bytes"]) for r in found[1:]] == [(70, 123), (2, len(kb.encoded(none, 1, 1)))]
    assert [(r["_path"], r["_offset"]) for r in found] == [(NAME, 0), (NAME, log.starts[1]), (NAME, log.starts[1])]


@pytest.mark.parametrize(
    ("value", "state"),
    [(b"\xff\x00", '{"base64":"/wA="}'), (b"NaN", '{"base64":"TmFO"}'), (b"5", "5"), (b'"x"', '"x"'), (None, None)],
)
def test_any_bytes_are_a_state(tmp_path: Path, value: bytes | None, state: str | None) -> None:
    written(tmp_path, batch(0, [Row(value, headers=[("cec.type", b"emit"), ("cec.ts", b"1")])]))
    found, damage = scan(tmp_path)
    assert [row["state"] for row in found] == [state]
    assert damage == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Row(None), "a null value and no header"),
        (Row(b"[]"), "not a JSON object"),
        (Row(b'{"type":"emit"}'), "no field ts"),
        (Row(b'{"type":"control","ts":1}'), "type is"),
        (Row(b"1", headers=[("cec.type", b"emit"), ("cec.ts", b"1.5")]), "'1.5', not an integer"),
        (Row(b"1", headers=[("cec.type", b"\xff"), ("cec.ts", b"1")]), "not UTF-8"),
    ],
)
def test_what_is_no_record_is_named_and_its_neighbours_are_read(tmp_path: Path, row: Row, reason: str) -> None:
    log = written(tmp_path, batch(0, [cec(0, 0)]), batch(1, [cec(1, 1), row, cec(3, 3)]))
    found, damage = scan(tmp_path)
    assert [r["pos"] for r in found] == [0, 1, 3]
    assert ids(damage) == [("bad-record", log.starts[1], 1)]
    assert damage[0].detail.startswith("Kafka offset 2: ")
    assert reason in damage[0].detail


def test_no_depth_of_a_state_ends_the_reading(tmp_path: Path) -> None:
    nested = [b"[" * n + b"]" * n for n in range(700, 1000)]
    named = [("cec.type", b"emit"), ("cec.ts", b"1")]
    in_json = [Row(b'{"type":"emit","ts":1,"state":%b}' % state) for state in nested]
    written(tmp_path, batch(0, [*in_json, *(Row(state, headers=named) for state in nested)]))
    good, damage = scan(tmp_path)
    assert len(good) + len(damage) == 2 * len(nested)
    assert any(row["state"].startswith("{") for row in good)  # too deep for JSON: kept as bytes
    assert {d.id for d in damage} == {"bad-record"}


def test_columns_come_as_asked_for(tmp_path: Path) -> None:
    written(tmp_path, batch(0, [cec(0, 5)]))
    root = Root(str(tmp_path))
    (one,) = read(splits(root.uri, root.list(), 1 << 20)[0], "outputs", ("_offset", "ts", "inputs"))
    assert isinstance(one, pa.RecordBatch)
    assert one.schema.equals(
        pa.schema([("_offset", pa.int64()), pa.field("ts", pa.int64(), False), OUTPUTS.field("inputs")])
    )
    assert one.to_pylist() == [{"_offset": 0, "ts": 5, "inputs": None}]


def test_rows_that_are_no_tuples_keep_their_offsets(tmp_path: Path) -> None:
    """Producer 1 aborts and then commits, its marker in the next segment; producer 2 never ends."""

    def data(offset: int, producer: int) -> bytes:
        return batch(offset, [cec(None, offset)], flags=kb.TRANSACTIONAL, producer=producer)

    first, second = Log(), Log(base=6)
    first_batches = [data(0, 1), data(1, 2), kb.marker(2, kb.ABORT, 1, time=77), data(3, 1), batch(4, [cec(4, 4)])]
    for one in [*first_batches, data(5, 2)]:
        first.add(one)
    for one in [kb.marker(6, kb.COMMIT, 1), data(7, 1), kb.marker(8, kb.COMMIT, 1)]:
        second.add(one)
    first.write(tmp_path)
    second.write(tmp_path)
    found, damage = scan(tmp_path)
    assert [(r["pos"], r["type"]) for r in found] == [
        *[(0, "control"), (1, "control"), (2, "control"), (3, "check"), (4, "check"), (5, "control")],
        *[(6, "control"), (7, "check"), (8, "control")],
    ]
    at_two = {"type": "control", "ts": 77, "pos": 2, "_path": NAME, "_offset": first.starts[2]}
    assert found[2] == dict.fromkeys(COLUMNS) | at_two
    assert ids(damage) == [("open-transaction", first.starts[1], 2)]


def test_a_corrupt_marker_decides_nothing(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        batch(0, [cec(0, 0)], flags=kb.TRANSACTIONAL, producer=1),
        kb.marker(1, kb.COMMIT, 1),
    )
    before, key, behind = log.data.rpartition(struct.pack(">hh", 0, kb.COMMIT))
    assert key
    (tmp_path / NAME).write_bytes(before + struct.pack(">hh", 0, kb.ABORT) + behind)
    found, damage = scan(tmp_path)
    assert [r["type"] for r in found] == ["control"]
    assert ids(damage) == [("corrupt-batch", log.starts[1], 1), ("open-transaction", 0, 1)]


# Damage


def five(folder: Path) -> Log:
    return written(folder, *(batch(2 * i, [cec(2 * i, 2 * i), cec(2 * i + 1, 2 * i + 1)]) for i in range(5)))


def damaged(folder: Path, change: Callable[[bytearray, list[int]], bytes]) -> tuple[list[int], list[Damage], list[int]]:
    """Positions read after a change to five equal batches of two records, the damage, and where batches began."""
    log = five(folder)
    (folder / NAME).write_bytes(change(bytearray(log.data), log.starts))
    found, damage = scan(folder)
    return [row["pos"] for row in found], damage, log.starts


def flip(at: int, bit: int = 1) -> Callable[[bytearray, list[int]], bytes]:
    def change(data: bytearray, starts: list[int]) -> bytes:
        data[starts[1] + at] ^= bit
        return bytes(data)

    return change


def test_a_wrong_crc_costs_one_batch(tmp_path: Path) -> None:
    found, damage, starts = damaged(tmp_path, flip(70))
    assert found == [0, 1, 4, 5, 6, 7, 8, 9]
    assert ids(damage) == [("corrupt-batch", starts[1], 2)]
    assert damage[0].detail.startswith("offsets 2 to 3: crc is ")


def test_a_length_that_leads_over_an_intact_batch_does_not_hide_it(tmp_path: Path) -> None:
    def change(data: bytearray, starts: list[int]) -> bytes:
        struct.pack_into(">i", data, starts[1] + 8, starts[3] - starts[1] - 12)
        return bytes(data)

    found, damage, starts = damaged(tmp_path, change)
    assert found == [0, 1, 4, 5, 6, 7, 8, 9]
    assert ids(damage) == [("corrupt-batch", starts[1], 2)]


@pytest.mark.parametrize(("at", "bit"), [(8, 0x40), (8, 0x80), (9, 0x40), (16, 1), (16, 2), (0, 0x80)])
def test_reading_goes_on_behind_a_header_that_cannot_be(tmp_path: Path, at: int, bit: int) -> None:
    found, damage, starts = damaged(tmp_path, flip(at, bit))
    assert found == [0, 1, 4, 5, 6, 7, 8, 9]
    assert [(d.id, d.offset) for d in damage] == [("corrupt-file", starts[1])]
    assert f"up to byte {starts[2]}" in damage[0].detail


def test_a_base_offset_that_no_crc_covers_is_reported_where_it_jumps(tmp_path: Path) -> None:
    found, damage, starts = damaged(tmp_path, flip(7, 0x20))
    assert found == list(range(10))  # the records say their positions themselves
    assert ids(damage) == [("offset-jump", starts[1], 32), ("offset-jump", starts[2], 1)]


@pytest.mark.parametrize("kept", [1, 17, 18, 60, 61, 100])
def test_a_cut_last_batch_is_a_torn_tail(tmp_path: Path, kept: int) -> None:
    found, damage, starts = damaged(tmp_path, lambda data, starts: bytes(data[: starts[4] + kept]))
    assert found == list(range(8))
    assert ids(damage) == [("torn-tail", starts[4], 1)]


def test_a_few_last_bytes_of_any_kind_are_a_torn_tail(tmp_path: Path) -> None:
    found, damage, _ = damaged(tmp_path, lambda data, _: bytes(data) + b"\xff" * 17)
    assert found == list(range(10))
    assert [d.id for d in damage] == ["torn-tail"]


@pytest.mark.parametrize("zeros", [1, 17, 4096, 3 << 20])
def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path, zeros: int) -> None:
    found, damage, _ = damaged(tmp_path, lambda data, _: bytes(data) + bytes(zeros))
    assert found == list(range(10))
    assert [(d.id, d.detail) for d in damage] == [("torn-tail", f"{zeros} bytes of zeros at the end")]


def test_zeros_in_the_middle_are_no_torn_tail(tmp_path: Path) -> None:
    def change(data: bytearray, starts: list[int]) -> bytes:
        data[starts[1] : starts[2] + 20] = bytes(starts[2] + 20 - starts[1])
        return bytes(data)

    found, damage, starts = damaged(tmp_path, change)
    assert found == [0, 1, 6, 7, 8, 9]
    assert [(d.id, d.offset) for d in damage] == [("corrupt-file", starts[1])]


def test_garbage_to_the_end_is_no_torn_tail(tmp_path: Path) -> None:
    found, damage, starts = damaged(tmp_path, lambda data, starts: bytes(data[: starts[4]]) + b"\0" * 8 + b"\xff" * 99)
    assert found == list(range(8))
    assert [(d.id, d.offset) for d in damage] == [("corrupt-file", starts[4])]


def test_old_message_formats_are_named_and_passed_over(tmp_path: Path) -> None:
    body = struct.pack(">bbii", 1, 0, -1, 0)[:6] + struct.pack(">qii", 5, -1, -1)
    old = struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body
    (tmp_path / NAME).write_bytes(old + batch(1, [cec(1, 1)]))
    found, damage = scan(tmp_path)
    assert [row["pos"] for row in found] == [1]
    assert ids(damage) == [("unknown-version", 0, 1)]


def test_a_missing_file_is_damage_and_no_exception(tmp_path: Path) -> None:
    split = Split(str(tmp_path / NAME), NAME, READER, 0, 100, 100)
    found, damage = rows_of(read(split, "outputs", COLUMNS))
    assert (found, [d.id for d in damage]) == ([], ["corrupt-file"])


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Batches of an output queue without gaps, as a producer of any codec writes them."""
    made, offset = [], 0
    for size in draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)):
        own = draw(st.booleans())
        found = [cec(offset + i if own else None, offset + i, pad="x" * draw(st.integers(0, 9))) for i in range(size)]
        made.append(batch(offset, found, draw(st.sampled_from(sorted(kb.CODECS)))))
        offset += size
    return made


def plain(row: dict[str, Any], *without: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in without}


@given(logs(), st.data())
@settings(max_examples=150)
def test_damage_costs_only_what_it_hits(made: list[bytes], data: st.DataObject) -> None:
    """Cut or flipped anywhere: batches before are all there, no row is another one, and nothing is lost silently."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        log = written(folder, *made, interval=data.draw(st.sampled_from([0, 300])))
        whole, clean = scan(folder)
        assert clean == []
        hit = data.draw(st.integers(0, len(log.data) - 1))
        cut = data.draw(st.booleans())
        broken = bytearray(log.data[:hit] if cut else log.data)
        if not cut:
            broken[hit] ^= data.draw(st.integers(1, 255))
        (folder / NAME).write_bytes(broken)
        found, damage = scan(folder)
        start = max(at for at in log.starts if at <= hit)
        root, step = Root(name), data.draw(st.integers(1, 1000))
        forwards, _ = scan(folder, splits(root.uri, root.list(), step))
        backwards, _ = scan(folder, list(tail_splits(root.uri, root.list(), step))[::-1])
    before = [row for row in whole if row["_offset"] < start]
    assert found[: len(before)] == before
    # a base offset is not under the CRC: those rows keep all but a position that Kafka's offset gave
    moved = ("pos",) if not cut and hit < start + 8 else ()
    originals = {json.dumps(plain(row, *moved)) for row in whole}
    assert all(json.dumps(plain(row, *moved)) in originals for row in found)
    if cut:
        assert found == before
        assert ids(damage) == ([] if hit == start else [("torn-tail", start, 1)])
    else:
        in_epoch = start + 12 <= hit < start + 16  # the leader epoch: not under the CRC, and of no meaning here
        assert bool(damage) is not in_epoch
        behind = [row for row in whole if row["_offset"] > start]
        assert found[len(found) - len(behind) :] == behind
    assert forwards == found
    assert backwards == found


# Splits


def partition(folder: Path, padding: int = 100, indexed: bool = True) -> Path:
    """Three segments of about 40 KB, batches of 1 to 12 records, and what else a broker leaves in the folder."""
    offset = 0
    for _ in range(3):
        log = Log(base=offset)
        while len(log.data) < 40_000:
            size = 1 + offset * 7 % 12
            log.add(batch(offset, [cec(offset + i, offset + i, pad="x" * 50) for i in range(size)]))
            offset += size
        log.write(folder, padding, indexed)
    Log(base=offset).write(folder)
    for name in (f"{5:020}.log.deleted", f"{5:020}.snapshot", "leader-epoch-checkpoint", "5.log"):
        (folder / name).write_bytes(b"x")
    return folder


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partition(tmp_path_factory.mktemp("queue"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partition(tmp_path_factory.mktemp("bare"), indexed=False)


@pytest.fixture(scope="module")
def misled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of another log: positions between batches, beyond the file, and offsets that are elsewhere."""
    folder = partition(tmp_path_factory.mktemp("misled"))
    for path in folder.glob("*.index"):
        path.write_bytes(kb.index_bytes([(i * 3, i * 3001) for i in range(1, 50)]))
    return folder


@pytest.mark.parametrize("kind", ["queue", "bare", "misled"])
@pytest.mark.parametrize("step", [1, 5_000, 30_000, 1 << 20])
def test_splits_of_any_step_give_the_rows_of_one_read(kind: str, step: int, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(kind)
    root = Root(str(folder))
    whole, damage = scan(folder)
    assert damage == []
    made = splits(root.uri, root.list(), step)
    assert scan(folder, made) == (whole, [])
    backwards = list(tail_splits(root.uri, root.list(), step, 4 * step))
    assert scan(folder, backwards[::-1]) == (whole, [])
    if step == 1 and kind == "bare":
        assert len(made) == len({(row["_path"], row["_offset"]) for row in whole})
    if step == 5_000:
        assert 20 <= len(made) <= 30
        sizes = [split.end - split.start for split in backwards]
        assert sizes[0] < 5_000 + 6_000 < sizes[2]


def test_an_index_that_leads_into_a_record_cuts_no_batch(tmp_path: Path) -> None:
    """A value may itself hold a batch: mirrors and backups write such topics."""
    inner = batch(70, [cec(70, 70)])
    carrier = Row(inner, headers=[("cec.type", b"emit"), ("cec.ts", b"1")])
    log = written(tmp_path, batch(0, [cec(0, 0)]), batch(1, [carrier]), batch(2, [cec(2, 2)]))
    log.index = [(1, log.data.index(inner))]
    log.write(tmp_path)
    root = Root(str(tmp_path))
    whole, damage = scan(tmp_path)
    assert damage == []
    assert scan(tmp_path, splits(root.uri, root.list(), log.index[0][1])) == (whole, [])


def test_one_read_gives_every_row_in_log_order(queue: Path) -> None:
    found, _ = scan(queue)
    assert [row["pos"] for row in found] == list(range(len(found)))
    assert len(found) > 600


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, file: Any, log: list[int]) -> None:
        self._file, self._log = file, log

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def seek(self, at: int) -> None:
        self._file.seek(at)

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self._log.append(len(data))
        return data


def test_the_tail_of_a_large_log_costs_an_index_and_a_probe_per_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    for i in range(300):
        log.add(batch(i, [cec(i, i, pad="x" * 20_000)]))
    log.write(tmp_path, padding=200_000)
    reads: list[int] = []
    monkeypatch.setattr(kafka_segment, "open_file", lambda uri: Counted(open_file(uri), reads))
    root = Root(str(tmp_path))
    made = tail_splits(root.uri, root.list(), 256 << 10, 1 << 20)
    first = [next(made) for _ in range(3)]
    assert [round((s.end - s.start) / (256 << 10)) for s in first] == [1, 2, 4]
    assert len(reads) <= 1 + 2 * len(first)
    assert max(reads) <= 64 << 10


def test_reading_a_split_reads_no_more_than_the_split(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(str(queue))
    split = splits(root.uri, root.list(), 5_000)[2]
    reads: list[int] = []
    monkeypatch.setattr(kafka_segment, "open_file", lambda uri: Counted(open_file(uri), reads))
    assert rows_of(read(split, "outputs", COLUMNS))[0]
    assert sum(reads) <= split.end - split.start + 61


# Recovery step 1, and time


def told(folder: Path) -> list[tuple[str, str, int | None]]:
    root = Root(str(folder))
    return [(f.id, f.severity, f.where[0].offset) for f in reconcile(root.read, root.uri, root.list())]


def test_a_running_broker_s_indexes_agree_with_its_log(queue: Path, bare: Path) -> None:
    assert told(queue) == []
    assert told(bare) == []
    assert reconcile(Root(".").read, Root(".").uri, []) == ()


def active(folder: Path, batches: int = 30, size: int = 1000) -> Log:
    return written(folder, *(batch(i, [cec(i, 1000 + i, pad="x" * size)]) for i in range(batches)))


def test_a_log_shorter_than_its_indexes_is_found(tmp_path: Path) -> None:
    log = active(tmp_path)
    assert told(tmp_path) == []
    cut = log.index[-2][1] + 20
    (tmp_path / NAME).write_bytes(log.data[:cut])
    root = Root(str(tmp_path))
    (finding,) = reconcile(root.read, root.uri, root.list())
    assert (finding.id, finding.severity) == ("index-beyond-log", "warning")
    assert finding.where[0].offset == log.index[-2][1]
    assert "2 positions and 2 timestamps up to" in finding.message


def test_an_empty_log_with_an_index_is_found(tmp_path: Path) -> None:
    active(tmp_path)
    (tmp_path / NAME).write_bytes(b"")
    assert told(tmp_path) == [("index-beyond-log", "warning", 0)]


def test_a_timestamp_that_no_batch_has_is_found(tmp_path: Path) -> None:
    log = active(tmp_path)
    log.times[-1] = (5000, log.times[-1][1])
    log.write(tmp_path)
    assert told(tmp_path) == [("index-beyond-log", "warning", len(log.data))]


def test_an_old_newest_timestamp_is_normal(tmp_path: Path) -> None:
    """The largest timestamp so far may stand in the first batch."""
    log = Log()
    for i in range(30):
        log.add(batch(i, [cec(i, 9000 - i, pad="x" * 1000)]))
    log.write(tmp_path)
    assert log.times[-1][0] == 9000
    assert told(tmp_path) == []


def test_a_log_that_goes_on_behind_its_index_is_told(tmp_path: Path) -> None:
    log = active(tmp_path)
    del log.index[2:], log.times[2:]
    log.write(tmp_path, padding=1000)
    last = log.starts.index(log.index[-1][1])
    root = Root(str(tmp_path))
    (finding,) = reconcile(root.read, root.uri, root.list())
    assert (finding.id, finding.severity) == ("log-beyond-index", "info")
    behind = len(log.data) - log.starts[last + 1]
    assert f"{29 - last} batches ({behind} bytes)" in finding.message
    assert finding.where[0].offset == log.starts[last + 1]


def test_without_any_index_only_large_batches_tell(tmp_path: Path) -> None:
    active(tmp_path / "small").write(tmp_path / "small", indexed=False)
    for path in (tmp_path / "small").glob("*index"):
        path.unlink()
    assert told(tmp_path / "small") == []
    log = active(tmp_path / "large", size=5000)
    log.index, log.times = [], []
    log.write(tmp_path / "large")
    assert told(tmp_path / "large") == [("log-beyond-index", "info", log.starts[1])]


@given(st.data())
@settings(max_examples=40)
def test_the_first_record_at_a_time_is_that_of_a_plain_search(data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=40))
    with TemporaryDirectory() as name:
        log, size = Log(interval=data.draw(st.integers(0, 600))), data.draw(st.integers(1, 4))
        for i in range(0, len(times), size):
            log.add(batch(i, [cec(i + j, t) for j, t in enumerate(times[i : i + size])]))
        log.write(Path(name), padding=data.draw(st.integers(0, 3)), indexed=data.draw(st.booleans()))
        ts = data.draw(st.integers(-1, 51))
        root = Root(name)
        found = first_at(root.uri, root.read, root.list(), ts)
    expected = next((i for i, t in enumerate(times) if t >= ts), None)
    assert found == (None if expected is None else (expected, NAME, log.starts[expected // size]))


def test_a_wrong_time_index_does_not_hide_the_first_record(tmp_path: Path) -> None:
    log = active(tmp_path)
    log.times = [(1, log.index[2][0])]  # says that batches of 1000 and more are older than 2
    log.write(tmp_path)
    root = Root(str(tmp_path))
    assert first_at(root.uri, root.read, root.list(), 1001) == (1, NAME, log.starts[1])


def test_markers_and_damaged_batches_are_no_first_record(tmp_path: Path) -> None:
    spoilt = bytearray(batch(1, [cec(1, 9)]))
    spoilt[spoilt.index(b"check")] ^= 1
    log = written(tmp_path, kb.marker(0, kb.COMMIT, 1, time=9), bytes(spoilt), batch(2, [cec(2, 3), cec(3, 9)]))
    root = Root(str(tmp_path))
    assert first_at(root.uri, root.read, root.list(), 5) == (3, NAME, log.starts[2])


def test_segments_are_sorted_logs_and_nothing_else() -> None:
    names = [f"{9:020}.log", f"{1:020}.log", f"{1:020}.index", f"{2:020}.log.swap", f"{3:020}.log.cleaned", "1.log"]
    assert [e.path for e in segments(Entry(n, 0) for n in names)] == [f"{1:020}.log", f"{9:020}.log"]


# Real files


BATCH_LINE = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* producerId: (-?\d+) .* isTransactional: (\w+)"
    rb" isControl: (\w+) .* position: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) size: (\d+) magic: 2"
    rb" compresscodec: (\w+) crc: (\d+) isvalid: true"
)
RECORD_LINE = re.compile(
    rb"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+"
    rb" headerKeys: \[(.*?)\](?: endTxnMarker: \w+ coordinatorEpoch: -?\d+)?(?: key: (.*?))?(?: payload: (.*))?$"
)
CODECS = [b"none", b"gzip", b"snappy", b"lz4", b"zstd"]


@pytest.fixture(scope="module")
def broker(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed."""
    folder = tmp_path_factory.mktemp("broker")
    subprocess.run(["tar", "-xzSf", str(shared_data / "kafka" / "broker-crash.tar.gz"), "-C", str(folder)], check=True)
    return folder / "crash"


def dumped(path: Path) -> list[tuple[Any, ...]]:
    """Batches and records of Kafka's own dump, in the shape of `read_back`."""
    found: list[tuple[Any, ...]] = []
    for line in gzip.decompress(path.read_bytes()).splitlines():
        if line.startswith(b"Dumping"):
            found.append(("file", line.rpartition(b"/")[2].decode()))
        elif line.startswith(b"baseOffset"):
            match = BATCH_LINE.fullmatch(line)
            assert match, line
            *numbers, codec, crc = match.groups()
            n = [int(x) if x.strip(b"-").isdigit() else x == b"true" for x in numbers]
            found.append(("batch", *n, CODECS.index(codec), int(crc)))
        elif line.startswith(b"|"):
            match = RECORD_LINE.fullmatch(line)
            assert match, line
            offset, time, key_size, value_size, names, key, value = match.groups()
            marker = b"endTxnMarker" in line
            n = [int(x) for x in (offset, time, key_size, value_size)]
            found.append(("record", *n, names.decode(), marker or key or b"", marker or value or b""))
    return [x for x in found if x[0] != "file" or x[1].endswith(".log")]


def read_back(folder: Path) -> list[tuple[Any, ...]]:
    """The same by our reader; CRCs are verified by the walk."""
    root = Root(str(folder))
    found: list[tuple[Any, ...]] = []
    for entry in segments(root.list()):
        found.append(("file", entry.path))
        with Segment(root.uri(entry.path), entry.path, entry.size) as segment:
            for one in walk(segment, 0, entry.size):
                assert not isinstance(one, Damage)
                at, h = one
                flags = (h.transactional, h.control)
                found.append(
                    ("batch", h.base, h.last, h.count, h.producer, *flags, at, h.max_time, h.size, h.codec, h.crc)
                )
                for r in records(h, segment.bytes(at, h.size)):
                    sizes = [-1 if x is None else len(x) for x in (r.key, r.value)]
                    names = ",".join(name for name, _ in r.headers)
                    key, value = (h.control or r.key or b"", h.control or r.value or b"")
                    found.append(("record", r.offset, r.timestamp, *sizes, names, key, value))
    return found


@pytest.mark.parametrize("topic", ["none", "gzip", "snappy", "lz4", "zstd", "txn", "lat", "compact"])
def test_a_real_log_reads_as_kafka_s_own_tool_prints_it(shared_data: Path, broker: Path, topic: str) -> None:
    name = f"ck-{topic}-0"
    printed = dumped(shared_data / "kafka" / "dump-log" / f"{name}.dump.txt.gz")
    assert sum(x[0] == "record" for x in printed) >= 20
    assert read_back(broker / name) == printed


@pytest.mark.parametrize("topic", ["none-0", "none-1", "gzip-0", "lz4-1", "compact-0", "txn-0"])
def test_a_killed_broker_s_indexes_agree_with_its_log(broker: Path, topic: str) -> None:
    assert told(broker / f"ck-{topic}") == []


def test_the_open_transaction_of_the_killed_broker_is_found(broker: Path) -> None:
    found, damage = scan(broker / "ck-txn-0")
    opened = [d for d in damage if d.id == "open-transaction"]
    assert [(d.offset, d.count) for d in opened] == [(3798, 4)]
    control = [row["pos"] for row in found]
    aborted = {2, 16, 33, 34, 35, 49, 50, 51, 52, 53, 54}
    assert aborted <= set(control)
    bad = {int(d.detail.split()[2][:-1]) for d in damage if d.id == "bad-record"}
    assert sorted(bad | set(control)) == list(range(55))  # tuples of that topic are no output records
    assert {0, 1, 36} <= bad


@pytest.mark.parametrize(
    ("name", "batches", "expected"),
    [
        ("bad_crc_middle-0", 5, [("corrupt-batch", 722, 10)]),
        ("torn_mid_batch-0", 5, [("torn-tail", 1805, 1)]),
        ("zero_tail-0", 6, [("torn-tail", 2166, 1)]),
        ("compacted-0", 2, [("offset-jump", 151, 92)]),
        ("codec_gzip-0", 40, []),
        ("codec_none-0", 40, []),
        ("codec_zstd-0", 40, []),
        ("txn-0", 8, []),
        ("legacy_v0_gzip-0", 0, [("unknown-version", 0, 1)]),
    ],
)
def test_segments_of_kafka_python(
    shared_data: Path, name: str, batches: int, expected: list[tuple[str, int, int]]
) -> None:
    root = Root(str(shared_data / "kafka" / "segments" / name))
    (entry,) = segments(root.list())
    with Segment(root.uri(entry.path), entry.path, entry.size) as segment:
        found = list(walk(segment, 0, entry.size))
        good = [one for one in found if not isinstance(one, Damage)]
        assert len(good) == batches
        for at, head in good:
            assert len(list(records(head, segment.bytes(at, head.size)))) == head.count
    assert ids([one for one in found if isinstance(one, Damage)]) == expected


def test_every_message_of_an_old_segment_is_counted(shared_data: Path) -> None:
    _, damage = scan(shared_data / "kafka" / "segments" / "legacy_v1_none-0")
    assert {d.id for d in damage} == {"unknown-version"}
    assert len(damage) == 25
