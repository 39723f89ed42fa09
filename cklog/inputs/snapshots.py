"""Snapshots of whole jobs (Flink checkpoints and savepoints) as a table: one row per thing that a snapshot says.

A snapshot is coordinated: complete and with all its files, it is a recovery line by itself. What has to be decided is
whether it is complete, what else it needs, where its sources resume and what was in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

import pyarrow as pa

SPLITS, CDC = "SourceReaderState", "cdc"
"""The list in which a source keeps its readers' splits, and the kind of splits that read a database's log."""

LATER_VERSION = "later-version"
"""The kind of what is not decoded because its version is later than all that are known of its class."""

SNAPSHOTS = pa.schema(
    [
        pa.field("entry", pa.string(), nullable=False),
        pa.field("checkpoint", pa.int64()),
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("uid", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("file", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("at_least", pa.bool_()),
        pa.field("offset", pa.int64()),
        pa.field("stop", pa.int64()),
        pa.field("parallelism", pa.int64()),
        pa.field("max_parallelism", pa.int64()),
        pa.field("gate", pa.int64()),
        pa.field("channel", pa.int64()),
        pa.field("version", pa.int64()),
        pa.field("detail", pa.string()),
        pa.field("form", pa.string()),
        pa.field("offsets", pa.list_(pa.int64())),
    ]
)
"""Columns by `entry`; null where a row has nothing to say. `operator` is the hex id, `_path` the snapshot's metadata.

snapshot     checkpoint, version (of the format), name (Checkpoint / Savepoint / …; null before version 4), kind
             (how it was written: CANONICAL / NATIVE / …), detail (the settings that are on, comma-separated), bytes (of
             the metadata file), file (where the snapshot's own folder was when it was written, if its handles tell)
operator     operator, name, uid (null where the format has none), parallelism, max_parallelism, kind ("finished" if the
             whole operator is), detail (coordinator state: its size in bytes, null if none)
finished     operator, subtask: that instance had finished
claim        the state backend (kind: changelog) takes no checkpoint that shares nothing with older ones, so a restore
             has to claim this one; operator and subtask of whom it is first seen
reference    operator, subtask: the state of that instance is the one of the older `checkpoint` (version 7)
handle       operator, subtask (null: the operator's coordinator, or a master hook), name (inline / absolute /
             relative / segment / empty), kind (coordinator / master / managed-operator / raw-operator /
             managed-keyed / raw-keyed / input-channel / output-channel), file (as stored: a URI, or a path
             relative to the metadata; null if inline), start (first byte used), bytes (used; null: the writer did not
             know), at_least (the file may be longer than start + bytes; null if inline), uid (the keyed backend's
             uuid), detail (exclusive / shared / private / task-owned / changelog, or null; of a master hook: its
             name), form (a `StateForm`: what lies in the bytes; null if nothing tells), offsets (of keyed-state: the
             first key group, then where each begins; of changes: where the increment does; of current: the number of
             the one MANIFEST beside it). A file of in-flight data is told once per subtask and side, though others may
             share it
channel      in-flight data: operator, subtask, kind (input / output), gate (or partition), channel (or
             subpartition), bytes
source       a split: operator, subtask (null: the coordinator has it), name ("topic-0", or the split's id), kind
             (kafka / dynamic-kafka / number-sequence / cdc), offset (next to read; null for cdc), stop (exclusive;
             null: none), detail (its cluster; of cdc where it resumes in the database's log, as JSON)
enumerator   a partition that the coordinator knows: operator, name, kind (assigned / unassigned), offset; or, without a
             name, kind discovering: it had not yet looked for partitions; or iceberg: a table is read, offset (the
             snapshot up to which files of it were found, null: none, or it is read once)
transaction  operator, subtask, name (transactional id), kind (open: of a writer; pending / failed / committed: of a
             committer), checkpoint, detail ("producer 7 epoch 0"); or, kind prefix, what a writer's ids begin with
pending      what a sink is to commit after a restore, a row for each file that it names: operator, subtask, kind
             (pending / failed / committed, or in-progress: a file that its writer goes on with), checkpoint (the number
             under which it is committed), form (iceberg / iceberg-dynamic / iceberg-files / paimon / file; null:
             unknown), uid (who commits, as the table knows it; null: see the operator's committer), name (the table, or
             the bucket, where it is named), file (null: it names none, or they are not understood), bytes (that it has
             at least), detail (iceberg: the operator that commits; file: what the file becomes; paimon: how many
             messages), version (of what is not understood any further; null: all of it is)
committer    operator, subtask, uid (who a restore tells the table that it is: a job's id, a commit user), form
unread       something that is there and was not decoded: operator, subtask, kind (a word; later-version: of a class
             that is known), detail (a sentence), name (`SourceReaderState` if it says where a source resumes)
"""

COLUMNS = tuple(SNAPSHOTS.names)

Area = Literal["exclusive", "shared", "task-owned", "changelog"]

StateForm = Literal[
    "operator-state", "keyed-state", "keyed-meta", "changes", "channels", "sst", "manifest", "current", "options"
]
"""What the bytes of a handle are: state of an operator; keyed state by key group, or what describes that of an LSM
tree; increments of a changelog; data in flight; the files of RocksDB or ForSt."""


@dataclass(frozen=True, slots=True)
class SnapshotFolder:
    """A folder of one checkpoint or savepoint. Paths are relative to PATH, "" is PATH itself.

    `job` is the folder of the job that wrote it (a savepoint: its own folder). `number` is the checkpoint's by the
    folder's name, None if it has none there; `metadata` the path of its metadata, None if there is none: in progress,
    or torn. `files` and `bytes` count what lies in it. `written` is when the metadata was last written, in ms, None if
    nothing says: the snapshot is not younger, but a copy of the file may be.
    """

    path: str
    job: str
    number: int | None
    savepoint: bool
    metadata: str | None
    files: int
    bytes: int
    written: int | None = None


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a stored file is now: `path` relative to PATH (or a URI, by `--map`), `size` in bytes, None if missing.

    `outside`: its place is not under PATH and no map says where it is, so nobody looked. `moved`: it was found by its
    job's id, at another place than the one that is stored.
    """

    path: str
    size: int | None
    outside: bool = False
    moved: bool = False


class StateStretch(NamedTuple):
    """Bytes that a handle names: of the file `path` (as of `FilePlace`) from `start` on, `bytes` of them or all.

    `form` and `offsets` are those of the handle's row.
    """

    path: str
    start: int
    bytes: int | None
    form: str
    offsets: tuple[int, ...] = ()


class ContentCheck(NamedTuple):
    """What looking into a stretch showed: `flaw`, with the byte `at` of the file; "" if it may be what was written.

    `unread`: why it cannot be read, so that nothing is known of it; `unproved`: why its bytes were not looked at as far
    as was asked for; `unknown`: what of it, at byte `at`, is of no version that is known; all "" if that is not so.
    """

    flaw: str = ""
    at: int | None = None
    unread: str = ""
    unproved: str = ""
    unknown: str = ""


class LoggedCheckpoint(TypedDict):
    """What a job manager's log says of a checkpoint; `late` and `restored` are how often it says so.

    `job` None: no sentence names it. Times in ms, since the epoch where it is a moment.
    """

    job: str | None
    checkpoint: int
    state: str
    trigger_time: int | None
    duration_ms: int | None
    bytes: int | None
    late: int
    restored: int


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that belongs to a job, or to a snapshot of its own; `owner` is that folder."""

    path: str
    bytes: int
    owner: str
    area: Area
