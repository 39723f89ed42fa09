"""Rounds of coordinated checkpoints with aligned markers, along an execution that had none.

A marker goes behind what was sent before it, so that it is received right after the last of these messages; on a
channel that is silent then, as late as what others sent to the receiver at that time. From the first marker of a round
to the last a subtask takes nothing from the channels whose marker has come: this is its stall. It checkpoints when the
last one has come, and sends markers on. How a stall delays everything behind it is not followed up.

On a cycle of channels a subtask would wait for a marker that only its own checkpoint can send.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np

from cklog.arrays.types import Ints
from cklog.protocols.choice.execution import ReplayedRun
from cklog.protocols.choice.placed import Placed, steps_before


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Coordinated rounds: the checkpoints, when each round began and was complete (ms), and the stalls.

    `stalled_ms` : over all subtasks and rounds, the time from a marker to the checkpoint, as a mean over the channels
        into the subtask
    `postponed` : messages that came on a channel behind its marker and before the checkpoint
    """

    checkpoints: Placed
    began: Ints
    complete: Ints
    stalled_ms: float
    postponed: int


def cycle_of(execution: ReplayedRun) -> tuple[str, ...]:
    """Return the subtasks of a cycle of channels, () if there is none."""
    graph: dict[int, set[int]] = {i: set() for i in range(len(execution.subtasks))}
    for a, b in zip(execution.src.tolist(), execution.dst.tolist(), strict=True):
        graph[b].add(a)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple(str(execution.subtasks[i]) for i in error.args[1])
    return ()


def rounds_along(execution: ReplayedRun, interval_ms: float) -> Rounds:
    """Return the rounds that begin every `interval_ms`, or when the one before is complete if that takes longer."""
    view = _Channels.of(execution)
    begin, end = execution.span
    began: list[int] = []
    taken: list[Ints] = []
    stalled, postponed = 0.0, 0
    at = begin + interval_ms
    while at <= end:
        times, waited, late = view.round(int(at))
        if int(times.max()) > end:
            break
        began.append(int(at))
        taken.append(times)
        stalled, postponed = stalled + waited, postponed + late
        at = max(at + interval_ms, float(times.max()))
    moments = np.array(taken, np.int64).reshape(-1, len(execution.subtasks))
    checkpoints = Placed(
        before=tuple(steps_before(execution, i, moments[:, i]) for i in range(moments.shape[1])),
        time=tuple(moments[:, i] for i in range(moments.shape[1])),
        forced=tuple(np.zeros(len(moments), np.bool_) for _ in range(moments.shape[1])),
    )
    complete = moments.max(axis=1, initial=0)
    return Rounds(checkpoints, np.array(began, np.int64), complete, stalled, postponed)


@dataclass(frozen=True, slots=True, eq=False)
class _Channels:
    """The messages of each channel by when they were sent and received, and subtasks in an order for markers.

    `sent`, `received` : ms by channel, in the order of sending, never falling; what is on its way when the run ends is
        received after it
    `heard` : by subtask the (sent, received) times of all that it took, by sending, `received` never falling
    """

    execution: ReplayedRun
    order: list[int]
    into: list[list[int]]
    sent: list[Ints]
    received: list[Ints]
    heard: list[tuple[Ints, Ints]]
    fastest: Ints

    @classmethod
    def of(cls, execution: ReplayedRun) -> _Channels:
        graph: dict[int, set[int]] = {i: set() for i in range(len(execution.subtasks))}
        into: list[list[int]] = [[] for _ in execution.subtasks]
        for k, (a, b) in enumerate(zip(execution.src.tolist(), execution.dst.tolist(), strict=True)):
            graph[b].add(a)
            into[b].append(k)
        end = execution.span[1]
        receipts = np.flatnonzero(execution.receives & (execution.sent_by >= 0))
        come = np.full(len(execution.owner), -1)
        come[execution.sent_by[receipts]] = execution.time[receipts]
        sends = np.flatnonzero(~execution.receives)
        sends = sends[np.lexsort((execution.number[sends], execution.channel[sends]))]
        cut = np.searchsorted(execution.channel[sends], np.arange(1, len(execution.channels)))
        sent = [execution.time[rows] for rows in np.split(sends, cut)]
        received = [_come(come[rows], end + 1) for rows in np.split(sends, cut)]
        fastest = [int((r - s).min(initial=end)) if len(s) else 0 for s, r in zip(sent, received, strict=True)]
        heard = []
        for channels in into:
            one = np.concatenate([np.zeros(0, np.int64), *(sent[k] for k in channels)])
            other = np.concatenate([np.zeros(0, np.int64), *(received[k] for k in channels)])
            by = np.argsort(one, kind="stable")
            heard.append((one[by], np.maximum.accumulate(other[by]) if len(by) else other))
        return cls(
            execution,
            [*TopologicalSorter(graph).static_order()],
            into,
            sent,
            received,
            heard,
            np.maximum(np.array(fastest, np.int64), 0),
        )

    def round(self, at: int) -> tuple[Ints, float, int]:
        """Return when each subtask checkpoints in the round that begins at `at`, stalls (ms), and messages held up."""
        times = np.full(len(self.into), at)
        stalled, postponed = 0.0, 0
        for i in self.order:
            if not self.into[i]:
                continue
            markers = [self._marker(k, int(times[self.execution.src[k]])) for k in self.into[i]]
            times[i] = max(markers)
            stalled += sum(int(times[i]) - marker for marker in markers) / len(markers)
            for k, marker in zip(self.into[i], markers, strict=True):
                low, high = np.searchsorted(self.received[k], [marker, int(times[i])], "right").tolist()
                postponed += high - low
        return times, stalled, postponed

    def _marker(self, k: int, sent: int) -> int:
        """Return when the marker that is sent at a moment on a channel comes."""
        before = int(np.searchsorted(self.sent[k], sent, "right"))
        last = int(self.received[k][before - 1]) if before else 0
        all_sent, all_received = self.heard[int(self.execution.dst[k])]
        others = int(np.searchsorted(all_sent, sent, "right"))
        beside = int(all_received[others - 1]) if others else 0
        return max(sent + int(self.fastest[k]), last, beside)


def _come(times: Ints, later: int) -> Ints:
    """Return when each message had come, and all before it; -1 in `times`: it never did.

    >>> _come(np.array([3, -1, 5, 4, -1]), 9).tolist()
    [3, 3, 5, 5, 9]
    """
    found = times.copy()
    there = np.flatnonzero(found >= 0)
    found[int(there[-1]) + 1 if len(there) else 0 :] = later
    found = np.maximum.accumulate(found)
    return found
