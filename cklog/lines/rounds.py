"""Coordinated rounds: which are complete, which straggled, and the line that each one is.

A round is complete when every subtask of the job has a usable checkpoint of it. Its checkpoints are then a line; of
aligned checkpoints a consistent one without a message in flight, which is checked all the same (CheckMate, ICDE
2024, section III-A).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.errors import CorruptInput
from cklog.history.arrays import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import MOST_WATERMARKS, UNBOUNDED, BuiltHistory
from cklog.lines.checkpoint_sets import owners
from cklog.lines.fixpoint import NoConsistentLine, sent_limit
from cklog.model.findings import Finding
from cklog.model.lines import Round
from cklog.model.verdict import LOSSES

STRAGGLING = 2
"""A complete round straggles if it takes longer than this many times the median of the complete ones."""


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRounds:
    """The rounds of a history, in order.

    Attributes
    ----------
    number : shape (r,)
    line : checkpoint index of each subtask in each round, -1 where it has none, shape (r, n)
    """

    number: Ints
    line: Ints

    @property
    def complete(self) -> Ints:
        """The places of complete rounds."""
        return np.flatnonzero((self.line >= 0).all(axis=1))


def rounds_of(records: CheckpointRecords, built: BuiltHistory) -> HistoryRounds:
    """Return the rounds that records of kind coordinated belong to; without a `round` their number is it.

    Of several checkpoints of a subtask in one round the first is taken: it is there as long as any of them.
    """
    history, number = built.history, round_numbers(records)
    here = np.flatnonzero((built.row >= 0) & (np.append(number, -1)[built.row] >= 0))
    of_row = number[built.row[here]] if len(here) else here
    owner = owners(history)[here]
    numbers = np.unique(number[number >= 0])  # of records, so that a round whose checkpoints are all unusable is seen
    if len(numbers) * len(history.subtasks) > MOST_WATERMARKS:
        message = f"{len(numbers)} coordinated rounds of {len(history.subtasks)} subtasks do not fit"
        raise CorruptInput(message, "analyse a part of the history: move old checkpoints out of a copy")
    line = np.full((len(numbers), len(history.subtasks)), -1)
    place = np.searchsorted(numbers, of_row)
    _, first = np.unique(place * len(history.subtasks) + owner, return_index=True)
    line[place[first], owner[first]] = (here - history.first[owner])[first]
    return HistoryRounds(numbers, line)


def round_numbers(records: CheckpointRecords) -> Ints:
    """Return the round of each record, -1 where it is not coordinated."""
    kind = records.table["kind"]
    kind = kind.cast(pa.string()) if pa.types.is_dictionary(kind.type) else kind
    coordinated = pc.fill_null(pc.equal(kind, "coordinated"), False).to_numpy(zero_copy_only=False)
    stated = pc.fill_null(records.table["round"], -1).to_numpy()
    numbers: Ints = np.where(coordinated, np.where(stated < 0, records.number, stated), -1)
    return numbers


def unknown_subtasks(findings: Iterable[Finding], manifest: Mapping[str, Any]) -> list[Finding]:
    """That a round may only look complete: records are lost, and no manifest says who should be in it."""
    lost = [f for f in findings if f.id in LOSSES and f.severity == "error"]
    if not lost or manifest.get("operators"):
        return []
    message = (
        "records are lost and no job.json names the operators: a round may lack a subtask that nothing here names. "
        "Give a job.json with all operators, or check the rounds by hand"
    )
    return [Finding("unknown-subtasks", "error", "rounds", message)]


def round_line(history: History, rounds: HistoryRounds) -> tuple[Ints, list[Finding], tuple[str, ...]]:
    """Return the last complete round as a line, or the initial states; with findings and notes on later rounds.

    A complete round that is not consistent is a finding, and the round before it is taken.

    Raises
    ------
    NoConsistentLine : no round can be taken, and initial states contradict each other
    """
    place, findings = last_round(history, rounds)
    notes = tuple(_notes(history, rounds, place))
    if place >= 0:
        return rounds.line[place], findings, notes
    initial = np.zeros(len(history.subtasks), np.int64)
    channel = _orphaned(history, initial)
    if len(channel):
        raise NoConsistentLine(int(channel[0]))
    return initial, findings, notes


def last_round(history: History, rounds: HistoryRounds) -> tuple[int, list[Finding]]:
    """Return the place of the last round that is complete and consistent, -1 for none; a finding on each later one."""
    findings: list[Finding] = []
    for place in rounds.complete[::-1].tolist():
        channel = _orphaned(history, rounds.line[place])
        if not len(channel):
            return place, findings
        findings.append(_inconsistent(history, rounds, place, int(channel[0])))
    return -1, findings


def consistent_rounds(history: History, rounds: HistoryRounds) -> Ints:
    """Return the places of the rounds that can be restarted from: complete, without an orphan message."""
    places = rounds.complete.tolist()
    return np.array([place for place in places if not len(_orphaned(history, rounds.line[place]))], np.int64)


def _orphaned(history: History, line: Ints) -> Ints:
    """The channels with orphan messages across a line."""
    sent = sent_limit(history, line, np.arange(len(history.src)))
    return np.flatnonzero(history.received_of(line) > sent)


def _inconsistent(history: History, rounds: HistoryRounds, place: int, channel: int) -> Finding:
    number, line = int(rounds.number[place]), rounds.line[place]
    name, sender = history.channels[channel], history.subtasks[history.src[channel]]
    received, sent = int(history.received_of(line)[channel]), int(history.sent_of(line)[channel])
    told = f"had received messages {sent} to {received - 1} of {name}, which {sender} had not sent"
    if received == UNBOUNDED:
        told = f"may have received more of {name} than {sender} had sent, as records are lost"
    message = (
        f"round {number} is complete but not consistent: {history.subtasks[history.dst[channel]]} {told}: "
        "not aligned, or the log is wrong; it is not used"
    )
    return Finding("inconsistent-round", "error", f"round {number}", message)


def _notes(history: History, rounds: HistoryRounds, taken: int) -> list[str]:
    lead = "no coordinated round is complete and consistent" if taken < 0 else f"round {rounds.number[taken]} is used"
    incomplete = np.setdiff1d(np.arange(len(rounds.number)), rounds.complete)
    later = incomplete[incomplete > taken].tolist()
    return [lead, *(f"round {rounds.number[p]} is incomplete: {missing(history, rounds, p)}" for p in later[-3:])]


def missing(history: History, rounds: HistoryRounds, place: int) -> str:
    """The subtasks without a usable checkpoint of a round, the first few by name."""
    lacking = np.flatnonzero(rounds.line[place] < 0).tolist()
    names = ", ".join(str(history.subtasks[i]) for i in lacking[:5])
    return f"{names}{f' and {len(lacking) - 5} more' if len(lacking) > 5 else ''} missing"


def described(history: History, rounds: HistoryRounds) -> list[Round]:
    """Return every round with its times.

    `span_ms` goes from its first checkpoint to its last: how long its alignment took. The slowest channel leads to
    the last subtask from that sender whose own checkpoint came last: its marker was waited for.
    """
    rows = [_described(history, rounds, place) for place in range(len(rounds.number))]
    spans = [row.span_ms for row in rows if row.state != "incomplete" and row.span_ms is not None]
    limit = STRAGGLING * float(np.median(spans)) if spans else 0.0
    return [_judged(row, limit) for row in rows]


def _judged(row: Round, limit: float) -> Round:
    from dataclasses import replace

    slow = row.state == "complete" and row.span_ms is not None and row.span_ms > limit
    return replace(row, state="straggling") if slow else row


def _described(history: History, rounds: HistoryRounds, place: int) -> Round:
    line = rounds.line[place]
    there = np.flatnonzero(line >= 0)
    time = np.full(len(line), -1)
    time[there] = history.time[history.first[there] + line[there]]
    timed = np.flatnonzero(time >= 0)
    last = int(timed[np.argmax(time[timed])]) if len(timed) else None
    return Round(
        round=int(rounds.number[place]),
        state="complete" if len(there) == len(line) else "incomplete",
        checkpoints=len(there),
        missing="" if len(there) == len(line) else missing(history, rounds, place),
        first_time=int(time[timed].min()) if len(timed) else None,
        last_time=int(time[timed].max()) if len(timed) else None,
        span_ms=int(time[timed].max() - time[timed].min()) if len(timed) else None,
        slowest=None if last is None else str(history.subtasks[last]),
        slowest_channel=None if last is None else _slowest_channel(history, time, last),
    )


def _slowest_channel(history: History, time: Ints, receiver: int) -> str | None:
    into = np.flatnonzero((history.dst == receiver) & (history.src != receiver))
    into = into[time[history.src[into]] >= 0]
    return history.channels[into[np.argmax(time[history.src[into]])]] if len(into) else None


def completed_at(lines: Ints, taken: Ints, history: History) -> Ints:
    """Return when each of some rounds (their `lines`) was complete: rising, by rows' times `taken`."""
    rows = history.first[:-1] + lines
    latest: Ints = np.maximum.accumulate(taken[rows].max(axis=1, initial=np.iinfo(np.int64).min))
    return latest
