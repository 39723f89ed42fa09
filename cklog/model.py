"""The words of cklog as types: input tables as Arrow schemas, results as frozen dataclasses.

Conventions, stated once and held everywhere (design section 2):

* Sequence numbers count the messages of one channel in the sender's order and start at 0.
* Watermarks are **exclusive**: `sent` and `received` hold the *next* sequence number, like a Kafka offset.
  `received` is the highest number received + 1, so consistency needs no FIFO channel.
* A message m is an orphan of a line if `sent <= m < received`, and in flight if `received <= m < sent`,
  with `sent` of the sender's chosen checkpoint and `received` of the receiver's.
* A channel that a checkpoint does not mention keeps the watermark of the checkpoint before it, 0 at first.
* Checkpoint 0 is the initial state and exists for every subtask, whether a record says so or not.
* Ranges are half-open. Times are integer milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa

_WATERMARKS = pa.map_(pa.string(), pa.int64())

CHECKPOINTS = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("checkpoint", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("sent", _WATERMARKS),
        pa.field("received", _WATERMARKS),
        pa.field("sources", _WATERMARKS),
        pa.field("kind", pa.string()),
        pa.field("round", pa.int64()),
        pa.field("duration_ms", pa.float64()),
        pa.field("bytes", pa.int64()),
        pa.field("form", pa.string()),
        pa.field("parent", pa.int64()),
        pa.field("uri", pa.string()),
        pa.field("status", pa.string()),
    ]
)
"""A local checkpoint; `subtask` is 0 where null. `kind` local / forced / coordinated / volatile; `form` base / delta;
`status` complete / incomplete."""

MESSAGES = pa.schema(
    [
        pa.field("channel", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
"""A message in a channel's log."""

EVENTS = pa.schema(
    [
        pa.field("event", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("lsn", pa.int64()),
        pa.field("channel", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("checkpoint", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
"""A raw event in its subtask's local order: `event` send / receive / checkpoint."""

TABLES: dict[str, pa.Schema] = {"checkpoints": CHECKPOINTS, "channels": MESSAGES, "events": EVENTS}

CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("local", "forced", "coordinated", "volatile"),
    "form": ("base", "delta"),
    "status": ("complete", "incomplete"),
    "event": ("send", "receive", "checkpoint"),
}
"""The words that a column may hold; any other is a record that cannot be understood."""

Severity = Literal["info", "warning", "error"]
Protocol = Literal["uncoordinated", "communication-induced", "coordinated", "eventual", "mixed"]
Verdict = Literal["ok", "findings", "unrecoverable", "indeterminate"]


class Subtask(NamedTuple):
    """One parallel instance of an operator; written `operator/subtask`."""

    operator: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.operator}/{self.subtask}"


class Channel(NamedTuple):
    """One sender subtask → one receiver subtask, `#port` where two run between the same pair."""

    sender: Subtask
    receiver: Subtask
    port: str = ""

    def __str__(self) -> str:
        return f"{self.sender}->{self.receiver}" + (f"#{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input. `offset` in bytes of the (decompressed) file, or the row of a Parquet file."""

    path: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the input that the reader of the answer must know; `id` is stable."""

    id: str
    severity: Severity
    subject: str
    message: str
    where: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class InputUsed:
    """One place of the input that the answer rests on. `records` are those read and intact."""

    path: str
    format: str
    bytes: int
    records: int | None


@dataclass(frozen=True, slots=True)
class Orphans:
    """Messages received by a checkpoint that its sender's chosen checkpoint has not sent; half-open."""

    channel: str
    orphans_from: int
    orphans_to: int


@dataclass(frozen=True, slots=True)
class Step:
    """One rollback and the orphan messages that forced it; checkpoints are labels, None = current state."""

    operator: str
    subtask: int
    from_: int | None
    to: int
    because: Orphans


@dataclass(frozen=True, slots=True)
class LineEntry:
    """The checkpoint of one subtask on the line. `state` current means: keeps running, `checkpoint` is None."""

    operator: str
    subtask: int
    checkpoint: int | None
    time: int | None
    uri: str | None
    rolled_back: bool
    state: Literal["stored", "initial", "current"]


@dataclass(frozen=True, slots=True)
class CheckpointId:
    """A checkpoint by its label."""

    operator: str
    subtask: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """What is in flight on a channel across the line, and what its sender will send again.

    `replay_from`/`replay_to` is the half-open range to replay; `messages` and `bytes` of it that the log
    holds; `retained` True / False, or None if no log is there to tell. `resent_from`/`resent_to`: sequence
    numbers that the sender will use again (deduplicate at the receiver, or truncate the log there);
    None if it sends nothing again as far as the evidence goes.
    """

    channel: str
    replay_from: int
    replay_to: int
    messages: int | None
    bytes: int | None
    retained: bool | None
    resent_from: int | None = None
    resent_to: int | None = None


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Where a source resumes: the next offset to read (None = from its start). Non-Kafka offsets stay JSON."""

    source: str
    offset: Any
    operator: str
    subtask: int
    replay_to: Any = None


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """The latest consistent line and what follows from it (JSON of design section 5)."""

    consistent: bool
    protocol: Protocol
    line: tuple[LineEntry, ...]
    channels: tuple[ReplayRange, ...]
    sources: tuple[SourceOffset, ...]
    rolled_back: tuple[CheckpointId, ...]
    useless: tuple[CheckpointId, ...]
    steps: tuple[Step, ...]
    domino: bool
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers: the envelope's parts, before any rendering."""

    command: str
    verdict: Verdict
    exit_code: int
    inputs: tuple[InputUsed, ...]
    findings: tuple[Finding, ...]
    result: Any
