"""How far each subtask goes back: rollback distance in checkpoints, time and messages, and domino depth."""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.lines.fixpoint import forced
from cklog.model.lines import RollbackDistance


def rollback_distances(
    history: History, line: Ints, failure_time: int | None, depth: Ints | None = None
) -> tuple[RollbackDistance, ...]:
    """Return the distance of every subtask from its newest checkpoint, or current state, to `line`.

    Parameters
    ----------
    failure_time : ms; None: no time is known
    depth : from `domino_depths`, shape (n,)
    """
    rows = history.first[:-1] + line
    newest = history.newest
    stored = newest - history.survivor  # a survivor that keeps a stored checkpoint has lost no stored one
    checkpoints = np.maximum(stored - line, 0)
    kept = history.survivor & (line == newest)
    n = len(history.subtasks)
    received = _per_subtask(history.received_of(newest) - history.received_of(line), history.dst, n)
    sent = _per_subtask(history.sent_of(newest) - history.sent_of(line), history.src, n)
    time = history.time[rows]
    return tuple(
        RollbackDistance(
            *_ends(history, i),
            checkpoints=int(checkpoints[i]),
            time_ms=_since(failure_time, int(time[i]), bool(kept[i])),
            received=int(received[i]),
            sent=int(sent[i]),
            depth=None if depth is None else int(depth[i]),
        )
        for i in range(n)
    )


def _ends(history: History, i: int) -> tuple[str, int]:
    return history.subtasks[i].operator, history.subtasks[i].subtask


def _per_subtask(undone: Ints, owner: Ints, n: int) -> Ints:
    """Messages undone by subtask; nothing of a damaged channel whose watermark is not known."""
    known = np.where((undone >= 0) & (undone < np.iinfo(np.int64).max // 2), undone, 0)
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, known)
    return total


def _since(failure_time: int | None, time: int, kept: bool) -> int | None:
    if kept:
        return 0
    return None if failure_time is None or time < 0 else failure_time - time


def domino_depths(history: History, start: Ints) -> Ints:
    """Return for each subtask the fewest orphan messages on a chain from a failure to where it ends; 0: none.

    In each round every subtask with orphan messages goes back at once, so a chain costs one round per message.

    Notes
    -----
    O(greatest depth · active channels · log rows): much more than the line alone if a domino is deep.

    Examples
    --------
    >>> from cklog.history.arrays import history_of
    >>> h = history_of(
    ...     {"a/0": [5], "b/0": [10], "c/0": [15]},
    ...     {"a/0->b/0": [0, 2], "b/0->c/0": [0, 3]},
    ...     {"a/0->b/0": [0, 7], "b/0->c/0": [0, 1]},
    ... )
    >>> domino_depths(h, h.newest).tolist()
    [0, 1, 2]
    """
    line, active = start.astype(np.int64), np.arange(len(history.src))
    depth, level = np.zeros(len(line), np.int64), 0
    while True:
        channel, kept = forced(history, line, active)
        if not len(channel):
            return depth
        level += 1
        lower = line.copy()
        np.minimum.at(lower, history.dst[channel], kept)
        depth[lower < line] = level
        active = np.flatnonzero((lower < line)[history.src])
        line = lower
