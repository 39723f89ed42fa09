"""How long it takes to load an eventual checkpoint, by the size of its extent.

Sebepou and Magoutis (DSN 2011, section IV.B) measured it six times, and the time grows faster than the extent: 180,000
records take 28 µs each, 500,000 records 54 µs. No single rate tells that, and the paper names no mechanism (the
processor was busy all the time). So the measured points are the model, and where it has to choose it is slow:

* between two points the time is interpolated. The points curve upwards, so a straight line lies above a curve.
* one size was measured twice, with 3.5 and 2.5 s: the slower one counts.
* below the first point each record takes as long as there.
* beyond the last point the time grows with the square of the extent, as it does between the last two of them
  (27 / 14 s, and (500,000 / 360,000)² is the same 1.93).

`fitted` is the other way to read them: one curve through all six, with what it misses each of them by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cklog.errors import UsageError


class MeasuredLoad(NamedTuple):
    """A load time of the paper: at the setting of a figure, `records` in the extent, loaded in `seconds`."""

    figure: str
    setting: str
    records: int
    seconds: float


PUBLISHED = (
    MeasuredLoad("6", "Q=1x", 120_000, 3.5),
    MeasuredLoad("6", "Q=2x", 180_000, 5.0),
    MeasuredLoad("6", "Q=4x", 360_000, 14.0),
    MeasuredLoad("6", "Q=8x", 500_000, 27.0),
    MeasuredLoad("7", "U=125000", 120_000, 2.5),
    MeasuredLoad("7", "U=1000000", 230_000, 6.7),
)
"""Section IV.B. For Q=4x the text gives no number but says that the target, 360,000, is met."""


@dataclass(frozen=True, slots=True)
class LoadTime:
    """Seconds by records: through `points`, in a straight line from nothing; behind the last as a power of the records.

    Parameters
    ----------
    points : (records, seconds), both rising
    beyond : that power; 1: as many seconds for each record as at the last point

    Examples
    --------
    >>> LoadTime.per_record(0.001).seconds([0, 500, 4000]).tolist()
    [0.0, 0.5, 4.0]
    >>> LoadTime(((10, 1.0), (20, 3.0)), beyond=2).seconds([5, 15, 40]).tolist()
    [0.5, 2.0, 12.0]
    """

    points: tuple[tuple[float, float], ...]
    beyond: float = 1.0

    def __post_init__(self) -> None:
        records, seconds = zip((0.0, 0.0), *self.points, strict=True)
        if not (np.diff(records) > 0).all() or not (np.diff(seconds) >= 0).all() or not seconds[-1] < math.inf:
            raise UsageError(f"no time to load an extent: {seconds[-1]:g} s for {records[-1]:g} records")

    @classmethod
    def per_record(cls, seconds: float) -> LoadTime:
        """Return a time of `seconds` for each record, however many they are."""
        return cls(((1.0, seconds),))

    def seconds(self, records: ArrayLike) -> NDArray[np.float64]:
        """Return the seconds that extents of so many records take, in their shape."""
        size = np.asarray(records, np.float64)
        sizes, times = zip((0.0, 0.0), *self.points, strict=True)
        within = np.interp(size, sizes, times)
        behind = times[-1] * (size / sizes[-1]) ** self.beyond
        found: NDArray[np.float64] = np.where(size > sizes[-1], behind, within)
        return found


def published() -> LoadTime:
    """Return the paper's load times: through its points, through the slower one where a size has two."""
    slowest: dict[float, float] = {}
    for measured in PUBLISHED:
        slowest[measured.records] = max(measured.seconds, slowest.get(measured.records, 0.0))
    return LoadTime(tuple(sorted(slowest.items())), beyond=2.0)


class FittedLoad(NamedTuple):
    """A curve a·n + b·n² through measured load times: `a_us` for each record, `b_ps` for each pair of records."""

    a_us: float
    b_ps: float

    def seconds(self, records: float) -> float:
        """Return the seconds that an extent of `records` takes."""
        return self.a_us * 1e-6 * records + self.b_ps * 1e-12 * records**2


def fitted() -> FittedLoad:
    """Return the curve with the least squares of relative deviations at the paper's six points.

    The form is the simplest that curves: work for each record, and a search among the records so far. That is what a
    list of windows would cost that is searched from its start; the paper does not say that there is one.
    """
    n, s = np.array([[p.records, p.seconds] for p in PUBLISHED]).T
    terms = np.stack([n, n**2], 1) / s[:, None]
    (a, b), *_ = np.linalg.lstsq(terms, np.ones(len(s)), rcond=None)
    return FittedLoad(float(a) * 1e6, float(b) * 1e12)
