"""The evaluation of Sebepou and Magoutis (DSN 2011, section IV) run again: every number of its text beside cklog's.

The paper states the workload (100,000 items at random, windows of 10 tuples, CI and CP), and for each figure the
numbers at its ends. What it does not state enters here by one constant each, and each row says how it came about:

    given        follows from the workload by arithmetic; the simulation had to give it
    derived      the input rate was taken from this number: 9 * 100,000 tuples pass while a window is open, in 16.5 s
    calibrated   a constant was fitted to this row
    predicted    no constant was fitted to it, and the cost of a check does not move it
    by cost      no constant was fitted to it, but the cost of a check moves it: `low` and `high` are the bounds

Two constants are fitted to Figure 8 and to the load times:

* What a round takes. Response times of 18.5, 21.5 and 32.5 s are those of rounds that take longer than their interval
  CI of 10 ms. One factor for all three, by least squares: `round_factor`.
* The curve of load times through six points: `cklog.policies.load_time.fitted`.

The cost of a check is *not* told by Figure 8: a round that takes all of its interval delays the tuples by as much
however many checks are in it. It only says that the windows do not run out within a round, which bounds the cost from
below; a check writes one record, so it is taken to cost no more than an input tuple at most does: the bound from above.
Between these bounds the rows "by cost" are no prediction. Their middle value is for `CHECK_COST_US`, the cost at which
Q = 1x has the extent of 120,000 records of Figure 6: that row is calibrated, and the others say whether it fits them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from cklog.errors import UsageError
from cklog.policies.check_records import CHECK_COST_US, Targets
from cklog.policies.load_time import PUBLISHED, fitted, published
from cklog.simulate.cec.operator import RECORD_BYTES, Statistics, simulate
from cklog.simulate.cec.tuples import Workload

How = Literal["given", "derived", "calibrated", "predicted", "by cost"]

RESPONSE_S = {100: 18.5, 50: 21.5, 25: 32.5}
"""Figure 8, by CP in ms, at a CI of 10 ms. ("18.5ms, 21.5ms, and 32.5s" in the text: the units cannot be right.)"""

UNCHECKED_S = 16.5
"""Figure 8 without checks."""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One number of the paper's text, and what cklog gives for it.

    Attributes
    ----------
    figure, setting, quantity, unit : which number
    paper : None: the text gives none, it says `words`
    cklog : at the cost of a check that Figure 6 implies
    low, high : over all costs of a check that Figure 8 leaves open; None: the cost does not move it
    deviation : of `cklog` from `paper`, as a part of it; 0 if the paper gives a bound that is kept
    how : see the module
    words : what the text says where it gives no plain number
    """

    figure: str
    setting: str
    quantity: str
    unit: str
    paper: float | None
    cklog: float
    low: float | None
    high: float | None
    deviation: float | None
    how: How
    words: str = ""


@dataclass(frozen=True, slots=True)
class LoadRow:
    """A load time of the paper, the one of the curve through all six, and the one that `advise extent` counts with."""

    figure: str
    setting: str
    records: int
    paper: float
    fitted: float
    deviation: float
    advised: float


@dataclass(frozen=True, slots=True)
class PaperFigures:
    """The evaluation run again.

    Attributes
    ----------
    rows : every number, those that deviate most first
    loads : the load times, those that deviate most first
    round_factor : a round takes as many times its interval
    round_ms : what a round of CI = 10 ms would have to take for each response time alone, by CP in ms
    fitted_a_us, fitted_b_ps : of the curve of load times, us for a record and ps for a pair of records
    check_cost_us : at which `cklog` is given
    costs_us : the least and the largest cost of a check that Figure 8 leaves open
    tuples : length of each run
    """

    rows: tuple[FigureRow, ...]
    loads: tuple[LoadRow, ...]
    round_factor: float
    round_ms: dict[str, float]
    fitted_a_us: float
    fitted_b_ps: float
    check_cost_us: float
    costs_us: tuple[float, float]
    tuples: int


class Said(NamedTuple):
    """A number of the text: `paper` in the unit of the quantity; `at_least`: a bound."""

    quantity: Literal["open windows", "extent", "replay", "load", "response", "checks"]
    paper: float | None
    how: How
    words: str = ""
    at_least: bool = False


class Experiment(NamedTuple):
    """A run of the paper: its settings, and what the text says of it; `by_cost`: the cost of a check matters."""

    figure: str
    setting: str
    ci_ms: float
    cp_ms: float
    said: tuple[Said, ...]
    q_windows: float | None = None
    u: float | None = None
    by_cost: bool = False

    def policy(self, cost_us: float, factor: float) -> Targets:
        """Return the policy, with rounds of `factor` times their interval, and as many checks as without."""
        pace = {"period_ms": self.cp_ms, "interval_ms": self.ci_ms * factor, "cost_us": cost_us * factor}
        return Targets(u=self.u, q_windows=self.q_windows, **pace)


TUPLES = 8_000_000
"""Length of a run, unless asked: seeds then differ by 5 % where nothing holds the extent (Q=8x), by 1 % elsewhere."""

_TUPLES_AT_BOUNDS = 3_000_000
"""Length of the runs that give `low` and `high`, in which there may be millions of checks a second."""

_FEWEST_TUPLES = 3_000_000

_UNITS = {"open windows": "", "extent": "records", "replay": "MB", "load": "s", "response": "s", "checks": "records/s"}

_MORE = "more than 200 MB"

EXPERIMENTS = (
    Experiment(
        "6", "Q=1x", 5, 100, q_windows=1, by_cost=True,
        said=(
            Said("open windows", 90_000, "given", "around 90,000"),
            Said("extent", 120_000, "calibrated"),
            Said("load", 3.5, "calibrated"),
            Said("replay", 25, "by cost"),
        ),
    ),
    Experiment(
        "6", "Q=2x", 5, 100, q_windows=2,
        said=(Said("extent", 180_000, "predicted"), Said("load", 5, "calibrated"), Said("replay", 50, "predicted")),
    ),
    Experiment(
        "6", "Q=4x", 5, 100, q_windows=4,
        said=(
            Said("extent", 360_000, "predicted", "the target is met"),
            Said("load", 14, "calibrated"),
            Said("replay", 200, "predicted", _MORE, at_least=True),
            Said("checks", None, "predicted", "drops sharply past 2x"),
        ),
    ),
    Experiment(
        "6", "Q=8x", 5, 100, q_windows=8,
        said=(
            Said("extent", 500_000, "predicted"),
            Said("load", 27, "calibrated"),
            Said("replay", 200, "predicted", _MORE, at_least=True),
        ),
    ),
    Experiment(
        "7", "U=125000", 5, 100, u=125_000, by_cost=True,
        said=(Said("extent", 120_000, "by cost"), Said("load", 2.5, "calibrated"), Said("replay", 20, "by cost")),
    ),
    Experiment(
        "7", "U=1000000", 5, 100, u=1_000_000,
        said=(Said("extent", 230_000, "predicted"), Said("load", 6.7, "calibrated"), Said("replay", 90, "predicted")),
    ),
    Experiment("8", "no checks", 0, 100, said=(Said("response", UNCHECKED_S, "derived"),)),
    *(
        Experiment("8", f"CP={cp}", 10, cp, q_windows=1, said=(Said("response", seconds, "calibrated"),))
        for cp, seconds in RESPONSE_S.items()
    ),
    Experiment(
        "8", "CP=250", 10, 250, q_windows=1,
        said=(Said("response", UNCHECKED_S, "predicted", "approximates that of no CEC"),),
    ),
    Experiment(
        "9", "CP=25", 10, 25, q_windows=1, by_cost=True,
        said=(Said("extent", None, "by cost", "grows with CP"), Said("load", 2, "by cost", "estimated")),
    ),
    Experiment(
        "9", "CP=250", 10, 250, q_windows=1, by_cost=True,
        said=(Said("extent", None, "by cost", "grows with CP"), Said("load", 5, "by cost", "estimated")),
    ),
)  # fmt: skip
"""Every number that the text of section IV.B and IV.C gives."""


def round_factor() -> float:
    """Return how many times its interval a round takes, by least squares over the three response times of Figure 8.

    A period CP with a round of c * CI leaves CP - c * CI for tuples, so a window stays open for CP / (CP - c * CI)
    times as long. What is least is the sum of squares of the relative deviations.
    """
    cp = np.array(list(RESPONSE_S), np.float64)
    seconds = np.array(list(RESPONSE_S.values()))
    factors = np.arange(1.0, 2.0, 1e-4)[:, None]  # (factors, 1), of which the best is good to four digits
    missed = UNCHECKED_S * cp / (cp - 10 * factors) / seconds - 1
    return float(factors[int((missed**2).sum(axis=1).argmin()), 0])


def open_costs(workload: Workload, factor: float) -> tuple[float, float]:
    """Return the least and the largest cost of a check, in us, that Figure 8 leaves open; see the module.

    Less, and a round of 10 ms would check every open window and end before its time; more, and a check, which writes a
    record, would take longer than a tuple.
    """
    assert workload.count is not None
    windows = workload.keys * (workload.count - 1) / workload.count
    return 10_000 / windows, 1e6 / workload.rate / factor


def paper_figures(workload: Workload) -> PaperFigures:
    """Run the paper's experiments, each on `workload.tuples` tuples, and put its numbers beside them.

    Raises
    ------
    UsageError : runs that end before the averages mean anything
    """
    if workload.tuples < _FEWEST_TUPLES:
        hint = "900,000 pass while a window is open, and the averages begin after 40% of the run"
        raise UsageError(f"{workload.tuples:,} tuples: the paper's figures need at least {_FEWEST_TUPLES:,}", hint)
    factor, curve = round_factor(), fitted()
    costs = open_costs(workload, factor)
    short = replace(workload, tuples=min(workload.tuples, _TUPLES_AT_BOUNDS))
    rows: list[FigureRow] = []
    for experiment in EXPERIMENTS:
        middle = simulate(workload, experiment.policy(CHECK_COST_US, factor))
        ends = [simulate(short, experiment.policy(cost, factor)) for cost in costs if experiment.by_cost]
        rows += _rows_of(experiment, middle, ends)
    loads = [
        LoadRow(
            figure=measured.figure,
            setting=measured.setting,
            records=measured.records,
            paper=measured.seconds,
            fitted=curve.seconds(measured.records),
            deviation=curve.seconds(measured.records) / measured.seconds - 1,
            advised=float(published().seconds(measured.records)),
        )
        for measured in PUBLISHED
    ]
    return PaperFigures(
        rows=tuple(sorted(rows, key=lambda row: -abs(row.deviation or 0.0))),
        loads=tuple(sorted(loads, key=lambda row: -abs(row.deviation))),
        round_factor=factor,
        round_ms={f"{cp:g}": cp * (1 - UNCHECKED_S / seconds) for cp, seconds in RESPONSE_S.items()},
        fitted_a_us=curve.a_us,
        fitted_b_ps=curve.b_ps,
        check_cost_us=CHECK_COST_US,
        costs_us=costs,
        tuples=workload.tuples,
    )


def _rows_of(experiment: Experiment, middle: Statistics, ends: Sequence[Statistics]) -> Iterator[FigureRow]:
    """Yield a row for each number that the text gives for an experiment."""
    for said in experiment.said:
        found = _figure_of(said.quantity, middle)
        bounds = sorted(_figure_of(said.quantity, end) for end in ends)
        deviation = None if said.paper is None else found / said.paper - 1
        if said.at_least and deviation is not None:
            deviation = min(deviation, 0.0)
        row = FigureRow(
            figure=experiment.figure,
            setting=experiment.setting,
            quantity=said.quantity,
            unit=_UNITS[said.quantity],
            paper=said.paper,
            cklog=found,
            low=None,
            high=None,
            deviation=deviation,
            how=said.how,
            words=said.words,
        )
        yield replace(row, low=bounds[0], high=bounds[-1]) if bounds and said.quantity != "open windows" else row


def _figure_of(quantity: str, statistics: Statistics) -> float:
    """Return a quantity of a run, in its unit; a load time is that of the fitted curve at the mean extent."""
    assert statistics.extent is not None
    if quantity == "load":
        return fitted().seconds(statistics.extent)
    figures = {
        "open windows": statistics.open_windows,
        "extent": statistics.extent,
        "replay": None if statistics.replay is None else statistics.replay * RECORD_BYTES / 1e6,
        "response": statistics.response_s,
        "checks": statistics.checks_per_second,
    }
    found = figures[quantity]
    assert found is not None
    return found
