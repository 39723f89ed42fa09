"""Parquet files of a run folder: read by row group, only the columns an answer needs.

Page checksums are verified where the writer made them. Rows are numbered from 0 in the file; that number is the
`offset` of a finding. A column of the wrong type, or a required one that is missing, damages the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cklog.engine import Damage, Split
from cklog.model import CHOICES, TABLES
from cklog.parsers.jsonl import PSEUDO
from cklog.parsers.records import BIGGEST, NOT_NEGATIVE
from cklog.storage import open_file
from cklog.tables import map_rows

READER = "cklog.parsers.parquet:read"
_BATCH_ROWS = 1 << 17


def footer(uri: str) -> Any:
    """The file's metadata; OSError or ArrowInvalid if it has none that can be read."""
    with open_file(uri) as file:
        return pq.read_metadata(file)


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Batches of `columns` and damage; a `cklog.engine.Reader`."""
    schema = TABLES[table]
    try:
        with open_file(split.uri) as handle:
            yield from _row_groups(handle, split, schema, columns)
    except (OSError, pa.ArrowException) as error:
        yield Damage(split.path, "corrupt-file", None, _first_line(error))


def _row_groups(
    handle: Any, split: Split, schema: pa.Schema, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch | Damage]:
    metadata = pq.read_metadata(handle)
    texts = _text_paths(schema, metadata)
    handle.seek(0)
    file = pq.ParquetFile(handle, metadata=metadata, read_dictionary=texts, page_checksum_verification=True)
    stored = file.schema_arrow.names
    missing = [f.name for f in schema if not f.nullable and f.name not in stored]
    if missing:
        yield Damage(split.path, "corrupt-file", None, f"no column {', '.join(missing)}")
        return
    present = [name for name in columns if name in stored]
    row = sum(metadata.row_group(i).num_rows for i in range(split.start))
    for group in range(split.start, split.end):
        at = row
        try:
            for batch in file.iter_batches(_BATCH_ROWS, [group], present, use_threads=False):
                yield from _intact(_shaped(batch, schema, columns, split.path, at), schema, split.path, at)
                at += batch.num_rows
        except (OSError, pa.ArrowException, ValueError) as error:
            yield Damage(split.path, "corrupt-file", None, f"row group {group}: {_first_line(error)}")
        row += metadata.row_group(group).num_rows


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _text_paths(schema: pa.Schema, metadata: Any) -> list[str]:
    """Columns of the file to read dictionary-encoded: strings, and the keys of maps."""
    texts = {f.name for f in schema if pa.types.is_string(f.type)}
    maps = {f.name for f in schema if pa.types.is_map(f.type)}
    stored = metadata.schema
    columns = [stored.column(i) for i in range(len(stored))]
    keys = [c.path for c in columns if c.path.split(".")[0] in maps and c.path.endswith(".key")]
    return keys + [c.path for c in columns if c.path in texts and c.physical_type == "BYTE_ARRAY"]


def _shaped(batch: pa.RecordBatch, schema: pa.Schema, columns: tuple[str, ...], path: str, row: int) -> pa.RecordBatch:
    """Exactly `columns`, cast to the table's types; strings stay dictionary-encoded."""
    arrays = []
    for name in columns:
        if name == "_path":
            arrays.append(pa.array([path] * batch.num_rows, PSEUDO[name]).dictionary_encode())
        elif name == "_offset":
            arrays.append(pa.array(range(row, row + batch.num_rows), PSEUDO[name]))
        elif name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, schema.field(name).type))
        else:
            arrays.append(_cast(batch.column(name), schema.field(name)))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_dictionary(array.type) and pa.types.is_string(field.type):
        return array
    if pa.types.is_map(array.type) and pa.types.is_map(field.type):
        if pa.types.is_int64(array.type.item_type):
            return array
        return array.cast(pa.map_(array.type.key_type, pa.int64()))
    if pa.types.is_integer(field.type) and not pa.types.is_integer(array.type):
        if pa.types.is_timestamp(array.type):
            return array.cast(pa.timestamp("ms", array.type.tz)).cast(pa.int64())
        raise pa.ArrowInvalid(f"column {field.name} is {array.type}, not an integer")
    return array.cast(field.type)


def _intact(batch: pa.RecordBatch, schema: pa.Schema, path: str, row: int) -> Iterator[pa.RecordBatch | Damage]:
    """Rows that are records; each other one as damage."""
    reasons = [reason for name in batch.schema.names for reason in _faults(name, batch.column(name), schema)]
    if not reasons:
        yield batch
        return
    bad = reasons[0][0]
    for mask, _ in reasons[1:]:
        bad = pc.or_(bad, mask)
    for i in pc.indices_nonzero(bad).to_pylist():
        why = next(text for mask, text in reasons if mask[i].as_py())
        yield Damage(path, "bad-record", row + i, why)
    yield batch.filter(pc.invert(bad))


def _faults(name: str, array: pa.Array, schema: pa.Schema) -> Iterator[tuple[pa.Array, str]]:
    """(rows at fault, why) for one column."""
    if array.null_count and name in schema.names and not schema.field(name).nullable:
        yield pc.is_null(array), f"no field {name}"
    if name in NOT_NEGATIVE and len(array):
        span = pc.min_max(array).as_py()
        if (span["min"] or 0) < 0:
            yield pc.fill_null(pc.less(array, 0), False), f"{name} is less than 0"
        if (span["max"] or 0) >= BIGGEST:
            yield pc.fill_null(pc.greater_equal(array, BIGGEST), False), f"{name} is beyond 64 bits"
    if name in CHOICES:
        words = pa.array([*CHOICES[name], None], pa.string())
        known = pc.is_in(array.cast(pa.string()), value_set=words)
        if not pc.all(known).as_py():
            yield pc.invert(known), f"{name} is not one of {', '.join(CHOICES[name])}"
    if pa.types.is_map(array.type) and len(array):
        row, inside = map_rows(array)
        negative = pc.fill_null(pc.less(array.items, 0), True).to_numpy(zero_copy_only=False) & inside
        if negative.any():
            bad = np.zeros(len(array), np.bool_)
            bad[row[negative]] = True
            yield pa.array(bad), f"{name} holds a watermark less than 0"
