"""A folder of partitions, opened: each partition read once, and what ranges of its offsets hold.

This is the channel log of a run whose channels are partitions: a recovery line says which offsets to replay, and
`PartitionLogs.counts` says what lies there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from cklog.engine import Damage, Scan, Scanned
from cklog.engine.reading import Reading
from cklog.errors import NotFound
from cklog.inputs.offers import OffersPartitions
from cklog.inputs.partitions import BrokerLayout, Folder, GroupCommit, Partition, Range, RangeCount, SegmentFile
from cklog.kafka_logs import batch_runs, group_commits, range_counts
from cklog.kafka_logs.partition import partition_of


class PartitionLogs:
    """Partitions below a folder, as `logs` (a parser) finds them. Nothing is read before it is asked for."""

    def __init__(self, logs: OffersPartitions, reading: Reading) -> None:
        self._logs = logs
        self._reading = reading
        self._read: dict[str, Partition] = {}

    @functools.cached_property
    def layout(self) -> BrokerLayout:
        """The folders, before anything is read of their segments."""
        return self._logs.partitions()

    def partitions(self, names: Iterable[str] | None = None) -> dict[str, Partition]:
        """The partitions of these names ("topic-0"), or all; by name, in the order of topics and numbers.

        Raises
        ------
        NotFound : a name that is not there
        """
        folders = {folder.name: folder for folder in self.layout.folders}
        wanted = list(folders) if names is None else sorted(set(names))
        missing = [name for name in wanted if name not in folders]
        if missing:
            raise NotFound(f"{', '.join(missing)}: no such partition", f"there are {', '.join(folders) or 'none'}")
        self._load([folders[name] for name in wanted if name not in self._read])
        return {name: self._read[name] for name in folders if name in set(wanted)}

    def counts(self, ranges: Sequence[Range]) -> list[RangeCount]:
        """What each range holds, in the order asked.

        Raises
        ------
        NotFound : a partition that is not there
        """
        named: dict[str, list[Range]] = {}
        for wanted in ranges:
            named.setdefault(f"{wanted.topic}-{wanted.partition}", []).append(wanted)
        partitions = self.partitions(named)
        asked = {p.folder.path: range_counts.asked(p, named[name]) for name, p in partitions.items()}
        segments = [s for name, p in partitions.items() for s in _touched(p, named[name])]
        kernel = range_counts.in_pieces(asked)
        columns, schema = range_counts.COLUMNS, range_counts.COUNTED
        found = self._scan(segments, columns, kernel, schema, range_counts.REDUCE).table.to_pylist()
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in found:
            rows.setdefault(row["path"].rpartition("/")[0], []).append(row)
        return [self._count(partitions[f"{r.topic}-{r.partition}"], r, rows) for r in ranges]

    def count(self, topic: str, partition: int, start: int, end: int | None = None) -> RangeCount:
        """What offsets [start, end) of a partition hold."""
        return self.counts([Range(topic, partition, start, end)])[0]

    @functools.cached_property
    def commits(self) -> tuple[tuple[GroupCommit, ...], tuple[Damage, ...]]:
        """Committed offsets of every group, by group, topic and partition; and what is damaged in their log."""
        logs = self.partitions([folder.name for folder in self.layout.commit_folders])
        segments = [segment for log in logs.values() for segment in log.folder.segments]
        splits = tuple(self._logs.commit_splits(segments, self._reading.split_bytes))
        schema, kernel = group_commits.LAST, group_commits.last_by_key(logs.values())
        scan = Scan(splits, "commits", group_commits.COLUMNS, kernel, schema, None, group_commits.trimmed)
        scanned = self._run(scan)
        found = group_commits.committed(scanned.table, logs.values(), self._logs.coordinator)
        return found, tuple(d for d in scanned.damage if d.id == "bad-record")

    def _count(self, partition: Partition, wanted: Range, rows: dict[str, list[dict[str, Any]]]) -> RangeCount:
        mine = rows.get(partition.folder.path, [])
        return range_counts.count(partition, wanted, mine, self._logs.offsets)

    def _load(self, folders: Sequence[Folder]) -> None:
        """Read the partitions of these folders in one scan."""
        if not folders:
            return
        owner = {segment.path: folder.name for folder in folders for segment in folder.segments}
        segments = [segment for folder in folders for segment in folder.segments]
        columns, schema = batch_runs.COLUMNS, batch_runs.RUNS
        scanned = self._scan(segments, columns, batch_runs.runs, schema, batch_runs.REDUCE)
        runs: dict[str, list[batch_runs.BatchRun]] = {}
        damage: dict[str, list[Damage]] = {}
        for run in batch_runs.rows_of(scanned.table):
            runs.setdefault(owner[run.path], []).append(run)
        for item in scanned.damage:
            damage.setdefault(owner[item.path], []).append(item)
        for folder in folders:
            self._read[folder.name] = partition_of(folder, runs.get(folder.name, []), damage.get(folder.name, []))

    def _scan(
        self, segments: Sequence[SegmentFile], columns: tuple[str, ...], kernel: Any, schema: pa.Schema, reduce: Any
    ) -> Scanned:
        splits = tuple(self._logs.splits(segments, self._reading.split_bytes))
        return self._run(Scan(splits, "batches", columns, kernel, schema, reduce))

    def _run(self, scan: Scan) -> Scanned:
        return self._reading.engine_for(sum(split.end - split.start for split in scan.splits)).run(scan)


def _touched(partition: Partition, ranges: Sequence[Range]) -> list[SegmentFile]:
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
