"""Checkpoints of Delta's log: of all their rows only transactions and properties are read, never the list of files.

VERSION.checkpoint.parquet                          one file
VERSION.checkpoint.PART.PARTS.parquet               in parts, 10 digits each, from 1
VERSION.checkpoint.UUID.(parquet|json)              version 2: lists of files may lie in `_sidecars/`, all else here
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cklog.budgets import reading
from cklog.errors import Unreadable, first_line
from cklog.parsers.sink_tables.delta_actions import (
    check_action,
    check_protocol,
    id_of,
    properties_of,
    transaction_of,
)
from cklog.parsers.sink_tables.files import Metadata, NoJson, json_of
from cklog.parsers.tables.parquet import UNREADABLE
from cklog.parsers.tables.parquet_batches import ParquetRows, check_rows, read_metadata
from cklog.storage import FileEntry
from cklog.unknown_formats import UnknownFormat

_NAME = re.compile(
    r"([0-9]{20})\.checkpoint"
    r"(?:\.([0-9]{10})\.([0-9]{10})\.parquet|\.[0-9A-Fa-f-]{36}\.(?:parquet|json)|\.parquet)"
)
_COLUMNS = ("txn", "metaData", "protocol")
_ROWS = 1 << 14


class Checkpoint(NamedTuple):
    """What of a checkpoint is needed: the transactions that it keeps, and the properties of the table and its id."""

    version: int
    transactions: Mapping[str, tuple[int, int | None]]
    properties: Mapping[str, str]
    id: str


class FlawedCheckpoint(NamedTuple):
    """A checkpoint that cannot be used: its version, its file, and why.

    `read`: an engine may read what is left. `unknown`: nothing says that it is damaged.
    """

    version: int
    path: str
    why: str
    read: bool
    unknown: bool = False


class _NoParquet(NoJson):
    """Raised for a file that no reader of Parquet opens."""


def newest_checkpoint(
    files: Metadata, folder: str, listed: Mapping[str, FileEntry]
) -> tuple[Checkpoint | None, list[FlawedCheckpoint]]:
    """Return the newest checkpoint that is whole and can be read, and those that are damaged on the way."""
    flawed: list[FlawedCheckpoint] = []
    found: dict[int, dict[int, list[FileEntry]]] = {}
    for path, entry in listed.items():
        if match := _NAME.fullmatch(path):
            parts = int(match[3] or 0)
            found.setdefault(int(match[1]), {}).setdefault(parts, []).append(entry)
    for version in sorted(found, reverse=True):
        for parts, entries in sorted(found[version].items()):
            if parts and len(entries) != parts:
                continue  # made in parts, and cut short: engines pass over it
            for tried in [entries] if parts else [[entry] for entry in entries]:
                read = _read(files, folder, version, tried)
                if isinstance(read, Checkpoint):
                    return read, flawed
                flawed.append(read)
    return None, flawed


def _read(files: Metadata, folder: str, version: int, entries: list[FileEntry]) -> Checkpoint | FlawedCheckpoint:
    """Read a checkpoint."""
    transactions: dict[str, tuple[int, int | None]] = {}
    properties: dict[str, str] | None = None
    id = path = ""
    for entry in entries:
        path = f"{folder}/{entry.path}"
        try:
            with reading(files.place(path)):
                for action in _actions(files, folder, entry):
                    if action.get("txn") is not None:
                        transactions.update(transaction_of(action["txn"]))
                    if action.get("metaData") is not None:
                        properties, id = properties_of(action["metaData"]), id_of(action["metaData"])
                    if action.get("protocol") is not None:
                        check_protocol(action["protocol"])
        except UnknownFormat as error:
            return FlawedCheckpoint(version, path, str(error), read=True, unknown=True)
        except NoJson as error:
            return FlawedCheckpoint(version, path, str(error), not isinstance(error, _NoParquet))
    if properties is None:  # every checkpoint has them once: what is left of this one remembers nothing
        return FlawedCheckpoint(version, path, "it has no metaData", read=True)
    return Checkpoint(version, transactions, properties, id)


def _actions(files: Metadata, folder: str, entry: FileEntry) -> Iterator[dict[str, Any]]:
    """Yield transactions and metadata of a file."""
    if entry.path.endswith(".json"):
        for line in files.read(folder, entry).split(b"\n"):
            if line.strip():
                action = json_of(line)
                if not isinstance(action, dict):
                    raise NoJson("a line is no action")
                check_action(action)
                yield action
        return
    try:
        yield from _rows(files, folder, entry)
    except UnknownFormat:
        raise
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise Unreadable(f"{files.place(f'{folder}/{entry.path}')}: {first_line(error)}") from None
        raise _NoParquet(f"no Parquet file that can be read: {first_line(error)[:200]}") from None


def _rows(files: Metadata, folder: str, entry: FileEntry) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file that have a transaction or metadata."""
    path = files.place(f"{folder}/{entry.path}")
    with files.open(folder, entry) as handle:
        metadata = read_metadata(handle)
        check_rows(path, metadata.num_rows, entry.size)
        names = metadata.schema.to_arrow_schema().names
        columns = [name for name in _COLUMNS if name in names]
        if not columns:
            raise NoJson("it has neither txn nor metaData")
        rows = ParquetRows(handle, metadata, path, columns)
        for group in range(metadata.num_row_groups):
            for batch in rows.batches(group, _ROWS):
                for name in columns:
                    column = batch.column(batch.schema.get_field_index(name))
                    for value in column.filter(column.is_valid()).to_pylist():
                        yield {name: value}
