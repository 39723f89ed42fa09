"""The figures of the paper's evaluation, from the simulator (Sebepou and Magoutis, DSN 2011, section IV).

100,000 items at random, windows of 10 tuples. Two numbers are not in the paper. The rate of 54,545 tuples/s is
derived: a window takes 9 * 100,000 tuples from opening to closure, and that took 16.5 s without checks (Figure 8).
The cost of a check is assumed, 2.5 or 3.5 µs; it moves only the figures where the checks take all of their interval,
and the paper's 120,000 is the one that 2.5 µs gives.

Runs of 4 million tuples are long enough where a target holds the extent. Where nothing holds it, it swings by a
tenth, and seeds still differ by 5 % after 8 million: that average takes 40 million.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import mean

import pytest

from cklog.policies.check_records import Targets
from cklog.run import open_run
from cklog.simulate.cec.operator import Statistics, simulate
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write

pytestmark = pytest.mark.slow

HELD, FREE = 4_000_000, 40_000_000


def run(
    tuples: int = HELD,
    q_windows: float | None = None,
    u: float | None = None,
    cost_us: float = 2.5,
    ci: float = 5.0,
    cp: float = 100.0,
) -> Statistics:
    policy = Targets(u=u, q_windows=q_windows, period_ms=cp, interval_ms=ci, cost_us=cost_us)
    return figures(tuples, policy)


@cache
def figures(tuples: int, policy: Targets) -> Statistics:
    return simulate(Workload(tuples=tuples), policy)


def number(value: float | None) -> float:
    assert value is not None
    return value


@pytest.mark.parametrize("q_windows", [1, 2, 4])
def test_nine_windows_in_ten_are_open(q_windows: int) -> None:
    """A window of 10 tuples is closed for one gap between tuples of its key in ten."""
    assert number(run(q_windows=q_windows).open_windows) == pytest.approx(90_000, rel=0.005)


@pytest.mark.parametrize("cost_us", [2.5, 3.5])
@pytest.mark.parametrize(
    ("q_windows", "tuples", "low", "high"),
    [
        (1, HELD, 120_000, 132_000),  # not met: 120,000 in the paper
        (2, HELD, 179_100, 180_900),  # met
        (4, 2 * HELD, 358_200, 361_800),  # met
        (8, FREE, 500_000, 540_000),  # never reached: 500,000 in the paper
    ],
)
def test_figure_6_extent_by_its_target(q_windows: int, tuples: int, low: float, high: float, cost_us: float) -> None:
    assert low <= number(run(tuples, q_windows, cost_us=cost_us).extent) <= high


@pytest.mark.parametrize("cost_us", [2.5, 3.5])
def test_figure_6_checks_drop_sharply_past_twice_the_windows(cost_us: float) -> None:
    checks = [
        number(run(tuples, q, cost_us=cost_us).checks_per_second)
        for q, tuples in ((1, HELD), (2, HELD), (4, 2 * HELD), (8, FREE))
    ]
    assert checks[0] == pytest.approx(10 * (5_000 // cost_us))  # all that ten rounds a second have time for
    assert 5_000 < checks[1] < 6_000
    assert checks[2] < 50
    assert checks[3] == 0


def test_figure_6_replay_in_bytes() -> None:
    """More than 200 MB at a high Q. For a low one 20 MB, less than the paper's 25 MB."""
    assert 15e6 < 100 * number(run(q_windows=1).replay) < 50e6
    assert 100 * number(run(FREE, q_windows=8).replay) > 200e6


@pytest.mark.parametrize(
    ("u", "cost_us", "extent", "replay"),
    [
        (125_000, 2.5, 120_000, 205_000),  # not met: 200,000 tuples in the paper
        (250_000, 2.5, 127_000, 250_000),
        (500_000, 2.5, 165_000, 500_000),
        (1_000_000, 2.5, 233_000, 1_000_000),  # 230,000 records, 900,000 tuples
        (125_000, 3.5, 131_000, 277_000),
        (250_000, 3.5, 131_000, 277_000),
        (500_000, 3.5, 165_000, 500_000),
        (1_000_000, 3.5, 233_000, 1_000_000),
    ],
)
def test_figure_7_extent_by_the_target_of_the_replay(u: float, cost_us: float, extent: float, replay: float) -> None:
    found = run(2 * HELD, u=u, cost_us=cost_us)
    assert number(found.extent) == pytest.approx(extent, rel=0.02)
    assert number(found.replay) == pytest.approx(replay, rel=0.02)


@pytest.mark.parametrize(
    ("cp", "response_s"),
    [
        (25, 27.5),  # 32.5 s in the paper
        (50, 20.6),  # 21.5 s
        (100, 18.3),  # 18.5 s
    ],
)
def test_figure_8_checks_delay_the_closure_of_windows(cp: float, response_s: float) -> None:
    """What the interval takes of the period: 16.5 s * CP / (CP - CI). The paper's own intervals must have overrun."""
    assert number(run(2 * HELD, 1, ci=10, cp=cp).response_s) == pytest.approx(response_s, rel=0.01)


def test_figure_8_without_checks_the_rate_alone_decides() -> None:
    assert number(run(FREE, 8).response_s) == pytest.approx(16.5, rel=0.005)


def test_figure_9_the_extent_grows_with_the_period() -> None:
    extents = [number(run(q_windows=1, ci=10, cp=cp).extent) for cp in (25, 50, 100, 250)]
    assert extents == sorted(extents)
    assert extents[-1] > 1.3 * extents[0]


@pytest.mark.parametrize(
    ("policy", "low", "high"),
    [
        (Targets(q_windows=1), 120_000, 131_000),
        (Targets(q_windows=1, cost_us=3.4), 120_000, 131_000),
        (Targets(q_windows=2), 179_100, 180_900),
        (Targets(q_windows=4), 358_200, 361_800),
        (Targets(u=1_000_000), 228_300, 237_700),
    ],
    ids=["Q=1x", "Q=1x, 3.4 us", "Q=2x", "Q=4x", "U=1M"],
)
def test_what_extent_reads_from_the_log(policy: Targets, low: int, high: int, tmp_path: Path) -> None:
    """Figures 6 and 7 through the log: the extent as of 25 moments of the run, as if it had crashed there."""
    workload = Workload(tuples=6_000_000)
    written = write(tmp_path, workload, policy, encoding="parquet")
    moments = [workload.start_ms + round(1000 * written.seconds * (0.4 + 0.6 * i / 25)) for i in range(1, 26)]
    with open_run(str(tmp_path)) as found:
        extents = [found.extent("agg1", as_of=moment).result for moment in moments]
    assert {extent.proof for extent in extents} == {"proven"}
    assert low <= mean(extent.records for extent in extents) <= high
    assert mean(extent.open_windows for extent in extents) == pytest.approx(90_000, rel=0.005)
