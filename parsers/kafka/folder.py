"""The folders of a Kafka broker: which partitions there are, and what its own small files say of them.

    DATA/                            a broker has one or more (`log.dirs`)
      meta.properties  .kafka_cleanshutdown  *-offset-checkpoint        (`cklog.parsers.kafka.side_files`)
      TOPIC-PARTITION/               split at the last hyphen
        NNNNNNNNNNNNNNNNNNNN.log     segments, with .index  .timeindex  .txnindex  .snapshot beside them
        leader-epoch-checkpoint  partition.metadata
      TOPIC-PARTITION.ID-delete  -future  -stray                         no partition (any more, or yet)

`.kafka_cleanshutdown` is there only after a clean stop: without it the broker was killed, and will check its logs. A
segment renamed to `.log.deleted` waits for its deletion and still holds its data. Names of `.cleaned` and `.swap` are
compaction's own: the folder is read as a starting broker makes it (`cklog.parsers.kafka.compaction`). PATH may also be
one partition's folder, of which no broker's files can tell anything then.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cklog.arrow_errors import ARROW_ERRORS
from cklog.errors import first_line
from cklog.inputs.partitions import AbortedSpan, BrokerLayout, Folder, ProducerSnapshot, SegmentFile
from cklog.model.findings import Finding, InputUsed, Severity, Where
from cklog.model.wording import many
from cklog.parsers.kafka import side_files
from cklog.parsers.kafka.compaction import SWAP, end_of_segment, started
from cklog.parsers.kafka.groups import TOPIC
from cklog.storage import FileEntry, Root

_SEGMENT = re.compile(r"[0-9]{20}\.log")
_DELETED = re.compile(r"[0-9]{20}\.log\.deleted")
_INDEX = re.compile(r"[0-9]{20}\.index")
_SNAPSHOT = re.compile(r"[0-9]{20}\.snapshot")
_ABORTED = re.compile(r"[0-9]{20}\.txnindex")
_PARTITION = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.DOTALL)
_PARTED = re.compile(r".+-[0-9]{1,10}\.[0-9A-Za-z_-]+-(delete|future|stray)", re.DOTALL)
_PARTITIONS = 1 << 31
_OFFSETS = 1 << 63
_PROPERTIES = "meta.properties"
_DEEPEST = 2
"""Folders between PATH and a segment at the most: PATH/DATA/TOPIC-PARTITION."""

_LINK = "a link that is not followed, so that nothing is known of what it leads to"

_WHY_PARTED = {
    "delete": "its topic is being deleted",
    "future": "it is a copy that was being moved to another disk",
    "stray": "it no longer belongs to this broker",
}


def has_segments(entries: Iterable[FileEntry]) -> bool:
    """Return whether there is any segment of a Kafka log."""
    return any(_is_segment(posixpath.basename(e.path)) and e.path.count("/") <= _DEEPEST for e in entries)


def data_folders(entries: Iterable[FileEntry]) -> list[str]:
    """Return the folders that hold partitions, wherever; "" where the partition is the root itself."""
    partitions = {posixpath.dirname(e.path) for e in entries if _is_segment(posixpath.basename(e.path))}
    return sorted({posixpath.dirname(partition) for partition in partitions})


def _is_segment(name: str) -> bool:
    """Whether a name is an offset and `.log`; 20 digits can say more than an offset can be."""
    return _SEGMENT.fullmatch(name) is not None and int(name[:20]) < _OFFSETS


def layout(root: Root, entries: Iterable[FileEntry]) -> BrokerLayout:
    """Find every partition among the files below a root, and what is wrong before any segment is read."""
    files: dict[str, dict[str, FileEntry]] = {}
    for entry in entries:
        if entry.path.count("/") <= _DEEPEST:
            folder, _, name = entry.path.rpartition("/")
            files.setdefault(folder, {})[name] = entry
    linked = _linked_segments(root)
    for folder in linked:
        files.setdefault(folder, {})
    reading = _FolderReading(root, files, linked)
    found = [reading.partition(path) for path in sorted(files) if reading.is_partition(path)]
    folders = reading.distinct(sorted(found, key=_sort_key))
    inputs = _data_folders(folders)
    commits = tuple(folder for folder in folders if folder.topic == TOPIC)
    return BrokerLayout(tuple(folders), tuple(reading.findings), inputs, commits)


def _sort_key(folder: Folder) -> tuple[str, int, int, str]:
    """Sort by topic and number; of several with one name the uppermost comes first."""
    return folder.topic, folder.partition, folder.path.count("/"), folder.path


def _data_folders(folders: Iterable[Folder]) -> tuple[InputUsed, ...]:
    """Return one row per data folder, with the bytes of its segments."""
    sizes: dict[str, int] = {}
    for folder in folders:
        size = sum(segment.size for segment in folder.segments)
        sizes[folder.data_folder] = sizes.get(folder.data_folder, 0) + size
    return tuple(InputUsed(path, "kafka", size, None) for path, size in sorted(sizes.items()))


class _FolderReading:
    """The folders below a root while their small files are read.

    `files` are {folder: {name: file}}, `linked` the segments by folder that are links and were not followed.
    """

    def __init__(
        self,
        root: Root,
        files: Mapping[str, Mapping[str, FileEntry]],
        linked: Mapping[str, tuple[SegmentFile, ...]],
    ) -> None:
        self._root = root
        self.findings: list[Finding] = []
        self._files = {path: self._started(path, held) for path, held in files.items()}
        self._linked = linked
        self._brokers: dict[str, dict[str, dict[tuple[str, int], int] | None]] = {}

    def _started(self, path: str, held: Mapping[str, FileEntry]) -> Mapping[str, FileEntry]:
        """Return the files of a folder by the names that a starting broker gives them, and say what it changes."""
        found = started(held, self._end_of)
        if found.swapped and not _PARTED.fullmatch(posixpath.basename(path)):
            old = f", in place of {_names(found.replaced)}" if found.replaced else ""
            message = (
                f"{path}: a compaction was interrupted, and a starting broker completes it: {_names(found.swapped)} "
                f"{'becomes a segment' if len(found.swapped) == 1 else 'become segments'} of the log{old}. The log is "
                "read as it will be then; a copy of it needs these files"
            )
            self._report("interrupted-compaction", "info", path, message, [e.path for e in found.swapped])
        if found.dropped and not _PARTED.fullmatch(posixpath.basename(path)):
            message = (
                f"{path}: a compaction was interrupted before it was done, and a starting broker drops what it had "
                f"made: {_names(found.dropped)}; the segments that it was made of stay"
            )
            self._report("interrupted-compaction", "info", path, message, [e.path for e in found.dropped])
        return found.files

    def _end_of(self, segment: FileEntry) -> int:
        """Return the offset behind a segment's last batch; that of its name if it cannot be read, as is found later."""
        try:
            return end_of_segment(self._root.uri(segment.path), segment)
        except (OSError, *ARROW_ERRORS):
            return int(posixpath.basename(segment.path)[:20])

    def is_partition(self, path: str) -> bool:
        """Return whether a folder is a partition's; one that is not, though it looks like it, is reported."""
        name = posixpath.basename(path)
        parted = _PARTED.fullmatch(name)
        held = self._files[path]
        segments = [entry for base, entry in held.items() if _is_segment(base)]
        linked = self._linked.get(path, ())
        if parted:
            size = sum(entry.size for entry in segments)
            message = f"{path}: skipped, {_WHY_PARTED[parted[1]]} ({many(len(segments), 'segment')}, {size} bytes)"
            self._report("skipped-folder", "info", path, message, [path])
            return False
        if not segments and not linked and _PARTITION.fullmatch(name) and self._held_segments(path, held):
            message = f"{path}: no segment is here; they were deleted, or lie in tiered storage"
            self._report("missing-segment", "warning", path, message, [path])
        return bool(segments or linked)

    def _held_segments(self, path: str, held: Mapping[str, FileEntry]) -> bool:
        """Return whether its own files, or its broker's, tell that a folder without segments has had some."""
        if side_files.LEADER_EPOCHS in held or _unpaired_indexes(held):
            return True
        key = _topic_and_partition(posixpath.basename(path))
        return any((offsets or {}).get(key) for offsets in self._broker(posixpath.dirname(path)).values())

    def partition(self, path: str) -> Folder:
        """Read one partition's folder: its segments, and what its own files and its broker's say."""
        held = self._files[path]
        linked = self._linked.get(path, ())
        topic, number = _topic_and_partition(posixpath.basename(path) if path else self._root.parent()[1])
        broker = self._broker(posixpath.dirname(path)) if path else {}
        key = topic, number
        cleaned = broker.get(side_files.CLEANED)
        return Folder(
            topic=topic,
            partition=number,
            path=path,
            segments=tuple(sorted((*_log_segments(held), *linked), key=lambda segment: segment.base)),
            clean=self._clean(posixpath.dirname(path)) if path else None,
            log_start=(broker.get(side_files.LOG_STARTS) or {}).get(key),
            high_watermark=(broker.get(side_files.HIGH_WATERMARKS) or {}).get(key),
            recovery_point=(broker.get(side_files.RECOVERY_POINTS) or {}).get(key),
            compacted=None if cleaned is None else key in cleaned,
            cleaned_to=(cleaned or {}).get(key),
            epochs=self._decoded(held.get(side_files.LEADER_EPOCHS), side_files.epochs) or (),
            snapshot=self._snapshot(held),
            aborted=self._aborted(held),
            deleted=self._deleted(path, held),
            unpaired=tuple(index for index in _unpaired_indexes(held) if all(index.base != s.base for s in linked)),
        )

    def distinct(self, folders: Iterable[Folder]) -> list[Folder]:
        """Return the folders without those whose partition another one has; data folders of one broker share none."""
        found: dict[str, Folder] = {}
        for folder in folders:
            other = found.setdefault(folder.name, folder)
            if other is not folder:
                message = (
                    f"{folder.path}: left out, because {other.path} is partition {folder.name}, too; give one of them"
                )
                self._report("duplicate-partition", "error", folder.name, message, [folder.path])
        return list(found.values())

    def _broker(self, path: str) -> dict[str, dict[tuple[str, int], int] | None]:
        """Read the offset checkpoints of a data folder, by name; None for one that cannot be read."""
        if path not in self._brokers:
            held = self._files.get(path, {})
            self._decoded(held.get(_PROPERTIES), side_files.check_properties)
            names = [n for n in held if n.endswith("-offset-checkpoint")]
            self._brokers[path] = {name: self._decoded(held[name], side_files.offsets) for name in sorted(names)}
        return self._brokers[path]

    def _clean(self, path: str) -> bool | None:
        """Return whether the broker of a data folder was stopped cleanly; None if no file of a broker is there."""
        held = self._files.get(path, {})
        if side_files.CLEAN_STOP in held:
            return True
        return False if _PROPERTIES in held or side_files.RECOVERY_POINTS in held else None

    def _snapshot(self, held: Mapping[str, FileEntry]) -> ProducerSnapshot | None:
        """Read the newest snapshot of producers."""
        names = sorted(name for name in held if _SNAPSHOT.fullmatch(name))
        if not names:
            return None
        found = self._decoded(held[names[-1]], side_files.producers)
        return None if found is None else ProducerSnapshot(held[names[-1]].path, int(names[-1][:20]), found)

    def _aborted(self, held: Mapping[str, FileEntry]) -> tuple[AbortedSpan, ...]:
        """Read the indexes of aborted transactions."""
        found: list[AbortedSpan] = []
        for name in sorted(held):
            if _ABORTED.fullmatch(name):
                found += self._decoded(held[name], side_files.aborted) or ()
        return tuple(found)

    def _deleted(self, path: str, held: Mapping[str, FileEntry]) -> tuple[SegmentFile, ...]:
        """Return the segments that wait for their deletion, and report them."""
        found = tuple(segment for segment in _segments(held, _DELETED) if segment.size)
        if found:
            message = (
                f"{found[0].path}: {many(len(found), 'deleted segment', 'are')} still here "
                f"({sum(s.size for s in found)} bytes): copy the folder now if their records are needed; a broker "
                "deletes such segments within a minute, or when it starts"
            )
            self._report("deleted-segment", "info", path, message, [segment.path for segment in found])
        return found

    def _decoded(self, entry: FileEntry | None, decode: Callable[[bytes], Any]) -> Any:
        """Decode a small file; None, and a finding, if it cannot be read."""
        if entry is None:
            return None
        try:
            return decode(self._root.read(entry.path))
        except side_files.UnknownVersion as reason:
            self._report(
                "unknown-version",
                "error",
                entry.path,
                f"{entry.path}: not read: {reason}. Use a newer cklog",
                [entry.path],
            )
            return None
        except (OSError, *ARROW_ERRORS, side_files.BadCheckpoint, side_files.BadSnapshot) as reason:
            message = f"{entry.path}: not used: {first_line(reason)}"
            self._report("bad-checkpoint-file", "warning", entry.path, message, [entry.path])
            return None

    def _report(self, id: str, severity: Severity, subject: str, message: str, paths: Iterable[str]) -> None:
        where = tuple(Where(path) for path in paths)
        self.findings.append(Finding(id=id, severity=severity, subject=subject, message=message, where=where))


def _linked_segments(root: Root) -> dict[str, tuple[SegmentFile, ...]]:
    """Return the segments by folder that are links and were not followed: they are there, and nobody looks at them.

    So are those of an interrupted compaction, which a starting broker makes segments of the log.
    """
    found: dict[str, tuple[SegmentFile, ...]] = {}
    for path in sorted(root.unfollowed()):
        folder, _, name = path.rpartition("/")
        if _is_segment(name.removesuffix(SWAP)) and path.count("/") <= _DEEPEST:
            found[folder] = (*found.get(folder, ()), SegmentFile(path, int(name[:20]), 0, _LINK))
    return found


def _topic_and_partition(name: str) -> tuple[str, int]:
    """Return topic and partition of a folder's name; a name of another form is a topic's.

    >>> _topic_and_partition("a-b-12"), _topic_and_partition("copy")
    (('a-b', 12), ('copy', 0))
    """
    match = _PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match and int(match[2]) < _PARTITIONS else (name or "log", 0)


def _unpaired_indexes(held: Mapping[str, FileEntry]) -> tuple[SegmentFile, ...]:
    """Return the indexes whose segments are not in a folder, not even deleted: a broker renames those first."""
    segments = {segment.base for form in (_SEGMENT, _DELETED) for segment in _segments(held, form)}
    return tuple(index for index in _segments(held, _INDEX) if index.base not in segments)


def _log_segments(held: Mapping[str, FileEntry]) -> tuple[SegmentFile, ...]:
    """Return the segments of a folder's log, and of which the index is not here.

    Where no index is here at all, the logs alone were copied, and nothing is known of the broker's indexes.
    """
    indexes = {index.base for index in _segments(held, _INDEX)}
    return tuple(s._replace(indexed=not indexes or s.base in indexes) for s in _segments(held, _SEGMENT))


def _names(files: Sequence[FileEntry]) -> str:
    """Return the names of some files, the first few of many."""
    names = ", ".join(posixpath.basename(entry.path) for entry in files[:3])
    return names if len(files) <= 3 else f"{names} and {many(len(files) - 3, 'other')}"


def _segments(held: Mapping[str, FileEntry], form: re.Pattern[str]) -> tuple[SegmentFile, ...]:
    """Return the segments of a folder whose names are of a form, in log order."""
    names = sorted(name for name in held if form.fullmatch(name) and int(name[:20]) < _OFFSETS)
    return tuple(SegmentFile(held[name].path, int(name[:20]), held[name].size) for name in names)
