"""Zigzag paths, useless checkpoints and the audit of an index as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cklog.model.names import CheckpointId


@dataclass(frozen=True, slots=True)
class ZigzagMessage:
    """A message of a zigzag path. Its intervals are named after the checkpoints that open them.

    `receive_interval` None: received before the initial state was saved. It was received before checkpoint
    `received_before` of the receiver (-1: its current state). `seq` None: a lost record must have held it.
    """

    channel: str
    send_interval: int
    receive_interval: int | None
    seq: int | None
    received_before: int


@dataclass(frozen=True, slots=True)
class UselessCheckpoint:
    """A checkpoint on a Z-cycle, and a shortest one; None if no witness was asked for."""

    operator: str
    subtask: int
    checkpoint: int
    witness: tuple[ZigzagMessage, ...] | None


@dataclass(frozen=True, slots=True)
class ZCycles:
    """Useless checkpoints and the other kinds, kept apart (docs/json.md).

    `checkpoints` counts stored ones without initial states, as do `counts` (by kind) and `operators` (by operator);
    `kinds` says what each kind means. `cyclic`: channels form a cycle, without which none can be useless. `asked`
    is the one checkpoint that was asked for. `unseen` are subtasks of which neither events nor a volatile record
    tells what they received after their newest checkpoint: what only such messages make useless is not named.
    """

    checkpoints: int
    cyclic: bool
    counts: dict[str, int]
    kinds: dict[str, str]
    operators: tuple[dict[str, Any], ...]
    useless: tuple[UselessCheckpoint, ...]
    asked: CheckpointId | None = None
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexBreach:
    """Checkpoint `end` has an index not above that of `start`, though the messages of `path` lead there.

    `path` is a shortest zigzag path; empty if `end` is a later checkpoint of the same subtask.
    """

    start: CheckpointId
    start_index: int
    end: CheckpointId
    end_index: int
    path: tuple[ZigzagMessage, ...]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Whether the logged index of a communication-induced protocol rises (`cklog.protocols.index_audit`).

    `rule` is the strictest that holds. `indexed` checkpoints state an index, `not_indexed` do not; of `messages`
    non-dominated messages `falling` go to an interval of a lower index, `by_message` first; `broken` checkpoints have
    an index that does not rise along some zigzag path, the first of them in `breaches`.
    """

    rule: Literal["messages", "zigzag paths", "none"]
    indexed: int
    not_indexed: int
    messages: int
    falling: int
    by_message: ZigzagMessage | None
    broken: int
    breaches: tuple[IndexBreach, ...]
