"""The kernels of raw events against one row after the other, whatever the batches."""

from __future__ import annotations

import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.arrays.spans import joined_spans, without
from cklog.engine.merge import merge
from cklog.history.events.batch import Places, place
from cklog.history.events.kernels import (
    INTERVALS_REDUCE,
    LSNS_REDUCE,
    SEQUENCE_RUNS_REDUCE,
    SURVEY_REDUCE,
    check_of,
    interval_kernel,
    lsn_kernel,
    run_kernel,
    survey_kernel,
)
from cklog.history.events.order import order_of
from cklog.model.names import Subtask
from cklog.model.schemas import EVENTS
from tests.examples import examples

Row = dict[str, Any]
CHANNELS = ["a/0->b/0", "a/0->b/0#1", "b/0->a/0", "a/1->a/1", "c/0->b/0", "nonsense", None]
FILES = ["log-10", "log-2"]


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Events that need not make sense, each with its place."""
    row = st.fixed_dictionaries(
        {
            "event": st.sampled_from(["send", "receive", "receive", "checkpoint"]),
            "operator": st.sampled_from(["a", "b"]),
            "subtask": st.sampled_from([0, 0, 1, None, 1 << 40]),
            "channel": st.sampled_from(CHANNELS),
            "seq": st.none() | st.integers(0, 6),
            "checkpoint": st.none() | st.integers(1, 4),
            "time": st.none() | st.integers(0, 9),
            "_path": st.sampled_from(FILES),
        }
    )
    rows = draw(st.lists(row, max_size=30))
    numbers = draw(st.permutations(range(len(rows))))
    unnumbered = draw(st.sampled_from([None, "a", "b"]))
    for i, (r, number) in enumerate(zip(rows, numbers, strict=True)):
        r |= {"lsn": None if r["operator"] == unnumbered else number, "_offset": 10 * i}
    return rows


def batches(rows: list[Row], size: int, coded: bool) -> list[pa.RecordBatch]:
    """Batches of one file each, of at most `size` rows."""
    found = []
    for path in FILES:
        mine = [row for row in rows if row["_path"] == path]
        for i in range(0, len(mine), size):
            part = mine[i : i + size]
            columns = {f.name: pa.array([r.get(f.name) for r in part], f.type) for f in EVENTS}
            columns |= {"_path": pa.array([path] * len(part)), "_offset": pa.array([r["_offset"] for r in part])}
            if coded:
                columns |= {n: columns[n].dictionary_encode() for n in ("event", "operator", "channel", "_path")}
            found.append(pa.RecordBatch.from_pydict(columns))
    return found


def reduced(kernel: Any, rows: list[Row], size: int, coded: bool, reduce: Any) -> pa.Table | None:
    kernel = pickle.loads(pickle.dumps(kernel))
    parts = [pa.Table.from_batches([kernel(batch)]) for batch in batches(rows, size, coded)]
    return merge(parts, reduce) if parts else None


def subtask(row: Row) -> Subtask:
    return Subtask(row["operator"], row["subtask"] or 0)


shapes = (logs(), st.integers(1, 30), st.booleans(), st.none() | st.integers(0, 9))


@settings(max_examples=examples(200))
@given(*shapes)
def test_a_survey_counts_events_and_keeps_checkpoints(
    rows: list[Row], size: int, coded: bool, as_of: int | None
) -> None:
    table = reduced(survey_kernel(as_of), rows, size, coded, SURVEY_REDUCE)
    got = [tuple(row.values()) for row in table.to_pylist()] if table is not None else []
    expected: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        counts = expected[(*subtask(row), row["event"], row["_path"], None, None, None, None)]
        timely = as_of is None or (row["time"] is not None and row["time"] <= as_of)
        for k, one in enumerate((True, row["lsn"] is not None, timely)):
            counts[k] += one
        if row["event"] == "checkpoint":
            places = (row["_offset"], row["checkpoint"], row["lsn"], row["time"])
            expected[(*subtask(row), "checkpoint", row["_path"], *places)] = [0, 0, 0]
    assert sorted(got, key=str) == sorted(((*key, *counts) for key, counts in expected.items()), key=str)


def placed(rows: list[Row], as_of: int | None) -> Places | None:
    table = reduced(survey_kernel(as_of), rows, 9, False, SURVEY_REDUCE)
    if table is None:
        return None
    found = order_of(table, (), as_of).places
    assert [*found.rank] == sorted(found.rank, key=lambda path: int(path.removeprefix("log-")))
    return found


def position(row: Row, places: Places) -> int:
    numbered = places.numbered[places.index[subtask(row)]]
    return int(row["lsn"]) if numbered else place(places.rank[row["_path"]], row["_offset"])


def usable(row: Row) -> bool:
    """Whether a send or receive has a number and is of a channel with that end."""
    if row["seq"] is None or row["channel"] in (None, "nonsense"):
        return False
    sender, _, receiver = str(row["channel"]).partition("#")[0].partition("->")
    end = sender if row["event"] == "send" else receiver
    return str(subtask(row)) == end


def intervals(rows: list[Row], places: Places) -> list[tuple[Row, int]]:
    """Usable sends and receives that count, and their interval."""
    found = []
    for row in rows:
        if row["event"] == "checkpoint" or not usable(row):
            continue
        i = places.index[subtask(row)]
        taken = places.position[places.start[i] : places.start[i + 1]].tolist()
        interval = sum(p < position(row, places) for p in taken)
        late = places.as_of is not None and (row["time"] is None or row["time"] > places.as_of)
        if not (late and interval == len(taken)):
            found.append((row, interval))
    return found


@settings(max_examples=examples(400))
@given(*shapes)
def test_intervals_hold_the_span_of_each_side_of_a_channel(
    rows: list[Row], size: int, coded: bool, as_of: int | None
) -> None:
    places = placed(rows, as_of)
    if places is None:
        return
    table = reduced(interval_kernel(places), rows, size, coded, INTERVALS_REDUCE)
    assert table is not None
    got = {
        (r["channel"], r["side"], r["interval"]): (r["least"], r["next"], r["rows"], r["first"], r["last"], exact(r))
        for r in table.to_pylist()
        if r["side"] in ("send", "receive")
    }
    groups: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row, interval in intervals(rows, places):
        groups[row["channel"], row["event"], interval].append(row)
    expected = {}
    for key, mine in groups.items():
        seqs, spots = sorted(r["seq"] for r in mine), sorted(position(r, places) for r in mine)
        whole = tuple(len(set(n)) == len(n) == n[-1] + 1 - n[0] for n in (seqs, spots))
        expected[key] = (seqs[0], seqs[-1] + 1, len(mine), spots[0], spots[-1], whole)
    assert got == expected
    strange = {(r["side"], r["channel"], r["path"]): (r["rows"], r["least"]) for r in table.to_pylist() if r["path"]}
    assert strange == unusable(rows)


def exact(row: Row) -> tuple[bool, bool]:
    """Whether counts and checks say that numbers, and places, are those of their span, once each."""
    numbers = row["rows"] == row["next"] - row["least"] and same(row["check"], row["least"], row["next"])
    spots = row["rows"] == row["last"] + 1 - row["first"]
    return numbers, spots and same(row["place_check"], row["first"], row["last"] + 1)


def same(check: int, first: int, end: int) -> bool:
    return bool((check - int(check_of(np.array([first]), np.array([end]))[0])) & 0xFFFFFFFF == 0)


def unusable(rows: list[Row]) -> dict[tuple[str, Any, str], tuple[int, int]]:
    found: dict[tuple[str, Any, str], list[int]] = defaultdict(list)
    for row in rows:
        if row["event"] != "checkpoint" and not usable(row):
            whole = row["seq"] is not None and row["channel"] is not None
            found["foreign" if whole else "incomplete", row["channel"], row["_path"]].append(row["_offset"])
    return {key: (len(offsets), min(offsets)) for key, offsets in found.items()}


@settings(max_examples=examples(200))
@given(*shapes)
def test_runs_and_numbers_are_sets_of_consecutive_numbers(
    rows: list[Row], size: int, coded: bool, as_of: int | None
) -> None:
    places = placed(rows, as_of)
    if places is None:
        return
    wanted = frozenset({"a/0->b/0", "b/0->a/0"})
    table = reduced(run_kernel(places, wanted), rows, size, coded, SEQUENCE_RUNS_REDUCE)
    found = intervals(rows, places)
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row, interval in found:
        if row["channel"] in wanted:
            groups[row["channel"], row["event"], interval].append(row["seq"])
    assert table is not None
    assert spans_of(table, ("channel", "side", "interval")) == spans(groups)
    some = frozenset({Subtask("a", 0), Subtask("b", 0)})
    table = reduced(lsn_kernel(places, some), rows, size, coded, LSNS_REDUCE)
    groups = defaultdict(list)
    for row, _ in found:
        if subtask(row) in some:
            groups[tuple(subtask(row))].append(position(row, places))
    assert table is not None
    assert spans_of(table, ("operator", "subtask")) == spans(groups)


def spans_of(table: pa.Table, keys: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[list[tuple[int, int]], int]]:
    found: dict[tuple[Any, ...], tuple[list[tuple[int, int]], int]] = {}
    for row in table.to_pylist():
        mine, count = found.get(tuple(row[k] for k in keys), ([], 0))
        found[tuple(row[k] for k in keys)] = [*mine, (row["from"], row["to"])], count + row["rows"]
    return {key: (sorted(mine), count) for key, (mine, count) in found.items()}


def spans(groups: dict[tuple[Any, ...], list[int]]) -> dict[tuple[Any, ...], tuple[list[tuple[int, int]], int]]:
    return {key: (joined_spans((n, n + 1) for n in numbers), len(numbers)) for key, numbers in groups.items()}


@given(st.sets(st.integers(0, 20)), st.integers(0, 20), st.integers(0, 20))
def test_spans_stand_for_sets(numbers: set[int], low: int, high: int) -> None:
    held = joined_spans((n, n + 1) for n in numbers)
    assert {n for a, b in held for n in range(a, b)} == numbers
    assert {n for a, b in without(low, high, held) for n in range(a, b)} == set(range(low, high)) - numbers


@given(st.lists(st.integers(0, 2**63 - 2), min_size=1, max_size=4))
def test_the_check_of_a_span_is_the_sum_over_its_numbers(numbers: list[int]) -> None:
    ones = np.array(numbers)
    each = check_of(ones, ones + 1)
    assert each.tolist() == [n * (n + 1) % 2**32 for n in numbers]
    end = min(numbers) + len(numbers)
    if sorted(numbers) == list(range(min(numbers), end)):
        assert same(int(each.sum()), min(numbers), end)


@given(st.sets(st.integers(0, 2**31 - 2), min_size=2, max_size=9), st.data())
def test_one_number_in_place_of_another_always_shows(numbers: set[int], data: st.DataObject) -> None:
    kept = sorted(numbers)
    lost = data.draw(st.sampled_from(kept))
    wrong = [*(n for n in kept if n != lost), data.draw(st.sampled_from([n for n in kept if n != lost]))]
    sums = [int(check_of(np.array(n), np.array(n) + 1).sum()) & 0xFFFFFFFF for n in (kept, wrong)]
    assert sums[0] != sums[1]
