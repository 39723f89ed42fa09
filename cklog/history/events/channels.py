"""Whether the sequence numbers of raw events are what they must be, channel by channel.

A channel is in order, as far as any line can tell, if by each checkpoint of its receiver the messages received are
all those up to the highest. That, and that nobody sent or received a number twice, shows in the spans and counts of
each interval; only channels that fail it are read number by number.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa

from cklog.arrays.spans import Spans, joined_spans, without
from cklog.arrays.types import Ints
from cklog.history.deliveries import Deliveries, ReceivedRuns
from cklog.history.events.kernels import check_of
from cklog.history.events.losses import NEVER, Losses
from cklog.history.events.order import Order
from cklog.history.events.records import Ports, port_keys
from cklog.model.findings import Finding


def suspects(order: Order, ports: Ports, intervals: pa.Table, lost: Losses) -> frozenset[str]:
    """Channels whose sends or receives, by interval, are not simply one number after the other."""
    port = np.searchsorted(2 * ports.channel + ports.side, port_keys(ports.names, intervals))
    sorting = np.lexsort((intervals["interval"].to_numpy(), port))
    rows, port = intervals.take(pa.array(sorting)), port[sorting]
    least, after, count = (rows[name].to_numpy() for name in ("least", "next", "rows"))
    first = np.flatnonzero(np.diff(port, prepend=-1))
    begin = np.full(len(ports.side), NEVER)
    begin[port[first]] = least[first]
    expected = np.r_[0, after[:-1]]
    expected[first] = _begin(ports, begin, lost)[port[first]]
    fine = (least == expected) & (count == after - least)
    fine &= (rows["check"].to_numpy() - check_of(least, after)) & 0xFFFFFFFF == 0
    fine |= rows["interval"].to_numpy() >= _known(order, lost)[ports.owner[port]]
    return frozenset(ports.names[k] for k in np.unique(ports.channel[port[~fine]]).tolist())


def _begin(ports: Ports, least: Ints, lost: Losses) -> Ints:
    """The number that each port begins with, if all is well, shape (ports,): a receiver's is that of its sender.

    `least`: the least number of each port that is known. Of a sender that is not known to the beginning it tells
    nothing.
    """
    sends = ports.side == 0
    unknown = lost.trimmed[ports.owner] | (lost.first[ports.owner] != NEVER)
    sent = np.full(len(ports.names), NEVER)
    sent[ports.channel[sends]] = np.where(unknown[sends], NEVER, least[sends])
    same = sends | lost.trimmed[ports.owner] | (sent[ports.channel] == NEVER)
    found: Ints = np.where(same, least, sent[ports.channel])
    return found


def _known(order: Order, lost: Losses) -> Ints:
    """How many intervals of each subtask are known to be whole: those before a checkpoint with nothing missing."""
    starts = zip(order.places.start[:-1].tolist(), order.places.start[1:].tolist(), strict=True)
    before = [np.searchsorted(order.places.position[a:b], lost.first[i]) for i, (a, b) in enumerate(starts)]
    return np.where(lost.first == NEVER, NEVER, np.array(before, np.int64))


def examined(
    order: Order, ports: Ports, lost: Losses, runs: pa.Table, channels: Collection[str]
) -> tuple[Deliveries, list[Finding]]:
    """What channels delivered, number by number, and what is wrong with their numbers.

    Parameters
    ----------
    runs : every run of `channels` (`cklog.history.events.kernels.SEQUENCE_RUNS`), in any order
    """
    held: dict[tuple[str, str], list[tuple[int, int, int, int]]] = {}
    for row in runs.to_pylist():
        held.setdefault((row["channel"], row["side"]), []).append(
            (row["interval"], row["from"], row["to"], row["rows"])
        )
    known = _known(order, lost)
    deliveries = Deliveries()
    findings: list[Finding] = []
    for name in sorted(channels):
        sender, receiver = order.places.ends(name)
        sent = _first(held.get((name, "send"), []), known, sender)
        received = _first(held.get((name, "receive"), []), known, receiver)
        whole, late = (sender >= 0 and lost.first[sender] == NEVER), (sender >= 0 and lost.trimmed[sender])
        findings += [*(_repeated(name, "send", sent) or _numbered_backwards(name, sent))]
        findings += [*_repeated(name, "receive", received), *(_never_sent(name, sent, received, late) if whole else [])]
        floor = min((low for _, low, _, _ in sent), default=0) if whole and not late else 0
        if receiver >= 0 and lost.trimmed[receiver]:
            floor = min((low for _, low, _, _ in received), default=0)
        if not _in_order(received, floor):
            interval, low, high, _ = np.array(received, np.int64).T
            deliveries.received[name] = ReceivedRuns(interval, low, high)
            deliveries.floor[name] = floor
            deliveries.intervals[name] = _intervals(order, receiver)
    if deliveries.received:
        findings.append(_out_of_order(list(deliveries.received)))
    return deliveries, findings


SequenceRun = tuple[int, int, int, int]
"""Interval, from, to, and how many events."""


def _first(rows: list[SequenceRun], known: Ints, owner: int) -> list[SequenceRun]:
    """Runs in order, of the intervals that are whole."""
    return sorted(row for row in rows if row[0] < known[owner])


def _intervals(order: Order, subtask: int) -> dict[int, int]:
    """Intervals before each checkpoint of a subtask."""
    numbers = order.taken["checkpoint"].to_numpy()[order.places.start[subtask] : order.places.start[subtask + 1]]
    return {number: x + 1 for x, number in enumerate(numbers.tolist())}


def _in_order(received: list[SequenceRun], floor: int) -> bool:
    """Whether by the end of each interval all numbers from `floor` up to the highest had been received."""
    held: Spans = [(0, floor)]
    for _, rows in itertools.groupby(received, key=lambda row: row[0]):
        held = joined_spans([*held, *((low, high) for _, low, high, _ in rows)])
        if len(held) > 1:
            return False
    return True


def _repeated(name: str, side: str, rows: list[SequenceRun]) -> list[Finding]:
    """Numbers that were used more than once."""
    spans = joined_spans((low, high) for _, low, high, _ in rows)
    count = sum(row[3] for row in rows) - sum(high - low for low, high in spans)
    if not count:
        return []
    low, high = next(_repeats(rows))
    where = f"number {low}" if high == low + 1 else f"numbers {low} to {high - 1}"
    if side == "send":
        message = f"{name}: {count} messages were sent under a number that was used before, first among {where}"
        return [Finding("duplicate-send", "error", name, message)]
    message = f"{name}: {count} messages were received more than once, first among {where}"
    return [Finding("duplicate-receive", "warning", name, message)]


def _repeats(rows: list[SequenceRun]) -> Iterator[tuple[int, int]]:
    """Spans in which a number is repeated, by interval."""
    seen: Spans = []
    for _, low, high, count in rows:
        if count > high - low:
            yield low, high
        for a, b in seen:
            if max(a, low) < min(b, high):
                yield max(a, low), min(b, high)
        seen = joined_spans([*seen, (low, high)])


def _numbered_backwards(name: str, sent: list[SequenceRun]) -> list[Finding]:
    """Numbers of sends that fall from one interval to a later one."""
    top = 0
    for interval, rows in itertools.groupby(sent, key=lambda row: row[0]):
        spans = [(low, high) for _, low, high, _ in rows]
        if spans[0][0] < top:
            message = (
                f"{name}: message {spans[0][0]} was sent in interval {interval} of its sender, after message "
                f"{top - 1} in an earlier one: its log or its numbering runs backwards"
            )
            return [Finding("order-backwards", "error", name, message)]
        top = max(top, *(high for _, high in spans))
    return []


def _never_sent(name: str, sent: list[SequenceRun], received: list[SequenceRun], trimmed: bool) -> list[Finding]:
    """Received numbers below the sender's highest, and if its log begins late above its lowest, that it never sent."""
    sends = joined_spans((low, high) for _, low, high, _ in sent)
    if not sends:
        return []
    least = sends[0][0] if trimmed else 0
    spans = joined_spans((low, high) for _, low, high, _ in received)
    never = [gap for low, high in spans for gap in without(max(low, least), min(high, sends[-1][1]), sends)]
    if not never:
        return []
    count = sum(high - low for low, high in never)
    message = f"{name}: {count} messages were received and never sent, number {never[0][0]} among them"
    return [Finding("receive-without-send", "error", name, message)]


def _out_of_order(names: list[str]) -> Finding:
    message = (
        f"{len(names)} {'channel' if len(names) == 1 else 'channels'} delivered out of order, {names[0]} among them: "
        "sends and receives were joined by number to tell what is in flight"
    )
    return Finding("out-of-order-channel", "info", names[0], message)
