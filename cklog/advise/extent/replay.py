"""One pass over a log that feeds every policy: where checkpoint periods end, and what lies between two ends.

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

import numpy as np

from cklog.advise.extent.scan import QueueEvents
from cklog.advise.extent.tracks import ExtentTally, Foreground, Track
from cklog.arrays.types import Ints
from cklog.policies.check_records import CHECK, Ledger, Targets


class Recorded:
    """The log as it was written: its own checks, and the figures at the ends of periods.

    Checks that end a period are taken for its round: the figures before the round are those before them.
    """

    def __init__(self, load_s: float, replay_s: float) -> None:
        self.tally = ExtentTally(load_s, replay_s)
        self._ledger = Ledger()
        self._before: tuple[int, int] | None = None  # the figures before the checks with which the log ends by now
        self._checks = 0  # since the last end of a period

    def feed(self, events: QueueEvents, start: int, end: int) -> None:
        """Take in records from `start` to `end`."""
        others = np.flatnonzero(~events.dropped[start:end])
        middle = start + int(others[-1]) + 1 if len(others) else start
        if middle > start:
            self._append(events, start, middle)
            self._before = None
        if end > middle:
            self._before = self._before or self._figures()
            self._append(events, middle, end)

    def pass_period(self, times: int) -> None:
        """Here a period ends, and `times` - 1 periods without a record pass."""
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
    """Policies of one checkpoint period CP, in ms."""

    period_ms: float
    tracks: list[Track]
    passed: int = 0  # periods, by recorded time


class PolicyReplay:
    """Feeds a log to groups of policies. The first group decides about the warm-up and when `recorded` is sampled."""

    def __init__(self, groups: Sequence[PolicyGroup], load_s: float, replay_s: float) -> None:
        self._groups = groups
        self._rates = load_s, replay_s
        self.recorded = Recorded(load_s, replay_s)
        self.unchecked = Track(Targets(period_ms=groups[0].period_ms, interval_ms=0), load_s, replay_s)
        self.warm_ms: float | None = None  # from the first record to the end of the warm-up; None: it never ended
        self._log = Foreground()
        self._start_ms: int | None = None

    def run(self, batches: Iterator[QueueEvents]) -> None:
        """Read the whole log."""
        for events in batches:
            if self._start_ms is None:
                self._start_ms = int(events.ts[0])
            self._read(events, self._start_ms)
            self._log.forget(min(track.needs for track in self._all()))

    def _read(self, events: QueueEvents, start_ms: int) -> None:
        feeder = _Feeder(events, self._log, self.recorded)
        for row, number, times in self._ends(events.ts - start_ms):
            feeder.feed(row)
            group = self._groups[number]
            if number == 0:
                self._pass_lead(times)
            for track in group.tracks:
                track.rounds(self._log, times)
            group.passed += times
        feeder.feed(len(events))

    def _ends(self, since_ms: Ints) -> list[tuple[int, int, int]]:
        """Where periods end: the row of the first record after, the group, and how many of its periods end there."""
        found = []
        for number, group in enumerate(self._groups):
            period = np.floor(since_ms / group.period_ms).astype(np.int64)
            ended = np.diff(period, prepend=group.passed)
            rows = np.flatnonzero(ended)
            found += [(row, number, times) for row, times in zip(rows.tolist(), ended[rows].tolist(), strict=True)]
        return sorted(found)

    def _pass_lead(self, times: int) -> None:
        """What is sampled with the first group, and the end of the warm-up."""
        length = self._log.length
        if self.warm_ms is None and length and 2 * self.unchecked.figures(self._log)[0] <= length:
            self.warm_ms = (self._groups[0].passed + 1) * self._groups[0].period_ms
            self.recorded.tally = ExtentTally(*self._rates)
            for track in self._all():
                track.tally = ExtentTally(*self._rates)
        self.recorded.pass_period(times)
        self.unchecked.rounds(self._log, times)

    def _all(self) -> list[Track]:
        return [self.unchecked, *(track for group in self._groups for track in group.tracks)]


class _Feeder:
    """Hands the records of one batch on, a stretch at a time."""

    def __init__(self, events: QueueEvents, log: Foreground, recorded: Recorded) -> None:
        self._events, self._log, self._recorded = events, log, recorded
        kept = ~events.dropped
        self._length = log.length + np.r_[0, np.cumsum(kept)]  # of the foreground before each row, and at the end
        self._open = log.open_windows + np.r_[0, np.cumsum(events.change)]
        self._last = np.maximum.accumulate(np.r_[-1, np.where(kept, np.arange(len(events)), -1)])
        self._opens, self._closes = np.flatnonzero(events.starts), np.flatnonzero(events.change < 0)
        self._at = 0

    def feed(self, end: int) -> None:
        """Records up to row `end`. A slot is not used twice in a batch, so what opens in a stretch opens first."""
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
