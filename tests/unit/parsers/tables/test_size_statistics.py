"""Size statistics of a column chunk that contradict the schema: loops refuse what Arrow's reader refuses."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.arrays import loops
from cklog.parsers.tables.parquet_batches import ParquetRows
from tests.differential.thrift import I64, LIST, STRUCT, get, put, read_struct, write_struct


def two_groups() -> bytes:
    """Two row groups of which a footer says the same."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    pq.write_table(pa.table([[1, 2, 1, 2]], schema=schema), sink, row_group_size=2, compression="none")
    return bytes(sink.getvalue())


def with_statistics(data: bytes, group: int, counts: list[int]) -> bytes:
    """Put so many counts of repetition levels into what the footer says of a row group's column."""
    length = struct.unpack("<I", data[-8:-4])[0]
    footer, _ = read_struct(data[-8 - length : -8], 0)
    column = get(get(get(footer, 4)[1][group], 1)[1][0], 3)
    put(column, 16, [[2, LIST, [I64, counts]]], STRUCT)
    written = write_struct(footer)
    return data[: -8 - length] + written + struct.pack("<I4s", len(written), b"PAR1")


def read(data: bytes, group: int) -> list[Any]:
    handle = pa.BufferReader(data)
    rows = ParquetRows(handle, pq.read_metadata(handle), "f")
    return [value for batch in rows.batches(group, 1 << 20) for value in batch.column(0).to_pylist()]


@pytest.fixture(autouse=True)
def by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FEW_ROWS", -1)


def test_statistics_that_fit_the_schema_are_accepted() -> None:
    data = with_statistics(two_groups(), 1, [2])
    assert [read(data, 0), read(data, 1)] == [[1, 2], [1, 2]]


def test_statistics_of_levels_that_the_column_has_not_are_refused_after_a_good_group() -> None:
    data = with_statistics(two_groups(), 1, [2, 0, 0])
    with pytest.raises(OSError, match="Repetition level histogram size mismatch"):
        pq.ParquetFile(pa.BufferReader(data)).read_row_group(1)
    assert read(data, 0) == [1, 2]
    with pytest.raises(OSError, match="Repetition level histogram size mismatch"):
        read(data, 1)
