"""The checkpoints that protocols without a coordinator take along an execution.

A timer's checkpoints are those of the run, or come at a given interval. What a communication-induced protocol adds are
the checkpoints that it forces before a receipt, by its own rules (`cklog.policies.induced`), with the messages that the
run sent and received. A checkpoint that is added delays nothing here: what it takes is in the costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.history.history import History
from cklog.policies.induced import rules_of
from cklog.protocols.choice.execution import ReplayedRun

_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, spread evenly whatever their number: when the timers of subtasks first fire."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The checkpoints of each subtask: how many of its steps come `before`, when (ms), and whether it was `forced`."""

    before: tuple[Ints, ...]
    time: tuple[Ints, ...]
    forced: tuple[Mask, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """How many checkpoints timers asked for, and how many messages forced."""
        forced = sum(int(mask.sum()) for mask in self.forced)
        return sum(map(len, self.before)) - forced, forced


def timed(execution: ReplayedRun, interval_ms: float | None) -> tuple[tuple[Ints, Ints], ...]:
    """Return the timers' checkpoints of each subtask: those of the run, or every `interval_ms`, not all at once."""
    if interval_ms is None:
        return execution.basic
    begin, end = execution.span
    found = []
    for i in range(len(execution.subtasks)):
        first = begin + interval_ms * ((i * _GOLDEN) % 1 or 1)
        times = np.arange(first, end + 1, interval_ms).astype(np.int64)
        found.append((steps_before(execution, i, times), times))
    return tuple(found)


def steps_before(execution: ReplayedRun, subtask: int, times: Ints) -> Ints:
    """Return how many steps of a subtask came up to each time, shape (times,)."""
    own = execution.time[execution.owner == subtask]
    return np.searchsorted(own, times, "right").astype(np.int64)


def placed(execution: ReplayedRun, protocol: str, basic: tuple[tuple[Ints, Ints], ...]) -> Placed:
    """Return the checkpoints under `unc`, `cic-bcs` or `cic-hmnr`, whose timers take `basic` ones."""
    if protocol == "unc":
        return Placed(
            tuple(before for before, _ in basic),
            tuple(time for _, time in basic),
            tuple(np.zeros(len(before), np.bool_) for before, _ in basic),
        )
    rules = rules_of(protocol, len(execution.subtasks))
    walk = _Walk(rules, basic)
    carried: dict[int, Any] = {}
    heard: dict[int, Any] = {}
    columns = (execution.owner, execution.channel, execution.receives, execution.time, execution.sent_by)
    dst = execution.dst.tolist()
    needed = np.zeros(len(execution.owner), np.bool_)
    needed[execution.sent_by[execution.sent_by >= 0]] = True
    received = needed.tolist()
    for step, (i, k, receives, time, sent_by) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        walk.timers(i)
        if not receives:
            what = rules[i].send(dst[k])
            if received[step]:
                carried[step] = what
        elif sent_by in carried:
            what = carried.pop(sent_by)
            if heard.get(k) is not what:  # of what came on this channel already, rules learn nothing
                if rules[i].forces(what):
                    rules[i].checkpoint(what)
                    walk.force(i, time)
                rules[i].receive(what)
                heard[k] = what
        walk.step(i)
    return walk.end()


class _Walk:
    """Where each subtask is, and which of its timers' checkpoints it has taken."""

    def __init__(self, rules: Sequence[Any], basic: tuple[tuple[Ints, Ints], ...]) -> None:
        self._rules = rules
        self._due = [list(zip(before.tolist(), times.tolist(), strict=True))[::-1] for before, times in basic]
        self._at = [0] * len(basic)
        self._taken: list[list[tuple[int, int, bool]]] = [[] for _ in basic]

    def timers(self, i: int, all_of_them: bool = False) -> None:
        """Take what is due before the next step of a subtask, or all that is left."""
        due = self._due[i]
        while due and (all_of_them or due[-1][0] <= self._at[i]):
            before, time = due.pop()
            self._rules[i].checkpoint()
            self._taken[i].append((before, time, False))

    def force(self, i: int, time: int) -> None:
        """Take a checkpoint before the step that a subtask is at."""
        self._taken[i].append((self._at[i], time, True))

    def step(self, i: int) -> None:
        """Go on by one step."""
        self._at[i] += 1

    def end(self) -> Placed:
        """Take the timers' checkpoints after the last step, and return all."""
        for i in range(len(self._at)):
            self.timers(i, all_of_them=True)
        rows = [np.array(taken, np.int64).reshape(-1, 3).T for taken in self._taken]
        before, time, forced = zip(*rows, strict=True) if rows else ((), (), ())
        return Placed(tuple(before), tuple(time), tuple(mask.astype(np.bool_) for mask in forced))


def history_of_placed(execution: ReplayedRun, checkpoints: Placed, whole: bool) -> History:
    """Return checkpoints along an execution as the analyses take them, all subtasks failed.

    With `whole` what a subtask did after its last checkpoint counts, too, as its current state: uselessness belongs to
    the execution, not to what a failure left of it.
    """
    subtasks = len(execution.subtasks)
    tail = [1] if whole else []
    rows = [len(before) + 1 + len(tail) for before in checkpoints.before]
    steps = np.bincount(execution.owner, minlength=subtasks)
    own = np.empty(len(execution.owner), np.int64)  # each step's place among its subtask's
    order = np.argsort(execution.owner, kind="stable")
    own[order] = np.arange(len(order)) - np.repeat(np.cumsum(steps) - steps, steps)
    cuts = [
        np.concatenate([[0], before, [steps[i]] * len(tail)]).astype(np.int64)
        for i, before in enumerate(checkpoints.before)
    ]
    sent = _marks(execution, own, cuts, execution.src, receives=False)
    received = _marks(execution, own, cuts, execution.dst, receives=True)
    return History(
        subtasks=execution.subtasks,
        channels=execution.channels,
        src=execution.src,
        dst=execution.dst,
        first=_starts(rows),
        label=_joined([np.array([*range(len(before) + 1), *[-1] * len(tail)]) for before in checkpoints.before]),
        time=_joined([np.array([-1, *time.tolist(), *[-1] * len(tail)]) for time in checkpoints.time]),
        sent_at=_starts([len(marks) for marks in sent]),
        received_at=_starts([len(marks) for marks in received]),
        sent=_joined(sent),
        received=_joined(received),
        survivor=np.full(subtasks, whole),
    )


def _marks(execution: ReplayedRun, own: Ints, cuts: list[Ints], ends: Ints, receives: bool) -> list[Ints]:
    """Return the watermark of each channel at each checkpoint of its sender, or receiver.

    What is received out of order counts with the greatest number so far.
    """
    rows = np.flatnonzero(execution.receives == receives)
    order = np.lexsort((own[rows], execution.channel[rows]))
    rows = rows[order]
    at = np.searchsorted(execution.channel[rows], np.arange(len(execution.channels) + 1)).tolist()
    found = []
    for k, (low, high) in enumerate(pairwise(at)):
        mine = rows[low:high]
        reached = np.append(0, np.maximum.accumulate(execution.number[mine]) + 1)
        found.append(reached[np.searchsorted(own[mine], cuts[int(ends[k])])])
    return found


def _starts(lengths: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
