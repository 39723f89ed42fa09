"""What follows from a line: ranges to replay, what the logs hold of them, what will be sent again, source offsets.

A channel from i to j with the line at x: messages [received of C(j, x_j), sent of C(i, x_i)) are in flight across
the line and are replayed from the channel's log; from `sent` on, the sender will send the same numbers again.
A channel whose two ends both keep running has lost nothing. Of a channel that delivered out of order, what is in
flight may have holes: messages that had overtaken others (`cklog.history.deliveries`, which needs raw events).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.arrays.columns import entries, flat_names
from cklog.arrays.spans import Spans
from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.history.deliveries import Deliveries
from cklog.history.records import CheckpointRecords
from cklog.model.findings import Finding
from cklog.model.lines import ReplayRange, SourceOffset


@dataclass(frozen=True, slots=True)
class Ranges:
    """Replay ranges of c channels: half-open [start, end), and the highest number known to be sent, shape (c,).

    `parts` of a channel, by index: what of its range is in flight, where that is not all.
    """

    start: Ints
    end: Ints
    known: Ints
    parts: Mapping[int, Spans] = field(default_factory=dict)

    def of(self, channel: int) -> Spans:
        """What is in flight on a channel, one span at least, be it empty."""
        start, end = int(self.start[channel]), int(self.end[channel])
        return self.parts.get(channel, [(start, end)]) or [(end, end)]


def ranges_of(history: History, line: Ints, newest_sent: Ints, deliveries: Deliveries) -> Ranges:
    """Replay ranges of every channel across `line`.

    Parameters
    ----------
    newest_sent : watermark of each channel's sender at the newest record, usable or not, shape (c,)
    deliveries : what channels delivered that did so out of order
    """
    kept = history.survivor & (line == history.newest)
    start, end = history.received_of(line), history.sent_of(line)
    running = kept[history.src] & kept[history.dst]
    start = np.where(running, np.maximum(start, end), np.minimum(start, end))
    known = np.maximum(newest_sent, end)
    end = np.where(running, start, end)
    label = [None if number < 0 else number for number in history.label_of(line)[history.dst].tolist()]
    parts = {
        k: deliveries.missing(name, label[k], int(end[k]))
        for k, name in enumerate(history.channels)
        if name in deliveries.received and not running[k]
    }
    return parted(Ranges(start, end, np.where(kept[history.src], end, known)), parts)


def parted(ranges: Ranges, parts: Mapping[int, Spans]) -> Ranges:
    """The same ranges, of some channels only the parts given; each channel's range begins with its first part."""
    start = ranges.start.copy()
    for k, spans in parts.items():
        start[k] = spans[0][0] if spans else ranges.end[k]
    return replace(ranges, start=start, parts=parts)


def receive_without_send(history: History, line: Ints) -> list[Finding]:
    """Channels whose receiver holds more than its running sender has ever sent: the logs contradict each other."""
    found = []
    over = history.received_of(line) > history.sent_of(line)
    for k in np.flatnonzero(over).tolist():
        name = history.channels[k]
        message = (
            f"{name}: {history.subtasks[history.dst[k]]} has received up to {history.received_of(line)[k]}, "
            f"but {history.subtasks[history.src[k]]} has sent up to {history.sent_of(line)[k]} only"
        )
        found.append(Finding("receive-without-send", "error", name, message))
    return found


def impossible_loops(history: History) -> list[Finding]:
    """Self-channels on which a checkpoint has received what it has not sent: no order of events does that."""
    found = []
    for k in np.flatnonzero(history.src == history.dst).tolist():
        sent = history.sent[history.sent_at[k] : history.sent_at[k + 1]]
        received = history.received[history.received_at[k] : history.received_at[k + 1]]
        if (received > sent).any():
            name = history.channels[k]
            x = int(np.flatnonzero(received > sent)[0])
            message = f"{name}: a checkpoint has received {received[x]} and sent {sent[x]}; it is on no line"
            found.append(Finding("receive-without-send", "error", name, message))
    return found


StoredRange = tuple[int, int, int, int]
"""From, to, rows and bytes of a run of messages in a log."""


def first_retained(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Sequence number per channel below which, the manifest says, nothing is kept."""
    rows = manifest.get("channels", [])
    return {row["channel"]: row["first_retained"] for row in rows if row.get("first_retained") is not None}


def joined(
    channels: tuple[str, ...],
    ranges: Ranges,
    islands: pa.Table | None,
    retained: Mapping[str, int],
    stored: Mapping[str, Sequence[StoredRange]],
) -> tuple[list[ReplayRange], list[Finding]]:
    """Replay ranges with what the channel logs hold of them; the first of a channel tells what is sent again.

    Parameters
    ----------
    islands : reduced scan of the logs (`cklog.runs.records.channel_logs`): channel, zone, from, to, rows, bytes; None:
    no logs retained : sequence number per channel below which the manifest says that nothing is kept
    stored : what checkpoints of the line hold, by channel; a range that they hold whole is there, log or no log
    """
    held = _by_channel(islands)
    rows, findings = [], []
    for k, name in enumerate(channels):
        pieces, after = held.get(name, ([], 0))
        sent, known = int(ranges.end[k]), max(int(ranges.known[k]), after)
        again = (sent, known) if known > sent else (None, None)
        for start, end in ranges.of(k):
            own = [piece for piece in stored.get(name, ()) if piece[0] < end and piece[1] > start]
            if own and not _gaps(start, end, 0, own):
                row, found = _held(name, start, end, own, None)
            else:
                logged = pieces if islands is not None else None
                row, found = _held(name, start, end, logged, retained.get(name))
            rows.append(replace(row, resent_from=again[0], resent_to=again[1]))
            findings += found
            again = (None, None)
    return rows, [*findings, *unlogged_channels(rows)]


def unlogged_channels(rows: Sequence[ReplayRange]) -> list[Finding]:
    """That messages are in flight on channels of which no log is here."""
    unlogged = list(dict.fromkeys(row.channel for row in rows if row.retained is None))
    if not unlogged:
        return []
    text = (
        f"{len(unlogged)} channels have messages in flight and no log is here to replay them from, "
        f"{unlogged[0]} among them: find their logs, or those messages are lost"
    )
    return [Finding("no-channel-log", "warning", unlogged[0], text)]


def _held(
    name: str, start: int, end: int, pieces: list[StoredRange] | None, low: int | None
) -> tuple[ReplayRange, list[Finding]]:
    """What the log holds of one range; `pieces` None: there is no log; `low` None: the manifest says nothing."""
    inside = [piece for piece in pieces or [] if piece[0] < end and piece[1] > start]
    if start == end:
        gaps, count, size = [], 0, 0
    else:
        gaps = _gaps(start, end, low or 0, inside if pieces is not None else None)
        count = sum(_overlap(piece, start, end, low or 0) for piece in inside)
        size = sum(piece[3] for piece in inside)
    findings = [_hole(name, gap, start, end) for gap in gaps]
    copies = sum(piece[2] for piece in inside) - sum(piece[1] - piece[0] for piece in inside)
    if copies > 0:
        text = f"{name}: {copies} messages of [{start}, {end}) are in the log more than once; bytes count each copy"
        findings.append(Finding("duplicate-messages", "warning", name, text))
    unknown = pieces is None and start < end
    retained = None if unknown and low is None else not gaps
    return ReplayRange(name, start, end, None if unknown else count, None if unknown else size, retained), findings


def _by_channel(islands: pa.Table | None) -> dict[str, tuple[list[StoredRange], int]]:
    """Islands in the range as (from, to, rows, bytes), and the end of the log after it, by channel."""
    held: dict[str, tuple[list[StoredRange], int]] = {}
    for row in islands.to_pylist() if islands is not None else []:
        inside, after = held.get(row["channel"], ([], 0))
        if row["zone"] == "range":
            inside = [*inside, (row["from"], row["to"], row["rows"], row["bytes"])]
        else:
            after = max(after, row["to"])
        held[row["channel"]] = inside, after
    return {name: (sorted(inside), after) for name, (inside, after) in held.items()}


def _overlap(piece: StoredRange, start: int, end: int, low: int) -> int:
    return max(0, min(piece[1], end) - max(piece[0], start, low))


def _gaps(start: int, end: int, low: int, inside: list[StoredRange] | None) -> Spans:
    """Parts of [start, end) that no log holds; without a log (None) only what the manifest says is gone."""
    if inside is None:
        return [(start, min(low, end))] if start < min(low, end) else []
    gaps, at = [], start
    for first, last, *_ in inside:
        first = max(first, low)
        if first > at:
            gaps.append((at, min(first, end)))
        at = max(at, last)
    return [*gaps, (at, end)] if at < end else gaps


def _hole(name: str, gap: tuple[int, int], start: int, end: int) -> Finding:
    text = (
        f"{name}: messages {gap[0]} to {gap[1] - 1} are gone from the log; they are in flight across the line "
        f"([{start}, {end})) and cannot be replayed: without them the results downstream will be wrong"
    )
    return Finding("retention-hole", "error", name, text)


def sources_of(records: CheckpointRecords, history: History, line: Ints) -> list[SourceOffset]:
    """Where each source resumes: the offset at its reader's checkpoint on the line, None = from its start.

    A source that a checkpoint does not mention keeps the offset of the checkpoint before it.
    """
    kept = history.survivor & (line == history.newest)
    row, code, names, value = entries(records.table["sources"])
    owner, number = records.subtask[row], records.number[row]
    label = history.label_of(line)
    offsets: dict[tuple[int, int], int | None] = {}
    for pair in sorted(set(zip(owner.tolist(), code.tolist(), strict=True))):
        offsets[pair] = None
    inside = number <= label[owner] if len(owner) else np.zeros(0, np.bool_)
    for pair, offset in zip(
        zip(owner[inside].tolist(), code[inside].tolist(), strict=True), value[inside].tolist(), strict=True
    ):
        offsets[pair] = offset
    rows = [SourceOffset(names[c], offset, *history.subtasks[s]) for (s, c), offset in offsets.items() if not kept[s]]
    return sorted(rows, key=lambda r: (flat_names(r.source), r.operator, r.subtask))


def shared_sources(sources: list[SourceOffset]) -> list[Finding]:
    """Sources that several subtasks of one operator read from: the lowest offset loses nothing, doubles some."""
    readers: dict[tuple[str, str], list[SourceOffset]] = {}
    for source in sources:
        readers.setdefault((source.operator, source.source), []).append(source)
    found = []
    for (operator, name), rows in sorted(readers.items()):
        if len(rows) > 1 and len({r.offset for r in rows}) > 1:
            told = ", ".join(f"{r.operator}/{r.subtask} at {r.offset}" for r in rows)
            message = f"{name} is read by several subtasks of {operator} ({told}): it moved between them"
            found.append(Finding("shared-source", "warning", name, message))
    return found
