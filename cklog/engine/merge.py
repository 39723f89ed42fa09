"""Reduce on Arrow tables: rows of equal keys, or of one island of touching spans, become one row.

Merging is associative and commutative: the rows of the answer are the groups of all rows ever given, and each
column is folded by sum, min or max. So it may be done at any time on any part of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.types import Ints, Mask
from cklog.engine.scan import Aggregate, Reduce


def merge(tables: Sequence[pa.Table], reduce: Reduce) -> pa.Table:
    """Reduce all rows of `tables`.

    Parameters
    ----------
    tables : at least one, all of one schema; with a span, neither of its columns holds nulls

    Returns
    -------
    Table : the schema of the input; with a span sorted by keys (nulls last), then by the start of the span

    Notes
    -----
    Nulls are equal as keys and skipped by aggregates; an aggregate of nothing but nulls is null.
    """
    table = pa.concat_tables(tables)
    if not table.num_rows:
        return table
    if reduce.span is None:
        return _row_per_key(table, reduce)
    table = table.combine_chunks()
    low, high = reduce.span
    # the island that each row is of, numbered in order of keys and starts
    order, first = islands(_key_codes(table, reduce.keys), table[low].to_numpy(), table[high].to_numpy())
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(first) - 1
    columns = _folded_columns(table, group, {**reduce.aggregates, low: "min", high: "max"})
    kept = table.select(list(reduce.keys)).take(pa.array(order[first]))
    columns |= {name: kept[name] for name in reduce.keys}
    return pa.table([columns[name] for name in table.schema.names], schema=table.schema)


def _row_per_key(table: pa.Table, reduce: Reduce) -> pa.Table:
    """Merge the rows of each key to one."""
    found = table.group_by(list(reduce.keys), use_threads=False).aggregate(list(reduce.aggregates.items()))
    names = {name: f"{name}_{fold}" for name, fold in reduce.aggregates.items()}
    columns = [found[names.get(name, name)] for name in table.schema.names]
    return pa.table(columns, names=table.schema.names).cast(table.schema)


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


def _key_codes(table: pa.Table, keys: Sequence[str]) -> Ints:
    """Return one number per row, equal for equal keys and in their order, nulls last; shape (n,).

    The ranks of the columns are digits of it, the first column leading. Before it outgrows 62 bits the numbers so far
    are replaced by their own ranks.
    """
    combined, size = np.zeros(table.num_rows, np.int64), 1
    for name in keys:
        code, values = _dense_ranks(table[name])
        if size * values >= 1 << 62:
            distinct, combined = np.unique(combined, return_inverse=True)
            size = len(distinct)
        combined, size = combined * values + code, size * values
    return combined


def _dense_ranks(column: pa.ChunkedArray) -> tuple[Ints, int]:
    """Return the rank of each value among the distinct ones, null behind all, and how many ranks there are.

    >>> ranks, count = _dense_ranks(pa.chunked_array([[30, None, 10, 30]]))
    >>> ranks.tolist(), count
    ([1, 2, 0, 1], 3)
    """
    encoded = pa.concat_arrays(column.chunks)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    values = len(encoded.dictionary)
    rank = np.append(pc.rank(encoded.dictionary, tiebreaker="dense").to_numpy().astype(np.int64) - 1, values)
    return rank[pc.fill_null(encoded.indices.cast(pa.int64()), values).to_numpy()], values + 1


def _folded_columns(table: pa.Table, group: Ints, folds: Mapping[str, Aggregate]) -> dict[str, pa.ChunkedArray]:
    """Return each column of `folds` aggregated by group, in order; groups (n,) are numbered from 0 without holes."""
    rows = pa.table([pa.array(group), *(table[name] for name in folds)], ["", *folds])
    found = rows.group_by("", use_threads=False).aggregate(list(folds.items()))
    found = found.take(pc.sort_indices(found[""]))
    return {name: found[f"{name}_{fold}"] for name, fold in folds.items()}
