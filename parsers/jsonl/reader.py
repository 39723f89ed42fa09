"""JSON lines, plain, gzip or Zstandard: read by byte range, every bad line skipped, counted and placed.

    file = line*        line = JSON object, 0x0A
    a line may end with the member  "crc32c":"<8 hex>"  over the line's bytes before  ,"crc32c"

A writer that crashed leaves at most a last line without a newline: a torn tail, skipped even if it parses.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import reading
from cklog.engine.scan import DAMAGE_LISTED, Damage, Split, damage_of
from cklog.inputs.member_names import find_misspelling
from cklog.model.schemas import TABLES
from cklog.parsers.jsonl.columns import Fields, decode, decode_mixed
from cklog.parsers.jsonl.stream import ByteStream, whole_lines
from cklog.parsers.jsonl.template import ColumnKind
from cklog.parsers.jsonl.walk import count_lines
from cklog.parsers.tables.column_rules import faults
from cklog.parsers.tables.records import (
    SPELT,
    UNSEALED,
    NotARecord,
    as_record,
    batch_of_rows,
    member_of,
    members_of,
    strict_json,
)

_BISECT_BYTES = 16 << 10
"""A block that does not decode as a whole is halved down to this size, then read line by line."""

_MOST_LINES = 1 << 18
"""Lines decoded at once, of 8 bytes in a full block: no record is so short, and each line takes tens of bytes more."""

_FEW_BYTES = 2 << 10
"""A block up to this size is read line by line at once: decoding it as a whole costs as much as twenty lines."""

READER = "cklog.parsers.jsonl.reader:read"
UNTRUSTED = "cklog.parsers.jsonl.reader:read_untrusted"


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage (a `Reader` of scans). Fields that nobody asked for are not judged."""
    return _read_rows(split, table, columns, trusted=True)


def read_untrusted(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read a file whose bytes are known to be wrong, as `read` does: only lines with their own crc32c are records."""
    return _read_rows(split, table, columns, trusted=False)


def _read_rows(split: Split, table: str, columns: tuple[str, ...], trusted: bool) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the rows of a split's lines and what is wrong; `trusted`: nothing says that the file's bytes are wrong."""
    try:
        with ByteStream(split, trusted) as file:
            proven = shape_of(split.path, table, columns, trusted=True)
            unproven = replace(proven, flat=None, trusted=False)
            for start, block, believed in whole_lines(file, split):
                if isinstance(block, Damage):
                    yield block
                else:
                    yield from rows_of(proven if believed else unproven, start, block)
    except (OSError, *ARROW_ERRORS) as error:
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
    a checksum of their own are records. `known`: the members that records of the table may have; `spelt`: those of
    which a misspelled one is reported.
    """

    path: str
    schema: pa.Schema
    columns: tuple[str, ...]
    flat: Fields | None
    trusted: bool
    known: frozenset[str] = frozenset()
    spelt: frozenset[str] = frozenset()


def shape_of(path: str, table: str, columns: tuple[str, ...], trusted: bool) -> Shape:
    """Return the rows that lines of a table's file are read into."""
    schema, fields = _read_fields(table, columns)
    known = members_of(table)
    return Shape(path, schema, columns, fields, trusted, known, known if table in SPELT else frozenset())


def flat_fields(schema: pa.Schema, columns: tuple[str, ...]) -> Fields | None:
    """Return the fields for the vectorised decoder; None if the table has columns that only the slow reader fills."""
    if any(pa.types.is_float64(f.type) or (pa.types.is_map(f.type) and member_of(f) == f.name) for f in schema):
        return None
    flat = [f for f in schema if not pa.types.is_map(f.type)]
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
    if not block or block.isspace():
        return  # blank lines, of which a few bytes of a compressed stream hold millions
    middle = _middle(block)
    if len(block) > 8 * _MOST_LINES and middle and count_lines(block) > _MOST_LINES:
        yield from rows_of(shape, start, block[:middle])
        yield from rows_of(shape, start + middle, block[middle:])
        return
    if shape.flat is not None and len(block) > _FEW_BYTES:
        batch = at_once(shape, block, start)
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


def at_once(shape: Shape, block: bytes, start: int = 0) -> pa.RecordBatch | None:
    """Return the rows of a block of whole lines of one shape or a few; None: they are not, or one is no record."""
    assert shape.flat is not None
    found = decode(block, shape.flat, shape.known, shape.spelt)
    found = decode_mixed(block, shape.flat, shape.known, shape.spelt) if found is None else found
    return _batch_of_columns(shape, start, found) if found is not None else None


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
    unasked = [f.name for f in shape.schema if f.name not in shape.columns]  # but a record has to have them
    if unasked and (
        not {*unasked} <= {*found.schema.names} or any(True for _ in faults(found.select(unasked), shape.schema))
    ):
        return None
    batch = pa.RecordBatch.from_arrays(arrays, list(shape.columns))
    return None if any(True for _ in faults(batch, shape.schema)) else batch


def _line_by_line(shape: Shape, start: int, block: bytes) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the damage of a block's lines, then its records as one batch."""
    rows: list[dict[str, Any]] = []
    slips: list[tuple[int, str]] = []
    at = start
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            try:
                with reading(shape.path, at):
                    found = strict_json(line, required=not shape.trusted, known=shape.known)
                rows.append(as_record(found, shape.schema) | {"_path": shape.path, "_offset": at})
                slips += [(at, why)] if (why := find_misspelling(found, shape.spelt)) else []
            except NotARecord as reason:
                yield Damage(shape.path, reason.id, at, str(reason))
        at += len(line) + 1
    if slips:
        yield Damage(shape.path, "unknown-member", *slips[0], len(slips))
    if rows:
        yield batch_of_rows(rows, shape.schema, shape.columns)
