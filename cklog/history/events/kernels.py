"""Kernels for raw events: where each subtask took its checkpoints, and what it sent and received in between.

Interval k of a subtask is what it did after k of its checkpoints and before the next one. Three scans, each over
fewer facts than the one before:

    survey_kernel    checkpoint events with their places, and how many events each subtask has in each file
    interval_kernel  per channel, side and interval: the span and the number of sequence numbers
    run_kernel       the same as runs of consecutive numbers, for channels whose spans have holes or overlap

The local order of a subtask is its events' `lsn`, or where they lie: files by rank, then offset (`Places`).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints
from cklog.engine.merge import islands
from cklog.engine.scan import Kernel, Reduce
from cklog.history.events.batch import SCRATCH, SIDES, EventBatch, Owners, Places, encoded
from cklog.model.names import Subtask

SURVEY_COLUMNS = ("event", "operator", "subtask", "lsn", "checkpoint", "time", "_path", "_offset")
_COUNTS = ("events", "numbered", "timely")
SURVEY = pa.schema(
    [
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("path", pa.string()),
        *[pa.field(name, pa.int64()) for name in ("offset", "checkpoint", "lsn", "time", *_COUNTS)],
    ]
)
"""A checkpoint event with its place; or, where `offset` is null, how many events of a kind a subtask has in a file.

Of these `events`, `numbered` have an `lsn`, and `timely` happened by the moment asked for."""

SURVEY_REDUCE = Reduce(tuple(SURVEY.names[: -len(_COUNTS)]), dict.fromkeys(_COUNTS, "sum"))

FOREIGN, INCOMPLETE = "foreign", "incomplete"
"""Instead of a side: an event of a channel that its subtask has no such end of; one without channel or number."""

INTERVALS = pa.schema(
    [
        pa.field("channel", pa.string()),
        pa.field("side", pa.string()),
        pa.field("path", pa.string()),
        *[
            pa.field(name, pa.int64())
            for name in ("interval", "least", "next", "rows", "check", "first", "last", "place_check")
        ],
    ]
)
"""What one side of a channel did in an interval: sequence numbers from `least` to before `next`, in `rows` events.

`check` tells whether they are all numbers of that span, once each (`check_of`); `first`, `last` and `place_check` say
the same of the events' places. Of events that cannot be used: their file, and the `least` offset there."""

INTERVALS_REDUCE = Reduce(
    ("channel", "side", "path", "interval"),
    {
        "least": "min",
        "next": "max",
        "rows": "sum",
        "check": "sum",
        "first": "min",
        "last": "max",
        "place_check": "sum",
    },
)

SEQUENCE_RUNS = pa.schema(
    [
        pa.field("channel", pa.string()),
        pa.field("side", pa.string()),
        *[pa.field(name, pa.int64()) for name in ("interval", "from", "to", "rows")],
    ]
)
"""A run [from, to) of sequence numbers that one side of a channel used in an interval; `rows` counts repeats."""

SEQUENCE_RUNS_REDUCE = Reduce(("channel", "side", "interval"), {"rows": "sum"}, ("from", "to"))

LSNS = pa.schema(
    [
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        *[pa.field(name, pa.int64()) for name in ("from", "to", "rows")],
    ]
)
"""A run [from, to) of the local numbers (`lsn`) that the usable events of a subtask have."""

LSNS_REDUCE = Reduce(("operator", "subtask"), {"rows": "sum"}, ("from", "to"))

_LOW = np.uint64(0xFFFFFFFF)
_THIRD = np.uint64(0xAAAAAAAAAAAAAAAB)
"""Times 3 it is 1, modulo 2⁶⁴: the sum of n * (n + 1) below m is (m³ - m) / 3."""

_LISTED = 1 << 16
"""Codes of which all possible ones are counted; of more, only those that occur."""


def check_of(first: Ints, end: Ints) -> Ints:
    """Return the sum of n * (n + 1) over each span [first, end), 32 bits of it; shapes (k,).

    As many numbers as the span has, with the same sum, are those of the span, once each: one number in place of another
    always changes the sum (while numbers stay below 2³¹), several leave it by chance only once in four billion times.

    >>> check_of(np.array([3]), np.array([6])).tolist(), 3 * 4 + 4 * 5 + 5 * 6
    ([62], 62)
    """
    low, high = first.view(np.uint64), end.view(np.uint64)
    return (((high * high * high - high - low * low * low + low) * _THIRD) & _LOW).view(np.int64)


def _check_sums(numbers: Ints, first: Ints) -> Ints:
    """Return the sums of `check_of` for the numbers from each row in `first` up to the next one.

    E.g. numbers 3, 4, 5, 9 and first [0, 3] give 62 (as in `check_of`) and 90.
    """
    n = numbers.view(np.uint64)
    each = np.add(n, np.uint64(1), out=SCRATCH.array("each", len(n), np.uint64))
    each *= n
    found: Ints = (np.add.reduceat(each, first) & _LOW).view(np.int64)
    return found


def survey_kernel(as_of: int | None) -> Kernel:
    """Return the kernel that makes rows of `SURVEY`; `as_of` (ms) is the moment asked for."""
    return functools.partial(_survey_rows, as_of)


def _survey_rows(as_of: int | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count the events of each subtask and kind, and list the checkpoint events."""
    owners = Owners.of(batch)
    kinds, kind = encoded(batch["event"])
    path = batch["_path"][0].as_py() if batch.num_rows else None
    code = np.multiply(owners.code, len(kinds), out=SCRATCH.array("which", len(kind)))
    code += kind  # subtask and kind of each row as one number
    code, there = _short_codes(code, owners.size * len(kinds))
    events = np.bincount(code, minlength=len(there))
    numbered = _count_where(batch["lsn"].is_valid(), code, len(there))
    timely = events if as_of is None else _count_where(pc.less_equal(batch["time"], as_of), code, len(there))
    counts = (events, numbered, timely)  # in the order of `_COUNTS`, shape (codes,) each
    used = np.flatnonzero(counts[0])
    totals = pa.table(
        {
            **owners.names(there[used] // len(kinds)),
            "event": kinds.take(pa.array(there[used] % len(kinds))),
            "path": pa.array([path] * len(used), pa.string()),
            **{name: pa.nulls(len(used), pa.int64()) for name in ("offset", "checkpoint", "lsn", "time")},
            **{name: pa.array(count[used]) for name, count in zip(_COUNTS, counts, strict=True)},
        }
    ).cast(SURVEY)
    is_checkpoint = np.append(np.array(kinds.to_pylist()) == "checkpoint", False)
    taken = np.flatnonzero(is_checkpoint[kind])
    rows = batch.take(pa.array(taken))
    single = pa.table(
        {
            **owners.names(owners.code[taken]),
            "event": rows["event"].cast(pa.string()),
            "path": pa.array([path] * len(taken), pa.string()),
            "offset": rows["_offset"],
            **{name: rows[name] for name in ("checkpoint", "lsn", "time")},
            **{name: pa.array(np.zeros(len(taken), np.int64)) for name in _COUNTS},
        }
    ).cast(SURVEY)
    return _one_batch(pa.concat_tables([totals, single]))


def _short_codes(code: Ints, size: int) -> tuple[Ints, Ints]:
    """Return codes (all below `size`) as indices into a list of codes that is not long, and that list."""
    if size <= _LISTED:
        return code, np.arange(size)
    listed, code = np.unique(code, return_inverse=True)
    return code, listed


def _count_where(known: pa.Array, code: Ints, size: int) -> Ints:
    """Count the rows of each code for which `known` is true; shape (size,)."""
    if known.null_count:
        known = pc.fill_null(known, False)
    if pc.all(known).as_py():
        return np.bincount(code, minlength=size)
    return np.bincount(code[known.to_numpy(zero_copy_only=False)], minlength=size)


def interval_kernel(places: Places) -> Kernel:
    """Return the kernel that makes rows of `INTERVALS`."""
    return functools.partial(_interval_rows, places)


def _interval_rows(places: Places, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fold the sends and receives of each channel and interval to one row."""
    events = EventBatch.of(places, batch)
    count = np.bincount(events.key, minlength=events.passed)[: events.passed]
    used = int(count.sum())
    if not used:
        return _unusable_rows(events, batch)
    order = np.argsort(events.key, kind="stable")[:used]  # what is passed over sorts behind all channels
    seq = events.seq.take(order, out=SCRATCH.array("seq", used), mode="clip")
    position = events.position.take(order, out=SCRATCH.array("position", used), mode="clip")
    key = np.flatnonzero(count)
    begin = np.cumsum(count[key]) - count[key]  # the first row of each key
    first, interval = _cut_into_intervals(events, key, begin, seq, position)
    key = np.repeat(key, np.diff(np.searchsorted(first, np.append(begin, used))))  # of each interval
    found = {
        "interval": interval,
        "least": np.minimum.reduceat(seq, first),
        "next": np.maximum.reduceat(seq, first) + 1,
        "rows": np.diff(first, append=used),
        "check": _check_sums(seq, first),
        "first": np.minimum.reduceat(position, first),
        "last": np.maximum.reduceat(position, first),
        "place_check": _check_sums(position, first),
    }
    return _with_unusable(events, batch, _rows_of_keys(events, key, found, INTERVALS))


def _cut_into_intervals(events: EventBatch, key: Ints, first: Ints, seq: Ints, position: Ints) -> tuple[Ints, Ints]:
    """Cut the rows of each key into intervals; rows that are out of order are put in order, in place.

    E.g. of one receiver with checkpoints at 2 and 5, rows at positions 1, 3, 4, 7 are cut into intervals 0, 1 and 2,
    which begin at rows 0, 1 and 3.

    Parameters
    ----------
    key, first : keys in order, and the first row of each, shape (keys,)
    seq, position : of rows in order of their keys, shape (rows,)

    Returns
    -------
    first, interval : the first row of each interval of each key, and the interval, shape (parts,)
    """
    end = np.append(first[1:], len(seq))
    low = events.interval(key, np.minimum.reduceat(position, first))
    cuts = events.interval(key, np.maximum.reduceat(position, first)) - low  # checkpoints inside each key's rows
    if not cuts.any():
        return first, low
    mixed = np.flatnonzero(cuts)
    for a, b in zip(first[mixed].tolist(), end[mixed].tolist(), strict=True):
        if (position[a + 1 : b] < position[a : b - 1]).any():
            order = a + np.argsort(position[a:b], kind="stable")
            seq[a:b], position[a:b] = seq[order], position[order]
    which = np.repeat(np.arange(len(key)), cuts)  # a row here for each checkpoint between the events of a key
    nth = np.arange(len(which)) - np.repeat(np.cumsum(cuts) - cuts, cuts) + low[which]  # that checkpoint's index
    checkpoint = events.places.position[events.places.start[events.owner[key[which]]] + nth]
    # the first row behind each checkpoint; a receive at its very place lies before it
    behind = first_at_least(position, first[which], end[which], checkpoint + (key[which] & 1))
    starts, interval = np.concatenate([first, behind]), np.concatenate([low, nth + 1])
    order = np.lexsort((interval, starts))
    starts, interval = starts[order], interval[order]
    kept = np.append(starts[1:] != starts[:-1], True)  # of checkpoints with nothing in between, the last
    return starts[kept], interval[kept]


def run_kernel(places: Places, channels: frozenset[str]) -> Kernel:
    """Return the kernel that makes rows of `SEQUENCE_RUNS` of some channels."""
    return functools.partial(_run_rows, places, channels)


def _run_rows(places: Places, channels: frozenset[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fold the sequence numbers of each channel and interval to runs."""
    events = EventBatch.of(places, batch, channels)
    rows = np.flatnonzero(events.key < events.passed)
    key, seq = events.key[rows], events.seq[rows]
    interval = events.interval(key, events.position[rows])
    group = key.astype(np.int64) * (interval.max(initial=0) + 1) + interval
    row, end, count = _runs_of_numbers(group, seq)
    found = {"interval": interval[row], "from": seq[row], "to": end, "rows": count}
    return _rows_of_keys(events, key[row], found, SEQUENCE_RUNS)


def lsn_kernel(places: Places, subtasks: frozenset[Subtask]) -> Kernel:
    """Return the kernel that makes rows of `LSNS` of some subtasks; checkpoint events are not counted."""
    return functools.partial(_lsn_rows, places, subtasks)


def _lsn_rows(places: Places, subtasks: frozenset[Subtask], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fold the local numbers of each subtask's sends and receives to runs."""
    events = EventBatch.of(places, batch)
    wanted = np.array([s in subtasks for s in places.subtasks] + [False])
    owner = events.owner[events.key]
    rows = np.flatnonzero(wanted[owner] & (events.key < events.passed))
    row, end, count = _runs_of_numbers(owner[rows], events.position[rows])
    who = [places.subtasks[i] for i in owner[rows][row].tolist()]
    columns: list[Any] = [[s.operator for s in who], [s.subtask for s in who]]
    columns += [events.position[rows][row], end, count]
    return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, LSNS, strict=True)], schema=LSNS)


def _runs_of_numbers(group: Ints, number: Ints) -> tuple[Ints, Ints, Ints]:
    """Find the runs of consecutive numbers within each group, repeats included.

    Returns
    -------
    row : the row that each run begins with, shape (runs,)
    end : the number behind its last one, shape (runs,)
    count : how many rows it has, shape (runs,)

    Examples
    --------
    >>> found = _runs_of_numbers(np.array([0, 0, 0, 0, 1]), np.array([4, 3, 3, 9, 5]))
    >>> [column.tolist() for column in found]
    [[1, 3, 4], [5, 10, 6], [3, 1, 1]]
    """
    order, new = islands(group, number, number + 1)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(order))[: len(first)] - 1
    return order[first], number[order[last]] + 1, last - first + 1


def _rows_of_keys(events: EventBatch, key: Ints, found: dict[str, Ints], schema: pa.Schema) -> pa.RecordBatch:
    """Make rows of a schema: the channels and sides of keys, and columns of numbers."""
    columns = {
        "channel": events.names.take(pa.array(key >> 1)),
        "side": _SIDES.take(pa.array(key & 1)),
        "path": pa.nulls(len(key), pa.string()),
        **{name: pa.array(values) for name, values in found.items()},
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


_SIDES = pa.array(SIDES)


def _unusable_rows(events: EventBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make a row of `INTERVALS` for each channel with events that cannot be used."""
    rows = batch.take(pa.array(np.flatnonzero(events.key == events.passed + 1)))
    whole = pc.and_(rows["channel"].is_valid(), rows["seq"].is_valid())
    table = pa.table(
        {
            "channel": rows["channel"].cast(pa.string()),
            "side": pc.if_else(whole, FOREIGN, INCOMPLETE),
            "path": rows["_path"].cast(pa.string()),
            "least": rows["_offset"],
        }
    )
    grouped = table.group_by(["channel", "side", "path"], use_threads=False)
    grouped = grouped.aggregate([("least", "min"), ("least", "count")])
    columns = {name: grouped[name] for name in ("channel", "side", "path")}
    columns |= {"least": grouped["least_min"], "rows": grouped["least_count"]}
    none = pa.nulls(len(grouped), pa.int64())
    return _one_batch(pa.table([columns.get(name, none) for name in INTERVALS.names], INTERVALS.names).cast(INTERVALS))


def _with_unusable(events: EventBatch, batch: pa.RecordBatch, found: pa.RecordBatch) -> pa.RecordBatch:
    """Add rows for the events of the batch that cannot be used, if there are any."""
    if not (events.key > events.passed).any():
        return found
    return _one_batch(pa.Table.from_batches([found, _unusable_rows(events, batch)]))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table in one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
