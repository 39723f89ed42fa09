"""A line in the words of an answer: its checkpoints, what it rolls past, what is useless, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory
from cklog.lines.fixpoint import forced
from cklog.model.lines import LineEntry, Orphans, Protocol, Rollback
from cklog.model.names import CheckpointId
from cklog.model.zigzag import ZigzagMessage
from cklog.zigzag.paths import Hop


def line_entries(records: CheckpointRecords, built: BuiltHistory, line: Ints) -> tuple[LineEntry, ...]:
    """The checkpoint of every subtask on the line, in order of the subtasks."""
    history = built.history
    rows = history.first[:-1] + line
    found = []
    for i, (subtask, uri) in enumerate(zip(history.subtasks, _uris(records, built.row[rows]), strict=True)):
        label, time = int(history.label[rows[i]]), int(history.time[rows[i]])
        current = bool(history.survivor[i] and line[i] == history.newest[i])
        state: Any = "current" if current else ("initial" if line[i] == 0 and label == 0 else "stored")
        found.append(
            LineEntry(
                *subtask,
                checkpoint=None if current else label,
                time=None if time < 0 or current else time,
                uri=None if current else uri,
                rolled_back=bool(line[i] < history.newest[i]),
                state=state,
            )
        )
    return tuple(found)


def _uris(records: CheckpointRecords, row: Ints) -> list[str | None]:
    """Where the records say that their checkpoints are; None for rows without a record (-1)."""
    stored = records.table["uri"]
    return [stored[r].as_py() if r >= 0 else None for r in row.tolist()]


def rolled_back(history: History, line: Ints) -> tuple[CheckpointId, ...]:
    """Every stored checkpoint that is newer than the line: rolled past by this failure."""
    row = np.arange(len(history.label))
    owner = np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))
    past = (row > (history.first[:-1] + line)[owner]) & (history.label >= 0)
    return _ids(history, owner, past)


def useless_checkpoints(history: History) -> tuple[CheckpointId, ...]:
    """Every stored checkpoint on a Z-cycle: in no consistent line, ever."""
    from cklog.zigzag.intervals import useless

    owner = np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))
    return _ids(history, owner, useless(history) & (history.label >= 0))


def _ids(history: History, owner: Ints, mask: Any) -> tuple[CheckpointId, ...]:
    pairs = zip(owner[mask].tolist(), history.label[mask].tolist(), strict=True)
    return tuple(CheckpointId(history.subtasks[i].operator, history.subtasks[i].subtask, label) for i, label in pairs)


def steps_of(history: History, start: Ints) -> list[Rollback]:
    """Every rollback with the orphan messages that forced it, by labels."""
    from cklog.lines.rollback_steps import rollback_steps

    return [step_of(history, step) for step in rollback_steps(history, start)]


def step_of(history: History, step: Any) -> Rollback:
    """One rollback by labels instead of indices."""
    label = history.label[history.first[step.subtask] :]
    before = int(label[step.from_])
    operator, subtask = history.subtasks[step.subtask]
    return Rollback(
        operator,
        subtask,
        from_=None if before < 0 else before,
        to=int(label[step.to]),
        because=Orphans(history.channels[step.channel], step.orphans_from, step.orphans_to),
    )


def sentence(step: Rollback) -> str:
    """A rollback in plain words.

    >>> sentence(Rollback("b", 0, 10, 0, Orphans("a/0->b/0", 2, 7)))
    'b/0 falls from 10 to 0: by 10 it had received messages 2 to 6 of a/0->b/0, which a/0 will not have sent'
    """
    sender = step.because.channel.partition("->")[0]
    first, last = step.because.orphans_from, step.because.orphans_to - 1
    messages = f"message {first}" if first == last else f"messages {first} to {last}"
    before = "its current state" if step.from_ is None else str(step.from_)
    return (
        f"{step.operator}/{step.subtask} falls from {before} to {step.to}: by {before} it had received "
        f"{messages} of {step.because.channel}, which {sender} will not have sent"
    )


def is_domino(history: History, start: Ints) -> bool:
    """Whether a rollback forces another one: one round of rollbacks does not give the line."""
    everything = np.arange(len(history.src))
    channel, kept = forced(history, start, everything)
    lower = start.copy()
    np.minimum.at(lower, history.dst[channel], kept)
    return bool(len(forced(history, lower, everything)[0]))


def protocol_of(records: CheckpointRecords) -> Protocol:
    """What the checkpoints say: all coordinated, some forced or with a protocol's index, or neither."""
    kinds = set(records.table["kind"].unique().to_pylist()) - {"volatile"}
    if kinds == {"coordinated"}:
        return "coordinated"
    if "coordinated" in kinds:
        return "mixed"
    indexed = records.table["index"].null_count < len(records.table)
    return "communication-induced" if "forced" in kinds or indexed else "uncoordinated"


def zigzag_message(history: History, hop: Hop) -> ZigzagMessage:
    """A message of a zigzag path, its intervals by the labels of the checkpoints that open them."""
    sender, receiver = int(history.src[hop.channel]), int(history.dst[hop.channel])
    labels = history.label[history.first[receiver] :]
    return ZigzagMessage(
        channel=history.channels[hop.channel],
        send_interval=int(history.label[history.first[sender] + hop.send]),
        receive_interval=None if hop.receive < 0 else int(labels[hop.receive]),
        seq=hop.seq,
        received_before=int(labels[hop.receive + 1]),
    )


def message_words(message: ZigzagMessage) -> str:
    """One message of a zigzag path: sent after which checkpoint, received before which.

    >>> message_words(ZigzagMessage("a/0->b/0", 1, 0, 4, 1))
    'a/0 sent m4 after checkpoint 1, b/0 received it before checkpoint 1'
    """
    ends, _, port = message.channel.partition("#")
    sender, _, receiver = ends.partition("->")
    number = "a message" if message.seq is None else f"m{message.seq}"
    before = "its current state" if message.received_before < 0 else f"checkpoint {message.received_before}"
    return (
        f"{sender} sent {number}{f' on #{port}' if port else ''} after checkpoint {message.send_interval}, "
        f"{receiver} received it before {before}"
    )
