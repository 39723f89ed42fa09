"""Rows folded while they are decoded: what the definition says of the rows that Arrow reads, however written."""

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

from cklog.arrays import blocks
from cklog.arrays.blocks import BlockColumn, Blocks
from cklog.arrays.loops import Loop
from cklog.arrays.types import Ints
from cklog.engine.local import LocalEngine
from cklog.engine.scan import DAMAGE_LISTED, BlockKernel, Damage, Folded, Kernel, Reduce, Scan
from cklog.parsers.tables import parquet
from cklog.parsers.tables.parquet import fold, row_groups
from cklog.runs.records.channel_logs import RANGED, RANGED_REDUCE, RUNS, RUNS_REDUCE, Wanted, columns, in_ranges, runs
from tests.builders.native import any_numbers, log_channels, parquet_logs, sequence_numbers
from tests.loop_forms import forced
from tests.oracles.lines import islands_of

MOST = 2**63 - 1
bounds = st.dictionaries(log_channels, st.tuples(sequence_numbers, sequence_numbers), max_size=3)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Any:
    yield from forced("compiled")


def scanned(
    data: bytes, kernel: Kernel, schema: pa.Schema, reduce: Reduce, at_once: int = 1 << 20
) -> tuple[list[Any], list[Any], int]:
    """Rows of the reduced table in order, what is damaged, and how many rows are intact; folded so many at once."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_BATCH_ROWS", at_once)
        path = Path(folder, "0.parquet")
        path.write_bytes(data)
        splits = tuple(row_groups(str(path), "0.parquet", len(data), 1 << 10, None))
        found = LocalEngine().run(Scan(splits, "channels", columns(None), kernel, schema, reduce))
    rows = sorted(tuple(row.values()) for row in found.table.to_pylist())
    return rows, [(one.id, one.offset, one.count) for one in found.damage], sum(found.records.values())


def rows_of(data: bytes) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]


def is_intact(row: tuple[Any, ...]) -> bool:
    return all(one is None or 0 <= one < MOST for one in row[1:])


def wrapped(island: tuple[Any, ...]) -> tuple[Any, ...]:
    """With its bytes as 64 bits have them: they may add up to more."""
    return (*island[:-1], (island[-1] + 2**63) % 2**64 - 2**63)


@given(parquet_logs() | parquet_logs(any_numbers), st.sampled_from([5, 1 << 20]))
def test_runs_are_the_islands_of_each_channel(data: bytes, at_once: int) -> None:
    """Also where a row group comes in pieces, of which one is left to Arrow when others are folded already."""
    rows = rows_of(data)
    found, damage, records = scanned(data, runs, RUNS, RUNS_REDUCE, at_once)
    assert found == sorted(map(wrapped, islands_of([row for row in rows if is_intact(row)])))
    wrong = [("bad-record", i, 1) for i, row in enumerate(rows) if not is_intact(row)]
    assert damage[:DAMAGE_LISTED] == wrong[:DAMAGE_LISTED]
    assert sum(count for _, _, count in damage) == len(wrong)
    assert records == sum(map(is_intact, rows))


@given(parquet_logs() | parquet_logs(any_numbers), bounds)
def test_ranges_keep_what_is_wanted_and_the_end_behind_it(data: bytes, spans: dict[str, tuple[int, int]]) -> None:
    rows = [row for row in rows_of(data) if is_intact(row)]
    low = {name: min(span) for name, span in spans.items()}
    high = {name: max(span) for name, span in spans.items()}
    kept = [row for row in rows if row[0] in spans and row[1] >= low[row[0]]]
    inside = [((row[0], "range"), *row[1:]) for row in kept if row[1] < high[row[0]]]
    expected = [(*key, *rest) for key, *rest in map(wrapped, islands_of(inside))]
    for name in {row[0] for row in kept if row[1] >= high[row[0]]}:
        behind = [(seq, size or 0) for one, seq, size in kept if one == name and seq >= high[name]]
        row = (name, "after", high[name], max(behind)[0] + 1, len(behind), sum(size for _, size in behind))
        expected.append(wrapped(row))
    wanted = Wanted(tuple(spans), np.array([*low.values()], np.int64), np.array([*high.values()], np.int64), None)
    found, _, records = scanned(data, in_ranges(wanted), RANGED, RANGED_REDUCE)
    assert found == sorted(expected)
    assert records == len(rows)


@given(parquet_logs(), st.data())
def test_a_changed_byte_tells_the_same_as_of_a_batch(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(4, max(len(data) - 9, 4)))
    changed = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    assert told(changed, runs) == told(changed, runs.batch)


def told(data: bytes, kernel: Kernel) -> object:
    try:
        return scanned(data, kernel, RUNS, RUNS_REDUCE)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # of the footer, which whoever lists tells
        return type(error)


@pytest.mark.parametrize("how", [{}, {"compression": "none"}, {"use_dictionary": ["channel"]}])
def test_rows_are_folded(tmp_path: Path, how: dict[str, Any]) -> None:
    """Of what pyarrow writes by default, and of numbers without a dictionary, no batch is made."""
    path, rows = tmp_path / "0.parquet", 50_000
    pq.write_table(
        pa.table({"channel": ["a", "b"] * rows, "seq": range(2 * rows), "bytes": [7] * 2 * rows}), path, **how
    )
    (split,) = row_groups(str(path), path.name, path.stat().st_size, 1 << 30, None)
    assert isinstance(runs, BlockKernel)
    (found,) = fold(runs, split, "channels", columns(None))
    assert isinstance(found, Folded)
    assert found.num_rows == 2 * rows
    assert found.part.num_rows == 2 * rows  # of either every second number: islands of one


def test_rows_with_what_they_are_not_come_as_batches(tmp_path: Path) -> None:
    """A column that is not there, words of which few are allowed, and nulls."""
    for table, wanted in (
        ({"channel": ["a"], "seq": [1]}, ("channel", "seq", "bytes")),
        ({"channel": ["a"], "seq": [1], "bytes": pa.array([None], pa.int64())}, ("channel", "seq", "bytes")),
    ):
        path = tmp_path / "0.parquet"
        pq.write_table(pa.table(table), path)
        (split,) = row_groups(str(path), path.name, path.stat().st_size, 1 << 30, None)
        (found,) = fold(runs, split, "channels", wanted)
        assert isinstance(found, pa.RecordBatch)
        assert found.to_pylist() == [{"channel": "a", "seq": 1, "bytes": None}]
    pq.write_table(pa.table({"event": ["fell"], "operator": ["a"], "seq": [1]}), path)
    (split,) = row_groups(str(path), path.name, path.stat().st_size, 1 << 30, None)
    (damage,) = [item for item in fold(runs, split, "events", ("event", "seq")) if isinstance(item, Damage)]
    assert damage.id == "unknown-version"


def test_behind_pieces_that_are_folded_the_rest_is_read_by_arrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that may not be, without a dictionary that tells of it, in the third of four pieces."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 100)
    path, seq = tmp_path / "0.parquet", [*range(250), -1, *range(251, 400)]
    table = pa.table({"channel": ["a"] * 400, "seq": seq, "bytes": [1] * 400})
    pq.write_table(table, path, use_dictionary=["channel"])
    (split,) = row_groups(str(path), path.name, path.stat().st_size, 1 << 30, None)
    assert isinstance(runs, BlockKernel)
    found = [*fold(runs, split, "channels", columns(None))]
    told = [type(one) if isinstance(one, Damage) else (type(one), one.num_rows) for one in found]
    assert told == [(Folded, 100), (Folded, 100), Damage, (pa.RecordBatch, 99), (pa.RecordBatch, 100)]
    assert [one.offset for one in found if isinstance(one, Damage)] == [250]


def test_a_kernel_that_fails_is_no_damage_of_the_file(tmp_path: Path) -> None:
    def failing(blocks: Blocks) -> pa.RecordBatch | None:
        raise ValueError(f"of {blocks.rows} rows")

    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"channel": ["a"], "seq": [1], "bytes": [7]}), path)
    (split,) = row_groups(str(path), path.name, path.stat().st_size, 1 << 30, None)
    with pytest.raises(AssertionError, match="a kernel failed: of 1 rows"):
        [*fold(BlockKernel(lambda batch: batch, failing), split, "channels", columns(None))]


def _copy(source: Ints, at: Ints, out: Ints, start: int) -> int:
    count: int = min(len(source) - at[0], len(out) - start)
    for i in range(count):
        out[start + i] = source[at[0] + i]
    at[0] += count
    return start + count


def _sum(count: int, first: Ints, second: Ints, total: Ints) -> int:
    for i in range(count):
        total[0] += first[i] * second[i]
    total[1] += 1
    return count


COPY, SUM = Loop(_copy), Loop(_sum)
BLOCK = 8
few = st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), min_size=1, max_size=3 * BLOCK)


def folded_by_machine(rows: int, cols: list[BlockColumn], total: Ints) -> bool:
    return Blocks(rows, dict(zip("xy", cols, strict=True))).fold(SUM, "xy", (total,))


def folded_as_it_stands(rows: int, cols: list[BlockColumn], total: Ints) -> bool:
    out = tuple(np.empty(BLOCK, np.int64) for _ in cols)
    limits = np.array([column.limit for column in cols])
    fills = tuple((column.fill.plain, column.given) for column in cols)
    return blocks._fold_blocks(rows, fills, limits, out, SUM.plain, (total,)) == rows


@pytest.mark.parametrize("way", [folded_by_machine, folded_as_it_stands])
@given(few, st.sampled_from([blocks.ANY, 5, 100]), st.integers(0, 2))
def test_blocks_are_folded_in_turn(
    way: Callable[[int, list[BlockColumn], Ints], bool], rows: list[tuple[int, int]], limit: int, lacking: int
) -> None:
    """Whatever the number of rows; not where one is out of range, or a column ends too early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", BLOCK)
        x, y = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        cols = [
            BlockColumn(COPY, (x[: len(x) - lacking].copy(), np.zeros(1, np.int64)), limit),
            BlockColumn(COPY, (y, np.zeros(1, np.int64))),
        ]
        total = np.zeros(2, np.int64)
        whole = way(len(rows), cols, total)
    out_of_range = limit != blocks.ANY and not all(0 <= one < limit for one in x.tolist())
    assert whole == (not lacking and not out_of_range)
    if whole:
        assert total.tolist() == [sum(a * b for a, b in rows), -(-len(rows) // BLOCK)]
