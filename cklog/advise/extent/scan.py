"""Scans of a whole output queue, forward: what there was to checkpoint, whatever was checkpointed.

The foreground path of an operator (Sebepou and Magoutis, DSN 2011, section III) writes an `open` record when a window
opens and a `result` when it closes; the background path adds `check` records. Without the checks a log is the
foreground alone, and shows what any other policy would have met. Two things are read from it:

    first look : scales of the log, from few columns: how many windows are open, how fast tuples come
    events     : every record, with its window as a *slot*, a small number that is used again once the window closed

Both take the memory of the windows open at once and of one batch, whatever the length of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import entries
from cklog.arrays.types import Ints, Mask
from cklog.engine.scan import Damage, reader_of
from cklog.inputs.queues import Queue
from cklog.queues.log import CHECK, CONTROL, DELTA, EMIT, OPEN, RESULT, kinds_of, reading_through

_LOOK_COLUMNS = ("type", "ts", "open_windows", "input", "inputs", "bytes")
_EVENT_COLUMNS = (*_LOOK_COLUMNS, "window")
"""Those of the first look, too: a record is judged by the columns that are asked for, and what was no record then must
be none later."""

_SECOND_MS = 1000

_STRETCH = 1 << 17  # records, at least, that are made events at once


@dataclass(slots=True)
class FirstLook:
    """Scales of a log.

    Attributes
    ----------
    first_ms, last_ms : recorded time of the first record, and the latest
    records, opens : how many records without control records, and how many open records
    open_windows : mean over the records of the windows open, as they say it or else as opens less results
    tuples : from the first record to the last, by input numbers; None if a record has none
    tuples_per_s : the most that were processed in a whole second of recorded time, counted from the first record.
        Where a second has no record, its tuples are spread evenly with those of the next. A log without a whole
        second gives its mean; None if its time does not pass
    record_bytes : mean of `bytes`, None if no record has any
    damage : what could not be read
    """

    first_ms: int = 0
    last_ms: int = 0
    records: int = 0
    opens: int = 0
    open_windows: float = 0.0
    tuples: int | None = None
    tuples_per_s: float | None = None
    record_bytes: float | None = None
    damage: list[Damage] = field(default_factory=list)


def first_look(queue: Queue, split_bytes: int) -> FirstLook:
    """Read the few columns that show the scales of a log."""
    look, seconds, numbered = FirstLook(), _TuplesPerSecond(), True
    open_sum, open_now, sizes, sized = 0.0, 0, 0, 0
    for batch in _queue_batches(queue, split_bytes, _LOOK_COLUMNS, look.damage.append):
        kinds = kinds_of(batch.column("type"))
        ts = batch.column("ts").to_numpy(zero_copy_only=False)
        look.first_ms = look.first_ms if look.records else int(ts[0])
        look.last_ms = max(look.last_ms, int(ts.max())) if look.records else int(ts.max())
        counted = open_now + np.cumsum(DELTA[kinds])
        open_now = max(int(counted[-1]), 0)
        own = kinds != CONTROL
        said = batch.column("open_windows")
        by_word = said.is_valid().to_numpy(zero_copy_only=False)
        windows = np.where(by_word, said.fill_null(0).to_numpy(zero_copy_only=False), np.maximum(counted, 0))
        open_now = int(windows[-1]) if by_word[-1] else open_now
        open_sum += float(windows[own].sum(dtype=np.float64))
        look.records += int(np.count_nonzero(own))
        look.opens += int(np.count_nonzero(kinds == OPEN))
        bytes_ = batch.column("bytes").drop_null()
        sizes, sized = sizes + (pc.sum(bytes_).as_py() or 0), sized + len(bytes_)
        inputs = tuples_of(batch, kinds)
        numbered = numbered and inputs is not None
        if inputs is not None:
            seconds.note(ts[own], inputs[own])
    look.open_windows = open_sum / look.records if look.records else 0.0
    look.record_bytes = sizes / sized if sized else None
    if numbered and look.records:
        look.tuples, look.tuples_per_s = seconds.tuples(), seconds.fastest(look.last_ms - look.first_ms)
    return look


class _TuplesPerSecond:
    """The last input number of each second of recorded time, of which only the newest is kept."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None  # ms, input
        self._last = (0, 0)  # second, input
        self._complete = (-1, 0)  # the second with a record before it: at first the one before the log
        self._fastest = 0.0

    def note(self, ts: Ints, inputs: Ints) -> None:
        """Take in records in log order: their times in ms and input numbers, (records,) each."""
        if not len(ts):
            return
        if self._first is None:
            self._first = int(ts[0]), int(inputs[0])
            self._last, self._complete = (0, int(inputs[0])), (-1, int(inputs[0]) - 1)
        second = np.maximum.accumulate(np.r_[self._last[0], (ts - self._first[0]) // _SECOND_MS])
        number = np.r_[self._last[1], inputs]
        ends = np.flatnonzero(np.diff(second))  # the last record of each second that is over, as a row of `number`
        if len(ends):
            at, done = np.r_[self._complete[0], second[ends]], np.r_[self._complete[1], number[ends]]
            self._fastest = max(self._fastest, float((np.diff(done) / np.diff(at)).max()))
            self._complete = int(at[-1]), int(done[-1])
        self._last = int(second[-1]), int(number[-1])

    def tuples(self) -> int:
        """Return the tuples from the first record to the last."""
        return self._last[1] - self._first[1] if self._first else 0

    def fastest(self, span_ms: int) -> float | None:
        """Return the tuples per second in the fastest whole second, or over all `span_ms`; None if no time passes."""
        if self._fastest > 0:
            return self._fastest
        return self.tuples() * _SECOND_MS / span_ms if span_ms > 0 and self.tuples() > 0 else None


@dataclass(frozen=True, slots=True)
class QueueEvents:
    """Records in log order, shape (records,) each.

    Attributes
    ----------
    kind : as `cklog.policies.check_records` numbers them; what concerns no window is `emit`
    slot : of the window, -1 without one
    starts : whether it is the first footprint of a window, which the foreground has
    change : by how much the record changes the number of windows open
    dropped : whether it is a check, which the foreground does not have
    ts : recorded time in ms, which never falls
    input : tuples taken so far, of all channels, less 1; zeros if the log does not number them
    """

    kind: Ints
    slot: Ints
    starts: Mask
    change: Ints
    dropped: Mask
    ts: Ints
    input: Ints

    def __len__(self) -> int:
        return len(self.kind)


class EventReader:
    """Reads a queue as events. A window whose open record is not in the log opens with its first check."""

    def __init__(self, queue: Queue, split_bytes: int, numbered: bool, damage: list[Damage]) -> None:
        self._queue = queue
        self._numbered = numbered
        self._split_bytes = split_bytes
        self._damage = damage
        self._names = pa.array([], pa.string())  # of the windows open
        self._slots = np.zeros(0, np.int64)  # theirs
        self._free = np.zeros(0, np.int64)
        self._made = 0  # slots there are
        self._ts = -(1 << 62)
        self._input = -1

    def events(self) -> Iterator[QueueEvents]:
        """Yield all records, stretch by stretch. A slot is used again in a later stretch than its window closed in.

        A stretch has as many records as windows are open, so that looking all of these up is no more work than that.
        """
        held: list[pa.RecordBatch] = []
        for batch in _queue_batches(self._queue, self._split_bytes, _EVENT_COLUMNS, self._note):
            held.append(batch)
            if sum(map(len, held)) >= max(_STRETCH, len(self._names)):
                yield self._stretch_events(held)
                held = []
        if held:
            yield self._stretch_events(held)

    def _note(self, damage: Damage) -> None:
        """Add what the first look did not see: a record without a window."""
        if damage not in self._damage:
            self._damage.append(damage)

    def _stretch_events(self, batches: list[pa.RecordBatch]) -> QueueEvents:
        """Make events of the batches of one stretch."""
        kinds = np.concatenate([kinds_of(batch.column("type")) for batch in batches])
        stamps = [batch.column("ts").to_numpy(zero_copy_only=False) for batch in batches]
        ts = np.maximum.accumulate(np.concatenate([[self._ts], *stamps]))[1:]
        self._ts = int(ts[-1])
        inputs = np.zeros(len(kinds), np.int64)
        if self._numbered:
            taken = [tuples_of(batch, kinds_of(batch.column("type"))) for batch in batches]
            inputs = self._carried_inputs(np.concatenate([numbers for numbers in taken if numbers is not None]), kinds)
        windows = pa.chunked_array([batch.column("window").cast(pa.string()) for batch in batches])
        return self._events_of(kinds, windows.combine_chunks().fill_null("").dictionary_encode(), ts, inputs)

    def _carried_inputs(self, inputs: Ints, kinds: Ints) -> Ints:
        """Return input numbers, (n,), with the number before it for a control record, which is of no tuple."""
        last = np.maximum.accumulate(np.where(kinds == CONTROL, -1, np.arange(len(kinds))))
        found: Ints = np.where(last < 0, self._input, inputs[last])
        self._input = int(found[-1])
        return found

    def _events_of(self, kinds: Ints, windows: pa.DictionaryArray, ts: Ints, inputs: Ints) -> QueueEvents:
        """Make events of the columns of one stretch, (n,) each."""
        rows = np.flatnonzero(kinds <= RESULT)
        code = windows.indices.to_numpy()[rows]
        kind = np.minimum(kinds, EMIT)
        slot, change = np.full(len(kinds), -1), np.zeros(len(kinds), np.int64)
        if len(rows):
            slot[rows], change[rows] = self._follow_windows(kinds[rows], code, windows.dictionary)
        kind[slot < 0] = EMIT  # a result of a window that nobody opened takes a place and closes nothing
        starts = (change > 0) | (kind == OPEN)
        return QueueEvents(
            kind=kind,
            slot=slot,
            starts=starts,
            change=change,
            dropped=(kind == CHECK) & ~starts,
            ts=ts,
            input=inputs,
        )

    def _follow_windows(self, kinds: Ints, code: Ints, names: pa.StringArray) -> tuple[Ints, Ints]:
        """Give each deciding record its slot, and say by how much it changes the number of windows open; (m,) each.

        `code` is the window of each record, as an index into `names`. A result of no open window has slot -1. E.g.
        open a, open b, check a, result a with slots 7 and 4 free → slots 7, 4, 7, 7 and changes 1, 1, 0, -1.

        Sorted by window, its records in this stretch are a run; a window is open before a record if the record before
        it in the run is no result, or at the run's start if it was open before the stretch.
        """
        known = pc.index_in(names, value_set=self._names).fill_null(-1).to_numpy()
        held = np.r_[self._slots, -1][known]  # the slot of each window of `names` that is open before, else -1
        order = np.argsort(code, kind="stable")  # by window, each in log order
        kind, window = kinds[order], code[order]
        first = np.diff(window, prepend=-1) != 0
        was_open = np.where(first, held[window] >= 0, np.r_[False, kind[:-1] != RESULT])
        new = (kind != RESULT) & ~was_open
        numbers = np.cumsum(new)  # how many windows have opened up to each row
        before_run = np.maximum.accumulate(np.where(first, numbers - new, 0))  # and up to the start of its run
        taken = self._take_slots(int(numbers[-1]))
        # the slot of the newest opening in its own run, if there is one, else the slot from before the stretch
        slot = np.where(numbers > before_run, np.r_[-1, taken][numbers], held[window])
        closes = (kind == RESULT) & was_open
        slot[(kind == RESULT) & ~was_open] = -1
        self._free = np.concatenate([self._free, slot[closes]])
        last = np.r_[first[1:], True]
        held[window[last]] = np.where(kind[last] == RESULT, -1, slot[last])
        self._remember_open(names, known, held)
        in_order, change = np.empty_like(slot), np.empty_like(slot)
        in_order[order], change[order] = slot, new.astype(np.int64) - closes
        return in_order, change

    def _take_slots(self, wanted: int) -> Ints:
        """Take free slots, (wanted,); make more if there are too few."""
        short = wanted - len(self._free)
        if short > 0:
            self._free = np.concatenate([self._free, np.arange(self._made, self._made + short)])
            self._made += short
        kept = len(self._free) - wanted
        taken, self._free = self._free[kept:], self._free[:kept]
        return taken

    def _remember_open(self, names: pa.StringArray, known: Ints, slots: Ints) -> None:
        """Note which windows are open after a stretch: `names` have `slots`, and were in the places `known` before."""
        self._slots[known[known >= 0]] = slots[known >= 0]
        still, more = self._slots >= 0, (known < 0) & (slots >= 0)
        self._names = pa.concat_arrays([self._names.filter(pa.array(still)), names.filter(pa.array(more))])
        self._slots = np.concatenate([self._slots[still], slots[more]])


def tuples_of(batch: pa.RecordBatch, kinds: Ints) -> Ints | None:
    """Count the tuples taken up to each record, less 1: its input number, or the sum over its channels; (records,).

    None if a record has no number; control records, which are of no tuple, get any.
    """
    needs = kinds != CONTROL
    single = batch.column("input")
    if single.null_count < len(single):
        given: NDArray[np.bool_] = single.is_valid().to_numpy(zero_copy_only=False)
        taken: Ints = single.fill_null(-1).to_numpy(zero_copy_only=False)
    else:
        row, _, _, value = entries(pa.chunked_array([batch.column("inputs")]))
        given = np.zeros(len(batch), np.bool_)
        given[row] = True
        taken = np.bincount(row, np.asarray(value) + 1, minlength=len(batch)).astype(np.int64) - 1
    return taken if given[needs].all() else None


def _queue_batches(
    queue: Queue, split_bytes: int, columns: tuple[str, ...], damaged: Callable[[Damage], None]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a queue that hold a record, in log order; hand damage to `damaged`."""
    with reading_through(queue):
        for split in queue.splits(split_bytes):
            for item in reader_of(split)(split, "outputs", columns):
                if isinstance(item, Damage):
                    damaged(item)
                elif item.num_rows:
                    yield item
