"""Recovery lines as values: the checkpoint of each subtask, what is replayed, and why subtasks fell."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from cklog.model.actions import Action, RunAction
from cklog.model.names import CheckpointId
from cklog.model.recovery_time import RecoveryTime

Protocol = Literal["uncoordinated", "communication-induced", "coordinated", "eventual", "mixed"]


@dataclass(frozen=True, slots=True)
class Orphans:
    """Messages received by a checkpoint that its sender's chosen checkpoint has not sent; half-open.

    `orphans_to` None: records are lost, and how far the checkpoint had received is not known.
    """

    channel: str
    orphans_from: int
    orphans_to: int | None


@dataclass(frozen=True, slots=True)
class Rollback:
    """One rollback and the orphan messages that forced it; checkpoints are labels, None = current state."""

    operator: str
    subtask: int
    from_: int | None
    to: int
    because: Orphans


@dataclass(frozen=True, slots=True)
class LineEntry:
    """The checkpoint of one subtask on the line; None where it has no number.

    `state` current: it keeps running; eventual: its eventual checkpoint, as of timestamp `time`. `job`: which of
    several jobs or queries it belongs to, "" where there is one run without a name.
    """

    operator: str
    subtask: int
    checkpoint: int | None
    time: int | None
    uri: str | None
    rolled_back: bool
    state: Literal["stored", "initial", "current", "eventual"]
    job: str = ""


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """What is in flight on a channel across the line, and what its sender will send again.

    `replay_from`/`replay_to` is the half-open range to replay; `messages` and `bytes` of it that the log
    holds; `retained` True / False, or None if no log is there to tell. `resent_from`/`resent_to`: sequence
    numbers that the sender will use again, and that no receiver on the line has processed (truncate the log there, or
    process each number once); None if it sends nothing again as far as the evidence goes.
    """

    channel: str
    replay_from: int
    replay_to: int
    messages: int | None
    bytes: int | None
    retained: bool | None
    resent_from: int | None = None
    resent_to: int | None = None


UNREAD_POSITION = "unknown"
"""The offset of a source whose state says where it resumes, in a form that cklog does not read."""


def position_words(position: Any) -> str:
    """Return where a source resumes as words, the same in every table.

    >>> position_words(None), position_words(UNREAD_POSITION), position_words(7), position_words("mysql-bin.3:4")
    ('its start', 'position unknown', '7', 'mysql-bin.3:4')
    """
    if position is None:
        return "its start"
    if position == UNREAD_POSITION:
        return "position unknown"
    return position if isinstance(position, str) else json.dumps(position)


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Where a source resumes: the next offset to read (None = from its start). Non-Kafka offsets stay JSON.

    `UNREAD_POSITION` where what says it cannot be read, or was not understood.

    `job` as in `LineEntry`.
    """

    source: str
    offset: Any
    operator: str
    subtask: int
    replay_to: Any = None
    job: str = ""


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """The latest consistent line and what follows from it (docs/json.md).

    `action` is the one that asks most of people, of those of all `runs` (`cklog.model.actions`); connectors that take
    their first snapshot again count only where no other one goes on. `recovery_time` None: there is no line to recover
    from.
    """

    action: Action = field(default="undetermined", kw_only=True)
    consistent: bool
    protocol: Protocol
    line: tuple[LineEntry, ...]
    channels: tuple[ReplayRange, ...]
    sources: tuple[SourceOffset, ...]
    runs: tuple[RunAction, ...] = field(default=(), kw_only=True)
    recovery_time: RecoveryTime | None = field(default=None, kw_only=True)
    rolled_back: tuple[CheckpointId, ...]
    useless: tuple[CheckpointId, ...]
    steps: tuple[Rollback, ...]
    domino: bool
    rollback: tuple[RollbackDistance, ...] = ()
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def reader_names(self) -> Callable[[SourceOffset], str]:
        """Return a function that names a source's reader: its operator, after 8 digits of its job if jobs differ."""
        several = len({one.job for one in self.sources}) > 1
        return lambda source: f"{source.job[:8]}:{source.operator}" if several else source.operator


@dataclass(frozen=True, slots=True)
class Round:
    """A coordinated round; of its `checkpoints` the last one came `span_ms` after the first.

    `slowest` is the subtask that was last, `slowest_channel` the one whose marker it waited for; None: not known.
    """

    round: int
    state: Literal["complete", "straggling", "incomplete"]
    checkpoints: int
    missing: str
    first_time: int | None
    last_time: int | None
    span_ms: int | None
    slowest: str | None
    slowest_channel: str | None


@dataclass(frozen=True, slots=True)
class RollbackDistance:
    """How far a subtask goes back: from its newest stored checkpoint (a survivor: its current state) to the line.

    In checkpoints, in time before the failure (`time_ms`, None: not known), and in messages that it is known to have
    `received` or `sent`, at least: what a failed subtask did after its newest checkpoint counts only where its events
    were read. `depth`: the fewest orphan messages on a chain from a failure to it; None: not requested.
    """

    operator: str
    subtask: int
    checkpoints: int
    time_ms: int | None
    received: int
    sent: int
    depth: int | None = None
