"""Extent and replay at every record of a piece of an output queue.

A footprint (open or check record) at record p is *current* on [p, b), where b is the next record of the same window
that decides (open, check, result). The oldest current footprint holds T back: it is the first one whose own end, and
so the largest end up to it, lies behind the present record r. Over footprints in log order,

    start(r)  = searchsorted(running maximum of the ends b, r, right)
    q, extent = r - start + 1 records, 0 if nothing is open
    u, replay = tuples taken from the input after the footprint at start

(q and u of section II.B of the CEC paper, which defines them at the tail; here at every record). T's own tuple,
which a recovery reads once more, is not counted in u, as in the policies that q and u are checked against
(`cklog.policies.check_records`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.model.findings import Where
from cklog.queues.log import CONTROL, RESULT, QueueLog

_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class CurrentFootprints:
    """Footprints that are current behind a piece, in log order, shape (footprints,) each.

    `record` is the number of the footprint's record, `ts` its timestamp, `taken` the number of tuples that the operator
    had taken by then, `names` the window. `last_taken` is the number of tuples taken at the last record, which control
    records repeat.
    """

    record: Ints
    ts: Ints
    taken: Ints
    names: pa.Array
    last_taken: int


_NONE = np.zeros(0, np.int64)
NOTHING = CurrentFootprints(record=_NONE, ts=_NONE, taken=_NONE, names=pa.array([], pa.string()), last_taken=0)
"""Before the first record."""


@dataclass(frozen=True, slots=True)
class RecordStretch:
    """Consecutive records with their extent and replay, the first one being record `first` of the whole log.

    Attributes
    ----------
    extent, replay, replay_ms : in records, tuples and ms, at each record; shape (records,)
    open_windows : how many windows are open by the footprints, shape (records,)
    holder : the footprint that holds T back, as an index into `at`; -1 if nothing is open; shape (records,)
    at, at_ts : record number and timestamp of each footprint, those carried from before this piece first
    carried : the footprints that were current before this piece
    """

    log: QueueLog
    first: int
    extent: Ints
    replay: Ints
    replay_ms: Ints
    open_windows: Ints
    holder: Ints
    at: Ints
    at_ts: Ints
    carried: CurrentFootprints

    def __len__(self) -> int:
        return len(self.extent)

    def window(self, footprint: int) -> str | None:
        """Return the window of a footprint, given as in `holder`; None for -1."""
        if footprint < 0:
            return None
        if footprint < len(self.carried.record):
            name: str = self.carried.names[footprint].as_py()
            return name
        return self.log.window_of(int(self.at[footprint] - self.first))

    def place(self, row: int) -> Where:
        """Return where a record of this piece lies."""
        return Where(self.log.paths[self.log.file[row]], int(self.log.offset[row]))


def evaluated(log: QueueLog, first: int, carried: CurrentFootprints) -> tuple[RecordStretch, CurrentFootprints]:
    """Return extent and replay at every record of `log`, and the footprints that are current behind it.

    `first` is the number of the first record of `log`, and `carried` are the footprints that were current before it.
    Arrays below have shape (n,) for n records unless they say otherwise; there are f footprints.
    """
    record = first + np.arange(len(log))
    taken = _tuples_taken(log, carried.last_taken)
    names = log.names
    known: Ints = pc.fill_null(pc.index_in(names, value_set=carried.names), -1).to_numpy().astype(np.int64)
    ends, carried_ends, delta = _footprint_ends(log, first, known, len(carried.record))
    own = np.flatnonzero(log.type < RESULT)
    at = np.r_[carried.record, record[own]]  # (f,)
    at_ts, at_taken = np.r_[carried.ts, log.ts[own]], np.r_[carried.taken, taken[own]]  # (f,) each
    end = np.r_[carried_ends, ends[own]]  # (f,)
    # the largest end up to each footprint rises, and first passes a record at the oldest footprint that outlasts it
    oldest = np.searchsorted(np.maximum.accumulate(end), record, side="right")
    is_open = np.r_[at, _FOREVER][oldest] <= record  # the first end behind r may be that of a footprint behind r
    holder = np.where(is_open, oldest, -1)
    since = np.r_[at, 0], np.r_[at_ts, 0], np.r_[at_taken, 0]  # -1 finds the last entry, which does not count
    extent, replay_ms, replay = (
        np.where(is_open, now - then[holder], 0) for now, then in zip((record + 1, log.ts, taken), since, strict=True)
    )
    count = len(carried.record) + np.cumsum(delta)
    piece = RecordStretch(
        log=log,
        first=first,
        extent=extent,
        replay=replay,
        replay_ms=replay_ms,
        open_windows=count,
        holder=holder,
        at=at,
        at_ts=at_ts,
        carried=carried,
    )
    stays = end == _FOREVER
    old, new = stays[: len(carried.record)], own[stays[len(carried.record) :]]
    left = pa.concat_arrays([carried.names.filter(pa.array(old)), names.take(pa.array(log.window[new]))])
    current = CurrentFootprints(
        record=at[stays], ts=at_ts[stays], taken=at_taken[stays], names=left, last_taken=int(taken[-1])
    )
    return piece, current


def _tuples_taken(log: QueueLog, before: int) -> Ints:
    """Count the tuples taken from all channels up to each record, (n,): differences of it are replays.

    `before` is the count at the record before the log; without input numbers it stays. E.g. input numbers 4, 6 of a
    channel → 5, 7.
    """
    if not log.channels:
        return np.full(len(log), before)
    taken: Ints = (log.input + 1).sum(axis=1)
    said = log.type != CONTROL
    taken[: int(np.argmax(said))] = before  # control records say nothing; those behind others repeat them already
    return taken


def _footprint_ends(log: QueueLog, first: int, known: Ints, carried: int) -> tuple[Ints, Ints, Ints]:
    """Find where footprints end: those of the log's records, (n,), and the `carried` ones, (carried,).

    The third array, (n,), is by how much each record changes the number of open windows. `known` gives, per window of
    `log.names`, the footprint that is carried, or -1.

    E.g. from record 0: open a, open b, check a, result a → ends 2, forever, 3, forever (of a result without meaning),
    and changes 1, 1, 0, -1.
    """
    rows = np.flatnonzero(log.type <= RESULT)
    rows = rows[np.argsort(log.window[rows], kind="stable")]  # by window, each in log order
    window, opens = log.window[rows], log.type[rows] < RESULT
    begins = np.ones(len(rows), np.bool_)  # whether a record is its window's first here
    begins[1:] = window[1:] != window[:-1]
    was_open = np.zeros(len(rows), np.bool_)  # whether a record's window was open before it
    was_open[1:] = opens[:-1]
    earlier = known[window[begins]]
    was_open[begins] = earlier >= 0
    ends = np.full(len(log), _FOREVER)
    ends[rows[:-1][~begins[1:]]] = first + rows[1:][~begins[1:]]
    carried_ends = np.full(carried, _FOREVER)
    carried_ends[earlier[earlier >= 0]] = first + rows[begins][earlier >= 0]
    delta = np.zeros(len(log), np.int64)
    delta[rows] = opens.astype(np.int64) - was_open
    return ends, carried_ends, delta
