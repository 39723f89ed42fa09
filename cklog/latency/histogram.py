"""Latencies counted by step and by whole milliseconds: exact percentiles, and no row per record.

A percentile is that of the nearest rank: the p-th of n latencies is the ⌈p·n/100⌉-th smallest, so it is always one
that some record had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints, Mask
from cklog.engine.merge import merge
from cklog.engine.scan import Reduce

COUNTS = pa.schema([pa.field(name, pa.int64()) for name in ("step", "latency", "records", "first", "last")])
"""Records of one latency (ms) that reached the sink in the step that begins at `step` (ms): how many, and when the
first and the last did. Both keys are null for records of which one of the times is not known."""

COUNTS_REDUCE = Reduce(("step", "latency"), {"records": "sum", "first": "min", "last": "max"})

FURTHEST = 1 << 61
"""A time beyond that is none: what damage makes of numbers must not overflow when one is taken from another."""


def count_latencies(step_ms: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count a batch of records, whose columns are the times of their beginning and at the sink: the kernel.

    >>> batch = pa.RecordBatch.from_pydict({"made": [0, 5, None], "time": [40, 45, 50]})
    >>> count_latencies(1000, batch).to_pylist()[0]
    {'step': 0, 'latency': 40, 'records': 2, 'first': 40, 'last': 45}
    """
    made, time = (_known_times(column) for column in batch.columns)
    known = pc.and_(pc.is_valid(made), pc.is_valid(time))
    made, time = made.filter(known).to_numpy(), time.filter(known).to_numpy()
    return counts_of(made, time, step_ms, batch.num_rows - len(made))


def counts_of(made: Ints, time: Ints, step_ms: int, untimed: int = 0) -> pa.RecordBatch:
    """Count records by step and latency; of `untimed` more one of the times is not known. Both shapes (n,)."""
    step = np.floor_divide(time, step_ms) * step_ms
    ones = np.ones(len(time), np.int64)
    rows = pa.table([step, time - made, ones, time, time], schema=COUNTS)
    if untimed:
        none = {name: [None] for name in COUNTS.names} | {"records": [untimed]}
        rows = pa.concat_tables([rows, pa.table(none, schema=COUNTS)])
    batches = merge([rows], COUNTS_REDUCE).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=COUNTS)


def _known_times(column: pa.Array) -> pa.Array:
    """Return times with null for those that are none."""
    column = column.cast(pa.int64())
    far = pc.or_(pc.greater(column, FURTHEST), pc.less(column, -FURTHEST))
    return pc.if_else(far, pa.scalar(None, pa.int64()), column)


@dataclass(frozen=True, slots=True, eq=False)
class Latencies:
    """Counted latencies, in order of steps, then of latencies.

    `step_of`, `latency`, `records` : shape (n,), a row each; `step_of` is an index into the steps
    `start`, `first`, `last` : shape (s,), of each step with records: its beginning, its first and its last record (ms)
    """

    step_of: Ints
    latency: Ints
    records: Ints
    start: Ints
    first: Ints
    last: Ints

    def per_step(self) -> Ints:
        """Return the number of records of each step, shape (s,)."""
        return np.bincount(self.step_of, self.records, len(self.start)).astype(np.int64)

    def percentiles(self, percent: int) -> Ints:
        """Return a percentile of each step, shape (s,)."""
        below = np.cumsum(self.records)
        count = np.add.reduceat(self.records, self._first_rows())
        rank = (below[self._first_rows()] - self.records[self._first_rows()]) + _rank(count, percent)
        found: Ints = self.latency[np.searchsorted(below, rank)]
        return found

    def highest(self) -> Ints:
        """Return the highest latency of each step, shape (s,)."""
        found: Ints = self.latency[np.append(self._first_rows()[1:], len(self.latency)) - 1]
        return found

    def _first_rows(self) -> Ints:
        return np.searchsorted(self.step_of, np.arange(len(self.start)))

    def pooled(self, steps: Mask, percent: int) -> int:
        """Return a percentile of all records in some steps, shape (s,), of which there is one at least."""
        rows = steps[self.step_of]
        order = np.argsort(self.latency[rows], kind="stable")
        latency, below = self.latency[rows][order], np.cumsum(self.records[rows][order])
        return int(latency[np.searchsorted(below, _rank(below[-1:], percent))][0])


def _rank(count: Ints, percent: int) -> Ints:
    """Return the nearest ranks of so many records, from 1: of 200 the 99th percentile is the 198th."""
    return (count * percent + 99) // 100


def latencies_of(counts: pa.Table) -> Latencies:
    """Put rows of `COUNTS`, reduced, in order."""
    known = counts.filter(pc.is_valid(counts["step"])).sort_by([("step", "ascending"), ("latency", "ascending")])
    step, latency, records, first, last = (known[name].to_numpy() for name in COUNTS.names)
    start, rows = np.unique(step, return_index=True)
    return Latencies(
        step_of=np.repeat(np.arange(len(start)), np.diff(np.append(rows, len(step)))),
        latency=latency,
        records=records,
        start=start,
        first=np.minimum.reduceat(first, rows) if len(rows) else first,
        last=np.maximum.reduceat(last, rows) if len(rows) else last,
    )


def untimed_in(counts: pa.Table) -> int:
    """Return how many records of rows of `COUNTS` lack one of their times."""
    return int(pc.sum(counts.filter(pc.is_null(counts["step"]))["records"]).as_py() or 0)


def median(values: Ints) -> int:
    """Return the median by nearest rank, the lower one of two: a value that there is.

    >>> median(np.array([7, 1, 9, 3]))
    3
    """
    return int(np.sort(values)[(len(values) - 1) // 2])
