"""Which messages run between which intervals: every pair, with its sequence numbers, from watermarks alone.

`cklog.zigzag.intervals.staircases` keeps the pairs that the reachability needs; a drawing and an export want all of
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.history.history import History


@dataclass(frozen=True, slots=True, eq=False)
class MessageEdges:
    """m edges: messages [first, end) of `channel` were sent in I(src, send) and received in I(dst, receive).

    They are in order of channel, then of sequence numbers; along a channel neither interval ever falls.

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
    dominated: Mask

    def where(self, kept: Mask) -> MessageEdges:
        """Return the edges that a mask of shape (m,) marks."""
        return MessageEdges(
            channel=self.channel[kept],
            send=self.send[kept],
            receive=self.receive[kept],
            first=self.first[kept],
            end=self.end[kept],
            dominated=self.dominated[kept],
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
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [1, 2], "b/0": [1, 2]}, {"a/0->b/0": [0, 4, 9]}, {"a/0->b/0": [0, 3, 9]})
    >>> edges = message_edges(h)
    >>> list(zip(edges.send.tolist(), edges.receive.tolist(), edges.first.tolist(), edges.end.tolist()))
    [(0, 0, 0, 3), (0, 1, 3, 4), (1, 1, 4, 9)]
    """
    chosen = np.arange(len(history.src)) if channels is None else channels
    sends = np.diff(history.sent_at)[chosen] - history.survivor[history.src[chosen]]  # none after the current state
    receives = np.diff(history.received_at)[chosen]
    sent, sender = _concatenated_ranges(history.sent_at[chosen], sends)
    received, receiver = _concatenated_ranges(history.received_at[chosen], receives)
    channel = np.concatenate([sender, receiver])
    value = np.concatenate([history.sent[sent], history.received[received]]).astype(np.int64)
    order = np.lexsort((value, channel))  # all watermarks of a channel, of both ends, cut its numbers into runs
    channel, value, of_sender = channel[order], value[order], order < len(sent)
    run = np.flatnonzero(np.r_[(np.diff(channel) != 0) | (np.diff(value) != 0), True][: len(channel)])
    channel, value = channel[run], value[run]  # the last of equal watermarks, shape (runs,), like all below
    send = np.cumsum(of_sender)[run] - np.r_[0, np.cumsum(sends)][channel] - 1
    receive = np.cumsum(~of_sender)[run] - np.r_[0, np.cumsum(receives)][channel] - 1
    keep = np.flatnonzero((send >= 0) & (receive < receives[channel] - 1))  # a watermark of the receiver ends each run
    channel, send, receive = channel[keep], send[keep], receive[keep]
    return MessageEdges(
        channel=chosen[channel],
        send=send,
        receive=receive,
        first=value[keep],
        end=value[keep + 1],
        dominated=_find_dominated(channel, send, receive),
    )


def cut_history(history: History, low: Ints, high: Ints) -> tuple[History, Ints]:
    """Return the part of a history with checkpoints `low` to `high` of each subtask (indices, inclusive).

    Subtasks with `high < low` keep their row `low` and no channel. A current state that is cut off leaves no survivor.

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
    rows, _ = _concatenated_ranges(history.first[:-1] + low, length)
    sent, _ = _concatenated_ranges(history.sent_at[kept] + low[src], length[src])
    received, _ = _concatenated_ranges(history.received_at[kept] + low[dst], length[dst])
    part = History(
        subtasks=history.subtasks,
        channels=tuple(history.channels[k] for k in kept.tolist()),
        src=src,
        dst=dst,
        first=np.r_[0, np.cumsum(length)],
        label=history.label[rows],
        time=history.time[rows],
        sent_at=np.r_[0, np.cumsum(length[src])],
        received_at=np.r_[0, np.cumsum(length[dst])],
        sent=history.sent[sent],
        received=history.received[received],
        survivor=history.survivor & (high == history.newest),
    )
    return part, kept


def _concatenated_ranges(low: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges, each `length` long from `low` on, and the range that each number is of.

    >>> [found.tolist() for found in _concatenated_ranges(np.array([5, 0]), np.array([2, 3]))]
    [[5, 6, 0, 1, 2], [0, 0, 1, 1, 1]]
    """
    owner = np.repeat(np.arange(len(low)), length)
    return np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length) + low[owner], owner


def _find_dominated(channel: Ints, send: Ints, receive: Ints) -> Mask:
    """Find edges of which the next is received in the same interval, or the one before sent in the same; shape (m,).

    E.g. of one channel (send, receive) = (0, 0), (0, 1), (1, 1): the second is sent no later than the third, and
    received no earlier than the first.
    """
    same = np.diff(channel) == 0
    later = np.r_[same & (np.diff(receive) == 0), False]
    earlier = np.r_[False, same & (np.diff(send) == 0)]
    found: Mask = (later | earlier)[: len(channel)]
    return found
