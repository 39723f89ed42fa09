"""State sizes over time: the samples of `state/` as arrays, the size at any moment, and sums of sizes as polylines.

A subtask is what the Meteor Shower paper (ICDE 2012) calls an HAU. Between two samples its size goes in a straight
line (section III-C2); before the first and after the last it is theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from cklog.arrays.columns import codes, integers
from cklog.arrays.order import stable_order
from cklog.arrays.types import Floats, Ints, Mask
from cklog.engine.reading import Reading
from cklog.errors import CorruptInput, NotFound
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import as_it_is, read_table
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.schemas import STATE
from cklog.model.verdict import HIDING, error_without_records
from cklog.model.wording import among, many

_RADIX = 1 << 16
"""Numpy sorts 16-bit numbers by radix, several times faster than wider ones."""

_COUNTED = 1 << 22
"""So many subtasks are counted in an array; more are sorted."""

_KEYS = 1 << 62
"""Subtask and time together fit one integer below this."""

_CELLS = 1 << 20
"""Sizes that are asked for at once."""

_FINEST = 1024
"""Sums are kept to 1/1024 byte: finer differences come from rounding, and would choose between equal moments."""


@dataclass(frozen=True)
class Sizes:
    """Samples of h subtasks: those of subtask i are `[start[i], start[i + 1])`, their times rise strictly.

    `start` (h + 1,); `time` in ms and `size` in bytes (n,); every subtask has a sample.
    """

    subtasks: tuple[Subtask, ...]
    start: Ints
    time: Ints
    size: Floats

    @functools.cached_property
    def owner(self) -> Ints:
        """Each sample's subtask, shape (n,)."""
        return np.repeat(np.arange(len(self.subtasks)), np.diff(self.start))

    @functools.cached_property
    def rate(self) -> Floats:
        """The change rate from each sample to the next in bytes per ms, 0 from a subtask's last, shape (n,)."""
        rate, span = np.zeros(len(self.time)), np.empty(len(self.time))
        np.subtract(self.size[1:], self.size[:-1], out=rate[:-1])
        np.subtract(self.time[1:], self.time[:-1], out=span[:-1])
        span[self.start[1:] - 1] = np.inf
        rate /= span
        return rate

    @functools.cached_property
    def by_time(self) -> Ints:
        """The samples in order of time, those of one moment in order of subtask, shape (n,)."""
        return stable_order(self.time)

    def rows(self, keep: Mask) -> Sizes:
        """Return some of the samples, a mask of shape (n,); a subtask of which none is kept is left out."""
        counts = np.add.reduceat(keep, self.start[:-1], dtype=np.int64) if len(keep) else np.zeros(0, np.int64)
        stay = np.flatnonzero(counts)
        start = np.r_[0, np.cumsum(counts[stay])]
        return Sizes(tuple(self.subtasks[i] for i in stay.tolist()), start, self.time[keep], self.size[keep])

    def of(self, chosen: Mask) -> Sizes:
        """Return the samples of some subtasks, a mask of shape (h,)."""
        return self if chosen.all() else self.rows(np.repeat(chosen, np.diff(self.start)))

    def latest(self, owner: Ints, moment: Ints) -> Ints:
        """Return the last sample of subtask `owner` at or before each moment; one below its first if there is none.

        All arrays are of one shape, or broadcast to it.
        """
        low, high = self.start[owner], self.start[owner + 1]  # between them is the first sample after the moment
        for _ in range(int(np.diff(self.start).max()).bit_length()):
            middle = (low + high) >> 1
            after = (low < high) & (self.time[np.minimum(middle, high - 1)] <= moment)
            low, high = np.where(after, middle + 1, low), np.where(after, high, middle)
        return low - 1

    def at(self, owner: Ints, moment: Ints) -> Floats:
        """Return the size of subtask `owner` at each moment, in bytes; all of one shape."""
        found = self.latest(owner, moment)
        low = np.maximum(found, self.start[owner])
        past = np.where(found < low, 0, moment - self.time[low])
        size: Floats = self.size[low] + self.rate[low] * past
        return size

    def rates(self, owner: Ints, moment: Ints) -> Floats:
        """Return the change rate of subtask `owner` just after each moment, in bytes per ms (the paper's ICR)."""
        found = self.latest(owner, moment)
        return np.where(found < self.start[owner], 0.0, self.rate[np.maximum(found, 0)])


@dataclass(frozen=True, slots=True)
class Polyline:
    """A sum of sizes: `size` bytes at each `time` in ms, (u,), straight lines between; points may share a moment."""

    time: Ints
    size: Floats

    def at(self, moments: Ints) -> Floats:
        """Return the sum at moments within the polyline, in bytes."""
        low = np.clip(np.searchsorted(self.time, moments, side="right") - 1, 0, len(self.time) - 2)
        rate = (self.size[low + 1] - self.size[low]) / (self.time[low + 1] - self.time[low])
        found: Floats = rounded(self.size[low] + rate * (moments - self.time[low]))
        return found

    def lowest(self, bounds: Ints) -> tuple[Ints, Floats]:
        """Return when each period's sum is least, the earliest such moment, and the sum; (p,) each.

        `bounds` (p + 1,) are points of the polyline; a period includes both its ends.
        """
        at = np.searchsorted(self.time, bounds)
        spans = zip(at[:-1].tolist(), at[1:].tolist(), strict=True)
        found = np.array([low + int(np.argmin(self.size[low : high + 1])) for low, high in spans], np.int64)
        return self.time[found], self.size[found]

    def mean(self, first: int) -> float:
        """Return the average from the point at `first` ms on: what checkpoints at random moments take in the end."""
        at = int(np.searchsorted(self.time, first))
        time, size = self.time[at:], self.size[at:]
        return float(rounded(np.trapezoid(size, time) / (time[-1] - time[0])))


_Sized = TypeVar("_Sized", Floats, np.float64)


def rounded(size: _Sized) -> _Sized:
    """Round sizes or rates to 1/1024 byte."""
    found: _Sized = np.rint(size * _FINEST) / _FINEST
    return found


def total(sizes: Sizes, bounds: Ints) -> Polyline:
    """Return the sum of all subtasks' sizes from the first to the last of `bounds` (p + 1,), which are points of it."""
    return totals(sizes, bounds, [np.ones(len(sizes.subtasks), np.bool_)])[0]


def totals(sizes: Sizes, bounds: Ints, groups: Sequence[Mask]) -> list[Polyline]:
    """Return the sum over each group of subtasks, a mask (h,), with `bounds` and the moments of all samples as points.

    At each bound every subtask is asked for its size and rate; between them changes of the rate are summed up, so
    that rounding errors do not build up over the trace. Time O(n log n + h·p log n) for n samples, h subtasks.
    """
    order = sizes.by_time
    moments = sizes.time[order]
    low, high = np.searchsorted(moments, bounds), np.searchsorted(moments, bounds, side="right")
    spans = list(zip(high[:-1].tolist(), low[1:].tolist(), strict=True))  # samples strictly within each period
    first = np.r_[0, np.cumsum([1 + to - start for start, to in spans])]  # the point that is each bound
    time = np.empty(int(first[-1]) + 1, np.int64)
    time[first] = bounds
    for at, (start, to) in zip(first.tolist(), spans, strict=False):
        time[at + 1 : at + 1 + to - start] = moments[start:to]
    asked = _group_sums(sizes, bounds, groups)
    found = []
    for group, size, rate in zip(groups, *asked, strict=True):
        change = _rate_changes(sizes, group)
        points = np.empty(len(time))
        points[first] = rounded(size)
        for k, (start, to) in enumerate(spans):
            at, end = int(first[k]), int(first[k + 1])
            rates = rate[k] + np.r_[0.0, np.cumsum(change[order[start:to]])]
            grown = np.cumsum(rates[:-1] * np.diff(time[at:end]))
            points[at + 1 : end] = rounded(size[k] + grown)
        found.append(Polyline(time, points))
    return found


def _rate_changes(sizes: Sizes, group: Mask) -> Floats:
    """Return by how much each sample changes the rate of its group's sum, in bytes per ms, (n,).

    E.g. a subtask's sizes 0, 4, 4 at 0, 2, 3 ms → rates 2, 0, 0 from there on, changes 2, -2, 0.
    """
    change = sizes.rate.copy()
    change[1:] -= sizes.rate[:-1]
    change[sizes.start[:-1]] = sizes.rate[sizes.start[:-1]]
    if not group.all():
        change *= np.repeat(group, np.diff(sizes.start))
    return change


def _group_sums(sizes: Sizes, moments: Ints, groups: Sequence[Mask]) -> tuple[Floats, Floats]:
    """Sum up sizes (bytes) and rates (bytes per ms) over each of g groups at each of m moments; (g, m) both."""
    size, rate = np.zeros((len(groups), len(moments))), np.zeros((len(groups), len(moments)))
    for which in blocks_of(len(sizes.subtasks), len(moments)):
        owner = np.broadcast_to(which[:, None], (len(which), len(moments)))
        sizes_then, rates_then = sizes.at(owner, moments[None]), sizes.rates(owner, moments[None])
        for g, group in enumerate(groups):
            size[g] += sizes_then[group[which]].sum(axis=0)
            rate[g] += rates_then[group[which]].sum(axis=0)
    return size, rate


def blocks_of(subtasks: int, moments: int) -> Iterator[Ints]:
    """Yield subtasks by number, so many at once that their sizes at all moments are a table of bounded size."""
    step = max(1, _CELLS // max(moments, 1))
    for start in range(0, subtasks, step):
        yield np.arange(start, min(start + step, subtasks))


def least_of_each(sizes: Sizes, bounds: Ints) -> Floats:
    """Return for each period the sum of every subtask's least size in it, shape (p,); periods of equal length.

    `bounds` (p + 1,); a period includes both its ends. Sizes go in straight lines, so the least is at a sample or an
    end. Sizes 3, 1, 4 at 0, 1, 2 and 5, 5, 0 of another subtask make 1 + 0 in one period [0, 2].
    """
    least = np.zeros(len(bounds) - 1)
    period = int(bounds[1] - bounds[0])
    for which in blocks_of(len(sizes.subtasks), len(bounds)):
        at_ends = sizes.at(np.broadcast_to(which[:, None], (len(which), len(bounds))), bounds)
        own = np.minimum(at_ends[:, :-1], at_ends[:, 1:])
        rows = slice(sizes.start[which[0]], sizes.start[which[-1] + 1])
        inside = (sizes.time[rows] >= bounds[0]) & (sizes.time[rows] < bounds[-1])
        place = (sizes.owner[rows][inside] - which[0], (sizes.time[rows][inside] - bounds[0]) // period)
        np.minimum.at(own, place, sizes.size[rows][inside])
        least += own.sum(axis=0)
    return rounded(least)


@dataclass(frozen=True, slots=True)
class SamplesRead:
    """The samples of a run, what is wrong with them, and the files they come from."""

    sizes: Sizes
    findings: list[Finding]
    inputs: tuple[InputUsed, ...]


def read_sizes(tables: OffersRecords, reading: Reading) -> SamplesRead:
    """Scan the samples of a run.

    Raises
    ------
    NotFound : there are none
    Unreadable, CorruptInput : none can be read, or their times are no clock's
    """
    if not tables.has("state"):
        raise NotFound("no state-size samples here", "a run folder has them in state/: operator, subtask, time, bytes")
    table, findings, inputs = read_table(tables, reading, "state", tuple(STATE.names), as_it_is, STATE)
    if not len(table):
        hiding = [f for f in findings if f.id in HIDING]
        raise error_without_records("no state-size sample can be read", hiding, "look for another copy of state/")
    sizes, twice = sizes_of(table)  # whether a sample is a turning point depends on neighbours, in any file
    return SamplesRead(sizes, findings + twice, tuple(inputs))


def sizes_of(table: pa.Table) -> tuple[Sizes, list[Finding]]:
    """Put samples, in any order, into arrays; of several at one moment the largest counts, and a finding says so.

    Raises
    ------
    CorruptInput : their times are no clock's
    """
    owner, subtasks = _owner_codes(table)
    time, size = table["time"].to_numpy(), table["bytes"].to_numpy()
    if len(subtasks) * (int(time.max()) - int(time.min()) + 1) >= _KEYS:
        raise CorruptInput(f"times of samples go from {time.min()} to {time.max()}: these are no milliseconds")
    order = _sorting(owner, time, size)
    if order is not None:
        owner, time, size = owner[order], time[order], size[order]
    again = (owner[1:] == owner[:-1]) & (time[1:] == time[:-1])
    findings = []
    if again.any():
        differs = np.flatnonzero(again & (size[1:] != size[:-1]))
        if len(differs):
            findings.append(_conflict_finding(subtasks[int(owner[differs[0]])], int(time[differs[0]]), len(differs)))
        last = np.r_[~again, True]
        owner, time, size = owner[last], time[last], size[last]
    start = np.searchsorted(owner, np.arange(len(subtasks) + 1))
    return Sizes(subtasks, start.astype(np.int64), time, size.astype(np.float64)), findings


def _conflict_finding(subtask: Subtask, time: int, count: int) -> Finding:
    one = among(count, f"{subtask} at {time}")
    whose = "its" if count == 1 else "their"
    message = f"{many(count, 'sample', 'differ')} in size from others of {whose} moment, {one}; the largest counts"
    return Finding("conflicting-samples", "warning", str(subtask), message)


def _owner_codes(table: pa.Table) -> tuple[Ints, tuple[Subtask, ...]]:
    """Return each row's subtask as an index, (n,), and the subtasks, sorted, which all have a row."""
    operator, names = codes(table["operator"].unify_dictionaries())
    part = integers(table["subtask"])
    width = int(part.max()) + 1
    numbers = None
    if width > _RADIX:
        numbers, part = np.unique(part, return_inverse=True)
        width = len(numbers)
    code = operator * width + part if width > 1 else operator
    if len(names) * width > _COUNTED:
        known, dense = np.unique(code, return_inverse=True)
    else:
        there = np.bincount(code, minlength=len(names) * width) > 0
        known = np.flatnonzero(there)
        dense = code if there.all() else (np.cumsum(there) - 1)[code]
    inside = known % width if numbers is None else numbers[known % width]
    pairs = zip((known // width).tolist(), inside.tolist(), strict=True)
    return dense, tuple(Subtask(names[i], number) for i, number in pairs)


def _sorting(owner: Ints, time: Ints, size: Ints) -> Ints | None:
    """Return the rows in order of subtask, time and size, (n,); None if they are in that order."""
    order, grouped, moment = None, owner, time
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner.astype(np.uint16) if owner.max() < _RADIX else owner, kind="stable")
        grouped, moment = owner[order], time[order]
    if ((grouped[1:] != grouped[:-1]) | (moment[1:] > moment[:-1])).all():
        return order
    return np.lexsort((size, time, owner))
