"""The Delta Checkpoint Number D: how many delta checkpoints follow a base, by the method of US patent 9,471,438.

At every base checkpoint the method (`adjustD` there) looks at what the checkpoints before it have cost:

    benefit     T_base > T_delta + T_log, with T_log = 10 % of T_delta; by size, base > 1.1 * average delta
    D           one more where deltas pay, one less where they do not (the patent leaves the step open)
    ratio       the deltas after a base are no larger in total than `ratio` times the base
    most        D is at most `max_delta`
    restore     1.2 * T_base + D * 1.2 * T_delta <= `max_restore_ms`
    probe       after `probe_after` base checkpoints in a row the next one is a delta, to see what one costs by then

T_base is the newest base's, T_delta a weighted average (`WEIGHT`). D starts at 1; at 0 changes are not tracked. The
restore bound holds for the probe as far as the base alone leaves any time: the average is stale by then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Floats, Ints, Mask
from cklog.errors import UsageError

BenefitMeasure = Literal["time", "size"]
"""By what the benefit of deltas is judged: time in ms, or size in bytes."""

LOGGING = 0.1
"""What tracking the changes of a delta costs, as a part of the delta: the patent's overestimate."""

RESTORE = 1.2
"""The time to restore a checkpoint as a multiple of the time to take it: the patent's overestimate."""

START = 1
"""D after the first base checkpoint."""

STEP = 1
"""By how much D rises or falls; cklog's choice."""

WEIGHT = 0.5
"""How much the newest delta counts in the weighted average of deltas; cklog's choice."""

UNLIMITED = 1 << 40
"""A cap that is none."""

_MOST_RATIO = 1e9

REASONS = ("start", "pays", "does not pay", "ratio", "max-delta", "max-restore-time", "probe")
"""Why D is what it is: from the benefit test, or by the cap that was lowest, or as a probe."""

_START, _PAYS, _LOSES, _RATIO, _MOST, _RESTORE_TIME, _PROBE = range(len(REASONS))
_SLACK = 1e-9
"""Rounding of a quotient that should be an integer."""


@dataclass(frozen=True, slots=True)
class DeltaLimits:
    """The bounds on D; None: no such bound. `ratio` of bytes to bytes; times in ms."""

    ratio: float = 1.5
    max_delta: int | None = None
    max_restore_ms: float | None = None
    probe_after: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= _MOST_RATIO:
            raise UsageError(f"--ratio {self.ratio:g}: it must be 0 to {_MOST_RATIO:g}")
        if self.max_delta is not None and self.max_delta < 0:
            raise UsageError(f"--max-delta {self.max_delta}: it must be 0 or more")
        if self.max_restore_ms is not None and not 0 < self.max_restore_ms < math.inf:
            raise UsageError(f"--max-restore-time {self.max_restore_ms / 1000:g}: it must be positive")
        if self.probe_after < 2:
            raise UsageError(f"--probe-after {self.probe_after}: it must be 2 or more, or D would never rise above 1")


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """The price of each checkpoint of s subtasks as a base and as a delta, shape (n, s).

    A column holds the `count` checkpoints of a subtask, shape (s,), and zeros behind them. None: no such measure.
    `recorded` is True where the history has a delta; the price in the form that was not taken is an estimate
    (`cklog.advise.delta.history`).
    """

    count: Ints
    recorded: Mask
    base_bytes: Floats | None
    delta_bytes: Floats | None
    base_ms: Floats | None
    delta_ms: Floats | None

    def measure(self, by: BenefitMeasure) -> tuple[Floats, Floats]:
        """Return the prices of bases and of deltas, in ms or bytes; they must be there."""
        pair = (self.base_ms, self.delta_ms) if by == "time" else (self.base_bytes, self.delta_bytes)
        assert pair[0] is not None
        assert pair[1] is not None
        return pair[0], pair[1]

    @property
    def taken(self) -> Mask:
        """Whether each cell is a checkpoint, shape (n, s)."""
        found: Mask = np.arange(len(self.recorded))[:, None] < self.count
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The checkpoints that the method takes, shape (n, s) each.

    `delta` is True where it takes a delta, `number` is D at each base (-1 elsewhere), `reason` an index into `REASONS`
    that says why. Cells behind a column's last checkpoint mean nothing.
    """

    delta: Mask
    number: Ints
    reason: NDArray[np.int8]


def pays(base: Floats, delta: Floats) -> Mask:
    """Return whether deltas pay by the benefit test, in ms or bytes; False where a price is NaN.

    >>> pays(np.array([111.0, 110.0]), np.array([100.0, 100.0]))
    array([ True, False])
    """
    found: Mask = base > delta + LOGGING * delta
    return found


def ratio_cap(base: Floats, average: Floats, ratio: float) -> Ints:
    """Return the most deltas whose total size is within `ratio` bases; sizes in bytes.

    >>> ratio_cap(np.array([400.0]), np.array([100.0]), 1.5)
    array([6])
    """
    return _whole_times(ratio * base, average)


def restore_cap(base: Floats, average: Floats, longest: float) -> Ints:
    """Return the most deltas that are restored with their base within `longest`, -1 if not even the base is.

    All times are in one unit.

    >>> restore_cap(np.array([0.4, 0.9]), np.array([0.05, 0.05]), 1.0)
    array([ 8, -1])
    """
    room = longest - RESTORE * base
    cap: Ints = np.where(room < -_SLACK * longest, -1, _whole_times(np.maximum(room, 0.0), RESTORE * average))
    return cap


def _whole_times(total: Floats, each: Floats) -> Ints:
    """Return how often `each` goes into `total`; UNLIMITED where it is 0 or unknown (NaN); one shape.

    >>> _whole_times(np.array([10.0, 9.0, 9.0]), np.array([5.0, 5.0, 0.0])).tolist() == [2, 1, UNLIMITED]
    True
    """
    known = each > 0
    quotient = np.divide(total, each, out=np.full(len(each), float(UNLIMITED)), where=known)
    whole: Ints = np.floor(np.minimum(quotient * (1 + _SLACK), UNLIMITED)).astype(np.int64)
    return whole


def averages(price: Floats, delta: Mask) -> Iterator[Floats]:
    """Yield the weighted average of the deltas before each row, NaN before the first, then that of all; shape (s,)."""
    average = np.full(delta.shape[1], np.nan)
    yield average
    for row, took in zip(price, delta, strict=True):
        average = _new_average(average, row, took)
        yield average


def _new_average(average: Floats, price: Floats, took: Mask) -> Floats:
    """Return the average with a price added where a delta was taken; the first one (NaN before) counts whole."""
    known = np.where(np.isnan(average), price, average)
    return np.where(took, WEIGHT * price + (1 - WEIGHT) * known, average)


def scheduled(prices: Prices, limits: DeltaLimits, by: BenefitMeasure) -> Schedule:
    """Return what the method would have done along a history, from the prices of what it had taken by then.

    O(n) steps over all columns of shape (s,) at once, each of them the method for one checkpoint of every subtask.
    """
    shape = prices.recorded.shape
    schedule = Schedule(np.zeros(shape, np.bool_), np.full(shape, -1, np.int64), np.zeros(shape, np.int8))
    method = _Method(prices, limits, by)
    for k in range(shape[0]):
        method.step(k, schedule)
    return schedule


class _Method:
    """The state of the method between two checkpoints of s subtasks; every array has shape (s,)."""

    def __init__(self, prices: Prices, limits: DeltaLimits, by: BenefitMeasure) -> None:
        count = len(prices.count)
        self._limits = limits
        self._by = by
        self._bytes = (prices.base_bytes, prices.delta_bytes)
        self._ms = (prices.base_ms, prices.delta_ms)
        self._number = np.full(count, START)
        self._left = np.zeros(count, np.int64)  # deltas to take before the next base
        self._bases = np.zeros(count, np.int64)  # base checkpoints in a row
        self._average = {"size": np.full(count, np.nan), "time": np.full(count, np.nan)}

    def step(self, k: int, schedule: Schedule) -> None:
        """Take checkpoint k: a base, at which D is adjusted, or one of the deltas that are left."""
        base = self._left == 0
        delta = ~base
        for name, (_, price) in (("size", self._bytes), ("time", self._ms)):
            if price is not None:
                self._average[name] = _new_average(self._average[name], price[k], delta)
        self._left -= delta  # by one where a delta is taken
        self._bases = np.where(base, self._bases + 1, 0)
        number, reason = self._adjusted_number(k)
        self._number = np.where(base, number, self._number)
        self._left = np.where(base, self._number, self._left)
        schedule.delta[k] = delta
        schedule.number[k] = np.where(base, self._number, -1)
        schedule.reason[k] = reason

    def _adjusted_number(self, k: int) -> tuple[Ints, Ints]:
        """Return D for every subtask as if checkpoint k were a base, and why; shape (s,) both.

        The benefit test changes D by one, a start or a probe sets it to 1, and each lower cap then takes its place.
        """
        base = (self._ms if self._by == "time" else self._bytes)[0]
        assert base is not None
        gain = pays(base[k], self._average[self._by])
        number = np.where(gain, self._number + STEP, np.maximum(self._number - STEP, 0))
        reason = np.where(gain, _PAYS, _LOSES)
        probe = self._bases >= self._limits.probe_after
        fresh = probe | (k == 0)
        number = np.where(fresh, START, number)
        reason = np.where(fresh, _START if k == 0 else _PROBE, reason)
        for which, cap in self._number_caps(k, fresh):
            lower = cap < number
            number, reason = np.where(lower, np.maximum(cap, 0), number), np.where(lower, which, reason)
        return number, reason

    def _number_caps(self, k: int, fresh: Mask) -> Iterator[tuple[int, Ints]]:
        """Yield the caps on D with their reasons; where D starts anew no average is known, or none that still holds."""
        limits = self._limits
        if self._bytes[0] is not None:
            cap = ratio_cap(self._bytes[0][k], self._average["size"], limits.ratio)
            yield _RATIO, np.where(fresh, UNLIMITED if limits.ratio else 0, cap)
        if limits.max_delta is not None:
            yield _MOST, np.full(len(fresh), min(limits.max_delta, UNLIMITED))
        if limits.max_restore_ms is not None and self._ms[0] is not None:
            base = self._ms[0][k]
            cap = restore_cap(base, self._average["time"], limits.max_restore_ms)
            room = np.where(RESTORE * base < limits.max_restore_ms, UNLIMITED, 0)
            yield _RESTORE_TIME, np.where(fresh, room, cap)
