"""What a schedule of base and delta checkpoints costs, and what the method's saves against others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.delta.hindsight import fixed
from cklog.arrays.types import Floats, Ints, Mask
from cklog.policies.delta_number import LOGGING, RESTORE, Prices, Schedule

RECORDED, METHOD, ALWAYS_BASE, BEST = "as recorded", "the method", "always base", "best fixed D"


@dataclass(frozen=True, slots=True)
class DeltaOutcome:
    """What a schedule costs. None: not known, or of several subtasks with a D each.

    `estimated` checkpoints are of another form than was recorded; `logging_ms` goes into tracking the changes for
    deltas; `worst_restore_ms` is the longest that a restore would have taken at any of its checkpoints.
    """

    schedule: str
    number: int | None
    bases: int
    deltas: int
    estimated: int
    bytes: int | None
    checkpoint_ms: float | None
    logging_ms: float | None
    worst_restore_ms: float | None


@dataclass(frozen=True, slots=True)
class Saving:
    """What the method takes less than another schedule; negative: more."""

    against: str
    bytes: int | None
    checkpoint_ms: float | None
    logging_ms: float | None


def outcomes_of(prices: Prices, schedule: Schedule, best: Ints) -> list[list[DeltaOutcome | None]]:
    """What each schedule costs each subtask of a block; None for a best D where every one breaks a bound."""
    shape = prices.recorded.shape
    nothing = np.full(shape[1], -1)
    rows: list[list[DeltaOutcome | None]] = [
        [*_costs(RECORDED, prices, prices.recorded, nothing)],
        [*_costs(METHOD, prices, schedule.delta, nothing)],
        [*_costs(ALWAYS_BASE, prices, np.zeros(shape, np.bool_), np.zeros(shape[1], np.int64))],
    ]
    fixed_best = _costs(BEST, prices, fixed(shape, np.maximum(best, 0)), best)
    return [*rows, [None if number < 0 else row for number, row in zip(best.tolist(), fixed_best, strict=True)]]


def _costs(name: str, prices: Prices, delta: Mask, number: Ints) -> list[DeltaOutcome]:
    """What a schedule, given by where it takes deltas, costs each subtask; `number` is its D, -1 for none."""
    delta = delta & prices.taken
    size = _chosen(prices.base_bytes, prices.delta_bytes, delta)
    ms = _chosen(prices.base_ms, prices.delta_ms, delta)
    deltas = delta.sum(axis=0)
    columns = (
        [None if d < 0 else d for d in number.tolist()],
        (prices.count - deltas).tolist(),
        deltas.tolist(),
        (delta != prices.recorded).sum(axis=0).tolist(),
        _unknown(deltas) if size is None else [round(total) for total in size.sum(axis=0).tolist()],
        _unknown(deltas) if ms is None else _rounded(ms.sum(axis=0)),
        _unknown(deltas) if ms is None else _rounded(LOGGING * np.where(delta, ms, 0.0).sum(axis=0)),
        _unknown(deltas) if ms is None else _rounded(_worst_restore(ms, delta)),
    )
    return [DeltaOutcome(name, *row) for row in zip(*columns, strict=True)]


def _chosen(base: Floats | None, delta: Floats | None, where: Mask) -> Floats | None:
    return None if base is None or delta is None else np.where(where, delta, base)


def _unknown(like: Ints) -> list[None]:
    return [None] * len(like)


def _rounded(ms: Floats) -> list[float]:
    found: list[float] = np.round(ms, 3).tolist()
    return found


def _worst_restore(ms: Floats, delta: Mask) -> Floats:
    """The longest time in ms to restore a checkpoint of each subtask: its base and the deltas up to it. Shape (s,)."""
    worst = run = np.zeros(ms.shape[1])
    for row, more in zip(ms, delta, strict=True):
        run = np.where(more, run, 0.0) + row
        worst = np.maximum(worst, run)
    return RESTORE * worst


def savings(outcomes: Sequence[DeltaOutcome]) -> tuple[Saving, ...]:
    method = next((outcome for outcome in outcomes if outcome.schedule == METHOD), None)
    return tuple(
        Saving(
            other.schedule,
            None if method.bytes is None or other.bytes is None else other.bytes - method.bytes,
            _less(method.checkpoint_ms, other.checkpoint_ms),
            _less(method.logging_ms, other.logging_ms),
        )
        for other in outcomes
        if method is not None and other is not method
    )


def _less(value: float | None, than: float | None) -> float | None:
    return None if value is None or than is None else round(than - value, 3)


def summed(schedule: str, parts: Sequence[DeltaOutcome]) -> DeltaOutcome:
    numbers = {part.number for part in parts}
    restores = [part.worst_restore_ms for part in parts]
    return DeltaOutcome(
        schedule,
        numbers.pop() if len(numbers) == 1 else None,
        sum(part.bases for part in parts),
        sum(part.deltas for part in parts),
        sum(part.estimated for part in parts),
        _total([part.bytes for part in parts]),
        _total_ms([part.checkpoint_ms for part in parts]),
        _total_ms([part.logging_ms for part in parts]),
        max((ms for ms in restores if ms is not None), default=None) if None not in restores else None,
    )


def _total(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _total_ms(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return round(sum(known), 3) if len(known) == len(parts) else None
