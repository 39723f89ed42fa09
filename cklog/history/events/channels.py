"""Whether the sequence numbers of raw events are what they must be, channel by channel.

A channel is in order, as far as any line can tell, if by each checkpoint of its receiver the messages received are
all those up to the highest. That, and that nobody sent or received a number twice, shows in the spans and counts of
each interval; only channels that fail it are read number by number.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

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
from cklog.model.wording import among, many


class SequenceRun(NamedTuple):
    """`events` events with the sequence numbers [low, high) in one interval; numbers may repeat."""

    interval: int
    low: int
    high: int
    events: int


def suspect_channels(order: Order, ports: Ports, intervals: pa.Table, lost: Losses) -> frozenset[str]:
    """Return the channels whose sends or receives, by interval, are not simply one number after the other.

    A row of `INTERVALS` is fine if it begins where the row before it of its port ended and holds as many events, with
    the same check sum (`check_of`), as it has numbers: [0, 3) with 3 events, then [3, 4) with 1.
    """
    port = np.searchsorted(2 * ports.channel + ports.side, port_keys(ports.names, intervals))
    sorting = np.lexsort((intervals["interval"].to_numpy(), port))  # by port, then by interval
    rows, port = intervals.take(pa.array(sorting)), port[sorting]
    least, after, count = (rows[name].to_numpy() for name in ("least", "next", "rows"))
    first = np.flatnonzero(np.diff(port, prepend=-1))  # the first row of each port
    begin = np.full(len(ports.side), NEVER)
    begin[port[first]] = least[first]
    expected = np.r_[0, after[:-1]]
    expected[first] = _first_numbers(ports, begin, lost)[port[first]]
    fine = (least == expected) & (count == after - least)
    fine &= (rows["check"].to_numpy() - check_of(least, after)) & 0xFFFFFFFF == 0
    fine |= rows["interval"].to_numpy() >= _known_intervals(order, lost)[ports.owner[port]]
    return frozenset(ports.names[k] for k in np.unique(ports.channel[port[~fine]]).tolist())


def _first_numbers(ports: Ports, least: Ints, lost: Losses) -> Ints:
    """Return the number that each port begins with if all is well: a receiver's is that of its sender; shape (ports,).

    `least` (ports,) are the lowest numbers that are known, `NEVER` for none. That of a sender whose log is not known
    from the beginning says nothing about its receiver.
    """
    sends = ports.side == 0
    unknown = lost.trimmed[ports.owner] | (lost.first[ports.owner] != NEVER)
    sent = np.full(len(ports.names), NEVER)
    sent[ports.channel[sends]] = np.where(unknown[sends], NEVER, least[sends])
    same = sends | lost.trimmed[ports.owner] | (sent[ports.channel] == NEVER)
    found: Ints = np.where(same, least, sent[ports.channel])
    return found


def _known_intervals(order: Order, lost: Losses) -> Ints:
    """Count the intervals of each subtask that are known to be whole: those before the first loss; shape (n,)."""
    starts = zip(order.places.start[:-1].tolist(), order.places.start[1:].tolist(), strict=True)
    before = [np.searchsorted(order.places.position[a:b], lost.first[i]) for i, (a, b) in enumerate(starts)]
    return np.where(lost.first == NEVER, NEVER, np.array(before, np.int64))


def examine_channels(
    order: Order, ports: Ports, lost: Losses, runs: pa.Table, channels: Collection[str]
) -> tuple[Deliveries, list[Finding]]:
    """Return what channels delivered, number by number, and findings on their numbers.

    Parameters
    ----------
    runs : every run of `channels` (`cklog.history.events.kernels.SEQUENCE_RUNS`), in any order
    """
    held: dict[tuple[str, str], list[SequenceRun]] = {}
    for row in runs.to_pylist():
        run = SequenceRun(row["interval"], row["from"], row["to"], row["rows"])
        held.setdefault((row["channel"], row["side"]), []).append(run)
    known = _known_intervals(order, lost)
    deliveries = Deliveries()
    findings: list[Finding] = []
    for name in sorted(channels):
        sender, receiver = order.places.ends(name)
        sent = _known_runs(held.get((name, "send"), []), known, sender)
        received = _known_runs(held.get((name, "receive"), []), known, receiver)
        whole = sender >= 0 and lost.first[sender] == NEVER  # of the sender's log nothing is missing
        late = bool(sender >= 0 and lost.trimmed[sender])  # except, perhaps, its beginning
        findings += _repeated_numbers(name, "send", sent) or _numbered_backwards(name, sent)
        findings += _repeated_numbers(name, "receive", received)
        if whole:
            findings += _never_sent(name, sent, received, late)
        floor = min((run.low for run in sent), default=0) if whole and not late else 0
        if receiver >= 0 and lost.trimmed[receiver]:
            floor = min((run.low for run in received), default=0)
        if not _received_in_order(received, floor):
            interval, low, high, _ = np.array(received, np.int64).T
            deliveries.received[name] = ReceivedRuns(interval, low, high)
            deliveries.floor[name] = floor
            deliveries.intervals[name] = _intervals_before(order, receiver)
    if deliveries.received:
        findings.append(_out_of_order_channels(list(deliveries.received)))
    return deliveries, findings


def _known_runs(runs: list[SequenceRun], known: Ints, owner: int) -> list[SequenceRun]:
    """Return the runs in order, of the first `known[owner]` intervals."""
    return sorted(run for run in runs if run.interval < known[owner])


def _intervals_before(order: Order, subtask: int) -> dict[int, int]:
    """Count the intervals before each checkpoint of a subtask, by checkpoint number."""
    numbers = order.taken["checkpoint"].to_numpy()[order.places.start[subtask] : order.places.start[subtask + 1]]
    return {number: x + 1 for x, number in enumerate(numbers.tolist())}


def _received_in_order(received: list[SequenceRun], floor: int) -> bool:
    """Say whether by the end of each interval all numbers from `floor` up to the highest had been received."""
    held: Spans = [(0, floor)]
    for _, runs in itertools.groupby(received, key=lambda run: run.interval):
        held = joined_spans([*held, *_spans_of(runs)])
        if len(held) > 1:
            return False
    return True


def _spans_of(runs: Iterable[SequenceRun]) -> Spans:
    return [(run.low, run.high) for run in runs]


def _repeated_numbers(name: str, side: str, runs: list[SequenceRun]) -> list[Finding]:
    """Report numbers that were used more than once."""
    spans = joined_spans(_spans_of(runs))
    count = sum(run.events for run in runs) - sum(high - low for low, high in spans)
    if not count:
        return []
    low, high = next(_repeated_spans(runs))
    where = f"number {low}" if high == low + 1 else f"numbers {low} to {high - 1}"
    if side == "send":
        message = (
            f"{name}: {many(count, 'message', 'were')} sent under a number that was used before, first among {where}"
        )
        return [Finding("duplicate-send", "error", name, message, effect="older-line")]
    message = f"{name}: {many(count, 'message', 'were')} received more than once, first among {where}"
    return [Finding("duplicate-receive", "warning", name, message)]


def _repeated_spans(runs: list[SequenceRun]) -> Iterator[tuple[int, int]]:
    """Yield spans in which a number is repeated, by interval."""
    seen: Spans = []
    for _, low, high, count in runs:
        if count > high - low:
            yield low, high
        for a, b in seen:
            if max(a, low) < min(b, high):
                yield max(a, low), min(b, high)
        seen = joined_spans([*seen, (low, high)])


def _numbered_backwards(name: str, sent: list[SequenceRun]) -> list[Finding]:
    """Report sends with lower numbers than those of an earlier interval."""
    top = 0
    for interval, runs in itertools.groupby(sent, key=lambda run: run.interval):
        spans = _spans_of(runs)
        if spans[0][0] < top:
            message = (
                f"{name}: message {spans[0][0]} was sent in interval {interval} of its sender, after message "
                f"{top - 1} in an earlier one: its log or its numbering runs backwards"
            )
            return [Finding("order-backwards", "error", name, message, effect="older-line")]
        top = max(top, *(high for _, high in spans))
    return []


def _never_sent(name: str, sent: list[SequenceRun], received: list[SequenceRun], trimmed: bool) -> list[Finding]:
    """Report numbers that were received and never sent, below the sender's highest.

    If its log begins late (`trimmed`), only numbers above its lowest count.
    """
    sends = joined_spans(_spans_of(sent))
    if not sends:
        return []
    least = sends[0][0] if trimmed else 0
    never: Spans = []
    for low, high in joined_spans(_spans_of(received)):
        never += without(max(low, least), min(high, sends[-1][1]), sends)
    if not never:
        return []
    count = sum(high - low for low, high in never)
    message = (
        f"{name}: {many(count, 'message', 'were')} received and never sent, {among(count, f'number {never[0][0]}')}"
    )
    return [Finding("receive-without-send", "error", name, message, effect="data-lost")]


def _out_of_order_channels(names: list[str]) -> Finding:
    """Report channels that delivered out of order."""
    message = (
        f"{many(len(names), 'channel')} delivered out of order, {among(len(names), names[0])}: "
        "sends and receives were joined by number to tell what is in flight"
    )
    return Finding("out-of-order-channel", "info", names[0], message)
