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

from cklog.history import History, Ints
from cklog.intervals import Staircases, channel_bounds, first_at_least, staircases
from cklog.watermarks import UNBOUNDED


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
        bounds = channel_bounds(history, self._points)
        self._low, self._high = bounds[:-1], bounds[1:]
        order = np.argsort(history.src, kind="stable")
        self._out = order[self._high[order] > self._low[order]]
        self._out_at = np.searchsorted(history.src[self._out], np.arange(len(history.subtasks) + 1))

    def cycle(self, subtask: int, checkpoint: int) -> list[Hop] | None:
        """Return the shortest zigzag path from a checkpoint to itself; None if there is none (not useless).

        Examples
        --------
        >>> from cklog.history import history_of
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

    def _next(self, lowest: Ints, moved: Ints) -> tuple[Ints, Ints]:
        """The subtasks that one more message reaches further back, and the point of that message for each."""
        count = self._out_at[moved + 1] - self._out_at[moved]
        ahead = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        channel = self._out[np.repeat(self._out_at[moved], count) + ahead]
        sender, receiver = self._history.src[channel], self._history.dst[channel]
        high = self._high[channel]
        point = first_at_least(self._points.send, self._low[channel], high, lowest[sender])
        there = point < high
        point, receiver, channel = point[there], receiver[there], channel[there]
        reached = self._points.receive[point]
        further = reached < lowest[receiver]
        point, receiver, channel, reached = point[further], receiver[further], channel[further], reached[further]
        order = np.lexsort((channel, reached, receiver))  # the furthest back, of these the first channel
        subtasks, best = np.unique(receiver[order], return_index=True)
        return subtasks, point[order][best]

    def _walk_back(self, levels: list[dict[int, int]], end: int) -> list[Hop]:
        """The messages that led to the last level's reach of subtask `end`, first to last."""
        hops: list[Hop] = []
        for level in reversed(levels):
            hop = self._hop(level[end])
            hops.append(hop)
            end = int(self._history.src[hop.channel])
        return hops[::-1]

    def _hop(self, point: int) -> Hop:
        channel, send, receive = (int(column[point]) for column in self._columns)
        received = int(self._history.received[self._history.received_at[channel] + receive + 1])
        return Hop(channel, None if received == UNBOUNDED else received - 1, send, receive)

    @property
    def _columns(self) -> tuple[Ints, Ints, Ints]:
        return self._points.channel, self._points.send, self._points.receive  # type: ignore[return-value]
