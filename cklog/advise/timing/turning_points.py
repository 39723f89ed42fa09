"""Turning points of state sizes, dynamic HAUs, and the threshold of alert mode (Meteor Shower, ICDE 2012, III-C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.timing.state_sizes import Polyline, Sizes, total
from cklog.arrays.types import Floats, Ints, Mask

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
