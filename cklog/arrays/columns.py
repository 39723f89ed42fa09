"""Columns of Arrow tables as arrays: integers, masks, and strings as codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.types import Ints, Mask, Small


class MapEntries(NamedTuple):
    """Entries of a map column, rows in order: entry e of row `row[e]` has key `names[key[e]]` and value `value[e]`.

    `row`, `key` and `value` have shape (entries,); `names` are the distinct keys, sorted.
    """

    row: Ints
    key: Ints
    names: list[str]
    value: Ints


def codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return each string as an index into the sorted distinct values, and those values.

    The codes depend neither on the order of the rows nor on how the column is encoded: of rows that were filtered, a
    dictionary may still hold what none of them has.

    >>> index, names = codes(pa.chunked_array([["b", "a", "b"]]))
    >>> index.tolist(), names
    ([1, 0, 1], ['a', 'b'])
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values, row = array.dictionary.to_pylist(), array.indices.to_numpy(zero_copy_only=False)
    used = np.zeros(len(values), np.bool_)
    used[row] = True
    ordered = sorted({value for value, some in zip(values, used.tolist(), strict=True) if some})
    rank = {value: i for i, value in enumerate(ordered)}
    to = np.array([rank.get(value, -1) for value in values] or [0], np.int64)
    index: Ints = to[row]
    return index, ordered


def shared_integers(array: pa.Array) -> NDArray[np.integer[Any]]:
    """Return an array of integers without nulls as numpy's, in the same memory.

    As `to_numpy` does, which lets go of the interpreter lock four times: threads that read batches beside each other
    wait for it longer than for the work.

    >>> shared_integers(pa.array([1, 2, 3], pa.int32())[1:]).tolist()
    [2, 3]
    """
    _, values = array.buffers()
    kind = array.type.to_pandas_dtype()
    if values is None:
        return np.zeros(0, kind)
    found: NDArray[np.integer[Any]] = np.frombuffer(values, kind)[array.offset : array.offset + len(array)]
    return found


def arrow_integers(values: Ints | Small) -> pa.Array:
    """Return integers as an Arrow array in the same memory, with as few turns of the interpreter lock."""
    return pa.Array.from_buffers(_ARROWS[values.dtype], len(values), [None, pa.py_buffer(values)])


_ARROWS = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def integers(column: pa.ChunkedArray | pa.Array, missing: int = 0) -> Ints:
    """Return a column of 64-bit integers as an array, `missing` where it is null."""
    found: Ints = (pc.fill_null(column, missing) if column.null_count else column).to_numpy()
    return found.astype(np.int64, copy=False)


def timestamps_as_ms(column: Any) -> Any:
    """Return timestamps (an array or a chunked one) as integers of milliseconds; finer ones are cut.

    >>> timestamps_as_ms(pa.array([1_700_000_000_000_999], pa.timestamp("us"))).to_pylist()
    [1700000000000]

    Raises
    ------
    ArrowInvalid : one is beyond 64 bits of milliseconds
    """
    finer = column.type.unit in ("us", "ns")
    return column.cast(pa.timestamp("ms", column.type.tz), safe=not finer).cast(pa.int64())


def plain_strings(column: Any) -> Any:
    """Return a column of strings (an array or a chunked one) without its dictionary, if it has one."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def true_rows(column: pa.ChunkedArray | pa.Array) -> Mask:
    """Return a column of booleans as a mask that is False where the column is null."""
    found: Mask = (pc.fill_null(column, False) if column.null_count else column).to_numpy(zero_copy_only=False)
    return found


def holds(column: pa.ChunkedArray, word: str) -> Mask:
    """Return where a column of words holds this one; a dictionary is asked once, not for every row.

    >>> holds(pa.chunked_array([["base", None, "delta"]]), "delta").tolist()
    [False, False, True]
    """
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    if not pa.types.is_dictionary(column.type):
        return true_rows(pc.equal(column, word))
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    return true_rows(pc.equal(array.dictionary, word).take(array.indices))


def entries(column: pa.ChunkedArray) -> MapEntries:
    """Return the entries of a map column of strings to integers; null rows have none."""
    if not column.num_chunks or not len(column):
        none = np.zeros(0, np.int64)
        return MapEntries(none, none, [], none)
    array = pa.concat_arrays(column.chunks)
    row, inside = map_rows(array)
    keys, items = array.keys, array.items
    if not inside.all():
        row, keys, items = row[inside], keys.filter(pa.array(inside)), items.filter(pa.array(inside))
    key, names = codes(keys)
    return MapEntries(row, key, names, items.to_numpy(zero_copy_only=False))


def map_rows(array: pa.MapArray) -> tuple[Ints, Mask]:
    """Return the row that owns each child of a map array, and whether any does; shape (children,) each.

    Null rows and slices leave children that no row owns.

    >>> row, inside = map_rows(pa.array([[("a", 1), ("b", 2)], [], [("a", 3)]], pa.map_(pa.string(), pa.int64())))
    >>> row.tolist(), inside.tolist()
    ([0, 0, 2], [True, True, True])
    """
    offsets = array.offsets.to_numpy().astype(np.int64)
    row = np.zeros(len(array.keys), np.int64)
    inside = np.zeros(len(row), np.bool_)
    row[offsets[0] : offsets[-1]] = np.repeat(np.arange(len(array), dtype=np.int64), np.diff(offsets))
    inside[offsets[0] : offsets[-1]] = True
    if array.null_count:
        inside &= array.is_valid().to_numpy(zero_copy_only=False)[row]
    return row, inside


def flat_names(name: str) -> tuple[str, int, str]:
    """Return a sort key by which `topic-10` comes after `topic-2`.

    >>> sorted(["t-10", "t-2"], key=flat_names)
    ['t-2', 't-10']
    """
    topic, _, partition = name.rpartition("-")
    return (topic, int(partition), name) if partition.isdecimal() and len(partition) < 10 else (name, -1, name)
