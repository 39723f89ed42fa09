"""JSON lines, plain, gzip or Zstandard: read by byte range, every bad line skipped, counted and placed.

    file = line*        line = JSON object, 0x0A
    a line may end with the member  "crc32c":"<8 hex>"  over the line's bytes before  ,"crc32c"

A split owns the lines that *begin* in its byte range. A writer that crashed leaves at most a last line without
a newline: a torn tail, skipped even if it parses. Offsets are those of the decompressed bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.budgets import budgets, inflated_of, over, reading
from cklog.engine.scan import DAMAGE_LISTED, Damage, Split, damage_of
from cklog.errors import first_line
from cklog.model.schemas import TABLES
from cklog.parsers.codecs.zstd_frames import has_checksums
from cklog.parsers.jsonl.columns import Fields, decode, decode_mixed
from cklog.parsers.jsonl.gunzip import ZERO_TAIL, Gunzip
from cklog.parsers.jsonl.template import ColumnKind
from cklog.parsers.tables.records import (
    PSEUDO,
    UNSEALED,
    NotARecord,
    as_record,
    batch_of_rows,
    faults,
    member_of,
    members_of,
    strict_json,
)
from cklog.progress import count_bytes
from cklog.storage import open_file

_BLOCK_BYTES = 8 << 20
"""Read at a time: small enough for the cache, large enough for vectorised decoding."""

_BISECT_BYTES = 16 << 10
"""A block that does not decode as a whole is halved down to this size, then read line by line."""

_MOST_LINES = 1 << 18
"""Lines decoded at once, of 32 bytes in a full block: no record is so short, and each line takes tens of bytes more."""

_FEW_BYTES = 2 << 10
"""A block up to this size is read line by line at once: decoding it as a whole costs as much as twenty lines."""

_BEYOND_BYTES = 16 << 10
"""Read at a time behind a split's end, where only the rest of its last line is wanted."""

READER = "cklog.parsers.jsonl.reader:read"
UNTRUSTED = "cklog.parsers.jsonl.reader:read_untrusted"

COMPRESSION = {".jsonl": None, ".jsonl.gz": "gzip", ".jsonl.zst": "zstd"}
"""The codec of a file, by the end of its name."""

_BY_LENGTH = sorted(COMPRESSION.items(), key=lambda item: -len(item[0]))


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage (a `Reader` of scans). Fields that nobody asked for are not judged."""
    return _read_rows(split, table, columns, trusted=True)


def read_untrusted(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read a file whose bytes are known to be wrong, as `read` does: only lines with their own crc32c are records."""
    return _read_rows(split, table, columns, trusted=False)


def _read_rows(split: Split, table: str, columns: tuple[str, ...], trusted: bool) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the rows of a split's lines and what is wrong; `trusted`: nothing says that the file's bytes are wrong."""
    schema, fields = _read_fields(table, columns)
    try:
        with ByteStream(split, trusted) as file:
            proven = Shape(split.path, schema, columns, fields, trusted=True, known=members_of(table))
            unproven = replace(proven, flat=None, trusted=False)
            for start, block, believed in whole_lines(file, split):
                if isinstance(block, Damage):
                    yield block
                else:
                    yield from rows_of(proven if believed else unproven, start, block)
    except (OSError, pa.ArrowException) as error:
        yield damage_of(split.path, error)


@functools.cache
def _read_fields(table: str, columns: tuple[str, ...]) -> tuple[pa.Schema, Fields | None]:
    """Return the fields of a table that are read for `columns`, and those for the vectorised decoder."""
    schema = pa.schema([f for f in TABLES[table] if f.name in columns or not f.nullable])
    return schema, flat_fields(schema, columns)


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows that lines are read into: `columns` of a table's `schema`, and where the lines lie.

    `flat`: fields for the vectorised decoder, None to go line by line. Of a file that is not `trusted` only lines with
    a checksum of their own are records. `known`: the members that records of the table may have.
    """

    path: str
    schema: pa.Schema
    columns: tuple[str, ...]
    flat: Fields | None
    trusted: bool
    known: frozenset[str] = frozenset()


def flat_fields(schema: pa.Schema, columns: tuple[str, ...]) -> Fields | None:
    """Return the fields for the vectorised decoder; None if the table has columns that only the slow reader fills."""
    if any(pa.types.is_float64(f.type) or (pa.types.is_map(f.type) and member_of(f) == f.name) for f in schema):
        return None
    fields = [schema.field(name) for name in columns if name not in PSEUDO]
    flat = [f for f in fields if not pa.types.is_map(f.type)]
    found: Fields = tuple((f.name, _kind_of_column(f)) for f in flat)
    return (*found, ("_offset", "int64")) if "_offset" in columns else found


def _kind_of_column(field: pa.Field) -> ColumnKind | Literal["json"]:
    if (field.metadata or {}).get(b"holds") == b"json":
        return "json"
    return "int64" if pa.types.is_int64(field.type) else "string"


def rows_of(shape: Shape, start: int, block: bytes) -> Iterator[pa.RecordBatch | Damage]:
    """Decode a block of whole lines at once if they have one shape or a few, else by halves, at last line by line.

    `start` is the offset of the block in the file; yields batches of the shape's columns, and damage.
    """
    if not block.strip():
        return  # blank lines, of which a few bytes of a compressed stream hold millions
    middle = _middle(block)
    if middle and block.count(b"\n") > _MOST_LINES:
        yield from rows_of(shape, start, block[:middle])
        yield from rows_of(shape, start + middle, block[middle:])
        return
    if shape.flat is not None and len(block) > _FEW_BYTES:
        found = decode(block, shape.flat, shape.known)
        found = decode_mixed(block, shape.flat, shape.known) if found is None else found
        batch = _batch_of_columns(shape, start, found) if found is not None else None
        if batch is not None:
            yield batch
            return
    if not shape.trusted and b'"crc32c"' not in block:
        yield from _unsealed(shape.path, start, block)
        return
    if shape.flat is None or len(block) <= _BISECT_BYTES or not middle:
        yield from _line_by_line(shape, start, block)
    else:
        yield from rows_of(shape, start, block[:middle])
        yield from rows_of(shape, start + middle, block[middle:])


def _middle(block: bytes) -> int:
    """Return where the line begins that is next to the middle of a block of whole lines; 0: there is one line."""
    behind = block.find(b"\n", len(block) // 2) + 1
    return behind if 0 < behind < len(block) else block.rfind(b"\n", 0, len(block) // 2) + 1


def _unsealed(path: str, start: int, block: bytes) -> Iterator[Damage]:
    """Yield the damage of a block of which no line has a checksum that it needs: the first places, and a count."""
    lines, at = block.split(b"\n")[:-1], start
    for line in lines[:DAMAGE_LISTED]:
        if line.strip():
            yield Damage(path, "bad-record", at, UNSEALED)
        at += len(line) + 1
    count = sum(map(bool, map(bytes.strip, lines[DAMAGE_LISTED:])))
    if count:
        yield Damage(path, "bad-record", None, "", count)


def _batch_of_columns(shape: Shape, start: int, found: pa.RecordBatch) -> pa.RecordBatch | None:
    """Return all columns of a decoded block, or None if not every line of it is a record."""
    rows = found.num_rows
    arrays = []
    for name in shape.columns:
        if name == "_path":
            index = pa.array(np.zeros(rows, np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(index, pa.array([shape.path])))
        elif name == "_offset":
            arrays.append(pc.add(found.column(name), start))
        elif name in found.schema.names:
            arrays.append(found.column(name))
        else:
            arrays.append(pa.nulls(rows, shape.schema.field(name).type))
    batch = pa.RecordBatch.from_arrays(arrays, list(shape.columns))
    return None if any(True for _ in faults(batch, shape.schema)) else batch


def _line_by_line(shape: Shape, start: int, block: bytes) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the damage of a block's lines, then its records as one batch."""
    rows: list[dict[str, Any]] = []
    at = start
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            try:
                with reading(shape.path, at):
                    found = strict_json(line, required=not shape.trusted, known=shape.known)
                rows.append(as_record(found, shape.schema) | {"_path": shape.path, "_offset": at})
            except NotARecord as reason:
                yield Damage(shape.path, "bad-record", at, str(reason))
        at += len(line) + 1
    if rows:
        yield batch_of_rows(rows, shape.schema, shape.columns)


class ByteStream:
    """The (decompressed) bytes of a split's file, as far as they can be had; `whole_lines` reads it.

    A compressed file is decompressed twice: its checksums stand behind what they cover, and until they have been seen
    the bytes prove nothing. `proven` is how many bytes they vouch for, None: nothing is wrong. Behind it bytes may be
    wrong and not only missing, so that only lines with a checksum of their own are records. `faults` say what is wrong.
    """

    def __init__(self, split: Split, trusted: bool = True) -> None:
        self._split = split
        self._codec = next(codec for suffix, codec in _BY_LENGTH if split.path.endswith(suffix))
        self.proven: int | None = None if trusted else 0
        self.faults: tuple[Damage, ...] = ()
        self.unchecked = False
        """No checksum covers the bytes of a compressed stream."""

        self._left: int | None = None
        self._taken = 0  # of what is stored of a compressed file

    def __enter__(self) -> ByteStream:
        if self._codec is not None:
            self._verify()
        if self._codec == "zstd":
            with open_file(self._split.uri) as file:
                self.unchecked = not has_checksums(file)
        self._file = self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end of what is there."""
        if self._left is not None:
            size = min(size, self._left)
        data: bytes = self._file.read(size) if size else b""
        self._count(len(data))
        if self._left is not None:
            self._left -= len(data)
        return data

    def seek(self, to: int) -> None:
        """Move to a byte of an uncompressed file."""
        self._file.seek(to)

    def _count(self, size: int) -> None:
        """Count as progress what was read: of a compressed file, which is read twice, half of what was taken of it."""
        if self._codec is not None:
            before, self._taken = self._taken, self._stored.tell()
            size = (self._taken - before) // 2
        count_bytes(size)

    def _open(self) -> Any:
        file = self._stored = open_file(self._split.uri)
        self._taken = 0
        plain = file if self._codec in (None, "gzip") else pa.CompressedInputStream(file, self._codec)
        return Gunzip(file) if self._codec == "gzip" else plain

    def _verify(self) -> None:
        """Find how many bytes decompress, why not more, and how many of them a checksum vouches for."""
        good = proven = 0
        for step in (_BLOCK_BYTES, 4096, 1):
            good, proven, reason = self._decompress(good, step)
            if reason is None:
                return
        self._left = good
        self.proven = proven if self.proven is None else self.proven
        cut = reason is not None and ("Truncated" in reason or reason == ZERO_TAIL)
        kind, end = ("torn-tail", f"breaks off ({reason})") if cut else ("corrupt-file", f"is corrupt ({reason})")
        kept = f"; of the last {good - self.proven} only lines with a crc32c of their own are kept"
        why = f"the compressed stream {end} after {good} bytes{kept if self.proven < good else ''}"
        self.faults = (Damage(self._split.path, kind, good, why),)

    def _decompress(self, skip: int, step: int) -> tuple[int, int, str | None]:
        """Count the bytes that come out when read in `step`s after the first `skip`, and of them those proven.

        Also returns the error that ends them.
        """
        done = 0
        most = inflated_of(self._split.size)
        with self._open() as file:
            try:
                while data := file.read(min(_BLOCK_BYTES, skip - done) if done < skip else step):
                    done += len(data)
                    self._count(len(data))
                    if done > most:
                        raise over(f"what its {self._split.size} compressed bytes become", most, self._split.path)
            except OSError as error:
                if error.errno is not None:
                    raise  # refused: nothing is known of the stream
                return done, getattr(file, "proven", 0), first_line(error)
        return done, done, None


Lines = tuple[int, bytes | Damage, bool]
"""Whole lines with the offset of the first, and whether they are to be believed; or what is wrong at that offset."""


def whole_lines(file: ByteStream, split: Split) -> Iterator[Lines]:
    """Yield blocks of whole lines that begin in the split, and all that is wrong, in order.

    Lines that are not to be believed are records only with a checksum of their own. Reads little beyond the split's
    end.
    """
    sealed = True  # whether every line may have a checksum of its own
    for start, block in _blocks(file, split):
        if isinstance(block, Damage):
            yield start, block, False
            continue
        if file.unchecked and sealed:
            sealed = block.count(b'"crc32c":"') >= block.count(b"\n")
        cut = len(block) if file.proven is None else block.rfind(b"\n", 0, max(file.proven - start, 0)) + 1
        if cut:
            yield start, block[:cut], True
        if cut < len(block):
            yield start + cut, block[cut:], False
    for fault in file.faults:
        yield fault.offset or 0, fault, False
    if file.unchecked and not sealed:
        yield 0, Damage(split.path, "unchecked-file", None, _UNCHECKED), False


_UNCHECKED = (
    "its Zstandard stream carries no checksum: a wrong byte would show in lines with a crc32c of their own alone"
)


def _blocks(file: ByteStream, split: Split) -> Iterator[tuple[int, bytes | Damage]]:
    """Yield blocks of whole lines with their offsets, and lines that are too long or not ended as damage."""
    whole = split.start == 0 and split.end >= split.size
    at, rest = 0, b""  # what has been read and not given yet begins at `at`
    if not whole:
        at, rest = _first_line(file, split)
    while True:
        size, ahead = _BLOCK_BYTES, split.end - at - len(rest)
        if not whole:
            size = min(size, ahead) if ahead > 0 else _BEYOND_BYTES
        data = file.read(size)
        rest = rest + data if rest else data
        cut = rest.rfind(b"\n") + 1
        if not whole and at + cut >= split.end:
            last = rest.find(b"\n", max(split.end - 1 - at, 0)) + 1
            if last and at < split.end:
                yield at, rest[:last]
            if last or at >= split.end:
                return
        if cut:
            yield at, rest[:cut]
            at, rest = at + cut, rest[cut:]
        if not data:
            break
        if len(rest) > budgets().file:
            if len(rest.strip(b"\0")) > budgets().file // 8:
                raise over("a line", budgets().file).of(split.path, at)
            yield at, Damage(split.path, "bad-record", at, f"more than {len(rest) >> 20} MiB of zeros")  # a crash's
            at, rest = _after_newline(file, at + len(rest), _BLOCK_BYTES)
    if rest and file.proven is not None:
        yield at, rest + b"\n"  # its own checksum tells whether all of it is there
    elif rest and (whole or at < split.end):
        yield at, Damage(split.path, "torn-tail", at, f"the last line has no newline ({len(rest)} bytes)")


def _first_line(file: ByteStream, split: Split) -> tuple[int, bytes]:
    """Position the file after the line that the split before owns; return the offset and bytes already read there."""
    if split.start == 0:
        return 0, b""
    file.seek(split.start - 1)
    return _after_newline(file, split.start - 1, min(_BLOCK_BYTES, split.end - split.start + 1))


def _after_newline(file: ByteStream, at: int, size: int) -> tuple[int, bytes]:
    """Read on, `size` bytes at a time, to behind the next newline; return the offset and bytes already read there."""
    while data := file.read(size):
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1, data[newline + 1 :]
        at += len(data)
    return at, b""
