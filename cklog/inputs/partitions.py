"""Partitions of a replicated log (Kafka) as values: what a parser finds on disk, and what the analyses say of it.

Offsets are the *next* ones wherever something ends: log end, high watermark, recovery point, committed offsets.
A broker that was not stopped cleanly checks the segments from its recovery point on when it starts, and cuts the
log at the first batch that is not whole: `restart_end` is where the log will end then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa

from cklog.engine.scan import Damage
from cklog.model.findings import Finding, InputUsed

COMMITS = pa.schema(
    [
        pa.field("at", pa.int64(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int64(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("leader_epoch", pa.int64()),
        pa.field("producer", pa.int64(), nullable=False),
        pa.field("transactional", pa.bool_(), nullable=False),
    ]
)
"""A group's committed offset, as a record of the log of commits; `at` is that record's own offset. `offset` null: the
commit was deleted or has expired. `producer` -1: none."""

UNREAD = frozenset({"unreadable-file", "over-budget", "unknown-version"})
"""Damage of bytes that were not read: nothing is known of them, and no broker cuts a log for it."""

TransactionFate = Literal["commit", "abort", "open"]


class SegmentFile(NamedTuple):
    """A segment of a log: its path, the offset where it begins by its name, its bytes; `unread`: why it is not read.

    `indexed` False: its index is not here, though those of others are, and a starting broker makes it anew.
    """

    path: str
    base: int
    size: int
    unread: str = ""
    indexed: bool = True


class ProducerState(NamedTuple):
    """A producer as a snapshot has it; `open_from`: first offset of its open transaction, None if it has none."""

    producer: int
    epoch: int
    last_sequence: int
    last_offset: int
    time: int
    open_from: int | None


class ProducerSnapshot(NamedTuple):
    """The producers of a partition as of `offset` (exclusive)."""

    path: str
    offset: int
    producers: tuple[ProducerState, ...]


class AbortedSpan(NamedTuple):
    """A transaction that an index of aborted ones lists: `last` is the offset of its marker."""

    producer: int
    first: int
    last: int
    stable: int


class Folder(NamedTuple):
    """One partition's folder and what the broker's own files say of it; None: they do not say.

    `clean`: the broker was stopped cleanly, so that it will not check its logs. `compacted`: the broker has compacted
    it, up to before `cleaned_to`; None if there is no list of what it compacts. `snapshot` is the newest one. `deleted`
    segments wait for their deletion and still hold data. `unpaired` are indexes whose segments are not here.
    """

    topic: str
    partition: int
    path: str
    segments: tuple[SegmentFile, ...]
    clean: bool | None
    log_start: int | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    compacted: bool | None = None
    cleaned_to: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    snapshot: ProducerSnapshot | None = None
    aborted: tuple[AbortedSpan, ...] = ()
    deleted: tuple[SegmentFile, ...] = ()
    unpaired: tuple[SegmentFile, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def data_folder(self) -> str:
        """The broker's data folder that holds it; "." is PATH."""
        return self.path.rpartition("/")[0] or "."

    @property
    def internal(self) -> bool:
        """Whether the broker itself keeps its state in this topic."""
        return self.topic.startswith("__")


class BrokerLayout(NamedTuple):
    """Every partition below PATH, sorted by topic and number; `commit_folders`: those of the log of commits.

    One of `inputs` is a data folder (`Folder.data_folder`), its records not yet counted.
    """

    folders: tuple[Folder, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]
    commit_folders: tuple[Folder, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerTransaction:
    """A producer's transaction: from its first offset to before `end`, which is behind its marker.

    `end` None: it is open. In `doubt`: bytes that cannot be read lie inside it, and may have held its marker.
    """

    producer: int
    first: int
    end: int | None
    fate: TransactionFate
    records: int
    bytes: int
    time: int | None
    doubt: bool = False


class PartitionTransactions(NamedTuple):
    """Those of a partition: committed ones only counted (or in doubt), the others one by one, by first offset."""

    committed: int
    aborted: tuple[ProducerTransaction, ...]
    open: tuple[ProducerTransaction, ...]
    doubtful: tuple[ProducerTransaction, ...] = ()


@dataclass(frozen=True, slots=True)
class LogCut:
    """Where a restarting broker cuts a log: at byte `at` of `path`, because of `why`.

    Behind it lie `batches` whole batches with `records` records that the cut deletes, up to before offset `end`.
    """

    path: str
    at: int
    why: str
    batches: int
    records: int
    bytes: int
    end: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [start, end) between two segments that no segment holds; `path` is the later one."""

    start: int
    end: int
    path: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, read. Counts are of everything on disk that is whole, also behind a cut.

    `restart_end` is where it ends once the broker is back, if nothing is wrong with what could not be read; up to
    `sure_end` it is there in any case. `first_offset` is that of the first batch on disk, None if there is none;
    `first_time` the oldest time of all. `last_stable` and `transactions` are of the log as it will end after a restart:
    the first offset of the first open transaction, or `restart_end`; what a reader of committed data can reach.
    """

    folder: Folder
    log_start: int
    log_end: int
    restart_end: int
    sure_end: int
    last_stable: int
    batches: int
    records: int
    control: int
    bytes: int
    first_offset: int | None
    first_time: int | None
    last_time: int | None
    transactions: PartitionTransactions
    cut: LogCut | None
    gaps: tuple[Gap, ...]
    damage: tuple[Damage, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def unread(self) -> bool:
        """Whether some of a segment was not read: what is known of the log is a bound then."""
        return any(item.id in UNREAD for item in self.damage)

    @property
    def data(self) -> int:
        """Records that are no control records."""
        return self.records - self.control


class Range(NamedTuple):
    """Offsets [start, end) of a partition; `end` None: to where the log will end after a restart."""

    topic: str
    partition: int
    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class RangeCount:
    """What a range of offsets holds, up to where the log will end after a restart.

    Records: `data` of committed transactions or of none, `control` markers, `aborted`, and of `open` transactions.
    `bytes` of the batches that are touched, `data_bytes` of those that hold `data`. `exact` False: an edge batch did
    not decode, and counts whole. `unread`: a segment of the partition could not be read, which may hold more of the
    range.
    Offsets of the range: `missing` below the log's start, `beyond` the log's end after a restart, `unstable` behind the
    last stable offset, which no reader of committed data gets. `cut` records lie beyond the restarted log's end and are
    on disk now. `starts_in`: the fate of a transaction, aborted or open, that the range begins in the middle of.
    """

    topic: str
    partition: int
    start: int
    end: int
    data: int
    control: int
    aborted: int
    open: int
    bytes: int
    data_bytes: int
    exact: bool
    missing: int
    beyond: int
    unstable: int
    cut: int
    starts_in: TransactionFate | None
    unread: bool = False

    @property
    def records(self) -> int:
        return self.data + self.control + self.aborted + self.open


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """A group's committed offset: the next record to read. `at` is its record in `log`, the log of commits.

    `pending`: an offset that an open transaction would commit. `misplaced`: that log is not the group's own.
    `leader_epoch` of the last record that the group had read; None: the commit does not say.
    """

    group: str
    topic: str
    partition: int
    offset: int
    time: int | None
    log: str
    at: int
    pending: int | None = None
    misplaced: bool = False
    leader_epoch: int | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class DeletedCommit:
    """A committed offset that was deleted, or has expired: its last value, and when that was committed.

    `offset` None: the log of commits does not have the value any more. `at` is the deletion's record in `log`.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    time: int | None
    log: str
    at: int

    @property
    def name(self) -> str:
        """The partition."""
        return f"{self.topic}-{self.partition}"
