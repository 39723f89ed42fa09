"""`advise timing`: the Meteor Shower paper's figures, the threshold, refusals, damage, what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cklog.advise.timing import answer as advise_timing_module
from cklog.advise.timing.answer import PeriodTiming, TimingAdvice, TimingQuestion, Way, advise_timing
from cklog.advise.timing.choice import Threshold, choose, dynamic, threshold, turning_points
from cklog.advise.timing.state_sizes import Sizes, sizes_of, total
from cklog.engine.scan import Engine
from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.model.names import Subtask
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.run import Options, Run, open_run
from tests.program import cklog

SAMPLE = "sample_logs/meteor-shower"
MB = 1_000_000
T0 = 15_000
"""t0 of Figure 11 in the sample, ms after its first record; a unit of time is a second."""


def sizes(*series: list[float], step: int = 1) -> Sizes:
    """One subtask a series, sampled every `step` ms from 0 on."""
    start = np.r_[0, np.cumsum([len(s) for s in series])]
    time = np.concatenate([step * np.arange(len(s)) for s in series])
    names = tuple(Subtask(f"HAU{i + 1}", 0) for i in range(len(series)))
    return Sizes(names, start, time, np.concatenate([np.array(s, np.float64) for s in series]))


def ask(folder: str | Path, asked: TimingQuestion, **options: Any) -> tuple[TimingAdvice, Answer[Any]]:
    with open_run(str(folder), Options(**options)) as run:
        answer = run.advise_timing(asked)
    return answer.result, answer


@pytest.fixture(scope="module")
def figures() -> TimingAdvice:
    """The sample: Figures 10 and 11 as one trace, in periods of 5 units."""
    return ask(SAMPLE, TimingQuestion(period_s=5))[0]


def t(found: TimingAdvice, time: int | None) -> float:
    """A time as the index of Figure 11's t0, t1, …"""
    assert time is not None
    return (time - found.from_ms - T0) / 1000


def test_figure_10_turning_points() -> None:
    """Meteor Shower, Figure 10: sizes 100 150 200 250 200 150 100 150 at t0…t7: 250 at t3 and 100 at t6."""
    trace = sizes([100, 150, 200, 250, 200, 150, 100, 150])
    found = turning_points(trace)
    assert [(trace.size[i], trace.time[i]) for i in found] == [(250, 3), (100, 6)]


def test_the_sample_begins_with_figure_10() -> None:
    with open(f"{SAMPLE}/state/samples.jsonl") as lines:
        rows = [json.loads(line) for line in lines]
    hau1 = [row["bytes"] / MB for row in rows if row["operator"] == "HAU1"]
    assert hau1[:8] == [100, 150, 200, 250, 200, 150, 100, 150]


def test_both_ends_of_a_level_stretch_turn() -> None:
    trace = sizes([1, 5, 5, 5, 2, 2, 9, 9])
    assert turning_points(trace).tolist() == [1, 3, 4, 5, 6]


def test_dynamic_means_a_minimum_below_half_of_the_average() -> None:
    """Section III-C2: less than half; at the half itself it is not dynamic."""
    assert dynamic(sizes([49, 150, 101], [50, 150, 100], [80, 80, 80])).tolist() == [True, False, False]


def test_the_relaxation_factor_is_at_least_a_fifth() -> None:
    """Section III-C2: s_min 100, s_max 110 → s_max 120; a larger factor stays."""
    assert threshold([110, 100, 105]) == Threshold(100, 110, 0.1, 0.2, 120)
    assert threshold([100, 130]) == Threshold(100, 130, 0.3, 0.3, 130)
    assert threshold([0, 130]) == Threshold(0, 130, None, None, 130)
    assert threshold([0, 0]) == Threshold(0, 0, 0, 0.2, 0)


def test_figure_11_alert_mode(figures: TimingAdvice) -> None:
    """Figure 11: alert mode is entered at t2, t6 and t10."""
    assert [t(figures, p.alert) for p in figures.periods] == [2, 6, 10]
    assert [p.fell for p in figures.periods] == ["HAU2/0", "HAU2/0", None]


def test_figure_11_waits_at_t2(figures: TimingAdvice) -> None:
    """At t2 HAU1 has 140 (ICR -50) and HAU2 100 (ICR 30): the sum is -20, and the controller waits."""
    first = figures.periods[0].reports[0]
    assert (t(figures, first.time), first.bytes / MB, first.icr / MB) == (2, 140 + 100, -50 + 30)
    with open(f"{SAMPLE}/state/samples.jsonl") as lines:
        rows = [json.loads(line) for line in lines]
    by = {(r["operator"], (r["time"] - rows[0]["time"] - T0) // 1000): r["bytes"] // MB for r in rows}
    assert [by["HAU1", 2], by["HAU1", 3] - by["HAU1", 2]] == [140, -50]
    assert [by["HAU2", 2], by["HAU2", 3] - by["HAU2", 2]] == [100, 30]
    assert [by["HAU1", 4], by["HAU1", 5] - by["HAU1", 4]] == [40, 60]


def test_figure_11_checkpoints(figures: TimingAdvice) -> None:
    """At t4 HAU1 has 40 (ICR 60): sum 90, checkpoint; at t6 sum 32.5, checkpoint; the third at t12."""
    assert [t(figures, p.time) for p in figures.periods] == [4, 6, 12]
    assert [p.reports[-1].icr / MB for p in figures.periods[:2]] == [90, 32.5]
    assert figures.periods[0].reports[-1].by == ("HAU1/0",)
    assert [len(p.reports) for p in figures.periods] == [2, 1, 2]
    assert not any(p.forced for p in figures.periods)


def test_figure_11_the_better_point_p8_is_the_oracles(figures: TimingAdvice) -> None:
    """p8 is missed by design; the oracle's choice is it, and in the other periods what was chosen."""
    assert [t(figures, p.oracle_time) for p in figures.periods] == [4, 8, 12]
    assert [p.bytes == p.oracle_bytes for p in figures.periods] == [True, False, True]


def test_the_samples_threshold(figures: TimingAdvice) -> None:
    assert (figures.s_min, figures.highest, figures.s_max) == (220 * MB, 255 * MB, 264 * MB)
    assert [s.dynamic for s in figures.subtasks] == [True, True, False]


def test_the_default_period_is_the_papers() -> None:
    """Baseline: independent periodic checkpoints, period 200 s."""
    assert TimingQuestion().period_s == 200


def test_a_period_without_a_moment_ends_in_a_checkpoint() -> None:
    """Section III-C3: if the total is never below s_max, a checkpoint is taken at the end all the same."""
    trace = sizes([100, 20, 100, 90, 95, 80, 90], step=1000)
    [choice] = choose(trace, total(trace, np.array([3000, 6000])), 50, np.array([3000, 6000]))
    assert (choice.time, choice.alert, choice.forced) == (6000, None, True)


def test_a_fall_that_lasts_to_the_end_of_the_period_is_waited_for() -> None:
    trace = sizes([100, 80, 60, 40, 20, 30], step=1000)
    [choice] = choose(trace, total(trace, np.array([0, 3000])), 500, np.array([0, 3000]))
    assert (choice.time, choice.alert, choice.forced) == (3000, 0, True)


def test_a_level_minimum_is_left_when_it_ends() -> None:
    """A sum of rates of 0 is no increase: the checkpoint is as small, and as late as it can be."""
    trace = sizes([100, 20, 20, 20, 90, 100], step=1000)
    [choice] = choose(trace, total(trace, np.array([0, 5000])), 50, np.array([0, 5000]))
    assert (choice.alert, choice.time, [r.icr for r in choice.reports]) == (1000, 3000, [0, 70])


def test_reports_of_one_moment_are_summed_up_before_the_choice() -> None:
    """HAU1 turns up by 10 when HAU2 turns down by 30: in neither order is that an increase."""
    trace = sizes([20, 10, 20, 30, 40], [10, 41, 11, 9, 50], step=1000)
    [choice] = choose(trace, total(trace, np.array([0, 4000])), 1000, np.array([0, 4000]))
    assert choice.time == 0  # at once: 21 in all
    trace = sizes([40, 10, 20, 30, 40], [10, 31, 11, 9, 50], step=1000)
    [choice] = choose(trace, total(trace, np.array([0, 4000])), 1000, np.array([0, 4000]))
    assert [r.icr for r in choice.reports] == [-9, -10, 51]
    assert choice.reports[1].by == ("HAU1/0", "HAU2/0")
    assert choice.time == 3000


def test_without_dynamic_haus_there_is_nothing_to_be_aware_of() -> None:
    found = advise_timing(sizes([100.0, 90, 110] * 5, step=1000), TimingQuestion(period_s=3))
    assert found.s_max is None
    assert [way.name for way in found.ways] == ["oracle", "random", "periodic", "own"]
    assert "hardly matters" in found.notes[0]


def test_no_way_beats_the_oracle(figures: TimingAdvice) -> None:
    for p in figures.periods:
        assert p.bytes is not None
        assert p.oracle_bytes <= min(p.bytes, p.random_bytes)


def test_another_seed_moves_only_what_is_left_to_chance(figures: TimingAdvice) -> None:
    other = ask(SAMPLE, TimingQuestion(period_s=5, seed=1))[0]

    def fixed(found: TimingAdvice) -> list[tuple[Any, ...]]:
        return [(p.time, p.bytes, p.oracle_time, p.oracle_bytes, p.reports) for p in found.periods]

    def chance(p: PeriodTiming) -> tuple[int, int]:
        return p.random_time, p.periodic_bytes

    assert fixed(other) == fixed(figures)
    assert list(map(chance, other.periods)) != list(map(chance, figures.periods))


def test_profiling_every_period_chooses_in_them_too() -> None:
    found = ask(SAMPLE, TimingQuestion(period_s=5, profile_periods=6))[0]
    assert found.in_sample
    assert len(found.periods) == 6
    assert any("profiled are those" in note for note in found.notes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (TimingQuestion(), "less than a period of 200 s"),
        (TimingQuestion(period_s=0), "--period 0"),
        (TimingQuestion(period_s=float("nan")), "--period nan"),
        (TimingQuestion(period_s=float("inf")), "--period inf"),
        (TimingQuestion(period_s=5, profile_periods=0), "1 to 6"),
        (TimingQuestion(period_s=5, profile_periods=7), "1 to 6"),
    ],
)
def test_questions_without_sense_are_refused(asked: TimingQuestion, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ask(SAMPLE, asked)


def test_a_trace_of_more_periods_than_can_be_looked_at_is_refused() -> None:
    with pytest.raises(UsageError, match="periods of 200 s"):
        advise_timing(Sizes((Subtask("a", 0),), np.array([0, 2]), np.array([0, 10**14]), np.ones(2)), TimingQuestion())


@pytest.mark.parametrize(
    "folder",
    ["sample_logs/domino-cycle", "sample_logs/spark-wordcount", "sample_logs/flink-orders", "sample_logs/kafka-broker"],
)
def test_a_run_without_samples_is_refused(folder: str) -> None:
    with pytest.raises(NotFound, match="state-size samples"):
        ask(folder, TimingQuestion())


def test_times_that_are_no_clocks_are_refused() -> None:
    rows = [{"operator": "a", "time": time, "bytes": 1} for time in (-(2**62), 2**62)]
    with pytest.raises(CorruptInput, match="no milliseconds"):
        sizes_of(pa.Table.from_pylist(rows, schema=_SCHEMA))


_SCHEMA = pa.schema([("operator", pa.string()), ("subtask", pa.int64()), ("time", pa.int64()), ("bytes", pa.int64())])


def test_of_samples_of_one_moment_the_largest_counts() -> None:
    rows = [{"operator": "a", "time": 5, "bytes": size} for size in (3, 9, 9, 4)]
    found, [finding] = sizes_of(pa.Table.from_pylist(rows, schema=_SCHEMA))
    assert (found.time.tolist(), found.size.tolist()) == ([5], [9])
    assert (finding.id, finding.severity, finding.subject) == ("conflicting-samples", "warning", "a/0")


def test_large_subtask_numbers_take_no_memory() -> None:
    rows = [{"operator": "a", "subtask": n, "time": 0, "bytes": 1} for n in (2**62, 7)]
    assert sizes_of(pa.Table.from_pylist(rows, schema=_SCHEMA))[0].subtasks == (("a", 7), ("a", 2**62))


def write(folder: Path, lines: list[str]) -> Path:
    (folder / "state").mkdir()
    (folder / "state" / "a.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def test_damaged_samples_are_told_and_left_out(tmp_path: Path) -> None:
    lines = [f'{{"operator":"a","time":{1000 * i},"bytes":{10 + i % 7 * 50}}}' for i in range(21)]
    lines[3] = lines[3].replace("bytes", "b")
    lines[5] = lines[5].replace("60", "-1").replace('"bytes":', '"bytes":-')
    folder = write(tmp_path, lines)
    ended = cklog("advise", "timing", folder, "--period", "7", "--json")
    told = json.loads(ended.out)
    assert ended.code == 3
    assert [f["id"] for f in told["findings"]] == ["bad-record"]
    assert told["inputs"][0]["records"] == told["result"]["samples"] == 19
    assert cklog("advise", "timing", folder, "--period", "7", "--strict").code == 65


def test_a_trace_of_which_nothing_can_be_read_is_corrupt(tmp_path: Path) -> None:
    ended = cklog("advise", "timing", write(tmp_path, ["nonsense"]))
    assert (ended.code, "Traceback" in ended.err) == (65, False)


def test_the_engines_and_the_size_of_splits_do_not_show() -> None:
    ways = [cklog("advise", "timing", SAMPLE, "--period", "5", "--json", "--split-size", n).out for n in ("1", "900")]
    assert ways[0] == ways[1] == cklog("advise", "timing", SAMPLE, "--period", "5", "--json").out


@pytest.mark.spark
def test_spark_gives_the_same_bytes(spark: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Damaged lines among them, and splits of a few records."""
    lines = [f'{{"operator":"a","time":{1000 * i},"bytes":{10 + i % 7 * 50}}}' for i in range(21)]
    folder = write(tmp_path, [*lines[:9], "nonsense", *lines[9:]])
    command = ("advise", "timing", folder, "--period", "7", "--json", "--split-size", "200")
    local = cklog(*command)
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    assert (cklog(*command).out, local.code) == (local.out, 3)


def test_more_sizes_than_can_be_asked_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advise_timing_module, "_MOST_SIZES", 5)
    with pytest.raises(UsageError, match="2 periods of 3 subtasks are too many"):
        advise_timing(sizes([1.0, 2, 3], [1, 2, 3], [1, 2, 3], step=1000), TimingQuestion(period_s=1))


def test_what_people_read() -> None:
    text = render(ask(SAMPLE, TimingQuestion(period_s=5))[1], "table")
    assert "at most 264.0 MB (s_max)" in text
    assert "relaxation factor 15.9%, raised to 20%" in text
    assert "at 23 s, by 95.0 MB: the first minimum in alert mode is taken" in text
    assert "- - s_max 264" in text


def test_rows_are_the_periods() -> None:
    rows = [
        json.loads(r)
        for r in cklog("advise", "timing", SAMPLE, "--period", "5", "--format", "jsonl").out.split("\n")[:-1]
    ]
    assert [row["bytes"] for row in rows] == [220 * MB, 260 * MB, 160 * MB]


def test_ways_are_sums_of_the_periods(figures: TimingAdvice) -> None:
    aware = figures.ways[0]
    assert aware == Way("aware", 640 * MB, 640 * MB / 3, 260 * MB, aware.of_periodic, 640 / 545)


def test_each_subtask_at_the_end_of_its_own_windows_when_ends_never_meet() -> None:
    """One drops its state at 5, 15, 25, …, the other at 0, 10, 20, …: never both at once, each once in a period."""
    late = [float((at + 5) % 10 * MB) for at in range(41)]
    early = [float(at % 10 * MB) for at in range(41)]
    found = advise_timing(sizes(late, early), TimingQuestion(0.01, profile_periods=2))
    ways = {way.name: way.bytes for way in found.ways}
    assert ways["own"] == 0
    assert ways["oracle"] == 2 * 5 * MB
