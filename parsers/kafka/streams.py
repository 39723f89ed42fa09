"""State folders of Kafka Streams: what an instance keeps on its own disk of the stores of its tasks (2.6 and later).

    {state.dir}/{application.id}/
        kafka-streams-process-metadata, .lock
        {subtopology}_{partition}/          a task, active or standby alike; of a named topology below __{topology}__/
            .checkpoint                     text: "0", the number of entries, then entries
            .checkpoint_{store}             from 4.3 on: the same, of a store that keeps no offset inside
            rocksdb/{store}/                the store's own files; RocksDB takes one without CURRENT for a new store
        global/                             the global stores, laid out like a task
    entry = topic " " partition " " offset

PATH is any of the three folders. A task's entry is the offset of the *last* changelog record that the store holds, -4
if that is not known; an entry of global/ is the *next* offset to read. The file is written beside and renamed, at
commits now and then, so that a store is mostly ahead of its entry: restoring writes the same records again. With
exactly-once the file is deleted when a task starts and written when it is closed in good order: after a crash there is
none. Versions before 2.6 wrote the next offset for tasks, too, so that one record more is needed than said here.

From 4.3 on RocksDB stores keep their offsets inside (`cklog.parsers.kafka.state.offsets`), and whether they were
closed: one that was not is wiped under exactly-once, with its task. A `.checkpoint` that is still there is of the
version before, and its offsets are taken over at the next start.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.errors import first_line
from cklog.inputs.offers import Format, KindName
from cklog.inputs.stores import GLOBAL, StoreInside, StoreLayout, StoreOffset, StoreTask, with_instances
from cklog.local_files import UnfollowedLink, reason
from cklog.model.findings import Effect, Finding, InputUsed, Severity, Where, effect_of_error
from cklog.parsers.kafka.state import offsets, rocksdb
from cklog.parsers.tables.records import batch_of_rows
from cklog.parsers.tables.records_parser import whole_folder
from cklog.storage import FileEntry, Root

ENTRIES = pa.schema(
    [
        pa.field("application", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int64(), nullable=False),
        pa.field("offset", pa.int64()),
    ]
)
"""An entry of a task's file, its offset as it was written: of the last record, in global/ of the next; or not known."""

READER = "cklog.parsers.kafka.streams:read"
CHECKPOINT, ROCKSDB, CURRENT, PROCESS = ".checkpoint", "rocksdb", "CURRENT", "kafka-streams-process-metadata"
UNKNOWN = -4
_TASK = re.compile(r"(?s)(?:(.+)__)?(\d{1,9})_(\d{1,9})")
_TOPOLOGY = re.compile(r"(?s)__(.+)__")
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_LARGEST = (1 << 63) - 1
_CHANGELOG = "-changelog"
_LINK = "a link that is not followed, so that nothing is known of what it leads to"


class KafkaStreams(Format):
    """A state folder; see the module's head for its layout."""

    name = "kafka-streams"
    kind: KindName = "stores"
    tables: ClassVar = {"entries": ENTRIES}
    gathers = True
    reads_beside = ("kafka",)

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there is a task's folder, or the file that names the instance."""
        files, folders = root.tree()
        named = any(e.path.rpartition("/")[2] == PROCESS for e in files)
        return named or bool(_task_paths(root, [e.path for e in files], folders))

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders of applications, which hold those of tasks."""
        files, folders = root.tree()
        tasks = _task_paths(root, [e.path for e in files], folders)
        instances = {posixpath.dirname(e.path) for e in files if posixpath.basename(e.path) == PROCESS}
        return sorted({posixpath.dirname(task) for task in tasks} | instances)

    def __init__(self, root: Root) -> None:
        self._root = root

    def stores(self) -> StoreLayout:
        """Return every task with its stores and entries."""
        return self._layout

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what is wrong with the tasks' files."""
        return self._layout.findings

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        """Return one split, of all entries."""
        return whole_folder(self._root, READER)

    @cached_property
    def _layout(self) -> StoreLayout:
        """Every task, in the order of the answer, and what is wrong with their files."""
        files, folders = self._root.tree()
        sizes = {e.path: e.size for e in files}
        paths = _task_paths(self._root, list(sizes), folders)
        findings: list[Finding] = []
        tasks = []
        for path in paths:
            entries, found = self._entries(path, [*sizes, *folders, *self._root.unfollowed()])
            findings += found
            below = {p: size for p, size in sizes.items() if p.startswith(_below(path))}
            application, topology, group, partition = self._task_name(path)
            linked = _linked_stores(path, self._root.unfollowed(), entries or (), application)
            stores = _store_sizes(path, [*below, *folders], below) | dict.fromkeys(linked, 0)
            names = frozenset(p.rpartition("/")[2] for p in folders if p.startswith(_below(path)))
            places = {name: f"{_below(path)}{ROCKSDB}/{name}/" for name in stores if name not in linked}
            empty = frozenset(name for name, place in places.items() if not _has_database(place, below))
            listed = tuple(sorted(stores.items()))
            kept, flaws = self._inside(path, [entry for entry in files if entry.path in below])
            findings += flaws
            inside = offsets.joined([*kept, *(StoreInside(store, (), False, _LINK) for store in linked)])
            task = StoreTask(
                application=application,
                topology=topology,
                group=group,
                partition=partition,
                path=path or ".",
                stores=listed,
                folders=names,
                entries=entries,
                empty=empty,
                inside=inside,
            )
            tasks.append(task)
        used = tuple(
            InputUsed(task.path, self.name, sum(size for _, size in task.stores), len(task.entries or ()))
            for task in tasks
        )
        several = len({task.application for task in tasks}) > 1
        named = with_instances((replace(task, several=several) for task in tasks), 2)
        return StoreLayout(tuple(named), tuple(findings), used)

    def _task_name(self, path: str) -> tuple[str, str, str, int]:
        """Return application, topology ("" for the unnamed one), subtopology or "global", and partition of a task."""
        parts: list[str] = []
        above = self._root
        for _ in range(3):
            above, name = above.parent()
            parts.insert(0, name)
        parts += path.split("/") if path else []
        topology = ""
        folder = _TOPOLOGY.fullmatch(parts[-2])
        if folder:
            topology = folder[1]
            del parts[-2]
        found = _TASK.fullmatch(parts[-1])
        if not found:
            return parts[-2], topology, GLOBAL, 0
        return parts[-2], found[1] or topology, found[2], int(found[3])

    def _entries(self, path: str, places: Sequence[str]) -> tuple[tuple[StoreOffset, ...] | None, list[Finding]]:
        """Return the entries of a task's files, None if there is none, or one cannot be read as Kafka Streams does.

        Of the `places` below the root also a folder that is called like such a file counts: Kafka Streams opens it.
        """
        task = f"{_below(path)}{CHECKPOINT}"
        files = [
            file for file in places if file == task or (file.startswith(f"{task}_") and "/" not in file[len(task) :])
        ]
        entries: list[StoreOffset] = []
        findings: list[Finding] = []
        for file in files:
            found, told = self._read_file(file)
            findings += told
            if found is None:
                return None, findings
            store = file[len(task) + 1 :]
            entries += [replace(entry, file=file, store=store) for entry in found] if store else found
        return (tuple(entries) if files else None), findings

    def _read_file(self, file: str) -> tuple[tuple[StoreOffset, ...] | None, list[Finding]]:
        """Return the entries of one file."""
        try:
            return read_entries(file, self._root.read(file))
        except UnfollowedLink as error:
            message = f"{file}: {reason(error)}; what its task's stores hold is not known"
            return None, [_finding("unreadable-file", "error", file, message, Where(file))]
        except OSError as error:
            return None, [_corrupt_file(file, 0, first_line(error))]

    def _inside(self, path: str, files: Sequence[FileEntry]) -> tuple[tuple[StoreInside, ...], list[Finding]]:
        """Return what the stores of a task say inside, those that keep offsets there; and which cannot be opened."""
        lead = f"{_below(path)}{ROCKSDB}/"
        found = []
        flaws: list[Finding] = []
        keeping: dict[str, list[FileEntry]] = {}
        for folder, database in rocksdb.databases(e for e in files if e.path.startswith(lead)).items():
            try:
                if flaw := rocksdb.flaw_of(self._root, database):
                    flaws.append(_unopened_store(flaw))
                elif rocksdb.has_family(self._root, database, offsets.KAFKA_STREAMS):
                    keeping[folder] = database
            except (OSError, *ARROW_ERRORS) as error:
                found.append(StoreInside(folder[len(lead) :].partition("/")[0], (), False, first_line(error)))
        for folder, read in rocksdb.read_family(self._root, keeping, offsets.KAFKA_STREAMS).items():
            store = folder[len(lead) :].partition("/")[0]
            if read.why:
                found.append(StoreInside(store, (), False, read.why))
            else:
                found.append(offsets.of_kafka_streams(store, folder, read.pairs))
        return offsets.joined(found), flaws


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the entries of every task, as `ENTRIES` (a `Reader` of scans). What is wrong is among the findings."""
    rows = [
        {
            "application": task.application,
            "task": task.name,
            "topic": entry.topic,
            "partition": entry.partition,
            "offset": entry.offset,
            "_path": task.file,
            "_offset": entry.at,
        }
        for task in KafkaStreams(split.folder()).stores().tasks
        for entry in task.entries or ()
    ]
    yield batch_of_rows(rows, ENTRIES, columns)


def _below(path: str) -> str:
    return f"{path}/" if path else ""


def _task_paths(root: Root, files: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the folders that are tasks, "" for the root: by their name, and by a checkpoint file or stores in them."""
    places = (*files, *folders, *root.unfollowed())
    marked = {p.rpartition("/")[0] for p in places if p.rpartition("/")[2] == CHECKPOINT}
    marked |= {p.rpartition("/")[0] for p in (*folders, *root.unfollowed()) if p.rpartition("/")[2] == ROCKSDB}
    name = root.parent()[1]
    return sorted(p for p in marked if _is_task((p or name).rpartition("/")[2]))


def _is_task(name: str) -> bool:
    """Whether a folder is named as a task: "0_1", "topology__0_1" or "global"."""
    return name == GLOBAL or _TASK.fullmatch(name) is not None


def _store_sizes(path: str, places: Iterable[str], sizes: dict[str, int]) -> dict[str, int]:
    """Return {store: bytes} of the stores below a task's rocksdb folder."""
    lead = f"{_below(path)}{ROCKSDB}/"
    names = {p[len(lead) :].partition("/")[0] for p in places if p.startswith(lead)}
    return {name: sum(n for p, n in sizes.items() if p.startswith(f"{lead}{name}/")) for name in names}


def _linked_stores(path: str, links: Iterable[str], entries: Iterable[StoreOffset], application: str) -> list[str]:
    """Return the stores of a task of which something is a link that was not followed, as Kafka Streams does follow it.

    Where all stores lie behind one link, they are those that have entries, or nobody knows which.
    """
    lead = f"{_below(path)}{ROCKSDB}"
    below = {p[len(lead) + 1 :].partition("/")[0] for p in links if p == lead or p.startswith(f"{lead}/")}
    if "" in below:
        topics = {entry.topic.removesuffix(_CHANGELOG) for entry in entries if entry.topic.endswith(_CHANGELOG)}
        below = (below - {""}) | ({topic.removeprefix(f"{application}-") for topic in topics} or {"*"})
    return sorted(below)


def _has_database(store: str, sizes: Iterable[str]) -> bool:
    """Whether RocksDB finds a database, in the store's folder or in one of its segments: it begins at CURRENT."""
    return any(p.startswith(store) and p.endswith(f"/{CURRENT}") for p in sizes)


def read_entries(path: str, data: bytes) -> tuple[tuple[StoreOffset, ...] | None, list[Finding]]:
    """Return the entries of a checkpoint file, and what is wrong with it."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if len(lines) < 2 or _whole_number(lines[0]) is None or _whole_number(lines[1]) is None:
        return None, [_corrupt_file(path, 0, "it does not begin with a version and a count")]
    if (_whole_number(lines[0]) or 0) < 0:
        return None, [_corrupt_file(path, 0, f"{_whole_number(lines[0])} is no version")]
    if _whole_number(lines[0]) != 0:
        message = f"{path}: not read: version {_whole_number(lines[0])}, known is 0. Use a newer cklog"
        return None, [_finding("unknown-version", "error", path, message, Where(path, 0))]
    entries: dict[tuple[str, int], StoreOffset] = {}
    findings: list[Finding] = []
    at = len(lines[0]) + len(lines[1]) + 2
    for line in lines[2:]:
        entry = _entry_of_line(line, at)
        if entry is None:
            return None, [_corrupt_file(path, at, "a line is not a topic, a partition and an offset")]
        if entry.offset is not None and entry.offset < 0:
            message = f"{path} has offset {entry.offset} for {entry.name}: taken as not known"
            findings.append(_finding("negative-offset", "warning", entry.name, message, Where(path, at)))
            entry = StoreOffset(entry.topic, entry.partition, None, at)
        entries[entry.topic, entry.partition] = entry
        at += len(line) + 1
    if len(entries) != _whole_number(lines[1]):
        why = f"it announces {_whole_number(lines[1])} entries and holds {len(entries)}"
        return None, [_corrupt_file(path, at, why)]
    return tuple(entry for _, entry in sorted(entries.items())), findings


def _entry_of_line(line: bytes, at: int) -> StoreOffset | None:
    """Decode the entry on the line at byte `at`; None if it is not a topic, a partition and an offset."""
    pieces = line.split()
    if len(pieces) != 3 or not line[:1].strip() or b"\r" in line[:-1]:  # which ends a line, wherever it is
        return None
    partition, offset = _whole_number(pieces[1]), _whole_number(pieces[2])
    try:
        topic = pieces[0].decode()
    except UnicodeDecodeError:
        return None
    if partition is None or offset is None or not 0 <= partition < 1 << 31:
        return None
    return StoreOffset(topic, partition, None if offset == UNKNOWN else offset, at)


def _whole_number(text: bytes) -> int | None:
    """Return a whole number of at most 64 bits, whose next one fits, too; None: the text is none."""
    digits = text.rstrip(b"\r").decode("ascii", "replace")
    if not digits.isascii() or not _WHOLE.fullmatch(digits):
        return None
    return int(digits) if abs(int(digits)) < _LARGEST else None


def _corrupt_file(path: str, at: int, why: str) -> Finding:
    message = f"{path} cannot be read: {why}; Kafka Streams stops on it, and what its stores hold is not known"
    return _finding("corrupt-file", "error", path, message, Where(path, at), "restart-fails")


def _unopened_store(flaw: rocksdb.Flaw) -> Finding:
    if flaw.unknown:
        message = f"{flaw.path} was not read to its end, at byte {flaw.at}: {flaw.why}. Use a newer cklog"
        return _finding("unknown-version", "error", flaw.path, message, Where(flaw.path, flaw.at))
    message = (
        f"{flaw.path} is damaged at byte {flaw.at}: {flaw.why}. Delete the folder of the task while the instance is "
        "down: it restores the task from its changelogs"
    )
    return _finding("corrupt-file", "error", flaw.path, message, Where(flaw.path, flaw.at), "restart-fails")


def _finding(
    id: str, severity: Severity, subject: str, message: str, where: Where, effect: Effect | None = None
) -> Finding:
    does: Effect = effect or effect_of_error(severity, "unknown")
    return Finding(id=id, severity=severity, subject=subject, message=message, where=(where,), effect=does)
