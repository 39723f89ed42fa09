"""What follows from a line: ranges to replay, what the logs hold of them, what will be sent again, source offsets.

A channel from i to j with the line at x: messages [received of C(j, x_j), sent of C(i, x_i)) are in flight across
the line and are replayed from the channel's log; from `sent` on, the sender will send the same numbers again.
A channel whose two ends both keep running has lost nothing. Ranges are exact for FIFO channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.history import History, Ints
from cklog.model import Finding, ReplayRange, SourceOffset
from cklog.tables import Records, entries, flat_names


@dataclass(frozen=True, slots=True)
class Ranges:
    """Replay ranges of all channels: half-open [start, end), and the highest number known to be sent."""

    start: Ints
    end: Ints
    known: Ints


def ranges_of(history: History, line: Ints, newest_sent: Ints) -> Ranges:
    """Replay ranges of every channel across `line`.

    Parameters
    ----------
    newest_sent : watermark of each channel's sender at the newest record, usable or not, shape (c,)
    """
    kept = history.survivor & (line == history.newest)
    start, end = history.received_of(line), history.sent_of(line)
    running = kept[history.src] & kept[history.dst]
    start = np.where(running, np.maximum(start, end), np.minimum(start, end))
    known = np.maximum(newest_sent, end)
    return Ranges(start, np.where(running, start, end), np.where(kept[history.src], end, known))


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


def joined(
    channels: tuple[str, ...],
    ranges: Ranges,
    islands: pa.Table | None,
    first_retained: Mapping[str, int],
) -> tuple[list[ReplayRange], list[Finding]]:
    """Replay ranges with what the channel logs hold of them.

    Parameters
    ----------
    islands : reduced scan of the logs (`cklog.message_log`): channel, zone, from, to, rows, bytes; None: no logs
    first_retained : sequence number per channel below which the manifest says that nothing is kept
    """
    held = _by_channel(islands)
    rows, findings = [], []
    unlogged = []
    for k, name in enumerate(channels):
        start, end, known = int(ranges.start[k]), int(ranges.end[k]), int(ranges.known[k])
        inside, after = held.get(name, ([], 0))
        low = first_retained.get(name, 0)
        gaps = None if islands is None and name not in first_retained else _gaps(start, end, low, inside, islands)
        known = max(known, after)
        count = sum(_overlap(piece, start, end, low) for piece in inside) if islands is not None else None
        size = sum(piece[3] for piece in inside) if islands is not None else None
        if end > start and gaps is None:
            unlogged.append(name)
        for gap in gaps or []:
            findings.append(_hole(name, gap, start, end))
        copies = sum(piece[2] for piece in inside) - sum(piece[1] - piece[0] for piece in inside)
        if copies > 0:
            text = f"{name}: {copies} messages of [{start}, {end}) are in the log more than once; bytes count each copy"
            findings.append(Finding("duplicate-messages", "warning", name, text))
        again = (end, known) if known > end else (None, None)
        retained = (True if end == start else None) if gaps is None else not gaps
        rows.append(
            ReplayRange(name, start, end, 0 if end == start else count, 0 if end == start else size, retained, *again)
        )
    if unlogged:
        text = (
            f"{len(unlogged)} channels have messages in flight and no log is here to replay them from, "
            f"{unlogged[0]} among them: find their logs, or those messages are lost"
        )
        findings.append(Finding("no-channel-log", "warning", unlogged[0], text))
    return rows, findings


def _by_channel(islands: pa.Table | None) -> dict[str, tuple[list[tuple[int, int, int, int]], int]]:
    """Islands in the range as (from, to, rows, bytes), and the end of the log after it, by channel."""
    held: dict[str, tuple[list[tuple[int, int, int, int]], int]] = {}
    for row in islands.to_pylist() if islands is not None else []:
        inside, after = held.get(row["channel"], ([], 0))
        if row["zone"] == "range":
            inside = [*inside, (row["from"], row["to"], row["rows"], row["bytes"])]
        else:
            after = max(after, row["to"])
        held[row["channel"]] = inside, after
    return {name: (sorted(inside), after) for name, (inside, after) in held.items()}


def _overlap(piece: tuple[int, int, int, int], start: int, end: int, low: int) -> int:
    return max(0, min(piece[1], end) - max(piece[0], start, low))


def _gaps(start: int, end: int, low: int, inside: list[Any], islands: pa.Table | None) -> list[tuple[int, int]]:
    """Parts of [start, end) that no log holds; without a log only what the manifest says is gone."""
    if islands is None:
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


def sources_of(records: Records, history: History, line: Ints) -> list[SourceOffset]:
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
