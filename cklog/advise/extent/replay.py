"""The replay of a log through every policy at once, in one pass: period by period, each with its warm-up.

Recorded time is cut into periods of CP from the time of the first record. A period ends before the first record of a
later one; periods without a record are passed there too. Recorded arrival times stay as they are: a log's past load
is given, and the time that other checks would have taken is reported, not played out.

The averages begin after a *warm-up*, the first cycle of footprints: at the first period's end at which no window
is open that was opened in the first half of the log so far (the extent without checks is at most half of the log).
Before it the extent still grows from the empty log. A log in which that never happens counts as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cklog.advise.extent.scan import QueueEvents
from cklog.advise.extent.tracks import ExtentTally, Foreground, RecoveryCost, Track
from cklog.arrays.types import Ints
from cklog.policies.check_records import CHECK, Ledger, Targets


class Recorded:
    """The log as it was written, with its own checks: extent and replay at the ends of periods, in `tally`.

    Checks that end a period are taken for its round: the figures before the round are those before them.
    """

    def __init__(self, cost: RecoveryCost) -> None:
        self.tally = ExtentTally(cost)
        self._ledger = Ledger()
        self._before: tuple[int, int] | None = None  # extent and replay before the checks that end the log by now
        self._checks = 0  # since the last end of a period

    def feed(self, events: QueueEvents, start: int, end: int) -> None:
        """Take in the records [start, end) of a batch."""
        others = np.flatnonzero(~events.dropped[start:end])
        middle = start + int(others[-1]) + 1 if len(others) else start  # from here on there are only checks
        if middle > start:
            self._append(events, start, middle)
            self._before = None
        if end > middle:
            self._before = self._before or self._figures()
            self._append(events, middle, end)

    def pass_period(self, times: int) -> None:
        """End a period here, and let `times` - 1 periods without a record pass."""
        after = self._figures()
        self.tally.note(*(self._before or after), *after, self._checks)
        if times > 1:
            self.tally.note(*after, *after, 0, times - 1)
        self._before, self._checks = None, 0

    def _append(self, events: QueueEvents, start: int, end: int) -> None:
        kinds, slots = events.kind[start:end], events.slot[start:end]
        self._ledger.append(kinds, slots, events.input[start:end], events.ts[start:end])
        self._checks += int(np.count_nonzero(kinds == CHECK))

    def _figures(self) -> tuple[int, int]:
        return self._ledger.extent(), self._ledger.replay()


@dataclass(slots=True)
class PolicyGroup:
    """The tracks of policies with one checkpoint period CP; `passed` counts the periods that have ended."""

    period_ms: float
    tracks: list[Track]
    passed: int = 0


class PeriodEnd(NamedTuple):
    """`times` periods of group number `group` end before row `row` of a batch: one, and more without a record."""

    row: int
    group: int
    times: int


class PolicyReplay:
    """Feeds a log to groups of policies.

    The first group leads: at the ends of its periods `recorded` (the log's own checks) and `unchecked` (no checks at
    all) are sampled, and the warm-up may end. `warm_ms` is the time from the first record to that end; None: it never
    came.
    """

    def __init__(self, groups: Sequence[PolicyGroup], cost: RecoveryCost) -> None:
        self._groups = groups
        self._cost = cost
        self.recorded = Recorded(cost)
        self.unchecked = Track(Targets(period_ms=groups[0].period_ms, interval_ms=0), cost)
        self.warm_ms: float | None = None
        self._log = Foreground()
        self._start_ms: int | None = None

    def run(self, batches: Iterator[QueueEvents]) -> None:
        """Read the whole log."""
        for events in batches:
            if self._start_ms is None:
                self._start_ms = int(events.ts[0])
            self._read_batch(events, self._start_ms)
            self._log.forget(min(track.needs for track in self._every_track()))

    def _read_batch(self, events: QueueEvents, start_ms: int) -> None:
        """Feed a batch to every policy, up to each end of a period in turn."""
        feeder = _Feeder(events, self._log, self.recorded)
        for end in self._period_ends(events.ts - start_ms):
            feeder.feed(end.row)
            group = self._groups[end.group]
            if end.group == 0:
                self._end_leading_period(end.times)
            for track in group.tracks:
                track.rounds(self._log, end.times)
            group.passed += end.times
        feeder.feed(len(events))

    def _period_ends(self, since_ms: Ints) -> list[PeriodEnd]:
        """Find where periods end, in order; `since_ms` are the times of a batch's records since the first record, (n,).

        E.g. one group of 10 ms with no period passed, since_ms [4, 12, 35] → a period ends before row 1, two before
        row 2.
        """
        found = []
        for number, group in enumerate(self._groups):
            period = np.floor(since_ms / group.period_ms).astype(np.int64)
            ended = np.diff(period, prepend=group.passed)
            rows = np.flatnonzero(ended)
            ends = zip(rows.tolist(), ended[rows].tolist(), strict=True)
            found += [PeriodEnd(row, number, times) for row, times in ends]
        return sorted(found)

    def _end_leading_period(self, times: int) -> None:
        """Sample what the first group samples at the end of one of its periods; end the warm-up if it is time."""
        if self.warm_ms is None and self._log.length:
            extent, _ = self.unchecked.figures(self._log)
            if 2 * extent <= self._log.length:  # no window is open that was opened in the first half of the log so far
                self._end_warm_up()
        self.recorded.pass_period(times)
        self.unchecked.rounds(self._log, times)

    def _end_warm_up(self) -> None:
        """Begin all tallies again."""
        lead = self._groups[0]
        self.warm_ms = (lead.passed + 1) * lead.period_ms
        self.recorded.tally = ExtentTally(self._cost)
        for track in self._every_track():
            track.tally = ExtentTally(self._cost)

    def _every_track(self) -> list[Track]:
        return [self.unchecked, *(track for group in self._groups for track in group.tracks)]


class _Feeder:
    """Hands the n records of one batch on, a stretch at a time, to the log without checks and to the recorded one."""

    def __init__(self, events: QueueEvents, log: Foreground, recorded: Recorded) -> None:
        self._events, self._log, self._recorded = events, log, recorded
        kept = ~events.dropped
        # before each row and at the end, (n + 1,): the foreground's length, the windows open, its last row (-1: none)
        self._length = log.length + np.r_[0, np.cumsum(kept)]
        self._open = log.open_windows + np.r_[0, np.cumsum(events.change)]
        self._last = np.maximum.accumulate(np.r_[-1, np.where(kept, np.arange(len(events)), -1)])
        self._opens, self._closes = np.flatnonzero(events.starts), np.flatnonzero(events.change < 0)
        self._at = 0

    def feed(self, end: int) -> None:
        """Hand on the records up to row `end`.

        A slot is not used twice in a batch, so all windows of a stretch may open before any closes.
        """
        if end == self._at:
            return
        events, log = self._events, self._log
        opens = self._opens[slice(*np.searchsorted(self._opens, (self._at, end)))]
        closes = self._closes[slice(*np.searchsorted(self._closes, (self._at, end)))]
        log.open(self._length[opens], events.slot[opens], events.input[opens], events.ts[opens])
        log.close(events.slot[closes])
        log.length, log.open_windows = int(self._length[end]), int(self._open[end])
        if (last := int(self._last[end])) >= 0:
            log.input, log.ms = int(events.input[last]), int(events.ts[last])
        self._recorded.feed(events, self._at, end)
        self._at = end
