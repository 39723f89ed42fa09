"""Sorting by packed keys, taking rows, codes of texts, against numpy's and Arrow's own, and their definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cklog.arrays.columns import codes
from cklog.arrays.order import stable_order, taken

BIGGEST = 2**63 - 1
numbers = st.one_of(st.integers(-3, 3), st.integers(-BIGGEST - 1, BIGGEST))
keys = st.lists(st.tuples(numbers, numbers, numbers), max_size=30)


@given(keys)
def test_rows_are_in_the_order_of_their_keys(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[k] for row in rows], np.int64) for k in range(3)]
    assert stable_order(*columns).tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2))), st.integers(0, 3))
def test_ranges_that_just_fit_are_sorted_alike(rows: list[tuple[int, int]], wide: int) -> None:
    """Packed keys of up to 63 bits, and beyond."""
    low = np.array([row[0] for row in rows], np.int64) << (50 + wide)
    high = np.array([row[1] for row in rows], np.int64)
    order = sorted(range(len(rows)), key=lambda i: (low[i], high[i]))
    assert stable_order(low, high).tolist() == order


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 4))
def test_rows_taken_are_those_rows(rows: list[int], chunks: int) -> None:
    """Chunks have dictionaries of their own, as files have."""
    part = {"n": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, 0]), "none": pa.nulls(10, pa.int64())}
    words = [pa.array([f"{k + i % 4}" for i in range(10)]).dictionary_encode() for k in range(chunks)]
    table = pa.concat_tables([pa.table({**part, "word": words[k]}).slice(k) for k in range(chunks)])
    rows = [row % len(table) for row in rows]
    every = table.to_pylist()
    assert taken(table, np.array(rows, np.int64)).to_pylist() == [every[row] for row in rows]


texts = st.lists(st.sampled_from(["a", "b", "", "ä", "zz"]), max_size=9)


@given(st.lists(texts, max_size=3), st.booleans(), st.lists(st.booleans(), min_size=27, max_size=27))
def test_codes_are_places_among_the_texts_that_some_row_has(
    chunks: list[list[str]], coded: bool, kept: list[bool]
) -> None:
    """Of rows that are filtered a dictionary keeps the texts of all; one may also have a text twice."""
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    if coded:
        words = pa.array(["zz", "never", "a", "b", "", "ä", "a"])
        rows = [pa.array([words.to_pylist().index(text) for text in chunk], pa.int32()) for chunk in chunks]
        kind = pa.dictionary(pa.int32(), pa.string())
        column = pa.chunked_array([pa.DictionaryArray.from_arrays(row, words) for row in rows], kind)
    column = column.filter(pa.array(kept[: len(column)], pa.bool_()))
    found = column.to_pylist()
    index, names = codes(column)
    assert names == sorted(set(found))
    assert [names[i] for i in index.tolist()] == found
