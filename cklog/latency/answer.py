"""What is normal, the way back to it after a failure, and latencies in steps with checkpoints and without.

*Normal* is the median of the p99 of the steps before the failure. Latency is *back to normal* in the first of several
steps in a row, none of them empty, whose p99 is at most a factor times that, or a millisecond above it: logs tell whole
milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.order import worst_of_stretches
from cklog.arrays.types import Ints, Mask
from cklog.errors import NotFound
from cklog.latency.histogram import FURTHEST, Latencies, latencies_of, median
from cklog.latency.model import BackToNormal, CheckpointEffect, Latency, LatencyQuestion, LatencyStep, Marks
from cklog.model.findings import Finding, InputUsed
from cklog.model.verdict import Draft
from cklog.model.wording import many, utc

_LISTED = 10_000
"""Steps in an answer; of a longer log the worst one of each stretch."""

_FEW = 100
"""Records of a step below which its p99 is its highest latency."""

_STANDS_OUT = 2
"""The longest silence is a failure if it is so many times as long as any other."""

KnownBy = Literal["--at", "job.json", "silence"]


class Measured(NamedTuple):
    """Latencies as a scan counted them (`COUNTS`), and of what: as in `Latency`."""

    counts: pa.Table
    of: Literal["results", "messages"]
    sinks: tuple[str, ...]
    end_to_end: bool
    findings: Sequence[Finding]
    inputs: Sequence[InputUsed]


def latency_answer(measured: Measured, marks: Marks, asked: LatencyQuestion) -> Draft[Latency]:
    """Say how latency went, what a failure and checkpoints did to it, and when it was back to normal.

    Raises
    ------
    NotFound : no record has both times
    """
    found = latencies_of(measured.counts)
    if not len(found.start):
        raise NotFound("no record has both of its times", "times are whole numbers (ms since the epoch), or timestamps")
    p99, highest = found.percentiles(99), found.highest()
    failed_at, known_by = _failure(found, marks, asked)
    failure = None if failed_at is None else _way_back(found, p99, failed_at, known_by, asked)
    when = np.sort(marks.checkpoints[np.abs(marks.checkpoints) <= FURTHEST])
    taken = np.floor_divide(when, asked.step_ms) * asked.step_ms
    rows = worst_of_stretches(p99, _LISTED)
    every = np.ones(len(found.start), np.bool_)
    checkpoints, p50, records = _checkpoints_in(found.start, taken), found.percentiles(50), found.per_step()
    result = Latency(
        of=measured.of,
        sinks=measured.sinks,
        end_to_end=measured.end_to_end,
        step_ms=asked.step_ms,
        from_=int(found.first[0]),
        to=int(found.last[-1]),
        records=int(records.sum()),
        p50=found.pooled(every, 50),
        p99=found.pooled(every, 99),
        max=int(highest.max()),
        failure=failure,
        around_checkpoints=_around_checkpoints(found, p99, taken, failure, asked.step_ms),
        step_count=len(found.start),
        steps=tuple(
            LatencyStep(*map(int, row))
            for row in zip(
                *(column[rows] for column in (found.start, records, p50, p99, highest, checkpoints)), strict=True
            )
        ),
    )
    findings = [*measured.findings, *marks.findings, *_findings(found, result, len(taken) > 0)]
    known = [used for used in marks.inputs if used not in measured.inputs]
    return Draft("latency", result, findings, [*measured.inputs, *known])


def _failure(found: Latencies, marks: Marks, asked: LatencyQuestion) -> tuple[int | None, KnownBy]:
    """Return when it failed, and who says so; None: nobody does, and no silence of the sink stands out."""
    if asked.failed_at is not None:
        return asked.failed_at, "--at"
    if marks.failed_at is not None:
        return marks.failed_at, "job.json"
    silences = _silences(found, asked.step_ms)
    longest = int(np.argmax(silences)) if len(silences) else 0
    others = np.delete(silences, longest) if len(silences) else silences
    if not len(silences) or silences[longest] < _STANDS_OUT * max(int(others.max(initial=0)), asked.step_ms):
        return None, "silence"
    return int(found.last[longest]), "silence"


def _silences(found: Latencies, step_ms: int) -> Ints:
    """Return the time from each step's last record to the next step's first one, 0 where no step between is empty."""
    empty = np.diff(found.start) > step_ms
    return np.where(empty, found.first[1:] - found.last[:-1], 0)


def _way_back(found: Latencies, p99: Ints, failed_at: int, known_by: KnownBy, asked: LatencyQuestion) -> BackToNormal:
    """Follow the steps from the failure on; `p99` of each step, shape (s,)."""
    before = p99[found.start + asked.step_ms <= failed_at]
    normal = median(before) if len(before) else None
    limit = None if normal is None else normal + max(_excess(asked.factor, normal), 1)
    own = int(np.searchsorted(found.start + asked.step_ms, failed_at, "right"))  # the step of the failure, or the next
    after = int(np.searchsorted(found.start, failed_at))
    back = None if limit is None else _first_normal(found.start, p99 <= limit, after, asked)
    end = len(p99) if back is None else back
    worst = own + int(np.argmax(p99[own:end])) if own < end else None
    silences = (_silences(found, asked.step_ms) * (found.first[1:] > failed_at))[:end]
    later = 0 if back is None or limit is None else int(np.count_nonzero(p99[back:] > limit))
    return BackToNormal(
        failed_at=failed_at,
        known_by=known_by,
        normal_p99=normal,
        limit=limit,
        silent_ms=int(silences.max(initial=0)),
        worst_p99=None if worst is None else int(p99[worst]),
        worst_at=None if worst is None else int(found.start[worst]),
        back_at=None if back is None else int(found.start[back]),
        time_to_normal_ms=None if back is None else int(found.start[back]) - failed_at,
        steps_above_later=later,
    )


def _excess(factor: float, normal: int) -> int:
    """Return what a p99 may be above the normal one, rounded down; clocks that differ can make that negative."""
    return math.floor((Fraction(str(factor)) - 1) * abs(normal))


def _first_normal(start: Ints, normal: Mask, after: int, asked: LatencyQuestion) -> int | None:
    """Return the first step, from `after` on, that begins `asked.steps` normal ones without an empty one among them."""
    if len(start) - after < asked.steps:
        return None
    so_far = np.append(0, np.cumsum(normal))
    first = np.arange(after, len(start) - asked.steps + 1)
    last = first + asked.steps - 1
    whole = (so_far[last + 1] - so_far[first] == asked.steps) & (
        start[last] - start[first] == (asked.steps - 1) * asked.step_ms
    )
    return int(first[whole][0]) if whole.any() else None


def _checkpoints_in(start: Ints, taken: Ints) -> Ints:
    """Return how many checkpoints were taken in each step; `taken` are the beginnings of their steps, rising."""
    return np.searchsorted(taken, start, "right") - np.searchsorted(taken, start)


def _around_checkpoints(
    found: Latencies, p99: Ints, taken: Ints, failure: BackToNormal | None, step_ms: int
) -> tuple[CheckpointEffect, ...]:
    """Compare the steps in which checkpoints were taken with those after them and with all others."""
    if not len(taken):
        return ()
    calm = np.ones(len(found.start), np.bool_)
    if failure is not None:
        until = np.iinfo(np.int64).max if failure.back_at is None else failure.back_at
        calm = (found.start + step_ms <= failure.failed_at) | (found.start >= until)
    with_one, behind_one = np.isin(found.start, taken), np.isin(found.start - step_ms, taken)
    groups: tuple[tuple[Literal["with a checkpoint", "the step after", "others"], Mask], ...] = (
        ("with a checkpoint", calm & with_one),
        ("the step after", calm & behind_one & ~with_one),
        ("others", calm & ~with_one & ~behind_one),
    )
    records, highest = found.per_step(), found.highest()
    return tuple(
        CheckpointEffect(
            steps_are=name,
            steps=int(np.count_nonzero(steps)),
            records=int(records[steps].sum()),
            p50=found.pooled(steps, 50),
            p99=found.pooled(steps, 99),
            max=int(highest[steps].max()),
            median_p99=median(p99[steps]),
        )
        for name, steps in groups
        if steps.any()
    )


def _findings(found: Latencies, result: Latency, checkpoints: bool) -> list[Finding]:
    """Say what the latencies, the normal ones and the way back do not tell, and why."""
    told = []
    below = found.latency < 0
    if below.any():
        message = (
            f"{many(int(found.records[below].sum()), 'record', 'were', grouped=True)} at the sink before coming into "
            f"being, by up to {-int(found.latency.min()):,} ms: the clocks differ, and each latency may be that wrong"
        )
        told.append(Finding("negative-latencies", "warning", "latency", message))
    if median(found.per_step()) < _FEW:
        few = median(found.per_step())
        message = (
            f"half of the steps of {result.step_ms:,} ms have {many(few, 'record')} or fewer: of fewer than {_FEW} "
            f"the p99 is the highest; a longer --step tells more"
        )
        told.append(Finding("few-records", "info", "latency", message))
    if not checkpoints:
        message = "no record tells when a checkpoint was taken: what checkpoints do to latency is not known"
        told.append(Finding("no-checkpoint-times", "info", "checkpoints", message))
    return told + _findings_of_failure(found, result.failure)


def _findings_of_failure(found: Latencies, failure: BackToNormal | None) -> list[Finding]:
    if failure is None:
        message = "nobody says when the job failed, and no silence of the sink stands out: --at TIME says it"
        return [Finding("no-failure-time", "info", "failure", message)]
    told = []
    if failure.known_by == "silence":
        message = (
            f"nobody says when the job failed: taken is the sink's longest silence, {failure.silent_ms / 1000:,.3f} s "
            f"from {utc(failure.failed_at)} on; --at TIME says better"
        )
        told.append(Finding("failure-by-silence", "info", "failure", message))
    if failure.normal_p99 is None:
        message = f"no step lies before the failure at {utc(failure.failed_at)}: what was normal is not known"
        told.append(Finding("no-normal-latency", "warning", "failure", message))
    elif failure.back_at is None:
        last = int(found.last[-1])
        seen = f"the last record is of {utc(last)}, {(last - failure.failed_at) / 1000:,.3f} s after it"
        message = f"latency is not seen back at normal after the failure at {utc(failure.failed_at)}: {seen}"
        if last <= failure.failed_at:
            message = f"no record is later than the failure at {utc(failure.failed_at)}: the way back is not in the log"
        told.append(Finding("not-back-to-normal", "warning", "failure", message))
    return told
