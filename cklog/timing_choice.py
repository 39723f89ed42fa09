"""When application-aware checkpointing takes its checkpoints (Meteor Shower, ICDE 2012, section III-C3).

The controller asks the dynamic HAUs for their sizes when a period begins, and when an HAU tells at a turning point
that its size fell by more than half since the one before. If the sum is at or below s_max, alert mode begins. Every
HAU then tells its change rate (ICR), and again at each of its turning points. Once the rates sum up to more than
nothing the total is about to rise: the checkpoint is taken, and alert mode ends until the next period. A period
without such a moment ends in a checkpoint all the same.

At s_max itself alert mode begins too, though the paper says "below": s_max is often the least sum of one of the
profiled periods, which could not be met otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.model import Subtask
from cklog.state_sizes import Floats, Ints, Polyline, Sizes
from cklog.turning_points import turning_points

_FIRST_REPORTS = 64
"""Reports looked at before twice as many are: alert mode is short."""

_NOTHING = 1e-12
"""Of the rates' magnitude: a sum of rates below that is rounding."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the controller knows at a moment of alert mode: the dynamic HAUs' total, and the sum of their ICRs.

    `icr` in bytes per s; `by` are those whose reports came then, () when all were asked. Time in ms, size in bytes.
    """

    time: int
    bytes: float
    icr: float
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint of a period: when, and why then.

    `alert` : when alert mode began, None if never; `fell` : the HAU whose fall led to it, None if the period's begin
    `reports` : in alert mode up to the choice, the last one with a positive sum unless `forced`
    `forced` : at the end of the period, for no moment was better
    """

    time: int
    alert: int | None
    fell: str | None
    reports: tuple[Report, ...]
    forced: bool


@dataclass(frozen=True, slots=True)
class _Turns:
    """Turning points in order of time, then of subtask: `sample` in the sizes, `owner` and `time` (k,)."""

    sample: Ints
    owner: Ints
    time: Ints


def choose(sizes: Sizes, polyline: Polyline, s_max: float, bounds: Ints) -> list[Choice]:
    """One choice for each period between `bounds` (p + 1,), for the sizes of dynamic HAUs and their sum."""
    turn = turning_points(sizes)
    fallen = turn[_fell(sizes, turn)]
    fallen = fallen[np.argsort(sizes.time[fallen], kind="stable")]
    asked = sizes.time[fallen]
    within = (asked >= bounds[0]) & (asked < bounds[-1])
    fallen = fallen[within]
    fallen = fallen[polyline.at(asked[within]) <= s_max]
    turn = turn[np.argsort(sizes.time[turn], kind="stable")]
    turns = _Turns(turn, sizes.owner[turn], sizes.time[turn])
    begun = polyline.at(bounds) <= s_max
    first = np.searchsorted(sizes.time[fallen], bounds)
    choices = []
    for k, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if begun[k]:
            choices.append(_in_alert(sizes, polyline, turns, (start, end), None))
        elif first[k] < first[k + 1]:
            sample = int(fallen[first[k]])
            fell = sizes.subtasks[int(sizes.owner[sample])]
            choices.append(_in_alert(sizes, polyline, turns, (int(sizes.time[sample]), end), fell))
        else:
            choices.append(Choice(end, None, None, (), forced=True))
    return choices


def _fell(sizes: Sizes, turn: Ints) -> Ints:
    """Of the turning points those at which the size is below half of what it was at the one before."""
    owner = sizes.owner[turn]
    before = np.r_[0, turn[:-1]]
    fresh = np.r_[True, owner[1:] != owner[:-1]][: len(turn)]
    before = np.where(fresh, sizes.start[owner], before[: len(turn)])
    return np.flatnonzero(2 * sizes.size[turn] < sizes.size[before])


def _in_alert(
    sizes: Sizes, polyline: Polyline, turns: _Turns, span: tuple[int, int], fell: Subtask | None
) -> Choice:
    """The choice when alert mode begins at the first moment of `span` and the period ends at the last."""
    begin, end = span
    everyone = np.arange(len(sizes.subtasks))
    icr = sizes.rates(everyone, np.full(len(everyone), begin))
    low, last = np.searchsorted(turns.time, [begin + 1, end]).tolist()
    size = float(polyline.at(np.array([begin]))[0])
    reports = [Report(begin, size, _per_second(icr.sum()), ())]
    told = str(fell) if fell else None
    if _rises(float(icr.sum()), float(np.abs(icr).sum())):
        return Choice(begin, begin, told, tuple(reports), forced=False)
    step = _FIRST_REPORTS
    while low < last:
        high = min(low + step, last)
        high = int(np.searchsorted(turns.time, turns.time[high - 1], side="right"))  # all reports of one moment
        sums, scale = _sums_of_rates(sizes, turns, slice(low, high), icr)
        moments = np.flatnonzero(np.r_[turns.time[low + 1 : high] != turns.time[low : high - 1], True])
        rising = moments[sums[moments] > _NOTHING * scale]
        shown = moments[: np.searchsorted(moments, rising[0]) + 1] if len(rising) else moments
        reports += _reports(sizes, polyline, turns, low, shown, sums)
        if len(rising):
            return Choice(reports[-1].time, begin, told, tuple(reports), forced=False)
        low, step = high, 2 * step
    return Choice(end, begin, told, tuple(reports), forced=True)
