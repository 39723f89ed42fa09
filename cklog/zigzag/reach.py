"""The greatest value among the intervals that can undo an interval, for all intervals in one pass."""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.zigzag.intervals import Staircases, interval_graph


def greatest_reaching(history: History, points: Staircases, value: Ints) -> Ints:
    """Return for every interval the greatest `value` of an interval that a path leads from, itself included.

    Parameters
    ----------
    points : the message edges; those received before an initial state (`receive` -1) lead to every interval
    value : of the interval after each row of `history.label`, shape (first[n],)

    Returns
    -------
    array of int, shape (first[n],)

    Notes
    -----
    One run of Dijkstra's algorithm: a source at distance (number of greater values) from every interval, all other
    edges of length 0, and the distance of an interval tells the greatest value that reaches it. O((rows + pairs)
    log rows).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    graph = interval_graph(history, points, history.first[:-1])
    rows = len(history.label)
    values, rank = np.unique(value, return_inverse=True)
    behind = len(values) - 1 - rank
    weights = np.concatenate([np.zeros(graph.nnz), behind.astype(np.float64)])
    heads = np.concatenate([graph.indices, np.arange(rows, dtype=np.int32)])
    starts = np.append(graph.indptr, np.int32(graph.nnz + rows))
    whole = csr_array((weights, heads, starts), shape=(rows + 2, rows + 2))
    distance = dijkstra(whole, indices=[rows + 1])[0, :rows].astype(np.int64)
    found: Ints = values[len(values) - 1 - distance]
    return found
