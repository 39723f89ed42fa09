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

import numpy as np

from cklog.arrays.digraph import Digraph, greatest_reaching, strong_components
from cklog.arrays.search import first_at_least
from cklog.arrays.types import Ints, Mask, Small, Tiny
from cklog.budgets import require
from cklog.history.history import History

_BLOCK_ROWS = 1 << 17
"""Watermarks searched at a time: the arrays of one block stay in the processor's cache."""

_BLOCK_PAIRS = 1 << 21
"""Edges sorted at a time: what a block takes beside the graph stays small."""


_NODE_BYTES = 32
"""Bytes that a search takes for each node of the graph, edges in the order of checkpoints among them."""


@dataclass(frozen=True, slots=True, eq=False)
class Staircases:
    """The non-dominated (send interval, receive interval) pairs of c channels, in order of channels.

    Within a channel both rise strictly. Each is the edge I(src, send) → I(dst, receive) of one real message,
    the one with the highest sequence number that `dst` received in that interval.

    Attributes
    ----------
    at : the pairs of channel k are those from `at[k]` up to `at[k + 1]`, shape (c + 1,)
    send, receive : shape (m,), of 16 bits if no subtask has more checkpoints; `send` >= 0, `receive` >= -1 (before
        checkpoint 0)
    """

    at: Ints
    send: Small | Tiny
    receive: Small | Tiny

    @property
    def channel(self) -> Small:
        """Return the channel of each pair, shape (m,)."""
        return np.repeat(np.arange(len(self.at) - 1, dtype=np.int32), np.diff(self.at))

    def channel_of(self, pair: int) -> int:
        """Return the channel of one pair."""
        return int(np.searchsorted(self.at, pair, "right")) - 1


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
    One binary search per rise of `received`: O(rows · log rows), 4 or 8 bytes a pair. The staircase of message
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
    width = np.int16 if history.newest.max(initial=0) < 1 << 15 else np.int32
    most = most_pairs(history, chosen)
    _require_room(history, 2 * width(0).itemsize * most, "what is known of messages")
    columns = np.empty((2, most), width)  # what is not filled costs nothing
    count = np.zeros(len(history.src) + 1, np.int64)
    filled = 0
    for block in _channel_blocks(history, chosen):
        channel, send, receive = _stairs_of(history, block)
        end = filled + len(channel)
        columns[0, filled:end], columns[1, filled:end] = send, receive
        count[block + 1] = np.bincount(np.searchsorted(block, channel), minlength=len(block))
        filled = end
    return Staircases(np.cumsum(count), *columns[:, :filled])


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
    O(rows + pairs) time; 4 bytes a pair.

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
    component = strong_components(interval_graph(history, history.first[:-1], channels))
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


def interval_graph(history: History, entered: Ints, channels: Ints | None = None, earliest: int = -1) -> Digraph:
    """Return the rollback-dependency graph of `channels` (default: all).

    Nodes are the rows of `history.label` and one more, the last: it has an edge to each row in `entered`, and
    takes the edges to "before checkpoint 0"; with `earliest` 0 these lead to the interval after checkpoint 0.

    Notes
    -----
    The pairs of `staircases` are made and sorted for some senders at a time, so that beside the graph itself, 4 bytes a
    pair, little is held.
    """
    chosen = np.arange(len(history.src)) if channels is None else channels
    extra, most = int(history.first[-1]), most_pairs(history, chosen)
    _require_room(history, 4 * most + _NODE_BYTES * extra, "the graph")
    starts = np.zeros(extra + 2, np.int32)
    heads = np.empty(most + extra + len(entered), np.int32)  # what is not filled costs nothing
    filled = 0
    for low, high in _sender_blocks(history, chosen):
        tail, head = _edges_out_of(history, chosen, low, high, earliest)
        heads[filled : filled + len(head)] = head
        filled += len(head)
        rows = slice(int(history.first[low]), int(history.first[high]))
        starts[1:-1][rows] = np.bincount(tail, minlength=rows.stop - rows.start)
    heads[filled : filled + len(entered)] = entered
    filled += len(entered)
    starts[-1] = len(entered)
    np.cumsum(starts, out=starts)
    return Digraph(starts, heads[:filled])


def _require_room(history: History, needed: int, what: str) -> None:
    """Refuse what does not fit beside the history before any of it is made."""
    held = history.sent.nbytes + history.received.nbytes
    channels, checkpoints = len(history.src), len(history.label)
    require(held + needed, f"{what} of {checkpoints:,} checkpoints and {channels:,} channels")


def greatest_before(history: History, value: Ints, earliest: int = -1) -> Ints:
    """Return for every interval the greatest `value` of an interval that a path leads from, itself included.

    Parameters
    ----------
    value : of the interval after each row of `history.label`, shape (first[n],)
    earliest : what is received before an initial state (-1) leads to every interval, or (0) to the first one

    Returns
    -------
    array of int, shape (first[n],)
    """
    graph = interval_graph(history, history.first[:-1], earliest=earliest)
    return greatest_reaching(graph, np.append(value, value.min()))[:-1]  # the node more has no value of its own


def most_pairs(history: History, channels: Ints) -> int:
    """Return how many pairs the staircases of `channels` have at the most: a receiver's interval is in one of each."""
    return int(np.diff(history.received_at)[channels].sum())


def _sender_blocks(history: History, channels: Ints) -> Iterator[tuple[int, int]]:
    """Cut the subtasks into ranges with less than `_BLOCK_PAIRS` edges each (one subtask at least), in order.

    As many edges as there may be, by the rows of receivers. The ranges of 5 subtasks may be (0, 2), (2, 5).
    """
    rows = np.diff(history.received_at)[channels]
    pairs = np.bincount(history.src[channels], weights=rows, minlength=len(history.subtasks))
    edges = np.cumsum(pairs + np.diff(history.first))
    low = 0
    while low < len(history.subtasks):
        before = edges[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(edges, before + _BLOCK_PAIRS)))
        yield low, high
        low = high


def _edges_out_of(history: History, channels: Ints, low: int, high: int, earliest: int) -> tuple[Small, Small]:
    """Return the edges by `channels` and by the order of intervals out of those of subtasks [low, high).

    Returns
    -------
    tail : the intervals that they leave, counted from `first[low]`, in no order, shape (edges,)
    head : the intervals that they enter, in order of those that they leave, shape (edges,)
    """
    sender = history.src[channels]
    points = staircases(history, channels[(sender >= low) & (sender < high)])
    count, first = np.diff(points.at), history.first.astype(np.int32)
    tail = np.repeat(first[history.src] - first[low], count) + points.send
    head = np.repeat(first[history.dst], count) + np.maximum(points.receive, earliest)
    if earliest < 0:
        head[points.receive < 0] = first[-1]
    # each interval but the last of a subtask leads to the next one
    local = np.delete(np.arange(first[high] - first[low], dtype=np.int32), first[low + 1 : high + 1] - 1 - first[low])
    tail = np.concatenate([tail, local])
    head = np.concatenate([head, first[low] + local + 1])
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


def _stairs_of(history: History, channels: Ints) -> tuple[Ints, Ints, Ints]:
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
    return channel[keep], send[keep], row[keep] - 1


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
