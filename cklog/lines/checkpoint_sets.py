"""Which checkpoints are good for nothing, and in which sense: four sets that are often taken for one another.

*useless*: on a Z-cycle, so in no consistent line, now or ever. *Rolled past*: newer than the line of this failure.
*In no consistent set of stored checkpoints*: exactly the union of the useless ones and those that the failure of
every subtask rolls past. *Obsolete*: useless, or in the line of no future failure; what a line may need is the line of
some single subtask's failure, so only those checkpoints must be kept [1]_. All below the line of total failure are
obsolete; a rolled-past one need not be.

.. [1] Y.-M. Wang, P.-Y. Chung, I.-J. Lin, W. K. Fuchs, "Checkpoint space reclamation for uncoordinated
   checkpointing in message-passing systems", IEEE Trans. Parallel and Distributed Systems 6(5), 1995.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.arrays.digraph import reached, strong_components
from cklog.arrays.types import Ints, Mask
from cklog.history.history import History
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.zigzag.intervals import interval_graph


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointSets:
    """The sets as masks over the rows of `History.label`, False for current states; shape (first[n],) each.

    `total_line` is the line if every subtask fails, shape (n,); -1 throughout if there is none, because initial states
    contradict each other.
    """

    stored: Mask
    useless: Mask
    rolled_past: Mask
    unusable: Mask
    obsolete: Mask
    total_line: Ints


def checkpoint_sets(history: History, line: Ints, on_cycles: Mask) -> CheckpointSets:
    """Return the sets for a history and the line of this failure, shape (n,).

    `on_cycles` are the rows on a Z-cycle of what happened, shape (first[n],), whatever has failed.
    Initial states are stored checkpoints here as everywhere: they are obsolete once no failure can lead there.
    """
    stored = history.label >= 0
    total = _total_line(history)
    on_cycles = on_cycles & stored
    unusable = on_cycles | (newer_than(history, total) & stored)
    return CheckpointSets(
        stored=stored,
        useless=on_cycles,
        rolled_past=newer_than(history, line) & stored,
        unusable=unusable,
        obsolete=obsolete(history) | on_cycles,
        total_line=total,
    )


def _total_line(history: History) -> Ints:
    """Find the line if every subtask fails, shape (n,); -1 throughout if there is none.

    There may be none although survivors leave a line for this failure.
    """
    try:
        return recovery_line(history, newest_stored(history))
    except NoConsistentLine:
        return np.full(len(history.subtasks), -1)


def newest_stored(history: History) -> Ints:
    """Return the newest checkpoint of each subtask that a failure of it leaves, shape (n,)."""
    stored: Ints = history.newest - history.survivor
    return stored


def newer_than(history: History, line: Ints) -> Mask:
    """Return the rows above `line`, shape (n,), current states among them; shape (first[n],)."""
    newer: Mask = np.arange(len(history.label)) > (history.first[:-1] + line)[owners(history)]
    return newer


def owners(history: History) -> Ints:
    """Return the index of the subtask of each row of `History.label`, shape (first[n],)."""
    return np.repeat(np.arange(len(history.subtasks)), np.diff(history.first))


def obsolete(history: History) -> Mask:
    """Return the stored checkpoints that are in the line of no future failure.

    Returns
    -------
    array of bool, shape (first[n],) : False for current states

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [1, 2], "b/0": [1]}, {"a/0->b/0": [0, 4, 9]}, {"a/0->b/0": [0, 6]})
    >>> obsolete(h).tolist()  # a/0@2 and b/0@1 go together; a/0@1 would do with b/0@0, but nothing leads there
    [True, True, False, True, False]
    """
    found: Mask = (needing_failure(history) < 0) & (history.label >= 0)
    return found


def needing_failure(history: History) -> Ints:
    """Return for each checkpoint a subtask whose failure alone goes back to it, -1 if there is none.

    The line of a failure of i alone holds, of each subtask that an undone interval reaches, the checkpoint before
    the lowest interval reached; of the others their current state. What those lines hold is all that is needed:
    future messages enter current or later intervals only, so future failures undo unions of what is undone now.
    Two subtasks whose newest intervals undo each other have one line.

    Returns
    -------
    array, shape (first[n],) : of several subtasks the first one, or another of its group

    Notes
    -----
    One breadth-first search per group of such subtasks: O(n (rows + pairs)) at worst, O(rows + pairs) if all undo
    each other.
    """
    graph = interval_graph(history, history.first[:-1])
    component = strong_components(graph)
    volatile = history.first[:-1] + newest_stored(history)
    needing = np.full(len(history.label) + 1, -1)  # one place more, for subtasks that a failure does not reach
    _, firsts = np.unique(component[volatile], return_index=True)
    members = sorted(firsts.tolist(), reverse=True)
    for member, undone in zip(members, reached(graph, volatile[members].tolist()), strict=True):
        rows = undone[undone < len(history.label)]  # without the node for "before checkpoint 0"
        lowest = np.full(len(history.subtasks), len(history.label))
        np.minimum.at(lowest, np.searchsorted(history.first, rows, "right") - 1, rows)
        needing[lowest] = member  # row r is the interval after checkpoint r, so that is the checkpoint to go back to
    return needing[:-1]
