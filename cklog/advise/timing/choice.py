"""When application-aware checkpointing takes its checkpoints (Meteor Shower, ICDE 2012, section III-C3).

The controller asks the dynamic HAUs for their sizes when a period begins, and when an HAU tells at a turning point
that its size fell by more than half since the one before. If the sum is at or below s_max, alert mode begins. Every
HAU then tells its change rate (ICR), and again at each of its turning points. Once the rates sum up to more than
nothing the total is about to rise: the checkpoint is taken, and alert mode ends until the next period. A period
without such a moment ends in a checkpoint all the same.

At s_max itself alert mode begins too, though the paper says "below": s_max is often the least sum of one of the
profiled periods, which could not be met otherwise.

Turning points of state sizes, dynamic HAUs, and the threshold of alert mode (Meteor Shower, ICDE 2012, III-C2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.timing.state_sizes import Polyline, Sizes, rounded, total
from cklog.arrays.types import Floats, Ints, Mask
from cklog.model.names import Subtask

_FIRST_REPORTS = 64
"""Reports looked at before twice as many are: alert mode is short."""

_SHOWN = 8
"""Reports of a period that are kept."""

_NOTHING = 1e-12
"""Of the rates' magnitude: a sum of rates below that is rounding."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the controller knows at a moment of alert mode: the dynamic HAUs' total, and the sum of their ICRs.

    `time` is in ms, `bytes` the total, and `icr` the sum of the rates in bytes per s. `by` are those whose reports came
    then, () when all were asked.
    """

    time: int
    bytes: float
    icr: float
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint of a period: when, in ms, and why then.

    Attributes
    ----------
    alert : when alert mode began, None if never
    fell : the HAU whose fall led to it, None if the period's begin did
    heard : number of moments at which HAUs reported their rates, up to the choice
    reports : the first few and the last of them; the last one's sum is positive unless `forced`
    forced : at the end of the period, for no moment was better
    """

    time: int
    alert: int | None
    fell: str | None
    heard: int
    reports: tuple[Report, ...]
    forced: bool


@dataclass(frozen=True, slots=True)
class _Turns:
    """Turning points in order of time, then of subtask: `sample` is an index into the sizes; (k,) both."""

    sample: Ints
    time: Ints


def choose(sizes: Sizes, polyline: Polyline, s_max: float, bounds: Ints) -> list[Choice]:
    """Choose the moment of each period between `bounds`, (p + 1,) in ms.

    `sizes` are those of the dynamic HAUs, `polyline` is their sum, and `s_max` the threshold of alert mode in bytes.
    """
    turn = turning_points(sizes)
    fallen = turn[_halved(sizes, turn)]
    fallen = fallen[np.argsort(sizes.time[fallen], kind="stable")]
    asked = sizes.time[fallen]
    within = (asked >= bounds[0]) & (asked < bounds[-1])
    fallen = fallen[within]
    fallen = fallen[polyline.at(asked[within]) <= s_max]  # the samples that may begin alert mode, in order of time
    turn = turn[np.argsort(sizes.time[turn], kind="stable")]
    turns = _Turns(turn, sizes.time[turn])
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
            choices.append(Choice(time=end, alert=None, fell=None, heard=0, reports=(), forced=True))
    return choices


def _halved(sizes: Sizes, turn: Ints) -> Ints:
    """Return those of the turning points, (k,), at which the size is below half of that at the one before.

    Before a subtask's first turning point comes its first sample. E.g. sizes 8, 9, 3 at a subtask's first sample and
    its two turning points → [1].
    """
    owner = sizes.owner[turn]
    before = np.r_[0, turn[:-1]]
    fresh = np.r_[True, owner[1:] != owner[:-1]][: len(turn)]
    before = np.where(fresh, sizes.start[owner], before[: len(turn)])
    return np.flatnonzero(2 * sizes.size[turn] < sizes.size[before])


class _Alert:
    """Alert mode from its first moment on.

    `rising` says whether the total is about to rise, `heard` counts the moments with reports, and `reports` holds the
    first few and the last.
    """

    def __init__(self, sizes: Sizes, polyline: Polyline, turns: _Turns, begin: int) -> None:
        self._sizes, self._polyline, self._turns = sizes, polyline, turns
        everyone = np.arange(len(sizes.subtasks))
        self._icr = sizes.rates(everyone, np.full(len(everyone), begin))  # as last reported, bytes per ms, (h,)
        self.rising = bool(self._icr.sum() > _NOTHING * np.abs(self._icr).sum())
        self.heard = 1
        self.reports = [self._report(begin, float(self._icr.sum()), ())]

    def listen(self, low: int, high: int) -> None:
        """Take in turning points [low, high), which hold all of a moment or none, until the total is about to rise."""
        time = self._turns.time[low:high]
        sums, magnitude = self._icr_sums(low, high)
        ends = np.flatnonzero(np.r_[time[1:] != time[:-1], True])  # the last report of each moment
        starts = np.r_[0, ends[:-1] + 1]
        rising = np.flatnonzero(sums[ends] > _NOTHING * magnitude)
        self.rising = len(rising) > 0
        count = int(rising[0]) + 1 if self.rising else len(ends)
        for k in range(count):
            if self.heard + k < _SHOWN or k == count - 1:
                owners = self._sizes.owner[self._turns.sample[low + starts[k] : low + ends[k] + 1]]
                by = tuple(str(self._sizes.subtasks[i]) for i in owners.tolist())
                del self.reports[_SHOWN - 1 :]
                self.reports.append(self._report(int(time[ends[k]]), float(sums[ends[k]]), by))
        self.heard += count

    def _icr_sums(self, low: int, high: int) -> tuple[Floats, float]:
        """Return the sum of the last reported ICRs after each of the turning points, and what rounding is measured by.

        The sum has shape (high - low,). E.g. ICRs of -3 and 1 and a report of 2 by the first → sums [3].
        """
        sample = self._turns.sample[low:high]
        owner, icr = self._sizes.owner[sample], self._sizes.rate[sample]
        order = np.argsort(owner, kind="stable")  # by subtask, each in order of time
        before = np.empty(len(icr))  # what the same subtask reported before
        again = np.r_[False, owner[order][1:] == owner[order][:-1]]
        before[order] = np.where(again, icr[np.roll(order, 1)], self._icr[owner[order]])
        sums = self._icr.sum() + np.cumsum(icr - before)
        magnitude = float(np.abs(self._icr).sum() + np.abs(icr).sum())
        self._icr[owner[order]] = icr[order]  # of one owner's the last stays
        return sums, magnitude

    def _report(self, time: int, icr: float, by: tuple[str, ...]) -> Report:
        size = float(self._polyline.at(np.array([time]))[0])
        return Report(time, size, float(rounded(np.float64(icr * 1000))), by)


def _in_alert(sizes: Sizes, polyline: Polyline, turns: _Turns, span: tuple[int, int], fell: Subtask | None) -> Choice:
    """Choose when alert mode begins at the first moment of `span` and the period ends at the last, both in ms."""
    alert = _Alert(sizes, polyline, turns, span[0])
    low, last = np.searchsorted(turns.time, [span[0] + 1, span[1]]).tolist()
    step = _FIRST_REPORTS
    while low < last and not alert.rising:
        high = min(low + step, last)
        high = int(np.searchsorted(turns.time, turns.time[high - 1], side="right"))
        alert.listen(low, high)
        low, step = high, 2 * step
    time = alert.reports[-1].time if alert.rising else span[1]
    return Choice(
        time=time,
        alert=span[0],
        fell=str(fell) if fell else None,
        heard=alert.heard,
        reports=tuple(alert.reports),
        forced=not alert.rising,
    )


RELAXATION = 0.2
"""The least relaxation factor: the paper found it better to raise s_max to this much above s_min."""


def turning_points(sizes: Sizes) -> Ints:
    """Return the samples at which a size turns: it rises, falls or stays as it was before, and does not after; (k,).

    Of sizes that differ from sample to sample these are the local extrema. Where a size stays for a while, both ends
    of that stretch are turning points, so that the straight lines between turning points follow it. The first and the
    last sample of a subtask are none: nobody knows what was beyond.
    """
    turned = np.zeros(len(sizes.rate), np.bool_)  # (n,); e.g. of sizes 1, 3, 2, 2, 4 the samples 1, 2 and 3
    for way in (sizes.rate > 0, sizes.rate < 0):
        turned[1:] |= way[1:] != way[:-1]
    turned[sizes.start[:-1]] = turned[sizes.start[1:] - 1] = False
    return np.flatnonzero(turned)


def reported(sizes: Sizes) -> Sizes:
    """Return the samples that the controller knows: turning points, and both ends of what was observed."""
    keep = np.zeros(len(sizes.time), np.bool_)
    keep[turning_points(sizes)] = True
    keep[sizes.start[:-1]] = keep[sizes.start[1:] - 1] = True
    return sizes.rows(keep)


def averages(sizes: Sizes) -> tuple[Floats, Floats]:
    """Return the least size and the average over the samples of each subtask, in bytes, (h,) each."""
    low, summed = np.minimum.reduceat(sizes.size, sizes.start[:-1]), np.add.reduceat(sizes.size, sizes.start[:-1])
    return low, summed / np.diff(sizes.start)


def dynamic(sizes: Sizes) -> Mask:
    """Tell which subtasks are dynamic HAUs, (h,): their least size is below half of their average."""
    low, average = averages(sizes)
    return low < average / 2


@dataclass(frozen=True, slots=True)
class Threshold:
    """The total size, in bytes, at which alert mode begins.

    Attributes
    ----------
    s_min, highest : the lowest and the highest of the periods' least sums of dynamic sizes
    alpha : the relaxation factor (highest - s_min) / s_min as observed; None: s_min is 0 and `highest` is not
    relaxation : the factor that was taken, at least 0.2; None as above
    s_max : the threshold, s_min raised by `relaxation`
    """

    s_min: float
    highest: float
    alpha: float | None
    relaxation: float | None
    s_max: float


def threshold(lowest: Sequence[float] | Floats) -> Threshold:
    """Return the threshold, given each period's least sum in bytes.

    >>> threshold([100, 110])
    Threshold(s_min=100.0, highest=110.0, alpha=0.1, relaxation=0.2, s_max=120.0)
    >>> threshold([100, 150]).s_max
    150.0
    """
    s_min, highest = float(min(lowest)), float(max(lowest))
    if not s_min:
        alpha = None if highest else 0.0
        return Threshold(
            s_min=s_min, highest=highest, alpha=alpha, relaxation=None if highest else RELAXATION, s_max=highest
        )
    alpha = (highest - s_min) / s_min
    s_max = highest if alpha >= RELAXATION else s_min + RELAXATION * s_min
    return Threshold(s_min=s_min, highest=highest, alpha=alpha, relaxation=max(alpha, RELAXATION), s_max=s_max)


@dataclass(frozen=True, slots=True)
class Profile:
    """What the profiled periods showed; None, from `polyline` on, if no subtask is dynamic.

    Attributes
    ----------
    sizes : the samples up to the end of the profiled periods
    dynamic : which subtasks of these are dynamic HAUs, (h,)
    polyline : the sum of their sizes, as their turning points give it
    best : when each period's sum was least, in ms, (p,)
    """

    sizes: Sizes
    dynamic: Mask
    polyline: Polyline | None
    best: Ints | None
    threshold: Threshold | None


def profile(sizes: Sizes, bounds: Ints) -> Profile:
    """Profile the periods between `bounds` (p + 1,), from the samples up to the last of them."""
    seen = sizes.rows(sizes.time <= bounds[-1])
    moving = dynamic(seen)
    if not moving.any():
        return Profile(sizes=seen, dynamic=moving, polyline=None, best=None, threshold=None)
    polyline = total(reported(seen.of(moving)), bounds)
    best, lowest = polyline.lowest(bounds)
    return Profile(sizes=seen, dynamic=moving, polyline=polyline, best=best, threshold=threshold(lowest))
