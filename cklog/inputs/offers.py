"""What a parser offers, by the kind of run that it declares: the one place to look when writing a parser.

A parser is a class that recognises a folder and hands over what lies there as values: it reads, and judges nothing.
Its `kind` says which of the protocols below it keeps, and with that which questions its folders can be asked
(docs/architecture.md has the table, docs/parsers.md a page for each kind).

    records     tables of checkpoint records, messages, events: native folders, CheckMate dumps, plug-ins
    queues      the same, and persisted output queues (CEC)
    batches     a log of micro-batches: Spark Structured Streaming
    snapshots   snapshots of whole jobs: Flink
    partitions  partitions of a broker: Kafka
    stores      state stores that are rebuilt from changelogs: Kafka Streams
    pieces      chains of base and delta checkpoints, and nothing else: stores by key
    connectors  where source connectors resume: Kafka Connect
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import pyarrow as pa

from cklog.engine.scan import Split
from cklog.model.findings import Finding, InputUsed
from cklog.storage import Root

if TYPE_CHECKING:  # types of values that only one kind hands over, and a run of another need not load
    from cklog.inputs.batches import FileLog, FileRead, FoundSize, LogListing, MetadataLogs
    from cklog.inputs.connectors import RecordFates, StoredOffsets, TakenRecord
    from cklog.inputs.partitions import BrokerLayout, SegmentFile
    from cklog.inputs.pieces import PiecesRead, Together
    from cklog.inputs.queues import Queue
    from cklog.inputs.sink_files import SinkFiles
    from cklog.inputs.snapshots import (
        ContentCheck,
        FilePlace,
        LoggedCheckpoint,
        SnapshotFolder,
        StateFile,
        StateStretch,
    )
    from cklog.inputs.stored_state import StoredState
    from cklog.inputs.stores import StoreLayout
    from cklog.model.names import Subtask

KindName = Literal["records", "queues", "batches", "snapshots", "partitions", "stores", "pieces", "connectors"]

RowFilter = Callable[[dict[str, tuple[Any, Any]]], bool]
"""Whether rows with such a (min, max) per column can matter: what it refuses need not be read."""


class Parser(Protocol):
    """What every parser has: a name for `--from`, the kind of run that its folder is, and tables that can be scanned.

    Rows of a table are read by the reader that a split names, in a task of either engine.
    """

    name: str

    @property
    def kind(self) -> KindName:
        """The kind of run; it may depend on what the folder holds."""

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what is wrong with a table's files as a whole, before any record is read."""

    def splits(self, table: str, split_bytes: int) -> Iterable[Split]:
        """Return what tasks read of a table, each about `split_bytes` of its files."""


class ParserClass(Protocol):
    """A parser before it is given a folder; `Format` says what its members mean."""

    name: str
    gathers: bool
    owns_below: bool

    @property
    def tables(self) -> Mapping[str, pa.Schema]:
        """The schema of each table that can be scanned."""

    @property
    def reads_beside(self) -> tuple[str, ...]:
        """Formats whose runs beside a run of this one are read with it."""

    @property
    def marks_beside(self) -> str:
        """A pattern of names: an entry in each folder beside the run's own that may be a part of it."""

    def __call__(self, root: Root) -> Parser:
        """Open a folder; nothing large is read yet."""

    def recognises(self, root: Root) -> bool:
        """Return whether a folder may be of this format, be it by the names of its folders alone."""

    def runs_below(self, root: Root) -> list[str]:
        """Return the folders in which runs of this format begin; "" is the root."""

    def whole_of(self, root: Root, folder: str) -> str:
        """Return the folder that holds all parts of the run in a folder: that one, as a rule."""


class Format:
    """The base of parsers: what is said of a format before a folder is opened, as most formats have it."""

    tables: ClassVar[Mapping[str, pa.Schema]]
    """The schema of each table that can be scanned."""

    gathers: ClassVar[bool] = False
    """Whether several folders of `runs_below` are answered together, from the folder above them."""

    owns_below: ClassVar[bool] = False
    """Whether whatever lies below a run's folder is part of it, runs of other formats among it."""

    reads_beside: ClassVar[tuple[str, ...]] = ()
    """Formats whose runs beside a run of this one are read with it, and are no runs of their own then."""

    marks_beside: ClassVar[str] = ""
    """What some entry is called, as a pattern, in each folder that may be a part of the run beside the run's own."""

    @staticmethod
    def whole_of(root: Root, folder: str) -> str:
        """Return the folder that holds all parts of the run in a folder: the one above, if parts of it lie there."""
        return folder


class OffersRecords(Parser, Protocol):
    """Kind `records`: tables of `cklog.model.schemas.TABLES`, scanned; nothing is read before it is asked for."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What `job.json` says, or what the format says instead of it; {} for nothing."""

    def has(self, table: str) -> bool:
        """Return whether there is any file of a table, readable or not."""

    def bytes_of(self, table: str) -> int:
        """Return the size of a table's files: it decides which engine scans them."""

    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]:
        """Return a table's files as inputs of an answer; `records_read` are the intact records, by file."""

    def is_stored(self, uri: str) -> bool | None:
        """Return whether a state file that a record names is there; None: it is not below PATH, so nobody looked."""

    def checkpoint_at(self, path: str) -> tuple[Subtask, int] | None:
        """Return whose checkpoint a file holds, and when it was taken (ms), where its name says so; else None."""

    def splits(self, table: str, split_bytes: int, wanted: RowFilter | None = None) -> Iterable[Split]:
        """Return what tasks read of a table; `wanted` may refuse parts of files by their (min, max) per column."""


class OffersQueues(OffersRecords, Protocol):
    """Kind `queues`: records, and output queues of some or all subtasks."""

    @property
    def manifest_findings(self) -> tuple[Finding, ...]:
        """What is wrong with what `manifest` says; every answer about queues rests on the channels that it names."""

    def queues(self) -> Mapping[Subtask, Queue]:
        """Return the persisted output queues, by subtask."""


class OffersPieces(Parser, Protocol):
    """Kind `pieces`: chains of base and delta checkpoints."""

    restored_together: Together
    """Whether the chains of a subtask, or those of the whole run, go back to one version together."""

    def pieces(self) -> PiecesRead:
        """Return the stored parts of all chains (`cklog.inputs.pieces.PIECES`)."""


class OffersBatches(Parser, Protocol):
    """Kind `batches`: the logs of a query's micro-batches, its state stores, and the folders that its sink wrote to.

    Nothing is judged here; `cklog.runs.batches` says where a restart goes on. Sources are named as in the logs.
    """

    @property
    def has_state(self) -> bool:
        """Whether there is any file of state."""

    def logs(self) -> MetadataLogs:
        """Read the query's metadata, and every plan and commit."""

    def state(self, logs: MetadataLogs, thorough: bool = False, needed: int | None = None) -> StoredState:
        """Return the state stores as of the batches in `logs`, which may be fewer than there are.

        `needed` is the version that a restart loads, None: the one after the newest commit. `thorough`: of tables that
        no checksum file proves every block is checked, not only what leads to them.
        """

    def source_listing(self, source: str) -> LogListing:
        """List the log of a source, which may have none."""

    def source_log(self, source: str) -> FileLog:
        """Read the log of a file source."""

    def first_offset(self, source: str, verify: bool) -> FileRead[Any] | None:
        """Read where a source began, None if no file says so; `verify` it against its checksum file."""

    def size_of(self, stored: str) -> FoundSize:
        """Return the size of an input file, given by its stored path."""

    def sinks(self) -> tuple[str, ...]:
        """Return the folders with the log of a file sink that lie beside the checkpoint, sorted."""

    def sink_log(self, folder: str, everything: bool = False) -> FileLog:
        """Read the log of a file sink; `everything`: what lies before its newest compact file, too."""

    def bare_sinks(self) -> tuple[str, ...]:
        """Return the folders beside the checkpoint that look written to by a file sink, but have no log, sorted."""

    def sink_files(self, folder: str, log: FileLog) -> SinkFiles:
        """Compare what lies in the folder of a file sink with its log, as `sink_log` returned it."""

    def files_below(self, folder: str) -> tuple[str, ...]:
        """Return every file in a folder of the checkpoint, whatever it is, sorted."""

    def with_checksums(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return paths, and those of their checksum files that are there, sorted."""

    def inputs(self, logs: MetadataLogs, sink: str | None) -> tuple[InputUsed, ...]:
        """Return the logs of the query, and that of its sink, as inputs of an answer."""


class OffersSnapshots(Parser, Protocol):
    """Kind `snapshots`: checkpoints and savepoints of jobs, and the state files that they name.

    The rows of all metadata are the table "snapshots" (`cklog.inputs.snapshots.SNAPSHOTS`).
    """

    only: str | None
    """The name of the one checkpoint that PATH is; None: PATH is a job's folder, or one above."""

    snapshots: tuple[SnapshotFolder, ...]
    """Every snapshot folder, with its metadata or without, sorted by path."""

    def job_id(self, job: str) -> str:
        """Return the name of a job's folder, or of a savepoint's."""

    def original(self, path: str) -> str:
        """Return what a folder below PATH is called where the job runs."""

    def taken_from(self, folder: str) -> str | None:
        """Return the beginning of the id of the job that a savepoint was taken of; None: it is no savepoint."""

    def id_of_uid(self, uid: str) -> str:
        """Return the operator id that the engine makes of a uid."""

    def job_log(self, path: str) -> list[LoggedCheckpoint]:
        """Return what a job manager's log tells of checkpoints: a row each."""

    def last_restore(self, path: str) -> tuple[str, int, int | None] | None:
        """Return the job and checkpoint of a log's last restore, and the newest that was complete by then."""

    def bytes_of(self, table: str) -> int:
        """Return the size of all metadata files."""

    def inputs(self, rows: int) -> tuple[InputUsed, ...]:
        """Return the metadata files as inputs of an answer."""

    def places(self, snapshot: str, stored: Sequence[str]) -> list[FilePlace]:
        """Return where the files are now that a snapshot names."""

    def beside(self, snapshot: str, stored: str) -> list[str]:
        """Return the names of the files that are in the folder of a file that a snapshot names."""

    def named(self, name: str) -> list[FilePlace]:
        """Return the files of a name, wherever below PATH."""

    def contents(self, stretches: Sequence[StateStretch], thorough: bool) -> list[ContentCheck]:
        """Return what looking into stretches of files shows: what they begin and end with, or all (`thorough`)."""

    def state_files(self) -> list[StateFile]:
        """Return every file that may hold state, with the job or snapshot that it belongs to."""


class OffersPartitions(Parser, Protocol):
    """Kind `partitions`: the partitions of a broker's data folders."""

    def partitions(self) -> BrokerLayout:
        """Return the folders, before any segment is read."""

    def batch_splits(self, segments: Sequence[SegmentFile], step: int) -> list[Split]:
        """Return splits of about `step` bytes whose table is `cklog.inputs.record_batches.BATCHES`."""

    def commit_splits(self, segments: Sequence[SegmentFile], step: int) -> list[Split]:
        """Return splits whose table is `cklog.inputs.partitions.COMMITS`."""

    def coordinator(self, group: str, partitions: int) -> int:
        """Return the partition of the log of commits that a group's commits belong into."""

    def offsets(self, path: str, at: int) -> list[int] | None:
        """Return the offsets of the records of the batch at byte `at`; None if it does not decode."""


class OffersStores(Parser, Protocol):
    """Kind `stores`: tasks with state stores, and the offsets up to which changelogs were applied."""

    def stores(self) -> StoreLayout:
        """Return every task with its stores and entries."""


class OffersConnectors(Parser, Protocol):
    """Kind `connectors`: what source connectors have stored of where they are, and records that they have written."""

    def topics(self) -> tuple[str, ...]:
        """Return the topics below PATH that hold connectors' offsets, sorted."""

    def offsets(self, fates: RecordFates) -> StoredOffsets:
        """Return the newest entry of each key in every store below PATH; `fates` says which records of a log count."""

    def taken(self, topic: str, fates: RecordFates) -> Iterator[Iterator[TakenRecord]]:
        """Yield for each partition of a data topic below PATH its records, from the end backwards, as far as wanted."""

    def taken_in(self, path: str) -> Iterator[TakenRecord]:
        """Yield the records in a file of JSON lines, wherever it is; the last one comes first.

        Raises
        ------
        OSError : there is no such file
        """
