"""`advise timing` against the paper's rules done moment by moment, in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given
from hypothesis import strategies as st

from cklog.advise.timing.answer import TimingQuestion, advise_timing
from cklog.advise.timing.choice import choose, dynamic, reported, turning_points
from cklog.advise.timing.state_sizes import Sizes, least_of_each, sizes_of, total
from cklog.model.names import Subtask
from cklog.model.schemas import STATE
from cklog.run import Options, open_run

Series = list[tuple[int, int]]
"""(ms, bytes) of a subtask in order of time."""

PERIOD = 8

one = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=30, unique_by=lambda s: s[0])
traces = st.lists(one.map(sorted), min_size=1, max_size=4).filter(lambda all_: span(all_) >= PERIOD)


def span(trace: list[Series]) -> int:
    times = [time for series in trace for time, _ in series]
    return max(times) - min(times)


def sizes(trace: list[Series]) -> Sizes:
    rows = [
        {"operator": f"op{i}", "subtask": 0, "time": time, "bytes": size}
        for i, series in enumerate(trace)
        for time, size in series
    ]
    return sizes_of(pa.Table.from_pylist(rows, schema=STATE))[0]


def size_at(series: Series, moment: int) -> Fraction:
    """By the two samples around it."""
    before = [s for s in series if s[0] <= moment]
    after = [s for s in series if s[0] > moment]
    if not before or not after:
        return Fraction((before[-1] if before else after[0])[1])
    (t, a), (u, b) = before[-1], after[0]
    return a + Fraction(b - a, u - t) * (moment - t)


def sum_at(trace: list[Series], moment: int) -> Fraction:
    return sum((size_at(series, moment) for series in trace), Fraction(0))


def rate_at(series: Series, moment: int) -> Fraction:
    """Just after it."""
    before = [s for s in series if s[0] <= moment]
    after = [s for s in series if s[0] > moment]
    if not before or not after:
        return Fraction(0)
    (t, a), (u, b) = before[-1], after[0]
    return Fraction(b - a, u - t)


def turns(series: Series) -> list[int]:
    """Times of samples behind which the size goes another way than before."""
    sign = [(b > a) - (b < a) for (_, a), (_, b) in pairwise(series)]
    return [series[i + 1][0] for i, (x, y) in enumerate(pairwise(sign)) if x != y]


def bounds_of(trace: list[Series]) -> list[int]:
    first = min(series[0][0] for series in trace)
    return [first + PERIOD * k for k in range(span(trace) // PERIOD + 1)]


@given(traces)
def test_turning_points_are_where_the_way_changes(trace: list[Series]) -> None:
    found = sizes(trace)
    at = turning_points(found)
    pairs = [(i, time) for i, series in enumerate(trace) for time in turns(series)]
    assert list(zip(found.owner[at].tolist(), found.time[at].tolist(), strict=True)) == pairs


@given(traces)
def test_a_subtask_is_dynamic_below_half_of_its_average(trace: list[Series]) -> None:
    expected = [2 * min(s for _, s in series) * len(series) < sum(s for _, s in series) for series in trace]
    assert dynamic(sizes(trace)).tolist() == expected


@given(traces)
def test_the_polyline_is_the_sum_at_every_moment(trace: list[Series]) -> None:
    bounds = bounds_of(trace)
    found = total(sizes(trace), np.array(bounds))
    moments = np.arange(bounds[0], bounds[-1] + 1)
    expected = [float(sum_at(trace, m)) for m in moments.tolist()]
    assert np.allclose(found.at(moments), expected, rtol=0, atol=2 / 1024)
    assert set(bounds) <= set(found.time.tolist())


@given(traces)
def test_reports_keep_the_size_at_every_turn(trace: list[Series]) -> None:
    """What the controller interpolates is a sample wherever the size turns, and at both ends."""
    known = reported(sizes(trace))
    for i, series in enumerate(trace):
        kept = {(t, s) for t, s in series if t in turns(series)} | {series[0], series[-1]}
        inside = slice(known.start[i], known.start[i + 1])
        assert set(zip(known.time[inside].tolist(), known.size[inside].tolist(), strict=True)) == kept


@given(traces)
def test_the_oracle_finds_the_least_sum_of_each_period(trace: list[Series]) -> None:
    bounds = bounds_of(trace)
    found = advise_timing(sizes(trace), TimingQuestion(PERIOD / 1000, len(bounds) - 1))
    for p in found.periods:
        candidates = {p.from_ms, p.to_ms, *(t for series in trace for t, _ in series if p.from_ms < t < p.to_ms)}
        best = min(sum_at(trace, m) for m in sorted(candidates))
        assert abs(p.oracle_bytes - best) <= Fraction(1, 2) + Fraction(1, 1024)
        assert abs(sum_at(trace, p.oracle_time) - best) <= Fraction(1, 512)
        assert p.oracle_bytes <= p.random_bytes
        assert p.bytes is None or p.oracle_bytes <= p.bytes


@given(traces)
def test_each_subtask_at_its_own_least_size(trace: list[Series]) -> None:
    """Every moment of every period is tried, for each subtask by itself."""
    bounds = bounds_of(trace)
    wanted = [
        sum(min(size_at(series, moment) for moment in range(low, high + 1)) for series in trace)
        for low, high in pairwise(bounds)
    ]
    found = least_of_each(sizes(trace), np.array(bounds))
    assert np.abs(found - np.array([float(size) for size in wanted])).max() < 1 / 500
    advice = advise_timing(sizes(trace), TimingQuestion(PERIOD / 1000, profile_periods=len(wanted)))
    taken = {way.name: way.bytes for way in advice.ways}
    assert taken["own"] <= taken["oracle"] + len(wanted)  # one common moment cannot do better


def controller(trace: list[Series], s_max: int, bounds: list[int]) -> list[tuple[int, int | None]]:
    """Section III-C3 millisecond by millisecond: (checkpoint, begin of alert mode) of each period."""
    found: list[tuple[int, int | None]] = []
    for start, end in pairwise(bounds):
        alert: int | None = None
        icr = [Fraction(0)] * len(trace)
        for now in range(start, end):
            turning = [i for i, series in enumerate(trace) if now in turns(series)]
            if alert is None:
                fell = any(halved(trace[i], now) for i in turning)
                if (now == start or fell) and sum_at(trace, now) <= s_max:
                    alert, icr = now, [rate_at(s, now) for s in trace]
            for i in turning if alert is not None else ():
                icr[i] = rate_at(trace[i], now)
            if (now == alert or turning) and alert is not None and sum(icr) > 0:
                found.append((now, alert))
                break
        else:
            found.append((end, alert))
    return found


def halved(series: Series, now: int) -> bool:
    before = [t for t in turns(series) if t < now] or [series[0][0]]
    return 2 * size_at(series, now) < size_at(series, before[-1])


@given(traces, st.integers(0, 60))
def test_moments_are_those_of_the_controller(trace: list[Series], s_max: int) -> None:
    bounds, found = bounds_of(trace), sizes(trace)
    beyond = [sum_at(trace, m) - s_max for m in range(bounds[0], bounds[-1])]
    assume(not any(0 < abs(b) <= Fraction(1, 512) for b in beyond))  # sums are kept to 1/1024 byte
    choices = choose(found, total(found, np.array(bounds)), s_max, np.array(bounds))
    assert [(c.time, c.alert) for c in choices] == controller(trace, s_max, bounds)


@given(traces, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_show(trace: list[Series], dice: object) -> None:
    rows = [
        {"operator": f"op{i}", "subtask": 0, "time": time, "bytes": size}
        for i, series in enumerate(trace)
        for time, size in series
    ]
    mixed = list(rows)
    dice.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = (sizes_of(pa.Table.from_pylist(r, schema=STATE))[0] for r in (rows, mixed))
    assert one.subtasks == other.subtasks
    for name in ("start", "time", "size"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_sparse_and_dense_times_are_merged_alike() -> None:
    """Minutes apart a trace is sorted, milliseconds apart it is put in a table: the same moments but for the scale."""
    dice = np.random.default_rng(5)
    time, size = np.sort(dice.choice(4000, 400, replace=False)), dice.integers(0, 1000, 400)
    found = []
    for scale in (1, 60_000):
        trace = Sizes(
            (Subtask("a", 0), Subtask("b", 0)),
            np.array([0, 250, 400]),
            np.r_[time[:250], time[150:300]] * scale,
            np.r_[size[:250], size[150:300]].astype(float),
        )
        advice = advise_timing(trace, TimingQuestion(0.5 * scale, 3))
        first = advice.from_ms
        found.append([((p.time or 0) - first) // scale for p in advice.periods])
    assert found[0] == found[1]


def test_files_of_any_kind_give_the_same_answer(tmp_path: Path) -> None:
    """JSON lines in two files, split anywhere, and Parquet in row groups."""
    dice = np.random.default_rng(3)
    rows = [
        {"operator": f"op{h}", "subtask": h % 2, "time": 100 * i, "bytes": int(dice.integers(0, 10**9))}
        for i in range(300)
        for h in range(4)
    ]
    table = pa.Table.from_pylist(rows, schema=STATE)
    lines = [str(row).replace("'", '"').replace(" ", "") + "\n" for row in rows]
    for name in ("lines", "parquet"):
        (tmp_path / name / "state").mkdir(parents=True)
    (tmp_path / "lines/state/b.jsonl").write_text("".join(lines[:500]))
    (tmp_path / "lines/state/a.jsonl").write_text("".join(lines[500:]))
    pq.write_table(table, tmp_path / "parquet/state/a.parquet", row_group_size=77)
    answers = []
    for name, split in (("lines", 64 << 20), ("lines", 777), ("parquet", 64 << 20), ("parquet", 1)):
        with open_run(str(tmp_path / name), Options(split_bytes=split)) as run:
            answers.append(run.advise_timing(TimingQuestion(5)).result)
    assert answers == answers[:1] * 4
