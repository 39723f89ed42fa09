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

from cklog.model.state import STATE
from cklog.model.system import SYSTEM

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
        pa.field("index", pa.int64()),
        pa.field("duration_ms", pa.float64()),
        pa.field("bytes", pa.int64()),
        pa.field("form", pa.string()),
        pa.field("parent", pa.int64()),
        pa.field("uri", pa.string()),
        pa.field("status", pa.string()),
        pa.field("variables", pa.string(), metadata={"holds": "json", "values": "many"}),
    ]
)
"""A local checkpoint; `subtask` is 0 where null. `kind` local / forced / coordinated / volatile; `form` base / delta;
`status` complete / incomplete; `variables` is JSON text, [{name, form, parent, bytes}]. `index` is the logical clock
of a communication-induced protocol at the checkpoint (BCS's index, HMNR's `lc`)."""

MESSAGES = pa.schema(
    [
        pa.field("channel", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("protocol_bytes", pa.int64()),
    ]
)
"""A message in a channel's log; of its `bytes`, the checkpointing protocol added `protocol_bytes`."""

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

OUTPUTS = pa.schema(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("window", pa.string(), metadata={"values": "many"}),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("open_windows", pa.int64()),
        pa.field("state", pa.string(), metadata={"holds": "json"}),
        pa.field("input", pa.int64()),
        pa.field("inputs", _WATERMARKS, metadata={"member": "input"}),
        pa.field("pos", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)
"""A record of a persisted output queue, in log order: `type` open / check / result (closes its window) / emit.

`window` names one physical window; `ts` is the timestamp of the input tuple in process, `input` its sequence
number (of several inputs: `inputs`, channel → sequence number; the member is called `input` in both cases);
`open_windows` is N after this record; `state` is JSON text; `pos` is the dense record number."""

TABLES: dict[str, pa.Schema] = {
    "checkpoints": CHECKPOINTS,
    "channels": MESSAGES,
    "events": EVENTS,
    "outputs": OUTPUTS,
    "state": STATE,
    "system": SYSTEM,
}

CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("local", "forced", "coordinated", "volatile"),
    "form": ("base", "delta"),
    "status": ("complete", "incomplete"),
    "event": ("send", "receive", "checkpoint"),
    "type": ("open", "check", "result", "emit"),
}
"""The words that a column may hold; any other is a record that cannot be understood. Not in a column of `any` words."""

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

    `state` current: it keeps running; eventual: its eventual checkpoint, as of timestamp `time`.
    """

    operator: str
    subtask: int
    checkpoint: int | None
    time: int | None
    uri: str | None
    rolled_back: bool
    state: Literal["stored", "initial", "current", "eventual"]


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
    steps: tuple[Rollback, ...]
    domino: bool
    rollback: tuple[RollbackDistance, ...] = ()
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


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

    In checkpoints, in time before the failure (`time_ms`, None: not known), and in messages of which it is known
    that it had `received` or `sent` them, at least. `depth`: the fewest orphan messages on a chain from a failure
    to it; None: not asked for.
    """

    operator: str
    subtask: int
    checkpoints: int
    time_ms: int | None
    received: int
    sent: int
    depth: int | None = None


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
    """Useless checkpoints and the other kinds, kept apart (JSON of design section 5).

    `checkpoints` counts stored ones without initial states, as do `counts` (by kind) and `operators` (by operator);
    `kinds` says what each kind means. `cyclic`: channels form a cycle, without which none can be useless. `asked`
    is the one checkpoint that was asked for.
    """

    checkpoints: int
    cyclic: bool
    counts: dict[str, int]
    kinds: dict[str, str]
    operators: tuple[dict[str, Any], ...]
    useless: tuple[UselessCheckpoint, ...]
    asked: CheckpointId | None = None


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


@dataclass(frozen=True, slots=True)
class UpstreamOffset:
    """Where an upstream output queue is read again from: its record `pos` (to before `end`), at `offset` of `path`.

    `by` input: the record that the operator's own input number names; time: the first record at or after T.
    `tuples` and `bytes` of data records from there to the queue's end; `distinct_ts`: no two of them share a
    timestamp, None: nobody looked.
    """

    operator: str
    subtask: int
    channel: str
    pos: int | None
    end: int | None
    path: str
    offset: int
    by: Literal["input", "time"]
    tuples: int
    bytes: int | None
    distinct_ts: bool | None = None


@dataclass(frozen=True, slots=True)
class EventualReplay:
    """What the upstream must send again, from T *inclusive*; None: not known, or from the start of the input.

    `from_input` and the tuples up to the tail's are by the operator's own input numbers (several inputs: one
    number per channel).
    """

    from_ts: int | None
    from_input: int | dict[str, int] | None
    tuples: int | None
    bytes: int | None
    upstream: tuple[UpstreamOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of an eventual checkpoint: the records from the oldest footprint of an open window to the end.

    `records` counts those that are missing there too, where records are numbered; `by_type` those that are
    here. `from_` and `to` are record numbers (`pos`), inclusive, None if the records have none; `T`, `t_c` and
    the times of `oldest` are timestamps of input tuples.
    """

    operator: str
    subtask: int
    open_windows: int
    records: int
    bytes: int | None
    from_: int | None
    to: int | None
    T: int | None
    t_c: int | None
    by_type: dict[str, int]
    replay: EventualReplay
    oldest: tuple[dict[str, Any], ...]
    proof: Literal["proven", "after-replay", "lost"]


@dataclass(frozen=True, slots=True)
class EventualCheckpoint:
    """An eventual checkpoint, ready to load (JSON of design section 5).

    `emitted` counts the records of type emit at or after T: they are in the queue already and are not to be
    written again.
    """

    operator: str
    subtask: int
    t_c: int | None
    T: int | None
    T_input: int | dict[str, int] | None
    open_windows: int
    windows: tuple[dict[str, Any], ...]
    closed: tuple[dict[str, Any], ...]
    proof: Literal["proven", "after-replay", "lost"]
    replay: EventualReplay
    emitted: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers: the envelope's parts, before any rendering."""

    command: str
    verdict: Verdict
    exit_code: int
    inputs: tuple[InputUsed, ...]
    findings: tuple[Finding, ...]
    result: Any
