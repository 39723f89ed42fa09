"""A Kafka broker's data folder, or one partition of it, as partitions (`cklog.inputs.partitions`).

Layout: `cklog.parsers.kafka.folder`. Segments are read by `cklog.parsers.kafka.headers`, committed offsets by
`cklog.parsers.kafka.groups`. Record values are decoded for those alone, and at the edges of a range in a compacted log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Split
from cklog.inputs.offers import Format, KindName
from cklog.inputs.partitions import COMMITS, BrokerLayout, SegmentFile
from cklog.inputs.record_batches import BATCHES
from cklog.model.findings import Finding
from cklog.parsers.kafka import groups, headers, legacy, log
from cklog.parsers.kafka.batches import records
from cklog.parsers.kafka.folder import data_folders, has_segments, layout
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import Segment
from cklog.storage import FileEntry, Root


class Kafka(Format):
    """Partitions below a root; a parser as `cklog.inputs.offers.OffersPartitions` says."""

    name = "kafka"
    kind: KindName = "partitions"
    tables: ClassVar = {"batches": BATCHES, "commits": COMMITS}
    gathers = True

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there are segments: files of 20 digits and `.log`."""
        return has_segments(root.list())

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the brokers' data folders: those that hold folders with segments."""
        return data_folders(root.list())

    def __init__(self, root: Root) -> None:
        self._root = root

    @cached_property
    def _entries(self) -> list[FileEntry]:
        return self._root.list()

    @cached_property
    def _layout(self) -> BrokerLayout:
        return layout(self._root, self._entries)

    def partitions(self) -> BrokerLayout:
        """Return the folders, before any segment is read."""
        return self._layout

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return nothing: no file is wrong as a whole before it is read."""
        return ()

    def batch_splits(self, segments: Sequence[SegmentFile], step: int) -> list[Split]:
        """Return splits of about `step` bytes whose table is `cklog.inputs.record_batches.BATCHES`."""
        return self._splits(segments, step, headers.READER)

    def commit_splits(self, segments: Sequence[SegmentFile], step: int) -> list[Split]:
        """Return splits whose table is `cklog.inputs.partitions.COMMITS`."""
        return self._splits(segments, step, groups.READER)

    def splits(self, table: str, split_bytes: int) -> list[Split]:
        """Return splits of every partition's batches, or of every commit."""
        folders = self._layout.commit_folders if table == "commits" else self._layout.folders
        segments = [segment for folder in folders for segment in folder.segments]
        return (self.commit_splits if table == "commits" else self.batch_splits)(segments, split_bytes)

    @staticmethod
    def coordinator(group: str, partitions: int) -> int:
        """Return the partition of `__consumer_offsets` that a group's commits belong into."""
        return groups.coordinator(group, partitions)

    def offsets(self, path: str, at: int) -> list[int] | None:
        """Return the offsets of the records of the batch at byte `at`; None if it does not decode."""
        size = next(entry.size for entry in self._entries if entry.path == path)
        try:
            with Segment(self._root.uri(path), path, size) as segment:
                old = segment.legacy(at)
                if old:
                    data = segment.bytes(at, old)
                    return [record.offset for record in legacy.records(legacy.header(data), data)]
                head = segment.header(at)
                return [record.offset for record in records(head, segment.bytes(at, head.size))]
        except (BadBatch, OSError, *ARROW_ERRORS):
            return None

    def _splits(self, segments: Sequence[SegmentFile], step: int, reader: str) -> list[Split]:
        """Return splits: a segment that is small enough is one, unread; of a larger one the index says where to cut."""
        made = []
        for segment in segments:
            entry = FileEntry(segment.path, segment.size)
            if segment.size > step:
                made += log.segment_splits(self._root, entry, self._entries, step)
            elif segment.size:
                made.append(log.split(self._root, entry, 0, segment.size))
        return [replace(split, reader=reader) for split in made]
