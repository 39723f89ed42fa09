"""The part of a parser that is the same for every format whose files are read as a whole.

A plug-in says which files are its own and turns the bytes of one into records; `RecordsParser` and `reader` make a
parser of that: listing, splits, types, damage. Formats of large files that can be read from the middle, or by columns,
have parsers that do all of it themselves (`cklog.parsers.native.parser`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets, over
from cklog.engine.scan import Damage, Reader, Split, damage_of
from cklog.inputs.offers import Format, KindName, RowFilter
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.names import Subtask
from cklog.model.schemas import TABLES
from cklog.parsers.codecs.hadoop_crc import EMPTIED, EMPTY, check, sidecar_of
from cklog.parsers.tables.records import PSEUDO, NotARecord, as_record
from cklog.storage import FileEntry, Root, open_file

_BATCH_ROWS = 1 << 14

Rows = Callable[[bytes, str], Iterable[tuple[int, dict[str, Any] | str]]]
"""(a file's bytes, its table) → (byte offset, the record's fields, or why there is none), in the file's order.

A field has the name and type that `cklog.model.schemas.TABLES` gives; fields that it does not know are ignored, and a
record that breaks its rules becomes damage. `ValueError` where the rest of the file cannot be read.
"""


class RecordsParser(Format, ABC):
    """A parser over files of records. A plug-in gives the class variables and `table_of`."""

    name: ClassVar[str]
    kind: ClassVar[KindName] = "records"
    reader: ClassVar[str]
    """`module:name` of what `reader` made of the plug-in's rows."""

    @staticmethod
    @abstractmethod
    def table_of(path: str) -> str | None:
        """Return the table that a file below the root belongs to; None if it is not this format's."""

    @classmethod
    def recognises(cls, root: Root) -> bool:
        """Return whether any file is this format's."""
        return any(cls.table_of(entry.path) for entry in root.list())

    @classmethod
    def runs_below(cls, root: Root) -> list[str]:
        """Return PATH itself: which folder below it would be a run by itself, nothing tells."""
        return [""] if cls.recognises(root) else []

    def __init__(self, root: Root) -> None:
        self._root = root
        self._entries = root.list()
        self.manifest: Mapping[str, Any] = {}

    def _files(self, table: str) -> list[FileEntry]:
        return [entry for entry in self._entries if self.table_of(entry.path) == table]

    def has(self, table: str) -> bool:
        """Return whether there is any file of the table."""
        return bool(self._files(table))

    def bytes_of(self, table: str) -> int:
        """Return the size of the table's files, in bytes."""
        return sum(entry.size for entry in self._files(table))

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Report the files of the table that hold nothing, and of those the ones whose checksum file proves a loss."""
        return tuple(self._empty(entry.path) for entry in self._files(table) if entry.size == 0)

    def _empty(self, path: str) -> Finding:
        sidecar = sidecar_of(path)
        if any(entry.path == sidecar for entry in self._entries):
            with suppress(OSError):  # not seen, and so the root says of it
                if check(b"", self._root.read(sidecar)) is not None:
                    return Finding(
                        "checksum-mismatch", "error", path, f"{path} {EMPTIED}", (Where(path),), effect="older-line"
                    )
        return Finding("empty-file", "warning", path, f"{path} {EMPTY}", (Where(path),))

    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]:
        """Return one row a file, with the intact records that a scan counted."""
        files = self._files(table)
        return tuple(InputUsed(e.path, self.name, e.size, records_read.get(e.path, 0)) for e in files)

    def checkpoint_at(self, path: str) -> tuple[Subtask, int] | None:
        """Return None: a file holds records of many checkpoints."""
        return None

    def is_stored(self, uri: str) -> bool | None:
        """Return whether a state file that a record names is there; None: nobody looked. Plug-ins may override it."""
        return None

    def splits(self, table: str, split_bytes: int, wanted: RowFilter | None = None) -> Iterator[Split]:
        """Yield one split a file; `split_bytes` and `wanted` cannot make it smaller."""
        for entry in self._files(table):
            if entry.size:
                uri, size = self._root.uri(entry.path), entry.size
                yield Split(uri=uri, path=entry.path, reader=self.reader, start=0, end=size, size=size)


def whole_folder(root: Root, reader: str) -> tuple[Split, ...]:
    """Return a folder of a few small files as one split, which counts no bytes; its reader opens `split.folder()`."""
    uri, follow = root.uri(""), root.follow_links
    return (Split(uri=uri, path=root.path, reader=reader, start=0, end=1, size=0, follow_links=follow),)


def reader(rows: Rows) -> Reader:
    """Make the reader of a plug-in's splits; its place, `module:name`, is what `RecordsParser.reader` says."""

    def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield batches of `columns` and damage; a `cklog.engine.scan.Reader`."""
        schema = pa.schema([pa.field(name, PSEUDO.get(name) or TABLES[table].field(name).type) for name in columns])
        good: list[dict[str, Any]] = []
        for found in _typed_records(rows, split, table):
            if isinstance(found, Damage):
                yield found
                continue
            good.append(found)
            if len(good) == _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(good, schema=schema)
                good = []
        if good:
            yield pa.RecordBatch.from_pylist(good, schema=schema)

    return read


def _typed_records(rows: Rows, split: Split, table: str) -> Iterator[dict[str, Any] | Damage]:
    """Yield each record of a split's file, typed and with its place, and damage where there is none."""
    try:
        with open_file(split.uri, split.size) as file:
            most = budgets().metadata
            if file.size() > most:
                raise over(f"a file of {file.size()} bytes, which is held whole,", most, split.path)
            data = file.read()
        for offset, found in rows(data, table):
            yield _typed_record(found, offset, split, table)
    except (ValueError, OSError, *ARROW_ERRORS) as error:
        yield damage_of(split.path, error)


def _typed_record(found: dict[str, Any] | str, offset: int, split: Split, table: str) -> dict[str, Any] | Damage:
    if isinstance(found, str):
        return Damage(split.path, "bad-record", offset, found)
    try:
        return {**as_record(found, TABLES[table]), "_path": split.path, "_offset": offset}
    except NotARecord as error:
        return Damage(split.path, "bad-record", offset, str(error))
