"""Iceberg tables in a folder, without a catalog: as Hadoop tables lie there, written by pyiceberg.

The next `metadata/vN.metadata.json` that is there is the commit; `version-hint.text` follows it and may be one behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata


class FolderCatalog(NoopCatalog):  # type: ignore[misc]
    """One table: what commits to it writes the next metadata file, which must not be there yet.

    `stored` : where the table says that it lies; "" where it lies. Files are written to the folder all the same.
    """

    def __init__(self, folder: Path, stored: str = "") -> None:
        super().__init__("folder")
        self.folder, self.stored = folder, stored or f"file://{folder}"
        self.io = _Moved({"stored": self.stored, "folder": str(folder)})

    def newest(self) -> int:
        """The number of the newest metadata file: from the hint on, as long as there is a next one."""
        hint = self.folder / "metadata" / "version-hint.text"
        number = int(hint.read_text()) if hint.exists() else 0
        while self._file(number + 1).exists():
            number += 1
        return number

    def create(self, schema: Schema, properties: dict[str, str] | None = None) -> Table:
        """A new, empty table of format version 2."""
        (self.folder / "metadata").mkdir(parents=True)
        (self.folder / "data").mkdir()
        made = new_table_metadata(
            schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, self.stored, properties or {}
        )
        self._write(made, 1)
        return self.load_table("table")

    def load_table(self, identifier: Any) -> Table:
        """The table as it is now."""
        path = f"{self.stored}/metadata/v{self.newest()}.metadata.json"
        read = FromInputFile.table_metadata(self.io.new_input(path))
        return Table(("table",), read, path, self.io, self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Check what the commit rests on, and write what it makes of the table."""
        now = self.load_table("table")
        for requirement in requirements:
            requirement.validate(now.metadata)
        changed = update_table_metadata(now.metadata, updates, metadata_location=now.metadata_location)
        path = self._write(changed, self.newest() + 1)
        return CommitTableResponse(metadata=changed, metadata_location=path)

    def _file(self, number: int) -> Path:
        return self.folder / "metadata" / f"v{number}.metadata.json"

    def _write(self, made: TableMetadata, number: int) -> str:
        ahead = f"{self.stored}/metadata/{os.getpid()}-{number}.tmp"
        ToOutputFile.table_metadata(made, self.io.new_output(ahead), overwrite=True)
        written = self.folder / "metadata" / ahead.rpartition("/")[2]
        os.link(written, self._file(number))  # fails where another writer was first
        written.unlink()
        hint = self.folder / "metadata" / "version-hint.text"
        hint.with_suffix(".new").write_text(str(number))
        hint.with_suffix(".new").replace(hint)
        return f"{self.stored}/metadata/v{number}.metadata.json"


class _Moved(PyArrowFileIO):  # type: ignore[misc]
    """Reads and writes in the folder what is named by where the table says that it lies."""

    def _here(self, location: Any) -> str:
        named = location if isinstance(location, str) else location.location
        stored, folder = self.properties["stored"], self.properties["folder"]
        return f"file://{folder}{named.removeprefix(stored)}" if named.startswith(stored) else named

    def new_input(self, location: str) -> Any:
        return super().new_input(self._here(location))

    def new_output(self, location: str) -> Any:
        return _Named(super().new_output(self._here(location)), location)

    def delete(self, location: Any) -> None:
        super().delete(self._here(location))


class _Named:
    """A file that tells the name it was asked for by, which is what the metadata are to hold."""

    def __init__(self, file: Any, location: str) -> None:
        self._file, self.location = file, location

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __len__(self) -> int:
        return len(self._file)


def rows_of(table: Table, column: str, branch: str = "") -> list[int]:
    """Every value of a column, as readers of the table or of a branch see them."""
    scan = table.scan()
    if branch:
        scan = scan.use_ref(branch)
    found: pa.Table = scan.to_arrow()
    return [int(value) for value in found[column].to_pylist()]


def last_epoch(table: Table, query: str) -> int | None:
    """What Iceberg's Spark sink looks for: from the current snapshot through the parents to this query's newest.

    The current snapshot is the main branch's, whichever the sink writes to (`SparkWrite.BaseStreamingWrite`).
    """
    snapshot = table.current_snapshot()
    while snapshot is not None:
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        if said.get("spark.sql.streaming.queryId") == query:
            return int(said["spark.sql.streaming.epochId"])
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return None
