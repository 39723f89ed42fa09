"""Files of a simulated run: new folders only, records in parts, the same bytes every time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from cklog.errors import UsageError

PART_BYTES = 1 << 30
"""A part that has grown to this size is followed by a new one, if nothing else is asked for."""

_ROW_GROUP = 1 << 16
"""Rows of a Parquet row group, at the least."""

_ROWS_AT_ONCE = 1 << 13
"""Records that wait before they are written."""


def require_empty(place: Path) -> None:
    """Refuse a folder that holds something.

    Raises
    ------
    UsageError : it is not empty, or no folder
    """
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place}: not a folder")
    if place.is_dir() and any(place.iterdir()):
        raise UsageError(f"{place}: the folder is not empty", "give a new folder; nothing is overwritten")


def refuse_encoding(encoding: str, part_bytes: int) -> None:
    """Refuse an encoding, or a size of parts, that no queue or table can be written in.

    Raises
    ------
    UsageError : there is no such encoding or size
    """
    if encoding not in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        raise UsageError(f"encoding {encoding}: not one of jsonl, jsonl.gz, jsonl.zst, parquet")
    if part_bytes < 1:
        raise UsageError(f"parts of {part_bytes} bytes")


def written_files(folder: str) -> list[dict[str, Any]]:
    """List path and bytes of every file below `folder`, in order; nothing for ""."""
    place = Path(folder)
    written = [p for p in place.rglob("*") if p.is_file()] if folder else []
    files = [(p.relative_to(place).as_posix(), p.stat().st_size) for p in written]
    return [{"path": path, "bytes": size} for path, size in sorted(files)]


class LineParts:
    """Parts of lines, plain or compressed; a part that has grown to `part_bytes` is followed by a new one."""

    def __init__(self, folder: Path, encoding: str, part_bytes: int) -> None:
        self._folder, self._encoding, self._part_bytes = folder, encoding, part_bytes
        self._parts = 0
        self._open_part()

    def _open_part(self) -> None:
        self.path = self._folder / f"part-{self._parts:05d}.{self._encoding}"
        self._parts += 1
        self._file = self.path.open("xb")
        self._stream: IO[bytes] = _compressing_stream(self._file, self._encoding)

    def write(self, lines: bytes) -> None:
        """Write whole lines into one part."""
        if self._file.tell() >= self._part_bytes:
            self.close()
            self._open_part()
        self._stream.write(lines)

    def close(self) -> None:
        """End the part."""
        self._stream.close()
        self._file.close()


def _compressing_stream(file: IO[bytes], encoding: str) -> IO[bytes]:
    if encoding == "jsonl.gz":  # without the name and time that would make each file another
        return gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=file, mtime=0)  # type: ignore[return-value]
    if encoding == "jsonl.zst":
        stream: IO[bytes] = pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd")
        return stream
    return file


class RowParts:
    """Parts of Parquet rows, gathered into row groups."""

    def __init__(self, folder: Path, schema: pa.Schema, part_bytes: int) -> None:
        self._folder, self._schema, self._part_bytes = folder, schema, part_bytes
        self._parts, self._rows = 0, 0
        self._waiting = [schema.empty_table()]
        self._open_part()

    def _open_part(self) -> None:
        import pyarrow.parquet as pq  # slow to import, and no other encoding needs it

        self.path = self._folder / f"part-{self._parts:05d}.parquet"
        self._parts += 1
        self._file = self.path.open("xb")
        self._writer: Any = pq.ParquetWriter(self._file, self._schema, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        """Write rows into a row group with those before and after them."""
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one row group, into a new part if this one is full."""
        if not self._rows:
            return
        if self._file.tell() >= self._part_bytes:
            self.close()
            self._open_part()
        self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=2 * _ROW_GROUP)
        self._waiting, self._rows = [self._schema.empty_table()], 0

    def close(self) -> None:
        """End the part; what waits is lost unless `flush` came first."""
        self._writer.close()
        self._file.close()


class RunTable:
    """The records of one table of a run folder, written as they come."""

    def __init__(self, folder: Path, schema: pa.Schema, encoding: str, part_bytes: int) -> None:
        folder.mkdir(parents=True)
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._parts: LineParts | RowParts
        if encoding == "parquet":
            self._parts = RowParts(folder, schema, part_bytes)
        else:
            self._parts = LineParts(folder, encoding, part_bytes)
        self._line = json.JSONEncoder(separators=(",", ":")).encode

    def add(self, row: dict[str, Any]) -> None:
        """Add a record; members that it lacks are not written."""
        self._rows.append(row)
        if len(self._rows) == _ROWS_AT_ONCE:
            self._write_rows()

    def _write_rows(self) -> None:
        if isinstance(self._parts, RowParts):
            self._parts.write(pa.Table.from_pylist(self._rows, self._schema))
        elif self._rows:
            self._parts.write(("\n".join(map(self._line, self._rows)) + "\n").encode())
        self._rows = []

    def __enter__(self) -> RunTable:
        return self

    def __exit__(self, *raised: object) -> None:
        if not raised[0]:
            self._write_rows()
            if isinstance(self._parts, RowParts):
                self._parts.flush()
        self._parts.close()
