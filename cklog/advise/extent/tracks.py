"""Tracks of many policies on one log: what each would have checked, and the extent and replay it would have had.

Every policy of `cklog.policies.check_records` renews the oldest footprints, so the footprints of an operator are a
queue: a window enters it with its open record, moves from the front to the end with a check, and leaves it when it
closes. All policies share the open records, of which one copy is kept, and what is open; a policy's own are its checks
and how far the front of its queue has moved:

    front → [ open records k, k + 1, … ][ checks of a round ][ open records since ][ checks of a round ] … ← end

A footprint is current if its window is still open by the open record that it stems from: one comparison, the same
for all policies. A round is therefore cheap for a policy that has nothing to do, and the log needs no memory but for
the longest extent. The figures are those of `cklog.policies.check_records.Ledger`, which keeps one log per policy.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cklog.arrays.types import Ints
from cklog.policies.check_records import CheckPolicy, Targets
from cklog.policies.load_time import LoadTime

_POSITION, _SLOT, _INPUT, _MS, _ORDINAL = range(5)
"""Rows of an array of footprints, a column each."""

_FIRST_ROWS = 1 << 12
_FIRST_STEP = 64  # footprints looked at, at least, for the oldest that are current
_PULLED = 1 << 10  # open records looked at, at least, for the next ones whose windows are open
_SAMPLES_HELD = 1 << 12

_EXACT_BITS = 11
"""Values below 2 ** 11 are counted one by one, larger ones by their 11 leading bits: within 0.1 %."""


class RecoveryCost(NamedTuple):
    """What a recovery takes: the time to load an extent by its records, and s per tuple that is replayed."""

    load: LoadTime
    replay_s: float


class Foreground:
    """The log without checks, as far as it has been read: which windows are open, and their open records.

    Open records have the ordinals 0, 1, 2, …

    Attributes
    ----------
    length, open_windows : records so far, and windows open now; who feeds the log sets both
    input, ms : number and time of the tuple processed last; who feeds the log sets both
    count : open records so far
    opened : ordinal of the open record of the window in each slot, -1 if it is closed; (slots,)
    """

    def __init__(self) -> None:
        self.length, self.open_windows, self.input, self.ms = 0, 0, 0, 0
        self.count = 0
        self.opened = np.full(_FIRST_ROWS, -1)
        self._base = 0  # ordinal of the first row kept
        self._rows = np.zeros((4, _FIRST_ROWS), np.int64)  # `_POSITION` (in the foreground) to `_MS`

    def open(self, positions: Ints, slots: Ints, inputs: Ints, times_ms: Ints) -> None:
        """Add open records, (records,) each; a window that is open goes on with the newer record."""
        if not len(slots):
            return
        if (short := int(slots.max()) + 1 - len(self.opened)) > 0:
            self.opened = np.concatenate([self.opened, np.full(max(short, len(self.opened)), -1)])
        at = self.count - self._base
        if at + len(slots) > self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.zeros((4, at + len(slots)), np.int64)], axis=1)
        self._rows[:, at : at + len(slots)] = positions, slots, inputs, times_ms
        np.maximum.at(self.opened, slots, np.arange(self.count, self.count + len(slots)))
        self.count += len(slots)

    def close(self, slots: Ints) -> None:
        """Note that the windows in these slots have closed."""
        self.opened[slots] = -1

    def current(self, start: int, end: int, shift: int) -> Ints:
        """Return the open records [start, end) whose windows are open by them, as columns of `Track`, (5, found).

        `shift` checks lie before them in the policy's own log.
        """
        rows = self._rows[:, start - self._base : end - self._base]
        at = np.flatnonzero(self.opened[rows[_SLOT]] == np.arange(start, end))
        found = np.empty((5, len(at)), np.int64)
        found[:_ORDINAL], found[_ORDINAL] = rows[:, at], start + at
        found[_POSITION] += shift
        return found

    def forget(self, before: int) -> None:
        """Give up open records with ordinals below `before`, which are not asked for again."""
        if before - self._base > self._rows.shape[1] // 2:
            self._rows = np.concatenate(
                [self._rows[:, before - self._base :], np.zeros((4, before - self._base), np.int64)], axis=1
            )
            self._base = before


@dataclass(frozen=True, slots=True)
class _Round:
    """Check records written at once, at log position `position` and after `opens` open records.

    `slots` and `ordinals`, (checks,), are those of the footprints that they renew; `input` and `ms` are the number and
    the time of the tuple processed last.
    """

    slots: Ints
    ordinals: Ints
    opens: int
    position: int
    input: int
    ms: int


class Track:
    """What one policy would have written; `tally` holds extent and replay at the ends of its periods.

    `checks` counts the check records so far. The oldest footprints are held *ready*, as columns of shape
    (5, footprints): position in the policy's own log, slot, input, ms, and the ordinal of the open record that they
    stem from. The rest of the queue is pulled in as it is needed.
    """

    def __init__(self, policy: CheckPolicy, cost: RecoveryCost) -> None:
        self.policy = policy
        self.checks = 0
        self.tally = ExtentTally(cost)
        self._ready = np.zeros((5, 0), np.int64)
        self._at = np.zeros(1, np.int64)  # columns of those found last; the front is the first of them
        self._rounds: deque[_Round] = deque()  # not pulled yet
        self._opens = 0  # open records pulled
        self._chosen = 0  # checks in the last round that had any to choose
        self._passed = 0  # checks pulled: they lie before the next open record
        self._front = (-1, -2, 0, 0)  # slot, ordinal, position, input of the oldest footprint; -1: not known

    @property
    def needs(self) -> int:
        """The ordinal of the oldest open record that may still be asked for."""
        return self._opens

    def figures(self, log: Foreground) -> tuple[int, int]:
        """Return q and u (section III.A): records from the oldest footprint to the end, tuples after it; else 0, 0."""
        if not log.open_windows:
            return 0, 0
        slot, ordinal, position, number = self._front
        if slot < 0 or log.opened.item(slot) != ordinal:
            at = int(self._oldest_footprints(log, 1)[0])
            position, slot, number, _, ordinal = self._ready[:, at].tolist()
            self._front = slot, ordinal, position, number
        return log.length + self.checks - position, log.input - number

    def rounds(self, log: Foreground, times: int) -> None:
        """Pass the end of a checkpoint period and of the `times` - 1 periods after it in which nothing came."""
        q, u = self.figures(log)
        while times:
            checks = self._check_round(log, q, u)
            after = self.figures(log) if checks else (q, u)
            repeats = 1 if checks else times  # without a record, what was not worth a check will not be
            self.tally.note(q, u, *after, checks, repeats)
            times, (q, u) = times - repeats, after
            if checks and times and q == log.open_windows and not u:
                self._go_round(log, times)
                return

    def _go_round(self, log: Foreground, times: int) -> None:
        """Pass rounds at once when the last records are the footprints, one each: checks change only their order.

        A target that is not met then cannot be, and each round spends what it may.
        """
        n = log.open_windows
        checks = 0 if self.policy.content(n, 0, n) else min(self.policy.budget, n)
        if self.policy.choose(np.full(checks + 1, n), np.zeros(checks + 1, np.int64), n, 0.0) != checks:
            checks = 0  # costs are weighed, and there is nothing to gain
        self.tally.note(n, 0, n, 0, checks, times)
        if checks:
            # each check moves the front of the queue to its end
            at = np.roll(self._oldest_footprints(log, n), -(checks * times % n))
            in_order = self._ready[:, at]
            self.checks += checks * times
            self._ready, self._at = self._ready[:, :0], np.zeros(1, np.int64)
            self._rounds.clear()
            self._opens, self._passed = log.count, self.checks - n
            self._write(log, in_order[_SLOT], in_order[_ORDINAL], log.length + self.checks - n)

    def _check_round(self, log: Foreground, q: int, u: int) -> int:
        """Write one round of checks, as many as the policy chooses; return how many."""
        n = log.open_windows
        most = min(self.policy.budget, n)
        if most <= 0 or self.policy.content(q, u, n):
            return 0
        length, few = log.length + self.checks, most
        if isinstance(self.policy, Targets):
            few = min(most, 2 * self._chosen + _FIRST_STEP)  # the first number that meets them is what is asked for
        while True:
            at = self._oldest_footprints(log, min(few + 1, n))
            # extent and replay after the k oldest are checked, k = 0, 1, …; after all, the k checks are the extent
            extents = length + np.arange(len(at) + 1) - np.append(self._ready[_POSITION, at], length)
            replays = log.input - np.append(self._ready[_INPUT, at], log.input)
            age_s = (log.ms - int(self._ready[_MS, at[0]])) / 1000
            chosen = self.policy.choose(extents[: few + 1], replays[: few + 1], n, age_s)
            if few == most or chosen < few:
                break
            few = most
        self._chosen = chosen
        if chosen:
            self._at = at[chosen:] if chosen < len(at) else at[-1:] + 1
            self._write(log, self._ready[_SLOT, at[:chosen]], self._ready[_ORDINAL, at[:chosen]], length)
            self.checks += chosen
        return chosen

    def _write(self, log: Foreground, slots: Ints, ordinals: Ints, position: int) -> None:
        """Put checks of footprints, (checks,) slots and ordinals, at the end of the queue."""
        self._rounds.append(
            _Round(slots=slots, ordinals=ordinals, opens=log.count, position=position, input=log.input, ms=log.ms)
        )
        self._front = (-1, -2, 0, 0)

    def _oldest_footprints(self, log: Foreground, wanted: int) -> Ints:
        """Make the `wanted` oldest footprints ready, at most as many as windows are open; return their columns."""
        at = self._current_footprints(log, wanted)
        if len(at) < wanted:
            parts, count = [self._ready[:, at]], len(at)
            while count < 2 * wanted and (self._rounds or self._opens < log.count):  # more than is asked for: copy less
                parts.append(self._pull_footprints(log, wanted))
                count += parts[-1].shape[1]
            self._ready, at = np.concatenate(parts, axis=1), np.arange(wanted)
        self._at = at
        return at

    def _current_footprints(self, log: Foreground, wanted: int) -> Ints:
        """Return the columns of the first `wanted` ready footprints whose windows are open by them, from the front."""
        start, end, step = int(self._at[0]), self._ready.shape[1], max(2 * wanted, _FIRST_STEP)
        found: list[Ints] = []
        while wanted > 0 and start < end:
            rows = self._ready[:, start : start + step]
            found.append(start + np.flatnonzero(log.opened[rows[_SLOT]] == rows[_ORDINAL])[:wanted])
            wanted, start, step = wanted - len(found[-1]), start + step, 2 * step
        return np.concatenate(found) if found else self._at[:0]

    def _pull_footprints(self, log: Foreground, wanted: int) -> Ints:
        """Return the next footprints of the queue: open records up to the next round of checks, or that round.

        As columns, (5, found), without those whose windows are not open by them.
        """
        limit = self._rounds[0].opens if self._rounds else log.count
        if self._opens < limit:
            start, self._opens = self._opens, min(limit, self._opens + max(2 * wanted, _PULLED))
            return log.current(start, self._opens, self._passed)
        written = self._rounds.popleft()
        place = np.flatnonzero(log.opened[written.slots] == written.ordinals)
        found = np.empty((5, len(place)), np.int64)
        found[_POSITION], found[_SLOT] = written.position + place, written.slots[place]
        found[_INPUT], found[_MS], found[_ORDINAL] = written.input, written.ms, written.ordinals[place]
        self._passed += len(written.slots)
        return found


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, 95th percentile (within 0.1 %: of large values the 11 leading bits count) and largest value."""

    mean: float
    p95: int
    max: int


class ExtentTally:
    """Extent and replay just before and just after each round of checks, between which they run nearly straight.

    `periods` and `checks` count what was noted; `cost` gives the recovery times.
    """

    def __init__(self, cost: RecoveryCost) -> None:
        self.cost = cost
        self.periods, self.checks = 0, 0
        self._recovery_max_s = self._load_sum_s = 0.0
        self._held: list[tuple[int, int, int]] = []  # q, u, times seen
        self._sums, self._most = [0, 0], [0, 0]
        self._counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())

    def note(self, q: int, u: int, q_after: int, u_after: int, checks: int, times: int = 1) -> None:
        """Note one round, or several alike: extent and replay before and after it, and its checks."""
        self.periods += times
        self.checks += checks * times
        if checks:
            self._held += ((q, u, times), (q_after, u_after, times))
        else:
            self._held.append((q, u, 2 * times))
        if len(self._held) > _SAMPLES_HELD:
            self._count_held()

    def _count_held(self) -> None:
        """Add what was noted last to the sums and counts."""
        if not self._held:
            return
        samples = np.array(self._held, np.int64)  # (samples, 3): q, u, times seen
        self._held = []
        for i in (0, 1):
            self._sums[i] += int((samples[:, i] * samples[:, 2]).sum())
            self._most[i] = max(self._most[i], int(samples[:, i].max()))
            values, which = np.unique(_leading_bits(samples[:, i]), return_inverse=True)
            seen = np.zeros(len(values), np.int64)
            np.add.at(seen, which, samples[:, 2])
            self._counts[i].update(dict(zip(values.tolist(), seen.tolist(), strict=True)))
        load_s = self.cost.load.seconds(samples[:, 0])
        self._load_sum_s += float((load_s * samples[:, 2]).sum())
        times_s = load_s + samples[:, 1] * self.cost.replay_s
        self._recovery_max_s = max(self._recovery_max_s, float(times_s.max()))

    def extent(self) -> Spread:
        """Return the spread of q, in records."""
        return self._spread(0)

    def replay(self) -> Spread:
        """Return the spread of u, in tuples."""
        return self._spread(1)

    def _spread(self, i: int) -> Spread:
        self._count_held()
        values, seen = zip(*sorted(self._counts[i].items()), strict=True)
        wanted = -(-2 * self.periods * 95 // 100)  # samples up to the percentile, rounded up
        p95 = values[int(np.searchsorted(np.cumsum(seen), wanted))]
        return Spread(self._sums[i] / (2 * self.periods), p95, self._most[i])

    def recovery_s(self) -> tuple[float, float]:
        """Return the mean and the largest recovery time, in s."""
        self._count_held()
        mean = (self._load_sum_s + self._sums[1] * self.cost.replay_s) / (2 * self.periods)
        return mean, self._recovery_max_s


def _leading_bits(values: Ints) -> Ints:
    """Return values with all but their 11 leading bits cleared.

    >>> _leading_bits(np.array([2047, 4097, 1 << 20])).tolist()
    [2047, 4096, 1048576]
    """
    _, exponent = np.frexp(values.astype(np.float64))
    shift = np.maximum(exponent - _EXACT_BITS, 0)
    found: Ints = values >> shift << shift
    return found
