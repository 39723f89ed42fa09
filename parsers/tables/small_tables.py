"""Tables that a parser makes of all it has read, for folders of a few small files: one split, one batch of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from cklog.engine import Split
from cklog.parsers.tables.records import PSEUDO
from cklog.storage import Root


def whole(root: Root, reader: str) -> tuple[Split, ...]:
    """A folder as one split, which counts no bytes; its reader opens `Root(split.uri)`."""
    return (Split(root.uri(""), root.path, reader, 0, 1, 0),)


def batch_of(rows: Iterable[Mapping[str, Any]], schema: pa.Schema, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Columns of a schema, and those that say where a row was read; what a row does not have is null."""
    rows = list(rows)
    fields = [pa.field(name, PSEUDO[name]) if name in PSEUDO else schema.field(name) for name in columns]
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
