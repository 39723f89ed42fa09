"""Zigzag paths: the shortest chain of messages that ties one checkpoint to another, or to itself.

A zigzag path leads from checkpoint C(i, x) to C(j, y) if its first message is sent after C(i, x), each further one
in the interval in which the one before it was received or later (even if earlier within that interval), and the
last is received before C(j, y) [1]_. A line that holds both makes one of the messages an orphan; a checkpoint with
a zigzag path to itself (a Z-cycle) is in no line at all.

.. [1] R. Netzer, J. Xu, "Necessary and sufficient conditions for consistent global snapshots", IEEE Trans. Parallel
   and Distributed Systems 6(2), 1995.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints, Mask, Small, Tiny
from cklog.history.history import History
from cklog.history.watermarks import UNBOUNDED
from cklog.zigzag.intervals import Staircases, staircases


@dataclass(frozen=True, slots=True)
class Hop:
    """A message of a zigzag path: sent in interval `send` of its channel's sender, received in interval `receive`.

    Intervals are indices (interval x follows checkpoint x; -1 precedes the initial state); `seq` is None if the
    message that the damaged log must have held is not known.
    """

    channel: int
    seq: int | None
    send: int
    receive: int


class Zigzags:
    """Shortest zigzag paths of a history, each found by a breadth-first search over messages.

    Whoever reaches interval b of a subtask reaches all later ones, so the lowest interval reached says it all, and
    of a channel's messages only the first non-dominated one sent there or later matters: a level of the search is
    one binary search over the channels of the subtasks that were just reached further back.
    """

    def __init__(self, history: History, points: Staircases | None = None) -> None:
        self._history = history
        self._points = staircases(history) if points is None else points
        self._low, self._high = self._points.at[:-1], self._points.at[1:]
        self._out, self._out_at = self._by_end(history.src)
        self._into, self._into_at = self._by_end(history.dst)

    def _by_end(self, end: Ints) -> tuple[Ints, Ints]:
        """Sort the channels that have messages by the subtask at one end, `end` (c,).

        Returns
        -------
        order : the channels, shape (channels with messages,)
        starts : those of subtask i are `order[starts[i] : starts[i + 1]]`, shape (n + 1,)
        """
        order = np.argsort(end, kind="stable")
        order = order[self._high[order] > self._low[order]]
        return order, np.searchsorted(end[order], np.arange(len(self._history.subtasks) + 1))

    def cycle(self, subtask: int, checkpoint: int) -> list[Hop] | None:
        """Return the shortest zigzag path from a checkpoint to itself; None if there is none (not useless).

        Examples
        --------
        >>> from cklog.history.history import history_of
        >>> ping_pong = history_of(
        ...     {"a/0": [1], "b/0": [1]},
        ...     {"a/0->b/0": [0, 0], "b/0->a/0": [0, 1]},
        ...     {"a/0->b/0": [0, 1], "b/0->a/0": [0, 1]},
        ... )
        >>> Zigzags(ping_pong).cycle(0, 1)
        [Hop(channel=0, seq=0, send=1, receive=0), Hop(channel=1, seq=0, send=0, receive=0)]
        """
        return self.path((subtask, checkpoint), (subtask, checkpoint))

    def path(self, start: tuple[int, int], end: tuple[int, int]) -> list[Hop] | None:
        """Return the shortest zigzag path between two checkpoints (subtask, index); None if there is none.

        A path that reaches back before an initial state ends there: with that message undone nothing is left to
        restart from.
        """
        lowest = np.full(len(self._history.subtasks), np.iinfo(np.int64).max)
        moved = np.array([start[0]])
        lowest[moved] = start[1]
        levels: list[dict[int, int]] = []
        while len(moved):
            subtasks, points = self._next(lowest, moved)
            levels.append(dict(zip(subtasks.tolist(), points.tolist(), strict=True)))
            lowest[subtasks] = self._points.receive[points]
            if end[0] in levels[-1] and lowest[end[0]] < end[1]:
                return self._walk_back(levels, end[0])
            beyond = subtasks[lowest[subtasks] < 0]
            if len(beyond):
                return self._walk_back(levels, int(beyond[0]))
            moved = subtasks
        return None

    def path_from_any(self, starts: Mask, end: tuple[int, int]) -> list[Hop] | None:
        """Return the shortest zigzag path to checkpoint `end` from a row of `starts`; None if there is none.

        The same search the other way round: whoever is reached from interval b is reached from all earlier ones.
        """
        history = self._history
        last = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), -1))  # start at or before each row
        highest = np.full(len(history.subtasks), -1)
        moved = np.array([end[0]])
        highest[moved] = end[1] - 1
        levels: list[dict[int, int]] = []
        while len(moved):
            subtasks, points = self._before(highest, moved)
            levels.append(dict(zip(subtasks.tolist(), points.tolist(), strict=True)))
            highest[subtasks] = self._points.send[points]
            there = subtasks[last[history.first[subtasks] + highest[subtasks]] >= history.first[subtasks]]
            if len(there):
                return self._walk_forward(levels, int(there[0]))
            moved = subtasks
        return None

    def _next(self, lowest: Ints, moved: Ints) -> tuple[Ints, Ints]:
        """Follow one more message from the subtasks that moved: which subtasks are reached further back by it?

        `lowest` (n,) are the lowest intervals reached so far. Returns subtasks, and for each the pair of the staircases
        that its message is of; shapes (k,).
        """
        channel = _of_each(self._out, self._out_at, moved)
        sender, receiver = self._history.src[channel], self._history.dst[channel]
        point = first_at_least(self._points.send, self._low[channel], self._high[channel], lowest[sender])
        there = point < self._high[channel]
        point, receiver, channel = point[there], receiver[there], channel[there]
        reached = self._points.receive[point]
        return _least_by_subtask(receiver, reached, lowest, point, channel)

    def _before(self, highest: Ints, moved: Ints) -> tuple[Ints, Ints]:
        """Go one more message back from the subtasks that moved: from which subtasks, and how late, does it lead there?

        `highest` (n,) are the highest intervals known so far to lead to the end. Returns as `_next`.
        """
        channel = _of_each(self._into, self._into_at, moved)
        sender, receiver = self._history.src[channel], self._history.dst[channel]
        limit = highest[receiver] + 1
        point = first_at_least(self._points.receive, self._low[channel], self._high[channel], limit) - 1
        there = point >= self._low[channel]
        point, sender, channel = point[there], sender[there], channel[there]
        return _least_by_subtask(sender, -self._points.send[point], -highest, point, channel)

    def _walk_back(self, levels: list[dict[int, int]], end: int) -> list[Hop]:
        """Return the messages that led to subtask `end` in the last level, first to last.

        Each level holds, by subtask, the pair of the staircases by which it was reached.
        """
        hops: list[Hop] = []
        for level in reversed(levels):
            hop = self.hop(level[end])
            hops.append(hop)
            end = int(self._history.src[hop.channel])
        return hops[::-1]

    def _walk_forward(self, levels: list[dict[int, int]], start: int) -> list[Hop]:
        """Return the messages from subtask `start`, which the last level reached, first to last."""
        hops: list[Hop] = []
        for level in reversed(levels):
            hops.append(self.hop(level[start]))
            start = int(self._history.dst[hops[-1].channel])
        return hops

    def hop(self, point: int) -> Hop:
        """Return the message of a pair of the staircases."""
        channel, send, receive = self._points.channel_of(point), self._points.send[point], self._points.receive[point]
        received = int(self._history.received[self._history.received_at[channel] + int(receive) + 1])
        return Hop(channel, None if received == UNBOUNDED else received - 1, int(send), int(receive))


def _of_each(channels: Ints, at: Ints, subtasks: Ints) -> Ints:
    """Return the channels of each of `subtasks`, one after another; those of i are `channels[at[i] : at[i + 1]]`.

    E.g. channels [7, 4, 9], at [0, 2, 3] and subtasks [1, 0] give [9, 7, 4].
    """
    count = at[subtasks + 1] - at[subtasks]
    ahead = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    chosen: Ints = channels[np.repeat(at[subtasks], count) + ahead]
    return chosen


def _least_by_subtask(
    subtask: Ints, reached: Ints | Small | Tiny, known: Ints, point: Ints, channel: Ints
) -> tuple[Ints, Ints]:
    """Choose for each subtask the candidate that reaches least, and less than is known; of several the first channel.

    Candidates have shape (q,), `known` (n,). Returns subtasks and the candidates' points, shape (k,). E.g. subtasks
    [0, 0, 1] that reach [3, 2, 5], with 4 and 5 known: subtask 0 by the second candidate.
    """
    less = reached < known[subtask]
    subtask, reached, point, channel = subtask[less], reached[less], point[less], channel[less]
    order = np.lexsort((channel, reached, subtask))
    found, first = np.unique(subtask[order], return_index=True)
    return found, point[order][first]
