"""From ordered checkpoint records to a `History`: watermarks filled forward, nothing newer than proven.

* A channel that a checkpoint does not mention keeps the watermark of the checkpoint before it. Where a record may
  be missing in between (a gap in the numbers, in a damaged input), `received` is taken as the *next* watermark
  known, or as unbounded: the answer may get older by that, never newer.
* Incomplete checkpoints, and deltas whose chain is broken, lend their watermarks but are on no line. If checkpoint 0
  is one, the initial state may have received what it says, and has sent nothing.
* A watermark that decreases is a finding, and is bounded so that no line gets newer by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.columns import holds, integers
from cklog.arrays.types import Ints
from cklog.errors import CorruptInput
from cklog.history.arrays import History
from cklog.history.pieces import has_chains, restorable_records
from cklog.history.records import CheckpointRecords, Watermarks
from cklog.history.state_files import as_flaws
from cklog.model.findings import Finding
from cklog.model.names import Subtask

UNBOUNDED = np.iinfo(np.int64).max
"""A watermark that no sender can have reached: stands for `received` that is not known."""


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The current state of survivors: watermarks by channel name, as far as evidence goes."""

    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltHistory:
    """A history and where its rows come from: `row[r]` is the record of history row r, -1 for none.

    `newest_sent` is the watermark of each channel's sender at its newest record, usable or not, shape (c,).
    """

    history: History
    row: Ints
    newest_sent: Ints
    findings: tuple[Finding, ...]


MOST_WATERMARKS = 1 << 30
"""Watermarks that are held at once, 8 bytes each: a hostile input names more channels than memory has room for."""


def build_history(
    records: CheckpointRecords,
    survivors: Sequence[Subtask] = (),
    current: CurrentState | None = None,
    damaged: bool = False,
    gone: NDArray[np.bool_] | None = None,
) -> BuiltHistory:
    """The `History` of records.

    Parameters
    ----------
    survivors : subtasks that did not fail and for which `current` (or a volatile record) gives evidence
    current : watermarks of their current state
    damaged : some records of the input were lost, so a gap in the numbers may be a missing record
    gone : records whose state file is not there, shape (rows,); None: nobody looked
    """
    none = np.zeros(len(records.number), np.bool_)
    return _HistoryBuilder(
        records, frozenset(survivors), current or CurrentState(), damaged, none if gone is None else gone
    ).build()


class _HistoryBuilder:
    """The arrays of a `History` before unusable rows are taken out: per subtask the initial state, then every
    record by number, then (survivors) the current state."""

    def __init__(
        self,
        records: CheckpointRecords,
        survivors: frozenset[Subtask],
        current: CurrentState,
        damaged: bool,
        gone: NDArray[np.bool_],
    ) -> None:
        self._records = records
        self._gone = gone
        self._current = current
        self._damaged = damaged
        self._findings = list(records.findings)
        n = len(records.subtasks)
        self._survivor = np.array([s in survivors for s in records.subtasks] or [], np.bool_)
        self._volatile = holds(records.table["kind"], "volatile")
        explicit = np.zeros(n, np.int64)
        np.add.at(explicit, records.subtask[records.number == 0], 1)
        stored = np.bincount(records.subtask, minlength=n).astype(np.int64) - explicit
        self._first = np.r_[0, np.cumsum(1 + stored + self._survivor)].astype(np.int64)
        before = np.searchsorted(records.subtask, np.arange(n), "left")
        rank = np.arange(len(records.number)) - before[records.subtask]
        self._position = rank + 1 - explicit[records.subtask]
        self._at = self._first[records.subtask] + self._position
        index = {s: i for i, s in enumerate(records.subtasks)}
        self._src = np.array([index[c.sender] for c in records.channels], np.int64)
        self._dst = np.array([index[c.receiver] for c in records.channels], np.int64)

    def build(self) -> BuiltHistory:
        total = int(self._first[-1])
        label, time, row = (
            np.zeros(total, np.int64),
            np.full(total, -1, np.int64),
            np.full(total, -1, np.int64),
        )
        unusable = self._unusable()
        initial = unusable & (self._records.number == 0)  # the initial state exists all the same
        at = self._at[~initial]
        label[self._at] = self._records.number
        row[at] = np.flatnonzero(~initial)
        time[at] = integers(self._records.table["time"], -1)[~initial]
        last = self._first[1:][self._survivor] - 1
        label[last] = -1
        told = self._records.sent
        proven = ~initial[told.row]
        told = Watermarks(told.row[proven], told.channel[proven], told.value[proven])
        sent = self._direction(told, self._src, self._current.sent, label, upper=False)
        received = self._direction(self._records.received, self._dst, self._current.received, label, upper=True)
        usable = np.ones(total, np.bool_)
        usable[self._at[unusable & ~initial]] = False
        return self._assemble(label, time, row, usable, sent, received)

    def _unusable(self) -> NDArray[np.bool_]:
        """Records that no line may hold: incomplete, volatile, without their state file, or of a broken chain."""
        table = self._records.table
        found = holds(table["status"], "incomplete") | self._volatile | self._gone
        if has_chains(self._records):
            restorable, findings = restorable_records(self._records, self._damaged, as_flaws(self._gone))
            self._findings += findings
            found |= ~restorable
        return found

    def _direction(
        self, marks: Watermarks, owner: Ints, current: dict[str, int], label: Ints, upper: bool
    ) -> tuple[Ints, Ints]:
        """Watermarks of all channels at every row of their owner: starts (c + 1,) and values."""
        lengths = (self._first[1:] - self._first[:-1])[owner]
        if lengths.sum() > MOST_WATERMARKS:
            message = f"{len(owner)} channels with {lengths.max()} checkpoints: {lengths.sum()} watermarks do not fit"
            raise CorruptInput(message, "analyse a part of the history: move old checkpoints out of a copy")
        at = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        value = np.full(int(at[-1]), -1, np.int64)
        value[at[marks.channel] + self._position[marks.row]] = marks.value
        value[at[:-1]] = np.maximum(value[at[:-1]], 0)
        names = {name: k for k, name in enumerate(self._records.names)}
        for name, seen in current.items():
            if name in names and self._survivor[owner[names[name]]]:
                value[at[names[name] + 1] - 1] = seen
        filled = self._filled(value, at, owner, label) if self._damaged and upper else _forward(value)
        self._monotone(filled, at, owner, label, upper)
        return at, filled

    def _filled(self, value: Ints, at: Ints, owner: Ints, label: Ints) -> Ints:
        """`received` filled forward only where no record can be missing; else the next known value, or unbounded."""
        known = value >= 0
        index = np.arange(len(value))
        before = np.maximum.accumulate(np.where(known, index, 0))
        channel = np.repeat(np.arange(len(owner)), np.diff(at))
        position = index - at[channel]
        row = self._first[owner[channel]] + position
        row_before = row - (index - before)
        dense = (label[row] - label[row_before] == row - row_before) & (label[row] >= 0)
        after = np.minimum.accumulate(np.where(known, index, len(value))[::-1])[::-1]
        bounded = after < at[channel + 1]
        later = np.where(bounded, value[np.minimum(after, len(value) - 1)], UNBOUNDED)
        filled: Ints = np.where(known | dense, value[before], later)
        return filled

    def _monotone(self, value: Ints, at: Ints, owner: Ints, label: Ints, upper: bool) -> None:
        """Watermarks never decrease. Where they do, the log is wrong: bound them so that no line gets newer."""
        falls = np.flatnonzero(value[1:] < value[:-1])
        falls = falls[~np.isin(falls + 1, at)]
        for k in np.unique(np.searchsorted(at, falls, "right") - 1).tolist():
            part = value[at[k] : at[k + 1]]
            x = int(np.flatnonzero(np.diff(part) < 0)[0]) + 1
            subject = f"{self._records.subtasks[owner[k]]}={label[self._first[owner[k]] + x]}"
            kind = "received" if upper else "sent"
            message = (
                f"checkpoint {subject} has {kind} {part[x]} on {self._records.names[k]}, "
                f"less than {part[x - 1]} of the checkpoint before it: the log is wrong there"
            )
            self._findings.append(Finding("watermark-decreases", "error", subject, message))
            bound = np.maximum.accumulate(part) if upper else np.minimum.accumulate(part[::-1])[::-1]
            value[at[k] : at[k + 1]] = bound

    def _assemble(
        self,
        label: Ints,
        time: Ints,
        row: Ints,
        usable: NDArray[np.bool_],
        sent: tuple[Ints, Ints],
        received: tuple[Ints, Ints],
    ) -> BuiltHistory:
        newest_sent = sent[1][sent[0][1:] - 1]
        if not usable.all():
            sent = self._without(sent, self._src, usable)
            received = self._without(received, self._dst, usable)
        kept = np.r_[0, np.cumsum(usable)][self._first].astype(np.int64)
        history = History(
            self._records.subtasks,
            self._records.names,
            self._src,
            self._dst,
            kept,
            label[usable],
            time[usable],
            sent[0],
            received[0],
            sent[1],
            received[1],
            self._survivor,
        )
        return BuiltHistory(history, row[usable], newest_sent, tuple(self._findings))

    def _without(self, marks: tuple[Ints, Ints], owner: Ints, usable: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        at, value = marks
        channel = np.repeat(np.arange(len(owner)), np.diff(at))
        keep = usable[self._first[owner[channel]] + np.arange(len(value)) - at[channel]]
        starts = np.r_[0, np.cumsum(keep)][at].astype(np.int64)
        return starts, value[keep]


def _forward(value: Ints) -> Ints:
    """Fill -1 with the last value before it; every channel begins with a known one."""
    known = value >= 0
    if known.all():
        return value
    last = np.where(known, np.arange(len(value)), 0)
    filled: Ints = value[np.maximum.accumulate(last, out=last)]
    return filled
