"""The figures of the paper's evaluation, from the simulator (Sebepou and Magoutis, DSN 2011, sections IV.B and IV.C).

Each test names the paper's number, how far the simulation may be from it, and why that far; and that the number would
be missed without the effect that the figure is about. How far:

* extents are printed to 10,000 records, so half of that either way (`ROUNDED`)
* where nothing holds the extent it swings by a tenth within a run, and the paper measured it once: a tenth (`SWING`)
* replay: Q = 1x and U = 125,000 are one and the same run, as no target is met in either, and the paper has 25 MB for
  one and 20 MB for the other: a quarter (`TWICE_MEASURED`)
* response times: they are printed to half a second, and the three of Figure 8 share one constant: 2 % (`HALF_SECOND`)

The input rate is derived from the 16.5 s without checks, so those 16.5 s are no result and have no test. The cost of a
check is what the extent at Q = 1x implies: that number has none either, but for what it is fitted with.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean

import pytest

from cklog.policies.check_records import CHECK_COST_US, Targets
from cklog.policies.load_time import fitted
from cklog.run import open_run
from cklog.simulate.cec.figures import EXPERIMENTS, open_costs, paper_figures, round_factor
from cklog.simulate.cec.operator import Statistics, simulate
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write
from tests.conftest import REPOSITORY
from tests.program import cklog

pytestmark = pytest.mark.slow

ROUNDED, SWING, TWICE_MEASURED, HALF_SECOND = 5_000, 0.1, 0.25, 0.02
TUPLES = 8_000_000


def run(
    q_windows: float | None = None, u: float | None = None, ci: float = 5, cp: float = 100, cost: float = CHECK_COST_US
) -> Statistics:
    """A run as the paper ran it: rounds take longer than CI by the factor of Figure 8."""
    factor = round_factor()
    pace = {"period_ms": cp, "interval_ms": ci * factor, "cost_us": cost * factor}
    return figures(Targets(u=u, q_windows=q_windows, **pace))


@cache
def figures(policy: Targets) -> Statistics:
    return simulate(Workload(tuples=TUPLES), policy)


def number(value: float | None) -> float:
    assert value is not None
    return value


def megabytes(found: Statistics) -> float:
    return number(found.replay) * 100 / 1e6


def test_around_90_000_windows_are_open() -> None:
    """The measured average is rounded to 10,000; a window of 10 is closed for one gap between tuples in ten."""
    assert abs(number(run(q_windows=2).open_windows) - 90_000) <= ROUNDED


@pytest.mark.parametrize("paper", [180_000, 360_000])
def test_figure_6_the_targets_2x_and_4x_are_met(paper: int) -> None:
    """Without checks both extents would be 500,000."""
    assert abs(number(run(q_windows=paper / 90_000).extent) - paper) <= ROUNDED
    assert abs(number(run().extent) - paper) > 10 * ROUNDED


def test_figure_6_the_target_8x_is_never_reached_and_nothing_is_checked() -> None:
    """500,000 is the most that this operator reaches; the target is 720,000."""
    found = run(q_windows=8)
    assert number(found.extent) == pytest.approx(500_000, rel=SWING)
    assert number(found.extent) < 720_000 * (1 - SWING)
    assert found.checks == 0


def test_figure_6_the_target_1x_is_not_met_at_any_cost_of_a_check() -> None:
    """What is not fitted about Q = 1x: the extent lies above its target and below that of Q = 4x, at every cost that
    Figure 8 leaves open; 120,000 is in between, and which cost gives it the paper does not tell."""
    costs = open_costs(Workload(), round_factor())
    low, high = (number(run(q_windows=1, cost=cost).extent) for cost in costs)
    assert 90_000 < low < 120_000 < high < 360_000
    assert high > 2 * low  # the range is wide: 120,000 is no prediction


def test_figure_6_the_number_of_checks_drops_sharply_past_2x() -> None:
    """From 1x to 2x it falls by less than ten times, from 2x to 4x by more than fifty times."""
    checks = [number(run(q_windows=q).checks_per_second) for q in (1, 2, 4)]
    assert checks[0] < 10 * checks[1]
    assert checks[1] > 50 * checks[2]


def test_figure_6_replay() -> None:
    """50 MB at 2x, more than 200 MB at high Q: within a quarter. Without the target 2x would have over 200 MB, too."""
    assert megabytes(run(q_windows=2)) == pytest.approx(50, rel=TWICE_MEASURED)
    assert megabytes(run(q_windows=4)) > 200 * (1 - TWICE_MEASURED)
    assert megabytes(run(q_windows=8)) > 200
    assert megabytes(run()) > 50 * (1 + TWICE_MEASURED)


def test_figure_7_a_target_of_a_million_tuples() -> None:
    """230,000 records, 90 MB. Without it the extent is over 400,000, with U = 125,000 below 180,000."""
    found = run(u=1_000_000)
    assert abs(number(found.extent) - 230_000) <= ROUNDED
    assert megabytes(found) == pytest.approx(90, rel=TWICE_MEASURED)
    assert abs(number(run().extent) - 230_000) > 10 * ROUNDED
    assert abs(number(run(u=125_000).extent) - 230_000) > 10 * ROUNDED


def test_figure_7_the_target_125_000_is_not_met_and_gives_the_run_of_q_1x() -> None:
    """In the paper: 200,000 tuples, and 120,000 records as at Q = 1x. At the cost that Q = 1x implies both come out."""
    found = run(u=125_000)
    assert number(found.extent) == pytest.approx(number(run(q_windows=1).extent), rel=0.001)
    assert number(found.replay) == pytest.approx(200_000, rel=TWICE_MEASURED)
    assert number(found.replay) > 125_000 * (1 + TWICE_MEASURED)


def test_figure_7_longer_extents_with_larger_targets() -> None:
    extents = [number(run(u=u).extent) for u in (125_000, 250_000, 500_000, 1_000_000)]
    assert extents == sorted(extents)
    assert extents[-1] > 1.5 * extents[0]


@pytest.mark.parametrize(("cp", "paper"), [(100, 18.5), (50, 21.5), (25, 32.5)])
def test_figure_8_one_length_of_a_round_gives_all_three_response_times(cp: float, paper: float) -> None:
    """Calibrated: one constant for three numbers. Rounds of CI = 10 ms sharp would give 27.5 s at CP = 25."""
    assert number(run(1, ci=10, cp=cp).response_s) == pytest.approx(paper, rel=HALF_SECOND)
    sharp = Targets(q_windows=1, period_ms=25, interval_ms=10)
    assert number(figures(sharp).response_s) < 32.5 * (1 - 5 * HALF_SECOND)


def test_figure_8_a_period_of_250_ms_approximates_no_checks() -> None:
    """Predicted by the same constant. "Approximates": at least twice as close to 16.5 s as with CP = 100."""
    slower = {cp: number(run(1, ci=10, cp=cp).response_s) - 16.5 for cp in (100, 250)}
    assert 0 < slower[250] < slower[100] / 2


def test_figure_9_the_load_time_grows_with_the_period() -> None:
    """2 s at CP = 25, where the extent is close to the windows open whatever a check costs: within a quarter."""
    extents = [number(run(1, ci=10, cp=cp).extent) for cp in (25, 50, 100, 250)]
    assert extents == sorted(extents)
    assert fitted().seconds(extents[0]) == pytest.approx(2, rel=TWICE_MEASURED)
    assert extents[-1] > 90_000 + 5 * (extents[0] - 90_000)


@pytest.mark.xfail(
    strict=True, reason="5 s is what 180,000 records take; Figure 6 has 120,000 and 3.5 s, checking more"
)
def test_figure_9_the_load_time_at_250_ms() -> None:
    """Rounds of 10 in 250 ms are 4 % of the time, those of Figure 6 5 %: hardly longer an extent by the simulation."""
    assert fitted().seconds(number(run(1, ci=10, cp=250).extent)) == pytest.approx(5, rel=TWICE_MEASURED)


@pytest.mark.parametrize(
    ("policy", "paper"),
    [(Targets(q_windows=2), 180_000), (Targets(q_windows=4), 360_000), (Targets(u=1_000_000), 230_000)],
    ids=["Q=2x", "Q=4x", "U=1M"],
)
def test_what_extent_reads_from_the_log(policy: Targets, paper: int, tmp_path: Path) -> None:
    """Figures 6 and 7 through the log: the extent as of 25 moments of the run, as if it had crashed there."""
    workload = Workload(tuples=6_000_000)
    written = write(tmp_path, workload, policy, encoding="parquet")
    moments = [workload.start_ms + round(1000 * written.seconds * (0.4 + 0.6 * i / 25)) for i in range(1, 26)]
    with open_run(str(tmp_path)) as found:
        extents = [found.extent("agg1", as_of=moment).result for moment in moments]
    assert {extent.proof for extent in extents} == {"proven"}
    assert abs(mean(extent.records for extent in extents) - paper) <= ROUNDED
    assert abs(mean(extent.open_windows for extent in extents) - 90_000) <= ROUNDED


def test_the_whole_evaluation_is_told_row_by_row() -> None:
    """As `cklog simulate cec --paper` prints it, from runs of this length."""
    found = paper_figures(replace(Workload(), tuples=3_000_000))
    assert len(found.rows) == sum(len(experiment.said) for experiment in EXPERIMENTS)
    off = [abs(row.deviation or 0) for row in found.rows]
    assert off == sorted(off, reverse=True)
    assert (found.rows[0].figure, found.rows[0].setting, found.rows[0].quantity) == ("9", "CP=250", "load")


def test_the_page_shows_the_evaluation_as_it_comes_out() -> None:
    page = (REPOSITORY / "docs" / "fidelity-cec.md").read_text(encoding="utf-8")
    assert cklog("simulate", "cec", "--paper").out in page
