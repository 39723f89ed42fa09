"""Kernels for channel logs: what they hold of each channel, as runs of consecutive sequence numbers.

A log of any length becomes a few rows per channel: its islands, half-open ranges of numbers without a hole.
Records are mostly written in the order of their numbers, channels interleaved, so that one loop over the rows makes
runs, of which few have to be joined; whatever the order, islands come out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.blocks import Blocks
from cklog.arrays.columns import arrow_integers, shared_integers
from cklog.arrays.loops import Loop, only_read
from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints, Small
from cklog.engine.merge import islands
from cklog.engine.scan import BlockKernel, Kernel, Reduce

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

_COLUMNS = ("channel", "seq", "bytes")

_ZONES = pa.array(["range", "after"])


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
    return _COLUMNS if as_of is None else (*_COLUMNS, "time")


def _runs_of_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return what a batch holds, as `RUNS`, in no order: where numbers rise, islands."""
    names, code = _channels(batch)
    return _runs_table(names, _Runs.of(code, _integers(batch, "seq"), _integers(batch, "bytes"), len(names)))


def _runs_of_blocks(blocks: Blocks) -> pa.RecordBatch | None:
    """Return the same of rows that are not decoded yet; None where they cannot be so."""
    names = blocks.texts("channel")
    found = _Runs.of_blocks(blocks, len(names))
    return None if found is None else _runs_table(names, found)


runs = BlockKernel(_runs_of_batch, _runs_of_blocks)
"""What rows hold of each channel, as `RUNS`."""


def _runs_table(names: pa.Array, found: _Runs) -> pa.RecordBatch:
    if len(found.key) > len(names):  # numbers out of order, or holes
        found = found.joined()
    channel = names.take(arrow_integers(found.key))
    return pa.RecordBatch.from_arrays([channel, *found.columns()], schema=RUNS)


def named(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the channels of the batch, as `NAMED`."""
    names, code = _channels(batch)
    found, rows = np.unique(code, return_counts=True)
    return pa.RecordBatch.from_arrays([names.take(pa.array(found)), pa.array(rows, pa.int64())], schema=NAMED)


def in_ranges(wanted: Wanted) -> Kernel:
    """Return the kernel for the records of wanted channels from `start` on, as `RANGED`."""
    by_batch = functools.partial(_ranges_of_batch, wanted)
    if wanted.as_of is not None or wanted.parts:
        return by_batch
    return BlockKernel(by_batch, functools.partial(_ranges_of_blocks, wanted))


def _ranges_of_batch(wanted: Wanted, batch: pa.RecordBatch) -> pa.RecordBatch:
    names, code = _channels(batch)
    seq, size = _integers(batch, "seq"), _integers(batch, "bytes")
    place, starts, ends = _bounds_by_code(wanted, names)
    if (kept := _kept(wanted, batch, place, code, seq)) is not None:
        code, seq, size = code[kept], seq[kept], size[kept]
    state = _no_runs(len(code), 2 * len(names))
    _RUNS_IN_RANGES(len(code), len(code), only_read(code), only_read(seq), only_read(size), starts, ends, *state)
    return _ranged_table(names, ends, _Runs.of_state(*state))


def _ranges_of_blocks(wanted: Wanted, blocks: Blocks) -> pa.RecordBatch | None:
    """Return the same of rows that are not decoded yet; None where they cannot be so."""
    names = blocks.texts("channel")
    _, starts, ends = _bounds_by_code(wanted, names)
    state = _no_runs(blocks.rows, 2 * len(names))
    if not blocks.fold(_RUNS_IN_RANGES, _COLUMNS, (starts, ends, *state)):
        return None
    return _ranged_table(names, ends, _Runs.of_state(*state))


def _bounds_by_code(wanted: Wanted, names: pa.Array) -> tuple[Ints, Ints, Ints]:
    """Return which wanted channel each name is, or -1, and where its range begins and ends."""
    place = np.array([wanted.index.get(name, -1) for name in names.to_pylist()] or [-1], np.int64)
    return place, only_read(np.append(wanted.start, _NONE)[place]), only_read(np.append(wanted.end, _NONE)[place])


def _kept(wanted: Wanted, batch: pa.RecordBatch, place: Ints, code: Small, seq: Ints) -> NDArray[np.bool_] | None:
    """Say which rows are early enough, and in parts of a range where only these are wanted; None: all of them."""
    kept: NDArray[np.bool_] | None = None
    if wanted.as_of is not None:
        kept = pc.fill_null(pc.less_equal(batch["time"], wanted.as_of), True).to_numpy(zero_copy_only=False)
    if wanted.parts:
        inside = _in_parts(wanted, place[code], seq)
        kept = inside if kept is None else kept & inside
    return kept


def _ranged_table(names: pa.Array, ends: Ints, found: _Runs) -> pa.RecordBatch:
    """Return runs by twice the number of a name, and one more behind its range, as `RANGED`."""
    found.start = np.where(found.key & 1, ends[found.key >> 1], found.start)
    if len(found.key):
        found = found.joined()
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


def add_row(
    key: int,
    number: int,
    size: int,
    made: Ints,
    open_run: Ints,
    run_key: Ints,
    start: Ints,
    end: Ints,
    again: Ints,
    total: Ints,
) -> int:
    """Add a row to the open run of its key, or open another one behind the `made[0]` that there are; return its place.

    `open_run` holds the place of each key's open run among the runs, -1 before its first row; `again` counts the rows
    whose number the row before had.
    """
    run: int = open_run[key]
    if run >= 0 and number == end[run]:
        end[run] = number + 1
    elif run >= 0 and number == end[run] - 1:  # the last one again
        again[run] += 1
    else:
        run = made[0]
        open_run[key] = run
        made[0] += 1
        run_key[run] = key
        start[run] = number
        end[run] = number + 1
        again[run] = 0
        total[run] = 0
    total[run] += size
    return run


def _fold_rows(
    count: int,
    key: Ints | Small,
    seq: Ints,
    size: Ints,
    made: Ints,
    open_run: Ints,
    run_key: Ints,
    start: Ints,
    end: Ints,
    again: Ints,
    total: Ints,
) -> int:
    """Fold so many rows into runs, of which a key has one open at a time, as `add_row` keeps them."""
    for i in range(count):
        add_row(key[i], seq[i], size[i], made, open_run, run_key, start, end, again, total)
    return count


def _fold_wanted(
    count: int,
    name: Ints | Small,
    seq: Ints,
    size: Ints,
    starts: Ints,
    ends: Ints,
    made: Ints,
    open_run: Ints,
    run_key: Ints,
    start: Ints,
    end: Ints,
    again: Ints,
    total: Ints,
) -> int:
    """Fold the rows whose number is in the range of their name, under twice the name, or behind it, under one more."""
    for i in range(count):
        number = seq[i]
        if number >= starts[name[i]]:
            key = 2 * name[i] + (1 if number >= ends[name[i]] else 0)
            add_row(key, number, size[i], made, open_run, run_key, start, end, again, total)
    return count


_RUNS_OF_ROWS = Loop(_fold_rows, (add_row,))
_RUNS_IN_RANGES = Loop(_fold_wanted, (add_row,))


def _no_runs(rows: int, keys: int) -> tuple[Ints, ...]:
    """Return what `_fold_rows` fills, with room for a run of each row."""
    return np.zeros(1, np.int64), np.full(keys, -1), *(np.empty(rows, np.int64) for _ in range(5))


@dataclass(slots=True)
class _Runs:
    """Spans [start, end) of a key, with the number of records and the sum of their bytes; shape (runs,)."""

    key: Ints
    start: Ints
    end: Ints
    rows: Ints
    bytes: Ints

    @classmethod
    def of(cls, key: Small, seq: Ints, size: Ints, keys: int) -> _Runs:
        """Return the runs of each of `keys` keys: rows of it in their order, each number as before or one more."""
        count, state = len(key), _no_runs(len(key), keys)
        _RUNS_OF_ROWS(count, count, only_read(key), only_read(seq), only_read(size), *state)
        return cls.of_state(*state)

    @classmethod
    def of_blocks(cls, blocks: Blocks, keys: int) -> _Runs | None:
        """Return the same of rows that are not decoded yet; None where they cannot be so."""
        state = _no_runs(blocks.rows, keys)
        return cls.of_state(*state) if blocks.fold(_RUNS_OF_ROWS, _COLUMNS, state) else None

    @classmethod
    def of_state(cls, made: Ints, _: Ints, *found: Ints) -> _Runs:
        key, start, end, again, total = (values[: made[0]] for values in found)
        return cls(key, start, end, again + (end - start), total)

    def joined(self) -> _Runs:
        """Return the islands that the runs make up, in the order of `key`, then `start`."""
        order, new = islands(self.key, self.start, self.end)
        first = np.flatnonzero(new)
        return _Runs(
            key=self.key[order[first]],
            start=self.start[order[first]],
            end=np.maximum.reduceat(self.end[order], first),
            rows=np.add.reduceat(self.rows[order], first),
            bytes=np.add.reduceat(self.bytes[order], first),
        )

    def columns(self) -> list[pa.Array]:
        return [arrow_integers(values) for values in (self.start, self.end, self.rows, self.bytes)]


def _channels(batch: pa.RecordBatch) -> tuple[pa.Array, Small]:
    """Names, and each row's name as an index."""
    column = batch["channel"]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names, code = column.dictionary, shared_integers(column.indices)
    return names if pa.types.is_string(names.type) else names.cast(pa.string()), code.astype(np.int32, copy=False)


def _integers(batch: pa.RecordBatch, name: str) -> Ints:
    """A column as int64, 0 for null."""
    column = batch[name]
    return shared_integers(pc.fill_null(column, 0) if column.null_count else column).astype(np.int64, copy=False)
