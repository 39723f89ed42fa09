"""State folders of Kafka Streams: what an instance keeps on its own disk of the stores of its tasks (2.6 to 4.2).

    {state.dir}/{application.id}/
        kafka-streams-process-metadata, .lock
        {subtopology}_{partition}/          a task, active or standby alike; of a named topology below __{topology}__/
            .checkpoint                     text: "0", the number of entries, then entries
            rocksdb/{store}/                the store's own files; RocksDB takes one without CURRENT for a new store
        global/                             the global stores, laid out like a task
    entry = topic " " partition " " offset

PATH is any of the three folders. A task's entry is the offset of the *last* changelog record that the store holds, -4
if that is not known; an entry of global/ is the *next* offset to read. The file is written beside and renamed, at
commits now and then, so that a store is mostly ahead of its entry: restoring writes the same records again. With
exactly-once the file is deleted when a task starts and written when it is closed in good order: after a crash there is
none. Versions before 2.6 wrote the next offset for tasks, too, so that one record more is needed than said here. From
4.3 on RocksDB stores keep their offset inside, and no file need be there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from cklog.engine import Damage, Kernel, Reduce, Scan, Split
from cklog.inputs.offers import KindName
from cklog.inputs.stores import GLOBAL, StoreLayout, StoreOffset, StoreTask
from cklog.model.findings import Finding, InputUsed, Where
from cklog.parsers.tables.small_tables import batch_of, whole
from cklog.storage import READ_LIMIT, Root

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
_TASK = re.compile(r"(?:(.+)__)?(\d{1,9})_(\d{1,9})")
_TOPOLOGY = re.compile(r"__(.+)__")
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_LARGEST = (1 << 63) - 1


class KafkaStreams:
    """A state folder; see the module's head for its layout."""

    name = "kafka-streams"
    kind: KindName = "stores"
    tables: ClassVar = {"entries": ENTRIES}
    gathers = True
    owns_below = False
    reads_beside: tuple[str, ...] = ("kafka",)

    @staticmethod
    def recognises(root: Root) -> bool:
        """Whether there is a task's folder, or the file that names the instance."""
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
        """Every task with its stores and entries."""
        return self._layout

    def findings(self, table: str) -> tuple[Finding, ...]:
        """What is wrong with the tasks' files."""
        return self._layout.findings

    def scan(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        split_bytes: int,
    ) -> Scan:
        """A scan of all entries, in one split."""
        return Scan(whole(self._root, READER), table, columns, kernel, partial, reduce)

    @cached_property
    def _layout(self) -> StoreLayout:
        files, folders = self._root.tree()
        sizes = {e.path: e.size for e in files}
        paths = _task_paths(self._root, list(sizes), folders)
        findings: list[Finding] = []
        tasks = []
        for path in paths:
            entries, found = self._entries(path, sizes)
            findings += found
            below = {p: size for p, size in sizes.items() if p.startswith(_below(path))}
            stores = _stores(path, [*below, *folders], below)
            names = frozenset(p.rpartition("/")[2] for p in folders if p.startswith(_below(path)))
            empty = frozenset(name for name in stores if not _has_database(f"{_below(path)}{ROCKSDB}/{name}/", below))
            listed = tuple(sorted(stores.items()))
            tasks.append(StoreTask(*self._name(path), path or ".", listed, names, entries, empty=empty))
        used = tuple(
            InputUsed(task.path, self.name, sum(size for _, size in task.stores), len(task.entries or ()))
            for task in tasks
        )
        several = len({task.application for task in tasks}) > 1
        named = sorted((replace(task, several=several) for task in tasks), key=lambda t: t.order)
        return StoreLayout(tuple(named), tuple(findings), used)

    def _name(self, path: str) -> tuple[str, str, str, int]:
        """Application, topology ("" for the unnamed one), subtopology or "global", and partition."""
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

    def _entries(self, path: str, sizes: dict[str, int]) -> tuple[tuple[StoreOffset, ...] | None, list[Finding]]:
        """The entries of a task's file, None if there is none or it cannot be read as Kafka Streams reads it."""
        file = f"{_below(path)}{CHECKPOINT}"
        if file not in sizes:
            return None, []
        if sizes[file] > READ_LIMIT:
            return None, [_corrupt(file, 0, f"{sizes[file]} bytes are no list of offsets")]
        try:
            return _read(file, self._root.read(file))
        except OSError as error:
            return None, [_corrupt(file, 0, str(error).splitlines()[0])]


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """The entries of every task, as `ENTRIES`; a `cklog.engine.Reader`. What is wrong is among the findings."""
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
        for task in KafkaStreams(Root(split.uri)).stores().tasks
        for entry in task.entries or ()
    ]
    yield batch_of(rows, ENTRIES, columns)


def _below(path: str) -> str:
    return f"{path}/" if path else ""


def _task_paths(root: Root, files: Sequence[str], folders: Sequence[str]) -> list[str]:
    """The folders that are tasks, "" for the root: by their name, and by a checkpoint file or stores in them."""
    marked = {p.rpartition("/")[0] for p in files if p.rpartition("/")[2] == CHECKPOINT}
    marked |= {p.rpartition("/")[0] for p in folders if p.rpartition("/")[2] == ROCKSDB}
    name = root.parent()[1]
    return sorted(p for p in marked if _is_task((p or name).rpartition("/")[2]))


def _is_task(name: str) -> bool:
    return name == GLOBAL or _TASK.fullmatch(name) is not None


def _stores(path: str, places: Iterable[str], sizes: dict[str, int]) -> dict[str, int]:
    """{store: bytes} of the stores below a task's rocksdb folder."""
    lead = f"{_below(path)}{ROCKSDB}/"
    names = {p[len(lead) :].partition("/")[0] for p in places if p.startswith(lead)}
    return {name: sum(n for p, n in sizes.items() if p.startswith(f"{lead}{name}/")) for name in names}


def _has_database(store: str, sizes: dict[str, int]) -> bool:
    """Whether RocksDB finds a database, in the store's folder or in one of its segments: it begins at CURRENT."""
    return any(size and p.startswith(store) and p.endswith(f"/{CURRENT}") for p, size in sizes.items())


def _read(path: str, data: bytes) -> tuple[tuple[StoreOffset, ...] | None, list[Finding]]:
    """The entries of a checkpoint file, and what is wrong with it."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if len(lines) < 2 or _number(lines[0]) is None or _number(lines[1]) is None:
        return None, [_corrupt(path, 0, "it does not begin with a version and a count")]
    if _number(lines[0]) != 0:
        told = f"{path} is of version {_number(lines[0])}; only 0 is known"
        return None, [Finding("unknown-version", "error", path, told, (Where(path, 0),))]
    entries: dict[tuple[str, int], StoreOffset] = {}
    findings: list[Finding] = []
    at = len(lines[0]) + len(lines[1]) + 2
    for line in lines[2:]:
        entry = _entry(line, at)
        if entry is None:
            return None, [_corrupt(path, at, "a line is not a topic, a partition and an offset")]
        if entry.offset is not None and entry.offset < 0:
            told = f"{path} has offset {entry.offset} for {entry.name}: taken as not known"
            findings.append(Finding("negative-offset", "warning", entry.name, told, (Where(path, at),)))
            entry = StoreOffset(entry.topic, entry.partition, None, at)
        entries[entry.topic, entry.partition] = entry
        at += len(line) + 1
    if len(entries) != _number(lines[1]):
        why = f"it announces {_number(lines[1])} entries and holds {len(entries)}"
        return None, [_corrupt(path, at, why)]
    return tuple(entry for _, entry in sorted(entries.items())), findings


def _entry(line: bytes, at: int) -> StoreOffset | None:
    pieces = line.split()
    if len(pieces) != 3 or not line[:1].strip():
        return None
    partition, offset = _number(pieces[1]), _number(pieces[2])
    try:
        topic = pieces[0].decode()
    except UnicodeDecodeError:
        return None
    if partition is None or offset is None or not 0 <= partition < 1 << 31:
        return None
    return StoreOffset(topic, partition, None if offset == UNKNOWN else offset, at)


def _number(text: bytes) -> int | None:
    """A whole number of at most 64 bits, whose next one fits, too."""
    told = text.rstrip(b"\r").decode("ascii", "replace")
    if not told.isascii() or not _WHOLE.fullmatch(told):
        return None
    return int(told) if abs(int(told)) < _LARGEST else None


def _corrupt(path: str, at: int, why: str) -> Finding:
    told = f"{path} cannot be read: {why}; Kafka Streams stops on it, and what its stores hold is not known"
    return Finding("corrupt-file", "error", path, told, (Where(path, at),))
