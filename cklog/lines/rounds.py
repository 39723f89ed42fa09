"""Coordinated rounds: which are complete, which straggled, and the line that each one is.

A round is complete when every subtask of the job has a usable checkpoint of it. Its checkpoints are then a line; of
aligned checkpoints a consistent one without a message in flight, which is checked all the same (CheckMate, ICDE
2024, section III-A).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.errors import CorruptInput
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import MOST_WATERMARKS, UNBOUNDED, BuiltHistory
from cklog.lines.checkpoint_sets import owners
from cklog.lines.fixpoint import NoConsistentLine, sent_limit
from cklog.model.findings import Finding
from cklog.model.lines import Round
from cklog.model.verdict import LOSSES
from cklog.model.wording import first_few

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
        """The places of complete rounds in `number`, shape (complete rounds,)."""
        return np.flatnonzero((self.line >= 0).all(axis=1))


def rounds_of(records: CheckpointRecords, built: BuiltHistory) -> HistoryRounds:
    """Return the rounds that records of kind coordinated belong to; without a `round` their number is it.

    Of several checkpoints of a subtask in one round the first is taken: it is there as long as any of them.

    Raises
    ------
    CorruptInput : a table of that many rounds and subtasks, shape (r, n), does not fit into memory
    """
    history, number = built.history, round_numbers(records)
    # Rows of `History.label` with a record in a round, shape (h,), like `of_row` and `owner`; a row without a record
    # (-1) reads the -1 appended.
    here = np.flatnonzero((built.row >= 0) & (np.append(number, -1)[built.row] >= 0))
    of_row = number[built.row[here]] if len(here) else here
    owner = owners(history)[here]
    numbers = np.unique(number[number >= 0])  # of records, so that a round whose checkpoints are all unusable is seen
    if len(numbers) * len(history.subtasks) > MOST_WATERMARKS:
        message = f"{len(numbers)} coordinated rounds of {len(history.subtasks)} subtasks do not fit"
        raise CorruptInput(message, "analyse a part of the history: move old checkpoints out of a copy")
    line = np.full((len(numbers), len(history.subtasks)), -1)
    place = np.searchsorted(numbers, of_row)
    # Rows come by subtask and in order, so the first of each pair (round, subtask) is its oldest checkpoint.
    _, first = np.unique(place * len(history.subtasks) + owner, return_index=True)
    line[place[first], owner[first]] = (here - history.first[owner])[first]
    return HistoryRounds(numbers, line)


def round_numbers(records: CheckpointRecords) -> Ints:
    """Return the round of each record, -1 where it is not coordinated; shape (records,)."""
    kind = records.table["kind"]
    kind = kind.cast(pa.string()) if pa.types.is_dictionary(kind.type) else kind
    coordinated = pc.fill_null(pc.equal(kind, "coordinated"), False).to_numpy(zero_copy_only=False)
    stated = pc.fill_null(records.table["round"], -1).to_numpy()
    numbers: Ints = np.where(coordinated, np.where(stated < 0, records.number, stated), -1)
    return numbers


def unknown_subtasks(findings: Iterable[Finding], manifest: Mapping[str, Any]) -> list[Finding]:
    """Report that a round may only look complete: records are lost, and no manifest says who should be in it."""
    lost = [f for f in findings if f.id in LOSSES - {"bad-manifest"} and f.severity == "error"]
    if not lost or manifest.get("operators"):
        return []
    message = (
        "records are lost and no job.json names the operators: a round may lack a subtask that nothing here names. "
        "Give a job.json with all operators, or check the rounds by hand"
    )
    return [Finding("unknown-subtasks", "error", "rounds", message, effect="unknown")]


def round_line(history: History, rounds: HistoryRounds) -> tuple[Ints, list[Finding], tuple[str, ...]]:
    """Return the last complete round as a line, or the initial states; with findings and notes on later rounds.

    A complete round that is not consistent is a finding, and the round before it is taken.

    Raises
    ------
    NoConsistentLine : no round can be taken, and initial states contradict each other
    """
    place, findings = last_round(history, rounds)
    notes = tuple(_notes_on_rounds(history, rounds, place))
    if place >= 0:
        return rounds.line[place], findings, notes
    initial = np.zeros(len(history.subtasks), np.int64)
    channel = _orphaned_channels(history, initial)
    if len(channel):
        raise NoConsistentLine(int(channel[0]))
    return initial, findings, notes


def last_round(history: History, rounds: HistoryRounds) -> tuple[int, list[Finding]]:
    """Return the place of the last round that is complete and consistent, -1 for none; a finding on each later one."""
    findings: list[Finding] = []
    for place in rounds.complete[::-1].tolist():
        channel = _orphaned_channels(history, rounds.line[place])
        if not len(channel):
            return place, findings
        findings.append(_inconsistent_round(history, rounds, place, int(channel[0])))
    return -1, findings


def consistent_rounds(history: History, rounds: HistoryRounds) -> Ints:
    """Return the places of the rounds that can be restarted from: complete, without an orphan message."""
    places = rounds.complete.tolist()
    return np.array([place for place in places if not len(_orphaned_channels(history, rounds.line[place]))], np.int64)


def _orphaned_channels(history: History, line: Ints) -> Ints:
    """Return the channels with orphan messages across a line of shape (n,)."""
    sent = sent_limit(history, line, np.arange(len(history.src)))
    return np.flatnonzero(history.received_of(line) > sent)


def _inconsistent_round(history: History, rounds: HistoryRounds, place: int, channel: int) -> Finding:
    """Report a complete round that has orphan messages on `channel`."""
    number, line = int(rounds.number[place]), rounds.line[place]
    name, sender = history.channels[channel], history.subtasks[history.src[channel]]
    received, sent = int(history.received_of(line)[channel]), int(history.sent_of(line)[channel])
    what = f"had received messages {sent} to {received - 1} of {name}, which {sender} had not sent"
    if received == UNBOUNDED:
        what = f"may have received more of {name} than {sender} had sent, as records are lost"
    message = (
        f"round {number} is complete but not consistent: {history.subtasks[history.dst[channel]]} {what}: "
        "not aligned, or the log is wrong; it is not used"
    )
    return Finding("inconsistent-round", "error", f"round {number}", message, effect="older-line")


def _notes_on_rounds(history: History, rounds: HistoryRounds, taken: int) -> list[str]:
    """Say which round is used, the one at place `taken`, and why the last three after it are not."""
    lead = "no coordinated round is complete and consistent" if taken < 0 else f"round {rounds.number[taken]} is used"
    incomplete = np.setdiff1d(np.arange(len(rounds.number)), rounds.complete)
    later = incomplete[incomplete > taken].tolist()
    why = [f"round {rounds.number[p]} is incomplete: {_missing_subtasks(history, rounds, p)}" for p in later[-3:]]
    return [lead, *why]


def _missing_subtasks(history: History, rounds: HistoryRounds, place: int) -> str:
    """Name the subtasks without a usable checkpoint of a round, the first few of them."""
    lacking = np.flatnonzero(rounds.line[place] < 0).tolist()
    return f"{first_few([history.subtasks[i] for i in lacking], 5)} missing"


def described_rounds(history: History, rounds: HistoryRounds) -> list[Round]:
    """Return every round with its times and its state.

    `span_ms` goes from its first checkpoint to its last: how long its alignment took. The slowest channel leads to
    the last subtask from that sender whose own checkpoint came last: its marker was waited for.
    """
    rows = [_described_round(history, rounds, place) for place in range(len(rounds.number))]
    spans = [row.span_ms for row in rows if row.state != "incomplete" and row.span_ms is not None]
    limit = STRAGGLING * float(np.median(spans)) if spans else 0.0
    return [_with_straggling(row, limit) for row in rows]


def _with_straggling(row: Round, limit: float) -> Round:
    """Return a complete round as straggling if it took longer than `limit` ms."""
    slow = row.state == "complete" and row.span_ms is not None and row.span_ms > limit
    return replace(row, state="straggling") if slow else row


def _described_round(history: History, rounds: HistoryRounds, place: int) -> Round:
    """Return one round with its times, complete or incomplete."""
    line = rounds.line[place]
    there = np.flatnonzero(line >= 0)  # the subtasks that have a checkpoint of it
    time = np.full(len(line), -1)  # of each subtask's checkpoint, -1: none, or not known
    time[there] = history.time[history.first[there] + line[there]]
    timed = np.flatnonzero(time >= 0)
    last = int(timed[np.argmax(time[timed])]) if len(timed) else None
    return Round(
        round=int(rounds.number[place]),
        state="complete" if len(there) == len(line) else "incomplete",
        checkpoints=len(there),
        missing="" if len(there) == len(line) else _missing_subtasks(history, rounds, place),
        first_time=int(time[timed].min()) if len(timed) else None,
        last_time=int(time[timed].max()) if len(timed) else None,
        span_ms=int(time[timed].max() - time[timed].min()) if len(timed) else None,
        slowest=None if last is None else str(history.subtasks[last]),
        slowest_channel=None if last is None else _slowest_channel(history, time, last),
    )


def _slowest_channel(history: History, time: Ints, receiver: int) -> str | None:
    """Return the channel into `receiver` whose sender took its checkpoint last, by `time`, shape (n,); None: not known.

    E.g. with times [5, 9, 12] of a, b and c, and both sending to c: b->c, whose marker came last.
    """
    into = np.flatnonzero((history.dst == receiver) & (history.src != receiver))
    into = into[time[history.src[into]] >= 0]
    return history.channels[into[np.argmax(time[history.src[into]])]] if len(into) else None


def completed_at(lines: Ints, taken: Ints, history: History) -> Ints:
    """Return when each of some rounds was complete, shape (k,), never before the round before it.

    Parameters
    ----------
    lines : checkpoint index of each subtask in each of the rounds, shape (k, n)
    taken : when each row of `history.label` was there, in ms, shape (first[n],)
    """
    rows = history.first[:-1] + lines
    latest: Ints = np.maximum.accumulate(taken[rows].max(axis=1, initial=np.iinfo(np.int64).min))
    return latest
