"""Folds over extent and replay at every record: means, samples, what held T back, and stretches over a target.

Each takes the pieces of a log (`cklog.queues.over_time.pieces`) in log order and keeps a bounded part of them. Where a
piece ends does not show in the result.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.model.findings import Where
from cklog.queues.log import UNKNOWN
from cklog.queues.over_time.pieces import RecordStretch

SAMPLES = 256
SLOW_LISTED = 10
BREACHES_LISTED = 100


@dataclass(slots=True)
class Mean:
    """Mean, largest and last of integers that come in pieces."""

    total: int = 0
    count: int = 0
    largest: int = 0
    last: int = 0

    def add(self, values: Ints) -> None:
        """Take in the next piece, which is not empty."""
        self.largest = max(self.largest, int(values.max())) if self.count else int(values.max())
        self.total += int(values.sum())
        self.count += len(values)
        self.last = int(values[-1])

    def summary(self) -> dict[str, Any]:
        """Return "mean", "max" and "last"; None each if there was no value."""
        if not self.count:
            return {"mean": None, "max": None, "last": None}
        return {"mean": self.total / self.count, "max": self.largest, "last": self.last}


@dataclass(slots=True)
class Samples:
    """At most `SAMPLES` records: of each `stride` consecutive ones that with the largest extent, the first such.

    `stride` is the smallest power of two that does, so it follows from the number of records alone.
    """

    stride: int = 1
    _rows: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, piece: RecordStretch) -> None:
        """Take in the next piece."""
        while piece.first + len(piece) > SAMPLES * self.stride:
            self._double_stride()
        # e.g. stride 2, extents 1 5 | 4 4 → buckets 0 0 1 1, peak 5 4, peaks 1 2 3, samples of rows 1 and 2
        bucket = (piece.first + np.arange(len(piece))) // self.stride  # the sample that each record competes for
        starts = np.r_[0, np.flatnonzero(np.diff(bucket)) + 1]
        peak = np.maximum.reduceat(piece.extent, starts)  # the largest extent of each bucket, (buckets,)
        peaks = np.flatnonzero(piece.extent == np.repeat(peak, np.diff(np.r_[starts, len(piece)])))
        for row in peaks[np.searchsorted(peaks, starts)].tolist():  # the first such record of each bucket
            self._keep(int(bucket[row]), _sample_of(piece, row))

    def rows(self, numbered: bool) -> tuple[dict[str, Any], ...]:
        """Return the samples in log order; without replays unless the records are `numbered`."""
        return tuple(row if numbered else row | {"replay": None} for row in self._rows.values())

    def _double_stride(self) -> None:
        """Make one bucket of every two."""
        rows, self._rows = self._rows, {}
        self.stride *= 2
        for bucket, row in rows.items():
            self._keep(bucket // 2, row)

    def _keep(self, bucket: int, row: dict[str, Any]) -> None:
        if bucket not in self._rows or row["extent"] > self._rows[bucket]["extent"]:
            self._rows[bucket] = row


def _sample_of(piece: RecordStretch, row: int) -> dict[str, Any]:
    pos = int(piece.log.pos[row])
    return {
        "record": piece.first + row,
        "pos": None if pos == UNKNOWN else pos,
        "ts": int(piece.log.ts[row]),
        "extent": int(piece.extent[row]),
        "replay": int(piece.replay[row]),
        "replay_ms": int(piece.replay_ms[row]),
        "open_windows": int(piece.open_windows[row]),
        "oldest": piece.window(int(piece.holder[row])),
    }


@dataclass(frozen=True, slots=True)
class _HeldFootprint:
    """A footprint that holds T back since record `since`; `at` is its own record."""

    at: int
    ts: int
    window: str | None
    since: int
    since_ts: int

    def until(self, record: int, ts: int) -> dict[str, Any]:
        """Return the row of an answer for a footprint that a record with timestamp `ts` freed T from."""
        return {
            "window": self.window,
            "ts": self.ts,
            "record": self.at,
            "held_records": record - self.since,
            "held_ms": ts - self.since_ts,
            "extent": record - self.at,
        }


@dataclass(slots=True)
class Slow:
    """The footprints that held T back through the most records; each does so in one stretch, if it does at all."""

    _best: list[dict[str, Any]] = field(default_factory=list)
    _held: _HeldFootprint | None = None
    _end: tuple[int, int] = (0, 0)

    def add(self, piece: RecordStretch) -> None:
        """Take in the next piece."""
        ts, holder = piece.log.ts, piece.holder
        starts = np.r_[0, np.flatnonzero(np.diff(holder)) + 1]  # the rows from which another footprint holds T back
        last = int(starts[-1])
        held = self._held
        if held is not None and (holder[0] < 0 or piece.at[holder[0]] != held.at):
            self._keep([held.until(piece.first, int(ts[0]))])
            held = None
        if held is not None and last:
            self._keep([held.until(piece.first + int(starts[1]), int(ts[starts[1]]))])
        self._keep_longest(piece, starts[1:] if held is not None else starts)
        if held is None or last:
            held = _footprint_held(piece, last)
        self._held = held
        self._end = piece.first + len(piece), int(ts[-1])

    def rows(self) -> tuple[dict[str, Any], ...]:
        """Return the longest first, of equal ones the older first; to be asked once, at the end of the log."""
        if self._held is not None:
            self._keep([self._held.until(*self._end)])
            self._held = None
        return tuple(self._best)

    def _keep_longest(self, piece: RecordStretch, starts: Ints) -> None:
        """Keep what can be among the longest of the stretches between `starts`; the last one may not be over.

        E.g. starts 0, 5, 6 → stretches of 5 and 1 records, unless nothing is open there.
        """
        if len(starts) < 2:
            return
        lasts = np.where(piece.holder[starts[:-1]] >= 0, np.diff(starts), 0)
        floor = self._best[-1]["held_records"] if len(self._best) == SLOW_LISTED else 1
        good = np.flatnonzero(lasts >= floor)
        for k in good[np.argsort(-lasts[good], kind="stable")][:SLOW_LISTED].tolist():
            held, stop = _footprint_held(piece, int(starts[k])), int(starts[k + 1])
            if held is not None:
                self._keep([held.until(piece.first + stop, int(piece.log.ts[stop]))])

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        self._best = heapq.nsmallest(SLOW_LISTED, [*self._best, *rows], key=_longest_first)


def _longest_first(row: dict[str, Any]) -> tuple[int, int]:
    return -row["held_records"], row["record"]


def _footprint_held(piece: RecordStretch, row: int) -> _HeldFootprint | None:
    """Return the footprint that holds T back from a record on; None if nothing is open."""
    footprint = int(piece.holder[row])
    if footprint < 0:
        return None
    at, ts = int(piece.at[footprint]), int(piece.at_ts[footprint])
    return _HeldFootprint(
        at=at,
        ts=ts,
        window=piece.window(footprint),
        since=piece.first + row,
        since_ts=int(piece.log.ts[row]),
    )


@dataclass(slots=True)
class Breaches:
    """Stretches of records with an extent over `max_extent` or a replay over `max_replay`; None: no such target."""

    max_extent: int | None
    max_replay: int | None
    place: Where | None = None
    _listed: list[dict[str, Any]] = field(default_factory=list)
    _stretches: int = 0
    _records: int = 0
    _ms: int = 0
    _last_ts: int | None = None
    """Timestamp of the last record if it was over a target: the stretch may go on."""

    def add(self, piece: RecordStretch) -> None:
        """Take in the next piece."""
        over, ts = self._over_target(piece), piece.log.ts
        edges = np.flatnonzero(np.diff(np.r_[False, over, False]))  # e.g. over at rows 2, 3, 7 → 2, 4, 7, 8
        starts, stops = edges[::2], edges[1::2]
        goes_on = self._last_ts is not None and bool(over[0])
        self._ms += int((ts[stops - 1] - ts[starts]).sum())
        if self._last_ts is not None and goes_on:
            self._ms += int(ts[0]) - self._last_ts
        for k in range(min(len(starts), BREACHES_LISTED - len(self._listed) + goes_on)):
            self._list_stretch(piece, int(starts[k]), int(stops[k]), goes_on and not k)
        self._stretches += len(starts) - goes_on
        self._records += int(over.sum())
        self._last_ts = int(ts[-1]) if over[-1] else None

    def totals(self) -> dict[str, int]:
        """Return the number of stretches, of records in them, and of ms from the first to the last record of each."""
        return {"stretches": self._stretches, "records": self._records, "ms": self._ms}

    def rows(self, numbered: bool) -> tuple[dict[str, Any], ...]:
        """Return the first stretches; without replays unless the records are `numbered`."""
        return tuple(row if numbered else row | {"replay": None} for row in self._listed)

    def _over_target(self, piece: RecordStretch) -> Mask:
        over = np.zeros(len(piece), np.bool_)
        if self.max_extent is not None:
            over |= piece.extent > self.max_extent
        if self.max_replay is not None:
            over |= piece.replay > self.max_replay
        return over

    def _list_stretch(self, piece: RecordStretch, start: int, stop: int, goes_on: bool) -> None:
        """List the records [start, stop), or add them to the stretch before, if that one is listed."""
        worst = start + int(np.argmax(piece.extent[start:stop]))
        found = {
            "from_record": piece.first + start,
            "to_record": piece.first + stop - 1,
            "from_ts": int(piece.log.ts[start]),
            "to_ts": int(piece.log.ts[stop - 1]),
            "extent": int(piece.extent[worst]),
            "replay": int(piece.replay[start:stop].max()),
            "oldest": piece.window(int(piece.holder[worst])),
        }
        if not goes_on:
            self.place = self.place or piece.place(start)
            self._listed.append(found)
        elif len(self._listed) == self._stretches:  # else it began behind the last one listed
            before = self._listed[-1]
            larger = found if found["extent"] > before["extent"] else before
            before |= {name: found[name] for name in ("to_record", "to_ts")}
            before |= {"replay": max(before["replay"], found["replay"])}
            before |= {name: larger[name] for name in ("extent", "oldest")}


@dataclass(frozen=True, slots=True)
class WindowCountMismatch:
    """Records at which N is not the number of windows that are open by their footprints.

    `records` counts them; of the first one, `record` is the number, `said` its N, `found` the windows open by the
    footprints, and `place` where it lies.
    """

    records: int
    record: int
    said: int
    found: int
    place: Where


@dataclass(slots=True)
class Counts:
    """N compared with the footprints, at every record that gives N."""

    mismatch: WindowCountMismatch | None = None

    def add(self, piece: RecordStretch) -> None:
        """Take in the next piece."""
        said = piece.log.open_windows
        wrong: Mask = (said != UNKNOWN) & (said != piece.open_windows)
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        row, met = int(rows[0]), self.mismatch
        first = met or WindowCountMismatch(
            records=0,
            record=piece.first + row,
            said=int(said[row]),
            found=int(piece.open_windows[row]),
            place=piece.place(row),
        )
        self.mismatch = replace(first, records=first.records + len(rows))
