"""Reduce on Arrow tables: rows of equal keys, or of one island of touching spans, become one row.

Merging is associative and commutative: the rows of the answer are the groups of all rows ever given, and each
column is folded by sum, min or max. So it may be done at any time on any part of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.loops import Loop, only_read
from cklog.arrays.types import Ints, Mask, Small
from cklog.engine.scan import Aggregate, Reduce


def merge(tables: Sequence[pa.Table], reduce: Reduce) -> pa.Table:
    """Reduce all rows of `tables`.

    Parameters
    ----------
    tables : at least one, all of one schema; with a span, neither of its columns holds nulls

    Returns
    -------
    Table : the schema of the input, in no order

    Notes
    -----
    Nulls are equal as keys and skipped by aggregates; an aggregate of nothing but nulls is null. With a span one pass
    over the rows joins each to the island of its key that was open last; only where a key's rows do not rise, what has
    come of them is sorted. Names are hashed once a row and never compared: O(rows) time.
    """
    table = pa.concat_tables(tables)
    if not table.num_rows:
        return table
    if reduce.span is None:
        return _row_per_key(table, reduce)
    low, high = reduce.span
    codes = {name: _encoded(table[name]) for name in reduce.keys}
    found = _groups(_combined([*codes.values()]), table[low].to_numpy(), table[high].to_numpy())
    columns = {name: _key_column(code, found.first_row) for name, code in codes.items()}
    columns |= {name: _folded(table[name], found, fold) for name, fold in reduce.aggregates.items()}
    columns |= {low: pa.array(found.low), high: pa.array(found.high)}
    return pa.table([columns[name] for name in table.schema.names], names=table.schema.names).cast(table.schema)


def _row_per_key(table: pa.Table, reduce: Reduce) -> pa.Table:
    """Merge the rows of each key to one."""
    found = table.group_by(list(reduce.keys), use_threads=False).aggregate(list(reduce.aggregates.items()))
    names = {name: f"{name}_{fold}" for name, fold in reduce.aggregates.items()}
    columns = [found[names.get(name, name)] for name in table.schema.names]
    return pa.table(columns, names=table.schema.names).cast(table.schema)


class _Groups(NamedTuple):
    """The island that each of n rows is of, and of each of the m islands its span and its first row.

    `group` : shape (n,); `first_row`, `low`, `high` : shape (m,)
    """

    group: Small
    first_row: Small
    low: Ints
    high: Ints


def _number_runs(
    key: Small, start: Ints, end: Ints, open_run: Small, group: Small, first_row: Small, reach: Ints
) -> int:
    """Join each row to the run of its key that was opened last, if they touch; return how many runs there are.

    ~count where a run begins before the one that its key had open: runs of a key may then touch each other.
    `open_run` holds the place of each key's open run, -1 before its first row.
    """
    count = 0
    rising = 1
    for i in range(len(key)):
        run = open_run[key[i]]
        if run >= 0 and start[i] < start[first_row[run]]:
            rising = 0
            run = -1
        if run < 0 or start[i] > reach[run]:
            run = open_run[key[i]] = count
            first_row[run] = i
            reach[run] = end[i]
            count += 1
        elif end[i] > reach[run]:
            reach[run] = end[i]
        group[i] = run
    return count if rising else ~count


def _add(group: Small, values: Ints, folded: Ints) -> int:
    for i in range(len(group)):
        folded[group[i]] += values[i]
    return 0


def _lower(group: Small, values: Ints, folded: Ints) -> int:
    for i in range(len(group)):
        if values[i] < folded[group[i]]:
            folded[group[i]] = values[i]
    return 0


def _raise(group: Small, values: Ints, folded: Ints) -> int:
    for i in range(len(group)):
        if values[i] > folded[group[i]]:
            folded[group[i]] = values[i]
    return 0


_NUMBER_RUNS = Loop(_number_runs)
_FOLDS: dict[Aggregate, Loop] = {"sum": Loop(_add), "min": Loop(_lower), "max": Loop(_raise)}


def _groups(key: Small | Ints, start: Ints, end: Ints) -> _Groups:
    """Find the island of each row, rows being of one if their spans overlap or touch and their `key` is the same.

    Shapes are (n,); keys are not negative, and so small that an array has room for all below the greatest.

    >>> _groups(np.array([1, 0, 0, 0]), np.array([5, 0, 9, 2]), np.array([6, 3, 10, 7])).group.tolist()
    [2, 0, 1, 0]
    """
    rows = len(key)
    group, first_row = np.empty((2, rows), np.int32)
    reach = np.empty(rows, np.int64)
    given = only_read(key), only_read(start), only_read(end)
    count = _NUMBER_RUNS(rows, *given, np.full(int(key.max()) + 1, -1, np.int32), group, first_row, reach)
    runs = count if count >= 0 else ~count
    first_row, reach = first_row[:runs].copy(), reach[:runs].copy()
    if count >= 0:
        return _Groups(group, first_row, start[first_row], reach)
    order, first = islands(key[first_row], start[first_row], reach)
    island = np.empty(runs, np.int32)  # of each run
    island[order] = np.cumsum(first) - 1
    begin = np.flatnonzero(first)
    high = np.maximum.reduceat(reach[order], begin)
    first_row = first_row[order[begin]]
    return _Groups(island[group], first_row, start[first_row], high)


def islands(key: NDArray[np.integer], start: Ints, end: Ints) -> tuple[Ints, Mask]:
    """Find the islands of half-open spans that overlap or touch, among rows of equal `key`.

    Returns
    -------
    order : rows sorted by key, then start, shape (n,)
    first : True where, in that order, an island begins, shape (n,)

    Examples
    --------
    >>> order, first = islands(np.array([1, 0, 0, 0]), np.array([5, 9, 0, 2]), np.array([6, 10, 7, 3]))
    >>> order.tolist(), first.tolist()
    ([2, 3, 1, 0], [True, False, True, True])
    """
    order = np.lexsort((start, key))
    key, start, end = key[order], start[order], end[order]
    first = _first_of_stretches(key)
    if len(order) > 1:
        reach = _running_reach(first, end)
        first[1:] |= start[1:] > reach[:-1]
    return order, first


def _running_reach(first: Mask, end: Ints) -> Ints:
    """Return the running maximum of `end` that begins anew where `first` is True; shapes (n,).

    >>> _running_reach(np.array([True, False, False, True]), np.array([7, 3, 9, 5])).tolist()
    [7, 7, 9, 5]
    """
    if ((end[1:] >= end[:-1]) | first[1:]).all():
        return end
    ordered, rank = np.unique(end, return_inverse=True)
    # each section is lifted above all before it, so that one running maximum serves all; at most n * n
    height = np.cumsum(first) * np.int64(len(ordered))
    reach: Ints = ordered[np.maximum.accumulate(height + rank) - height]
    return reach


def _first_of_stretches(key: NDArray[np.integer]) -> Mask:
    """Mark the first row of each stretch of equal keys: 4, 4, 7 → True, False, True."""
    first = np.ones(len(key), np.bool_)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    return first


class _Codes(NamedTuple):
    """A key column as numbers: `values[code]` of each row, shape (n,); a code behind the values is null."""

    values: pa.Array
    code: Small


def _encoded(column: pa.ChunkedArray) -> _Codes:
    """Return each row's value as its place among the distinct ones.

    >>> _encoded(pa.chunked_array([[30, None], [10, 30]])).code.tolist()
    [0, 2, 1, 0]
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.dictionary_encode()  # of all chunks by one dictionary, without putting them together
    values = column.chunk(0).dictionary
    code = column.chunk(0).indices if column.num_chunks == 1 else pa.chunked_array([c.indices for c in column.chunks])
    if code.null_count:
        code = pc.fill_null(code, len(values))
    return _Codes(values, code.to_numpy().astype(np.int32, copy=False))


def _combined(columns: Sequence[_Codes]) -> Small | Ints:
    """Return one number per row, equal for equal keys, and less than some times the number of rows; shape (n,).

    The codes of the columns are digits of it.
    """
    first, *others = columns
    combined: Small | Ints = first.code
    size = len(first.values) + 1
    for column in others:
        if size * (len(column.values) + 1) > 4 * len(combined) + 1024:
            coded = pa.array(combined).dictionary_encode()
            combined, size = coded.indices.to_numpy(), len(coded.dictionary)
        combined = combined.astype(np.int64) * (len(column.values) + 1) + column.code
        size *= len(column.values) + 1
    if size > 4 * len(combined) + 1024:
        combined = pa.array(combined).dictionary_encode().indices.to_numpy()
    return combined


def _key_column(column: _Codes, rows: Small) -> pa.Array:
    """Return the values of `rows`."""
    code = column.code[rows]
    return column.values.take(pa.array(code, mask=code == len(column.values)))


def _folded(column: pa.ChunkedArray, found: _Groups, fold: Aggregate) -> pa.Array | pa.ChunkedArray:
    """Return a column aggregated by group, in order of groups."""
    if column.type == pa.int64() and not column.null_count:
        values = column.to_numpy()
        folded = np.zeros(len(found.low), np.int64) if fold == "sum" else values[found.first_row]
        _FOLDS[fold](len(values), only_read(found.group), only_read(values), folded)
        return pa.array(folded)
    rows = pa.table([pa.array(found.group), column], ["group", "value"])
    got = rows.group_by("group", use_threads=False).aggregate([("value", fold)])
    return got.take(pc.sort_indices(got["group"]))[f"value_{fold}"]
