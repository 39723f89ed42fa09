"""The tuples that go with a round: those that belong to individual checkpoints, and those preserved at the sources.

Across a round, messages [received of the receiver's checkpoint, sent of the sender's) of a channel are neither
restored with the receiver nor sent again: under MS-src+ap they lie between the sender's outgoing token and its own
checkpoint, and are a part of that checkpoint (Meteor Shower, section III-B). What a source sent after its checkpoint
it has preserved before sending, and sends again (section III-A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.arrays.spans import Spans, joined_spans, without
from cklog.arrays.types import Ints
from cklog.engine.reading import Reading
from cklog.history.arrays import History
from cklog.history.tokens import PreservedSpans, TokenLog
from cklog.history.watermarks import UNBOUNDED
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.lines.replay_ranges import first_retained
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.runs.records import channel_logs as message_log

_OPEN = 1 << 62
"""The end of a range whose end only the log tells."""

TupleRange = tuple[int, int, int]
"""From, to and bytes of a run of messages in a log."""


@dataclass(frozen=True, slots=True)
class SavedTuples:
    """Messages [from, to) of a channel that belong to its sender's individual checkpoint.

    `stored` of them were stored with it, as the system log says, `logged` more are in the channel's log; `bytes` of
    these. `there`: all of them are; None: nothing tells.
    """

    operator: str
    subtask: int
    channel: str
    from_: int
    to: int
    stored: int
    logged: int
    bytes: int | None
    there: bool | None


@dataclass(frozen=True, slots=True)
class PreservedTuples:
    """Messages [from, to) that a source has sent since its checkpoint; `preserved` of them are in its log.

    `there`: all of them are; None: no log of them is here, and `preserved` and `bytes` are None too. `offset`: the
    source reads its input again from offsets of its own.
    """

    operator: str
    subtask: int
    channel: str
    from_: int
    to: int
    preserved: int | None
    bytes: int | None
    there: bool | None
    offset: bool


@dataclass(frozen=True, slots=True)
class Tuples:
    """What goes with a round; `findings` and `inputs` of the logs that were read for it."""

    saved: tuple[SavedTuples, ...]
    preserved: tuple[PreservedTuples, ...]
    findings: list[Finding]
    inputs: list[InputUsed]


def sources_of_job(history: History, manifest: Mapping[str, Any]) -> frozenset[int]:
    """The source subtasks: by their operators' kind, or those that no channel leads to."""
    kinds = {row["name"] for row in manifest.get("operators", []) if row.get("kind") == "source"}
    if kinds:
        return frozenset(i for i, subtask in enumerate(history.subtasks) if subtask.operator in kinds)
    fed = set(history.dst[history.src != history.dst].tolist())
    return frozenset(set(history.src.tolist()) - fed)


@dataclass(frozen=True, slots=True, eq=False)
class RoundCut:
    """A round's line (n,) at place `place` among all (-1: initial states), and what is known of later messages.

    `known` : next message that somebody is known to have sent or received, (c,)
    """

    place: int
    line: Ints
    sources: frozenset[int]
    known: Ints
    as_of: int | None


def known_sent(history: History, newest_sent: Ints, log: TokenLog) -> Ints:
    """How far each channel is known to have been used: by checkpoints of both ends and by tokens, (c,)."""
    known = newest_sent.copy()
    last = history.received[history.received_at[1:] - 1]
    known = np.maximum(known, np.where(last == UNBOUNDED, 0, last))
    for passed in (log.sent, log.received):
        np.maximum.at(known, passed.key % max(len(known), 1), passed.seq)
    return known


def tuples_of(
    tables: OffersRecords,
    reading: Reading,
    history: History,
    cut: RoundCut,
    log: TokenLog,
    offsets: frozenset[int],
) -> Tuples:
    """The tuples that go with a round, from one scan of the channel logs; `offsets`: sources that have their own."""
    start, end = history.received_of(cut.line), history.sent_of(cut.line)
    start = np.minimum(start, end)
    from_source = np.isin(history.src, sorted(cut.sources)) & (history.src != history.dst)
    until = np.where(from_source, _OPEN, end)
    islands, findings, inputs = _logged(tables, reading, message_log.Wanted(history.channels, start, until, cut.as_of))
    held = _by_channel(islands, first_retained(tables.manifest))
    told = any(place == cut.place for place, _ in log.tuples)
    saved, preserved = [], []
    for k in np.flatnonzero(start < end).tolist():
        kept = log.tuples.get((cut.place, k), PreservedSpans([], 0) if told else None)
        saved.append(_saved(_sender(history, k), history.channels[k], (int(start[k]), int(end[k])), kept, held))
    for k in np.flatnonzero(from_source).tolist():
        own = int(history.src[k]) in offsets
        pieces = held.get(history.channels[k], [] if islands is not None and not own else None)
        ends = int(end[k]), int(cut.known[k])
        preserved.append(_preserved(_sender(history, k), history.channels[k], ends, pieces, own))
        findings += _holes(preserved[-1], pieces)
    return Tuples(tuple(saved), tuple(preserved), [*findings, *_lost(saved), *_unlogged(preserved)], inputs)


def _sender(history: History, channel: int) -> Subtask:
    sender: Subtask = history.subtasks[history.src[channel]]
    return sender


def _saved(
    sender: Subtask,
    name: str,
    span: tuple[int, int],
    kept: tuple[Spans, int | None] | None,
    held: Mapping[str, list[TupleRange]],
) -> SavedTuples:
    """`kept`: spans that checkpoints of the round hold of the channel, and their bytes; None: that was not logged."""
    low, high = span
    spans, size = kept or ([], 0)
    pieces = held.get(name, [])
    runs = [(a, b) for a, b, _ in pieces]
    rest = without(low, high, spans)
    gaps = [gap for a, b in rest for gap in without(a, b, runs)]
    stored = high - low - _length(rest)
    logged = _length(rest) - _length(gaps)
    there = None if gaps and kept is None and not pieces else not gaps
    inside = all(a >= low and b <= high for a, b in runs) and not stored
    told = size if not logged else sum(p[2] for p in pieces) if inside else None
    return SavedTuples(*sender, name, low, high, stored, logged, None if there is None else told, there)


def _preserved(
    sender: Subtask, name: str, ends: tuple[int, int], pieces: list[TupleRange] | None, own: bool
) -> PreservedTuples:
    """What a source sends again from `ends[0]` on: as far as is known that it had come (`ends[1]`), or its log goes."""
    start, known = ends
    end = max([start, known, *(b for _, b, _ in pieces or [])])
    if pieces is None:
        return PreservedTuples(*sender, name, start, end, None, None, None if end > start else True, own)
    gaps = without(start, end, [(a, b) for a, b, _ in pieces])
    size = sum(bytes for *_, bytes in pieces) if all(a >= start for a, *_ in pieces) else None
    return PreservedTuples(*sender, name, start, end, end - start - _length(gaps), size, not gaps, own)


def _length(spans: Spans) -> int:
    return sum(b - a for a, b in spans)


def _logged(
    tables: OffersRecords,
    reading: Reading,
    wanted: message_log.Wanted,
) -> tuple[pa.Table | None, list[Finding], list[InputUsed]]:
    """What the channel logs hold of the ranges; None if there are no logs."""
    if not tables.has("channels"):
        return None, list(tables.findings("channels")), []
    kernel, columns = message_log.in_ranges(wanted), message_log.columns(wanted.as_of)
    partial, reduce = message_log.RANGED, message_log.RANGED_REDUCE
    return read_table(tables, reading, "channels", columns, kernel, partial, reduce, wanted.row_group)


def _by_channel(islands: pa.Table | None, retained: Mapping[str, int]) -> dict[str, list[TupleRange]]:
    """Runs of messages that are in a log and kept, in order, by channel."""
    held: dict[str, list[TupleRange]] = {}
    for row in islands.to_pylist() if islands is not None else []:
        low = max(row["from"], retained.get(row["channel"], 0))
        if row["zone"] == "range" and low < row["to"]:
            held.setdefault(row["channel"], []).append((low, row["to"], row["bytes"]))
    return {name: sorted(pieces) for name, pieces in held.items()}


def _holes(row: PreservedTuples, pieces: list[TupleRange] | None) -> list[Finding]:
    """What the source must send again and has not preserved."""
    gaps = [] if pieces is None else without(row.from_, row.to, joined_spans((p[0], p[1]) for p in pieces))
    return [
        Finding(
            "retention-hole",
            "error",
            row.channel,
            f"{row.channel}: messages {a} to {b - 1} are gone from the log; {row.operator}/{row.subtask} sent them "
            f"after its checkpoint and cannot send them again: without them the results downstream will be wrong",
        )
        for a, b in gaps
    ]


def _lost(saved: list[SavedTuples]) -> list[Finding]:
    """Tuples of individual checkpoints that are gone, or of which nothing tells whether they are there."""
    found = []
    for row in saved:
        if row.there is False:
            missing = row.to - row.from_ - row.stored - row.logged
            message = (
                f"{row.channel}: {missing} of messages {row.from_} to {row.to - 1} belong to the checkpoint of "
                f"{row.operator}/{row.subtask} and are neither with it nor in a log: the results downstream will be "
                "wrong"
            )
            found.append(Finding("retention-hole", "error", row.channel, message))
    untold = [row for row in saved if row.there is None]
    if untold:
        message = (
            f"messages of {len(untold)} channels belong to their senders' checkpoints, {untold[0].channel} among them; "
            "nothing tells whether they were stored with them, and no log is here"
        )
        found.append(Finding("no-channel-log", "warning", untold[0].channel, message))
    return found


def _unlogged(preserved: list[PreservedTuples]) -> list[Finding]:
    """Sources without a log and without offsets of their own."""
    untold = [row for row in preserved if row.there is None and not row.offset]
    if not untold:
        return []
    message = (
        f"{len(untold)} channels of sources have messages to send again and no log is here to tell whether they were "
        f"preserved, {untold[0].channel} among them: find their logs, or those messages are lost"
    )
    return [Finding("no-channel-log", "warning", untold[0].channel, message)]
