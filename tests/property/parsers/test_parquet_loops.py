"""Pages decoded by loops: the rows that Arrow reads of the same bytes; where these are damaged, the same findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.arrays.loops import Loop, only_read
from cklog.engine.scan import Damage, Split
from cklog.parsers.tables import parquet_batches
from cklog.parsers.tables.parquet import READER, read
from cklog.parsers.tables.parquet_columns import stored_pages
from cklog.parsers.tables.parquet_headers import AT, TYPE, VALUES
from cklog.parsers.tables.parquet_loops import UNNAMED, inflate_snappy, read_literal, read_varint, unpack_runs
from tests.builders.native import any_numbers, parquet_logs
from tests.loop_forms import forced

LOOPS = ["compiled", "as it stands"]


def told(data: bytes, form: str) -> list[Any]:
    """Rows and findings of a file, read in one form; rows of neighbouring batches as one list."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "0.parquet")
        path.write_bytes(data)
        try:
            groups = pq.read_metadata(path).num_row_groups
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            groups = 1
        split = Split(str(path), "0.parquet", READER, 0, groups, len(data))
        found: list[Any] = []
        for _ in forced(form):
            for item in read(split, "channels", ("channel", "seq", "bytes")):
                if isinstance(item, Damage):
                    found.append((item.id, item.offset, item.detail))
                else:
                    found += [tuple(row.values()) for row in item.to_pylist()]
    return found


@pytest.mark.parametrize("form", LOOPS)
@given(parquet_logs())
def test_the_rows_are_those_that_were_written(form: str, data: bytes) -> None:
    expected = [tuple(row.values()) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]
    assert told(data, form) == expected


@pytest.mark.parametrize("form", LOOPS)
@given(parquet_logs(any_numbers))
def test_numbers_that_may_not_be_are_told(form: str, data: bytes) -> None:
    rows = [tuple(row.values()) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]
    wrong = [any(one is not None and not 0 <= one < 2**63 - 1 for one in row[1:]) for row in rows]
    found = told(data, form)
    assert [row for row in found if row[0] != "bad-record"] == [
        r for r, bad in zip(rows, wrong, strict=True) if not bad
    ]
    assert [row[1] for row in found if row[0] == "bad-record"] == [i for i, bad in enumerate(wrong) if bad]


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, bytes, list[int]]:
    """Numbers of so many bits as Parquet's hybrid has them: packed by eights, lowest bits first, or one many times."""
    width = draw(st.integers(0, 12))
    number = st.integers(0, (1 << width) - 1) | st.just((1 << width) - 1)
    data, told = b"", []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            groups = draw(st.integers(1, 3))
            packed = draw(st.lists(number, min_size=8 * groups, max_size=8 * groups))
            bits = sum(one << (width * i) for i, one in enumerate(packed))
            data += _varint(groups << 1 | 1) + bits.to_bytes(width * groups, "little")
            told += packed
        else:
            times, one = draw(st.integers(1, 300)), draw(number)
            data += _varint(times << 1) + one.to_bytes((width + 7) // 8, "little")
            told += [one] * times
    return width, data, told


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + _varint(number >> 7) if number > 127 else bytes([number])


@pytest.mark.parametrize("form", LOOPS)
@given(runs(), st.data())
def test_runs_of_numbers_are_those_of_their_definition(
    form: str, made: tuple[int, bytes, list[int]], draw: st.DataObject
) -> None:
    """Read in two pieces, for a batch ends anywhere; once more where the greatest number is not allowed; and where not
    every number of so many bits has a value.
    """
    width, data, told = made
    piece, cut = only_read(np.frombuffer(data + b"more", np.uint8)), draw.draw(st.integers(0, len(told)))
    for _ in forced(form):
        unpack = Loop(unpack_runs, (read_varint,))
        for known, room, said in ((max(told) + 1, 1, 0), (max(told), 1, UNNAMED), (max(told) + 1, 2, -1)):
            values = only_read(np.arange((1 << width) // room) * 7 - 3)
            state, found = np.zeros(4, np.int64), np.full(len(told), -1)
            codes = [
                unpack(b - a, piece, len(data), width, state, values, known, found, a, b)
                for a, b in ((0, cut), (cut, len(told)))
                if a < b
            ]
            assert min(codes) == said
            if not said:
                assert found.tolist() == [7 * one - 3 for one in told]


@pytest.mark.parametrize("width", [*range(13, 18), 20, 23])
def test_runs_of_wide_numbers(width: int) -> None:
    """As machine code only: a value for each number of so many bits is too much for lists. A batch ends anywhere."""
    told = [*range((1 << width) - 40, 1 << width)]
    bits = sum(one << (width * i) for i, one in enumerate(told))
    data = np.frombuffer(_varint(5 << 1 | 1) + bits.to_bytes(5 * width, "little"), np.uint8)
    for _ in forced("compiled"):
        unpack, values = Loop(unpack_runs, (read_varint,)), only_read(np.arange(1 << width) * 7 - 3)
        for known, said in ((1 << width, 0), ((1 << width) - 1, UNNAMED)):
            for cut in range(40):
                found, state = np.zeros(40, np.int64), np.zeros(4, np.int64)
                about = only_read(data), len(data), width, state, values, known, found
                assert unpack(cut, *about, 0, cut) == 0
                assert unpack(40 - cut, *about, cut, 40) == said
                assert found.tolist() == [7 * one - 3 for one in told]


@st.composite
def snappy(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Bytes, and how Snappy may have them: as they are, or by how far before, and how many, the same stand."""
    told, data = b"", b""
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.integers(0, 3)) if told else 0
        if kind == 0:
            piece = draw(st.binary(min_size=1, max_size=80))
            more = draw(st.integers(0 if len(piece) <= 60 else 1, 4))
            head = (len(piece) - 1) << 2 if not more else (59 + more) << 2
            data += bytes([head]) + ((len(piece) - 1).to_bytes(more, "little") if more else b"") + piece
            told += piece
            continue
        back = draw(st.integers(1, min(len(told), 2047)))
        count = draw(st.integers(4, 11) if kind == 1 else st.integers(1, 64))
        if kind == 1:
            data += bytes([(back >> 8) << 5 | (count - 4) << 2 | 1, back & 255])
        else:
            data += bytes([(count - 1) << 2 | kind]) + back.to_bytes(2 if kind == 2 else 4, "little")
        for _ in range(count):
            told += told[-back : len(told) - back + 1]
    return told, _varint(len(told)) + data


def inflated(data: bytes, size: int, form: str) -> bytes | None:
    out = np.full(size + 3, 255, np.uint8)
    for _ in forced(form):
        inflate = Loop(inflate_snappy, (read_varint, read_literal))
        given_ = only_read(np.frombuffer(b"." + data + b"more", np.uint8))
        said = inflate(size, given_, 1, 1 + len(data), out, size)
        assert out[size:].tolist() == [255] * 3
        return None if said else out[:size].tobytes()
    raise AssertionError


@pytest.mark.parametrize("form", LOOPS)
@given(snappy(), st.binary(max_size=300), st.integers(1, 40))
def test_what_snappy_made_is_inflated(form: str, made: tuple[bytes, bytes], piece: bytes, times: int) -> None:
    told, data = made
    assert inflated(data, len(told), form) == told
    assert inflated(pa.compress(piece * times, "snappy", asbytes=True), len(piece) * times, form) == piece * times


@pytest.mark.parametrize("form", LOOPS)
@given(snappy(), st.data())
def test_what_snappy_did_not_make_is_refused(form: str, made: tuple[bytes, bytes], draw: st.DataObject) -> None:
    told, data = made
    for changed in (data[: draw.draw(st.integers(0, len(data)))], _with_a_byte(data, draw)):
        found = inflated(changed, len(told), form)
        try:
            expected = pa.decompress(changed, len(told), "snappy", asbytes=True)
        except (OSError, pa.ArrowException):
            expected = None
        if found is not None or (expected is not None and len(expected) == len(told) and changed[:5] == data[:5]):
            assert found == expected


def _with_a_byte(data: bytes, draw: st.DataObject) -> bytes:
    at = draw.draw(st.integers(0, len(data) - 1))
    return data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]


@given(parquet_logs(), st.data())
def test_a_changed_byte_tells_the_same_in_either_way(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(4, max(len(data) - 9, 4)))
    byte = draw.draw(st.integers(0, 255))
    changed = data[:at] + bytes([byte]) + data[at + 1 :]
    assert told(changed, "compiled") == told(changed, "plain")


@pytest.mark.quarter
@pytest.mark.parametrize("to", [lambda byte: 0, lambda byte: byte ^ 1, lambda byte: byte ^ 16, lambda byte: 255])
def test_every_byte_of_a_footer(to: Callable[[int], int]) -> None:
    """No checksum covers a footer, and Arrow ends the process where some of its entries contradict each other."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"channel": ["a", "b"] * 4, "seq": range(8), "bytes": [7] * 8}), sink, row_group_size=5)
    data = sink.getvalue().to_pybytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    told(data, "compiled")  # Arrow has accepted what this one says
    for at in range(footer, len(data)):
        changed = data[:at] + bytes([to(data[at])]) + data[at + 1 :]
        assert told(changed, "compiled") == told(changed, "plain"), at


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize(("is_sorted", "usual"), [(b"\x11", True), (b"\x12", True), (b"\x13\x01", False)])
def test_a_dictionary_may_say_whether_it_is_sorted(form: str, is_sorted: bytes, usual: bool) -> None:
    """By a boolean, whose kind is its value in Thrift's compact protocol: 1 or 2, and no other."""
    header = b"\x15\x04\x15\x00\x15\x00\x4c\x15\x00\x15\x00" + is_sorted + b"\x00\x00"
    for _ in forced(form):
        found = stored_pages(np.frombuffer(header, np.uint8), 4)
        assert (found is not None) == usual
        assert found is None or found[:, [TYPE, VALUES, AT]].tolist() == [[2, 0, len(header)]]


def test_the_loops_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what pyarrow and others write by default no batch comes from Arrow's reader."""
    sink = pa.BufferOutputStream()
    rows = 5000
    pq.write_table(pa.table({"channel": ["a", "b"] * rows, "seq": range(2 * rows), "bytes": [7] * 2 * rows}), sink)
    monkeypatch.setattr(parquet_batches, "_require_sound", lambda batch: pytest.fail("Arrow's reader"))
    assert len(told(sink.getvalue().to_pybytes(), "compiled")) == 2 * rows


def test_arrow_is_asked_once_of_files_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted: set[object] = set()
    monkeypatch.setattr(parquet_batches, "_ACCEPTED", accepted)
    asked = []
    for rows, about in ((3, {}), (5, {}), (5, {"compression": "none"}), (4, {})):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"channel": ["a"] * rows, "seq": range(rows), "bytes": [7] * rows}), sink, **about)
        told(sink.getvalue().to_pybytes(), "compiled")
        asked.append(len(accepted))
    assert asked == [1, 1, 2, 2]


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (b"\xfe\xff\xff\xff\x0f", 0),
        (b"\xfe\xff\xff\xff\x10\x00", -1),  # 33 bits
        (b"\x82\x80\x80\x80\x77\x00", -1),
        (b"\x80\x80\x80\x80\x80\x01\x00", -1),
        (b"\x80", -1),
    ],
)
def test_a_run_of_a_number_of_more_than_32_bits_is_none(data: bytes, ends: int, form: str) -> None:
    assert first_of_run(data, form) == ends


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize(("groups", "ends"), [(1, 0), ((1 << 28) - 1, 0), (1 << 28, -1)])
def test_a_run_of_more_numbers_than_a_page_can_have_is_none(groups: int, ends: int, form: str) -> None:
    """Packed numbers of no bits take no bytes, however many the run says there are."""
    assert first_of_run(_varint(groups << 1 | 1), form) == ends


def first_of_run(data: bytes, form: str) -> int:
    """Read one number of no bits of a run; return how that ends."""
    for _ in forced(form):
        unpack, out = Loop(unpack_runs, (read_varint,)), np.zeros(1, np.int64)
        state, values = np.zeros(4, np.int64), only_read(np.array([7]))
        piece = only_read(np.frombuffer(data + b"more", np.uint8))
        ended = unpack(1, piece, len(data), 0, state, values, 1, out, 0, 1)
        assert ended or out.tolist() == [7]
        return int(ended)
    raise AssertionError
