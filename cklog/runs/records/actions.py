"""What to do about a run of records: the action that follows from its line, and which damage touches that.

A damaged record matters only if it may be of a newer checkpoint than the line's: the line is the latest consistent one,
so that a checkpoint older than the one that its subtask has on the line is on no later line. Damage of which that is
proven, by where it lies, is told as a warning.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, integers
from cklog.history.records import CheckpointRecords
from cklog.inputs.offers import OffersRecords
from cklog.model.actions import RunAction, action_of
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange
from cklog.model.names import Subtask
from cklog.model.verdict import FLAWS
from cklog.model.wording import first_few

if TYPE_CHECKING:
    from cklog.runs.records.evidence import Planned

_NO_COMMAND = "start every subtask with its checkpoint of the line"


def with_untouched(
    tables: OffersRecords, records: CheckpointRecords, line: Sequence[LineEntry], findings: Iterable[Finding]
) -> tuple[Finding, ...]:
    """Return findings with damage that cannot touch the line as warnings."""
    known = _Places(tables, records, line)
    return tuple(
        f.as_warning() if f.severity == "error" and f.id in FLAWS and known.only_older(f) else f for f in findings
    )


class _Places:
    """Where the records of checkpoints were read, and what the line takes of each subtask."""

    def __init__(self, tables: OffersRecords, records: CheckpointRecords, line: Sequence[LineEntry]) -> None:
        self._tables = tables
        self._records = records
        self._line = {Subtask(e.operator, e.subtask): e for e in line}

    def only_older(self, finding: Finding) -> bool:
        """Whether all that a finding speaks of is older than the line."""
        whole = all(e.state in ("stored", "current") for e in self._line.values())
        return bool(self._line and whole and finding.where) and all(
            self._is_older(place.path, place.offset) for place in finding.where
        )

    def _is_older(self, path: str, offset: int | None) -> bool:
        """Whether a record at a place can only be of an older checkpoint than the one on the line.

        By the name of its file, where that says whose checkpoint it holds, and when it was taken. Else by its
        neighbours: the file has records of the same subtasks behind it that are no newer than the line's, in the order
        in which they were taken, and these subtasks have records in no other file. They have to be all that it can be
        of: all there are, or those of the operator that the file is called after.
        """
        named = self._tables.checkpoint_at(path)
        if named is not None:
            subtask, time = named
            entry = self._line.get(subtask)
            return entry is not None and entry.time is not None and time < entry.time
        return offset is not None and self._neighbours_are_newer(path, offset)

    def _neighbours_are_newer(self, path: str, offset: int) -> bool:
        if "_path" not in self._records.table.column_names or not len(self._records.table):
            return False
        code, names = codes(pc.fill_null(self._records.table["_path"].cast(pa.string()), ""))  # planned ones have none
        here = np.flatnonzero(code == names.index(path)) if path in names else np.zeros(0, np.int64)
        place = integers(pc.fill_null(self._records.table["_offset"], -1))
        owners = np.unique(self._records.subtask[here])
        others = set(self._records.subtasks) - {self._records.subtasks[i] for i in owners.tolist()}
        called = posixpath.basename(path).partition(".")[0]
        if others and any(self._records.subtasks[i].operator != called for i in owners.tolist()):
            return False
        if any(subtask.operator == called for subtask in others):
            return False
        for i in owners.tolist():
            rows = np.flatnonzero(self._records.subtask == i)
            entry = self._line.get(self._records.subtasks[i])
            if entry is None or not np.isin(rows, here).all() or not (np.diff(place[rows]) > 0).all():
                return False
            later = self._records.number[rows[place[rows] > offset]]
            newest = entry.checkpoint if entry.checkpoint is not None else int(self._records.number[rows].max())
            if not len(later) or int(later.min()) > newest:
                return False
        return len(owners) > 0


def records_action(planned: Planned, run: str) -> RunAction:
    """Return what to do about a run with checkpoint records."""
    line, history = planned.result, planned.evidence.history
    stored = np.flatnonzero((history.label > 0) & (history.time >= 0))
    newest = int(stored[np.argmax(history.time[stored])]) if len(stored) else None
    owner = None if newest is None else int(np.searchsorted(history.first, newest, "right")) - 1
    named = None if owner is None else f"{history.subtasks[owner]}={int(history.label[newest])}"
    coordinated = line.protocol == "coordinated"
    found = of_line(line, planned.evidence.findings, planned.evidence.indeterminate, run)
    return replace(
        found,
        newest=f"checkpoint {int(history.label.max())}" if coordinated and named else named,
        newest_time=None if newest is None else int(history.time[newest]),
        doubled=_doubled(planned),
    )


def no_line_action(run: str, asked: bool) -> RunAction:
    """Return what to do where there is no line; `asked`: none with the checkpoints that were asked for."""
    if asked:
        note = "no line has what was asked for: ask again without --at"
        return RunAction(run=run, action="undetermined", note=note)
    return RunAction(run=run, action="start-over", note="not even the initial states go together: the logs are wrong")


def of_line(line: RecoveryLine, findings: Iterable[Finding], undetermined: bool, run: str) -> RunAction:
    """Return what to do about a line of any subtasks, with what it costs as far as the line itself tells."""
    told = list(findings)
    older = any(f.effect == "older-line" or _is_emptied(f, told) for f in told)
    stored = [e for e in line.line if e.state in ("stored", "eventual")]
    nothing = not line.consistent or not line.line or all(e.state == "initial" for e in line.line)
    times = [e.time for e in stored if e.time is not None]
    ages = [d.time_ms for d in line.rollback if d.time_ms is not None]
    endless = any(s.replay_to is None for s in line.sources)
    unknown = endless or any(_size(c) and c.messages is None for c in line.channels)
    sources = [s.replay_to - s.offset for s in line.sources if _are_numbers(s.offset, s.replay_to)]
    return RunAction(
        run=run,
        action=action_of(undetermined, nothing=nothing, older=older),
        chosen=None if nothing else _chosen(line, stored),
        chosen_time=min(times, default=None),
        age_ms=max(ages, default=None),
        note=None if undetermined else _NO_COMMAND,
        read_again=sum(_size(c) for c in line.channels) + sum(max(n, 0) for n in sources),
        read_again_bytes=sum(c.bytes or 0 for c in line.channels),
        reads_more=unknown,
        lost=_lost(line.channels),
    )


def _chosen(line: RecoveryLine, stored: Sequence[LineEntry]) -> str:
    labels = {e.checkpoint for e in stored}
    if line.protocol == "coordinated" and len(labels) == 1:
        return f"checkpoint {labels.pop()}"
    return first_few([f"{e.operator}/{e.subtask}={_label(e)}" for e in line.line], 3)


def _label(entry: LineEntry) -> str:
    return entry.state if entry.checkpoint is None else str(entry.checkpoint)


def _is_emptied(finding: Finding, findings: Iterable[Finding]) -> bool:
    """Whether a queue holds no record, and has damage: it held some."""
    if finding.id != "empty-queue":
        return False
    place = f"outputs/{finding.subject.rpartition('/')[0]}"
    return any(
        f.id in FLAWS and (f.subject == place or f.subject.startswith((f"{place}/", f"{place}."))) for f in findings
    )


def _size(row: ReplayRange) -> int:
    return max(row.replay_to - row.replay_from, 0)


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _lost(channels: Iterable[ReplayRange]) -> int | None:
    """Count the messages in flight that no log holds any more; None where there is no log to tell."""
    busy = [c for c in channels if _size(c)]
    if any(c.retained is None for c in busy):
        return None
    return sum(_size(c) - (c.messages or 0) for c in busy if c.retained is False)


def _doubled(planned: Planned) -> int | None:
    """Count what sinks, subtasks that send nothing on, had taken behind the line, as far as anything tells of it."""
    history = planned.evidence.history
    sinks = set(np.setdiff1d(history.dst, history.src).tolist())
    known = [d.received for i, d in enumerate(planned.result.rollback) if i in sinks]
    return sum(known) if known and sum(known) else None
