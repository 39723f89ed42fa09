"""Dictionary pages: how many values they may claim, and what Arrow takes for a text of the plain pages that follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.arrays import loops
from cklog.engine.scan import BlockKernel
from cklog.parsers.tables import parquet_batches
from cklog.parsers.tables.parquet_batches import ParquetRows
from tests.differential.parquet_files import compressed, take_apart
from tests.differential.thrift import get, put

TEXTS = ["a"] * 8 + [f"text-{k}" for k in range(60)]
INDICES = b"\x04\x03\x21\x43\x65\x87"
"""Bits of an index, one group of eight, and the indices 1 to 8 into a dictionary of nine texts."""

BEYOND = INDICES.replace(b"\x21", b"\x2d")
"""The first of them is 13 instead."""


def _written(column: pa.Array, most_of_dictionary: int = 16, **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table([column], names=["c"]).cast(pa.schema([pa.field("c", column.type, nullable=False)])),
        sink,
        compression="none",
        dictionary_pagesize_limit=most_of_dictionary,
        write_batch_size=8,
        data_page_size=1,
        **how,
    )
    return bytes(sink.getvalue())


def _read(data: bytes) -> list[Any]:
    handle = pa.BufferReader(data)
    rows = ParquetRows(handle, pq.read_metadata(handle), "f")
    return [value for batch in rows.batches(0, 1 << 20) for value in batch.column(0).to_pylist()]


def _as_texts() -> pa.Array:
    return pa.array(TEXTS)


def _as_maps() -> pa.Array:
    entries = pa.field("key_value", pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.int64())]))
    return pa.array([[(text, 7)] for text in TEXTS], pa.map_(entries.type.field(0), entries.type.field(1)))


@pytest.mark.parametrize("made", [_as_texts, _as_maps])
def test_an_intact_mixed_chunk_is_read(made: Callable[[], pa.Array]) -> None:
    column = made()
    assert _read(_written(column)) == column.to_pylist()


@pytest.mark.parametrize("made", [_as_texts, _as_maps])
def test_an_index_beyond_the_dictionary_page_is_refused(made: Callable[[], pa.Array]) -> None:
    """Arrow's reader of dictionaries accepts it: the index points to a text of a later plain page."""
    data = _written(made())
    assert data.count(INDICES) == 1
    damaged = data.replace(INDICES, BEYOND)
    with pytest.raises(pa.ArrowInvalid, match="Index not in dictionary bounds"):
        _read(damaged)


def test_arrow_accepts_such_an_index_where_it_keeps_the_dictionary() -> None:
    file = pq.ParquetFile(pa.BufferReader(_written(_as_texts()).replace(INDICES, BEYOND)), read_dictionary=["c"])
    assert file.read().column(0)[8].as_py() == "text-12"


@pytest.mark.parametrize("made", [_as_texts, _as_maps])
def test_a_text_twice_in_the_dictionary_page_is_refused(made: Callable[[], pa.Array]) -> None:
    """Arrow's reader of dictionaries keeps it once, so that each index behind it points to another text."""
    with pytest.raises(pa.ArrowInvalid, match="the dictionary page of column c has a text twice"):
        _read(_with_a_text_twice(_written(made())))


def test_loops_read_a_text_that_is_twice_in_the_dictionary_page(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _with_a_text_twice(_written(_as_texts(), 1 << 20))
    expected = pq.ParquetFile(pa.BufferReader(data)).read().column(0).to_pylist()
    assert expected == [*TEXTS[:11], "text-2", *TEXTS[12:]]
    monkeypatch.setattr(loops, "FEW_ROWS", -1)
    assert _read(data) == expected


def test_arrow_reads_other_texts_where_it_keeps_the_dictionary() -> None:
    data = _with_a_text_twice(_written(_as_texts()))
    file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=["c"])
    assert file.read().column(0).to_pylist()[12:16] == TEXTS[13:17]


def _with_a_text_twice(data: bytes) -> bytes:
    return data.replace(b"text-3", b"text-2", 1)


@pytest.mark.parametrize("rows", [-1, 1 << 62])
def test_a_dictionary_of_more_values_than_bytes_is_refused(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow would allocate for as many as the header says: 8 GB for a page of 26 bytes."""
    monkeypatch.setattr(loops, "FEW_ROWS", rows)
    footer, chunks = take_apart(_written(pa.array([7, 8, 9]), data_page_version="2.0"))
    header = chunks[0][2][0][0]
    put(get(header, 7), 1, (1 << 30) - 1)
    data = compressed((footer, chunks), 0, bytes, bytes, lambda fields: None)
    with pytest.raises(pa.ArrowInvalid, match=r"has 1073741823 values in 24 bytes"):
        _read(data)


def test_columns_of_one_name_are_refused_where_they_are_read() -> None:
    """They would be looked up by it."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([_as_texts(), _as_texts(), _as_texts()], names=["c", "c", "d"]), sink)
    data = sink.getvalue()
    metadata = pq.read_metadata(pa.BufferReader(data))
    for columns in (None, ["c"], ["d", "c"]):
        with pytest.raises(pa.ArrowInvalid, match="it has 2 columns with the name c"):
            ParquetRows(pa.BufferReader(data), metadata, "f", columns)
    rows = ParquetRows(pa.BufferReader(data), metadata, "f", ["d"])
    assert sum(batch.num_rows for batch in rows.batches(0, 1 << 10)) == len(_as_texts())


def test_an_error_does_not_depend_on_what_was_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two columns that cannot be read the first one is named, be the other one the first that is looked at."""
    sink = pa.BufferOutputStream()
    columns = pa.table({"a": [f"value-{i:03}" for i in range(40)], "b": ["x", "y"] * 20})
    pq.write_table(columns, sink, compression="none", use_dictionary=["b"])
    data = sink.getvalue().to_pybytes()
    damaged = data.replace(b"\x09\0\0\0value-039", b"\xff\xff\xff\x7fvalue-039")  # its length
    at = damaged.index(b"\x01\0\0\0x\x01\0\0\0y")
    damaged = damaged[:at] + b"\xff\xff\xff\x7f" + damaged[at + 4 :]
    assert damaged.count(b"\xff\xff\xff\x7f") == 2
    monkeypatch.setattr(loops, "FEW_ROWS", -1)
    monkeypatch.setattr(parquet_batches, "_ACCEPTED", set())
    told = []
    for each in (damaged, data, damaged):
        rows = ParquetRows(pa.BufferReader(each), pq.read_metadata(pa.BufferReader(each)), "f")
        try:
            told.append(str(sum(batch.num_rows for batch in rows.batches(0, 1 << 10))))
        except pa.ArrowInvalid as error:
            told.append(str(error))
    assert told[1] == "40"
    assert told[0] == told[2] != "40"


def test_rows_that_a_kernel_cannot_fold_are_decoded_by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's reader would refuse them: a text is twice in the dictionary page."""
    data = _with_a_text_twice(_written(_as_texts(), 1 << 20))
    monkeypatch.setattr(loops, "FEW_ROWS", -1)
    expected = _read(data)
    rows = ParquetRows(pa.BufferReader(data), pq.read_metadata(pa.BufferReader(data)), "f")
    kernel = BlockKernel(lambda batch: batch, lambda blocks: None)
    found = [value for batch in rows.folded(0, 7, kernel) for value in batch.column(0).to_pylist()]
    assert found == expected


def _with_a_number_beyond_the_dictionary() -> bytes:
    """Return a file of 70 numbers of three bits, of which one is beyond the seven values of their dictionary."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table([pa.array([k % 7 for k in range(70)])], schema=pa.schema([pa.field("c", pa.int64(), False)])),
        sink,
        compression="none",
    )
    data = bytes(sink.getvalue())
    packed = sum(k % 7 << (3 * k) for k in range(70)).to_bytes(27, "little")
    assert data.count(packed) == 1
    return data.replace(packed, packed[:17] + b"\xff\xff\xff" + packed[20:])


@pytest.mark.parametrize("most", [23, 1 << 20])
def test_a_number_beyond_the_dictionary_is_refused_however_many_rows_are_read_at_once(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _with_a_number_beyond_the_dictionary()
    monkeypatch.setattr(loops, "FEW_ROWS", -1)
    rows = ParquetRows(pa.BufferReader(data), pq.read_metadata(pa.BufferReader(data)), "f")
    with pytest.raises(pa.ArrowInvalid, match="numbers that its dictionary has not"):
        list(rows.batches(0, most))
