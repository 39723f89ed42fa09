"""Where Kafka Connect's source connectors resume: the topic `connect-offsets`, an export of it, or a worker's file.

    connect-offsets-N/NNNNNNNNNNNNNNNNNNNN.log      the topic, as segments of a broker; or of another such name
    *offset*.jsonl  .json  .txt                     the topic as text (`cklog.parsers.connect.exports`)
    *.offsets  *offset*.dat                         a standalone worker's file (`cklog.parsers.connect.java_map`)

All that lies below PATH is answered together. A broker's own data folder, with its `meta.properties`, is a run of the
format kafka as before: `--from connect` asks it for its connectors.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from cklog.engine.scan import Damage, Split, damage_of
from cklog.errors import first_line
from cklog.inputs.connectors import (
    RecordFate,
    RecordFates,
    StoredOffset,
    StoredOffsets,
    StoreForm,
    TakenRecord,
    is_offsets_topic,
)
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import Format, KindName
from cklog.inputs.partitions import Folder
from cklog.model.findings import Finding, InputUsed, Where
from cklog.parsers.connect import exports, java_map, records, topics
from cklog.parsers.connect.entries import Newest, NotAnEntry, Written, key_of, settled
from cklog.parsers.kafka.folder import data_folders, layout
from cklog.parsers.tables.records import batch_of_rows
from cklog.parsers.tables.records_parser import whole_folder
from cklog.storage import FileEntry, Root
from cklog.unknown_formats import UnknownFormat

OFFSETS = pa.schema(
    [
        pa.field("store", pa.string(), nullable=False),
        pa.field("connector", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("offset", pa.string()),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
    ]
)
"""The newest entry of each connector's partition; both maps are JSON, and an offset that was deleted is null."""

READER = "cklog.parsers.connect.parser:read"
_SEGMENT = re.compile(r"(?:(.*)/)?([^/]+)-[0-9]{1,10}/[0-9]{20}\.log", re.DOTALL)
_NAMED_EXPORT = re.compile(
    r"(?:.*/)?connect[-_]offsets?(?:[-_.][0-9]{1,10})?\.(?:jsonl?|txt)", re.IGNORECASE | re.DOTALL
)
"""What is called so is an export whatever has become of its contents."""

_EXPORT = re.compile(r"(?:.*/)?[^/]*offset[^/]*\.(?:jsonl?|txt)", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(r"(?:.*/)?(?:[^/]+\.offsets|[^/]*offset[^/]*\.dat)", re.IGNORECASE | re.DOTALL)
_SUFFIXES = (".log", ".json", ".jsonl", ".txt", ".offsets", ".dat")
"""How all of these end, in small letters: most files below a large root are passed over by that alone."""

_BROKER = "meta.properties"


class Connect(Format):
    """Stores of offsets below a root; a parser as `cklog.inputs.offers.OffersConnectors` says."""

    name = "connect"
    kind: KindName = "connectors"
    tables: ClassVar = {"offsets": OFFSETS}
    gathers = True
    reads_beside = ("kafka",)

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there is a topic of offsets that is no broker's whole data folder, an export, or a file."""
        return bool(Connect.runs_below(root))

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold partitions of a topic of offsets, exports, or files of workers."""
        entries = root.list()
        brokers = {posixpath.dirname(e.path) for e in entries if posixpath.basename(e.path) == _BROKER}
        found: set[str] = set()
        for entry in entries:
            if not entry.path.lower().endswith(_SUFFIXES):
                continue
            segment = _SEGMENT.fullmatch(entry.path)
            if segment and is_offsets_topic(segment[2]) and (segment[1] or "") not in brokers:
                found.add(segment[1] or "")
            elif _FILE.fullmatch(entry.path) or (_EXPORT.fullmatch(entry.path) and _is_export(root, entry)):
                found.add(posixpath.dirname(entry.path))
        return sorted(found)

    def __init__(self, root: Root) -> None:
        self._root = root

    @cached_property
    def _entries(self) -> list[FileEntry]:
        return self._root.list()

    @cached_property
    def _folders(self) -> tuple[Folder, ...]:
        """Every partition of a topic below PATH, those of each broker's folder."""
        found: list[Folder] = []
        if data_folders(self._entries):
            found += layout(self._root, self._entries).folders
        return tuple(found)

    @cached_property
    def _offset_folders(self) -> tuple[Folder, ...]:
        """Those of topics of offsets: by their name, or, if none is called so, by what they hold."""
        named = tuple(folder for folder in self._folders if is_offsets_topic(folder.topic))
        others = (f for f in self._folders if not f.internal)
        return named or tuple(f for f in others if topics.holds_offsets(self._root, f))

    def topics(self) -> tuple[str, ...]:
        """Return the topics below PATH that hold connectors' offsets, sorted."""
        return tuple(sorted({folder.topic for folder in self._offset_folders}))

    def offsets(self, fates: RecordFates) -> StoredOffsets:
        """Return the newest entry of each key in every store below PATH; `fates` says which records of a log count."""
        stores: dict[str, Newest] = {}
        findings: list[Finding] = []
        damage: list[Damage] = []
        inputs: list[InputUsed] = []
        for folder in self._offset_folders:
            store = stores.setdefault(folder.topic, Newest(folder.topic, "topic"))
            read = _take(store, topics.written(self._root, folder, fates), damage)
            inputs.append(InputUsed(folder.path or ".", self.name, sum(s.size for s in folder.segments), read))
        for entry, form in self._files:
            store = stores.setdefault(entry.path, Newest(entry.path, form))
            items: Iterator[Written | Damage | Finding]
            items = self._export(entry) if form == "export" else self._file(entry)
            inputs.append(InputUsed(entry.path, self.name, entry.size, _take(store, items, damage, findings)))
        entries, told = settled(entry for store in stores.values() for entry in store.entries())
        damage += [item for store in stores.values() for item in store.damage]
        findings += [*told, *damage_findings(damage)]
        return StoredOffsets(tuple(entries), tuple(sorted(stores)), tuple(findings), tuple(inputs))

    def taken(self, topic: str, fates: RecordFates) -> Iterator[Iterator[TakenRecord]]:
        """Yield for each partition of a data topic below PATH its records, from the end backwards, as far as wanted."""
        for folder in self._folders:
            if folder.topic == topic:
                yield topics.taken(self._root, folder, self._entries, fates)

    @staticmethod
    def taken_in(path: str) -> Iterator[TakenRecord]:
        """Yield the records in a file of JSON lines, wherever it is; the last one comes first."""
        return records.taken_in(path)

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what is wrong with the stores."""
        return self.offsets(_all_count).findings

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        """Return one split, of all entries."""
        return whole_folder(self._root, READER)

    @property
    def _files(self) -> Iterator[tuple[FileEntry, StoreForm]]:
        for entry in self._entries:
            if _FILE.fullmatch(entry.path):
                yield entry, "file"
            elif _EXPORT.fullmatch(entry.path) and _is_export(self._root, entry):
                yield entry, "export"

    def _export(self, entry: FileEntry) -> Iterator[Written | Damage]:
        try:
            yield from exports.written(entry.path, self._root.read(entry.path))
        except OSError as error:
            yield Damage(entry.path, "unreadable-file", None, first_line(error))

    def _file(self, entry: FileEntry) -> Iterator[Written | Damage | Finding]:
        """The pairs of a worker's file; what a worker makes of one that is not whole is said."""
        path = entry.path
        try:
            found = java_map.read_map(self._root.read(path))
        except UnknownFormat as error:
            yield damage_of(path, error)
            return
        except OSError as error:
            yield Damage(path, "unreadable-file", None, first_line(error))
            return
        except java_map.MapCutShort as reason:
            message = (
                f"{path}: cut short ({reason}): a worker that starts takes it for no file, without a word, and every "
                "connector begins anew. Look for a copy of it before anything starts"
            )
            where = (Where(path, reason.at),)
            yield Finding("cut-offsets-file", "error", path, message, where, effect="data-duplicated")
            return
        except java_map.NotThisMap as reason:
            message = (
                f"{path}: {reason}: no map of offsets that a worker writes, so that nothing of it is read; a worker "
                "does not start on it either, or reads something else"
            )
            where = (Where(path, reason.at),)
            yield Finding("corrupt-offsets-file", "error", path, message, where, effect="unknown")
            return
        for number, pair in enumerate(found.pairs):
            yield Written("", number, Where(path, pair.at), pair.key or b"null", pair.value)
        if found.end < entry.size:
            message = f"{path}: {entry.size - found.end} bytes follow the map, which no worker reads"
            yield Finding("corrupt-file", "warning", path, message, (Where(path, found.end),))


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the newest entries, as `OFFSETS` (a `Reader` of scans). What is wrong is among the findings."""
    rows = [_row(entry) for entry in Connect(split.folder()).offsets(_all_count).entries]
    yield batch_of_rows(rows, OFFSETS, columns)


def _row(entry: StoredOffset) -> dict[str, object]:
    return {
        "store": entry.store,
        "connector": entry.connector,
        "partition": json.dumps(entry.partition, sort_keys=True),
        "offset": None if entry.offset is None else json.dumps(entry.offset, sort_keys=True),
        "number": entry.number,
        "time": entry.time,
        "_path": entry.where.path,
        "_offset": entry.where.offset,
    }


def _take(
    store: Newest,
    items: Iterator[Written | Damage] | Iterator[Written | Damage | Finding],
    damage: list[Damage],
    findings: list[Finding] | None = None,
) -> int:
    """Put records into a store, and what is none where it belongs; return how many records there were."""
    count = 0
    for item in items:
        if isinstance(item, Damage):
            damage.append(item)
        elif isinstance(item, Finding):
            (findings if findings is not None else []).append(item)
        else:
            store.add(item)
            count += 1
    return count


def _all_count(folder: str, producer: int, offset: int) -> RecordFate:
    """Every record counts: for whoever asks no broker's files."""
    return "counts"


def _is_export(root: Root, entry: FileEntry) -> bool:
    """Whether a line at the beginning of a file is a record of the topic, or its name says so: any may be damaged."""
    if _NAMED_EXPORT.fullmatch(entry.path):
        return True
    try:
        found = exports.written(entry.path, root.read(entry.path, 1 << 16))
        return any(isinstance(item, Written) and _has_key(item) for item in found)
    except OSError:
        return False


def _has_key(item: Written) -> bool:
    try:
        key_of(item.key)
    except NotAnEntry:
        return False
    return True
