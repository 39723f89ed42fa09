"""How often to checkpoint, by what a checkpoint takes and how often a job fails: Young's and Daly's optimum."""

from __future__ import annotations

from math import sqrt


def young(checkpoint_s: float, between_failures_s: float) -> float:
    """Return the interval in seconds that loses the least time, to first order (Young, CACM 17(9), 1974).

    >>> young(0.5, 3600)
    60.0
    """
    return sqrt(2 * checkpoint_s * between_failures_s)


def daly(checkpoint_s: float, between_failures_s: float) -> float:
    """Return the interval in seconds of work that loses the least time (Daly, FGCS 22(3), 2006, equation 37).

    Where a checkpoint takes more than twice the mean time between failures, that time itself is the best.

    >>> round(daly(0.5, 3600), 3), daly(10, 4)
    (59.667, 4)
    """
    if checkpoint_s >= 2 * between_failures_s:
        return between_failures_s
    share = checkpoint_s / (2 * between_failures_s)
    return young(checkpoint_s, between_failures_s) * (1 + sqrt(share) / 3 + share / 9) - checkpoint_s
