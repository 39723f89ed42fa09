"""The best D in hindsight: the fixed D that would have cost least along a history, within the bounds.

A fixed D takes a base, D deltas, a base, and so on from the first checkpoint. Its cost is what its bases cost, and its
deltas with the tracking of their changes (`cklog.policies.delta_number.LOGGING`). It is within the bounds if each run
of deltas is: here the deltas themselves count, not their average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

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
    bounds = list(_run_bounds(prices, limits))
    most = _longest_first_run(prices, limits, bounds)
    best, least = np.full(len(prices.count), -1), np.full(len(prices.count), np.inf)
    for number in range(int(most.max()) + 1):
        bases = slice(None, None, number + 1)
        cost = base[bases].sum(axis=0) + all_deltas - (1 + LOGGING) * delta[bases].sum(axis=0)
        better = (number <= most) & (cost < least * (1 - _SLACK)) & _is_within(bounds, number)
        best, least = np.where(better, number, best), np.where(better, cost, least)
    return best


def may_break_bounds(prices: Prices, limits: DeltaLimits, number: Ints) -> Mask:
    """Tell for which subtasks their fixed D, (s,), may break a bound although by the estimates it keeps it; (s,).

    It may if the checkpoints of another form than was recorded had cost what the dearest delta of the subtask did, or
    the cheaper of the bases before and after. -1 is no D, and breaks nothing.
    """
    wary = replace(
        prices,
        base_bytes=_cheaper_base(prices.base_bytes, prices.recorded, prices.taken),
        delta_bytes=_dearest_delta(prices.delta_bytes, prices.recorded),
        base_ms=_cheaper_base(prices.base_ms, prices.recorded, prices.taken),
        delta_ms=_dearest_delta(prices.delta_ms, prices.recorded),
    )
    bounds = list(_run_bounds(wary, limits))
    found = np.zeros(len(number), np.bool_)
    for d in np.unique(number[number > 0]).tolist():
        found |= (number == d) & ~_is_within(bounds, d)
    return found


def _cheaper_base(base: Floats | None, recorded: Mask, taken: Mask) -> Floats | None:
    """Replace estimated bases, which cost what the one before did, by the one after if that cost less; (n, s)."""
    if base is None:
        return None
    known = np.where(recorded | ~taken, np.inf, base)
    after = known.copy()
    for k in range(len(base) - 2, -1, -1):  # the nearest recorded base at or after each checkpoint
        after[k] = np.where(np.isinf(known[k]), after[k + 1], known[k])
    found: Floats = np.where(recorded, np.minimum(base, after), base)
    return found


def _dearest_delta(delta: Floats | None, recorded: Mask) -> Floats | None:
    """Replace estimated deltas by the dearest that was recorded of the subtask; (n, s)."""
    if delta is None:
        return None
    found: Floats = np.where(recorded, delta, np.maximum(delta, np.where(recorded, delta, 0.0).max(axis=0)))
    return found


class _RunBound(NamedTuple):
    """A bound on runs of deltas: how much those after each base may be in total, and the running total of deltas."""

    room: Floats  # (n, s)
    running: Floats  # (n + 1, s)


def _run_bounds(prices: Prices, limits: DeltaLimits) -> Iterator[_RunBound]:
    """Yield the bound on bytes, then the one on the time to restore, if there are any."""
    if prices.base_bytes is not None and prices.delta_bytes is not None:
        yield _RunBound(limits.ratio * prices.base_bytes, _running_total(prices.delta_bytes))
    if limits.max_restore_ms is not None and prices.base_ms is not None and prices.delta_ms is not None:
        room = limits.max_restore_ms / RESTORE - prices.base_ms
        yield _RunBound(np.where(prices.taken, room, 0.0), _running_total(prices.delta_ms))


def _running_total(delta: Floats) -> Floats:
    """Return the sum of the rows before each row, and of all: (n, s) → (n + 1, s)."""
    return np.concatenate([np.zeros((1, delta.shape[1])), np.cumsum(delta, axis=0)])


def _longest_first_run(prices: Prices, limits: DeltaLimits, bounds: list[_RunBound]) -> Ints:
    """Return the longest run of deltas after the first checkpoint that is within every bound, -1 if none is; (s,)."""
    rows = np.arange(len(prices.recorded))[:, None]
    longest = prices.count - 1
    for room, running in bounds:
        fine = _fits(running[1:] - running[1], room[0], running[-1])  # (n, s): a run of so many deltas
        longest = np.minimum(longest, np.where(fine, rows, -1).max(axis=0))
    return longest if limits.max_delta is None else np.minimum(longest, min(limits.max_delta, UNLIMITED))


def _is_within(bounds: list[_RunBound], number: int) -> Mask | np.bool_:
    """Tell of which subtasks every run of a fixed D is within the bounds, shape (s,)."""
    fine: Mask | np.bool_ = np.True_
    for room, running in bounds:
        n = len(room)
        starts = np.arange(0, n, number + 1)  # the bases
        ends = np.minimum(starts + number + 1, n)
        fine = fine & _fits(running[ends] - running[starts + 1], room[starts], running[-1]).all(axis=0)
    return fine


def _fits(total: Floats, room: Floats, scale: Floats) -> Mask:
    """Tell whether deltas fit into their bound, up to the rounding of a difference of sums as large as `scale`."""
    found: Mask = total <= room + _SLACK * np.abs(room) + 1e-14 * scale
    return found


def deltas_of_fixed(shape: tuple[int, ...], number: Ints) -> Mask:
    """Tell where a fixed D takes deltas, shape (n, s); `number` is each subtask's D, shape (s,).

    >>> deltas_of_fixed((4, 2), np.array([0, 2])).astype(int).tolist()
    [[0, 0], [0, 1], [0, 1], [0, 0]]
    """
    delta: Mask = np.arange(shape[0])[:, None] % (number + 1) != 0
    return delta
