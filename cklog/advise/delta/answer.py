"""What D would have been, and would have saved: the patent's method on the checkpoints that a history holds.

Beside what was done stand three schedules of the same checkpoints: the method's (`cklog.policies.delta_number`), a base
every time, and the best fixed D in hindsight (`cklog.advise.delta.hindsight`). Where a schedule takes a checkpoint in
the form that was recorded its price is the recorded one; the others are estimated (`cklog.advise.delta.history`), and
counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.delta.costs import BEST, METHOD, DeltaOutcome, Saving, outcomes_of, savings, summed
from cklog.advise.delta.hindsight import best_fixed
from cklog.advise.delta.history import Histories, blocks, histories, read_records, records_of_pieces
from cklog.arrays.types import Mask
from cklog.inputs.pieces import PiecesRead
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.verdict import Draft
from cklog.policies.delta_number import REASONS, BenefitMeasure, DeltaLimits, Schedule, scheduled
from cklog.runs.records.reading import RecordReader, subtasks_named

LISTED = 100
"""Changes of D that are listed per subtask: the newest; all of them are counted."""

_NAMED = 3
"""Subtasks that a finding names."""


@dataclass(frozen=True, slots=True)
class DeltaQuestion:
    """What `advise delta` is asked; `by` None: time where every history has durations, else size."""

    limits: DeltaLimits
    by: BenefitMeasure | None = None
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """D from a base checkpoint on, if it differs from before; `reason` as in `cklog.policies.delta_number.REASONS`."""

    checkpoint: int
    time: int | None
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class SubtaskDelta:
    """The advice for a subtask; where something is `missing` there is none.

    `number` is D after the newest checkpoint, with `tracking` of changes on unless it is 0. Of `left_out` checkpoints
    no price is known; `changes` counts those of D, the newest of which are `over_time`.
    """

    operator: str
    subtask: int
    checkpoints: int
    left_out: int
    missing: tuple[str, ...]
    number: int | None = None
    tracking: bool | None = None
    changes: int = 0
    over_time: tuple[Change, ...] = ()
    outcomes: tuple[DeltaOutcome, ...] = ()
    saved: tuple[Saving, ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """The same for the subtasks of an operator (`name`), or all that could be answered (`name` "")."""

    name: str
    subtasks: int
    checkpoints: int
    outcomes: tuple[DeltaOutcome, ...]
    saved: tuple[Saving, ...]


@dataclass(frozen=True, slots=True)
class DeltaAdvice:
    """The answer of `advise delta`; `by` is the measure of the benefit test and of the best D."""

    by: BenefitMeasure
    ratio: float
    max_delta: int | None
    max_restore_ms: float | None
    probe_after: int
    total: Sum
    operators: tuple[Sum, ...]
    subtasks: tuple[SubtaskDelta, ...]


def delta_of_records(reader: RecordReader, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
    """Give the advice for a run whose subtasks checkpoint one by one; the records, which may be many, are given up.

    Raises
    ------
    NotFound : there are no checkpoint records, or not the operator
    """
    records, findings, inputs = read_records(reader)
    return _advice(histories(records), asked, findings, inputs)


def delta_of_pieces(pieces: PiecesRead, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
    """Give the advice for a store of checkpoints, each operator's by its own number.

    Raises
    ------
    NotFound : there is no such operator
    """
    return _advice(histories(records_of_pieces(pieces.table)), asked, pieces.findings, pieces.inputs)


def _advice(
    found: Histories, asked: DeltaQuestion, findings: Iterable[Finding], inputs: Iterable[InputUsed]
) -> Draft[DeltaAdvice]:
    """The answer for all histories, or those of the operator asked for."""
    wanted = np.ones(len(found.subtasks), np.bool_)
    if asked.operator:
        named = set(subtasks_named(asked.operator, found.subtasks))
        wanted = np.array([subtask in named for subtask in found.subtasks])
    advice, told = advise_delta(found, wanted, asked)
    unanswered = not advice.total.subtasks
    return Draft("advise-delta", advice, [*findings, *told], tuple(inputs), indeterminate=unanswered)


def advise_delta(found: Histories, wanted: Mask, asked: DeltaQuestion) -> tuple[DeltaAdvice, list[Finding]]:
    """Follow the method along the histories of the wanted subtasks, shape (s,)."""
    by = asked.by or _measure(found, wanted)
    missing = _missing(found, by, asked.limits)
    usable = wanted & np.array([not words for words in missing], np.bool_)
    rows = {
        i: SubtaskDelta(*found.subtasks[i], *_counts(found, i), missing[i])
        for i in np.flatnonzero(wanted & ~usable).tolist()
    }
    for which, prices in blocks(found, usable):
        schedule = scheduled(prices, asked.limits, by)
        best = best_fixed(prices, asked.limits, by)
        outcomes = outcomes_of(prices, schedule, best)
        for column, i in enumerate(which.tolist()):
            rows[i] = _advised(found, i, schedule, column, [row[column] for row in outcomes])
    ordered = tuple(rows[i] for i in sorted(rows))
    answered = [row for row in ordered if row.outcomes]
    by_operator = itertools.groupby(answered, key=lambda row: row.operator)
    advice = DeltaAdvice(
        by=by,
        ratio=asked.limits.ratio,
        max_delta=asked.limits.max_delta,
        max_restore_ms=asked.limits.max_restore_ms,
        probe_after=asked.limits.probe_after,
        total=_sum("", answered),
        operators=tuple(_sum(name, list(group)) for name, group in by_operator),
        subtasks=ordered,
    )
    return advice, [
        *_lacking(ordered),
        *_left_out(ordered),
        *_over_bound(answered, asked.limits.max_restore_ms),
    ]


def _measure(found: Histories, wanted: Mask) -> BenefitMeasure:
    """Time, unless some history that has sizes has no durations."""
    return "size" if (wanted & found.known("size") & ~found.known("time")).any() else "time"


def _missing(found: Histories, by: BenefitMeasure, limits: DeltaLimits) -> list[tuple[str, ...]]:
    """What each subtask lacks for the question; the restore bound cannot be kept without durations."""
    missing = found.missing(by)
    if limits.max_restore_ms is None:
        return missing
    timed = found.known("time").tolist()
    return [words or (() if known else ("durations",)) for words, known in zip(missing, timed, strict=True)]


def _counts(found: Histories, i: int) -> tuple[int, int]:
    left_out = found.unmeasured[i] + found.older[i] + found.early[i]
    return int(found.first[i + 1] - found.first[i]), int(left_out)


def _advised(
    found: Histories, i: int, schedule: Schedule, column: int, outcomes: list[DeltaOutcome | None]
) -> SubtaskDelta:
    count, left_out = _counts(found, i)
    number = schedule.number[:count, column]
    bases = np.flatnonzero(number >= 0)
    changed = bases[np.diff(number[bases], prepend=-1) != 0]
    rows = found.first[i] + changed[-LISTED:]
    changes = zip(
        found.number[rows].tolist(),
        found.time[rows].tolist(),
        number[changed[-LISTED:]].tolist(),
        schedule.reason[changed[-LISTED:], column].tolist(),
        strict=True,
    )
    known = tuple(outcome for outcome in outcomes if outcome is not None)
    return SubtaskDelta(
        *found.subtasks[i],
        count,
        left_out,
        (),
        number=int(number[bases[-1]]),
        tracking=bool(number[bases[-1]] > 0),
        changes=len(changed) - 1,
        over_time=tuple(Change(n, t if t >= 0 else None, d, REASONS[why]) for n, t, d, why in changes),
        outcomes=known,
        saved=savings(known),
    )


def _sum(name: str, rows: Sequence[SubtaskDelta]) -> Sum:
    """Sums over subtasks; a schedule that some of them lack is left out."""
    by_schedule: dict[str, list[DeltaOutcome]] = {}
    for outcome in (outcome for row in rows for outcome in row.outcomes):
        by_schedule.setdefault(outcome.schedule, []).append(outcome)
    whole = [summed(schedule, parts) for schedule, parts in by_schedule.items() if len(parts) == len(rows)]
    return Sum(name, len(rows), sum(row.checkpoints for row in rows), tuple(whole), savings(whole))


def _lacking(rows: Sequence[SubtaskDelta]) -> Iterator[Finding]:
    """What histories lack for an answer, a finding for each thing."""
    for word in sorted({word for row in rows for word in row.missing}):
        lacking = [row for row in rows if word in row.missing]
        message = f"{_names(lacking)}: no {word} in the history, so nothing is said about D"
        yield Finding("incomplete-delta-history", "warning", word, message)


def _left_out(rows: Sequence[SubtaskDelta]) -> Iterator[Finding]:
    """Checkpoints that no price is known of."""
    some = [row for row in rows if row.left_out]
    if some:
        count = sum(row.left_out for row in some)
        message = (
            f"{_names(some)}: {count} checkpoint{'s' * (count > 1)} left out: without a size or duration, before the "
            "first base, or a delta on a checkpoint older than the one before"
        )
        yield Finding("unpriced-checkpoints", "warning", "checkpoints", message)


def _over_bound(rows: Sequence[SubtaskDelta], longest: float | None) -> Iterator[Finding]:
    """Subtasks that no D could have kept within the bound on restoring, in ms, and those that the method did not."""
    if longest is None:
        return
    bound = f"{longest / 1000:g} s"
    never = [row for row in rows if row.outcomes[-1].schedule != BEST]
    if never:
        message = f"{_names(never)}: even base checkpoints alone take longer to restore than {bound}: no D keeps that"
        yield Finding("no-setting", "error", "max-restore-time", message)
    over = [row for row in rows if row.outcomes[-1].schedule == BEST and _worst(row) > longest * (1 + 1e-9)]
    if over:
        message = (
            f"{_names(over)}: deltas grew after D was set, and a restore would have taken up to "
            f"{max(map(_worst, over)) / 1000:.3f} s, more than {bound}: the method goes by the deltas before"
        )
        yield Finding("restore-bound-broken", "warning", "max-restore-time", message)


def _worst(row: SubtaskDelta) -> float:
    """The longest time to restore in ms with the method."""
    return next(outcome.worst_restore_ms or 0.0 for outcome in row.outcomes if outcome.schedule == METHOD)


def _names(rows: Sequence[SubtaskDelta]) -> str:
    names = [str(Subtask(row.operator, row.subtask)) for row in rows[:_NAMED]]
    rest = len(rows) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")
