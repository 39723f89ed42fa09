"""From ordered checkpoint records to a `History`: watermarks filled forward, nothing newer than proven.

* A channel that a checkpoint does not mention keeps the watermark of the checkpoint before it. Where a record may
  be missing in between (a gap in the numbers, in a damaged input), `received` is taken as the *next* watermark
  known, or as unbounded: the answer may get older by that, never newer.
* Incomplete checkpoints, and deltas whose chain is broken, lend their watermarks but are on no line. If checkpoint 0
  is one, the initial state may have received what it says, and has sent nothing.
* A watermark that decreases is a finding, and is bounded so that no line gets newer by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cklog.arrays.columns import holds, integers
from cklog.arrays.types import Ints, Mask
from cklog.budgets import require
from cklog.errors import CorruptInput
from cklog.history.history import History, narrowed
from cklog.history.pieces import has_chains, restorable_records
from cklog.history.records import CheckpointRecords, Watermarks
from cklog.history.state_files import as_flaws
from cklog.model.findings import Finding
from cklog.model.names import Subtask

UNBOUNDED = np.iinfo(np.int64).max
"""A watermark that no sender can have reached: it stands for a `received` that is not known."""


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The current state of survivors: watermarks by channel name, as far as they are known."""

    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)

    def names(self, channels: Iterable[str]) -> set[str]:
        """Return these channels and all that a watermark is known of."""
        return {*channels, *self.sent, *self.received}


class BuiltHistory(NamedTuple):
    """A history, and the records that it was built from.

    Attributes
    ----------
    history : what the algorithms see
    row : the record of each row of the history, -1 for none
    newest_sent : the watermark of each channel's sender at its newest record, usable or not, shape (c,)
    findings : what is wrong with the records
    """

    history: History
    row: Ints
    newest_sent: Ints
    findings: tuple[Finding, ...]


MOST_WATERMARKS = 1 << 30
"""Watermarks that are held at once, 8 bytes each: a hostile input names more channels than memory has room for."""


_BYTES_PER_WATERMARK = 25
"""Bytes that one side of the channels takes for each watermark while gaps are filled."""


def build_history(
    records: CheckpointRecords,
    survivors: Sequence[Subtask] = (),
    current: CurrentState | None = None,
    damaged: bool = False,
    gone: Mask | None = None,
) -> BuiltHistory:
    """Build the `History` of checkpoint records.

    Parameters
    ----------
    survivors : subtasks that did not fail and for which `current` (or a volatile record) gives evidence
    current : watermarks of their current state
    damaged : some records of the input were lost, so a gap in the numbers may be a missing record
    gone : records whose state file is not there, shape (rows,); None: nobody looked

    Raises
    ------
    CorruptInput : there are more than `MOST_WATERMARKS`
    """
    none = np.zeros(len(records.number), np.bool_)
    return _HistoryBuilder(
        records, frozenset(survivors), current or CurrentState(), damaged, none if gone is None else gone
    ).build()


class _SideMarks(NamedTuple):
    """The watermarks of one side of all c channels.

    Those of channel k are `value[at[k] : at[k + 1]]`, one for each row of the subtask `owner[k]` at this side.
    """

    owner: Ints
    at: Ints
    value: Ints


class _HistoryRows(NamedTuple):
    """Number, time (ms) and record of each row of a history, shape (rows,) each; -1 as in `History`."""

    label: Ints
    time: Ints
    record: Ints


class _HistoryBuilder:
    """The arrays of a `History` before unusable rows are taken out.

    Rows are, for each subtask, the initial state, then every record by number, then (survivors) the current state.
    """

    def __init__(
        self,
        records: CheckpointRecords,
        survivors: frozenset[Subtask],
        current: CurrentState,
        damaged: bool,
        gone: Mask,
    ) -> None:
        self._records = records
        self._gone = gone
        self._current = current
        self._damaged = damaged
        self._findings = list(records.findings)
        n = len(records.subtasks)
        self._survivor = np.array([s in survivors for s in records.subtasks] or [], np.bool_)
        self._volatile = holds(records.table["kind"], "volatile")
        explicit = np.zeros(n, np.int64)  # 1 where a record says what the initial state, checkpoint 0, was
        np.add.at(explicit, records.subtask[records.number == 0], 1)
        stored = np.bincount(records.subtask, minlength=n).astype(np.int64) - explicit
        self._first = np.r_[0, np.cumsum(1 + stored + self._survivor)].astype(np.int64)
        before = np.searchsorted(records.subtask, np.arange(n), "left")
        rank = np.arange(len(records.number)) - before[records.subtask]
        self._position = rank + 1 - explicit[records.subtask]  # of each record among the rows of its subtask
        self._row_of = self._first[records.subtask] + self._position  # the row of each record
        index = {s: i for i, s in enumerate(records.subtasks)}
        self._src = np.array([index[c.sender] for c in records.channels], np.int64)
        self._dst = np.array([index[c.receiver] for c in records.channels], np.int64)

    def build(self) -> BuiltHistory:
        """Return the history with all rows that a line may hold."""
        records, total = self._records, int(self._first[-1])
        rows = _HistoryRows(np.zeros(total, np.int64), np.full(total, -1), np.full(total, -1))
        unusable = self._unusable()
        initial = unusable & (records.number == 0)  # the initial state exists all the same
        kept = self._row_of[~initial]
        rows.label[self._row_of] = records.number
        rows.label[self._first[1:][self._survivor] - 1] = -1
        rows.record[kept] = np.flatnonzero(~initial)
        rows.time[kept] = integers(records.table["time"], -1)[~initial]
        proven = ~initial[records.sent.row]
        marks = Watermarks(records.sent.row[proven], records.sent.channel[proven], records.sent.value[proven])
        sent = self._side(marks, self._src, self._current.sent, rows.label, upper=False)
        received = self._side(records.received, self._dst, self._current.received, rows.label, upper=True)
        usable = np.ones(total, np.bool_)
        usable[self._row_of[unusable & ~initial]] = False
        return self._built(rows, usable, sent, received)

    def _unusable(self) -> Mask:
        """Find the records that no line may hold: incomplete, volatile, without their state file, of a broken chain."""
        found = holds(self._records.table["status"], "incomplete") | self._volatile | self._gone
        if has_chains(self._records):
            restorable, findings = restorable_records(self._records, self._damaged, as_flaws(self._gone))
            self._findings += findings
            found |= ~restorable
        return found

    def _side(self, marks: Watermarks, owner: Ints, current: dict[str, int], label: Ints, upper: bool) -> _SideMarks:
        """Return the watermarks of one side of all channels at every row of their owner.

        Where they are not known they are bounded so that no line gets newer: `received` from above (`upper`), `sent`
        from below. `current` are those of current states.
        """
        lengths = (self._first[1:] - self._first[:-1])[owner]
        if lengths.sum() > MOST_WATERMARKS:
            message = f"{len(owner)} channels with {lengths.max()} checkpoints: {lengths.sum()} watermarks do not fit"
            raise CorruptInput(message, "analyse a part of the history: move old checkpoints out of a copy")
        require(_BYTES_PER_WATERMARK * int(lengths.sum()), f"what {len(owner):,} channels have at each checkpoint")
        at = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        value = np.full(int(at[-1]), -1, np.int64)
        value[at[marks.channel] + self._position[marks.row]] = marks.value
        value[at[:-1]] = np.maximum(value[at[:-1]], 0)  # the initial state has 0 if nothing else is known
        names = {name: k for k, name in enumerate(self._records.names)}
        for name, seen in current.items():
            if name in names and self._survivor[owner[names[name]]]:
                value[at[names[name] + 1] - 1] = seen
        found = _SideMarks(owner, at, value)
        if self._damaged and upper:
            found = found._replace(value=_filled_from_above(value, at, self._rows_of(found), label))
        else:
            found = found._replace(value=_filled_forward(value))
        self._bound_falling(found, label, upper)
        return found

    def _rows_of(self, marks: _SideMarks) -> Ints:
        """Return the row of the history that each watermark is of, shape (at[c],)."""
        channel = np.repeat(np.arange(len(marks.owner)), np.diff(marks.at))
        found: Ints = self._first[marks.owner[channel]] + np.arange(len(marks.value)) - marks.at[channel]
        return found

    def _bound_falling(self, marks: _SideMarks, label: Ints, upper: bool) -> None:
        """Report watermarks that decrease along a channel, and bound them, in place, so that no line gets newer.

        The log is wrong there: `received` becomes the highest so far, `sent` the lowest from there on. E.g. 0, 5, 3
        becomes 0, 5, 5 if received, and 0, 3, 3 if sent.
        """
        owner, at, value = marks
        falls = np.flatnonzero(value[1:] < value[:-1])
        falls = falls[~np.isin(falls + 1, at)]  # from one channel to the next it may fall
        for k in np.unique(np.searchsorted(at, falls, "right") - 1).tolist():
            part = value[at[k] : at[k + 1]]
            x = int(np.flatnonzero(np.diff(part) < 0)[0]) + 1
            subject = f"{self._records.subtasks[owner[k]]}={label[self._first[owner[k]] + x]}"
            kind = "received" if upper else "sent"
            message = (
                f"checkpoint {subject} has {kind} {part[x]} on {self._records.names[k]}, "
                f"less than {part[x - 1]} of the checkpoint before it: the log is wrong there"
            )
            self._findings.append(Finding("watermark-decreases", "error", subject, message, effect="older-line"))
            bound = np.maximum.accumulate(part) if upper else np.minimum.accumulate(part[::-1])[::-1]
            value[at[k] : at[k + 1]] = bound

    def _built(self, rows: _HistoryRows, usable: Mask, sent: _SideMarks, received: _SideMarks) -> BuiltHistory:
        """Return the history of the usable rows."""
        newest_sent = sent.value[sent.at[1:] - 1]
        if not usable.all():
            sent, received = self._of_rows(sent, usable), self._of_rows(received, usable)
        history = History(
            subtasks=self._records.subtasks,
            channels=self._records.names,
            src=self._src,
            dst=self._dst,
            first=np.r_[0, np.cumsum(usable)][self._first].astype(np.int64),
            label=rows.label[usable],
            time=rows.time[usable],
            sent_at=sent.at,
            received_at=received.at,
            sent=narrowed(sent.value),
            received=narrowed(received.value),
            survivor=self._survivor,
        )
        return BuiltHistory(history, rows.record[usable], newest_sent, tuple(self._findings))

    def _of_rows(self, marks: _SideMarks, usable: Mask) -> _SideMarks:
        """Return the watermarks of the usable rows only."""
        keep = usable[self._rows_of(marks)]
        starts = np.r_[0, np.cumsum(keep)][marks.at].astype(np.int64)
        return _SideMarks(marks.owner, starts, marks.value[keep])


def _filled_from_above(value: Ints, at: Ints, row: Ints, label: Ints) -> Ints:
    """Fill in `received` where it is not known (-1) so that it is never less than the truth.

    The value before holds on as long as the checkpoint numbers since then have no gap. Behind a gap a record may be
    missing that said more: there it is the next value that is known of the channel, or `UNBOUNDED`. This is what
    "never newer than proven" rests on.

    Parameters
    ----------
    value : watermarks, the first of each channel known, shape (w,)
    at : where those of each channel begin, shape (c + 1,)
    row : the row of the history that each is of, shape (w,)
    label : checkpoint number of each row, -1 for a current state

    Examples
    --------
    One channel, checkpoints 0, 1, 2, 4, 5: 2 comes right behind 1; 3 may be missing, but by 5 it was 9.

    >>> value, label = np.array([0, 3, -1, -1, 9]), np.array([0, 1, 2, 4, 5])
    >>> _filled_from_above(value, np.array([0, 5]), np.arange(5), label).tolist()
    [0, 3, 3, 9, 9]
    """
    known = value >= 0
    index = np.arange(len(value))
    before = np.maximum.accumulate(np.where(known, index, 0))  # of each value the nearest known one at or before it
    row_before = row - (index - before)
    unbroken = (label[row] - label[row_before] == row - row_before) & (label[row] >= 0)  # as many numbers as rows
    after = np.minimum.accumulate(np.where(known, index, len(value))[::-1])[::-1]  # the nearest known at or after it
    inside = after < np.repeat(at[1:], np.diff(at))  # that is of the same channel
    next_known = np.where(inside, value[np.minimum(after, len(value) - 1)], UNBOUNDED)
    filled: Ints = np.where(known | unbroken, value[before], next_known)
    return filled


def _filled_forward(value: Ints) -> Ints:
    """Fill -1 with the last value before it; every channel begins with a known one. E.g. 0, 3, -1, 9 → 0, 3, 3, 9."""
    known = value >= 0
    if known.all():
        return value
    last = np.where(known, np.arange(len(value)), 0)
    filled: Ints = value[np.maximum.accumulate(last, out=last)]
    return filled
