"""Kernels for channel logs: what they hold of each channel, as runs of consecutive sequence numbers.

A log of any length becomes a few rows per channel: its islands, half-open ranges of numbers without a hole.
Records are mostly written in the order of their numbers, channels interleaved, so that sorting a batch by
channel alone makes runs; whatever the order, islands come out.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints
from cklog.engine.merge import islands
from cklog.engine.scan import Kernel, Reduce

_SPANS = [pa.field(name, pa.int64()) for name in ("from", "to", "rows", "bytes")]

RUNS = pa.schema([pa.field("channel", pa.string()), *_SPANS])
"""An island [from, to) of a channel; `rows` counts copies of a number, `bytes` sums over the copies."""

RUNS_REDUCE = Reduce(("channel",), {"rows": "sum", "bytes": "sum"}, ("from", "to"))

RANGED = pa.schema([pa.field("channel", pa.string()), pa.field("zone", pa.string()), *_SPANS])
"""The same within a wanted range (zone `range`), and how far the log goes behind it (zone `after`)."""

RANGED_REDUCE = Reduce(("channel", "zone"), {"rows": "sum", "bytes": "sum"}, ("from", "to"))

NAMED = pa.schema([pa.field("channel", pa.string()), pa.field("rows", pa.int64())])
"""A channel of which the log holds anything, and how many records."""

NAMED_REDUCE = Reduce(("channel",), {"rows": "sum"})

_NONE = np.int64(2**63 - 1)
"""No sequence number: greater than all of them."""

_ZONES = pa.array(["range", "after"])
_FEW = 1 / 8
"""A batch whose channel changes at fewer of its rows than this is not sorted: it consists of runs already."""


@dataclass(frozen=True)
class Wanted:
    """Ranges [start, end) by channel, and the time after which a record is ignored; one without time is not.

    Of a channel with `parts`, by index, only these spans of its range are wanted.
    """

    channels: tuple[str, ...]
    start: Ints
    end: Ints
    as_of: int | None
    parts: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Where each channel's range is."""
        return {name: k for k, name in enumerate(self.channels)}

    @functools.cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """First numbers and ends of all parts in turn, and where those of each channel begin, shape (c + 1,)."""
        flat = [[number for span in self.parts.get(k, ()) for number in span] for k in range(len(self.channels))]
        at = np.cumsum([0, *map(len, flat)])
        return np.array([number for numbers in flat for number in numbers], np.int64), at

    def row_group(self, statistics: dict[str, tuple[Any, Any]]) -> bool:
        """Return whether a row group of these (least, greatest) values by column may hold a wanted record."""
        greatest = statistics.get("seq", (None, None))[1]
        return not isinstance(greatest, int) or not len(self.start) or bool(greatest >= self.start.min())


def columns(as_of: int | None) -> tuple[str, ...]:
    """Return the columns of `cklog.model.schemas.MESSAGES` that the kernels read."""
    return ("channel", "seq", "bytes") if as_of is None else ("channel", "seq", "bytes", "time")


def runs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return every island of the batch, as `RUNS`, by channel and `from`."""
    names, code = _channels(batch)
    found = _Runs.of(code, _integers(batch, "seq"), _integers(batch, "bytes")).by(_rank(names))
    channel = names.take(pa.array(found.key))
    return pa.RecordBatch.from_arrays([channel, *found.columns()], schema=RUNS)


def named(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the channels of the batch, as `NAMED`."""
    names, code = _channels(batch)
    found, rows = np.unique(code, return_counts=True)
    return pa.RecordBatch.from_arrays([names.take(pa.array(found)), pa.array(rows, pa.int64())], schema=NAMED)


def in_ranges(wanted: Wanted) -> Kernel:
    """Return the kernel for the records of wanted channels from `start` on, as `RANGED`."""
    return functools.partial(_in_ranges, wanted)


def _in_ranges(wanted: Wanted, batch: pa.RecordBatch) -> pa.RecordBatch:
    names, code = _channels(batch)
    place = np.array([wanted.index.get(name, -1) for name in names.to_pylist()] or [-1], np.int64)
    starts, ends = np.append(wanted.start, _NONE)[place], np.append(wanted.end, _NONE)[place]  # by code
    seq, size = _integers(batch, "seq"), _integers(batch, "bytes")
    _, start, kept = _SCRATCH.rows(len(code))
    np.greater_equal(seq, starts.take(code, out=start, mode="clip"), out=kept)
    if wanted.as_of is not None:
        kept &= pc.fill_null(pc.less_equal(batch["time"], wanted.as_of), True).to_numpy(zero_copy_only=False)
    if wanted.parts:
        kept &= _in_parts(wanted, place[code], seq)
    if not kept.all():
        code, seq, size = code[kept], seq[kept], size[kept]
    after = seq >= ends[code]
    found = _Runs.of(2 * code + after, seq, size)
    found.start = np.where(found.key & 1, ends[found.key >> 1], found.start)
    found = found.by((2 * _rank(names)[:, None] + np.arange(2)).ravel())
    channel, zone = names.take(pa.array(found.key >> 1)), _ZONES.take(pa.array(found.key & 1))
    return pa.RecordBatch.from_arrays([channel, zone, *found.columns()], schema=RANGED)


def _in_parts(wanted: Wanted, channel: Ints, seq: Ints) -> NDArray[np.bool_]:
    """Say whether each number is in a part of its channel's range, or behind it; True for channels without."""
    bounds, at = wanted.bounds
    channel = np.where(np.isin(channel, list(wanted.parts)), channel, -1)
    low, high = np.append(at, at[-1])[channel], np.append(at[1:], at[-1])[channel]
    inside = (first_at_least(bounds, low, high, seq + 1) - low) & 1
    found: NDArray[np.bool_] = (channel < 0) | (inside == 1) | (seq >= np.append(wanted.end, 0)[channel])
    return found


class _LogScratch(threading.local):
    """Arrays kept from batch to batch of a thread: fresh pages cost more than the work on them."""

    def __init__(self) -> None:
        self._code, self._spare = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._flags = np.zeros(0, np.bool_)

    def rows(self, count: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return channel codes (filled by `_channels`), and two arrays that are free between calls of this module."""
        if count > len(self._code):
            self._code, self._spare = np.zeros(count, np.int64), np.zeros(count, np.int64)
            self._flags = np.zeros(count, np.bool_)
        return self._code[:count], self._spare[:count], self._flags[:count]


_SCRATCH = _LogScratch()


@dataclass(slots=True)
class _Runs:
    """Spans [start, end) of a key, with the number of records and the sum of their bytes; shape (runs,)."""

    key: Ints
    start: Ints
    end: Ints
    rows: Ints
    bytes: Ints

    @classmethod
    def of(cls, key: Ints, seq: Ints, size: Ints) -> _Runs:
        """Return runs of rows with one key, each number equal to the one before it or one more."""
        if np.count_nonzero(key[1:] != key[:-1]) > len(key) * _FEW:
            whole = cls._one_run_each(key, seq, size)
            if whole is not None:
                return whole
            narrow = key.astype(np.uint16) if key.max() < 1 << 16 else key  # radix sort, a third of the time
            order = np.argsort(narrow, kind="stable")
            key, seq, size = key[order], seq[order], size[order]
        return cls._stretches(key, seq, size)

    @classmethod
    def _stretches(cls, key: Ints, seq: Ints, size: Ints) -> _Runs:
        """Runs of neighbouring rows."""
        if not len(key):
            return cls(*[np.zeros(0, np.int64)] * 5)
        new = (seq[1:] - seq[:-1]).view(np.uint64) > 1
        new |= key[1:] != key[:-1]
        first = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(new) + 1])
        last = np.append(first[1:], len(key)) - 1
        return cls(key[first], seq[first], seq[last] + 1, last - first + 1, np.add.reduceat(size, first))

    @classmethod
    def _one_run_each(cls, key: Ints, seq: Ints, size: Ints) -> _Runs | None:
        """The runs if every key has one, without a repeated number: no sort is needed to see that. Else None.

        Give each key as many seats as it has rows, key after key, and each row the seat of its number, counted
        from the key's least. If all seats are taken, then those of the first key by its own rows, as others sit
        further up; then by the same reason those of the second key; and so on.
        """
        rows = np.bincount(key)
        least = np.full(len(rows), _NONE)
        np.minimum.at(least, key, seq)
        _, seat, taken = _SCRATCH.rows(len(key))
        (np.cumsum(rows) - rows - least).take(key, out=seat, mode="clip")
        seat += seq
        if seat.view(np.uint64).max() >= len(key):
            return None
        taken[:] = False
        taken[seat] = True
        if not taken.all():
            return None
        total = np.zeros(len(rows), np.int64)
        np.add.at(total, key, size)
        there = np.flatnonzero(rows)
        return cls(there, least[there], (least + rows)[there], rows[there], total[there])

    def by(self, rank: Ints) -> _Runs:
        """Return the islands that the runs make up, in the order of `rank[key]`, then `start`."""
        if not len(self.key):
            return self
        order, new = islands(rank[self.key], self.start, self.end)
        first = np.flatnonzero(new)
        return _Runs(
            key=self.key[order[first]],
            start=self.start[order[first]],
            end=np.maximum.reduceat(self.end[order], first),
            rows=np.add.reduceat(self.rows[order], first),
            bytes=np.add.reduceat(self.bytes[order], first),
        )

    def columns(self) -> list[pa.Array]:
        return [pa.array(values) for values in (self.start, self.end, self.rows, self.bytes)]


def _channels(batch: pa.RecordBatch) -> tuple[pa.Array, Ints]:
    """Names, and each row's name as an index."""
    column = batch["channel"]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    code, _, _ = _SCRATCH.rows(len(column))
    np.copyto(code, column.indices.to_numpy())
    return column.dictionary.cast(pa.string()), code


def _rank(names: pa.Array) -> Ints:
    """Place of each name in their order; the same for equal names."""
    rank: Ints = pc.rank(names, tiebreaker="dense").to_numpy().astype(np.int64)
    return rank


def _integers(batch: pa.RecordBatch, name: str) -> Ints:
    """A column as int64, 0 for null."""
    column = batch[name]
    found: Ints = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return found
