"""Counts of ranges of offsets: data, control, aborted and open records, exact to the record.

The ends of all ranges of a partition cut its offsets into pieces. A batch inside one piece is counted in the kernel, by
its header. One that lies across the end of a piece comes back as a row of its own: its records are parted by
arithmetic if it has one for each offset, and else (a compacted log) it is decoded.
"""

from __future__ import annotations

import bisect
import functools
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.engine.scan import Kernel, Reduce
from cklog.inputs.partitions import Partition, Range, RangeCount, TransactionFate
from cklog.kafka_logs.batch_runs import classes, group_starts

COLUMNS = ("at", "bytes", "base", "last", "records", "producer", "transactional", "control", "marker", "_path")
"""Columns of `cklog.inputs.record_batches.BATCHES` that the kernel reads."""

CLASSES = ("data", "control", "aborted", "open")
_DATA, _CONTROL, _ABORTED, _OPEN = range(len(CLASSES))

_INNER = -1
_NO_END = np.iinfo(np.int64).max

COUNTED = pa.schema(
    [
        pa.field("path", pa.string()),
        *(pa.field(name, pa.int64()) for name in ("piece", "class", "at", "base", "last", "records", "bytes")),
    ]
)
"""Batches of one `class` inside a `piece` (`at` -1), or one at byte `at` that begins in it and ends in another."""

REDUCE = Reduce(("path", "piece", "class", "at"), {"base": "min", "last": "max", "records": "sum", "bytes": "sum"})

RecordOffsets = Callable[[str, int], "list[int] | None"]
"""(path of a segment, byte of a batch) → the offsets of its records, None if it does not decode."""


class CountPoints(NamedTuple):
    """What the kernel needs to know of one partition: its pieces begin at `points`, ascending, shape (p,).

    A batch of `producer` with `first` <= base < `end` is in a transaction of `fate` (a class), shape (t,) each, by
    producer and first.
    """

    points: Ints
    producer: Ints
    first: Ints
    end: Ints
    fate: Ints


def points_of(partition: Partition, ranges: Iterable[Range]) -> CountPoints:
    """Return the pieces into which a partition's offsets fall by the ends of ranges, and by its own."""
    ends = {point for wanted in ranges for point in (wanted.start, wanted.end) if point is not None}
    points = sorted({-1, *ends, partition.log_start, partition.restart_end})
    aborted = [(t.producer, t.first, t.end or _NO_END, _ABORTED) for t in partition.transactions.aborted]
    running = [(t.producer, t.first, _NO_END, _OPEN) for t in partition.transactions.open]
    producer, first, end, fate = np.array(sorted(aborted + running), np.int64).reshape(-1, 4).T
    return CountPoints(points=np.array(points, np.int64), producer=producer, first=first, end=end, fate=fate)


def counting_kernel(wanted: Mapping[str, CountPoints]) -> Kernel:
    """Return a kernel that counts the batches of partitions as rows of `COUNTED`; `wanted` by path of the folder."""
    return functools.partial(_count_batches, wanted)


def _count_batches(wanted: Mapping[str, CountPoints], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count the batches of one Arrow batch by class and piece; one that ends in another piece is a row of its own.

    E.g. with pieces from 0 and from 10, three batches of data at offsets 0 to 4, 5 to 9 and 8 to 12 make two rows:
    the first two folded into one of 10 records (`at` -1), the third alone with its `at`.
    """
    if not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=COUNTED)
    path = batch["_path"][0].as_py()
    asked = wanted[posixpath.dirname(path)]
    at, size, base, last, records = (
        batch[name].to_numpy(zero_copy_only=False) for name in ("at", "bytes", "base", "last", "records")
    )
    piece = np.searchsorted(asked.points, base, "right") - 1  # where each batch begins, shape (n,)
    across = np.searchsorted(asked.points, last, "right") - 1 != piece  # it ends elsewhere
    keys = [np.where(across, at, _INNER), _classes_of(batch, base, asked), piece]  # the last counts most
    order = np.lexsort(keys)
    keys = [key[order] for key in keys]
    starts = group_starts(keys)
    columns = [key[starts] for key in reversed(keys)]
    folds = ((np.minimum, base), (np.maximum, last), (np.add, records), (np.add, size))
    columns += [fold.reduceat(column[order], starts) for fold, column in folds]
    return pa.RecordBatch.from_arrays([pa.array([path] * len(starts)), *map(pa.array, columns)], schema=COUNTED)


def _classes_of(batch: pa.RecordBatch, base: Ints, asked: CountPoints) -> Ints:
    """The class of each batch (its place in `CLASSES`), shape (n,); `base` are their first offsets."""
    kind, producer = classes(batch)
    found = np.where(kind >= 2, _CONTROL, _DATA)
    rows = np.flatnonzero(kind == 1)
    if not len(rows) or not len(asked.first):
        return found
    spans = len(asked.first)
    # Spans (rows below `spans`) and batches in one order by producer and offset, a span before a batch at its first
    # offset. The running maximum is then, at each batch, the last span before it: spans are sorted themselves.
    order = np.lexsort(
        (
            np.arange(spans + len(rows)),
            np.concatenate([asked.first, base[rows]]),
            np.concatenate([asked.producer, producer[rows]]),
        )
    )
    before = np.empty(len(order), np.int64)
    before[order] = np.maximum.accumulate(np.where(order < spans, order, -1))
    span = before[spans:]  # of each batch in a transaction, -1: none
    inside = (span >= 0) & (asked.producer[span] == producer[rows]) & (base[rows] < asked.end[span])
    found[rows[inside]] = asked.fate[span[inside]]
    return found


def range_count(
    partition: Partition, wanted: Range, rows: Sequence[Mapping[str, Any]], offsets: RecordOffsets
) -> RangeCount:
    """Count one range, from the rows of its partition as the kernel and `REDUCE` made them.

    Parameters
    ----------
    offsets : gives the offsets of a batch's records, where a range ends inside a batch that lacks some
    """
    end = partition.restart_end if wanted.end is None else wanted.end
    first = 0 if wanted.end is None else wanted.start
    low = max(wanted.start, partition.log_start)
    high = max(min(end, partition.restart_end), low)
    held = _RangeHeld(low, high, offsets)
    behind = _RangeHeld(max(low, partition.restart_end), _NO_END if wanted.end is None else end, offsets)
    for row in rows:
        held.add(row)
        behind.add(row)
    return RangeCount(
        topic=wanted.topic,
        partition=wanted.partition,
        start=wanted.start,
        end=end,
        **dict(zip(CLASSES, held.records, strict=True)),
        bytes=sum(held.bytes),
        data_bytes=held.bytes[_DATA],
        exact=held.exact and behind.exact,
        missing=max(min(end, partition.log_start) - wanted.start, 0),
        beyond=max((wanted.start if wanted.end is None else end) - max(partition.restart_end, first), 0),
        unstable=max(high - max(low, partition.last_stable), 0),
        cut=sum(behind.records),
        starts_in=_starts_in(partition, wanted.start),
        unread=partition.unread,
    )


class _RangeHeld:
    """Records of the offsets [low, high), and the bytes of the batches that are touched, by class."""

    def __init__(self, low: int, high: int, offsets: RecordOffsets) -> None:
        self._low, self._high, self._offsets = low, high, offsets
        self.records = [0] * len(CLASSES)
        self.bytes = [0] * len(CLASSES)
        self.exact = True

    def add(self, row: Mapping[str, Any]) -> None:
        """Add what a row has in the range; a row inside a piece is in it as a whole or not at all."""
        if row["last"] < self._low or row["base"] >= self._high:
            return
        records = int(row["records"]) if row["at"] == _INNER else self._records_within(row)
        self.records[row["class"]] += records
        self.bytes[row["class"]] += row["bytes"]

    def _records_within(self, row: Mapping[str, Any]) -> int:
        """The records of one batch that are in the range."""
        base, end, records = int(row["base"]), int(row["last"]) + 1, int(row["records"])
        low, high = max(base, self._low), min(end, self._high)
        if records == end - base:
            return high - low
        if not records or (low == base and high == end):
            return records
        offsets = self._offsets(row["path"], row["at"])
        if offsets is None:
            self.exact = False
            return min(records, high - low)
        return bisect.bisect_left(offsets, high) - bisect.bisect_left(offsets, low)


def _starts_in(partition: Partition, offset: int) -> TransactionFate | None:
    """The fate of the aborted or open transaction that begins before `offset` and ends behind it."""
    found = partition.transactions
    for each in (*found.open, *found.aborted):
        if each.first < offset < (partition.restart_end + 1 if each.end is None else each.end):
            return each.fate
    return None
