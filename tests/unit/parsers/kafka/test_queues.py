"""Kafka partitions as output queues: records as rows, and damage that costs only itself."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Damage, Split
from cklog.model.schemas import OUTPUTS
from cklog.parsers.kafka.log import splits, tail_splits
from cklog.parsers.kafka.table import READER, read
from cklog.storage import Root
from tests.builders import kafka as kb
from tests.builders.kafka import Log, Row, batch, cec
from tests.examples import examples
from tests.reading.kafka import COLUMNS, NAME, ids, rows_of, scan, written


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
    (one,) = read(splits(root, root.list(), 1 << 20)[0], "outputs", ("_offset", "ts", "inputs"))
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
    assert ids(damage) == [("open-transaction", first.starts[1], 1), ("open-transaction", first.starts[5], 1)]


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
    assert ids(damage) == [("open-transaction", 0, 1), ("corrupt-batch", log.starts[1], 1)]


def test_an_open_transaction_without_records_holds_nothing_back(tmp_path: Path) -> None:
    """Compaction takes the records of a batch and leaves its header, which keeps the producer's state."""
    emptied = kb.batch(0, [], flags=kb.TRANSACTIONAL, producer=7, last_delta=4)
    written(tmp_path, emptied, kb.batch(5, [kb.cec(5, 5)]))
    rows, damage = scan(tmp_path)
    assert [row["pos"] for row in rows] == [5]
    assert damage == []


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


@pytest.mark.parametrize(("at", "bit"), [(8, 0x40), (8, 0x80), (9, 0x40), (16, 2), (0, 0x80)])
def test_reading_goes_on_behind_a_header_that_cannot_be(tmp_path: Path, at: int, bit: int) -> None:
    found, damage, starts = damaged(tmp_path, flip(at, bit))
    assert found == [0, 1, 4, 5, 6, 7, 8, 9]
    assert [(d.id, d.offset) for d in damage] == [("corrupt-file", starts[1])]
    assert f"up to byte {starts[2]}" in damage[0].detail


@pytest.mark.parametrize("change", [flip(16, 1), flip(16, 0x40), flip(22, 5), flip(22, 7)])
def test_a_batch_of_a_later_format_or_codec_is_not_called_damaged(
    tmp_path: Path, change: Callable[[bytearray, list[int]], bytes]
) -> None:
    """Whatever its checksum says: a later version may sum other bytes."""
    found, damage, starts = damaged(tmp_path, change)
    assert found == [0, 1, 4, 5, 6, 7, 8, 9]
    assert [(d.id, d.offset) for d in damage] == [("unknown-version", starts[1])]


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


def test_a_missing_file_is_unread_and_no_exception(tmp_path: Path) -> None:
    split = Split(str(tmp_path / NAME), NAME, READER, 0, 100, 100)
    found, damage = rows_of(read(split, "outputs", COLUMNS))
    assert (found, [d.id for d in damage]) == ([], ["unreadable-file"])


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
@settings(max_examples=examples(150))
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
        forwards, _ = scan(folder, splits(root, root.list(), step))
        backwards, _ = scan(folder, list(tail_splits(root, root.list(), step))[::-1])
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
