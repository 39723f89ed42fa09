"""When to write check records: the footprints of an output queue, and the policies that renew the oldest.

Continuous eventual checkpointing (Sebepou and Magoutis, DSN 2011) persists the state of an operator as records of
its own output queue: `open` and `check` hold the state of a window, `result` closes it. The newest of them is the
window's *footprint*. Recovery reads back to the oldest footprint of an open window, so a policy renews footprints
from that end (section III.A). Two figures steer it:

    q, the extent : records from the oldest footprint of an open window to the end of the log, 0 if none is open
    u, the replay : input tuples processed after that footprint

With L records in the log and p[0] < p[1] < … the positions of the current footprints, i checks leave
L + i records and p[i] as the oldest footprint, hence q[i] = L + i - p[i]. Nothing has to be tried out: the
figures after every possible number of checks come from one pass over the footprints.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.errors import UsageError
from cklog.policies.load_time import LoadTime

OPEN, CHECK, RESULT, EMIT = range(4)
"""Kinds of records, in the order of the words open, check, result, emit."""


CHECK_COST_US = 2.5
"""Time of a check, in µs, where nobody gives one. The paper states none; this is what its extent of 120,000 records at
Q = 1x implies (Figure 6), to be replaced by a measured one. Nothing else in the paper tells it: Figure 8 tells how long
rounds take, whatever the checks in them cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often checks may be written, and for how long (section III: checkpoint period CP and interval CI).

    Parameters
    ----------
    period_ms : CP, from one round of checks to the next
    interval_ms : CI, the most time that a round may take; less than CP, or no tuple would ever be processed
    cost_us : time that one check takes
    """

    period_ms: float = 100.0
    interval_ms: float = 5.0
    cost_us: float = CHECK_COST_US

    def __post_init__(self) -> None:
        if not self.cost_us > 0:
            raise UsageError(f"a check costs {self.cost_us:g} µs: it must cost some time")
        if not 0 <= self.interval_ms < self.period_ms < math.inf:
            raise UsageError(
                f"checks for {self.interval_ms:g} ms in every {self.period_ms:g} ms leave no time for tuples",
                "the interval CI must be shorter than the period CP",
            )

    @property
    def budget(self) -> int:
        """The most checks that one round can write.

        >>> Pace(interval_ms=0.3, cost_us=0.1).budget
        3000
        """
        return math.floor(self.interval_ms * 1000 / self.cost_us + 1e-9)  # 0.3 ms / 0.1 µs is 2999.9999 in floats


@dataclass(frozen=True, slots=True)
class Targets(Pace):
    """Check the oldest window if q > Q or u > U (section III.A); stop once both are met or the round is over.

    Parameters
    ----------
    q : Q in records, None for no target
    u : U in tuples, None for no target
    q_windows : Q as a multiple of the windows open at the time (Figure 6); with `q` too, the smaller one counts
    """

    q: float | None = None
    u: float | None = None
    q_windows: float | None = None

    def __post_init__(self) -> None:
        Pace.__post_init__(self)  # slots make a new class, which super() does not know
        for name, target in (("Q", self.q), ("U", self.u), ("Q in windows", self.q_windows)):
            if target is not None and not target >= 0:
                raise UsageError(f"the target {name} is {target:g}: it cannot be met")

    def choose(self, q: Ints, u: Ints, open_windows: int, age_s: float) -> int:
        """Return the smallest number of checks that meets both targets, else all; `q[i]`, `u[i]` after i checks.

        >>> Targets(q=9).choose(np.array([12, 11, 9, 9]), np.array([5, 4, 2, 0]), 3, 1.0)
        2
        """
        met = (q <= self.most_records(open_windows)) & (u <= _or_infinity(self.u))
        return int(met.argmax()) if met.any() else len(q) - 1

    def content(self, q: int, u: int, open_windows: int) -> bool:
        """Return whether no check is due, as far as the figures of this moment tell."""
        return q <= self.most_records(open_windows) and u <= _or_infinity(self.u)

    def most_records(self, open_windows: int) -> float:
        """Return Q, in records, while so many windows are open."""
        by_windows = math.inf if self.q_windows is None else self.q_windows * open_windows
        return min(_or_infinity(self.q), by_windows)


@dataclass(frozen=True, slots=True)
class CostBenefit(Pace):
    """Write as many checks as pay for themselves (section III.A names this policy and leaves it open).

    Each round writes the number of checks i, within the budget, that maximises the seconds saved

        (H / MTBF) * (load(q[0]) - load(q[i]) + replay * (u[0] - u[i])) - cost * i

    and the fewest of them if several do. Its terms:

    * `load(q)` is the time to read and load an eventual checkpoint of q records, and `replay * u` the time to
      process u tuples again: together the recovery time of a crash now. Their differences are what i checks take
      off it; q[i] counts the i new records, so the longer log is paid for here.
    * H, the age of the oldest footprint in seconds, is how long the gain is expected to last. Without the checks
      that footprint would stay the oldest for as long again as it has already (Lindy's law: what is known of a slow
      window is that it has been slow).
    * H / MTBF is the number of crashes expected meanwhile.
    * `cost * i` is the processing time that the checks take away, for certain.

    Parameters
    ----------
    mtbf_s : mean time between failures of the operator, s
    load : time to read and load an extent, by its records
    replay_s_per_tuple : time to process one tuple again, s
    """

    mtbf_s: float
    load: LoadTime
    replay_s_per_tuple: float

    def __post_init__(self) -> None:
        Pace.__post_init__(self)  # slots make a new class, which super() does not know
        if not self.mtbf_s > 0:
            raise UsageError(f"a mean time between failures of {self.mtbf_s:g} s: it must be positive")
        if not self.replay_s_per_tuple >= 0:
            raise UsageError("the time per tuple replayed cannot be negative")

    def choose(self, q: Ints, u: Ints, open_windows: int, age_s: float) -> int:
        """Return the number of checks that saves most; `q[i]`, `u[i]` after i checks, oldest footprint of `age_s`."""
        return int(self.saved_s(q, u, age_s).argmax())

    def content(self, q: int, u: int, open_windows: int) -> bool:
        """Return False: only `choose` can tell, as a single check may gain nothing, and many of them a lot."""
        return False

    def saved_s(self, q: Ints, u: Ints, age_s: float) -> NDArray[np.float64]:
        """Return the seconds saved by 0, 1, 2, … checks; `q[i]`, `u[i]` after i checks, result of their shape."""
        load = self.load.seconds(q)
        sooner = load[0] - load + self.replay_s_per_tuple * (u[0] - u)
        saved: NDArray[np.float64] = age_s / self.mtbf_s * sooner - self.cost_us / 1e6 * np.arange(len(q))
        return saved


@dataclass(frozen=True, slots=True)
class WholeState(Pace):
    """Save every open window at the end of each period: checkpoint roll-backward, the paper's rival (section II.A).

    The operator stands still until all of them are saved, however long `interval_ms` is. A recovery loads the newest
    checkpoint and replays the tuples after it.
    """

    @property
    def budget(self) -> int:
        """The most windows that one round saves: all."""
        return sys.maxsize

    def choose(self, q: Ints, u: Ints, open_windows: int, age_s: float) -> int:
        """Return the number of open windows."""
        return len(q) - 1

    def content(self, q: int, u: int, open_windows: int) -> bool:
        """Return whether there is nothing to save."""
        return not open_windows


CheckPolicy = Targets | CostBenefit
"""A policy says how many of the oldest footprints are renewed in a round."""

SavePolicy = CheckPolicy | WholeState
"""What the simulator runs: the policies of CEC, and its rival."""


def _or_infinity(target: float | None) -> float:
    """Return a target as a number: none is never missed."""
    return math.inf if target is None else target


class Ledger:
    """The footprints in one operator's output queue, of which only the extent is kept in memory.

    Records are appended in log order, as arrays. A footprint at position p is current if and only if
    `newest[window] == p`; the oldest current one only moves forward. Every record is looked at a bounded number of
    times per round of checks that reaches it, and a log of any length needs memory for its longest extent.

    Windows are integer codes from 0. A code may be used again once its window has closed.

    >>> ledger = Ledger()
    >>> ledger.append(np.array([OPEN, OPEN, RESULT]), np.array([0, 1, 0]), np.array([1, 2, 3]), np.array([1, 2, 3]))
    >>> ledger.extent(), ledger.replay(), ledger.open_windows
    (2, 1, 1)
    >>> ledger.check(Targets(q=1))
    array([1])
    >>> ledger.extent(), ledger.replay()
    (1, 0)
    """

    def __init__(self) -> None:
        self.length = 0  # records in the log
        self.open_windows = 0
        self.input = -1  # the tuple last processed
        self.time_ms = 0  # its timestamp
        self._oldest = 0  # log position: no footprint before it is current
        self._kept_from = 0  # log position of the first row of `_rows`
        self._rows = np.zeros((3, _FIRST_ROWS), np.int64)  # window, input, ms of each record kept
        self._newest = np.full(_FIRST_ROWS, -1)  # position of the footprint per window code, -1: not open

    def append(self, kinds: NDArray[np.integer], windows: Ints, inputs: Ints, times_ms: Ints) -> None:
        """Add records to the log's end: shape (records,) each; the window of an `emit` record is ignored."""
        if not len(kinds):
            return
        self._make_room(len(kinds))
        at = self.length - self._kept_from
        self._rows[:, at : at + len(kinds)] = windows, inputs, times_ms
        positions = np.arange(self.length, self.length + len(kinds))
        self.length += len(kinds)
        self.advance(int(inputs[-1]), int(times_ms[-1]))
        if (kinds == EMIT).any():
            own = kinds != EMIT
            kinds, windows, positions = kinds[own], windows[own], positions[own]
        self._leave_footprints(kinds, windows, positions)

    def _leave_footprints(self, kinds: NDArray[np.integer], windows: Ints, positions: Ints) -> None:
        """Note the newest record of each window: a result closes it, another is its footprint; shape (records,) each.

        E.g. windows [0, 1, 0] at positions [5, 6, 7] → footprints 7 and 6.
        """
        if len(windows) and (short := int(windows.max()) + 1 - len(self._newest)) > 0:
            more = np.full(max(short, len(self._newest)), -1)
            self._newest = np.concatenate([self._newest, more])
        before = self._newest[windows]
        np.maximum.at(self._newest, windows, positions)  # plain assignment leaves open which duplicate wins
        last = self._newest[windows] == positions  # one record per window
        closing = last & (kinds == RESULT)
        self._newest[windows[closing]] = -1
        were_open = np.count_nonzero(before[last] >= 0)
        self.open_windows += int(np.count_nonzero(last) - np.count_nonzero(closing) - were_open)

    def advance(self, input: int, time_ms: int) -> None:
        """Note that tuples up to number `input`, with timestamp `time_ms`, have been processed, logged or not."""
        self.input, self.time_ms = input, time_ms

    def extent(self) -> int:
        """Return q: records from the oldest footprint of an open window to the end of the log; 0 if none is open."""
        q, _ = self._after_checks(self._oldest_footprints(1))
        return int(q[0])

    def replay(self) -> int:
        """Return u: tuples processed after the oldest footprint of an open window; 0 if none is open."""
        _, u = self._after_checks(self._oldest_footprints(1))
        return int(u[0])

    def check(self, policy: SavePolicy, budget: int | None = None) -> Ints:
        """Write one round of checks as `policy` chooses; return the windows checked, in log order.

        The checks carry the number and timestamp of the tuple last processed. `budget` is the most that are written
        (default: that of the policy), and no window gets two in a round, because no state changes in between.
        """
        most = min(policy.budget if budget is None else budget, self.open_windows)
        if most <= 0 or policy.content(self.extent(), self.replay(), self.open_windows):
            return np.zeros(0, np.int64)
        oldest = self._oldest_footprints(most + 1)
        age_s = (self.time_ms - int(self._rows[_TIME, oldest[0] - self._kept_from])) / 1000
        q, u = self._after_checks(oldest)
        chosen = policy.choose(q[: most + 1], u[: most + 1], self.open_windows, age_s)
        windows: Ints = self._rows[_WINDOW, oldest[:chosen] - self._kept_from]
        inputs, times = np.full(chosen, self.input), np.full(chosen, self.time_ms)
        self.append(np.full(chosen, CHECK), windows, inputs, times)
        return windows

    def _after_checks(self, oldest: Ints) -> tuple[Ints, Ints]:
        """Return q and u after 0, 1, 2, … checks, given the positions of the oldest footprints; shape (positions + 1,).

        E.g. with 10 records in the log and `oldest` [4, 7]: q = [6, 4, 2], as each check adds a record. After as many
        checks as there are positions, the first of these checks is the oldest footprint: the last entry is right only
        where `oldest` holds every open window.
        """
        q = self.length + np.arange(len(oldest) + 1) - np.append(oldest, self.length)
        inputs = np.append(self._rows[_INPUT, oldest - self._kept_from], self.input)
        return q, self.input - inputs

    def _oldest_footprints(self, wanted: int) -> Ints:
        """Return log positions of the `wanted` oldest footprints of open windows, ascending; of all if fewer are open.

        A record is a current footprint if its window's newest one is the record itself. The search goes on in steps
        that double, from `_oldest`, before which there is none.
        """
        wanted = min(wanted, self.open_windows)
        found: list[Ints] = [np.zeros(0, np.int64)]
        count, at, step = 0, self._oldest, _FIRST_STEP
        while count < wanted:
            end = min(at + step, self.length)
            windows = self._rows[_WINDOW, at - self._kept_from : end - self._kept_from]
            found.append(at + np.flatnonzero(self._newest[windows] == np.arange(at, end)))
            count += len(found[-1])
            at, step = end, 2 * step
        positions = np.concatenate(found)[:wanted]
        self._oldest = int(positions[0]) if wanted else self._oldest
        return positions

    def _make_room(self, records: int) -> None:
        """Let `_rows` take that many more records: forget those before the extent, and grow if they are not many."""
        kept = self.length - self._kept_from
        if kept + records <= self._rows.shape[1]:
            return
        self._oldest = self.length - self.extent()
        rows = self._rows[:, self._oldest - self._kept_from : kept]
        self._kept_from = self._oldest
        size = max(_FIRST_ROWS, 2 * (rows.shape[1] + records))  # half of it free: each row moves O(1) times
        self._rows = np.zeros((3, size), np.int64)
        self._rows[:, : rows.shape[1]] = rows


_WINDOW, _INPUT, _TIME = range(3)  # rows of Ledger._rows

_FIRST_ROWS = 1024

_FIRST_STEP = 256  # records looked at for the next footprint, doubled until it is found
