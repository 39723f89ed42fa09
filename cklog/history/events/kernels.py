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
from cklog.engine import Kernel, Reduce
from cklog.engine.merge import islands
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


def check_of(first: Ints, end: Ints) -> Ints:
    """Whether numbers are those of a span [first, end), once each, shows in their count and this sum of n * (n + 1).

    32 bits of it are kept. One number in place of another always changes them (while numbers stay below 2³¹), and
    several by chance do not only once in four billion times.

    >>> check_of(np.array([3]), np.array([6])).tolist(), 3 * 4 + 4 * 5 + 5 * 6
    ([62], 62)
    """
    low, high = first.view(np.uint64), end.view(np.uint64)
    return (((high * high * high - high - low * low * low + low) * _THIRD) & _LOW).view(np.int64)


def _check(numbers: Ints, first: Ints) -> Ints:
    """The sum of `check_of` for the numbers from each row of `first` to the next one."""
    n = numbers.view(np.uint64)
    each = np.add(n, np.uint64(1), out=SCRATCH.array("each", len(n), np.uint64))
    each *= n
    found: Ints = (np.add.reduceat(each, first) & _LOW).view(np.int64)
    return found


def survey_kernel(as_of: int | None) -> Kernel:
    """Kernel for `SURVEY`."""
    return functools.partial(_survey, as_of)


def _survey(as_of: int | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    owners = Owners.of(batch)
    kinds, kind = encoded(batch["event"])
    path = batch["_path"][0].as_py() if batch.num_rows else None
    code = np.multiply(owners.code, len(kinds), out=SCRATCH.array("which", len(kind)))
    code += kind
    code, there = _few(code, owners.size * len(kinds))
    counts = [np.bincount(code, minlength=len(there))]
    for known in (batch["lsn"].is_valid(), None if as_of is None else pc.less_equal(batch["time"], as_of)):
        counts.append(counts[0] if known is None else _counted(code, len(there), known))
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
    return _batch(pa.concat_tables([totals, single]))


def _few(code: Ints, size: int) -> tuple[Ints, Ints]:
    """Codes as indices into a list of them that is not long; all are below `size`."""
    if size <= _LISTED:
        return code, np.arange(size)
    listed, code = np.unique(code, return_inverse=True)
    return code, listed


def _counted(code: Ints, size: int, known: pa.Array) -> Ints:
    """Rows of each code for which `known` holds."""
    if known.null_count:
        known = pc.fill_null(known, False)
    if pc.all(known).as_py():
        return np.bincount(code, minlength=size)
    return np.bincount(code[known.to_numpy(zero_copy_only=False)], minlength=size)


def interval_kernel(places: Places) -> Kernel:
    """Kernel for `INTERVALS`."""
    return functools.partial(_by_interval, places)


def _by_interval(places: Places, batch: pa.RecordBatch) -> pa.RecordBatch:
    events = EventBatch.of(places, batch)
    count = np.bincount(events.key, minlength=events.passed)[: events.passed]
    used = int(count.sum())
    if not used:
        return _unusable(events, batch)
    order = np.argsort(events.key, kind="stable")[:used]  # what is passed over sorts behind all channels
    seq = events.seq.take(order, out=SCRATCH.array("seq", used), mode="clip")
    position = events.position.take(order, out=SCRATCH.array("position", used), mode="clip")
    key = np.flatnonzero(count)
    first, interval = _cut(events, key, np.cumsum(count[key]) - count[key], seq, position)
    key = np.repeat(key, np.diff(np.searchsorted(first, np.append(np.cumsum(count[key]) - count[key], used))))
    found = {
        "interval": interval,
        "least": np.minimum.reduceat(seq, first),
        "next": np.maximum.reduceat(seq, first) + 1,
        "rows": np.diff(first, append=used),
        "check": _check(seq, first),
        "first": np.minimum.reduceat(position, first),
        "last": np.maximum.reduceat(position, first),
        "place_check": _check(position, first),
    }
    return _with_unusable(events, batch, _named(events, key, found, INTERVALS))


def _cut(events: EventBatch, key: Ints, first: Ints, seq: Ints, position: Ints) -> tuple[Ints, Ints]:
    """Cut the rows of each key into intervals; rows that are out of order are put in order, in place.

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
    cuts = events.interval(key, np.maximum.reduceat(position, first)) - low
    if not cuts.any():
        return first, low
    mixed = np.flatnonzero(cuts)
    for a, b in zip(first[mixed].tolist(), end[mixed].tolist(), strict=True):
        if (position[a + 1 : b] < position[a : b - 1]).any():
            order = a + np.argsort(position[a:b], kind="stable")
            seq[a:b], position[a:b] = seq[order], position[order]
    which = np.repeat(np.arange(len(key)), cuts)  # a row here for each checkpoint between the events of a key
    nth = np.arange(len(which)) - np.repeat(np.cumsum(cuts) - cuts, cuts) + low[which]
    checkpoint = events.places.position[events.places.start[events.owner[key[which]]] + nth]
    behind = first_at_least(position, first[which], end[which], checkpoint + (key[which] & 1))
    starts, interval = np.concatenate([first, behind]), np.concatenate([low, nth + 1])
    order = np.lexsort((interval, starts))
    starts, interval = starts[order], interval[order]
    kept = np.append(starts[1:] != starts[:-1], True)  # of checkpoints with nothing in between, the last
    return starts[kept], interval[kept]


def run_kernel(places: Places, channels: frozenset[str]) -> Kernel:
    """Kernel for the `SEQUENCE_RUNS` of some channels."""
    return functools.partial(_runs, places, channels)


def _runs(places: Places, channels: frozenset[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    events = EventBatch.of(places, batch, channels)
    rows = np.flatnonzero(events.key < events.passed)
    key, seq = events.key[rows], events.seq[rows]
    interval = events.interval(key, events.position[rows])
    group = key.astype(np.int64) * (interval.max(initial=0) + 1) + interval
    order, first, end, count = _spans(group, seq)
    found = {"interval": interval[order[first]], "from": seq[order[first]], "to": end, "rows": count}
    return _named(events, key[order[first]], found, SEQUENCE_RUNS)


def lsn_kernel(places: Places, subtasks: frozenset[Subtask]) -> Kernel:
    """Kernel for the `LSNS` of some subtasks; checkpoint events are not among them."""
    return functools.partial(_lsns, places, subtasks)


def _lsns(places: Places, subtasks: frozenset[Subtask], batch: pa.RecordBatch) -> pa.RecordBatch:
    events = EventBatch.of(places, batch)
    wanted = np.array([s in subtasks for s in places.subtasks] + [False])
    owner = events.owner[events.key]
    rows = np.flatnonzero(wanted[owner] & (events.key < events.passed))
    order, first, end, count = _spans(owner[rows], events.position[rows])
    who = [places.subtasks[i] for i in owner[rows][order[first]].tolist()]
    columns: list[Any] = [[s.operator for s in who], [s.subtask for s in who]]
    columns += [events.position[rows][order[first]], end, count]
    return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, LSNS, strict=True)], schema=LSNS)


def _spans(group: Ints, number: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Runs of consecutive numbers of a group: rows in order, each run's first of them, its end, its rows."""
    order, new = islands(group, number, number + 1)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(order))[: len(first)] - 1
    return order, first, number[order[last]] + 1, last - first + 1


def _named(events: EventBatch, key: Ints, found: dict[str, Ints], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a schema: the channels and sides of keys, and columns of numbers."""
    columns = {
        "channel": events.names.take(pa.array(key >> 1)),
        "side": _SIDES.take(pa.array(key & 1)),
        "path": pa.nulls(len(key), pa.string()),
        **{name: pa.array(values) for name, values in found.items()},
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


_SIDES = pa.array(SIDES)


def _unusable(events: EventBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each channel with events that cannot be used."""
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
    return _batch(pa.table([columns.get(name, none) for name in INTERVALS.names], INTERVALS.names).cast(INTERVALS))


def _with_unusable(events: EventBatch, batch: pa.RecordBatch, found: pa.RecordBatch) -> pa.RecordBatch:
    if not (events.key > events.passed).any():
        return found
    return _batch(pa.Table.from_batches([found, _unusable(events, batch)]))


def _batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of a table in one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
