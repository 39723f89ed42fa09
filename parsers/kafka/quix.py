"""State folders of Quix Streams (Python): what an application keeps on its own disk of the partitions that it reads.

    {state_dir}/{consumer group}/{store}/{stream}/{partition}/     a RocksDB with a column family "__metadata__"

A stream is a topic, or several that are read as one. PATH is `state_dir` or the folder of a group. A store's changelog
is `changelog__{group}--{stream}--{store}`; an internal topic in place of a stream stands there without the group, and
dots for its dashes. The offset inside is that of the *last* changelog record that the store holds, written in one batch
with it. Recovery reads that record again, and what follows it; changes whose input was not committed are passed over.
If the changelog ends at or before the offset the application refuses to start.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.inputs.offers import Format, KindName
from cklog.inputs.stores import StoreInside, StoreLayout, StoreTask, with_instances
from cklog.model.findings import Finding, InputUsed
from cklog.parsers.kafka.state import offsets, rocksdb
from cklog.parsers.kafka.streams import ENTRIES
from cklog.parsers.tables.records import batch_of_rows
from cklog.parsers.tables.records_parser import whole_folder
from cklog.storage import FileEntry, Root

READER = "cklog.parsers.kafka.quix:read"
_DEPTH = 3
"""Folders between that of a group and the files of a RocksDB: store, stream, partition."""


_NO_DATABASE = rocksdb.FamilyRead({})
"""Of a folder without a database, in which Quix Streams makes one."""


class QuixStreams(Format):
    """A state folder; see the module's head for its layout."""

    name = "quix-streams"
    kind: KindName = "stores"
    tables: ClassVar = {"entries": ENTRIES}
    gathers = True
    reads_beside = ("kafka",)

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there is a store's folder: named by its partition, with metadata inside."""
        return bool(_store_folders(root))

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders of consumer groups."""
        return sorted({_group_of(folder) for folder in _store_folders(root)})

    def __init__(self, root: Root) -> None:
        self._root = root

    def stores(self) -> StoreLayout:
        """Return every partition of a stream with its stores."""
        return self._layout

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return nothing: what stores say is inside them."""
        return ()

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        """Return one split, of all entries."""
        return whole_folder(self._root, READER)

    @cached_property
    def _layout(self) -> StoreLayout:
        found = _all_store_folders(self._root)
        begun = {folder: files for folder, files in found.items() if rocksdb.is_begun(files)}
        read = rocksdb.read_family(self._root, begun, offsets.QUIX)
        tasks: dict[tuple[str, str, int], list[str]] = {}
        for folder in found:
            _, stream, number = folder.split("/")[-_DEPTH:]
            tasks.setdefault((_group_of(folder), stream, int(number)), []).append(folder)
        several = len({self._name_of(group) for group, _, _ in tasks}) > 1
        made = []
        for (group, stream, partition), folders in tasks.items():
            application = self._name_of(group)
            told = [(folder, read.get(folder, _NO_DATABASE)) for folder in folders]
            inside = [_inside(folder, application, stream, partition, found_in) for folder, found_in in told]
            sizes = [sum(entry.size for entry in found[folder]) for folder in folders]
            task = StoreTask(
                application=application,
                topology="",
                group=stream,
                partition=partition,
                path=group or ".",
                stores=tuple(sorted(zip((one.store for one in inside), sizes, strict=True))),
                folders=frozenset(one.store for one in inside),
                entries=None,
                several=several,
                inside=tuple(sorted(inside, key=lambda one: one.store)),
                system="quix-streams",
            )
            made.append(task)
        made = with_instances(made, 1)
        used = {task.path: 0 for task in made}
        for task in made:
            used[task.path] += sum(size for _, size in task.stores)
        inputs = tuple(InputUsed(path, self.name, size, None) for path, size in sorted(used.items()))
        return StoreLayout(tuple(made), (), inputs)

    def _name_of(self, group: str) -> str:
        """Return the consumer group whose folder this is."""
        return posixpath.basename(group) if group else self._root.parent()[1]


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the offset of every store, as `ENTRIES` (a `Reader` of scans); one that cannot be read is damage."""
    rows = []
    for task in QuixStreams(split.folder()).stores().tasks:
        for inside in task.inside:
            if inside.unread:
                yield Damage(f"{task.path}/{inside.store}", "unread-store", None, inside.unread)
            rows += [
                {
                    "application": task.application,
                    "task": task.name,
                    "topic": entry.topic,
                    "partition": entry.partition,
                    "offset": entry.offset,
                    "_path": entry.file,
                    "_offset": entry.at,
                }
                for entry in inside.offsets
            ]
    yield batch_of_rows(rows, ENTRIES, columns)


def _inside(folder: str, group: str, stream: str, partition: int, read: rocksdb.FamilyRead) -> StoreInside:
    """Return what a store says, or why that is not known."""
    store = folder.split("/")[-_DEPTH]
    if read.why:
        return StoreInside(store, (), False, read.why)
    return offsets.of_quix(store, folder, changelog_of(group, stream, store), partition, read.pairs)


def changelog_of(group: str, stream: str, store: str) -> str:
    """Return the topic that a store is restored from.

    >>> changelog_of("app", "orders", "default"), changelog_of("app", "repartition__app--orders--by-id", "default")
    ('changelog__app--orders--default', 'changelog__app--repartition.orders.by-id--default')
    """
    if f"__{group}--" in stream:
        stream = stream.replace(f"__{group}", "").replace("--", ".")
    return f"changelog__{group}--{stream}--{store}"


def _group_of(folder: str) -> str:
    return "/".join(folder.split("/")[:-_DEPTH])


def _all_store_folders(root: Root) -> Mapping[str, Sequence[FileEntry]]:
    """Return {folder: files} of every store of the groups that have one, also where nothing in it tells whose it is.

    A database whose manifest is damaged names no column family, and beside others it is a store all the same.
    """
    proven = _store_folders(root)
    groups = {_group_of(folder) for folder in proven}
    found = dict(proven)
    for folder, files in rocksdb.folders(root.list()).items():
        if folder not in proven and _lies_like_a_store(folder) and _group_of(folder) in groups:
            found[folder] = files
    return dict(sorted(found.items()))


def _lies_like_a_store(folder: str) -> bool:
    """Return whether a folder is deep enough, and named as a partition is."""
    name = posixpath.basename(folder)
    return folder.count("/") + 1 >= _DEPTH and name.isascii() and name.isdecimal() and len(name) < 10


def _store_folders(root: Root) -> Mapping[str, Sequence[FileEntry]]:
    """Return {folder: files} of every RocksDB that lies like a store and has the column family of metadata."""
    found = {}
    for folder, files in rocksdb.databases(root.list()).items():
        if _lies_like_a_store(folder):
            with contextlib.suppress(OSError, *ARROW_ERRORS):  # nothing tells whose it is then
                if rocksdb.has_family(root, files, offsets.QUIX):
                    found[folder] = files
    return found
