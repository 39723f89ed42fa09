"""Runs and merging against the dictionaries and sets that they stand for."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.engine.merge import merge
from cklog.engine.scan import Reduce
from cklog.model.schemas import MESSAGES
from cklog.runs.records.channel_logs import RANGED, RANGED_REDUCE, RUNS, RUNS_REDUCE, Wanted, in_ranges, runs
from tests.loop_forms import FORMS, forced
from tests.oracles.lines import Island, islands_of


@pytest.fixture(params=FORMS, scope="module", autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both forms of the loop over rows."""
    yield from forced(request.param)


Row = tuple[str, int, int | None, int | None]


def batch_of(rows: list[Row], coded: bool = False) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([dict(zip(MESSAGES.names[:4], row, strict=True)) for row in rows], MESSAGES)
    if not coded:
        return batch
    # A dictionary in no order, with a name that no row has, and one that it has twice.
    words = pa.array(["never", *sorted({row[0] for row in rows}, reverse=True), "a"])
    codes = pa.array([words.to_pylist().index(row[0]) for row in rows], pa.int32())
    return batch.set_column(0, "channel", pa.DictionaryArray.from_arrays(codes, words))


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Island]:
    return [tuple(row.values()) for row in table.to_pylist()]


times = st.none() | st.integers(0, 9)
sizes = st.none() | st.integers(0, 1000)
scattered = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12), times, sizes), max_size=30)


@st.composite
def written(draw: st.DrawFn) -> list[Row]:
    """What senders write: each channel counts up, interleaved, sometimes with a hole or a repeated number."""
    after = {name: draw(st.integers(0, 5)) for name in "abc"}
    rows: list[Row] = []
    for name in draw(st.lists(st.sampled_from("abc"), max_size=40)):
        rows.append((name, after[name], draw(times), draw(sizes)))
        after[name] += draw(st.sampled_from([1] * 30 + [0, 2, -1]))
    return rows


def by_number(rows: list[Row]) -> list[Row]:
    """Channel after channel, in long runs."""
    return sorted(rows, key=lambda row: row[:2])


logs = (scattered | written() | written().map(by_number)).map(lambda rows: [row for row in rows if row[1] >= 0])


@given(logs, st.booleans())
def test_runs_are_the_islands_of_each_channel(rows: list[Row], coded: bool) -> None:
    got = merge([pa.Table.from_batches([runs(batch_of(rows, coded))])], RUNS_REDUCE)
    assert got.schema == RUNS
    assert sorted(rows_of(got)) == islands_of([(name, seq, size) for name, seq, _, size in rows])


@given(st.permutations([(name, seq, None, seq) for name in "abc" for seq in range(3, 9)]))
def test_the_order_of_records_does_not_show(rows: list[Row]) -> None:
    got = merge([pa.Table.from_batches([runs(batch_of(rows))])], RUNS_REDUCE)
    assert sorted(rows_of(got)) == [("a", 3, 9, 6, 33), ("b", 3, 9, 6, 33), ("c", 3, 9, 6, 33)]


bounds = st.dictionaries(st.sampled_from("abd"), st.tuples(st.integers(0, 12), st.integers(0, 6)))


@given(logs, bounds, st.none() | st.integers(0, 9), st.booleans())
def test_ranges_keep_what_is_wanted_and_the_end_behind_it(
    rows: list[Row], wanted: dict[str, tuple[int, int]], as_of: int | None, coded: bool
) -> None:
    ends = {name: low + width for name, (low, width) in wanted.items()}
    kept = [
        (name, seq, size)
        for name, seq, time, size in rows
        if name in wanted and seq >= wanted[name][0] and (as_of is None or time is None or time <= as_of)
    ]
    inside = [((name, "range"), seq, size) for name, seq, size in kept if seq < ends[name]]
    expected = [(*key, *rest) for key, *rest in islands_of(inside)]
    for name in sorted({name for name, seq, _ in kept if seq >= ends[name]}):
        behind = [(seq, size or 0) for n, seq, size in kept if n == name and seq >= ends[name]]
        top = max(seq for seq, _ in behind) + 1
        expected.append((name, "after", ends[name], top, len(behind), sum(size for _, size in behind)))
    starts = np.array([low for low, _ in wanted.values()], np.int64)
    ranges = Wanted(tuple(wanted), starts, np.array(list(ends.values()), np.int64), as_of)
    kernel = pickle.loads(pickle.dumps(in_ranges(ranges)))
    got = kernel(batch_of(rows, coded))
    assert got.schema == RANGED
    assert sorted(rows_of(got)) == sorted(expected)


@given(st.lists(logs, min_size=1, max_size=4), st.randoms())
def test_runs_of_parts_merge_to_the_runs_of_the_whole(parts: list[list[Row]], random: Any) -> None:
    """Whatever the parts, their order, and which are merged first."""
    tables = [pa.Table.from_batches([runs(batch_of(part))]) for part in parts]
    random.shuffle(tables)
    whole = [(name, seq, size) for part in parts for name, seq, _, size in part]
    while len(tables) > 1:
        tables[:2] = [merge(tables[:2], RUNS_REDUCE)]
    once = merge(tables, RUNS_REDUCE)
    assert once.schema == RUNS
    assert sorted(rows_of(once)) == islands_of(whole)


spans = st.tuples(
    st.sampled_from([None, "a", "b"]), st.sampled_from(["range", "after"]), st.integers(0, 20), st.integers(0, 9)
)


@given(st.lists(st.lists(spans, max_size=12), min_size=1, max_size=3))
def test_merged_spans_cover_the_same_numbers_and_do_not_touch(parts: list[list[Any]]) -> None:
    named = [
        [dict(zip(RANGED.names, (c, z, low, low + width, 1, width), strict=True)) for c, z, low, width in part]
        for part in parts
    ]
    tables = [pa.Table.from_pylist(part, RANGED) for part in named]
    got = merge(tables, RANGED_REDUCE).to_pylist()
    given_rows = [row for part in named for row in part]
    for key in {(row["channel"], row["zone"]) for row in given_rows}:
        mine = sorted((row for row in got if (row["channel"], row["zone"]) == key), key=lambda row: row["from"])
        theirs = [row for row in given_rows if (row["channel"], row["zone"]) == key]
        assert covered(mine) == covered(theirs)
        assert all(one["to"] < two["from"] for one, two in pairwise(mine))
        assert sum(row["rows"] for row in mine) == len(theirs)
    assert len(got) <= len(given_rows)


def covered(rows: list[dict[str, int]]) -> set[int]:
    return {number for row in rows for number in range(row["from"], row["to"])}


KEYED = pa.schema([("name", pa.string()), ("low", pa.int64()), ("part", pa.int64()), ("high", pa.int64())])
KEYED_REDUCE = Reduce(("name", "part"), {"low": "min", "high": "max"})
values = st.none() | st.integers(-(2**63), 2**63 - 1)
keyed = st.tuples(st.sampled_from([None, "a", "b"]), values, st.sampled_from([None, -(2**63), 1]), values)


@given(st.lists(st.lists(keyed, max_size=12), min_size=1, max_size=3))
def test_merge_folds_rows_of_equal_keys_nulls_among_them(parts: list[list[Any]]) -> None:
    tables = [pa.Table.from_pylist([dict(zip(KEYED.names, row, strict=True)) for row in part], KEYED) for part in parts]
    groups: dict[tuple[Any, Any], list[Any]] = {}
    for name, low, part, high in (row for rows in parts for row in rows):
        groups.setdefault((name, part), []).append((low, high))
    expected = [
        (
            name,
            min((low for low, _ in rows if low is not None), default=None),
            part,
            max((high for _, high in rows if high is not None), default=None),
        )
        for (name, part), rows in groups.items()
    ]
    got = merge(tables, KEYED_REDUCE)
    assert got.schema == KEYED
    assert sorted(map(repr, rows_of(got))) == sorted(map(repr, expected))
    again = merge([merge([table], KEYED_REDUCE) for table in reversed(tables)], KEYED_REDUCE)
    assert sorted(map(repr, rows_of(again))) == sorted(map(repr, rows_of(got)))
