"""The rollback-dependency graph of a history: intervals, edges, what reaches what, and the useless checkpoints.

Interval I(i, x) is what subtask i does after its checkpoint x and before the next one. If I(i, a) is undone,
so must be every interval that received a message sent in it: an edge I(i, a) → I(j, b). Checkpoint x *keeps*
the intervals below x. A message sent before checkpoint 0 depends on nothing that can be undone; one received
before checkpoint 0 has b = -1: no checkpoint of j is left if its sending is undone.

A node is a row of `History.label` (the interval after that checkpoint); the interval after a survivor's
current state is an empty node that nothing is sent from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklog.arrays.digraph import Digraph, greatest_reaching, strong_components
from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints, Mask, Small
from cklog.history.history import History

_BLOCK_ROWS = 1 << 17
"""Watermarks searched at a time: the arrays of one block stay in the processor's cache."""

_BLOCK_PAIRS = 1 << 21
"""Edges sorted at a time: what a block takes beside the graph stays small."""


@dataclass(frozen=True, slots=True, eq=False)
class Staircases:
    """The non-dominated (send interval, receive interval) pairs of every channel, in order.

    Within a channel both rise strictly. Each is the edge I(src, send) → I(dst, receive) of one real message,
    the one with the highest sequence number that `dst` received in that interval.

    Attributes
    ----------
    channel, send, receive : shape (m,), int32; `send` >= 0, `receive` >= -1 (before checkpoint 0)
    """

    channel: Small
    send: Small
    receive: Small


def staircases(history: History, channels: Ints | None = None) -> Staircases:
    """Return the non-dominated message edges of `channels` (default: all), from watermarks alone.

    A message sent in I(i, a) and received in I(j, b) also forces every pair a' <= a, b' >= b, through the
    order inside i and j; so the pairs with a large and b small carry the whole reachability relation. The
    highest message received by the end of I(j, b) is number R(b + 1) - 1. It was sent in the interval a of
    the last checkpoint whose exclusive watermark does not cover it: the last a with S(a) < R(b + 1); no edge
    if there is none. The current state of a survivor covers everything (nothing of it is lost).

    Returns
    -------
    Staircases : m <= sum over channels of min(rows of src, rows of dst) pairs

    Notes
    -----
    One binary search per rise of `received`: O(rows · log rows), 12 bytes a pair. The staircase of message
    intervals is Wang's "rollback-dependency graph" without its dominated edges [1]_.

    References
    ----------
    .. [1] Y.-M. Wang, "Consistent global checkpoints that contain a given set of local checkpoints",
       IEEE Trans. Computers 46(4), 1997.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": [0, 4, 9]}, {"a/0->b/0": [0, 3, 9]})
    >>> steps = staircases(h)
    >>> list(zip(steps.send.tolist(), steps.receive.tolist()))
    [(0, 0), (1, 1)]
    """
    chosen = np.arange(len(history.src)) if channels is None else channels
    most = int(np.diff(history.received_at)[chosen].sum())
    columns = np.empty((3, most), np.int32)  # what is not filled costs nothing
    filled = 0
    for block in _channel_blocks(history, chosen):
        pairs = _stairs_of(history, block)
        end = filled + len(pairs[0])
        columns[:, filled:end] = pairs
        filled = end
    return Staircases(*columns[:, :filled])


def useless(history: History) -> Mask:
    """Return for every row of `history.label` whether that checkpoint is in no consistent line, ever.

    That is the case exactly if it is on a Z-cycle: the intervals before and after it lie in one strongly
    connected component, so that undoing the one undoes the other [1]_. All of them are found in one pass.
    A cycle of intervals runs through a cycle of channels, so an acyclic job has none and no graph is built.

    Current states may complete a line here. Uselessness belongs to what happened, not to the failure that is asked
    about: in the history of a recovery line a failed subtask has no current state, and what it received after its
    newest checkpoint counts as never received (`useless_by_execution` mends that). Where even initial states cannot
    go together (`receive` -1), a row is useless if it needs one of those.

    Returns
    -------
    array of bool, shape (first[n],) : False for the current state of survivors

    Notes
    -----
    O(rows + pairs) time; about 30 bytes a pair.

    References
    ----------
    .. [1] R. Netzer, J. Xu, "Necessary and sufficient conditions for consistent global snapshots",
       IEEE Trans. Parallel and Distributed Systems 6(2), 1995.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> ping_pong = history_of(
    ...     {"a/0": [1], "b/0": [1]},
    ...     {"a/0->b/0": [0, 0], "b/0->a/0": [0, 1]},
    ...     {"a/0->b/0": [0, 1], "b/0->a/0": [0, 1]},
    ... )
    >>> useless(ping_pong).tolist()  # a/0: got the answer before it sent the question, as far as a/0@1 knows
    [False, True, False, False]
    """
    channels = channels_on_cycles(history)
    if not len(channels):
        return np.zeros(history.first[-1], np.bool_)
    component = strong_components(interval_graph(history, staircases(history, channels), history.first[:-1]))
    rows, nowhere = component[:-1], component[-1]
    before = np.concatenate([[nowhere], rows[:-1]])  # the component of the interval before each checkpoint
    before[history.first[:-1]] = nowhere
    found: Mask = rows == before
    return found


def useless_by_execution(history: History, execution: History) -> Mask:
    """Return for every row of `history.label` whether that checkpoint is useless by what `execution` knows.

    Parameters
    ----------
    history : what a recovery line is searched in: failed subtasks have lost their current states
    execution : the same checkpoints, with the current state of each subtask of which anything tells

    Returns
    -------
    array of bool, shape (first[n],) : False for current states
    """
    found = useless(execution)
    if execution is history:
        return found & (history.label >= 0)
    where = {subtask: i for i, subtask in enumerate(execution.subtasks)}
    owner = np.array([where[subtask] for subtask in history.subtasks], np.int64)
    shift = np.repeat(execution.first[owner] - history.first[:-1], np.diff(history.first))
    stored = history.label >= 0
    mask = np.zeros(len(stored), np.bool_)
    mask[stored] = found[(np.arange(len(stored)) + shift)[stored]]
    return mask


def interval_graph(history: History, points: Staircases, entered: Ints) -> Digraph:
    """Return the rollback-dependency graph.

    Nodes are the rows of `history.label` and one more, the last: it has an edge to each row in `entered`, and
    takes the edges to "before checkpoint 0". It is built without a detour, block by block of senders. No edge is there
    twice: on such a matrix SciPy's `connected_components` never returns (1.17).
    """
    extra = int(history.first[-1])
    starts = np.zeros(extra + 2, np.int32)
    heads = np.empty(len(points.send) + extra + len(entered), np.int32)
    filled = 0
    bounds = channel_bounds(history, points)
    for low, high in _sender_blocks(history, bounds):
        tail, head = _edges_out_of(history, points, bounds, low, high)
        heads[filled : filled + len(head)] = head
        filled += len(head)
        rows = slice(int(history.first[low]), int(history.first[high]))
        starts[1:-1][rows] = np.bincount(tail, minlength=rows.stop - rows.start)
    heads[filled : filled + len(entered)] = np.sort(entered)
    filled += len(entered)
    starts[-1] = len(entered)
    np.cumsum(starts, out=starts)
    return Digraph(starts, heads[:filled])


def greatest_before(history: History, points: Staircases, value: Ints) -> Ints:
    """Return for every interval the greatest `value` of an interval that a path leads from, itself included.

    Parameters
    ----------
    points : the message edges; those received before an initial state (`receive` -1) lead to every interval
    value : of the interval after each row of `history.label`, shape (first[n],)

    Returns
    -------
    array of int, shape (first[n],)
    """
    graph = interval_graph(history, points, history.first[:-1])
    return greatest_reaching(graph, np.append(value, value.min()))[:-1]  # the node more has no value of its own


def channel_bounds(history: History, points: Staircases) -> Ints:
    """Return where the pairs of each channel begin, and where the last ones end, shape (c + 1,)."""
    channels = np.arange(len(history.src) + 1, dtype=points.channel.dtype)  # another type would copy all pairs
    return np.searchsorted(points.channel, channels)


def _sender_blocks(history: History, bounds: Ints) -> Iterator[tuple[int, int]]:
    """Cut the subtasks into ranges with less than `_BLOCK_PAIRS` edges each (one subtask at least), in order.

    `bounds` (c + 1,) are where the pairs of each channel begin. The ranges of 5 subtasks may be (0, 2), (2, 5).
    """
    pairs = np.bincount(history.src, weights=np.diff(bounds), minlength=len(history.subtasks))
    edges = np.cumsum(pairs + np.diff(history.first))
    low = 0
    while low < len(history.subtasks):
        before = edges[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(edges, before + _BLOCK_PAIRS)))
        yield low, high
        low = high


def _edges_out_of(history: History, points: Staircases, bounds: Ints, low: int, high: int) -> tuple[Small, Small]:
    """Return the edges out of intervals of subtasks [low, high), each once.

    Returns
    -------
    tail : the intervals that they leave, counted from `first[low]`, in no order, shape (edges,)
    head : the intervals that they enter, in order of those that they leave, shape (edges,)
    """
    channels = np.flatnonzero((history.src >= low) & (history.src < high))
    begin, end = bounds[channels], bounds[channels + 1]
    count, first = end - begin, history.first.astype(np.int32)
    at: Any = slice(begin[0], end[-1]) if len(channels) else slice(0)  # the pairs of these channels
    if (begin[1:] != end[:-1]).any():  # channels are in the order of their names, which may not be that of senders
        at = np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)
    receive = points.receive[at]
    tail = np.repeat(first[history.src[channels]] - first[low], count) + points.send[at]
    head = np.repeat(first[history.dst[channels]], count) + receive
    if (receive < 0).any():
        head[receive < 0] = first[-1]
    # each interval but the last of a subtask leads to the next one
    local = np.delete(np.arange(first[high] - first[low], dtype=np.int32), first[low + 1 : high + 1] - 1 - first[low])
    tail = np.concatenate([tail, local])
    head = np.concatenate([head, first[low] + local + 1])
    pair = history.src[channels] * len(history.subtasks) + history.dst[channels]
    if len(np.unique(pair)) < len(pair) or (history.src == history.dst)[channels].any() or (receive < 0).any():
        key = np.unique(tail.astype(np.int64) << 32 | head)  # only these can make an edge twice
        return (key >> 32).astype(np.int32), key.astype(np.int32)
    short = tail.astype(np.uint16) if first[high] - first[low] < 1 << 16 else tail  # of 16 bits: a radix sort
    order = np.argsort(short, kind="stable")
    return tail, head[order]


def grouped(tail: Small, head: Small, nodes: int) -> tuple[Small, Small]:
    """Return edges by tail: those of node v lead to `heads[starts[v] : starts[v + 1]]`.

    The sort is stable because it then merges the staircases' long rising runs, four times faster.
    """
    starts = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(tail, minlength=nodes), out=starts[1:])
    return starts, head[np.argsort(tail, kind="stable")]


def _channel_blocks(history: History, channels: Ints) -> Iterator[Ints]:
    """Cut `channels` into runs of about `_BLOCK_ROWS` received watermarks each (one channel at least)."""
    rows = np.diff(history.received_at)[channels]
    block = np.cumsum(rows) // _BLOCK_ROWS
    yield from np.split(channels, np.flatnonzero(np.diff(block)) + 1)


def _stairs_of(history: History, channels: Ints) -> tuple[Small, Small, Small]:
    """Return the pairs of `staircases` of a few channels: channel, send and receive, each of shape (pairs,)."""
    rows = np.diff(history.received_at)[channels]
    channel = np.repeat(channels, rows)  # shape (sum of rows,), like all below
    row = np.arange(len(channel)) - np.repeat(np.cumsum(rows) - rows, rows)
    received = history.received[history.received_at[channel] + row]
    # only where the receiver got something new is there a last message to look for
    rise = (row == 0) | (received > np.concatenate([received[:1], received[:-1]]))
    channel, row, received = channel[rise], row[rise], received[rise]
    at = history.sent_at[channel]
    end = history.sent_at[channel + 1] - history.survivor[history.src[channel]]
    send = first_at_least(history.sent, at, end, received) - at - 1  # the last checkpoint not covering it; -1: none
    before = np.where(row == 0, -1, np.concatenate([[-1], send[:-1]]))  # the channel's step before this one
    keep = send > before  # sent no later than a message that was received earlier: dominated
    kept = (channel[keep], send[keep], row[keep] - 1)
    return kept[0].astype(np.int32), kept[1].astype(np.int32), kept[2].astype(np.int32)


def channels_on_cycles(history: History) -> Ints:
    """Return the channels that can carry a cycle of intervals: peel off subtasks without a way in or a way out.

    What stays is the cycles and the paths between them. Everything stays if initial states contradict each
    other: then a rollback can end nowhere, which closes a cycle over all subtasks.
    """
    initial = np.zeros(len(history.subtasks), np.int64)
    alive = np.arange(len(history.src))
    if (history.received_of(initial) > history.sent_of(initial)).any():
        return alive
    while True:
        entered, left = np.zeros((2, len(history.subtasks)), np.bool_)
        entered[history.dst[alive]] = True
        left[history.src[alive]] = True
        kept = alive[entered[history.src[alive]] & left[history.dst[alive]]]
        if len(kept) == len(alive):
            return kept
        alive = kept
