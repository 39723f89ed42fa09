"""What a run sent and received, as arrays in an order that causes allow.

Raw events say it exactly. Without them the watermarks of checkpoints say how many messages a subtask sent and received
between two checkpoints, not in which order: these are spread evenly over the time in between, and everything that rests
on their order is an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from cklog.arrays.types import Floats, Ints, Mask
from cklog.history.events.steps import EventSteps
from cklog.history.history import History
from cklog.model.names import Subtask, parse_channel

Certainty = Literal["exact", "estimated"]

UNSENT = -1
"""The step that sent a message of which only the receipt is known."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedRun:
    """The e steps of n subtasks, every receipt behind its sending as far as clocks and logs allow.

    Attributes
    ----------
    subtasks, channels : names, sorted
    src, dst : sender and receiver of each channel, shape (c,)
    owner, channel : of each step, shape (e,)
    receives : whether it is a receipt, shape (e,)
    number : of its message among those of the channel, in the order of sending, shape (e,)
    time : ms, never falling along a subtask, shape (e,)
    sent_by : the step that sent the message of each receipt, `UNSENT` if there is none; `UNSENT` of sends, shape (e,)
    basic : the checkpoints that each subtask took by its own timer, or in a round: how many of its steps come before,
        and when (ms); by subtask
    bytes : mean size of a message of each channel, NaN if not known; shape (c,)
    state_bytes : mean size of a checkpoint of each subtask, NaN if not known; shape (n,)
    certainty : whether the order within a subtask is known
    disordered : receipts that had to be placed before their sending
    """

    subtasks: tuple[Subtask, ...]
    channels: tuple[str, ...]
    src: Ints
    dst: Ints
    owner: Ints
    channel: Ints
    receives: Mask
    number: Ints
    time: Ints
    sent_by: Ints
    basic: tuple[tuple[Ints, Ints], ...]
    bytes: Floats
    state_bytes: Floats
    certainty: Certainty
    disordered: int

    @property
    def span(self) -> tuple[int, int]:
        """When the first and the last thing happened, in ms."""
        times = [self.time, *(times for _, times in self.basic)]
        return min(int(t.min()) for t in times if len(t)), max(int(t.max()) for t in times if len(t))

    @property
    def sources(self) -> Ints:
        """Subtasks that are sent nothing by others, by index."""
        others = self.src != self.dst
        return np.setdiff1d(np.arange(len(self.subtasks)), self.dst[others])


def of_steps(steps: EventSteps, known: Iterable[Subtask], forced: frozenset[tuple[Subtask, int]]) -> ReplayedRun:
    """Return the execution that raw events tell of.

    Parameters
    ----------
    known : subtasks that exist although no event may name them
    forced : checkpoints that a message forced: no timer asked for them
    """
    ends = [channel for channel in map(parse_channel, steps.channels) if channel is not None]
    named = {end for channel in ends for end in (channel.sender, channel.receiver)}
    subtasks = tuple(sorted({*steps.order.places.subtasks, *known, *named}))
    src, dst = _ends(steps.channels, subtasks)
    owner = np.where(steps.receives, dst[steps.channel], src[steps.channel])
    time = _never_falling(owner, steps.position, steps.time)
    taken = steps.order.taken
    labels = taken["checkpoint"].to_pylist()
    heard = np.array([subtasks.index(s) for s in steps.order.places.subtasks], np.int64)
    taken_by = heard[steps.order.owner]
    own = np.array(
        [(subtasks[i], label) not in forced for i, label in zip(taken_by.tolist(), labels, strict=True)], np.bool_
    )
    when = np.array([-1 if t is None else t for t in taken["time"].to_pylist()], np.int64)
    basic = []
    for i in range(len(subtasks)):
        mine = (taken_by == i) & own
        before = np.searchsorted(np.sort(steps.position[owner == i]), steps.order.places.position[mine])
        basic.append((before.astype(np.int64), when[mine]))
    return _in_causal_order(
        _Parts(
            subtasks, steps.channels, src, dst, owner, steps.channel, steps.receives, steps.seq, steps.position, time
        ),
        tuple(basic),
        _mean_bytes(steps, len(steps.channels)),
        "exact",
    )


def of_watermarks(history: History, refuse: Callable[[int], None]) -> ReplayedRun:
    """Estimate the execution that the watermarks of checkpoints tell of, up to the last checkpoint of each subtask.

    `refuse` is told how many events there are before they are made up: a number in a record may be anything.
    """
    known = history.time[history.time >= 0]
    taken = [history.time[a:b] for a, b in zip(history.first[:-1].tolist(), history.first[1:].tolist(), strict=True)]
    gaps = np.concatenate([np.diff(t[t >= 0]) for t in taken])
    begin = int(known.min() - (np.median(gaps) if len(gaps) else 0))
    refuse(_promised(history))
    parts: list[tuple[Ints, Ints, Ints, Mask]] = []  # channel, seq, time, receives
    sides = (
        (history.src, history.sent_at, history.sent, False),
        (history.dst, history.received_at, history.received, True),
    )
    for k in range(len(history.channels)):
        for ends, at, marks, is_receive in sides:
            rows = marks[at[k] : at[k + 1]]
            moments = _known_moments(taken[int(ends[k])], begin)
            count = np.maximum(np.diff(rows), 0)
            first, step = np.repeat(moments[:-1], count), np.repeat(np.diff(moments) / np.maximum(count, 1), count)
            nth = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            seq = int(rows[0]) + np.arange(int(count.sum()))
            time = first + step * (nth + 0.5)
            parts.append((np.full(len(seq), k), seq, time, np.full(len(seq), is_receive)))
    channel, seq, moment = (np.concatenate([part[i] for part in parts]) for i in range(3))
    receives = np.concatenate([part[3] for part in parts]).astype(np.bool_)
    owner = np.where(receives, history.dst[channel], history.src[channel])
    order = np.lexsort((receives, moment, owner))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    basic = []
    for i, times in enumerate(taken):
        stored = np.flatnonzero((history.label[history.first[i] : history.first[i + 1]] >= 0) & (times >= 0))
        stored = stored[stored > 0]
        before = np.searchsorted(np.sort(moment[owner == i]), times[stored])
        basic.append((before.astype(np.int64), times[stored]))
    return _in_causal_order(
        _Parts(
            history.subtasks,
            history.channels,
            history.src,
            history.dst,
            owner,
            channel.astype(np.int64),
            receives,
            seq.astype(np.int64),
            position,
            moment.astype(np.int64),
        ),
        tuple(basic),
        np.full(len(history.channels), np.nan),
        "estimated",
    )


def _promised(history: History) -> int:
    """Return how many sends and receipts the watermarks tell of; Python's integers hold any sum."""
    found = 0
    for at, marks in ((history.sent_at, history.sent), (history.received_at, history.received)):
        ends = zip(at[:-1].tolist(), at[1:].tolist(), strict=True)
        found += sum(int(marks[low:high].max()) - int(marks[low]) for low, high in ends if high > low)
    return found


def _known_moments(times: Ints, begin: int) -> Ints:
    """Return the times of a subtask's checkpoints, the initial state's as `begin`, unknown ones as the one before."""
    moments = times.copy()
    moments[0] = begin
    found: Ints = np.maximum.accumulate(moments)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Steps in any order: as in `ReplayedRun`, by `seq` and by `position` in their subtask's order."""

    subtasks: tuple[Subtask, ...]
    channels: tuple[str, ...]
    src: Ints
    dst: Ints
    owner: Ints
    channel: Ints
    receives: Mask
    seq: Ints
    position: Ints
    time: Ints


def _ends(channels: Sequence[str], subtasks: Sequence[Subtask]) -> tuple[Ints, Ints]:
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    found = [parse_channel(name) for name in channels]
    src = [index[c.sender] for c in found if c is not None]
    dst = [index[c.receiver] for c in found if c is not None]
    return np.array(src, np.int64), np.array(dst, np.int64)


def _never_falling(owner: Ints, position: Ints, time: Ints) -> Ints:
    """Return the times along each subtask so that none falls; one that is not known is that of the event before."""
    order = np.lexsort((position, owner))
    found = np.maximum(time, 0)
    for rows in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        found[rows] = np.maximum.accumulate(found[rows])
    return found


def _mean_bytes(steps: EventSteps, channels: int) -> Floats:
    sized = steps.bytes >= 0
    total = np.bincount(steps.channel[sized], steps.bytes[sized], channels)
    count = np.bincount(steps.channel[sized], minlength=channels)
    found: Floats = np.divide(total, count, out=np.full(channels, np.nan), where=count > 0)
    return found


def _in_causal_order(
    parts: _Parts,
    basic: tuple[tuple[Ints, Ints], ...],
    sizes: Floats,
    certainty: Certainty,
) -> ReplayedRun:
    """Number the messages of each channel as they were sent, and put every receipt behind its sending."""
    number = _numbered(parts)
    send_row = np.full(len(number), UNSENT)
    key = parts.channel * (int(number.max(initial=0)) + 1) + number
    sends, receipts = np.flatnonzero(~parts.receives), np.flatnonzero(parts.receives)
    at = sends[np.argsort(key[sends], kind="stable")]
    found = np.searchsorted(key[at], key[receipts])
    there = found < len(at)
    there[there] = key[at[found[there]]] == key[receipts[there]]
    send_row[receipts[there]] = at[found[there]]
    order, disordered = _merged(parts, send_row)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sent_by = send_row[order]
    sent_by[sent_by >= 0] = place[sent_by[sent_by >= 0]]
    return ReplayedRun(
        subtasks=parts.subtasks,
        channels=parts.channels,
        src=parts.src,
        dst=parts.dst,
        owner=parts.owner[order],
        channel=parts.channel[order],
        receives=parts.receives[order],
        number=number[order],
        time=parts.time[order],
        sent_by=sent_by,
        basic=basic,
        bytes=sizes,
        state_bytes=np.full(len(parts.subtasks), np.nan),
        certainty=certainty,
        disordered=disordered,
    )


def _numbered(parts: _Parts) -> Ints:
    """Return the rank of each step's message among the different ones of its channel."""
    order = np.lexsort((parts.seq, parts.channel))
    channel, seq = parts.channel[order], parts.seq[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(channel) != 0) | (np.diff(seq) != 0)
    rank = np.cumsum(new) - 1
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(channel) != 0
    rank -= np.maximum.accumulate(np.where(first, rank, 0))
    found = np.empty(len(order), np.int64)
    found[order] = rank
    return found


def _merged(parts: _Parts, send_row: Ints) -> tuple[Ints, int]:
    """Return the steps in an order of time that keeps each subtask's own, receipts behind sends; and how many are not.

    Clocks of machines differ, so that times alone put receipts before sends.
    """
    own = np.lexsort((parts.position, parts.owner))
    start = np.searchsorted(parts.owner[own], np.arange(len(parts.subtasks) + 1)).tolist()
    rows, time, sent_by = own.tolist(), parts.time.tolist(), send_row.tolist()
    receives = parts.receives.tolist()
    head, done = list(start[:-1]), [False] * len(rows)
    waiting: dict[int, int] = {}  # the subtask that waits for a send
    ready: list[tuple[int, int]] = []
    order: list[int] = []
    disordered = 0

    def offer(i: int) -> None:
        if head[i] == start[i + 1]:
            return
        row = rows[head[i]]
        if sent_by[row] >= 0 and not done[sent_by[row]]:
            waiting[sent_by[row]] = i
        else:
            heappush(ready, (time[row], i))

    for i in range(len(parts.subtasks)):
        offer(i)
    while len(order) < len(rows):
        if not ready:  # all wait for each other: logs contradict themselves, or the order was estimated
            send, i = min(waiting.items(), key=lambda item: (time[rows[head[item[1]]]], item[1]))
            del waiting[send]
            disordered += 1
            heappush(ready, (time[rows[head[i]]], i))
        _, i = heappop(ready)
        row = rows[head[i]]
        order.append(row)
        done[row] = True
        head[i] += 1
        offer(i)
        if not receives[row] and row in waiting:
            offer(waiting.pop(row))
    return np.array(order, np.int64), disordered
