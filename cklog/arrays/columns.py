"""Columns of Arrow tables as arrays of integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cklog.arrays.types import Ints

_NONE = np.zeros(0, np.int64)


def codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Strings as indices into their sorted distinct values, which do not depend on order or encoding."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    ordered = sorted(set(values))
    rank = {value: i for i, value in enumerate(ordered)}
    to = np.array([rank[value] for value in values] or [0], np.int64)
    index: Ints = to[array.indices.to_numpy(zero_copy_only=False)]
    return index, ordered


def entries(column: pa.ChunkedArray) -> tuple[Ints, Ints, list[str], Ints]:
    """Entries of a map column: row, key code, the distinct keys in order, value; rows in order."""
    if not column.num_chunks or not len(column):
        return _NONE, _NONE, [], _NONE
    array = pa.concat_arrays(column.chunks)
    row, inside = map_rows(array)
    keys, items = array.keys, array.items
    if not inside.all():
        row, keys, items = row[inside], keys.filter(pa.array(inside)), items.filter(pa.array(inside))
    code, names = codes(keys)
    return row, code, names, items.to_numpy(zero_copy_only=False)


def map_rows(array: pa.MapArray) -> tuple[Ints, NDArray[np.bool_]]:
    """The row that owns each child of a map array, and whether any does (null rows and slices leave children)."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    row = np.zeros(len(array.keys), np.int64)
    inside = np.zeros(len(row), np.bool_)
    row[offsets[0] : offsets[-1]] = np.repeat(np.arange(len(array), dtype=np.int64), np.diff(offsets))
    inside[offsets[0] : offsets[-1]] = True
    if array.null_count:
        inside &= array.is_valid().to_numpy(zero_copy_only=False)[row]
    return row, inside


def flat_names(name: str) -> tuple[str, int, str]:
    """Sort key by which `topic-10` comes after `topic-2`.

    >>> sorted(["t-10", "t-2"], key=flat_names)
    ['t-2', 't-10']
    """
    topic, _, partition = name.rpartition("-")
    return (topic, int(partition), name) if partition.isdecimal() and len(partition) < 10 else (name, -1, name)
