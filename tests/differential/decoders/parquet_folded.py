"""Parquet rows as they are folded while loops decode them, in machine code and as it stands, against Arrow's reader."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cklog.arrays import blocks, loops
from cklog.arrays.blocks import Blocks
from cklog.arrays.loops import Loop
from cklog.arrays.types import Ints
from cklog.engine.scan import BlockKernel, Folded
from cklog.parsers.tables.parquet_batches import ParquetRows
from tests.differential.decoders.parquet import decoder_of, read_groups, rows_of
from tests.differential.verdicts import Outcome

_ROWS_AT_ONCE, _BLOCK_ROWS = (23, 1 << 20), 16
"""So that a row group is several batches in some cases, and a batch several blocks."""


def _copy_one(rows: int, a: Ints, found: Ints, at: Ints) -> int:
    for i in range(rows):
        found[at[0] + i] = a[i]
    at[0] += rows
    return rows


def _copy_two(rows: int, a: Ints, b: Ints, found: Ints, at: Ints) -> int:
    for i in range(rows):
        found[at[0] + 2 * i] = a[i]
        found[at[0] + 2 * i + 1] = b[i]
    at[0] += 2 * rows
    return rows


def _copy_three(rows: int, a: Ints, b: Ints, c: Ints, found: Ints, at: Ints) -> int:
    for i in range(rows):
        found[at[0] + 3 * i] = a[i]
        found[at[0] + 3 * i + 1] = b[i]
        found[at[0] + 3 * i + 2] = c[i]
    at[0] += 3 * rows
    return rows


_COPIES = {1: Loop(_copy_one), 2: Loop(_copy_two), 3: Loop(_copy_three)}
"""Loops that keep the rows, by the number of columns."""


def _fold_rows(found: Blocks) -> pa.RecordBatch | None:
    """Return the rows that blocks hold; None where they cannot be decoded so."""
    names = [*found.columns]
    numbers = np.zeros(found.rows * len(names), np.int64)
    if not found.fold(_COPIES[len(names)], names, (numbers, np.zeros(1, np.int64))):
        return None
    columns = []
    for k, name in enumerate(names):
        column = pa.array(numbers[k :: len(names)])
        columns.append(column if found.texts(name) is None else found.texts(name).take(column))
    return pa.RecordBatch.from_arrays(columns, names=names)


_KERNEL = BlockKernel(lambda batch: batch, _fold_rows)


def _folded(at_once: int, file: ParquetRows, group: int) -> list[Any]:
    items = file.folded(group, at_once, _KERNEL)
    return rows_of(item.part if isinstance(item, Folded) else item for item in items)


def _interpreted(at_once: int, file: ParquetRows, group: int) -> list[Any]:
    return rows_of(file.batches(group, at_once))


_INTERPRETED = 8
"""Of so many inputs one: it takes as long as all the others. Bounds are checked of each, by the second run."""


@contextmanager
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", _BLOCK_ROWS)
        yield


@contextmanager
def _interpreter() -> Iterator[None]:
    """Have loops decode without machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "FEW_ROWS", 1 << 62)
        patch.setattr(Loop, "is_worth", lambda loop, rows: True)
        yield


def _read(data: bytes) -> Outcome:
    """Fold all row groups; an error where the interpreter, which reads every eighth input as well, has other rows."""
    at_once = _ROWS_AT_ONCE[len(data) % len(_ROWS_AT_ONCE)]
    with _small_blocks():
        found = read_groups(partial(_folded, at_once), data)
    if zlib.crc32(data) % _INTERPRETED:
        return found
    with _interpreter():
        again = read_groups(partial(_interpreted, at_once), data)
    if repr(found) != repr(again):
        raise AssertionError(f"folded: {str(found)[:1000]}\ninterpreted: {str(again)[:1000]}")
    return found


DECODERS = tuple(
    decoder_of("parquet-folded", codec, _read, folded=True)
    for codec in ("none", "snappy")  # pages of another codec are not decompressed in machine code
)
