"""Lines through given checkpoints: the latest and the earliest one, and the zigzag path if there is none.

A set of checkpoints is on a common line exactly if no zigzag path leads from one of them to another or to itself
[1]_; then the consistent lines that hold it have a greatest and a least member [2]_.

.. [1] R. Netzer, J. Xu, "Necessary and sufficient conditions for consistent global snapshots", IEEE Trans. Parallel
   and Distributed Systems 6(2), 1995.
.. [2] Y.-M. Wang, "Consistent global checkpoints that contain a given set of local checkpoints", IEEE Trans.
   Computers 46(4), 1997.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.zigzag.paths import Hop, Zigzags


def earliest_with(history: History, chosen: Mapping[int, int]) -> Ints:
    """Return the earliest consistent line that holds `chosen` (subtask index → checkpoint index).

    The least fixpoint of: whatever a checkpoint on the line has received, the sender's has sent. It is on a line
    with stored checkpoints (and current states of survivors) only if it says so:

    Returns
    -------
    array of int, shape (n,) : above `chosen` where no consistent line holds that checkpoint; one more than
        `history.newest` where only the lost current state of a subtask had sent what is needed

    Notes
    -----
    Each round looks at the channels into the subtasks that moved in the last one: O(channels · log rows).

    Examples
    --------
    >>> from cklog.history.arrays import history_of
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
        need = first_at_least(history.sent, at, stored, held) - at
        higher = line.copy()
        np.maximum.at(higher, sender, need)
        active = np.flatnonzero((higher > line)[history.dst])
        line = higher
    return line


def forbidding(history: History, chosen: Mapping[int, int]) -> tuple[int, int, list[Hop]] | None:
    """Return a shortest zigzag path from one of `chosen` to another or itself: (from, to, messages); None: none.

    Of paths of equal length the first pair's, by subtask.
    """
    search = Zigzags(history)
    pairs = [(i, j) for i in sorted(chosen) for j in sorted(chosen)]
    paths = [(i, j, search.path((i, chosen[i]), (j, chosen[j]))) for i, j in pairs]
    found = [(i, j, path) for i, j, path in paths if path is not None]
    return min(found, key=lambda path: len(path[2]), default=None)
