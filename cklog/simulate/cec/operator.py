"""An operator under continuous eventual checkpointing, simulated: the aggregate of the paper's evaluation.

Sebepou and Magoutis (DSN 2011), section IV: a source sends items at a fixed rate, an aggregate sums their prices in
one window per item, and writes a record when a window opens (`open`) and when it closes (`result`). At the end of
every checkpoint period CP it spends up to CI on `check` records, as the policy chooses (section III.A).

The clock counts simulated milliseconds. Checks and tuples share one thread, so tuple i, counted from 0, is processed

    at = i * 1000 / rate + the time spent on all checks before it

after the start: the operator falls behind its source by what the checks cost, as in Figure 8. Windows therefore stay
open longer the more is checked, and nothing else about the response time is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.errors import UsageError
from cklog.policies.check_records import CHECK, OPEN, RESULT, Ledger, SavePolicy, WholeState
from cklog.simulate.cec.tuples import Workload, draw

RECORD_BYTES = 100
"""Bytes of a tuple, and of every record of the queue (section IV)."""

WARM = 0.4
"""Part of the tuples before the averages begin: until then the extent still grows from the empty log."""

_TUPLES_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class OutputRecords:
    """Records of the output queue in log order, as columns of shape (records,).

    `kind` : open, check or result (`cklog.policies.check_records`)
    `number` : of the window among those of its key (count windows), or its start in ms (time windows)
    `ts` : when it was written, ms since the epoch
    `open_windows` : how many are open after it
    `total`, `count` : the window's state after the tuple
    `input` : the number of the tuple
    `opened` : the `ts` of the window's open record
    """

    kind: NDArray[np.uint8]
    key: Ints
    number: Ints
    ts: Ints
    open_windows: Ints
    total: Ints
    count: Ints
    input: Ints
    opened: Ints

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class RunStretch:
    """A stretch of the run: tuples `first`, `first` + 1, … with timestamps `ts` (ms), and the records they made.

    Checks are a stretch without tuples. `pos` is the log position of the first record.
    """

    first: int
    ts: Ints
    pos: int
    records: OutputRecords


@dataclass(frozen=True, slots=True)
class Statistics:
    """A run in figures. Averages are over the periods after the first 40 % of the tuples, None if there are none.

    `seconds` are simulated; `open_windows`, `extent` (records) and `replay` (tuples) are means of their values just
    before and just after each round of checks, between which they run nearly straight; `extent_max` is the largest;
    `response_s` is the mean time from opening to closure of the windows that closed, in simulated seconds. With whole
    checkpoints (`WholeState`) the extent is what a recovery loads: the windows of the newest one; and no open record is
    written.
    """

    tuples: int
    seconds: float
    opens: int
    checks: int
    results: int
    bytes: int
    periods: int
    open_windows: float | None
    extent: float | None
    extent_max: int | None
    replay: float | None
    checks_per_second: float | None
    response_s: float | None


class OpenWindows:
    """The open windows of the operator, as arrays over keys; at most one window per key is open."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._seen = np.zeros(workload.keys, np.int64)  # tuples of the key; of its open window, for time windows
        self._total = np.zeros(workload.keys, np.int64)  # sum in the open window
        self._opened = np.zeros(workload.keys, np.int64)  # ts of its open record
        self._start = 0  # of the open time windows, ms
        self._open_keys: list[Ints] = []  # with an open time window
        self.open_windows = 0

    def feed(self, keys: Ints, prices: Ints, ts: Ints, first: int) -> OutputRecords:
        """Process tuples `first`, `first` + 1, …, and return the records they make.

        Parameters
        ----------
        keys, prices, ts : of the tuples, shape (tuples,); `ts` in ms, never falling
        """
        size = self._workload.window_ms
        if size is None:
            return self._records_of(keys, prices, ts, first)
        cuts = (np.flatnonzero(np.diff(ts // size)) + 1).tolist()  # the first tuples of new time windows
        made = []
        for i, j in zip([0, *cuts], [*cuts, len(ts)], strict=True):
            start = int(ts[i]) // size * size
            if start != self._start:
                made.append(self._close_all(int(ts[i]), first + i))
                self._start = start
            made.append(self._records_of(keys[i:j], prices[i:j], ts[i:j], first + i))
            self._open_keys.append(made[-1].key)  # all of them open records
        return _in_one(made)

    def footprints(self, keys: Ints, ts: int, input: int) -> OutputRecords:
        """Return check records of the open windows of `keys`, at time `ts` (ms) and tuple `input`."""
        return self._records_now(CHECK, keys, ts, input, np.full(len(keys), self.open_windows))

    def _close_all(self, ts: int, input: int) -> OutputRecords:
        """The windows that tuple `input` finds past their end: closed in the order of their keys."""
        keys = np.sort(np.concatenate([np.zeros(0, np.int64), *self._open_keys]))
        made = self._records_now(RESULT, keys, ts, input, np.arange(len(keys))[::-1])
        self._seen[keys] = self._total[keys] = 0
        self._open_keys, self.open_windows = [], 0
        return made

    def _records_now(self, kind: int, keys: Ints, ts: int, input: int, open_windows: Ints) -> OutputRecords:
        """Records of the windows of `keys`, shape (n,), as they are now; `open_windows` after each, shape (n,)."""
        n = len(keys)
        count, number = self._seen[keys], np.full(n, self._start)
        if self._workload.count is not None:
            number, count = np.divmod(count, self._workload.count)
        return OutputRecords(
            kind=np.full(n, kind, np.uint8),
            key=keys,
            number=number,
            ts=np.full(n, ts),
            open_windows=open_windows,
            total=self._total[keys],
            count=count,
            input=np.full(n, input),
            opened=self._opened[keys],
        )

    def _records_of(self, keys: Ints, prices: Ints, ts: Ints, first: int) -> OutputRecords:
        """Process tuples none of which finds a window past its end; `keys`, `prices`, `ts` of shape (tuples,).

        Columns of all tuples come first, then the rows that are records: a tuple that opens a window and closes it
        makes two. E.g. windows of 2 tuples and keys [7, 7, 8]: tuple 0 opens, tuple 1 closes, tuple 2 opens.
        """
        seen, total, opened = self._accumulate_windows(keys, prices, ts)
        if self._workload.count is None:
            number, before, closes = np.full(len(keys), self._start), seen, np.zeros(len(keys), np.bool_)
        else:
            number, before = np.divmod(seen, self._workload.count)
            closes = before == self._workload.count - 1
        opens = before == 0
        row = np.repeat(np.arange(len(keys)), opens.astype(np.int64) + closes)
        second = np.diff(row, prepend=-1) == 0  # a window of one tuple opens and closes in two records
        is_open = opens[row] & ~second
        kind = np.where(is_open, OPEN, RESULT).astype(np.uint8)
        left = self.open_windows + np.cumsum(np.where(is_open, 1, -1))
        self.open_windows = int(left[-1]) if len(left) else self.open_windows
        return OutputRecords(
            kind=kind,
            key=keys[row],
            number=number[row],
            ts=ts[row],
            open_windows=left,
            total=total[row],
            count=before[row] + 1,
            input=first + row,
            opened=opened[row],
        )

    def _accumulate_windows(self, keys: Ints, prices: Ints, ts: Ints) -> tuple[Ints, Ints, Ints]:
        """Per tuple, in order of arrival: tuples of its key before it, its window's sum with it, and its opening.

        Sorted by key, the tuples of one key are a run; where one of them opens a window a new run begins. Inside
        a run sums are differences of one cumulative sum.
        """
        order = np.argsort(keys, kind="stable")
        key, price = keys[order], prices[order]
        run = np.flatnonzero(np.diff(key, prepend=-1))
        length = np.diff(run, append=len(key))
        seen = self._seen[key] + np.arange(len(key)) - np.repeat(run, length)
        opens = (seen if self._workload.count is None else seen % self._workload.count) == 0
        begins = opens.copy()
        begins[run] = True
        at = np.flatnonzero(begins)
        lengths = np.diff(at, append=len(key))
        paid = np.cumsum(price)
        carried = np.where(opens[at], 0, self._total[key[at]]) - (paid[at] - price[at])
        total = paid + np.repeat(carried, lengths)
        opened = np.repeat(np.where(opens[at], ts[order[at]], self._opened[key[at]]), lengths)
        last = run + length - 1
        self._seen[key[run]] += length
        self._total[key[run]], self._opened[key[run]] = total[last], opened[last]
        arrival = np.empty_like(order)
        arrival[order] = np.arange(len(key))
        return seen[arrival], total[arrival], opened[arrival]


class Simulation:
    """One run of `workload` under `policy`; iterate over `steps`, then read `statistics`.

    The memory it takes is that of the keys and the extent, whatever the length of the run.
    """

    def __init__(self, workload: Workload, policy: SavePolicy) -> None:
        self._workload = workload
        self._policy = policy
        self._aggregate = OpenWindows(workload)
        self._ledger = Ledger()
        self._spent_ms = 0.0
        self._averages = _Averages(math.ceil(WARM * workload.tuples))
        self._whole = isinstance(policy, WholeState)
        self._saved, self._saved_at = 0, 0  # windows of the newest whole checkpoint, and the tuples before it
        self._done = 0

    def steps(self) -> Iterator[RunStretch]:
        """Yield the run from its start, in log order."""
        period, tuples = 0, self._workload.tuples
        while self._done < tuples:
            period += 1
            due = math.ceil((period * self._policy.period_ms - self._spent_ms) * self._workload.rate / 1000)
            for start in range(self._done, min(due, tuples), _TUPLES_AT_ONCE):
                yield self._process_tuples(start, min(start + _TUPLES_AT_ONCE, due, tuples))
            if due <= tuples:
                yield self._check_round()

    def _process_tuples(self, start: int, end: int) -> RunStretch:
        """Tuples from `start` to `end`."""
        ts = self._timestamps_of(np.arange(start, end))
        keys, prices = draw(self._workload, start, end)
        records = self._aggregate.feed(keys, prices, ts, start)
        step = RunStretch(start, ts, self._ledger.length, records)
        self._ledger.append(records.kind, records.key, records.input, records.ts)
        self._ledger.advance(end - 1, int(ts[-1]))
        self._averages.records(records)
        self._done = end
        return step

    def _check_round(self) -> RunStretch:
        """The checks at the end of a period."""
        before, pos = self._moment_now(), self._ledger.length
        keys = self._ledger.check(self._policy)
        spent_ms = len(keys) * self._policy.cost_us / 1000
        if spent_ms >= self._policy.period_ms:
            raise UsageError(
                f"to save {len(keys)} windows takes {spent_ms:.3g} ms of every {self._policy.period_ms:g} ms",
                "the period CP must be longer: no time is left for tuples",
            )
        self._spent_ms += spent_ms
        self._saved, self._saved_at = len(keys), self._done
        records = self._aggregate.footprints(keys, self._ledger.time_ms, self._ledger.input)
        self._averages.records(records)
        self._averages.period(self._done, before, self._moment_now(), len(keys))
        return RunStretch(self._done, np.zeros(0, np.int64), pos, records)

    def _moment_now(self) -> _Moment:
        if self._whole:
            return _Moment(self._ledger.open_windows, self._saved, self._done - self._saved_at)
        return _Moment(self._ledger.open_windows, self._ledger.extent(), self._ledger.replay())

    def _timestamps_of(self, inputs: Ints) -> Ints:
        at = inputs * (1000 / self._workload.rate) + self._spent_ms
        ts: Ints = self._workload.start_ms + np.floor(at).astype(np.int64)
        return ts

    def statistics(self) -> Statistics:
        """Return the figures of the run so far."""
        seconds = self._done / self._workload.rate + self._spent_ms / 1000
        found = self._averages.statistics(self._done, seconds, self._policy.period_ms)
        return replace(found, bytes=found.bytes - RECORD_BYTES * found.opens) if self._whole else found


class _Moment(NamedTuple):
    """Figures at one moment of a run: open windows, extent (records) and replay (tuples)."""

    open_windows: int
    extent: int
    replay: int


class _Averages:
    """Sums over the run and over its part after the first `warm` tuples."""

    def __init__(self, warm: int) -> None:
        self._warm = warm
        self._kinds = np.zeros(3, np.int64)
        self._response_ms, self._closed = 0, 0
        self._figures = np.zeros(3, np.int64)  # sums of the figures of `_Moment`, of two moments per period
        self._periods, self._checks, self._extent_max = 0, 0, 0

    def records(self, records: OutputRecords) -> None:
        """Add records that were written."""
        self._kinds += np.bincount(records.kind, minlength=3)
        closed = (records.kind == RESULT) & (records.input >= self._warm)
        self._closed += int(np.count_nonzero(closed))
        self._response_ms += int((records.ts - records.opened)[closed].sum())

    def period(self, done: int, before: _Moment, after: _Moment, checks: int) -> None:
        """Add the moments before and after a round of checks, `done` tuples after the start."""
        if done < self._warm:
            return
        self._periods += 1
        self._figures += np.add(before, after)
        self._extent_max = max(self._extent_max, before.extent, after.extent)
        self._checks += checks

    def statistics(self, tuples: int, seconds: float, period_ms: float) -> Statistics:
        open_windows, extent, replay = self._figures / (2 * self._periods) if self._periods else [None] * 3
        opens, checks, results = self._kinds.tolist()
        return Statistics(
            tuples=tuples,
            seconds=seconds,
            opens=opens,
            checks=checks,
            results=results,
            bytes=RECORD_BYTES * (opens + checks + results),
            periods=self._periods,
            open_windows=None if open_windows is None else float(open_windows),
            extent=None if extent is None else float(extent),
            extent_max=self._extent_max if self._periods else None,
            replay=None if replay is None else float(replay),
            checks_per_second=self._checks / (self._periods * period_ms / 1000) if self._periods else None,
            response_s=self._response_ms / 1000 / self._closed if self._closed else None,
        )


def simulate(workload: Workload, policy: SavePolicy) -> Statistics:
    """Simulate a run without keeping its log, and return its figures."""
    run = Simulation(workload, policy)
    for _ in run.steps():
        pass
    return run.statistics()


def _in_one(parts: list[OutputRecords]) -> OutputRecords:
    names = [field.name for field in fields(OutputRecords)]
    return OutputRecords(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
