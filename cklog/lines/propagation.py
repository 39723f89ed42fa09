"""Rollback propagation on the checkpoint graph: the recovery line once more, by the algorithm as printed.

It answers what `recovery_line` answers and shares none of its search, so that each can be held against the
other.
"""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Ints, Mask, Small
from cklog.history.history import History
from cklog.lines.fixpoint import NoConsistentLine
from cklog.zigzag.intervals import Staircases, grouped, staircases


class _CheckpointGraph:
    """The checkpoint graph in arrays: a node c(i, x) per row of `History.label`, shape (rows,).

    A message from I(i, a) to I(j, b) is an edge from the checkpoint before its sending to the one after its receipt:
    c(i, a) → c(j, b + 1). Further edges are c(i, x) → c(i, x + 1). Only the non-dominated messages have an edge; the
    others follow from them. Node v's edges lead to `heads[starts[v] : starts[v + 1]]`; `owner` is the subtask of each
    node, `first` the first node of each subtask, shape (n,).
    """

    def __init__(self, history: History, points: Staircases) -> None:
        rows = int(history.first[-1])
        first = history.first.astype(np.int32)
        # The rows that have a next one in their subtask: all but the newest of each.
        local = np.setdiff1d(np.arange(rows, dtype=np.int32), first[1:] - 1, assume_unique=True)
        tail = np.concatenate([first[history.src[points.channel]] + points.send, local])
        head = np.concatenate([first[history.dst[points.channel]] + points.receive + 1, local + 1])
        self.starts, self.heads = grouped(tail, head, rows)
        self.owner: Ints = np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))
        self.first: Ints = history.first[:-1]

    def successors(self, nodes: Ints | Small) -> Small:
        """Return the heads of all edges out of `nodes`, repeated as often as edges lead there.

        E.g. of nodes 0 and 2, with starts [0, 2, 2, 3] and heads [4, 5, 6]: [4, 5, 6].
        """
        starts = self.starts[nodes].astype(np.int64)
        count = self.starts[nodes + 1] - starts
        ahead = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # 0, 1, … within each node's edges
        found: Small = self.heads[np.repeat(starts, count) + ahead]
        return found


class _Marking:
    """The checkpoints marked so far, shape (rows,), and those whose edges have been followed.

    `lowest` is the first marked checkpoint of every subtask, shape (n,); one past the newest if none is marked.
    """

    def __init__(self, graph: _CheckpointGraph, newest: Ints) -> None:
        self.graph = graph
        self.marked: Mask = np.zeros(len(graph.owner), np.bool_)
        self.followed: Mask = np.zeros(len(graph.owner), np.bool_)
        self.lowest: Ints = newest + 1

    def mark_reachable(self, roots: Ints) -> None:
        """Mark every node that a path of at least one edge leads to from one of `roots`."""
        frontier: Ints | Small = roots[~self.followed[roots]]
        while len(frontier):
            self.followed[frontier] = True
            heads = self.graph.successors(frontier)
            new = np.unique(heads[~self.marked[heads]])
            self.marked[new] = True
            owner = self.graph.owner[new]
            np.minimum.at(self.lowest, owner, new - self.graph.first[owner])
            frontier = new[~self.followed[new]]


def rollback_propagation(history: History, start: Ints | None = None) -> Ints:
    """Return the latest consistent line at or before `start`, by CheckMate's Algorithm 1 [1]_.

    The root set begins as `start`. Mark every checkpoint that is strictly reachable from a member of the root
    set; replace each marked member by the last unmarked checkpoint before it; again, until no member is
    marked. Marks stay, so every edge is followed once.

    Parameters
    ----------
    history : checkpoints of n subtasks with watermarks on c channels
    start : newest allowed checkpoint per subtask (indices), shape (n,); default `history.newest`

    Returns
    -------
    array of int, shape (n,) : as `recovery_line`

    Raises
    ------
    NoConsistentLine : as `recovery_line`

    Notes
    -----
    O(rows + pairs) and some n per replacement of the root set.

    References
    ----------
    .. [1] G. Siachamis et al., "CheckMate: Evaluating Checkpointing Protocols for Streaming Dataflows",
       ICDE 2024.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> h.label_of(rollback_propagation(h)).tolist()
    [5, 0]
    """
    root = (history.newest if start is None else start).astype(np.int64)
    points = staircases(history)
    graph = _CheckpointGraph(history, points)
    marking = _Marking(graph, history.newest)
    while True:
        marking.mark_reachable(graph.first + root)
        unmarked = np.minimum(root, np.maximum(marking.lowest - 1, 0))
        if np.array_equal(unmarked, root):
            break
        root = unmarked
    _refuse_marked_initials(history, points, root)
    return root


def _refuse_marked_initials(history: History, points: Staircases, root: Ints) -> None:
    """Raise where what `root`, shape (n,), undoes was received before an initial state: no checkpoint is left then.

    The error names the first such channel.
    """
    before = points.receive < 0
    channel, send = points.channel[before], points.send[before]
    undone = channel[send >= root[history.src[channel]]]
    if len(undone):
        raise NoConsistentLine(int(undone[0]))
