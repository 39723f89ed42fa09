"""Sizes and times of base and delta checkpoints, by subtask, and what each would have cost in the other form.

A history holds one price of each checkpoint, that of the form it was taken in. The other is estimated as the patent's
method does it at run time, from what came before (US patent 9,471,438): a base costs what the newest base did, a delta
the weighted average of the deltas so far (before the first delta, what the first did). A delta holds the changes since
the checkpoint before it, whatever the form of that one, so a recorded price holds in every schedule.

A history begins with a subtask's first base. Checkpoints without a size or time that others of the subtask have, and
deltas on a checkpoint older than the one before, cannot be priced and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.advise.delta.records import DeltaRecords
from cklog.arrays.types import Floats, Ints, Mask
from cklog.model.names import Subtask
from cklog.policies.delta_number import BenefitMeasure, Prices, averages

_CELLS = 1 << 24
"""Cells of a block of histories that are looked at together: about 128 MB for each measure and form."""

_MOST = 1 << 53
"""Bytes or ms above which a checkpoint is not believed, nor a sum exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Histories:
    """The checkpoints of s subtasks that can be priced, one subtask after the other.

    Attributes
    ----------
    first : where each subtask's checkpoints begin, shape (s + 1,)
    number, time, delta, size, ms : of each checkpoint; time in ms, -1: unknown; size in bytes, ms its duration, NaN:
        no checkpoint of the subtask has one
    unmeasured, older, early : how many were left out: without size or time; deltas on an older checkpoint than the
        one before; before the first base; shape (s,) each
    """

    subtasks: tuple[Subtask, ...]
    first: Ints
    number: Ints
    time: Ints
    delta: Mask
    size: Floats
    ms: Floats
    unmeasured: Ints
    older: Ints
    early: Ints

    def known(self, by: BenefitMeasure) -> Mask:
        """Whether a subtask's checkpoints have durations, or sizes; shape (s,)."""
        measure = np.r_[self.ms if by == "time" else self.size, np.nan]
        found: Mask = ~np.isnan(measure[self.first[:-1]]) & (np.diff(self.first) > 0)
        return found

    def missing(self, by: BenefitMeasure) -> list[tuple[str, ...]]:
        """What each subtask's history lacks for a schedule by one measure; () if nothing."""
        counts, known = np.diff(self.first), self.known(by)
        deltas = np.diff(np.r_[0, np.cumsum(self.delta)][self.first])
        words = {
            "checkpoints with a size or a duration": (counts == 0) & (self.early == 0),
            "base checkpoints": (counts == 0) & (self.early > 0),
            "delta checkpoints": (counts > 0) & (deltas == 0),
            "durations" if by == "time" else "sizes": (counts > 0) & ~known,
        }
        return [tuple(word for word, lacks in words.items() if lacks[i]) for i in range(len(counts))]


def histories(records: DeltaRecords) -> Histories:
    """Take the stored checkpoints of every subtask that can be priced.

    Checkpoints that were not completed, the current state of survivors and initial states are none.
    """
    table, owner = records.table, records.owner
    first = np.searchsorted(owner, np.arange(len(records.subtasks) + 1))
    stored = ~_is(table["status"], "incomplete") & ~_is(table["kind"], "volatile") & (records.number > 0)
    size, ms = _measure(table["bytes"]), _measure(table["duration_ms"])
    delta = _is(table["form"], "delta")
    older = stored & delta & (_parent(table["parent"]) < _before(owner, records.number, stored))
    complete = stored & ~older
    there = [~np.isnan(measure) for measure in (size, ms)]
    some = [_counts(complete & known, first) > 0 for known in there]
    priced = complete & np.repeat(some[0] | some[1], np.diff(first))
    for known, wanted in zip(there, some, strict=True):
        priced &= known | np.repeat(~wanted, np.diff(first))
    begun = _begun(owner, priced & ~delta, len(records.subtasks))
    kept = priced & begun
    time = pc.fill_null(table["time"], -1).to_numpy()
    return Histories(
        records.subtasks,
        np.r_[0, np.cumsum(_counts(kept, first))],
        records.number[kept],
        time[kept],
        delta[kept],
        size[kept],
        ms[kept],
        _counts(complete & ~priced, first),
        _counts(older, first),
        _counts(priced & ~begun, first),
    )


def _is(column: pa.ChunkedArray, word: str) -> Mask:
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    found: Mask = pc.fill_null(pc.equal(plain, word), False).to_numpy(zero_copy_only=False)
    return found


def _measure(column: pa.ChunkedArray) -> Floats:
    """Sizes or durations; NaN where there is none, or none that a checkpoint can have."""
    found: Floats = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return np.where((found >= 0) & (found <= _MOST), found, np.nan)


def _parent(column: pa.ChunkedArray) -> Ints:
    found: Ints = pc.fill_null(column, np.iinfo(np.int64).max).to_numpy()
    return found


def _counts(rows: Mask, first: Ints) -> Ints:
    """How many of each subtask's rows are chosen, (s,); those of subtask i are `[first[i], first[i + 1])`."""
    found: Ints = np.diff(np.r_[0, np.cumsum(rows)][first])
    return found


def _before(owner: Ints, number: Ints, stored: Mask) -> Ints:
    """The number of the stored checkpoint before each row of its subtask, -1 if there is none."""
    before = np.full(len(number), -1, np.int64)
    if stored.all():
        before[1:] = np.where(owner[1:] == owner[:-1], number[:-1], -1)
        return before
    rows = np.flatnonzero(stored)
    same = owner[rows[1:]] == owner[rows[:-1]]
    before[rows[1:][same]] = number[rows[:-1][same]]
    return before


def _begun(owner: Ints, base: Mask, s: int) -> Mask:
    """Whether a row is at or behind its subtask's first base."""
    first = np.full(s, len(owner), np.int64)
    rows = np.flatnonzero(base)
    np.minimum.at(first, owner[rows], rows)
    begun: Mask = np.arange(len(owner)) >= first[owner]
    return begun


def blocks(found: Histories, usable: Mask) -> Iterator[tuple[Ints, Prices]]:
    """The usable subtasks with their prices, in blocks of bounded size: of like length, and with the same measures."""
    counts = np.diff(found.first)
    measures = 2 * found.known("size") + found.known("time")
    order = np.lexsort((-counts, measures))
    order = order[usable[order]]
    while len(order):
        longest, kind = counts[order[0]], measures[order[0]]
        alike = (measures[order] == kind) & (2 * counts[order] >= longest)
        take = max(1, min(_CELLS // int(longest), int(np.count_nonzero(alike))))
        yield order[:take], priced(found, order[:take])
        order = order[take:]


def priced(found: Histories, which: Ints) -> Prices:
    """What each checkpoint of some subtasks costs as a base and as a delta; each has a base and a delta."""
    count = np.diff(found.first)[which]
    cell = np.arange(int(count.max()))[:, None]
    taken = cell < count
    rows = np.concatenate([np.arange(found.first[i], found.first[i + 1]) for i in which.tolist()])

    def padded(values: Floats | Mask) -> Floats:
        """Values of the subtasks' checkpoints, shape (n, s); 0 behind the last."""
        by_subtask = np.zeros(taken.T.shape)
        by_subtask[taken.T] = values[rows]
        return np.ascontiguousarray(by_subtask.T)

    delta = padded(found.delta) > 0
    newest = np.maximum.accumulate(np.where(taken & ~delta, cell, 0), axis=0)
    pairs = [_both(padded(measure), delta, newest, taken) for measure in (found.size, found.ms)]
    return Prices(count, delta, *pairs[0], *pairs[1])


def _both(price: Floats, delta: Mask, newest: Ints, taken: Mask) -> tuple[Floats, Floats] | tuple[None, None]:
    """Prices as bases and as deltas, from those of the form taken; `newest` is the row of the newest base."""
    if np.isnan(price[0]).any():
        return None, None
    base = np.where(taken, np.take_along_axis(price, newest, axis=0), 0.0)
    first = np.take_along_axis(price, delta.argmax(axis=0)[None], axis=0)[0]
    other = np.empty_like(price)
    for k, average in zip(range(len(price)), averages(price, delta), strict=False):
        other[k] = average
    np.copyto(other, first, where=np.isnan(other))
    other[~taken] = 0.0
    np.copyto(other, price, where=delta)
    return base, other
