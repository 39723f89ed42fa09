"""How far would we have fallen, and when: the line of a total failure at every moment of a history.

An interval is undone by a failure at time t exactly if a path of messages leads to it from some interval that has
not ended at t, that is, before the subtask's next checkpoint. So the latest end among the intervals that reach it
tells, for all moments at once, whether it is kept: one pass instead of one search per moment. Later messages do
not disturb that, as they are received in intervals that end later still. For the failure of *some* subtasks this
does not hold: what the others had received by then matters, and a log cut at t (`--as-of`) must be analysed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cklog.arrays.order import worst_of_stretches
from cklog.arrays.types import Ints, Mask
from cklog.errors import NotFound
from cklog.history.history import History
from cklog.lines.entries import protocol_of
from cklog.lines.rounds import HistoryRounds, completed_at, consistent_rounds, rounds_of
from cklog.lines.search import no_initial_line
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.records.reading import RecordReader
from cklog.zigzag.intervals import greatest_before

NEVER = np.iinfo(np.int64).max
"""The end of an interval that has not ended, and the time of a checkpoint that nobody knows to have been taken."""

MOMENTS = 1_000
"""Moments in an answer; of a longer history the worst one of each stretch."""


@dataclass(frozen=True, slots=True)
class FailureAt:
    """A failure of everything at `time` (ms), right after the checkpoints of that time were taken.

    Of `stored` checkpoints (initial states not counted) it would have rolled `rolled_past` past; `subtasks_back`
    subtasks would have fallen below their newest checkpoint, `farthest` by most, `distance` checkpoints; `lost_ms`
    is the most work that a subtask would have lost, from its checkpoint in the line on (None: it is not known of one).
    `at_initial` had checkpoints and would have fallen to their initial state.
    """

    time: int
    stored: int
    rolled_past: int
    subtasks_back: int
    distance: int
    farthest: str | None
    lost_ms: int | None
    at_initial: int


@dataclass(frozen=True, slots=True)
class FailuresOverTime:
    """Failures at the moments of a history, in order.

    `times` counts the different moments, of which `moments` may hold the worst only; `worst` is the one that rolls most
    checkpoints past. `total_dominoes` counts those that leave nothing but initial states.
    """

    times: int
    worst: FailureAt | None
    total_dominoes: int
    moments: tuple[FailureAt, ...]


def failures_answer(reader: RecordReader, question: Question, times: Sequence[int] | None) -> Draft[FailuresOverTime]:
    """Tell what a failure of everything would have cost at `times` (ms), or at every checkpoint time of the history.

    Raises
    ------
    NotFound : no checkpoint has a time
    """
    evidence = reader.evidence_of(replace(question, everything=True))
    coordinated = protocol_of(evidence.records) == "coordinated"
    rounds = rounds_of(evidence.records, evidence.built) if coordinated else None
    found = failures_over_time(evidence.history, rounds, times)
    if not found.moments:
        raise NotFound("no checkpoint record has a time: nothing can be said about moments", "see cklog recovery-line")
    if any(moment.rolled_past == moment.stored for moment in found.moments):
        evidence = evidence.joined(no_initial_line(evidence.history))
    return evidence.draft("failures-over-time", found)


def failures_over_time(
    history: History, rounds: HistoryRounds | None = None, at: Sequence[int] | None = None, most: int = MOMENTS
) -> FailuresOverTime:
    """Return what a failure of all subtasks at each checkpoint time of `history`, or at moments `at`, would have cost.

    Parameters
    ----------
    rounds : the job's coordinated rounds, if it restarts from the last complete one, whatever its graph would allow
    at : moments in ms
    most : moments to return; of more the worst one of each stretch

    Notes
    -----
    Checkpoints of unknown time count as taken with the next one of their subtask whose time is known; where times
    decrease, with the latest one before. `total_dominoes` counts the moments (of all `times`) at which some
    checkpoint was stored and none would have been used.

    O((rows + pairs) log rows) for all moments, and O(n) for each one that is given in full.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [1], "b/0": [1, 2]}, {"a/0->b/0": [0, 4]}, {"a/0->b/0": [0, 2, 5]})
    >>> h = replace(h, time=np.array([0, 30, 0, 20, 40]))
    >>> [(m.time, m.rolled_past) for m in failures_over_time(h).moments]
    [(20, 1), (30, 0), (40, 1)]
    """
    taken = taken_at(history)
    stored = (history.label >= 0) & ~_initial_rows(history)
    times = np.unique(taken[stored & (taken < NEVER)] if at is None else np.array(at, np.int64))
    if not len(times):
        return FailuresOverTime(0, None, 0, ())
    kept = kept_since(history, taken) if rounds is None else _kept_since_by_rounds(history, taken, rounds)
    count = np.searchsorted(np.sort(taken[stored]), times, "right")
    used = np.searchsorted(np.sort(kept), times, "right")  # intervals kept = checkpoints on the line, above initial
    rolled = count - used
    chosen = worst_of_stretches(rolled, most)
    newest = _counted(history, taken, times[chosen]) - 1  # the initial state is always there
    line = _counted(history, kept, times[chosen])  # the intervals kept are those below the line
    moments = tuple(_failure_at(history, *found) for found in zip(times[chosen].tolist(), newest, line, strict=True))
    worst = max(moments, key=lambda moment: (moment.rolled_past, -moment.time))
    dominoes = int(np.count_nonzero((used == 0) & (count > 0)))
    return FailuresOverTime(times=len(times), worst=worst, total_dominoes=dominoes, moments=moments)


def taken_at(history: History) -> Ints:
    """Return when each row was there, shape (first[n],): rising within a subtask, `NEVER` for current states.

    An initial state was always there: the least number. E.g. times [0, 30, -1, 20, 40] of one subtask, -1 not known →
    [least, 30, 30, 30, 40].
    """
    taken = np.where((history.time < 0) | (history.label < 0), NEVER, history.time)
    taken[_initial_rows(history)] = np.iinfo(np.int64).min
    for low, high in zip(history.first[:-1].tolist(), history.first[1:].tolist(), strict=True):
        part = taken[low:high]
        # The latest time at or before each row, and where that is not known the first one after it.
        known = np.maximum.accumulate(np.where(part == NEVER, np.iinfo(np.int64).min, part))
        following = np.minimum.accumulate(np.where(part == NEVER, NEVER, known)[::-1])[::-1]
        taken[low:high] = np.where(part == NEVER, following, known)
    return taken


def _initial_rows(history: History) -> Mask:
    """Return which rows are initial states, shape (first[n],)."""
    first = np.zeros(len(history.label), np.bool_)
    first[history.first[:-1]] = True
    return first


def kept_since(history: History, taken: Ints) -> Ints:
    """Return the time from which on no failure undoes the interval after each row; `NEVER` for the last ones.

    `taken` and the result have shape (first[n],).
    """
    end = np.append(taken[1:], NEVER)  # an interval ends with the next checkpoint of its subtask
    end[history.first[1:] - 1] = NEVER
    return greatest_before(history, end)


def _kept_since_by_rounds(history: History, taken: Ints, rounds: HistoryRounds) -> Ints:
    """Return the same where a complete round is the line: when the first round above the interval was complete."""
    complete = rounds.line[consistent_rounds(history, rounds)]
    when = np.append(completed_at(complete, taken, history), NEVER)
    kept = np.full(len(history.label), NEVER)
    for i, (low, high) in enumerate(zip(history.first[:-1].tolist(), history.first[1:].tolist(), strict=True)):
        kept[low:high] = when[np.searchsorted(complete[:, i], np.arange(high - low), "right")]
    return kept


def _counted(history: History, since: Ints, times: Ints) -> Ints:
    """Return how many rows of each subtask are there at each moment, shape (times, n); `since`: (first[n],)."""
    found = np.zeros((len(times), len(history.subtasks)), np.int64)
    for i, (low, high) in enumerate(zip(history.first[:-1].tolist(), history.first[1:].tolist(), strict=True)):
        found[:, i] = np.searchsorted(np.sort(since[low:high]), times, "right")
    return found


def _failure_at(history: History, time: int, newest: Ints, line: Ints) -> FailureAt:
    """Return the cost of a failure at one moment, from the newest row of each subtask and its row in the line."""
    distance = newest - line
    back = np.flatnonzero(distance)
    chosen = history.time[history.first[:-1] + line]
    lost = None if (chosen < 0).any() else int((time - chosen).max(initial=0))
    farthest = int(np.argmax(distance))
    return FailureAt(
        time=time,
        stored=int(newest.sum()),
        rolled_past=int(distance.sum()),
        subtasks_back=len(back),
        distance=int(distance[farthest]),
        farthest=str(history.subtasks[farthest]) if len(back) else None,
        lost_ms=lost,
        at_initial=int(np.count_nonzero((line == 0) & (newest > 0))),
    )
