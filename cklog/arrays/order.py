"""Sorting rows by integers, as fast as plain numbers are sorted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints

_MOST = 1 << 63


def stable_order(*keys: Ints) -> Ints:
    """Rows in order of their keys, the first key counting most; equal rows stay in order.

    Where the keys' ranges and the row numbers together fit 63 bits they are packed into one number each, and sorted as
    such: several times faster than sorting indices.

    >>> stable_order(np.array([2, 1, 1, 2]), np.array([-5, 7, 6, -5])).tolist()
    [2, 1, 0, 3]
    """
    count = len(keys[0])
    spans = [(int(key.min()), int(key.max())) for key in keys] if count else []
    room = 1 << count.bit_length()
    for low, high in spans:
        room *= high - low + 1
    if not count or room > _MOST:
        return np.lexsort(keys[::-1])
    packed = np.zeros(count, np.int64)
    for key, (low, high) in zip(keys, spans, strict=True):
        packed *= high - low + 1
        packed += key
        packed -= low
    if (packed[1:] >= packed[:-1]).all():
        return np.arange(count)
    packed <<= count.bit_length()
    packed |= np.arange(count)
    packed.sort()
    packed &= (1 << count.bit_length()) - 1
    return packed


def taken(table: pa.Table, rows: Ints) -> pa.Table:
    """Rows of a table: the table itself if they are all of it in order; columns without a value need no look."""
    if len(rows) == len(table) and (rows[1:] > rows[:-1]).all():
        return table
    index = pa.array(rows)

    def column(field: pa.Field) -> pa.ChunkedArray | pa.Array:
        whole = table[field.name]
        if whole.null_count == len(whole):
            return pa.nulls(len(rows), field.type)
        return whole.combine_chunks().take(index)

    with ThreadPoolExecutor(pa.cpu_count()) as pool:  # random access waits for memory, and lets go of the lock
        columns = list(pool.map(column, table.schema))
    return pa.table(columns, names=table.column_names)
