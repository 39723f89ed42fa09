"""Ways down a forest whose nodes stand on earlier ones: where each way ends, and sums along it, for all nodes at once.

Most checkpoints stand on the one right before them, so nodes in a row are first taken together as runs, along which
sums are differences of running sums. Only the heads of runs are followed by pointer doubling: O(n + h · log h) for h
runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints

UNKNOWN = -1
"""The sum along a way on which some value is not known."""

TOO_LARGE = -2
"""The sum along a way that does not fit into 63 bits."""

_MOST = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Where the way of each of n nodes ends, and how many nodes lie on it beside the end, shape (n,) each."""

    below: Ints
    end: Ints
    length: Ints
    _head: Ints
    _levels: tuple[tuple[Ints, Ints], ...]

    def sums(self, values: Ints) -> Ints:
        """The values of all nodes on each way, its end too; values below 0 are not known. Shape (n,)."""
        known = values >= 0
        counted = values if known.all() else np.where(known, values, 0)
        found = self._summed(counted)
        if float(counted.max(initial=0)) * len(counted) >= _MOST:
            found[self._summed(counted.astype(np.float64)) >= _MOST] = TOO_LARGE
        if counted is not values:
            found[self._summed((~known).astype(np.int64)) > 0] = UNKNOWN
        return found

    def _summed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums along the ways; those of integers may wrap, and differences of wrapped ones are right again."""
        running = np.cumsum(values)
        ahead = running - running[self._head] + values[self._head]  # from each node to the head of its run
        total = ahead[np.maximum(self.below, 0)]  # of each head: what lies below it, up to the next head
        total[self.below < 0] = 0
        for heads, target in self._levels:
            total[heads] += total[target]
        found: NDArray[Any] = ahead + total[self._head]
        return found


def ways(below: Ints) -> Ways:
    """Follow `below` from every node: the node that it stands on, which comes before it, or -1.

    >>> ways(np.array([-1, 0, 1, 0, -1, 3])).end.tolist()
    [0, 0, 0, 0, 4, 0]
    """
    node = np.arange(len(below))
    head = np.maximum.accumulate(np.where(below == node - 1, 0, node)) if len(below) else node
    if len(below):
        head[0] = 0
    heads = np.flatnonzero((head == node) & (below >= 0))
    jump = head.copy()
    jump[heads] = head[below[heads]]
    levels: list[tuple[Ints, Ints]] = []
    while len(heads):
        target = jump[heads]
        moving = below[target] >= 0
        heads, target = heads[moving], target[moving]
        if len(heads):
            levels.append((heads, target))
            jump[heads] = jump[target]
    end = jump[head]
    found = Ways(below, end, node, head, tuple(levels))
    return Ways(below, end, found._summed(np.ones(len(below), np.int64)) - 1, head, tuple(levels))
