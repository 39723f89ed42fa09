"""Runs of record batches: what a segment holds, as a few rows for any number of batches.

Batches that are in no transaction become one row as long as their bytes touch. The batches of a producer's transaction
become one row, whoever wrote in between. Bytes that hold no whole batch part the rows on their two sides, so that every
row lies on one side of any damage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.columns import holds, integers, true_rows
from cklog.arrays.types import Ints
from cklog.engine.scan import Reduce
from cklog.inputs.partitions import TransactionFate

COLUMNS = (
    "at",
    "bytes",
    "base",
    "last",
    "records",
    "base_time",
    "max_time",
    "producer",
    "transactional",
    "control",
    "marker",
    "_path",
)
"""Columns of `cklog.inputs.record_batches.BATCHES` that the kernel reads."""

KINDS = ("plain", "transaction", "commit", "abort", "control")
_PLAIN, _TRANSACTION, _COMMIT, _ABORT, _CONTROL = range(len(KINDS))

RUNS = pa.schema(
    [
        pa.field("path", pa.string()),
        *(pa.field(name, pa.int64()) for name in ("kind", "producer", "start", "end")),
        *(pa.field(name, pa.int64()) for name in ("first", "next", "batches", "records", "bytes")),
        *(pa.field(name, pa.int64()) for name in ("first_time", "last_time")),
    ]
)
"""Batches of one `kind` (its place in `KINDS`) in bytes [start, end) of a segment, their offsets in [first, next)."""

REDUCE = Reduce(
    ("path", "kind", "producer"),
    {
        "first": "min",
        "next": "max",
        "batches": "sum",
        "records": "sum",
        "bytes": "sum",
        "first_time": "min",
        "last_time": "max",
    },
    ("start", "end"),
)


class BatchRun(NamedTuple):
    """A row of `RUNS`: batches of one kind in bytes [start, end) of a segment, offsets [first, next); times in ms."""

    path: str
    kind: int
    producer: int
    start: int
    end: int
    first: int
    next: int
    batches: int
    records: int
    bytes: int
    first_time: int | None
    last_time: int | None

    @property
    def is_data(self) -> bool:
        """Whether it is data of a transaction, and no marker."""
        return self.kind == _TRANSACTION

    @property
    def ends(self) -> TransactionFate | None:
        """How it ends its producer's transaction: commit or abort, None if it does not."""
        if self.kind == _COMMIT:
            return "commit"
        return "abort" if self.kind == _ABORT else None

    @property
    def is_control(self) -> bool:
        """Whether no reader of the topic ever gets its records."""
        return self.kind in (_COMMIT, _ABORT, _CONTROL)


def runs_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fold one Arrow batch of headers, in the order of a split, to rows of `RUNS` (a kernel)."""
    if not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=RUNS)
    at, size, base, last = (_integer_column(batch, name) for name in ("at", "bytes", "base", "last"))
    kind, producer = classes(batch)
    # one run per stretch of bytes, kind, producer and, within a producer, transaction; `keys` of shape (n,) each
    keys = (_transaction_numbers(kind, producer), producer, kind, _stretch_numbers(at, size))
    order = np.lexsort(keys)
    starts = group_starts([key[order] for key in keys])
    low, high, total = (_fold_by_group(ufunc, order, starts) for ufunc in (np.minimum, np.maximum, np.add))
    begun, ended = _first_and_last_times(batch)
    columns = [
        kind[order][starts],
        producer[order][starts],
        low(at),
        high(at + size),
        low(base),
        high(last + 1),
        total(np.ones(len(at), np.int64)),
        total(_integer_column(batch, "records")),
        total(size),
    ]
    first_time, last_time = low(begun), high(ended)
    times = [pa.array(first_time, mask=first_time == _NEVER), pa.array(last_time, mask=last_time < 0)]
    path = pa.array([batch.column("_path")[0].as_py()] * len(starts), pa.string())
    return pa.RecordBatch.from_arrays([path, *map(pa.array, columns), *times], schema=RUNS)


def runs_in(table: pa.Table) -> list[BatchRun]:
    """Return the rows of a reduced table, in the order of paths and bytes."""
    columns = [table[name].to_pylist() for name in RUNS.names]
    return sorted(map(BatchRun._make, zip(*columns, strict=True)), key=lambda run: (run.path, run.start, run.kind))


def classes(batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """Return what each batch is (its place in `KINDS`) and whose (-1 where that does not matter), shape (n,) each.

    Needs the columns producer, transactional, control and marker.
    """
    control, transactional = true_rows(batch["control"]), true_rows(batch["transactional"])
    if not (control.any() or transactional.any()):  # as in most logs
        return np.full(len(control), _PLAIN, np.int64), np.full(len(control), -1, np.int64)
    commit, abort = (holds(batch["marker"], word) for word in KINDS[2:4])
    conditions = [control & commit, control & abort, control, transactional]
    kind = np.select(conditions, [_COMMIT, _ABORT, _CONTROL, _TRANSACTION], _PLAIN).astype(np.int64)
    producer = integers(batch["producer"], -1)
    return kind, np.where((kind == _PLAIN) | (kind == _CONTROL), -1, producer)


def _integer_column(batch: pa.RecordBatch, name: str) -> Ints:
    found: Ints = batch[name].to_numpy(zero_copy_only=False)
    return found


def _stretch_numbers(at: Ints, size: Ints) -> Ints:
    """A number per row that grows where bytes are passed over, shape (n,).

    >>> _stretch_numbers(np.array([0, 10, 25]), np.array([10, 10, 5])).tolist()
    [0, 0, 1]
    """
    return np.concatenate([[0], np.cumsum(at[1:] != at[:-1] + size[:-1])])


def _transaction_numbers(kind: Ints, producer: Ints) -> Ints:
    """A number per row that is equal for the batches of a producer between two of its markers, shape (n,).

    It counts the markers up to there, in the order of producers; rows of no transaction have 0.

    >>> _transaction_numbers(np.array([_TRANSACTION, _COMMIT, _TRANSACTION]), np.array([7, 7, 7])).tolist()
    [0, 1, 1]
    """
    number = np.zeros(len(kind), np.int64)
    if not kind.any():
        return number
    order = np.lexsort((producer,))  # stable: in log order within a producer
    number[order] = np.cumsum((kind[order] == _COMMIT) | (kind[order] == _ABORT))
    number[(kind == _PLAIN) | (kind == _CONTROL)] = 0
    return number


def group_starts(keys: list[Ints]) -> Ints:
    """Return the first row of each stretch of rows with equal keys; each key has shape (n,), n > 0.

    >>> group_starts([np.array([1, 1, 1, 2]), np.array([5, 6, 6, 6])]).tolist()
    [0, 1, 3]
    """
    first = np.ones(len(keys[0]), np.bool_)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(first)


def _fold_by_group(ufunc: np.ufunc, order: Ints, starts: Ints) -> Callable[[Ints], Ints]:
    """What folds a column by group; `order` sorts the rows by group, which begin at `starts`."""
    return lambda column: ufunc.reduceat(column[order], starts)


_NEVER = np.int64(2**63 - 1)


def _first_and_last_times(batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """First and last timestamp per batch in ms, shape (n,) each; `_NEVER` and -1 where there is none.

    A batch of a compacted log may hold the time when its tombstones go in place of its first timestamp.
    """
    last, first = integers(batch["max_time"], -1), integers(batch["base_time"], -1)
    first = np.where((first < 0) | (first > last), last, first)
    return np.where(first < 0, _NEVER, first), last
