"""The upstream of an operator: which tuples must come again from T on, and where its own output queue has them.

Tuples are found by input number where the record of that number in the upstream's queue has the timestamp that
the operator noted; else by time, from the first record at or after T, which is never too late. The queue of a Kafka
partition is looked up by its time index (the paper's stream index) and may hold any records; others are read back
from their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from cklog.engine.scan import Damage
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.eventual import EventualReplay, UpstreamOffset
from cklog.model.findings import Finding, Where
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.verdict import FLAWS
from cklog.queues.judge import QueueJudgement
from cklog.queues.log import EMIT, RESULT, UNKNOWN, QueueLog, TailReader, reading_back


class Upstream(NamedTuple):
    """The queues of a run and the channels that its manifest names."""

    queues: Mapping[Subtask, Queue]
    manifest: Mapping[str, Any]

    def replay_of(self, subtask: Subtask, judged: QueueJudgement) -> tuple[EventualReplay, list[Finding]]:
        """Return what must be replayed into `subtask`, with findings about what the upstream lacks of it."""
        log = judged.log
        numbers = None if judged.at is None else dict(zip(log.channels, judged.at.tolist(), strict=True))
        findings: list[Finding] = []
        offsets = []
        for channel, column in self._incoming_channels(subtask, log):
            queue = self.queues.get(channel.sender)
            if queue is None:
                continue
            number = None if numbers is None else numbers.get(column)
            stamp = None if number is None else _stamp_of(judged, number, column)
            offset, about = _upstream_offset(queue, channel, number, stamp, judged)
            offsets += [offset] if offset else []
            findings += about
        own = _tuples_since(judged)
        sizes = [o.bytes for o in offsets]
        replay = EventualReplay(
            from_ts=judged.ts,
            from_input=_replayed_from(numbers),
            tuples=own if own is not None or not offsets else sum(o.tuples for o in offsets),
            bytes=sum(b or 0 for b in sizes) if offsets and None not in sizes else None,
            upstream=tuple(offsets),
        )
        return replay, findings

    def _incoming_channels(self, subtask: Subtask, log: QueueLog) -> Iterable[tuple[Channel, str]]:
        """Yield incoming channels, each with the name under which records count its tuples ("" for an only one)."""
        names = [row["channel"] for row in self.manifest.get("channels", [])]
        parsed = [parse_channel(name) for name in (*names, *log.channels)]
        incoming = sorted({c for c in parsed if c is not None and c.receiver == subtask})
        for channel in incoming:
            yield channel, str(channel) if str(channel) in log.channels else ""


def _replayed_from(numbers: dict[str, int] | None) -> int | dict[str, int] | None:
    """Return T by input, as the records count it; -1 is before the first tuple, so the replay begins with the first."""
    if not numbers:
        return None
    known = {name: max(number, 0) for name, number in numbers.items()}
    return known[""] if set(known) == {""} else known


def _tuples_since(judged: QueueJudgement) -> int | None:
    """Count the tuples from T to the tail, by input numbers; None without them."""
    log = judged.log
    if not log.channels or judged.at is None or not len(log):
        return None
    pairs = zip(log.input[-1].tolist(), judged.at.tolist(), strict=True)
    return sum(int(end) - max(int(start), 0) + 1 for end, start in pairs)


def _upstream_offset(
    queue: Queue, channel: Channel, number: int | None, stamp: int | None, judged: QueueJudgement
) -> tuple[UpstreamOffset | None, list[Finding]]:
    """Find the first record of the upstream's queue to replay: by its indexes, or reading it back from its end.

    `number` is that of the channel's tuple at T, None if the records do not count it; `stamp` as of `_stamp_of`.
    """
    first: int | None
    last: int | None
    indexed = queue.since(judged.ts, number, stamp)
    if indexed is not None:
        found = UpstreamOffset(
            operator=queue.subtask.operator,
            subtask=queue.subtask.subtask,
            channel=str(channel),
            pos=indexed.offset,
            end=indexed.end,
            path=indexed.path,
            offset=indexed.at,
            by=indexed.by,
            tuples=indexed.tuples,
            bytes=indexed.bytes,
        )
        first, last, at_head = indexed.first, indexed.end - 1, indexed.offset == indexed.first
        damage, lost = indexed.damage, [_place_of(item) for item in indexed.damage if item.id in _LOST]
    else:
        log = read_back(queue, number, judged.ts)
        if not len(log):
            message = f"{channel}: the queue of {queue.subtask} holds no record at or after T that can be read"
            behind = Finding("upstream-behind", "warning", str(channel), message)
            return None, [behind, *queue.findings(), *damage_findings(log.damage)]
        row, by = _first_row(log, number, stamp, judged)
        found = _by_reading(queue, channel, log, row, by)
        damage, lost = _damage_from(log, row, by), _lost_from(log, row, by)
        first = None if log.pos[0] == UNKNOWN else int(log.pos[0])
        last = None if log.pos[-1] == UNKNOWN else int(log.pos[-1])
        at_head = log.from_head and found.pos == first
    hole = _hole_at_head(queue, first, number, judged) if at_head else []
    inside = _hole_inside(queue, channel, damage, lost)
    return found, [*hole, *inside, *_torn_tail(queue, channel, last, judged), *queue.findings()]


_PLACES = 10
_LOST = FLAWS - {"torn-tail"}
"""Damage after which tuples are missing; a torn end was never durable, so it comes again."""


def _place_of(item: Damage) -> Where:
    return Where(item.path, item.offset)


def _damage_from(log: QueueLog, row: int, by: Literal["input", "time"]) -> tuple[Damage, ...]:
    """Return the damage at or behind the first row to replay; of the place before it only if time alone led there."""
    return tuple(item for item, _ in _damaged_rows(log, row, by))


def _damaged_rows(log: QueueLog, row: int, by: Literal["input", "time"]) -> list[tuple[Damage, int]]:
    """Return the same, each with the row that it lies before."""
    first = row if by == "time" else row + 1
    return [(item, at) for item, at in zip(log.damage, log.damage_at.tolist(), strict=True) if at >= first]


def _lost_from(log: QueueLog, row: int, by: Literal["input", "time"]) -> list[Where]:
    """Return where records are missing of those to replay: unreadable ones, or numbers that none has.

    A torn end that others follow is the queue's no more: it counts where no numbers tell whether they go on. Where time
    alone led to the first row, what is missing before it may be to replay, too.
    """
    damaged = _damaged_rows(log, row, by)
    unknown = np.append(log.pos == UNKNOWN, False)
    torn = [item.id in FLAWS and at < len(log) and bool(unknown[at] or unknown[at - 1]) for item, at in damaged]
    found = [_place_of(item) for (item, _), inside in zip(damaged, torn, strict=True) if inside or item.id in _LOST]
    first = max(row - 1, 0) if by == "time" else row
    rows = first + np.flatnonzero(log.pos[first:] >= max(int(log.pos[first]), 0))  # not those of an older file's copy
    rows = rows[np.argsort(log.pos[rows], kind="stable")]
    behind = rows[1:][np.diff(log.pos[rows]) > 1]
    return found + [Where(log.paths[log.file[at]], int(log.offset[at])) for at in behind[:_PLACES].tolist()]


def _hole_inside(queue: Queue, channel: Channel, damage: Sequence[Damage], lost: Sequence[Where]) -> list[Finding]:
    """Say what cannot be read, or is missing, of that which is to be replayed."""
    found = damage_findings(damage)
    if not lost:
        return found
    message = (
        f"{channel}: part of what is to be replayed from the queue of {queue.subtask} cannot be read, or is gone: its "
        "tuples are missing from the replay, and the state cannot be completed from here"
    )
    places = tuple(lost[:_PLACES])
    return [*found, Finding("retention-hole", "error", str(queue.subtask), message, where=places, effect="data-lost")]


def _by_reading(
    queue: Queue, channel: Channel, log: QueueLog, row: int, by: Literal["input", "time"]
) -> UpstreamOffset:
    """Return what is to be replayed from a row on, of a queue that was read back far enough."""
    data = (log.type[row:] == EMIT) | (log.type[row:] == RESULT)
    sizes = log.bytes[row:][data]
    known = bool((sizes != UNKNOWN).all())
    ts = log.ts[row:][data]
    return UpstreamOffset(
        operator=queue.subtask.operator,
        subtask=queue.subtask.subtask,
        channel=str(channel),
        pos=None if log.pos[row] == UNKNOWN else int(log.pos[row]),
        end=None if log.pos[-1] == UNKNOWN else int(log.pos[-1]) + 1,
        path=log.paths[log.file[row]],
        offset=int(log.offset[row]),
        by=by,
        tuples=int(data.sum()),
        bytes=int(sizes.sum()) if known else None,
        distinct_ts=bool((ts[1:] > ts[:-1]).all()),
    )


def read_back(queue: Queue, number: int | None, ts: int | None) -> QueueLog:
    """Read a queue from its end to a record before T, or to its head."""
    reader = TailReader(queue)
    with reading_back(queue):
        while reader.more():
            by_time = ts is not None and reader.first_ts is not None and reader.first_ts < ts
            by_input = number is None or reader.first_pos is None or reader.first_pos < number
            if by_time and by_input:
                break
    return reader.log()


def _first_row(
    log: QueueLog, number: int | None, stamp: int | None, judged: QueueJudgement
) -> tuple[int, Literal["input", "time"]]:
    """Return the row to replay from, by input number if its timestamp agrees, else by time."""
    if judged.ts is None:
        return 0, "time"
    if number is not None and number >= 0:
        rows = np.flatnonzero(log.pos == number)
        if len(rows) and stamp == log.ts[rows[0]]:
            return int(rows[0]), "input"
    later = np.flatnonzero(log.ts >= judged.ts)
    return (int(later[0]) if len(later) else len(log) - 1), "time"


def _stamp_of(judged: QueueJudgement, number: int, column: str) -> int | None:
    """Return the timestamp that the operator noted with a tuple's number on the channel `column` of its records.

    That is of the first record which has taken the tuple; None if no record ends with it. Another channel's tuple may
    have the same number.
    """
    log = judged.log
    rows = np.flatnonzero(log.input[:, log.channels.index(column)] == number)
    return int(log.ts[rows[0]]) if len(rows) else None


def _hole_at_head(queue: Queue, first: int | None, number: int | None, judged: QueueJudgement) -> list[Finding]:
    """Say that the upstream, whose first record is to be replayed, has thrown away tuples that are needed."""
    if not first or (number is not None and number >= first):
        return []
    wanted = "its start" if judged.ts is None else f"T = {judged.ts}"
    message = (
        f"{queue.subtask}: its output queue begins at record {first}, and the replay from {wanted} needs older ones: "
        "the state cannot be completed from here"
    )
    return [Finding("retention-hole", "error", str(queue.subtask), message, effect="data-lost")]


def _torn_tail(queue: Queue, channel: Channel, last: int | None, judged: QueueJudgement) -> list[Finding]:
    """Say that the operator has taken tuples that its upstream's queue does not hold: their records were torn."""
    own = judged.log
    name = str(channel) if str(channel) in own.channels else ""
    if name not in own.channels or not len(own) or last is None:
        return []
    taken = int(own.input[-1, own.channels.index(name)])
    if taken <= last:
        return []
    message = (
        f"{channel}: {channel.receiver} has taken tuple {taken}, and the queue of {queue.subtask} ends at record "
        f"{last}: what is between must come again with the same numbers, which only a deterministic upstream does"
    )
    return [Finding("upstream-behind", "warning", str(channel), message)]
