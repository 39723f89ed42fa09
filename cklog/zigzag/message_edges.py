"""Which messages run between which intervals: every pair, with its sequence numbers, from watermarks alone.

`cklog.zigzag.intervals.staircases` keeps the pairs that the reachability needs; a drawing and an export want all of
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.history.arrays import History


@dataclass(frozen=True, slots=True, eq=False)
class MessageEdges:
    """Messages [first, end) of `channel` were sent in I(src, send) and received in I(dst, receive).

    Ordered by channel, then by sequence number; along a channel neither interval ever falls.

    Attributes
    ----------
    channel, send, receive : shape (m,), int64; `send` >= 0, `receive` >= -1 (before checkpoint 0)
    first, end : next sequence numbers, shape (m,), int64
    dominated : shape (m,), bool; another edge of the channel is sent no earlier and received no later, and so
        forces every rollback that this one forces
    """

    channel: Ints
    send: Ints
    receive: Ints
    first: Ints
    end: Ints
    dominated: NDArray[np.bool_]

    def where(self, kept: NDArray[np.bool_]) -> MessageEdges:
        """Some of the edges, as a mask of shape (m,) says."""
        return MessageEdges(
            self.channel[kept],
            self.send[kept],
            self.receive[kept],
            self.first[kept],
            self.end[kept],
            self.dominated[kept],
        )


def message_edges(history: History, channels: Ints | None = None) -> MessageEdges:
    """Return all pairs of intervals between which messages of `channels` (default: all) ran.

    The watermarks of both ends cut a channel's sequence numbers into runs: S(a) up to S(a + 1) are sent in
    I(src, a), R(b) up to R(b + 1) are received in I(dst, b). Exact where the channel is FIFO; where it is not,
    `received` is the highest number received + 1, and a message counts for the first interval that it can have
    come in. What a failed sender sent after its newest checkpoint has no watermark: that interval has no end.

    Returns
    -------
    MessageEdges : m <= sum over channels of rows of src + rows of dst. Those not dominated are `staircases`

    Notes
    -----
    One sort of all watermarks: O(rows · log rows).

    Examples
    --------
    >>> from cklog.history.arrays import history_of
    >>> h = history_of({"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": [0, 4, 9]}, {"a/0->b/0": [0, 3, 9]})
    >>> edges = message_edges(h)
    >>> list(zip(edges.send.tolist(), edges.receive.tolist(), edges.first.tolist(), edges.end.tolist()))
    [(0, 0, 0, 3), (0, 1, 3, 4), (1, 1, 4, 9)]
    """
    chosen = np.arange(len(history.src)) if channels is None else channels
    sends = np.diff(history.sent_at)[chosen] - history.survivor[history.src[chosen]]  # none after the current state
    receives = np.diff(history.received_at)[chosen]
    sent, sender = _rows(history.sent_at[chosen], sends)
    received, receiver = _rows(history.received_at[chosen], receives)
    channel = np.concatenate([sender, receiver])
    value = np.concatenate([history.sent[sent], history.received[received]])
    order = np.lexsort((value, channel))
    channel, value, of_sender = channel[order], value[order], order < len(sent)
    run = np.flatnonzero(np.r_[(np.diff(channel) != 0) | (np.diff(value) != 0), True][: len(channel)])
    channel, value = channel[run], value[run]  # the last of equal watermarks, shape (runs,), like all below
    send = np.cumsum(of_sender)[run] - np.r_[0, np.cumsum(sends)][channel] - 1
    receive = np.cumsum(~of_sender)[run] - np.r_[0, np.cumsum(receives)][channel] - 1
    keep = np.flatnonzero((send >= 0) & (receive < receives[channel] - 1))  # a watermark of the receiver ends each run
    found = channel[keep], send[keep], receive[keep]
    return MessageEdges(chosen[found[0]], found[1], found[2], value[keep], value[keep + 1], _dominated(*found))


def cut_history(history: History, low: Ints, high: Ints) -> tuple[History, Ints]:
    """Return the channels of the subtasks with checkpoints `low` to `high` (indices, inclusive), and only those rows.

    Subtasks with `high < low` keep their first row and no channel. A current state that is cut off leaves no survivor.

    Returns
    -------
    History : with row `low` of each subtask as its first
    channels : index of each of its channels in `history`, shape (c,)
    """
    shown = low <= high
    high = np.maximum(low, high)
    kept = np.flatnonzero(shown[history.src] & shown[history.dst])
    src, dst = history.src[kept], history.dst[kept]
    length = high - low + 1
    rows, _ = _rows(history.first[:-1] + low, length)
    sent, _ = _rows(history.sent_at[kept] + low[src], length[src])
    received, _ = _rows(history.received_at[kept] + low[dst], length[dst])
    part = History(
        history.subtasks,
        tuple(history.channels[k] for k in kept.tolist()),
        src,
        dst,
        np.r_[0, np.cumsum(length)],
        history.label[rows],
        history.time[rows],
        np.r_[0, np.cumsum(length[src])],
        np.r_[0, np.cumsum(length[dst])],
        history.sent[sent],
        history.received[received],
        history.survivor & (high == history.newest),
    )
    return part, kept


def _rows(low: Ints, length: Ints) -> tuple[Ints, Ints]:
    """The numbers of all ranges in a row, each `length` long from `low` on, and which range each number is of."""
    owner = np.repeat(np.arange(len(low)), length)
    return np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length) + low[owner], owner


def _dominated(channel: Ints, send: Ints, receive: Ints) -> NDArray[np.bool_]:
    """Whether the next edge is received in the same interval, or the one before is sent in the same."""
    same = np.diff(channel) == 0
    later = np.r_[same & (np.diff(receive) == 0), False]
    earlier = np.r_[False, same & (np.diff(send) == 0)]
    found: NDArray[np.bool_] = (later | earlier)[: len(channel)]
    return found
