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
class _Jumps:
    """The runs of n nodes, and the steps that lead from their heads down to the ends of their ways.

    A run is a stretch of nodes that each stand on the one right before; its head is the first of them.

    Attributes
    ----------
    below : the node that each node stands on, -1 for none, shape (n,)
    head : the head of each node's run, shape (n,)
    steps : (heads, targets), shape (k,) each and fewer in every step: by step s, a head has been followed down to its
        target, 2**s runs below it, and goes on from there as far as the target itself has been followed
    """

    below: Ints
    head: Ints
    steps: tuple[tuple[Ints, Ints], ...]

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of `values` over each node's way, its end included; shapes (n,).

        Sums of integers may wrap, and differences of wrapped ones are right again. E.g. with `below` [-1, 0, 1, 0] and
        values [1, 2, 4, 8] the sums are [1, 3, 7, 9].
        """
        running = np.cumsum(values)
        own = running - running[self.head] + values[self.head]  # from each node down to the head of its run
        rest = own[np.maximum(self.below, 0)]  # of each head: the run that it stands on, then twice as many each step
        rest[self.below < 0] = 0
        for heads, targets in self.steps:
            rest[heads] += rest[targets]
        found: NDArray[Any] = own + rest[self.head]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """The way of each of n nodes down to a node that stands on none.

    Attributes
    ----------
    below : the node that each stands on, -1 for none, shape (n,)
    end : the node at which its way ends, itself if it stands on none, shape (n,)
    length : how many nodes lie on its way beside the end, shape (n,)
    """

    below: Ints
    end: Ints
    length: Ints
    _jumps: _Jumps

    def sums(self, values: Ints) -> Ints:
        """Return the sum of `values` over each node's way, its end included; shapes (n,).

        A value below 0 is not known: sums with it are `UNKNOWN`. Those that do not fit are `TOO_LARGE`.

        >>> ways(np.array([-1, 0, 1, 0])).sums(np.array([1, 2, -1, 8])).tolist()
        [1, 3, -1, 9]
        """
        known = values >= 0
        counted = values if known.all() else np.where(known, values, 0)
        found = self._jumps.sums(counted)
        if float(counted.max(initial=0)) * len(counted) >= _MOST:
            found[self._jumps.sums(counted.astype(np.float64)) >= _MOST] = TOO_LARGE
        if counted is not values:
            found[self._jumps.sums((~known).astype(np.int64)) > 0] = UNKNOWN
        return found


def ways(below: Ints) -> Ways:
    """Follow every node down to the end of its way.

    Parameters
    ----------
    below : the node that each node stands on, which comes before it, or -1 for none; shape (n,)

    Examples
    --------
    >>> found = ways(np.array([-1, 0, 1, 0, -1, 3]))
    >>> found.end.tolist(), found.length.tolist()
    ([0, 0, 0, 0, 4, 0], [0, 1, 2, 1, 0, 2])
    """
    node = np.arange(len(below))
    head = np.maximum.accumulate(np.where(below == node - 1, 0, node))  # e.g. of the example: [0, 0, 0, 3, 4, 5]
    heads = np.flatnonzero((head == node) & (below >= 0))  # those whose way goes on; the others have arrived
    jump = head.copy()  # of each head: a head further down its way; itself where the way ends
    jump[heads] = head[below[heads]]
    steps: list[tuple[Ints, Ints]] = []
    while len(heads):
        targets = jump[heads]
        moving = below[targets] >= 0
        heads, targets = heads[moving], targets[moving]
        if len(heads):
            steps.append((heads, targets))
            jump[heads] = jump[targets]  # twice as far as before, or to the end
    jumps = _Jumps(below, head, tuple(steps))
    length = jumps.sums(np.ones(len(below), np.int64)) - 1
    return Ways(below, jump[head], length, jumps)
