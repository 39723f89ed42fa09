"""A line as rows of an answer: array indices in, names and checkpoint numbers out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import UNBOUNDED, BuiltHistory
from cklog.lines.checkpoint_sets import newer_than, owners
from cklog.lines.rollback import RollbackStep, rollback_steps
from cklog.model.lines import LineEntry, Orphans, Protocol, Rollback
from cklog.model.names import CheckpointId
from cklog.model.zigzag import ZigzagMessage
from cklog.zigzag.paths import Hop


def line_entries(records: CheckpointRecords, built: BuiltHistory, line: Ints) -> tuple[LineEntry, ...]:
    """Return the checkpoint of every subtask on `line` (an index per subtask, shape (n,)), in order of the subtasks."""
    history = built.history
    rows = history.first[:-1] + line
    restored = _restored(history, line)
    found = []
    for i, (subtask, uri) in enumerate(zip(history.subtasks, _state_uris(records, built.row[rows]), strict=True)):
        label, time = int(history.label[rows[i]]), int(history.time[rows[i]])
        begins = line[i] == 0 and label == 0 and not restored[i]
        state: Literal["stored", "initial", "current"] = "initial" if begins else "stored"
        if history.survivor[i] and line[i] == history.newest[i]:
            state = "current"
        found.append(
            LineEntry(
                operator=subtask.operator,
                subtask=subtask.subtask,
                checkpoint=None if state == "current" else label,
                time=None if time < 0 or state == "current" else time,
                uri=None if state == "current" else uri,
                rolled_back=bool(line[i] < history.newest[i]),
                state=state,
            )
        )
    return tuple(found)


def _restored(history: History, line: Ints) -> Mask:
    """Find the subtasks that have sent or received messages by their checkpoint on `line`, shape (n,).

    Where that is checkpoint 0, it is no initial state but the one that a recovery restored, and the run goes on from
    it. An offset of a source says nothing of the kind: a new job may begin anywhere in its input.
    """
    found = np.zeros(len(history.subtasks), np.bool_)
    found[history.dst[history.received_of(line) > 0]] = True
    found[history.src[history.sent_of(line) > 0]] = True
    return found


def _state_uris(records: CheckpointRecords, row: Ints) -> list[str | None]:
    """Look up where the records say that their checkpoints are; None for rows without a record (-1)."""
    stored = records.table["uri"]
    return [stored[r].as_py() if r >= 0 else None for r in row.tolist()]


def rolled_back(history: History, line: Ints) -> tuple[CheckpointId, ...]:
    """Return every stored checkpoint that is newer than `line`: rolled past by this failure."""
    return _checkpoint_ids(history, newer_than(history, line) & (history.label >= 0))


def useless_checkpoints(history: History, on_cycles: Mask) -> tuple[CheckpointId, ...]:
    """Name every stored checkpoint on a Z-cycle (a mask of shape (first[n],)): in no consistent line, ever."""
    return _checkpoint_ids(history, on_cycles & (history.label >= 0))


def _checkpoint_ids(history: History, mask: Mask) -> tuple[CheckpointId, ...]:
    """Name the rows of `history.label` that `mask`, shape (first[n],), holds."""
    pairs = zip(owners(history)[mask].tolist(), history.label[mask].tolist(), strict=True)
    return tuple(CheckpointId(history.subtasks[i].operator, history.subtasks[i].subtask, label) for i, label in pairs)


def steps_of(history: History, start: Ints) -> list[Rollback]:
    """Return every rollback below `start` (an index per subtask) with the orphan messages that forced it."""
    return [step_of(history, step) for step in rollback_steps(history, start)]


def step_of(history: History, step: RollbackStep) -> Rollback:
    """Return one rollback by checkpoint numbers instead of indices."""
    label = history.label[history.first[step.subtask] :]
    before = int(label[step.from_])
    operator, subtask = history.subtasks[step.subtask]
    return Rollback(
        operator=operator,
        subtask=subtask,
        from_=None if before < 0 else before,
        to=int(label[step.to]),
        because=Orphans(
            history.channels[step.channel],
            step.orphans_from,
            None if step.orphans_to == UNBOUNDED else step.orphans_to,
        ),
    )


def protocol_of(records: CheckpointRecords) -> Protocol:
    """Tell the protocol by the kinds of checkpoints: all coordinated, some forced or with an index, or neither."""
    kinds = set(records.table["kind"].unique().to_pylist()) - {"volatile"}
    if kinds == {"coordinated"}:
        return "coordinated"
    if "coordinated" in kinds:
        return "mixed"
    indexed = records.table["index"].null_count < len(records.table)
    return "communication-induced" if "forced" in kinds or indexed else "uncoordinated"


def zigzag_message(history: History, hop: Hop) -> ZigzagMessage:
    """Return a message of a zigzag path, its intervals by the numbers of the checkpoints that open them."""
    sender, receiver = int(history.src[hop.channel]), int(history.dst[hop.channel])
    labels = history.label[history.first[receiver] :]
    return ZigzagMessage(
        channel=history.channels[hop.channel],
        send_interval=int(history.label[history.first[sender] + hop.send]),
        receive_interval=None if hop.receive < 0 else int(labels[hop.receive]),
        seq=hop.seq,
        received_before=int(labels[hop.receive + 1]),
    )
