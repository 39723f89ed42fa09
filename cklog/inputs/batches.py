"""Micro-batches: what a parser hands over of a query's logs and state, each file with its value or its flaw.

A query keeps folders of small files, one for each batch: `offsets` say what a batch reads, `commits` that it is done,
and the logs of file sources and file sinks list files. What follows from a flaw is not said here, but judged in
`cklog.runs.batches`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from cklog.model.verdict import NOT_JUDGED
from cklog.storage import FileEntry

T = TypeVar("T")
_POSITIVE = re.compile("[0-9]{0,5}[1-9][0-9]{0,5}")
FoundSize = int | Literal["outside"] | None
"""The size of a stored file in bytes; None: it is missing; "outside": it lies outside PATH, so nobody looked."""


@dataclass(frozen=True, slots=True)
class FileFlaw:
    """Why a file cannot be used; `id` is the finding's, `offset` the byte where it shows, if at one.

    `passed`: Spark uses it all the same. Read off Spark 4.3, a restart looks at no checksum of a log's file, and takes
    a number that is not there for 0.
    """

    id: str
    offset: int | None
    why: str
    passed: bool = False


@dataclass(frozen=True, slots=True)
class FileRead(Generic[T]):
    """A file that was read: its value, or the flaw that it has instead; `size` in bytes.

    `sidecar` is the path of its checksum file, there or not; `unchecked`: that is there, but cannot be read.
    """

    path: str
    size: int
    sidecar: str
    value: T | None = None
    flaw: FileFlaw | None = None
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class LogListing:
    """The files of one log by their batch; `orphans` are batches of which only a checksum file is left.

    `compacts` are batches whose file lists everything before, too; `sidecars` are checksum files by path.
    """

    folder: str
    files: Mapping[int, FileEntry] = field(default_factory=dict)
    compacts: frozenset[int] = frozenset()
    orphans: tuple[int, ...] = ()
    sidecars: Mapping[str, FileEntry] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        """The newest batch with a file, -1 if there is none."""
        return max(self.files, default=-1)

    @property
    def base(self) -> int:
        """The first file that a reader of the whole log needs: the newest compact one, else 0."""
        return max(self.compacts, default=0)

    def bytes(self) -> int:
        """Return the size of all files."""
        return sum(entry.size for entry in self.files.values())

    def left_checksums(self, after: int) -> tuple[str, ...]:
        """Return checksum files of later batches whose own file is gone: who writes that again stops there."""
        names = (f".{n}{kind}.crc" for n in self.orphans if n > after for kind in ("", ".compact"))
        return tuple(path for name in names if (path := f"{self.folder}/{name}") in self.sidecars)


class LoggedFile(NamedTuple):
    """A file that a source's or sink's log names, its batch and size if the line says them, and the line's offset.

    `deleted`: the line takes the file out of a sink's log, which readers then pass over wherever it is listed.
    `written` is when it was, in ms, if a sink's log says so.
    """

    path: str
    batch: int | None
    size: int | None
    offset: int
    deleted: bool = False
    written: int | None = None


@dataclass(frozen=True, slots=True)
class FileLog:
    """The log of a source or sink, read from its newest compact file on."""

    listing: LogListing
    reads: Mapping[int, FileRead[tuple[LoggedFile, ...]]]


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """The plan of a batch: where each source ends, by its place in the query or its id; None: it has no data yet.

    `watermark` and `time` in ms since the epoch. `conf` holds the settings that a restart takes from here, such as the
    class of the state stores' provider. `version` is that of the file's form.
    """

    watermark: int | None
    time: int | None
    ends: dict[str, Any]
    conf: dict[str, Any] = field(default_factory=dict)
    version: int = 1

    @property
    def is_continuous(self) -> bool:
        """Whether the plan is one of a continuous trigger, which writes no settings and no time."""
        return self.time is None and self.watermark is None and not self.conf

    @property
    def is_named(self) -> bool:
        """Whether sources have names, by which a restart finds them; else they are found by their place."""
        return self.version >= 2 and any(not key.isdecimal() for key in self.ends)

    @property
    def partitions(self) -> int | None:
        """How many partitions operators have whose rows are shuffled, None if the settings do not say it."""
        text = str(self.conf.get("spark.sql.shuffle.partitions", ""))
        return int(text) if _POSITIVE.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """The end of a batch. `ids`: of each operator, per partition, the ids of the state that the batch left, if any.

    `version` is that of the file's form.
    """

    watermark: int | None
    ids: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that left an offsets or commits file; `time` and `watermark` in ms, None if they are not known.

    `offsets`: the end of each source, None if they cannot be read.
    """

    batch: int
    committed: bool
    planned: bool
    offsets: dict[str, Any] | None
    time: int | None
    watermark: int | None


class ListedBatches(NamedTuple):
    """The planned batches without a commit that a sink has.

    `by` : what says so; `complete` : whether it has all of them but the newest; `skips` : whether the sink drops every
    batch up to the newest that it has, and never forgets that
    """

    by: str
    batches: frozenset[int]
    complete: bool
    skips: bool = False

    @property
    def sentence_subject(self) -> str:
        """What says so, as the beginning of a sentence."""
        return self.by[:1].upper() + self.by[1:]


@dataclass(frozen=True, slots=True)
class MetadataLogs:
    """Everything in `metadata`, `offsets/` and `commits/`, which lie below the folder `prefix` ("" or "name/").

    `metadata` is the query's id, None if there is no such file; `offsets` and `commits` are by batch. `linked` are
    folders of logs, those of sources and sinks too, that are links and were not followed; `unseen` are these and what
    else of the query could not be listed, so that nothing in there is known to be missing. `asynchronous`: progress is
    tracked asynchronously, so that batches leave nothing between those that are here. `continuous`: a continuous
    trigger wrote the newest plan, when its epoch had ended; such a query keeps no state. `shown_done` is the newest
    batch that has no commit and that its sink and its state show to be done, -1 for none. `sink_lists` are those of the
    planned batches without a commit that the sink has; None: that is not known. `state_has_ids`: the newest version of
    the state has an id in its name (state checkpoint format 2), which a commit has to give.
    """

    prefix: str
    metadata: FileRead[str] | None
    offset_log: LogListing
    commit_log: LogListing
    offsets: Mapping[int, FileRead[BatchOffsets]]
    commits: Mapping[int, FileRead[BatchCommit]]
    linked: tuple[str, ...] = ()
    asynchronous: bool = False
    continuous: bool = False
    unseen: tuple[str, ...] = ()
    shown_done: int = -1
    sink_lists: ListedBatches | None = None
    state_has_ids: bool = False
    _plans: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The batches in `offsets`, in order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plans", tuple(sorted(self.offsets)))

    def hides(self, path: str) -> str:
        """Return what could not be listed and is a path, or holds it; "" where all that is there was seen."""
        return next((one for one in self.unseen if f"{path}/".startswith(f"{one}/")), "")

    def hidden_below(self, folder: str) -> str:
        """Return what could not be listed and is a folder, holds it, or lies in it; "" for nothing."""
        return self.hides(folder) or next((one for one in self.unseen if one.startswith(f"{folder}/")), "")

    @property
    def hidden(self) -> tuple[str, ...]:
        """What of the checkpoint itself could not be listed."""
        return tuple(path for path in self.unseen if path.startswith(self.prefix))

    @property
    def hidden_log(self) -> str:
        """Which of the two logs of batches could not be listed; "" for neither."""
        return self.hides(self.commit_log.folder) or self.hides(self.offset_log.folder)

    def before(self, batch: int) -> int:
        """Return the batch whose plan says where another starts: the one before, or the newest planned one before."""
        place = bisect_left(self._plans, batch) if self.asynchronous else 0
        return self._plans[place - 1] if place else batch - 1

    @property
    def planned(self) -> int:
        """The newest planned batch, -1 for none; its file may be damaged."""
        return self._plans[-1] if self._plans else -1

    @property
    def committed(self) -> int:
        """The newest batch with a commit that is not damaged, -1 for none.

        One that was not judged may be whole; one that Spark uses all the same is a commit for it. Where progress is
        tracked asynchronously a plan shows that the planned batch before it is done, and a restart reads on from there.
        """
        flaws = ((n, read.flaw) for n, read in self.commits.items())
        newest = max((n for n, flaw in flaws if flaw is None or flaw.passed or flaw.id in NOT_JUDGED), default=-1)
        if self.asynchronous and newest < self.planned:
            return self.before(self.planned)
        return max(newest, self.shown_done)

    @property
    def not_judged(self) -> str:
        """Say which files that a restart reads were not judged, and what could not be listed; "" for none."""
        needed = [
            self.metadata,
            self.offsets.get(self.planned),
            self.offsets.get(self.before(self.planned)),
            self.commits.get(self.committed),
        ]
        reads = (read for read in needed if read is not None)
        flawed = [read for read in reads if read.flaw is not None and read.flaw.id in NOT_JUDGED]
        said = [f"{read.path}: {read.flaw.why}" for read in flawed if read.flaw is not None]
        return "; ".join([*(f"{path} could not be read" for path in self.hidden), *said])

    @property
    def newest_plan(self) -> BatchOffsets | None:
        """The newest plan that can be read, None if there is none."""
        return next((read.value for n in reversed(self._plans) if (read := self.offsets[n]).value), None)

    def ends(self, batch: int) -> dict[str, Any] | None:
        """Return the end offset of each source in a batch, None if unknown."""
        read = self.offsets.get(batch)
        return read.value.ends if read is not None and read.value is not None else None

    def partitions(self, batch: int) -> int | None:
        """Return how many partitions a batch has, None if unknown."""
        read = self.offsets.get(batch)
        return read.value.partitions if read is not None and read.value is not None else None

    def batches(self) -> tuple[Batch, ...]:
        """Return every batch that left a plan or a commit, in order."""
        return tuple(map(self._batch, sorted(self.offsets.keys() | self.commits.keys())))

    def _batch(self, number: int) -> Batch:
        """Put together what the logs say of one batch."""
        planned, commit = self.offsets.get(number), self.commits.get(number)
        plan = planned.value if planned is not None else None
        return Batch(
            batch=number,
            committed=commit is not None and commit.flaw is None,
            planned=planned is not None,
            offsets=plan.ends if plan is not None else None,
            time=plan.time if plan is not None else None,
            watermark=plan.watermark if plan is not None else None,
        )


def is_asynchronous(logs: MetadataLogs) -> bool:
    """Return whether both logs of a query without state leave out the same batches.

    So does asynchronous progress tracking, which only takes queries without state. One batch that is missing from both
    logs may as well be damage. Of older batches one log may have lost some, as long as both lack more of the others.
    """
    plans, done = logs.offsets.keys(), logs.commits.keys()
    if len(plans) < 2 or not done or any(read.value is not None and read.value.ids for read in logs.commits.values()):
        return False
    logged = plans | done
    first, newest = min(logged), max(plans)
    left_out = max(logged) - first + 1 - len(logged)
    lost = [*lost_entries(plans, done, newest), *lost_entries(done, plans, newest)]
    orphans = {*logs.offset_log.orphans, *logs.commit_log.orphans}
    same = max(done) <= newest and left_out > max(1, len(lost))
    return same and not any(first < n < newest for n in orphans)


def lost_entries(log: Collection[int], other: Collection[int], newest: int) -> list[int]:
    """Return the batches before the newest that a log lacks and the other has; both may begin at another batch.

    >>> lost_entries([3, 5, 9], [0, 3, 4, 5, 9], 9)
    [4]
    """
    begin = max(min(log, default=0), min(other, default=0))
    return sorted(n for n in {*other} - {*log} if begin <= n < newest)


Version = tuple[int, int]

_STORE = "spark.sql.streaming.stateStore."
_SIGNS: tuple[tuple[str, Version], ...] = (
    (f"{_STORE}rocksdb.mergeOperatorVersion", (4, 2)),
    (f"{_STORE}rowChecksum.enabled", (4, 1)),
    (f"{_STORE}encodingFormat", (4, 0)),
)
"""Settings that are in every plan from a version on."""
_OLD = f"{_STORE}rocksdb.formatVersion"
"""A setting of every plan since Spark 3: a plan with it and without a sign is of an older version."""


class SparkVersion(NamedTuple):
    """What the files show of the version that wrote them.

    Attributes
    ----------
    least : at least this version; None: nothing shows it
    below : before this version; None: nothing shows it
    why : what shows it
    """

    least: Version | None
    below: Version | None
    why: str

    def since(self, version: Version) -> bool | None:
        """Return whether files are of a version, or newer; None: nothing shows it."""
        if self.least is not None and self.least >= version:
            return True
        return False if self.below is not None and self.below <= version else None

    def __str__(self) -> str:
        """Say it, "" if nothing is known.

        >>> str(SparkVersion((4, 0), (4, 1), "offsets/3"))
        'Spark 4.0 or newer and before 4.1, by offsets/3'
        """
        least = f"{self.least[0]}.{self.least[1]} or newer" if self.least else ""
        below = f"before {self.below[0]}.{self.below[1]}" if self.below else ""
        known = " and ".join(filter(None, (least, below)))
        return f"Spark {known}, by {self.why}" if known else ""


def spark_version(logs: MetadataLogs) -> SparkVersion:
    """Infer the version of Spark from the newest plan and commit that can be read; the newest sign counts."""
    plan = next((read for _, read in sorted(logs.offsets.items(), reverse=True) if read.value is not None), None)
    commit = next((read for _, read in sorted(logs.commits.items(), reverse=True) if read.value is not None), None)
    signs: list[tuple[Version, str]] = []
    lacking: list[tuple[Version, str]] = []
    if plan is not None and plan.value is not None:
        conf, path = plan.value.conf, plan.path
        signs += [(version, f"{key} in {path}") for key, version in _SIGNS if key in conf]
        signs += [((4, 2), f"the form of {path}")] if plan.value.version > 1 else []
        lacking += [(version, f"the lack of {key}") for key, version in _SIGNS if _OLD in conf and key not in conf]
    if commit is not None and commit.value is not None and commit.value.version > 1:
        signs.append(((4, 3) if commit.value.version > 2 else (4, 0), f"the form of {commit.path}"))
    least, why = max(signs, default=(None, ""))
    below, lack = min((one for one in lacking if least is None or one[0] > least), default=(None, ""))
    return SparkVersion(least, below, " and ".join(filter(None, (why, lack))))
