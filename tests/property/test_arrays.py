"""Sorting by packed keys and taking rows, against numpy's and Arrow's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

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
