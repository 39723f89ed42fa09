"""Columns of Parquet in other types than a table's: a value that does not fit costs its row, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.arrays.columns import timestamps_as_ms
from cklog.engine.scan import Damage, Split
from cklog.parsers.tables.parquet import READER, read

ROWS = 1000
BIGGEST = (1 << 63) - 1


def told(folder: Path, table: str, columns: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Damage]]:
    """Rows and damage of a file with some columns."""
    path = folder / "0.parquet"
    pq.write_table(pa.table(columns), path)
    split = Split(str(path), "0.parquet", READER, 0, 1, path.stat().st_size)
    rows: list[dict[str, Any]] = []
    damage = []
    for item in read(split, table, (*columns, "_offset")):
        if isinstance(item, Damage):
            damage.append(item)
        else:
            rows += item.to_pylist()
    return rows, damage


def messages(**other: Any) -> dict[str, Any]:
    return {"channel": ["a/0->b/0"] * ROWS, "seq": pa.array(range(ROWS)), **other}


def checkpoints(**other: Any) -> dict[str, Any]:
    plain = {"operator": ["a"] * ROWS, "subtask": pa.array([0] * ROWS), "checkpoint": pa.array(range(1, ROWS + 1))}
    return plain | other


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_are_milliseconds(tmp_path: Path, unit: str) -> None:
    """Spark writes microseconds, and more than zeros behind the milliseconds."""
    each = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    time = pa.array([1_700_000_000 * each + i for i in range(ROWS)], pa.timestamp(unit))
    rows, damage = told(tmp_path, "channels", messages(time=time))
    assert damage == []
    assert [row["time"] for row in rows] == [1_700_000_000_000 + i * 1000 // each for i in range(ROWS)]


def test_seconds_that_no_milliseconds_hold_are_refused() -> None:
    """Parquet has no seconds; results in other formats do."""
    with pytest.raises(pa.ArrowInvalid):
        timestamps_as_ms(pa.array([BIGGEST], pa.timestamp("s")))


def test_an_integer_that_no_double_holds_is_rounded_as_it_is_in_json(tmp_path: Path) -> None:
    size = [(1 << 58) + 8 + 1 if i == 3 else 5 for i in range(ROWS)]
    rows, damage = told(tmp_path, "checkpoints", checkpoints(duration_ms=pa.array(size, pa.int64())))
    assert damage == []
    assert [row["duration_ms"] for row in rows] == [float(one) for one in size]


@pytest.mark.parametrize("bad", [[0], [ROWS - 1], [3, 4, 500]])
def test_an_unsigned_number_beyond_63_bits_costs_its_row(tmp_path: Path, bad: list[int]) -> None:
    size = pa.array([BIGGEST + 1 if i in bad else i for i in range(ROWS)], pa.uint64())
    rows, damage = told(tmp_path, "channels", messages(bytes=size))
    assert [(one.id, one.offset) for one in damage] == [("bad-record", i) for i in bad]
    assert all("column bytes" in str(one.detail) for one in damage)
    assert [row["_offset"] for row in rows] == [i for i in range(ROWS) if i not in bad]


def test_one_number_in_a_map_costs_its_row(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.uint64())
    sent = pa.array([[("a/0->b/0", BIGGEST + 1 if i == 9 else i)] for i in range(ROWS)], kind)
    rows, damage = told(tmp_path, "checkpoints", checkpoints(sent=sent))
    assert [(one.id, one.offset) for one in damage] == [("bad-record", 9)]
    assert len(rows) == ROWS - 1


@pytest.mark.parametrize("column", [pa.array(["x"] * ROWS), pa.array([BIGGEST + 1] * ROWS, pa.uint64())])
def test_a_column_of_another_kind_is_damage_of_the_file(tmp_path: Path, column: pa.Array) -> None:
    rows, damage = told(tmp_path, "channels", messages(bytes=column))
    assert rows == []
    assert [one.id for one in damage] == ["corrupt-file"]
