"""Directed graphs as two arrays: what reaches what, who reaches each other, and the greatest value that gets to each.

Each search is one plain loop over the edges, which takes a few numbers a node beside them, and no weight of an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cklog.arrays.buffers import unfilled
from cklog.arrays.loops import Loop, only_read
from cklog.arrays.types import Ints, Small


class Digraph(NamedTuple):
    """A directed graph of n nodes and e edges: those of node i lead to `heads[starts[i] : starts[i + 1]]`.

    `starts` : shape (n + 1,), int32
    `heads` : shape (e,), int32; an edge may be there twice
    """

    starts: Small
    heads: Small

    @property
    def nodes(self) -> int:
        """Return n."""
        return len(self.starts) - 1

    @property
    def size(self) -> int:
        """Return n + e."""
        return self.nodes + len(self.heads)


def strong_components(graph: Digraph) -> Small:
    """Return a number for each node, the same one for nodes that reach each other, shape (n,).

    >>> strong_components(Digraph(np.array([0, 1, 2, 3]), np.array([1, 0, 1]))).tolist()
    [0, 0, 1]
    """
    component, met = np.full((2, graph.nodes), -1, np.int32)
    scratch = np.zeros((4, graph.nodes), np.int32)
    _NUMBER_COMPONENTS(graph.size, only_read(graph.starts), only_read(graph.heads), component, met, *scratch)
    return component


def _number_components(
    starts: Small, heads: Small, component: Small, met: Small, low: Small, place: Small, path: Small, waiting: Small
) -> int:
    """Number components by Tarjan's algorithm with a stack of its own; return how many there are.

    `component` and `met` are -1 at first. `met` is the order in which nodes are met, `low` the first one met that a
    node is known to reach and that is in no component yet. `path` leads from a root to the node that is looked at;
    `place` is the next edge of each node on it. `waiting` holds the nodes met that are in no component.
    """
    count = 0
    found = 0
    held = 0
    for root in range(len(met)):
        if met[root] >= 0:
            continue
        path[0] = root
        depth = 0
        fresh = root
        while depth >= 0:
            if fresh >= 0:
                met[fresh] = count
                low[fresh] = count
                count += 1
                place[fresh] = starts[fresh]
                waiting[held] = fresh
                held += 1
                fresh = -1
            node = path[depth]
            at = place[node]
            if at < starts[node + 1]:
                place[node] = at + 1
                head = heads[at]
                if met[head] < 0:
                    depth += 1
                    path[depth] = head
                    fresh = head
                elif component[head] < 0 and met[head] < low[node]:
                    low[node] = met[head]
                continue
            if low[node] == met[node]:
                while component[node] < 0:
                    held -= 1
                    component[waiting[held]] = found
                found += 1
            depth -= 1
            if depth >= 0 and low[node] < low[path[depth]]:
                low[path[depth]] = low[node]
    return found


_NUMBER_COMPONENTS = Loop(_number_components)


def reached(graph: Digraph, sources: Sequence[int]) -> Iterator[Small]:
    """Yield for each source the nodes that a path leads to from it, itself included, in no order.

    >>> [sorted(found.tolist()) for found in reached(Digraph(np.array([0, 1, 1, 2]), np.array([1, 0])), [0, 1, 2])]
    [[0, 1], [1], [0, 1, 2]]
    """
    seen = np.full(graph.nodes, -1, np.int32)  # the source that a node was last reached from
    found = unfilled(graph.nodes, np.int32)
    for source in sources:
        count = _VISIT(graph.size, only_read(graph.starts), only_read(graph.heads), int(source), seen, found)
        yield found[:count].copy()


def _visit(starts: Small, heads: Small, source: int, seen: Small, found: Small) -> int:
    """List the nodes that are reached, in the order of their distance; return how many there are."""
    seen[source] = source
    found[0] = source
    count = 1
    done = 0
    while done < count:
        node = found[done]
        done += 1
        for at in range(starts[node], starts[node + 1]):
            head = heads[at]
            if seen[head] != source:
                seen[head] = source
                found[count] = head
                count += 1
    return count


_VISIT = Loop(_visit)


def greatest_reaching(graph: Digraph, value: Ints) -> Ints:
    """Return for each node the greatest `value` of a node that a path leads from, itself included, shape (n,).

    >>> greatest_reaching(Digraph(np.array([0, 1, 1, 2]), np.array([1, 0])), np.array([3, 1, 2])).tolist()
    [3, 3, 2]
    """
    first = np.argsort(value, kind="stable")[::-1]  # nodes of the greatest values
    source = np.full(graph.nodes, -1, np.int32)
    waiting = unfilled(graph.nodes, np.int32)
    _SPREAD(graph.size, only_read(graph.starts), only_read(graph.heads), only_read(first), source, waiting)
    found: Ints = value[source]
    return found


def _spread(starts: Small, heads: Small, first: Ints, source: Small, waiting: Small) -> int:
    """From the node of the greatest value on, each marks what nobody before it has reached; `source` is -1 at first."""
    for i in range(len(first)):
        origin = first[i]
        if source[origin] >= 0:
            continue
        source[origin] = origin
        waiting[0] = origin
        held = 1
        while held > 0:
            held -= 1
            node = waiting[held]
            for at in range(starts[node], starts[node + 1]):
                head = heads[at]
                if source[head] < 0:
                    source[head] = origin
                    waiting[held] = head
                    held += 1
    return 0


_SPREAD = Loop(_spread)
