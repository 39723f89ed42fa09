"""The answer of `advise delta`: what D the patent's method would have set along a history, and what it would save.

What was done is compared with three other schedules of the same checkpoints: the method's
(`cklog.policies.delta_number`), a base every time, and the best fixed D in hindsight (`cklog.advise.delta.hindsight`).
Where a schedule takes a checkpoint in the form that was recorded its price is the recorded one; the other prices are
estimated (`cklog.advise.delta.history`), and an outcome says how many these are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cklog.advise.delta.costs import BEST, METHOD, DeltaOutcome, Saving, outcomes_of, savings, summed
from cklog.advise.delta.hindsight import best_fixed, may_break_bounds
from cklog.advise.delta.history import Histories, blocks, histories, read_records, records_of_pieces
from cklog.arrays.types import Mask
from cklog.inputs.pieces import PiecesRead
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.verdict import Draft
from cklog.model.wording import first_few
from cklog.policies.delta_number import REASONS, BenefitMeasure, DeltaLimits, Schedule, scheduled
from cklog.runs.records.reading import RecordReader, subtasks_named

LISTED = 100
"""Changes of D that are listed per subtask: the newest; all of them are counted."""

_NAMED = 3
"""Subtasks that a finding names."""


@dataclass(frozen=True, slots=True)
class DeltaQuestion:
    """What `advise delta` is asked.

    `by` is the measure of the benefit test; None: time where every history has durations, else size. `operator` is OP
    or OP/SUB, "" for all.
    """

    limits: DeltaLimits
    by: BenefitMeasure | None = None
    operator: str = ""


@dataclass(frozen=True, slots=True)
class NumberChange:
    """The base checkpoint at which D changed, when (ms), to what, and why.

    `reason` is one of `cklog.policies.delta_number.REASONS`.
    """

    checkpoint: int
    time: int | None
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class SubtaskDelta:
    """The advice for a subtask; where something is `missing` there is none.

    Attributes
    ----------
    checkpoints, left_out : how many the advice rests on, and how many have no known price
    missing : what the history lacks, in words
    number : D after the newest checkpoint
    tracking : whether changes are tracked then, which they are unless D is 0
    changes : how often D changed
    over_time : the newest of these changes
    outcomes : what each schedule costs; the best fixed D last, if there is one
    saved : what the method saves against each other schedule, first against what was recorded
    """

    operator: str
    subtask: int
    checkpoints: int
    left_out: int
    missing: tuple[str, ...]
    number: int | None = None
    tracking: bool | None = None
    changes: int = 0
    over_time: tuple[NumberChange, ...] = ()
    outcomes: tuple[DeltaOutcome, ...] = ()
    saved: tuple[Saving, ...] = ()

    def outcome_of(self, schedule: str) -> DeltaOutcome | None:
        """Return what a schedule costs, None if there is no such outcome."""
        return next((outcome for outcome in self.outcomes if outcome.schedule == schedule), None)


@dataclass(frozen=True, slots=True)
class DeltaTotal:
    """Outcomes summed up over the subtasks of the operator `name`, or over all that have an answer (`name` "")."""

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
    total: DeltaTotal
    operators: tuple[DeltaTotal, ...]
    subtasks: tuple[SubtaskDelta, ...]


def delta_of_records(reader: RecordReader, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
    """Give the advice for a run whose subtasks checkpoint one by one; the records, which may be many, are given up.

    Raises
    ------
    NotFound : there are no checkpoint records, or not the operator
    """
    records, findings, inputs = read_records(reader)
    return _draft_of(histories(records), asked, findings, inputs)


def delta_of_pieces(pieces: PiecesRead, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
    """Give the advice for a store of checkpoints, each operator's by its own number.

    Raises
    ------
    NotFound : there is no such operator
    """
    return _draft_of(histories(records_of_pieces(pieces.table)), asked, pieces.findings, pieces.inputs)


def _draft_of(
    found: Histories, asked: DeltaQuestion, findings: Iterable[Finding], inputs: Iterable[InputUsed]
) -> Draft[DeltaAdvice]:
    """Draft the answer for all histories, or those of the operator asked for."""
    wanted = np.ones(len(found.subtasks), np.bool_)
    if asked.operator:
        named = set(subtasks_named(asked.operator, found.subtasks))
        wanted = np.array([subtask in named for subtask in found.subtasks])
    advice, about = advise_delta(found, wanted, asked)
    unanswered = not advice.total.subtasks
    return Draft("advise-delta", advice, [*findings, *about], tuple(inputs), indeterminate=unanswered)


def advise_delta(found: Histories, wanted: Mask, asked: DeltaQuestion) -> tuple[DeltaAdvice, list[Finding]]:
    """Follow the method along the histories of the `wanted` subtasks, shape (s,)."""
    by = asked.by or _default_measure(found, wanted)
    missing = _missing_words(found, by, asked.limits)
    usable = wanted & np.array([not words for words in missing], np.bool_)
    rows = {i: _unanswered(found, i, missing[i]) for i in np.flatnonzero(wanted & ~usable).tolist()}
    doubtful: set[int] = set()
    for which, prices in blocks(found, usable):
        schedule = scheduled(prices, asked.limits, by)
        best = best_fixed(prices, asked.limits, by)
        doubtful.update(which[may_break_bounds(prices, asked.limits, best)].tolist())
        outcomes = outcomes_of(prices, schedule, best)
        for column, i in enumerate(which.tolist()):
            rows[i] = _answered(found, i, schedule, column, [row[column] for row in outcomes])
    ordered = tuple(rows[i] for i in sorted(rows))
    uncertain = [rows[i] for i in sorted(doubtful)]
    answered = [row for row in ordered if row.outcomes]
    by_operator = itertools.groupby(answered, key=lambda row: row.operator)
    advice = DeltaAdvice(
        by=by,
        ratio=asked.limits.ratio,
        max_delta=asked.limits.max_delta,
        max_restore_ms=asked.limits.max_restore_ms,
        probe_after=asked.limits.probe_after,
        total=_total_over("", answered),
        operators=tuple(_total_over(name, list(group)) for name, group in by_operator),
        subtasks=ordered,
    )
    return advice, [
        *_incomplete_histories(ordered),
        *_unpriced_checkpoints(ordered),
        *_estimated_bounds(answered, uncertain),
        *_broken_restore_bounds(answered, asked.limits.max_restore_ms),
    ]


def _default_measure(found: Histories, wanted: Mask) -> BenefitMeasure:
    """Choose time, unless some history that has sizes has no durations."""
    return "size" if (wanted & found.known("size") & ~found.known("time")).any() else "time"


def _missing_words(found: Histories, by: BenefitMeasure, limits: DeltaLimits) -> list[tuple[str, ...]]:
    """Say what each subtask lacks for the question; the restore bound cannot be kept without durations."""
    missing = found.missing(by)
    if limits.max_restore_ms is None:
        return missing
    timed = found.known("time").tolist()
    return [words or (() if known else ("durations",)) for words, known in zip(missing, timed, strict=True)]


def _checkpoint_counts(found: Histories, i: int) -> tuple[int, int]:
    """Count the checkpoints of a subtask that have prices, and those that were left out."""
    left_out = found.unmeasured[i] + found.older[i] + found.early[i]
    return int(found.first[i + 1] - found.first[i]), int(left_out)


def _unanswered(found: Histories, i: int, missing: tuple[str, ...]) -> SubtaskDelta:
    subtask, (checkpoints, left_out) = found.subtasks[i], _checkpoint_counts(found, i)
    return SubtaskDelta(
        operator=subtask.operator,
        subtask=subtask.subtask,
        checkpoints=checkpoints,
        left_out=left_out,
        missing=missing,
    )


def _answered(
    found: Histories, i: int, schedule: Schedule, column: int, outcomes: list[DeltaOutcome | None]
) -> SubtaskDelta:
    """Return the advice for subtask `i`, which is `column` of a schedule and of its block."""
    subtask, (count, left_out) = found.subtasks[i], _checkpoint_counts(found, i)
    number = schedule.number[:count, column]
    bases = np.flatnonzero(number >= 0)
    changed = bases[np.diff(number[bases], prepend=-1) != 0]  # the first base, and those at which D differs from before
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
        operator=subtask.operator,
        subtask=subtask.subtask,
        checkpoints=count,
        left_out=left_out,
        missing=(),
        number=int(number[bases[-1]]),
        tracking=bool(number[bases[-1]] > 0),
        changes=len(changed) - 1,
        over_time=tuple(NumberChange(n, t if t >= 0 else None, d, REASONS[why]) for n, t, d, why in changes),
        outcomes=known,
        saved=savings(known),
    )


def _total_over(name: str, rows: Sequence[SubtaskDelta]) -> DeltaTotal:
    """Sum up over subtasks; a schedule that some of them lack is left out."""
    by_schedule: dict[str, list[DeltaOutcome]] = {}
    for row in rows:
        for outcome in row.outcomes:
            by_schedule.setdefault(outcome.schedule, []).append(outcome)
    whole = [summed(schedule, parts) for schedule, parts in by_schedule.items() if len(parts) == len(rows)]
    return DeltaTotal(
        name=name,
        subtasks=len(rows),
        checkpoints=sum(row.checkpoints for row in rows),
        outcomes=tuple(whole),
        saved=savings(whole),
    )


def _incomplete_histories(rows: Sequence[SubtaskDelta]) -> Iterator[Finding]:
    """Say what histories lack for an answer, in a finding for each thing."""
    for word in sorted({word for row in rows for word in row.missing}):
        lacking = [row for row in rows if word in row.missing]
        message = f"{_few_names(lacking)}: no {word} in the history, so nothing is said about D"
        yield Finding("incomplete-delta-history", "warning", word, message)


def _unpriced_checkpoints(rows: Sequence[SubtaskDelta]) -> Iterator[Finding]:
    """Say how many checkpoints have no known price."""
    some = [row for row in rows if row.left_out]
    if some:
        count = sum(row.left_out for row in some)
        message = (
            f"{_few_names(some)}: {count} checkpoint{'s' * (count > 1)} left out: without a size or duration, before "
            "the first base, or a delta on a checkpoint older than the one before"
        )
        yield Finding("unpriced-checkpoints", "warning", "checkpoints", message)


def _estimated_bounds(rows: Sequence[SubtaskDelta], doubtful: Sequence[SubtaskDelta]) -> Iterator[Finding]:
    """Say which best fixed D keeps its bounds by estimates only, and of which (`doubtful`) that may well be wrong."""
    if doubtful:
        message = (
            f"{_few_names(doubtful)}: the best fixed D keeps its bounds by estimates of what was taken in the other "
            "form. Had those deltas been as large as the largest that was recorded, or those bases as small as the "
            "next one, it would have broken them: take a smaller D, or try it and ask again"
        )
        yield Finding("estimated-bound", "warning", "best fixed D", message)
    best = [(row, row.outcome_of(BEST)) for row in rows if row not in doubtful]
    rest = [row for row, outcome in best if outcome is not None and outcome.number and outcome.estimated]
    if rest:
        message = f"{_few_names(rest)}: the best fixed D keeps its bounds by estimates: part of it was never taken"
        yield Finding("estimated-bound", "info", "best fixed D", message)


def _broken_restore_bounds(rows: Sequence[SubtaskDelta], longest: float | None) -> Iterator[Finding]:
    """Name subtasks that no D could have kept within the bound on restoring (ms), and those that the method did not."""
    if longest is None:
        return
    bound = f"{longest / 1000:g} s"
    never = [row for row in rows if row.outcome_of(BEST) is None]
    if never:
        message = (
            f"{_few_names(never)}: even base checkpoints alone take longer to restore than {bound}: no D keeps that"
        )
        yield Finding("no-setting", "error", "max-restore-time", message, effect="none")
    over = [row for row in rows if row.outcome_of(BEST) and _worst_restore_ms(row) > longest * (1 + 1e-9)]
    if over:
        message = (
            f"{_few_names(over)}: deltas grew after D was set, and a restore would have taken up to "
            f"{max(map(_worst_restore_ms, over)) / 1000:.3f} s, more than {bound}: the method goes by the deltas before"
        )
        yield Finding("restore-bound-broken", "warning", "max-restore-time", message)


def _worst_restore_ms(row: SubtaskDelta) -> float:
    """Return the longest time to restore with the method."""
    method = row.outcome_of(METHOD)
    return method.worst_restore_ms or 0.0 if method else 0.0


def _few_names(rows: Sequence[SubtaskDelta]) -> str:
    return first_few([Subtask(row.operator, row.subtask) for row in rows], _NAMED)
