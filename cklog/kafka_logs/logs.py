"""A folder of partitions, opened: each partition is read once, and ranges of its offsets are counted.

This is the channel log of a run whose channels are partitions: a recovery line says which offsets to replay, and
`PartitionLogs.counts` says what lies there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.engine.reading import Reading
from cklog.engine.scan import Damage, Scan, Scanned
from cklog.errors import NotFound
from cklog.inputs.offers import OffersPartitions
from cklog.inputs.partitions import (
    UNREAD,
    BrokerLayout,
    DeletedCommit,
    Folder,
    GroupCommit,
    Partition,
    Range,
    RangeCount,
    SegmentFile,
)
from cklog.kafka_logs import batch_runs, ended, group_commits, range_counts
from cklog.kafka_logs.ended import EndedTransaction, ProducerEpoch
from cklog.kafka_logs.partition import partition_of

_COMMITS_LOST = UNREAD | {"bad-record"}
"""Damage that the scan of committed offsets finds; that of batches is found by the scan of their headers."""


class CommittedOffsets(NamedTuple):
    """Committed offsets by group, topic and partition, the damage in their log, and what was deleted."""

    found: tuple[GroupCommit, ...]
    damage: tuple[Damage, ...]
    deleted: tuple[DeletedCommit, ...] = ()

    def of_group(self, group: str) -> CommittedOffsets:
        """Return what one group has committed.

        Raises
        ------
        NotFound : it has committed nothing here, as far as all commits could be read
        """
        found = tuple(c for c in self.found if c.group == group)
        deleted = tuple(c for c in self.deleted if c.group == group)
        if not found and not deleted and not self.damage:
            groups = {c.group for c in self.found} | {c.group for c in self.deleted}
            known = ", ".join(sorted(groups)[:5])
            raise NotFound(f"--group {group}: it has committed nothing here", f"groups: {known}" if known else "")
        return self._replace(found=found, deleted=deleted)


class PartitionLogs:
    """Partitions below a folder, as `logs` (a parser) finds them. Nothing is read before it is asked for."""

    def __init__(self, logs: OffersPartitions, reading: Reading) -> None:
        self._logs = logs
        self._reading = reading
        self._read: dict[str, Partition] = {}
        self._ended: dict[ProducerEpoch, list[EndedTransaction]] = {}

    @functools.cached_property
    def layout(self) -> BrokerLayout:
        """The folders, found before anything is read of their segments."""
        return self._logs.partitions()

    def partitions(self, names: Iterable[str] | None = None) -> dict[str, Partition]:
        """Return the partitions of these names ("topic-0"), or all; by name, in the order of topics and numbers.

        Raises
        ------
        NotFound : a name that is not there
        """
        folders = {folder.name: folder for folder in self.layout.folders}
        wanted = folders.keys() if names is None else set(names)
        missing = sorted(wanted - folders.keys())
        if missing:
            raise NotFound(f"{', '.join(missing)}: no such partition", f"there are {', '.join(folders) or 'none'}")
        here = [name for name in folders if name in wanted]
        self._read_folders([folders[name] for name in here if name not in self._read])
        return {name: self._read[name] for name in here}

    def counts(self, ranges: Sequence[Range]) -> list[RangeCount]:
        """Return what each range holds, in the order asked.

        Raises
        ------
        NotFound : a partition that is not there
        """
        named: dict[str, list[Range]] = {}
        for wanted in ranges:
            named.setdefault(f"{wanted.topic}-{wanted.partition}", []).append(wanted)
        partitions = self.partitions(named)
        asked = {p.folder.path: range_counts.points_of(p, named[name]) for name, p in partitions.items()}
        segments = [s for name, p in partitions.items() for s in _touched_segments(p, named[name])]
        kernel = range_counts.counting_kernel(asked)
        columns, schema = range_counts.COLUMNS, range_counts.COUNTED
        found = self._scan_batches(segments, columns, kernel, schema, range_counts.REDUCE).table.to_pylist()
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in found:
            rows.setdefault(row["path"].rpartition("/")[0], []).append(row)
        return [self._range_count(partitions[f"{r.topic}-{r.partition}"], r, rows) for r in ranges]

    def count(self, topic: str, partition: int, start: int, end: int | None = None) -> RangeCount:
        """Return what offsets [start, end) of a partition hold; `end` None: to the log's end after a restart."""
        return self.counts([Range(topic, partition, start, end)])[0]

    def ended(self, wanted: Iterable[ProducerEpoch]) -> dict[ProducerEpoch, list[EndedTransaction]]:
        """Return what each transaction has in each partition, and how it ended there; [] if no log here has it.

        All that were not asked for before cost one scan of all partitions.
        """
        asked = frozenset(wanted)
        self._ended |= self._find_ended(asked - self._ended.keys())
        return {one: self._ended[one] for one in asked}

    def _find_ended(self, asked: frozenset[ProducerEpoch]) -> dict[ProducerEpoch, list[EndedTransaction]]:
        found: dict[ProducerEpoch, list[EndedTransaction]] = {one: [] for one in asked}
        if not asked:
            return found
        partitions = [p for p in self.partitions().values() if not p.folder.internal]
        segments = [segment for p in partitions for segment in p.folder.segments]
        scanned = self._scan_batches(segments, ended.COLUMNS, ended.kernel_of(asked), ended.FOUND, None)
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in scanned.table.to_pylist():
            rows.setdefault(row["path"].rpartition("/")[0], []).append(row)
        for p in partitions:
            for one in ended.ended_in(p, rows.get(p.folder.path, []), asked):
                found[one.of].append(one)
        return found

    @functools.cached_property
    def commits(self) -> CommittedOffsets:
        """The committed offsets of every group."""
        logs = self.partitions([folder.name for folder in self.layout.commit_folders])
        segments = [segment for log in logs.values() for segment in log.folder.segments]
        splits = tuple(self._logs.commit_splits(segments, self._reading.split_bytes))
        schema, kernel = group_commits.LAST, group_commits.last_commit_kernel(logs.values())
        scan = Scan(
            splits,
            "commits",
            columns=group_commits.COLUMNS,
            kernel=kernel,
            partial=schema,
            reduce=None,
            trim=group_commits.trimmed,
        )
        scanned = self._run_scan(scan)
        found, deleted = group_commits.committed(scanned.table, logs.values(), self._logs.coordinator)
        return CommittedOffsets(found, tuple(d for d in scanned.damage if d.id in _COMMITS_LOST), deleted)

    def _range_count(self, partition: Partition, wanted: Range, rows: dict[str, list[dict[str, Any]]]) -> RangeCount:
        mine = rows.get(partition.folder.path, [])
        return range_counts.range_count(partition, wanted, mine, self._logs.offsets)

    def _read_folders(self, folders: Sequence[Folder]) -> None:
        """Read the partitions of these folders in one scan."""
        if not folders:
            return
        owner = {segment.path: folder.name for folder in folders for segment in folder.segments}
        segments = [segment for folder in folders for segment in folder.segments]
        columns, schema = batch_runs.COLUMNS, batch_runs.RUNS
        scanned = self._scan_batches(segments, columns, batch_runs.runs_of, schema, batch_runs.REDUCE)
        runs: dict[str, list[batch_runs.BatchRun]] = {}
        damage: dict[str, list[Damage]] = {}
        for run in batch_runs.runs_in(scanned.table):
            runs.setdefault(owner[run.path], []).append(run)
        for item in scanned.damage:
            damage.setdefault(owner[item.path], []).append(item)
        for segment in segments:
            if segment.unread:
                damage.setdefault(owner[segment.path], []).append(
                    Damage(segment.path, "unreadable-file", None, segment.unread)
                )
        for folder in folders:
            self._read[folder.name] = partition_of(folder, runs.get(folder.name, []), damage.get(folder.name, []))

    def _scan_batches(
        self, segments: Sequence[SegmentFile], columns: tuple[str, ...], kernel: Any, schema: pa.Schema, reduce: Any
    ) -> Scanned:
        splits = tuple(self._logs.batch_splits(segments, self._reading.split_bytes))
        return self._run_scan(Scan(splits, "batches", columns=columns, kernel=kernel, partial=schema, reduce=reduce))

    def _run_scan(self, scan: Scan) -> Scanned:
        return self._reading.engine_for(sum(split.end - split.start for split in scan.splits)).run(scan)


def _touched_segments(partition: Partition, ranges: Sequence[Range]) -> list[SegmentFile]:
    """The segments that may hold an offset of a range, or what lies behind a cut."""
    low = min(wanted.start for wanted in ranges)
    ends = [wanted.end for wanted in ranges]
    high = None if None in ends else max(end for end in ends if end is not None)
    segments = partition.folder.segments
    until = [segment.base for segment in segments[1:]]
    return [
        segment
        for i, segment in enumerate(segments)
        if (i == len(until) or until[i] > low) and (high is None or segment.base < high)
    ]
