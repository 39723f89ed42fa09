"""Costs of schedules of base and delta checkpoints, and what the method saves against the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.delta.hindsight import deltas_of_fixed
from cklog.arrays.types import Floats, Ints, Mask
from cklog.policies.delta_number import LOGGING, RESTORE, Prices, Schedule

RECORDED, METHOD, ALWAYS_BASE, BEST = "as recorded", "the method", "always base", "best fixed D"


@dataclass(frozen=True, slots=True)
class DeltaOutcome:
    """What a schedule costs one subtask or several. None: not known.

    Attributes
    ----------
    number : its D, if it has one, and one for all subtasks
    bases, deltas : how many checkpoints it takes in each form
    estimated : how many of them are of another form than was recorded, so that their price is an estimate
    bytes, checkpoint_ms : size and duration of all checkpoints
    logging_ms : what tracking the changes for deltas takes in addition
    worst_restore_ms : the longest that a restore would have taken at any of the checkpoints
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
    """What the method takes less than another schedule; negative: more. None: not known."""

    against: str
    bytes: int | None
    checkpoint_ms: float | None
    logging_ms: float | None


def outcomes_of(prices: Prices, schedule: Schedule, best: Ints) -> list[list[DeltaOutcome | None]]:
    """Return what each schedule costs each of the s subtasks of a block: a list of s outcomes per schedule.

    `best`, (s,), is each subtask's best fixed D, -1 where every D breaks a bound: there is no such outcome then.
    """
    shape = prices.recorded.shape
    nothing = np.full(shape[1], -1)
    rows: list[list[DeltaOutcome | None]] = [
        [*_costs_of(RECORDED, prices, prices.recorded, nothing)],
        [*_costs_of(METHOD, prices, schedule.delta, nothing)],
        [*_costs_of(ALWAYS_BASE, prices, np.zeros(shape, np.bool_), np.zeros(shape[1], np.int64))],
    ]
    fixed_best = _costs_of(BEST, prices, deltas_of_fixed(shape, np.maximum(best, 0)), best)
    return [*rows, [None if number < 0 else row for number, row in zip(best.tolist(), fixed_best, strict=True)]]


def _costs_of(name: str, prices: Prices, delta: Mask, number: Ints) -> list[DeltaOutcome]:
    """Return what a schedule, given by where it takes deltas, (n, s), costs each subtask.

    `number`, (s,), is the schedule's D, -1 for none.
    """
    delta = delta & prices.taken
    size = _paid_prices(prices.base_bytes, prices.delta_bytes, delta)
    ms = _paid_prices(prices.base_ms, prices.delta_ms, delta)
    deltas = delta.sum(axis=0)
    unknown: list[None] = [None] * len(deltas)
    columns = {
        "number": [None if d < 0 else d for d in number.tolist()],
        "bases": (prices.count - deltas).tolist(),
        "deltas": deltas.tolist(),
        "estimated": (delta != prices.recorded).sum(axis=0).tolist(),
        "bytes": unknown if size is None else [round(total) for total in size.sum(axis=0).tolist()],
        "checkpoint_ms": unknown if ms is None else _rounded_ms(ms.sum(axis=0)),
        "logging_ms": unknown if ms is None else _rounded_ms(LOGGING * np.where(delta, ms, 0.0).sum(axis=0)),
        "worst_restore_ms": unknown if ms is None else _rounded_ms(_worst_restore_ms(ms, delta)),
    }
    rows = zip(*columns.values(), strict=True)
    return [DeltaOutcome(schedule=name, **dict(zip(columns, row, strict=True))) for row in rows]


def _paid_prices(base: Floats | None, delta: Floats | None, where: Mask) -> Floats | None:
    """Return the price of each checkpoint in the form it is taken in, (n, s); None without the measure."""
    return None if base is None or delta is None else np.where(where, delta, base)


def _rounded_ms(ms: Floats) -> list[float]:
    found: list[float] = np.round(ms, 3).tolist()
    return found


def _worst_restore_ms(ms: Floats, delta: Mask) -> Floats:
    """Return the longest time in ms to restore any checkpoint of each subtask, (s,): its base and the deltas up to it.

    `ms` and `delta` have shape (n, s). E.g. a base of 10 ms, deltas of 2 and 3, a base of 12 → 1.2 * 15.
    """
    worst = run = np.zeros(ms.shape[1])
    for row, more in zip(ms, delta, strict=True):
        run = np.where(more, run, 0.0) + row
        worst = np.maximum(worst, run)
    return RESTORE * worst


def savings(outcomes: Sequence[DeltaOutcome]) -> tuple[Saving, ...]:
    """Compare the method with each other schedule, in their order; nothing without an outcome of the method."""
    method = next((outcome for outcome in outcomes if outcome.schedule == METHOD), None)
    if method is None:
        return ()
    return tuple(
        Saving(
            against=other.schedule,
            bytes=None if method.bytes is None or other.bytes is None else other.bytes - method.bytes,
            checkpoint_ms=_less_ms(method.checkpoint_ms, other.checkpoint_ms),
            logging_ms=_less_ms(method.logging_ms, other.logging_ms),
        )
        for other in outcomes
        if other is not method
    )


def _less_ms(value: float | None, than: float | None) -> float | None:
    return None if value is None or than is None else round(than - value, 3)


def summed(schedule: str, parts: Sequence[DeltaOutcome]) -> DeltaOutcome:
    """Sum up what a schedule costs several subtasks; what one of them does not know is not known of all."""
    numbers = {part.number for part in parts}
    restores = [part.worst_restore_ms for part in parts]
    return DeltaOutcome(
        schedule=schedule,
        number=numbers.pop() if len(numbers) == 1 else None,
        bases=sum(part.bases for part in parts),
        deltas=sum(part.deltas for part in parts),
        estimated=sum(part.estimated for part in parts),
        bytes=_total_bytes([part.bytes for part in parts]),
        checkpoint_ms=_total_ms([part.checkpoint_ms for part in parts]),
        logging_ms=_total_ms([part.logging_ms for part in parts]),
        worst_restore_ms=max((ms for ms in restores if ms is not None), default=None) if None not in restores else None,
    )


def _total_bytes(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _total_ms(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return round(sum(known), 3) if len(known) == len(parts) else None
