"""Which checkpoint of every subtask to restore: the latest consistent line, and the earliest one through checkpoints.

Both are fixpoints over watermarks. They are unique because consistent lines are closed under the componentwise
maximum and minimum [1]_.

.. [1] Y.-M. Wang, "Consistent global checkpoints that contain a given set of local checkpoints", IEEE Trans.
   Computers 46(4), 1997.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cklog.arrays.digraph import reached
from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints
from cklog.errors import Picklable
from cklog.history.history import History
from cklog.zigzag.intervals import interval_graph

ROUND_LIMIT = 64
"""Rounds of rollbacks after which the search goes over to the graph of intervals."""

_EVERYTHING = np.iinfo(np.int64).max


class NoConsistentLine(Picklable, Exception):
    """No line is consistent: on `channel` (an index) an initial state has received what has not been sent."""

    def __init__(self, channel: int) -> None:
        super().__init__(f"channel {channel}: the initial state received what no usable checkpoint has sent")
        self.channel = channel


def recovery_line(history: History, start: Ints | None = None, round_limit: int = ROUND_LIMIT) -> Ints:
    """Return the latest consistent line at or before `start`.

    The greatest fixpoint of: a receiver keeps a checkpoint only while it has received nothing that its
    sender's chosen checkpoint has not sent (no orphan message). Consistent lines are closed under the
    maximum, so the latest is unique, whatever the order of the rollbacks. Equals rollback propagation [1]_
    [2]_.

    Parameters
    ----------
    history : checkpoints of n subtasks with watermarks on c channels
    start : newest allowed checkpoint per subtask (indices), shape (n,); default `history.newest`
    round_limit : rounds before the search goes over to the graph of intervals

    Returns
    -------
    array of int, shape (n,) : checkpoint index per subtask; `history.newest` of a survivor is its current
        state, in which it keeps running and everything that it has sent stays sent

    Raises
    ------
    NoConsistentLine : even checkpoint 0 of some subtask has received orphans; names the first such channel

    Notes
    -----
    Each round looks at the channels out of the subtasks that moved in the last one: O(channels · log rows).
    The number of rounds is the domino depth, the most orphan messages on a shortest chain from a failure to a
    rollback. A deep domino is cheaper as one breadth-first search: O(rows + pairs).

    References
    ----------
    .. [1] Y.-M. Wang, "Consistent global checkpoints that contain a given set of local checkpoints",
       IEEE Trans. Computers 46(4), 1997.
    .. [2] G. Siachamis et al., "CheckMate: Evaluating Checkpointing Protocols for Streaming Dataflows",
       ICDE 2024, Algorithm 1.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> h.label_of(recovery_line(h)).tolist()  # b/0@10 received messages 2 to 6, which a/0@5 has not sent
    [5, 0]
    """
    line = (history.newest if start is None else start).astype(np.int64)
    active = np.arange(len(history.src))
    for _ in range(round_limit):
        channel, kept = forced(history, line, active)
        if not len(channel):
            break
        lower = line.copy()
        np.minimum.at(lower, history.dst[channel], kept)
        active = np.flatnonzero((lower < line)[history.src])
        line = lower
    else:
        line = _line_below_undone(history, line)
    _refuse_initial_orphans(history, line)
    return line


def earliest_with(history: History, chosen: Mapping[int, int]) -> Ints:
    """Return the earliest consistent line that holds `chosen` (subtask index → checkpoint index).

    The least fixpoint of: whatever a checkpoint on the line has received, the sender's has sent. The caller must
    compare it with `chosen` and `history.newest`, as it is also returned where there is no such line.

    Returns
    -------
    array of int, shape (n,) : above `chosen` where no consistent line holds that checkpoint; one more than
        `history.newest` where only the lost current state of a subtask had sent what is needed

    Notes
    -----
    Each round looks at the channels into the subtasks that moved in the last one: O(channels · log rows).

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": [0, 3, 9]}, {"a/0->b/0": [0, 2, 5]})
    >>> earliest_with(h, {1: 1}).tolist(), earliest_with(h, {1: 2}).tolist()
    ([1, 1], [2, 2])
    """
    line = np.zeros(len(history.subtasks), np.int64)
    line[list(chosen)] = list(chosen.values())
    active = np.arange(len(history.src))
    while len(active):
        at = history.sent_at[active]
        receiver, sender = history.dst[active], history.src[active]
        held = history.received[history.received_at[active] + np.minimum(line[receiver], history.newest[receiver])]
        stored = at + history.newest[sender] + 1 - history.survivor[sender]  # a current state has sent everything
        need = first_at_least(history.sent, at, stored, held.astype(np.int64)) - at
        higher = line.copy()
        np.maximum.at(higher, sender, need)
        active = np.flatnonzero((higher > line)[history.dst])
        line = higher
    return line


def forced(history: History, line: Ints, channels: Ints) -> tuple[Ints, Ints]:
    """Return those of `channels` with orphan messages across `line` and where each sends its receiver.

    Returns
    -------
    channel : shape (m,), in the order of `channels`
    kept : latest checkpoint of the receiver without an orphan on that channel alone; 0 if even the initial
        state has some. A receiver that is at its initial state already is not listed.
    """
    limit = sent_limit(history, line, channels)
    at, chosen = history.received_at[channels], line[history.dst[channels]]
    orphaned = np.flatnonzero((history.received[at + chosen] > limit) & (chosen > 0))  # shape (m,), like all below
    at, chosen, limit = at[orphaned], chosen[orphaned], limit[orphaned]
    too_late = first_at_least(history.received, at, at + chosen, limit + 1)  # limit < received: no overflow
    return channels[orphaned], np.maximum(too_late - at - 1, 0)


def sent_limit(history: History, line: Ints, channels: Ints) -> Ints:
    """Return what the sender of each of `channels` has sent at `line`, shape of `channels`.

    The greatest number there is for a sender that keeps running: nothing that it sent is undone.
    """
    sender = history.src[channels]
    running = history.survivor[sender] & (line[sender] == history.newest[sender])
    sent = history.sent[history.sent_at[channels] + line[sender]].astype(np.int64)
    return np.where(running, _EVERYTHING, sent)


def _line_below_undone(history: History, line: Ints) -> Ints:
    """Return the line below all intervals that a path leads to from one after `line`, shape (n,) like `line`.

    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> _line_below_undone(h, np.array([1, 1])).tolist()
    [1, 0]
    """
    graph = interval_graph(history, history.first[:-1] + line, earliest=0)  # where a rollback ends, orphans or not
    undone = np.zeros(graph.nodes, np.int64)  # 1 for each row of `history.label` if the interval after it is undone
    [found] = reached(graph, [graph.nodes - 1])
    undone[found] = 1
    # Whatever follows an undone interval is undone, so their number per subtask tells the lowest.
    kept: Ints = np.diff(history.first) - np.add.reduceat(undone[:-1], history.first[:-1])
    return kept


def _refuse_initial_orphans(history: History, line: Ints) -> None:
    """Raise `NoConsistentLine` where an initial state has received what its sender has not sent at `line`."""
    channels = np.arange(len(history.src))
    initial = history.received[history.received_at[:-1]]
    orphaned = np.flatnonzero(initial > sent_limit(history, line, channels))
    if len(orphaned):
        raise NoConsistentLine(int(orphaned[0]))
