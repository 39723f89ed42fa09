"""Parquet files of a run folder: read by row group, only the columns an answer needs.

Page checksums are verified where the writer made them. Rows are numbered from 0 in the file; that number is the
`offset` of a finding. A column of the wrong type, or a required one that is missing, damages the whole file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import timestamps_as_ms
from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import BlockKernel, Damage, Folded, Split, damage_of
from cklog.errors import first_line
from cklog.inputs.member_names import find_misspelling, misplaced
from cklog.inputs.offers import RowFilter
from cklog.model.schemas import TABLES
from cklog.parsers.tables.column_rules import faults
from cklog.parsers.tables.footers import Bounds, bounds_of, read_footer
from cklog.parsers.tables.parquet_batches import ParquetRows, check_rows, read_metadata
from cklog.parsers.tables.records import SPELT, NotARecord, is_listed, json_text, member_of, members_of
from cklog.progress import count_bytes
from cklog.storage import open_file

READER = "cklog.parsers.tables.parquet:read"
_FOLDING = "cklog.parsers.tables.parquet:fold"
UNREADABLE = (OSError, *ARROW_ERRORS, UnicodeDecodeError)
"""What pyarrow raises of a file that it cannot read; names of columns need be no UTF-8."""

_BATCH_ROWS = 1 << 20
"""As many as writers put into a row group by default. Threads hand the interpreter lock over some times a batch, and
with fewer rows wait for it longer than they work."""

_UNFIT = 64
"""Rows of a batch whose values may not fit their columns: of more, the column is of another kind."""


def footer(uri: str, listed: int) -> Any:
    """Read the metadata of a file that had so many bytes; one of `UNREADABLE` if it has none that can be read."""
    with open_file(uri, listed) as file:
        return read_metadata(file)


def row_groups(uri: str, path: str, listed: int, split_bytes: int, wanted: RowFilter | None) -> Iterator[Split]:
    """Yield splits of about `split_bytes` bytes of a file of `listed` bytes.

    `wanted` may refuse row groups by their (min, max) per column.
    """
    split = partial(Split, uri=uri, path=path, reader=READER, listed=listed, folding=_FOLDING)
    found = footer(uri, listed)
    noted = _noted(uri, listed, found) if wanted is not None else None
    start, size = 0, 0
    for i in range(found.num_row_groups):
        if wanted is not None and noted is not None and not wanted(noted[i]):
            if i > start:
                yield split(start=start, end=i, size=size)
            start, size = i + 1, 0
            continue
        size += found.row_group(i).total_byte_size
        if size >= split_bytes:
            yield split(start=start, end=i + 1, size=size)
            start, size = i + 1, 0
    if start < found.num_row_groups:
        yield split(start=start, end=found.num_row_groups, size=size)


def _noted(uri: str, listed: int, metadata: Any) -> list[Bounds] | None:
    """Return (min, max) by column of each row group, of columns of plain 64-bit integers; None: nobody can tell."""
    try:
        plain = {field.name for field in metadata.schema.to_arrow_schema() if pa.types.is_int64(field.type)}
        with open_file(uri, listed) as file:
            found = read_footer(file)
        noted = None if found is None else [bounds_of(row) for row in found.chunks]
    except UNREADABLE:
        return None  # reading says what is wrong
    if noted is None or len(noted) != metadata.num_row_groups:
        return None
    return [{name: bounds for name, bounds in row.items() if name in plain} for row in noted]


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage; a `cklog.engine.scan.Reader`."""
    for item in _read(split, table, columns, None):
        assert not isinstance(item, Folded)
        yield item


def fold(
    kernel: BlockKernel, split: Split, table: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch | Folded | Damage]:
    """Yield the same, or what a kernel makes of rows while they are decoded; a `cklog.engine.scan.BlockReader`."""
    yield from _read(split, table, columns, kernel)


def _read(
    split: Split, table: str, columns: tuple[str, ...], kernel: BlockKernel | None
) -> Iterator[pa.RecordBatch | Folded | Damage]:
    try:
        with open_file(split.uri, split.listed) as handle:
            yield from _read_row_groups(handle, split, table, columns, kernel)
    except UNREADABLE as error:
        yield damage_of(split.path, error, "")


def _read_row_groups(
    handle: Any, split: Split, table: str, columns: tuple[str, ...], kernel: BlockKernel | None
) -> Iterator[pa.RecordBatch | Folded | Damage]:
    """Yield the rows of a split's row groups as batches of `columns`, and what cannot be read of them.

    With a kernel what it makes of rows, where they are decoded by loops, and these see all that is looked for: that
    there is no null, and no number out of range.
    """
    schema, metadata = TABLES[table], read_metadata(handle)
    texts = _dictionary_columns(schema, metadata)
    check_rows(split.path, metadata.num_rows, handle.size())
    stored = metadata.schema.to_arrow_schema().names
    missing = [f.name for f in schema if not f.nullable and f.name not in stored]
    if missing:
        yield Damage(split.path, "corrupt-file", None, f"no column {', '.join(missing)}")
        return
    if why := misplaced(stored, [member_of(f) for f in schema]):
        yield Damage(split.path, "corrupt-file", None, f"each row is {why}")
        return
    if table in SPELT and split.start == 0 and (why := find_misspelling(stored, members_of(table))):
        yield Damage(split.path, "unknown-member", None, why, metadata.num_rows)
    members = {member_of(f): f.name for f in schema if f.name in columns}
    present = [name for name in stored if name in members]
    file = ParquetRows(handle, metadata, split.path, present, texts)
    if not {*columns} <= {*present} or not all(_holds_any(schema.field(name)) for name in columns):
        kernel = None
    row = sum(metadata.row_group(i).num_rows for i in range(split.start))
    fits: pa.Schema | None = None  # of batches that need no shaping
    for group in range(split.start, split.end):
        at = row
        try:
            for batch in file.folded(group, _BATCH_ROWS, kernel):
                if isinstance(batch, Folded):
                    yield batch
                    at += batch.num_rows
                    continue
                seen = {members[name] for name in file.in_range}
                fitting = [batch] if batch.schema == fits else _fitting_rows(batch, schema, columns, split.path, at)
                fits = batch.schema if _are_as_stored(fitting, batch) else None
                for shaped in fitting:
                    if isinstance(shaped, Damage):
                        yield shaped
                    else:
                        yield from _intact_rows(shaped, schema, split.path, at, seen)
                at += batch.num_rows
        except (OSError, *ARROW_ERRORS, ValueError) as error:
            yield damage_of(split.path, error, f"row group {group}: ")
        else:
            if at - row != metadata.row_group(group).num_rows:  # a page header that lies makes the library stop early
                what = f"row group {group}: {at - row} of its {metadata.row_group(group).num_rows} rows can be read"
                yield Damage(split.path, "corrupt-file", None, what)
        row += metadata.row_group(group).num_rows
        count_bytes(metadata.row_group(group).total_byte_size)


def _dictionary_columns(schema: pa.Schema, metadata: Any) -> list[str]:
    """Return the columns of the file to read dictionary-encoded: strings of few values, and the keys of maps."""
    many = {f.name for f in schema if (f.metadata or {}).get(b"values") == b"many"}
    texts = {f.name for f in schema if pa.types.is_string(f.type)} - many
    maps = {f.name for f in schema if pa.types.is_map(f.type)}
    stored = metadata.schema
    columns = [stored.column(i) for i in range(len(stored))]
    keys = [c.path for c in columns if c.path.split(".")[0] in maps and c.path.endswith(".key")]
    return keys + [c.path for c in columns if c.path in texts and c.physical_type == "BYTE_ARRAY"]


def _holds_any(field: pa.Field) -> bool:
    """Return whether a column may hold any text, or is one of integers."""
    return pa.types.is_int64(field.type) or (
        pa.types.is_string(field.type) and not is_listed(field) and not field.metadata
    )


def _fitting_rows(
    batch: pa.RecordBatch, schema: pa.Schema, columns: tuple[str, ...], path: str, row: int
) -> list[pa.RecordBatch | Damage]:
    """Return a batch in the table's types; rows with values that do not fit these are damage, the others stay.

    `row` is the number of the first row in the file. A column of which many values do not fit is of another kind.

    Raises
    ------
    ArrowInvalid : there are many such rows
    """
    found: list[pa.RecordBatch | Damage] = []
    waiting, unfit = [(0, batch.num_rows)], 0
    while waiting:
        start, end = waiting.pop()
        whole = end - start == batch.num_rows
        part = batch if whole else batch.take(np.arange(start, end))  # of a slice, maps are cast with all their entries
        try:
            found.append(_as_table_columns(part, schema, columns, path, row + start))
        except pa.ArrowInvalid as error:
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
                continue
            unfit += 1
            if unfit > _UNFIT:
                raise
            found.append(Damage(path, "bad-record", row + start, first_line(error)))
    return found


def _are_as_stored(fitting: Sequence[pa.RecordBatch | Damage], batch: pa.RecordBatch) -> bool:
    """Return whether the rows that fit are those of the batch; then types alone say so, of each that has the same."""
    return len(fitting) == 1 and isinstance(fitting[0], pa.RecordBatch) and fitting[0].schema == batch.schema


def _as_table_columns(
    batch: pa.RecordBatch, schema: pa.Schema, columns: tuple[str, ...], path: str, row: int
) -> pa.RecordBatch:
    """Return exactly `columns`, cast to the table's types; strings stay dictionary-encoded.

    `row` is the number of the batch's first row in the file.
    """
    arrays = []
    for name in columns:
        if name == "_path":
            index = pa.array(np.zeros(batch.num_rows, np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(index, pa.array([path])))
        elif name == "_offset":
            arrays.append(pa.array(np.arange(row, row + batch.num_rows)))
        else:
            arrays.append(_table_column(batch, schema.field(name)))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _table_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """Return the column that holds `field`, nulls where the file has none or keeps another one's type there."""
    member = member_of(field)
    if member not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    array = batch.column(member)
    if (field.metadata or {}).get(b"holds") == b"json":
        return _json_texts(array)
    if pa.types.is_map(array.type) != pa.types.is_map(field.type) and member == "input":
        return pa.nulls(batch.num_rows, field.type)
    try:
        return _cast_column(array, field)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"column {member}: {first_line(error)}") from None


def _json_texts(array: pa.Array) -> pa.Array:
    """Return JSON text as it is, if a column stores text, and else the JSON of its values."""
    stored = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_string(stored) or pa.types.is_large_string(stored):
        return array.cast(pa.string())
    try:
        return pa.array([None if value is None else json_text(value) for value in array.to_pylist()], pa.string())
    except NotARecord as error:  # such as bytes that are no text
        raise pa.ArrowInvalid(str(error)) from None


def _cast_column(array: pa.Array, field: pa.Field) -> pa.Array:
    """Cast a column to its field's type; times are cut to milliseconds, integers rounded to what a double can hold.

    Raises
    ------
    ArrowInvalid : a value does not fit
    ArrowTypeError : the column is of another kind
    """
    if array.type == field.type or (pa.types.is_dictionary(array.type) and pa.types.is_string(field.type)):
        return array
    if pa.types.is_map(array.type) and pa.types.is_map(field.type):
        if pa.types.is_int64(array.type.item_type):
            return array
        return array.cast(pa.map_(array.type.key_type, pa.int64()))
    if pa.types.is_integer(field.type) and not pa.types.is_integer(array.type):
        if pa.types.is_timestamp(array.type):
            return timestamps_as_ms(array)
        stored = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        raise pa.ArrowTypeError(f"column {field.name} is {stored}, not an integer")
    return array.cast(field.type, safe=not (pa.types.is_float64(field.type) and pa.types.is_integer(array.type)))


def _intact_rows(
    batch: pa.RecordBatch, schema: pa.Schema, path: str, row: int, seen: Collection[str]
) -> Iterator[pa.RecordBatch | Damage]:
    """Yield each row that is no record as damage, and the others as one batch; `row` is the first one's number.

    Of the columns in `seen` all numbers are known to be in range.
    """
    reasons = [*faults(batch, schema, seen)]
    if not reasons:
        yield batch
        return
    bad = reasons[0].rows
    for fault in reasons[1:]:
        bad = pc.or_(bad, fault.rows)
    for i in pc.indices_nonzero(bad).to_pylist():
        first = next(fault for fault in reasons if fault.rows[i].as_py())
        yield Damage(path, first.id, row + i, first.why)
    yield batch.filter(pc.invert(bad))
