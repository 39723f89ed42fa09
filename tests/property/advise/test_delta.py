"""D by the patent's method, prices and the best D in hindsight, each against its definition on small histories."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cklog.advise.delta import history as delta_history
from cklog.advise.delta.answer import DeltaQuestion, advise_delta
from cklog.advise.delta.costs import BEST
from cklog.advise.delta.hindsight import best_fixed
from cklog.advise.delta.history import Histories, blocks, in_order, prices_by_form
from cklog.arrays.types import Floats
from cklog.history.records import records_of
from cklog.model.names import Subtask
from cklog.model.schemas import CHECKPOINTS
from cklog.policies.delta_number import BenefitMeasure, DeltaLimits, Prices, scheduled

sizes = st.integers(0, 40).map(float)
column = st.lists(st.tuples(sizes, sizes, sizes, sizes), min_size=1, max_size=9)
limits = st.builds(
    DeltaLimits,
    ratio=st.sampled_from([0.0, 0.5, 1.5, 4.0, 1e6]),
    max_delta=st.sampled_from([None, 0, 1, 3]),
    max_restore_ms=st.sampled_from([None, 12.0, 48.0, 120.0]),
    probe_after=st.integers(2, 4),
)
measures = st.sampled_from(["time", "size"])

words = st.from_regex(r"B[Bd]{1,8}", fullmatch=True).filter(lambda word: "d" in word)

Column = list[tuple[float, float, float, float]]
"""Of each checkpoint: bytes as a base and as a delta, ms as a base and as a delta."""


def prices_of(columns: list[Column]) -> Prices:
    count = np.array([len(rows) for rows in columns])
    padded = np.zeros((4, count.max(), len(columns)))
    for s, rows in enumerate(columns):
        padded[:, : len(rows), s] = np.array(rows).T
    recorded = np.zeros(padded.shape[1:], np.bool_)
    return Prices(count, recorded, *padded)


def plain_method(rows: Column, limits: DeltaLimits, by: BenefitMeasure) -> list[int | None]:
    """The method as the patent tells it, one checkpoint after the other: D at each base, None at each delta."""
    number, left, bases, found = 1, 0, 0, list[int | None]()
    averages: tuple[float, float] | None = None
    for k, (base_bytes, delta_bytes, base_ms, delta_ms) in enumerate(rows):
        if left:
            left, bases = left - 1, 0
            size, time = averages or (delta_bytes, delta_ms)
            averages = (size + delta_bytes) / 2, (time + delta_ms) / 2
            found.append(None)
            continue
        bases += 1
        size, time = averages or (math.nan, math.nan)
        room = None if limits.max_restore_ms is None else limits.max_restore_ms - 1.2 * base_ms
        if k == 0 or bases >= limits.probe_after:
            number = 1 if limits.ratio > 0 and (room is None or room > 0) else 0
        else:
            base, delta = (base_ms, time) if by == "time" else (base_bytes, size)
            number = number + 1 if base > delta + 0.1 * delta else max(number - 1, 0)
            while number and size * number > limits.ratio * base_bytes + 1e-6:
                number -= 1
            while number and room is not None and (room < -1e-6 or 1.2 * time * number > room + 1e-6):
                number -= 1
        number = number if limits.max_delta is None else min(number, limits.max_delta)
        left = number
        found.append(number)
    return found


@given(st.lists(column, min_size=1, max_size=4), limits, measures)
def test_the_method_on_many_subtasks_is_the_method_on_each(
    columns: list[Column], limits: DeltaLimits, by: BenefitMeasure
) -> None:
    found = scheduled(prices_of(columns), limits, by)
    for s, rows in enumerate(columns):
        numbers = [None if found.delta[k, s] else int(found.number[k, s]) for k in range(len(rows))]
        assert numbers == plain_method(rows, limits, by)


def runs(rows: Column, forms: tuple[bool, ...]) -> list[tuple[tuple[float, ...], list[tuple[float, ...]]]]:
    """Each base of a schedule (False: a base) with its deltas."""
    found: list[tuple[tuple[float, ...], list[tuple[float, ...]]]] = []
    for row, delta in zip(rows, forms, strict=True):
        if delta:
            found[-1][1].append(row)
        else:
            found.append((row, []))
    return found


def within(rows: Column, forms: tuple[bool, ...], limits: DeltaLimits) -> bool:
    """Whether a schedule keeps every bound, run by run."""
    for base, deltas in runs(rows, forms):
        if sum(d[1] for d in deltas) > limits.ratio * base[0] + 1e-6:
            return False
        if limits.max_delta is not None and len(deltas) > limits.max_delta:
            return False
        restore_ms = 1.2 * (base[2] + sum(d[3] for d in deltas))
        if limits.max_restore_ms is not None and restore_ms > limits.max_restore_ms + 1e-6:
            return False
    return True


def cost(rows: Column, forms: tuple[bool, ...], by: BenefitMeasure) -> float:
    """Bases, and deltas with 10 % for tracking, in ms or bytes."""
    base, delta = (2, 3) if by == "time" else (0, 1)
    return sum(1.1 * row[delta] if form else row[base] for row, form in zip(rows, forms, strict=True))


@given(st.lists(column, min_size=1, max_size=4), limits, measures)
def test_the_best_d_is_that_of_trying_every_one(columns: list[Column], limits: DeltaLimits, by: BenefitMeasure) -> None:
    found = best_fixed(prices_of(columns), limits, by)
    for s, rows in enumerate(columns):
        tried = {d: tuple(k % (d + 1) != 0 for k in range(len(rows))) for d in range(len(rows))}
        fits = {d: cost(rows, forms, by) for d, forms in tried.items() if within(rows, forms, limits)}
        least = min(fits.values(), default=math.inf)
        assert found[s] == next((d for d, value in fits.items() if value <= least + 1e-6), -1)


def number_of(forms: tuple[bool, ...]) -> int | None:
    """The smallest D of which a schedule is the beginning: D deltas after every base but the last; None: of none."""
    bases = [k for k, delta in enumerate(forms) if not delta]
    lengths = [after - base - 1 for base, after in pairwise([*bases, len(forms)])]
    whole, last = set(lengths[:-1]), lengths[-1]
    if len(whole) > 1 or (whole and last > min(whole)):
        return None
    return whole.pop() if whole else last


@given(st.lists(words, min_size=1, max_size=3), limits, measures)
def test_the_best_d_is_the_cheapest_of_all_schedules_of_one_d(
    forms: list[str], limits: DeltaLimits, by: BenefitMeasure
) -> None:
    """Of all 2^(n-1) ways to store a history's n checkpoints, as it is read from its records."""
    found = history(forms)
    prices = prices_by_form(found, np.arange(len(forms)))
    best = best_fixed(prices, limits, by)
    for s, word in enumerate(forms):
        rows = priced_plainly(word, found.size[found.first[s] : found.first[s + 1]].tolist())
        ways = [(False, *rest) for rest in itertools.product((False, True), repeat=len(word) - 1)]
        fits = {number_of(way): cost(rows, way, by) for way in ways if within(rows, way, limits)}
        fixed = sorted((number, value) for number, value in fits.items() if number is not None)
        least = min((value for _, value in fixed), default=math.inf)
        assert best[s] == next((number for number, value in fixed if value <= least + 1e-6), -1)


def priced_plainly(word: str, sizes: list[float]) -> Column:
    """A history's prices by their definition: the newest base; the delta itself, the average before, or the first."""
    rows: Column = []
    base, average = math.nan, None
    for form, size in zip(word, sizes, strict=True):
        base = size if form == "B" else base
        delta = size if form == "d" else sizes[word.index("d")] if average is None else average
        rows.append((base, delta, 10 * base, 10 * delta))
        if form == "d":
            average = size if average is None else (average + size) / 2
    return rows


def history(forms: list[str]) -> Histories:
    """Subtasks by words of B and d; sizes tell the row, durations are ten times them."""
    word = "".join(forms)
    first = np.cumsum([0, *(len(form) for form in forms)])
    size: Floats = np.arange(1.0, len(word) + 1)
    none = np.zeros(len(forms), np.int64)
    delta = np.array([c == "d" for c in word])
    names = tuple(Subtask("op", i) for i in range(len(forms)))
    return Histories(names, first, np.arange(len(word)), np.arange(len(word)), delta, size, 10 * size, none, none, none)


@given(st.lists(words, min_size=1, max_size=5))
def test_a_price_in_the_other_form_is_of_the_newest_base_or_the_average_of_the_deltas_before(forms: list[str]) -> None:
    found = history(forms)
    prices = prices_by_form(found, np.arange(len(forms)))
    assert prices.base_bytes is not None
    assert prices.delta_bytes is not None
    for s, word in enumerate(forms):
        base, average = math.nan, None
        sizes = found.size[found.first[s] : found.first[s + 1]].tolist()
        first = sizes[word.index("d")]
        for k, (form, size) in enumerate(zip(word, sizes, strict=True)):
            base = size if form == "B" else base
            assert prices.base_bytes[k, s] == base
            assert prices.delta_bytes[k, s] == (size if form == "d" else first if average is None else average)
            average = average if form == "B" else size if average is None else (average + size) / 2
        assert not prices.base_bytes[len(word) :, s].any()


@given(words, st.data(), limits, measures)
def test_a_best_d_that_breaks_a_bound_on_true_prices_is_never_given_without_a_word(
    word: str, data: st.DataObject, limits: DeltaLimits, by: BenefitMeasure
) -> None:
    """A history holds one price of each checkpoint; here the other is known, too, and may be anything."""
    true = data.draw(st.lists(st.tuples(sizes, sizes, sizes, sizes), min_size=len(word), max_size=len(word)))
    delta = np.array([c == "d" for c in word])
    size, ms = (
        np.array([row[at + (c == "d")] for row, c in zip(true, word, strict=True)], np.float64) for at in (0, 2)
    )
    none, rows = np.zeros(1, np.int64), np.arange(len(word))
    found = Histories((Subtask("op", 0),), np.array([0, len(word)]), rows, rows, delta, size, ms, none, none, none)
    answer, told = advise_delta(found, np.ones(1, np.bool_), DeltaQuestion(limits, by))
    best = answer.subtasks[0].outcome_of(BEST)
    if best is None or not best.number:
        return
    forms = tuple(k % (best.number + 1) != 0 for k in range(len(word)))
    if not within(true, forms, limits):
        assert "estimated-bound" in {finding.id for finding in told}
    if forms == tuple(delta.tolist()):
        assert not told


@pytest.mark.parametrize(("second", "severity"), [(14.0, "info"), (35.0, "warning")])
def test_a_best_d_that_recorded_sizes_would_break_is_warned_of(second: float, severity: str) -> None:
    """Bases of 40 and deltas of 10 and then `second`: D = 2 is within by averages, and two of 35 are more than 60."""
    word, size = "BddBBBBB", np.array([40.0, 10.0, second, 40, 40, 40, 40, 40])
    none, rows = np.zeros(1, np.int64), np.arange(len(word))
    delta = np.array([c == "d" for c in word])
    found = Histories((Subtask("op", 0),), np.array([0, len(word)]), rows, rows, delta, size, size, none, none, none)
    answer, told = advise_delta(found, np.ones(1, np.bool_), DeltaQuestion(DeltaLimits(max_delta=2), "size"))
    best = answer.subtasks[0].outcome_of(BEST)
    assert best is not None
    assert best.number == 2
    assert [(f.id, f.severity) for f in told if f.id == "estimated-bound"] == [("estimated-bound", severity)]


names = st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 1, 2**40]), st.integers(0, 5))


@given(st.lists(names, min_size=1, max_size=20))
def test_records_are_put_in_order_as_for_every_other_command(rows: list[tuple[str, int | None, int]]) -> None:
    """Or not at all, if a checkpoint has two records."""
    columns = ("operator", "subtask", "checkpoint")
    records = [dict(zip(columns, row, strict=True)) | {"bytes": i} for i, row in enumerate(rows)]
    table = pa.Table.from_pylist(records, schema=CHECKPOINTS)
    known = [Subtask("c", 0)]
    found = in_order(table, known)
    assert (found is None) == (len({(o, s or 0, n) for o, s, n in rows}) < len(rows))
    if found is not None:
        expected = records_of(table, known)
        assert found.subtasks == expected.subtasks
        assert found.owner.tolist() == expected.subtask.tolist()
        assert found.number.tolist() == expected.number.tolist()
        assert found.table["bytes"].to_pylist() == expected.table["bytes"].to_pylist()


@given(st.lists(words, min_size=1, max_size=8), st.integers(1, 30))
def test_blocks_hold_every_usable_subtask_once_and_are_of_bounded_size(forms: list[str], cells: int) -> None:
    found = history(forms)
    usable = np.array([len(word) % 3 > 0 for word in forms])
    assume(usable.any())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_history, "_CELLS", cells)
        cut = list(blocks(found, usable))
    assert sorted(i for which, _ in cut for i in which.tolist()) == np.flatnonzero(usable).tolist()
    for which, prices in cut:
        assert len(which) == 1 or prices.recorded.size <= cells
        assert prices.count.tolist() == [len(forms[i]) for i in which]
