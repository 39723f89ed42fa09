"""The best D in hindsight: what every fixed D would have cost along a history, and the cheapest within the bounds.

A fixed D takes a base, D deltas, a base, and so on from the first checkpoint. Its cost is what its bases cost, and its
deltas with the tracking of their changes (`cklog.policies.delta_number.LOGGING`). It is within the bounds if each run
of deltas is: here the deltas themselves count, not their average.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cklog.arrays.types import Floats, Ints, Mask
from cklog.policies.delta_number import LOGGING, RESTORE, UNLIMITED, BenefitMeasure, DeltaLimits, Prices

_SLACK = 1e-9
"""Rounding of a sum that should equal its bound."""


def best_fixed(prices: Prices, limits: DeltaLimits, by: BenefitMeasure) -> Ints:
    """Return the cheapest D of each subtask, the smallest of several; -1 where every D breaks a bound. Shape (s,).

    Notes
    -----
    A D is tried on all subtasks at once, by the prices of one checkpoint in D + 1: O(n log n) for each of them. The
    run after the first base bounds D from above: a longer run than that one can be breaks its bound at once.
    """
    base, delta = prices.measure(by)
    all_deltas = (1 + LOGGING) * delta.sum(axis=0)
    bounds = list(_bounds(prices, limits))
    most = _longest_first(prices, limits, bounds)
    best, least = np.full(len(prices.count), -1), np.full(len(prices.count), np.inf)
    for number in range(int(most.max()) + 1):
        bases = slice(None, None, number + 1)
        cost = base[bases].sum(axis=0) + all_deltas - (1 + LOGGING) * delta[bases].sum(axis=0)
        better = (number <= most) & (cost < least * (1 - _SLACK)) & _within(bounds, number)
        best, least = np.where(better, number, best), np.where(better, cost, least)
    return best


Bound = tuple[Floats, Floats]
"""How much the deltas after each base may be in total, shape (n, s), and the running total of deltas, (n + 1, s)."""


def _bounds(prices: Prices, limits: DeltaLimits) -> Iterator[Bound]:
    if prices.base_bytes is not None and prices.delta_bytes is not None:
        yield limits.ratio * prices.base_bytes, _running(prices.delta_bytes)
    if limits.max_restore_ms is not None and prices.base_ms is not None and prices.delta_ms is not None:
        room = limits.max_restore_ms / RESTORE - prices.base_ms
        yield np.where(prices.taken, room, 0.0), _running(prices.delta_ms)


def _running(delta: Floats) -> Floats:
    return np.concatenate([np.zeros((1, delta.shape[1])), np.cumsum(delta, axis=0)])


def _longest_first(prices: Prices, limits: DeltaLimits, bounds: list[Bound]) -> Ints:
    """The longest run of deltas after the first checkpoint that is within every bound, -1 if none is. Shape (s,)."""
    rows = np.arange(len(prices.recorded))[:, None]
    longest = prices.count - 1
    for room, running in bounds:
        fine = _fits(running[1:] - running[1], room[0], running[-1])
        longest = np.minimum(longest, np.where(fine, rows, -1).max(axis=0))
    return longest if limits.max_delta is None else np.minimum(longest, min(limits.max_delta, UNLIMITED))


def _within(bounds: list[Bound], number: int) -> Mask | np.bool_:
    """Whether every run of a fixed D is within the bounds, shape (s,)."""
    fine: Mask | np.bool_ = np.True_
    for room, running in bounds:
        n = len(room)
        starts = np.arange(0, n, number + 1)
        ends = np.minimum(starts + number + 1, n)
        fine = fine & _fits(running[ends] - running[starts + 1], room[starts], running[-1]).all(axis=0)
    return fine


def _fits(total: Floats, room: Floats, scale: Floats) -> Mask:
    """Whether deltas fit into their bound, up to the rounding of a difference of sums as large as `scale`."""
    found: Mask = total <= room + _SLACK * np.abs(room) + 1e-14 * scale
    return found


def fixed(shape: tuple[int, ...], number: Ints) -> Mask:
    """Where a fixed D takes deltas, shape (n, s); everywhere but at the first checkpoint for a D as large as n."""
    delta: Mask = np.arange(shape[0])[:, None] % (number + 1) != 0
    return delta
