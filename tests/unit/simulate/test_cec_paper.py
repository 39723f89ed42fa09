"""`simulate cec --paper`: which numbers were fitted, and that each row says so; without running the experiments."""

from __future__ import annotations

import pytest

from cklog.errors import UsageError
from cklog.policies.check_records import CHECK_COST_US, CheckPolicy
from cklog.policies.load_time import fitted
from cklog.render.formats import render
from cklog.simulate.cec import figures
from cklog.simulate.cec.figures import EXPERIMENTS, open_costs, paper_figures, round_factor
from cklog.simulate.cec.operator import Statistics
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import paper_answer
from tests.program import cklog

LONG = Workload(tuples=8_000_000)


@pytest.fixture
def costs_asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a check costs in each run, in order; runs give an extent of 120,000, and 1,000 more for each µs."""
    asked: list[float] = []

    def pretended(workload: Workload, policy: CheckPolicy) -> Statistics:
        asked.append(policy.cost_us / round_factor())
        extent = 120_000 + 1_000 * asked[-1]
        return Statistics(workload.tuples, 1.0, 1, 1, 1, 1, 1, 90_000.0, extent, 1, 2e6, 10.0, 20.0)

    monkeypatch.setattr(figures, "simulate", pretended)
    return asked


def test_one_factor_for_the_three_response_times_of_figure_8() -> None:
    """Written out: the factor with the least squares is near 1.22, and each response alone asks for another."""
    factor = round_factor()

    def missed(c: float) -> float:
        found = [16.5 * cp / (cp - 10 * c) / s - 1 for cp, s in ((100, 18.5), (50, 21.5), (25, 32.5))]
        return sum(by * by for by in found)

    assert missed(factor) <= min(missed(factor - 0.001), missed(factor + 0.001))
    assert missed(factor) < missed(1.0) / 40  # rounds of their interval sharp miss 32.5 s by 15 %


def test_what_figure_8_leaves_open_of_the_cost_of_a_check() -> None:
    low, high = open_costs(LONG, 1.2)
    assert low * 90_000 == pytest.approx(10_000)  # a round of 10 ms that would check every open window
    assert high * 1.2 == pytest.approx(1e6 / 54_545)  # a tuple, at most
    assert low < CHECK_COST_US < high


def test_rows_that_the_cost_moves_have_their_bounds_and_no_other_has(costs_asked: list[float]) -> None:
    found = paper_figures(LONG)
    low, high = found.costs_us
    by_cost = [row for row in found.rows if row.low is not None]
    assert {(row.figure, row.setting) for row in by_cost} == {(e.figure, e.setting) for e in EXPERIMENTS if e.by_cost}
    assert sorted(set(costs_asked)) == pytest.approx([low, CHECK_COST_US, high])
    [row] = [row for row in found.rows if (row.setting, row.quantity) == ("Q=1x", "extent")]
    assert (row.low, row.high) == pytest.approx((120_000 + 1_000 * low, 120_000 + 1_000 * high))
    assert row.deviation == pytest.approx(2_500 / 120_000)
    assert {row.how for row in found.rows if row.how == "by cost"} <= {row.how for row in by_cost}


def test_only_what_something_was_fitted_to_is_called_calibrated(costs_asked: list[float]) -> None:
    """The three response times, the six load times and the extent at Q = 1x; a row of Figure 9 is none of them."""
    found = {(row.figure, row.setting, row.quantity) for row in paper_figures(LONG).rows if row.how == "calibrated"}
    load = {("6", f"Q={q}x", "load") for q in (1, 2, 4, 8)} | {("7", f"U={u}", "load") for u in (125_000, 1_000_000)}
    assert found == load | {("8", f"CP={cp}", "response") for cp in (25, 50, 100)} | {("6", "Q=1x", "extent")}
    derived = [(row.figure, row.setting) for row in paper_figures(LONG).rows if row.how == "derived"]
    assert derived == [("8", "no checks")]


def test_a_bound_that_is_kept_is_no_deviation(costs_asked: list[float]) -> None:
    """ "More than 200 MB", and 2 million tuples are 200 MB."""
    rows = [row for row in paper_figures(LONG).rows if row.words == "more than 200 MB"]
    assert [row.deviation for row in rows] == [0.0, 0.0]


def test_the_load_times_are_told_with_what_the_curve_misses_them_by(costs_asked: list[float]) -> None:
    loads = paper_figures(LONG).loads
    assert [row.setting for row in loads][:2] == ["Q=1x", "U=125000"]  # one size, two times: most is missed there
    for row in loads:
        assert row.deviation == pytest.approx(fitted().seconds(row.records) / row.paper - 1)
        assert row.advised >= row.paper


def test_what_the_cost_of_a_check_moves_is_not_counted_as_predicted(costs_asked: list[float]) -> None:
    """Counted from the paper's numbers: those of runs that the cost moves are none, and neither are fitted ones."""
    numbers = [(e, said) for e in EXPERIMENTS for said in e.said if said.paper is not None]
    assert len(numbers) == 26
    assert sum(said.how == "predicted" and not e.by_cost for e, said in numbers) == 9
    assert sum(said.how == "by cost" and e.by_cost for e, said in numbers) == 5
    assert not [said for e, said in numbers if e.by_cost and said.how == "predicted"]


def test_the_view_has_every_row(costs_asked: list[float]) -> None:
    answer = paper_answer(LONG)
    shown = render(answer, "table")
    assert "Of 26 numbers of the paper's Figures 6 to 9, 9 are predicted: nothing was fitted to them" in shown
    assert "5 more depend on the cost of a check" in shown
    for row in answer.result.rows:
        assert any(row.setting in line and row.quantity in line and row.how in line for line in shown.splitlines())


def test_runs_too_short_for_the_figures_are_refused() -> None:
    with pytest.raises(UsageError, match="at least"):
        paper_figures(Workload(tuples=1_000_000))


@pytest.mark.parametrize("beside", [("--q", "5"), ("--keys", "9"), ("--upstream",), ("folder",), ("--tuples", "5")])
def test_the_paper_decides_its_own_settings(beside: tuple[str, ...]) -> None:
    found = cklog("simulate", "cec", "--paper", *beside)
    assert found.code == 2
    assert "--paper runs" in found.err or "at least 3,000,000" in found.err
