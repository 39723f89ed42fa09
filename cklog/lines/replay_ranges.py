"""What follows from a line: ranges to replay, what the logs hold of them, what will be sent again, source offsets.

A channel from i to j with the line at x: messages [received of C(j, x_j), sent of C(i, x_i)) are in flight across
the line and are replayed from the channel's log; from `sent` on, the sender will send the same numbers again.
A channel whose two ends both keep running has lost nothing. Of a channel that delivered out of order, what is in
flight may have holes: messages that had overtaken others (`cklog.history.deliveries`, which needs raw events).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.columns import entries, flat_names
from cklog.arrays.spans import Spans
from cklog.arrays.types import Ints
from cklog.history.deliveries import Deliveries
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import UNBOUNDED
from cklog.model.findings import Finding, Where
from cklog.model.lines import ReplayRange, SourceOffset
from cklog.model.names import Subtask
from cklog.model.verdict import FLAWS
from cklog.model.wording import among, first_few, many, numbered


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
        """Return what is in flight on a channel (its index), one span at least, be it empty."""
        start, end = int(self.start[channel]), int(self.end[channel])
        return self.parts.get(channel, [(start, end)]) or [(end, end)]


def ranges_of(history: History, line: Ints, newest_sent: Ints, deliveries: Deliveries) -> Ranges:
    """Return the replay ranges of every channel across `line`, shape (n,).

    Parameters
    ----------
    newest_sent : watermark of each channel's sender at the newest record, usable or not, shape (c,)
    deliveries : what channels delivered that did so out of order
    """
    kept = history.survivor & (line == history.newest)  # shape (n,): who keeps running
    start, end = history.received_of(line), history.sent_of(line)  # shape (c,), like all below
    running = kept[history.src] & kept[history.dst]  # nothing of such a channel is lost: its range is empty
    start = np.where(running, np.maximum(start, end), np.minimum(start, end))
    known = np.maximum(newest_sent, end)
    end = np.where(running, start, end)
    label = [None if number < 0 else number for number in history.label_of(line)[history.dst].tolist()]
    parts = {
        k: deliveries.missing(name, label[k], int(end[k]))
        for k, name in enumerate(history.channels)
        if name in deliveries.received and not running[k]
    }
    return with_parts(Ranges(start, end, np.where(kept[history.src], end, known)), parts)


def with_parts(ranges: Ranges, parts: Mapping[int, Spans]) -> Ranges:
    """Return the same ranges, of some channels only `parts`: each channel's range then begins with its first part."""
    start = ranges.start.copy()
    for k, spans in parts.items():
        start[k] = spans[0][0] if spans else ranges.end[k]
    return replace(ranges, start=start, parts=parts)


def receive_without_send(history: History, line: Ints) -> list[Finding]:
    """Report channels whose receiver holds more than its running sender has ever sent: logs contradict each other."""
    found = []
    received = history.received_of(line)
    over = (received > history.sent_of(line)) & (received < UNBOUNDED)  # what is not known contradicts nothing
    for k in np.flatnonzero(over).tolist():
        name = history.channels[k]
        message = (
            f"{name}: {history.subtasks[history.dst[k]]} has received up to {history.received_of(line)[k]}, "
            f"but {history.subtasks[history.src[k]]} has sent up to {history.sent_of(line)[k]} only"
        )
        found.append(Finding("receive-without-send", "error", name, message, effect="data-lost"))
    return found


def unknown_receipts(history: History, start: Ints, line: Ints, known: Sequence[Finding]) -> list[Finding]:
    """Report channels of which, as records are lost, nobody knows how much a rolled-back checkpoint had received.

    Parameters
    ----------
    start, line : an index per subtask, before and after the rollback, shape (n,)
    known : the findings so far, which name the files that are damaged
    """
    fallen = np.flatnonzero((line < start)[history.dst])
    newest = history.received[history.received_at[fallen] + start[history.dst[fallen]]]
    channels = [history.channels[k] for k in fallen[newest == UNBOUNDED].tolist()]
    if not channels:
        return []
    files = sorted({place.path for f in known if f.id in FLAWS for place in f.where or (Where(f.subject),)})
    message = (
        f"records are lost ({first_few(files, 3)}): what was received on {first_few(channels, 3)} when the job failed "
        "is not known and counts as too much. The line shown is safe, and the true one may be newer"
    )
    return [
        Finding("unknown-receipts", "error", channels[0], message, tuple(map(Where, files[:8])), effect="older-line")
    ]


def impossible_loops(history: History) -> list[Finding]:
    """Report self-channels on which a checkpoint has received what it has not sent: no order of events does that."""
    found = []
    for k in np.flatnonzero(history.src == history.dst).tolist():
        sent = history.sent[history.sent_at[k] : history.sent_at[k + 1]]
        received = history.received[history.received_at[k] : history.received_at[k + 1]]
        over = (received > sent) & (received < UNBOUNDED)
        if over.any():
            name = history.channels[k]
            x = int(np.flatnonzero(over)[0])
            message = f"{name}: a checkpoint has received {received[x]} and sent {sent[x]}; it is on no line"
            found.append(Finding("receive-without-send", "error", name, message, effect="data-lost"))
    return found


class StoredRange(NamedTuple):
    """A run of messages [start, end) in a log, kept in `rows` rows; `bytes` of all of them together."""

    start: int
    end: int
    rows: int
    bytes: int


def first_retained(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return the sequence number per channel below which, as the manifest says, nothing is kept."""
    rows = manifest.get("channels", [])
    return {row["channel"]: row["first_retained"] for row in rows if row.get("first_retained") is not None}


def replay_rows(
    channels: tuple[str, ...],
    ranges: Ranges,
    islands: pa.Table | None,
    retained: Mapping[str, int],
    stored: Mapping[str, Sequence[StoredRange]],
    unread: bool = False,
) -> tuple[list[ReplayRange], dict[str, Spans], list[Finding]]:
    """Return the replay ranges with what the channel logs hold of them, what is missing by channel, and findings on it.

    Only the first row of a channel says what will be sent again.

    Parameters
    ----------
    channels : names, in the order of `ranges`
    islands : reduced scan of the logs (`cklog.runs.records.channel_logs`): channel, zone, from, to, rows, bytes; None
        if there are no logs
    retained : sequence number per channel below which the manifest says that nothing is kept
    stored : what checkpoints of the line hold, by channel; a range that they hold whole is there, log or no log
    unread : a part of the logs is damaged or cannot be read: what is missing may be in it
    """
    held = None if islands is None else logged_messages(islands)
    rows, findings, missing = [], [], dict[str, Spans]()
    for k, name in enumerate(channels):
        logged = None if held is None else held.get(name, NOTHING_LOGGED)
        sent, known = int(ranges.end[k]), max(int(ranges.known[k]), logged.after if logged else 0)
        again = (sent, known) if known > sent else (None, None)
        for start, end in ranges.of(k):
            own = [piece for piece in stored.get(name, ()) if piece.start < end and piece.end > start]
            if own and not _missing_spans(start, end, 0, own):
                row, gaps, found = _range_in_log(name, start, end, own, None, unread)
            else:
                pieces = None if logged is None else logged.inside(start, end)
                row, gaps, found = _range_in_log(name, start, end, pieces, retained.get(name), unread)
            rows.append(replace(row, resent_from=again[0], resent_to=again[1]))
            missing.setdefault(name, []).extend(gaps)
            findings += found
            again = (None, None)
    return rows, missing, [*findings, *unlogged_channels(rows)]


def first_missing(
    channels: tuple[str, ...],
    ranges: Ranges,
    held: Mapping[str, LoggedMessages] | None,
    retained: Mapping[str, int],
) -> Ints:
    """Return the first message in flight on each channel that is gone, -1: none is; see `replay_rows`.

    `held` : what the channel logs hold, as `logged_messages` returns it; None: there are no logs
    """
    found = np.full(len(channels), -1)
    for k, name in enumerate(channels):
        logged = None if held is None else held.get(name, NOTHING_LOGGED)
        for start, end in ranges.of(k):
            inside = None if logged is None else logged.inside(start, end)
            gaps = _missing_spans(start, end, retained.get(name, 0), inside) if start < end else []
            if gaps:
                found[k] = gaps[0][0]
                break
    return found


def unlogged_channels(rows: Sequence[ReplayRange]) -> list[Finding]:
    """Report that messages are in flight on channels of which no log is here."""
    unlogged = list(dict.fromkeys(row.channel for row in rows if row.retained is None))
    if not unlogged:
        return []
    text = (
        f"{many(len(unlogged), 'channel', 'have')} messages in flight and no log is here to replay them from, "
        f"{among(len(unlogged), unlogged[0])}: find {'its log' if len(unlogged) == 1 else 'their logs'}, or those "
        "messages are lost"
    )
    return [Finding("no-channel-log", "warning", unlogged[0], text)]


def _range_in_log(
    name: str, start: int, end: int, pieces: list[StoredRange] | None, low: int | None, unread: bool
) -> tuple[ReplayRange, Spans, list[Finding]]:
    """Return what the log holds of one range of channel `name`, what it does not, and findings on that.

    `pieces` are those in the range, None: there is no log; `low` None: the manifest does not say from which number on
    messages are kept.
    """
    inside = pieces or []
    if start == end:
        gaps, count, size = [], 0, 0
    else:
        gaps = _missing_spans(start, end, low or 0, pieces)
        count = sum(_count_inside(piece, start, end, low or 0) for piece in inside)
        size = sum(piece.bytes for piece in inside)
    findings = [_retention_hole(name, gap, start, end, unread and gap[1] > (low or 0)) for gap in gaps]
    copies = sum(piece.rows - (piece.end - piece.start) for piece in inside)
    if copies > 0:
        text = (
            f"{name}: of messages {start} to {end - 1} the log holds {many(copies, 'copy')} too many: deduplicate when "
            "replaying; bytes count each copy"
        )
        findings.append(Finding("duplicate-messages", "warning", name, text))
    unknown = pieces is None and start < end
    row = ReplayRange(
        channel=name,
        replay_from=start,
        replay_to=end,
        messages=None if unknown else count,
        bytes=None if unknown else size,
        retained=None if unknown and low is None else not gaps,
    )
    return row, gaps, findings


class LoggedMessages(NamedTuple):
    """What the log of a channel holds: disjoint pieces in its range, in order; `after`: the end of what comes later."""

    pieces: list[StoredRange]
    after: int

    def inside(self, start: int, end: int) -> list[StoredRange]:
        """Return the pieces that overlap [start, end)."""
        first = bisect_right(self.pieces, start, key=lambda piece: piece.end)
        return self.pieces[first : bisect_left(self.pieces, end, lo=first, key=lambda piece: piece.start)]


NOTHING_LOGGED = LoggedMessages([], 0)


def logged_messages(islands: pa.Table) -> dict[str, LoggedMessages]:
    """Return what the log of each channel holds, from the reduced scan of the logs."""
    pieces: dict[str, list[StoredRange]] = {}
    after: dict[str, int] = {}
    for row in islands.to_pylist():
        name = row["channel"]
        if row["zone"] == "range":
            pieces.setdefault(name, []).append(StoredRange(row["from"], row["to"], row["rows"], row["bytes"]))
        else:
            after[name] = max(after.get(name, 0), row["to"])
    names = pieces.keys() | after.keys()
    return {name: LoggedMessages(sorted(pieces.get(name, [])), after.get(name, 0)) for name in names}


def _count_inside(piece: StoredRange, start: int, end: int, low: int) -> int:
    """Count the messages of a piece in [start, end) from `low` on."""
    return max(0, min(piece.end, end) - max(piece.start, start, low))


def _missing_spans(start: int, end: int, low: int, inside: list[StoredRange] | None) -> Spans:
    """Return the parts of [start, end) that no log holds; without a log (None) only those below `low`, which are gone.

    >>> _missing_spans(2, 9, 0, [StoredRange(0, 4, 4, 40), StoredRange(6, 8, 2, 20)])
    [(4, 6), (8, 9)]
    """
    if inside is None:
        return [(start, min(low, end))] if start < min(low, end) else []
    gaps, at = [], start  # all of [start, at) is held, or in `gaps`
    for piece in inside:
        first = max(piece.start, low)
        if first > at:
            gaps.append((at, min(first, end)))
        at = max(at, piece.end)
    return [*gaps, (at, end)] if at < end else gaps


def where_missing(unread: bool) -> str:
    """Say where messages are that no log was found to hold; `unread`: a file of the logs cannot be read.

    >>> where_missing(False), where_missing(True)
    ('gone from the log', 'gone from the log, or in a part of it that cannot be read')
    """
    return "gone from the log" + ", or in a part of it that cannot be read" * unread


def _retention_hole(name: str, gap: tuple[int, int], start: int, end: int, unread: bool) -> Finding:
    missing, needed = numbered("message", gap[0], gap[1] - 1, "are"), numbered("message", start, end - 1)
    text = (
        f"{name}: {missing} {where_missing(unread)}. In flight across the line, and to be replayed: {needed}. Without "
        f"{'these' if unread else 'what is gone'} the results downstream will be wrong"
    )
    return Finding("retention-hole", "error", name, text, effect="data-lost")


def sources_of(
    records: CheckpointRecords, history: History, line: Ints, manifest: Mapping[str, Any]
) -> list[SourceOffset]:
    """Return where each source resumes: the offset at its reader's checkpoint on the line, None = from its start.

    A source that a checkpoint does not mention keeps the offset of the checkpoint before it, at first that which the
    manifest says.
    """
    kept = history.survivor & (line == history.newest)
    row, code, names, value = entries(records.table["sources"])  # shape (entries,), like all below: one per source
    owner, number = records.subtask[row], records.number[row]
    inside = number <= history.label_of(line)[owner]
    offsets: dict[tuple[int, int], int | None] = dict.fromkeys(zip(owner.tolist(), code.tolist(), strict=True))
    for i, c, offset in zip(owner[inside].tolist(), code[inside].tolist(), value[inside].tolist(), strict=True):
        offsets[i, c] = offset  # records come in order, so the last one on the line stays
    number_of = {subtask: i for i, subtask in enumerate(history.subtasks)}
    resumed = {(number_of.get(reader, -1), name): begins for reader, name, begins in _stated_sources(manifest)}
    for (i, c), offset in offsets.items():
        if offset is not None:
            resumed[i, names[c]] = offset
        else:
            resumed.setdefault((i, names[c]), None)
    rows = [SourceOffset(name, to, *history.subtasks[i]) for (i, name), to in resumed.items() if i >= 0 and not kept[i]]
    return sorted(rows, key=lambda r: (flat_names(r.source), r.operator, r.subtask))


def _stated_sources(manifest: Mapping[str, Any]) -> Iterator[tuple[Subtask, str, int | None]]:
    """Yield the sources that the manifest names: who reads each, its name, and the offset at which it begins."""
    for row in manifest.get("sources", []):
        yield Subtask(row["operator"], row.get("subtask", 0)), row["source"], row.get("offset")


def shared_sources(sources: list[SourceOffset]) -> list[Finding]:
    """Report sources that several subtasks of one operator read from: the lowest offset loses nothing, doubles some."""
    readers: dict[tuple[str, str], list[SourceOffset]] = {}
    for source in sources:
        readers.setdefault((source.operator, source.source), []).append(source)
    found = []
    for (operator, name), rows in sorted(readers.items()):
        if len(rows) > 1 and len({r.offset for r in rows}) > 1:
            offsets = ", ".join(f"{r.operator}/{r.subtask} at {r.offset}" for r in rows)
            message = f"{name} is read by several subtasks of {operator} ({offsets}): it moved between them"
            found.append(Finding("shared-source", "warning", name, message))
    return found
