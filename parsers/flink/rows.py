"""Rows of the table of snapshots in the making: tuples, since a large job has hundreds of thousands of handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.inputs.snapshots import COLUMNS, SNAPSHOTS

Row = tuple[Any, ...]
FIELDS = (*COLUMNS, "_offset")
_EMPTY = dict.fromkeys(FIELDS)


def row(at: int, entry: str, **cells: Any) -> Row:
    """A row of what is at byte `at` of the metadata.

    >>> dict(zip(FIELDS, row(7, "channel", gate=1)))["gate"]
    1
    """
    return tuple((_EMPTY | cells | {"entry": entry, "_offset": at}).values())


def batch(rows: Sequence[Row], columns: tuple[str, ...], path: str) -> pa.RecordBatch:
    """Rows as a record batch of `columns`."""
    cells = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
    arrays = []
    for name in columns:
        if name == "_path":
            index = pa.array(np.zeros(len(rows), np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(index, pa.array([path])))
        else:
            kind = pa.int64() if name == "_offset" else SNAPSHOTS.field(name).type
            empty = cells[name].count(None) == len(rows)  # most columns of most files
            arrays.append(pa.nulls(len(rows), kind) if empty else pa.array(cells[name], kind))
    return pa.RecordBatch.from_arrays(arrays, list(columns))
