"""Directed graphs as two arrays: what reaches what, who reaches each other, and the greatest value that gets to each.

A graph of many edges is searched by SciPy, whose import alone takes as long as a small answer does; one of few by plain
loops. Both find the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cklog.arrays.types import Ints, Small

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FEW = 20_000
"""Nodes and edges that a plain loop visits in less time than SciPy takes to be imported."""


class Digraph(NamedTuple):
    """A directed graph of n nodes and e edges: those of node i lead to `heads[starts[i] : starts[i + 1]]`.

    `starts` : shape (n + 1,), int32
    `heads` : shape (e,), int32; no edge is there twice
    """

    starts: Small
    heads: Small

    @property
    def nodes(self) -> int:
        """Return n."""
        return len(self.starts) - 1

    def is_small(self, searches: int = 1) -> bool:
        """Return whether so many searches of it are quick without SciPy."""
        return searches * (len(self.starts) + len(self.heads)) <= _FEW

    def edges(self) -> list[Sequence[int]]:
        """Return the nodes that each node leads to."""
        ends, heads = self.starts.tolist(), self.heads.tolist()
        return [heads[a:b] for a, b in pairwise(ends)]

    def matrix(self) -> csr_array:
        """Return the graph as SciPy takes it.

        Weights are 64-bit floats (one, seen many times) because `scipy.sparse.csgraph` copies any other.
        """
        from scipy.sparse import csr_array

        weights = np.broadcast_to(np.float64(1), len(self.heads))
        return csr_array((weights, self.heads, self.starts), shape=(self.nodes, self.nodes))


def strong_components(graph: Digraph) -> Ints:
    """Return a number for each node, the same one for nodes that reach each other, shape (n,).

    >>> strong_components(Digraph(np.array([0, 1, 2, 3]), np.array([1, 0, 1]))).tolist()
    [0, 0, 1]
    """
    if graph.is_small():
        return np.array(_strong_components(graph.edges()), np.int64)
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(graph.matrix(), directed=True, connection="strong")
    return component.astype(np.int64, copy=False)


def _strong_components(edges: Sequence[Sequence[int]]) -> list[int]:
    """Tarjan's algorithm with a stack of its own: each node is numbered when it is met, and again when it is done."""
    met, low, component = [-1] * len(edges), [0] * len(edges), [-1] * len(edges)
    open_nodes: list[int] = []
    count = found = 0
    for root in range(len(edges)):
        if met[root] >= 0:
            continue
        path = [(root, 0)]
        while path:
            node, k = path.pop()
            if k == 0:
                met[node] = low[node] = count
                count += 1
                open_nodes.append(node)
            elif component[edges[node][k - 1]] < 0:
                low[node] = min(low[node], low[edges[node][k - 1]])
            while k < len(edges[node]) and met[edges[node][k]] >= 0:
                if component[edges[node][k]] < 0:
                    low[node] = min(low[node], met[edges[node][k]])
                k += 1
            if k < len(edges[node]):
                path += [(node, k + 1), (edges[node][k], 0)]
            elif low[node] == met[node]:
                while component[node] < 0:
                    component[open_nodes.pop()] = found
                found += 1
    return component


def reached(graph: Digraph, sources: Sequence[int]) -> Iterator[Ints]:
    """Yield for each source the nodes that a path leads to from it, itself included, in no order.

    >>> [sorted(found.tolist()) for found in reached(Digraph(np.array([0, 1, 1, 2]), np.array([1, 0])), [0, 1, 2])]
    [[0, 1], [1], [0, 1, 2]]
    """
    if graph.is_small(len(sources)):
        edges = graph.edges()
        yield from (np.array(_reached(edges, source), np.int64) for source in sources)
        return
    from scipy.sparse.csgraph import breadth_first_order

    matrix = graph.matrix()
    for source in sources:
        yield breadth_first_order(matrix, source, return_predecessors=False).astype(np.int64)


def _reached(edges: Sequence[Sequence[int]], source: int) -> list[int]:
    found, seen = [source], {source}
    for node in found:  # which grows
        fresh = [head for head in edges[node] if head not in seen]
        seen.update(fresh)
        found += fresh
    return found


def greatest_reaching(graph: Digraph, value: Ints) -> Ints:
    """Return for each node the greatest `value` of a node that a path leads from, itself included, shape (n,).

    >>> greatest_reaching(Digraph(np.array([0, 1, 1, 2]), np.array([1, 0])), np.array([3, 1, 2])).tolist()
    [3, 3, 2]
    """
    if graph.is_small():
        return np.array(_greatest_reaching(graph.edges(), value.tolist()), np.int64)
    return _by_distance(graph, value)


def _greatest_reaching(edges: Sequence[Sequence[int]], value: list[int]) -> list[int]:
    """From the node of the greatest value on, each marks what nobody before it has reached."""
    found = dict[int, int]()
    for source in sorted(range(len(edges)), key=value.__getitem__, reverse=True):
        waiting = [] if source in found else [source]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found[node] = value[source]
                waiting += edges[node]
    return [found[node] for node in range(len(edges))]


def _by_distance(graph: Digraph, value: Ints) -> Ints:
    """One run of Dijkstra's algorithm, O((n + e) log n).

    A source lies at the distance (number of greater values) from every node, and all other edges are of length 0: the
    distance of a node tells the greatest value that reaches it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    values, rank = np.unique(value, return_inverse=True)
    behind = len(values) - 1 - rank
    weights = np.concatenate([np.zeros(len(graph.heads)), behind.astype(np.float64)])
    heads = np.concatenate([graph.heads, np.arange(graph.nodes, dtype=np.int32)])
    starts = np.append(graph.starts, np.int32(len(heads)))
    whole = csr_array((weights, heads, starts), shape=(graph.nodes + 1, graph.nodes + 1))
    distance = dijkstra(whole, indices=[graph.nodes])[0, : graph.nodes].astype(np.int64)
    found: Ints = values[len(values) - 1 - distance]
    return found
