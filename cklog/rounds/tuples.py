"""Tuples that go with a round: those that belong to individual checkpoints, and those preserved at the sources.

Across a round, messages [received of the receiver's checkpoint, sent of the sender's) of a channel are neither
restored with the receiver nor sent again: under MS-src+ap they lie between the sender's outgoing token and its own
checkpoint, and are a part of that checkpoint (Meteor Shower, section III-B). What a source sent after its checkpoint
it has preserved before sending, and sends again (section III-A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.spans import Spans, joined_spans, without
from cklog.arrays.types import Ints
from cklog.engine.reading import Reading
from cklog.history.history import History
from cklog.history.tokens import PreservedSpans, TokenLog
from cklog.history.watermarks import UNBOUNDED
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.lines.replay_ranges import first_retained, where_missing
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.verdict import HIDING
from cklog.model.wording import agreeing, among, many, numbered
from cklog.runs.records import channel_logs as message_log

_OPEN = 1 << 62
"""The end of a range that goes as far as the log does."""


class LoggedRun(NamedTuple):
    """A run of messages [start, end) in a log, and their bytes."""

    start: int
    end: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SavedTuples:
    """Messages [from, to) of a channel that belong to its sender's individual checkpoint.

    `stored` of them were stored with it, as the system log says, `logged` more are in the channel's log; `bytes` is the
    size of these, None: not known. `there` says whether all are somewhere; None: not known.
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

    `there` says whether all are; None: no log of them is here, and `preserved` and `bytes` are None too. `offset`: the
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
    """The tuples that go with a round; `findings` and `inputs` are those of the logs that were read for them."""

    saved: tuple[SavedTuples, ...]
    preserved: tuple[PreservedTuples, ...]
    findings: list[Finding]
    inputs: list[InputUsed]


def sources_of_job(history: History, manifest: Mapping[str, Any]) -> frozenset[int]:
    """Return the source subtasks, as indices: by their operators' kind, or those that no channel leads to."""
    kinds = {row["name"] for row in manifest.get("operators", []) if row.get("kind") == "source"}
    if kinds:
        return frozenset(i for i, subtask in enumerate(history.subtasks) if subtask.operator in kinds)
    fed = set(history.dst[history.src != history.dst].tolist())
    return frozenset(set(history.src.tolist()) - fed)


@dataclass(frozen=True, slots=True, eq=False)
class RoundCut:
    """A round to restart from, and what is known of later messages, of n subtasks and c channels.

    Attributes
    ----------
    place : of the round among all; -1: the initial states
    line : the checkpoint of each subtask, (n,)
    sources : indices of the source subtasks
    known : the message behind the last that is known to have been sent or received, (c,)
    as_of : later log records, by their time in ms, do not count; None: all do
    """

    place: int
    line: Ints
    sources: frozenset[int]
    known: Ints
    as_of: int | None


def known_sent(history: History, newest_sent: Ints, log: TokenLog) -> Ints:
    """Return how far each channel is known to have been used: by checkpoints of both ends and by tokens, (c,)."""
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
    """Find the tuples that go with a round, by one scan of the channel logs.

    `offsets` are the sources, as indices of subtasks, that read their input again from offsets of their own.
    """
    start, end = history.received_of(cut.line), history.sent_of(cut.line)
    start = np.minimum(start, end)
    from_source = np.isin(history.src, sorted(cut.sources)) & (history.src != history.dst)
    until = np.where(from_source, _OPEN, end)
    wanted = message_log.Wanted(history.channels, start, until, cut.as_of)
    islands, findings, inputs = _read_logged(tables, reading, wanted)
    held = _runs_by_channel(islands, first_retained(tables.manifest))
    round_has_tuples = any(place == cut.place for place, _ in log.tuples)
    unread = any(finding.id in HIDING for finding in findings)
    saved, preserved = [], []
    for k in np.flatnonzero(start < end).tolist():
        kept = log.tuples.get((cut.place, k), PreservedSpans([], 0) if round_has_tuples else None)
        runs = held.get(history.channels[k], [])
        saved.append(_saved_tuples(_sender(history, k), history.channels[k], (int(start[k]), int(end[k])), kept, runs))
    for k in np.flatnonzero(from_source).tolist():
        own = int(history.src[k]) in offsets
        pieces = held.get(history.channels[k], [] if islands is not None and not own else None)
        ends = int(end[k]), int(cut.known[k])
        preserved.append(_preserved_tuples(_sender(history, k), history.channels[k], ends, pieces, own))
        findings += _retention_holes(preserved[-1], pieces, unread)
    return Tuples(
        saved=tuple(saved),
        preserved=tuple(preserved),
        findings=[*findings, *_missing_saved(saved), *_unlogged_sources(preserved)],
        inputs=inputs,
    )


def _sender(history: History, channel: int) -> Subtask:
    sender: Subtask = history.subtasks[history.src[channel]]
    return sender


def _saved_tuples(
    sender: Subtask, name: str, span: tuple[int, int], kept: PreservedSpans | None, runs: list[LoggedRun]
) -> SavedTuples:
    """Find the messages `span` of channel `name` where they may be: with checkpoints of the round, or in the log.

    `kept` are those that the checkpoints hold, None: that was not logged; `runs` are those in the channel's log.
    """
    low, high = span
    stored_spans = [] if kept is None else kept.spans
    logged_spans = [(run.start, run.end) for run in runs]
    rest = without(low, high, stored_spans)
    gaps = [gap for a, b in rest for gap in without(a, b, logged_spans)]
    stored = high - low - _message_count(rest)
    logged = _message_count(rest) - _message_count(gaps)
    there = None if gaps and kept is None and not runs else not gaps
    size: int | None = None
    if not logged:
        size = 0 if kept is None else kept.bytes
    elif not stored and all(a >= low and b <= high for a, b in logged_spans):
        size = sum(run.bytes for run in runs)
    return SavedTuples(
        operator=sender.operator,
        subtask=sender.subtask,
        channel=name,
        from_=low,
        to=high,
        stored=stored,
        logged=logged,
        bytes=None if there is None else size,
        there=there,
    )


def _preserved_tuples(
    sender: Subtask, name: str, ends: tuple[int, int], runs: list[LoggedRun] | None, own: bool
) -> PreservedTuples:
    """Find what a source sends again on channel `name`, from `ends[0]` on.

    It goes as far as some message is known to have come (`ends[1]`), or as the log goes. `runs` are those in the log,
    None: no log is here; `own`: the source has offsets of its own.
    """
    start, known = ends
    end = max([start, known, *(run.end for run in runs or [])])
    preserved = size = None
    there = None if end > start else True
    if runs is not None:
        gaps = without(start, end, [(run.start, run.end) for run in runs])
        preserved, there = end - start - _message_count(gaps), not gaps
        size = sum(run.bytes for run in runs) if all(run.start >= start for run in runs) else None
    return PreservedTuples(
        operator=sender.operator,
        subtask=sender.subtask,
        channel=name,
        from_=start,
        to=end,
        preserved=preserved,
        bytes=size,
        there=there,
        offset=own,
    )


def _message_count(spans: Spans) -> int:
    return sum(b - a for a, b in spans)


def _read_logged(
    tables: OffersRecords,
    reading: Reading,
    wanted: message_log.Wanted,
) -> tuple[pa.Table | None, list[Finding], list[InputUsed]]:
    """Read what the channel logs hold of the ranges; None if there are no logs."""
    if not tables.has("channels"):
        return None, list(tables.findings("channels")), []
    kernel, columns = message_log.in_ranges(wanted), message_log.columns(wanted.as_of)
    partial, reduce = message_log.RANGED, message_log.RANGED_REDUCE
    return read_table(tables, reading, "channels", columns, kernel, partial, reduce, wanted.row_group)


def _runs_by_channel(islands: pa.Table | None, retained: Mapping[str, int]) -> dict[str, list[LoggedRun]]:
    """Return the runs of messages that are in a log and retained, in order, by channel.

    `retained` is the first message that each channel's log keeps.
    """
    held: dict[str, list[LoggedRun]] = {}
    for row in islands.to_pylist() if islands is not None else []:
        low = max(row["from"], retained.get(row["channel"], 0))
        if row["zone"] == "range" and low < row["to"]:
            held.setdefault(row["channel"], []).append(LoggedRun(low, row["to"], row["bytes"]))
    return {name: sorted(runs) for name, runs in held.items()}


def _retention_holes(row: PreservedTuples, runs: list[LoggedRun] | None, unread: bool) -> list[Finding]:
    """Name what the source must send again and has not preserved."""
    gaps = [] if runs is None else without(row.from_, row.to, joined_spans((run.start, run.end) for run in runs))
    return [
        Finding(
            "retention-hole",
            "error",
            row.channel,
            f"{row.channel}: {numbered('message', a, b - 1, 'are')} {where_missing(unread)}, sent after the checkpoint "
            f"of {row.operator}/{row.subtask}, which cannot send again: without that the results downstream will be "
            "wrong",
            effect="data-lost",
        )
        for a, b in gaps
    ]


def _missing_saved(saved: list[SavedTuples]) -> list[Finding]:
    """Name tuples of individual checkpoints that are gone, or of which it is not known whether they are there."""
    found = []
    for row in saved:
        if row.there is False:
            missing = row.to - row.from_ - row.stored - row.logged
            message = (
                f"{row.channel}: {missing} of messages {row.from_} to {row.to - 1} belong to the checkpoint of "
                f"{row.operator}/{row.subtask} and are neither with it nor in a log: the results downstream will be "
                "wrong"
            )
            found.append(Finding("retention-hole", "error", row.channel, message, effect="data-lost"))
    unknown = [row for row in saved if row.there is None]
    if unknown:
        message = (
            f"messages of {many(len(unknown), 'channel')} belong to their senders' checkpoints, "
            f"{among(len(unknown), unknown[0].channel)}; nothing tells whether they were stored with them, and no log "
            "is here"
        )
        found.append(Finding("no-channel-log", "warning", unknown[0].channel, message))
    return found


def _unlogged_sources(preserved: list[PreservedTuples]) -> list[Finding]:
    """Name sources without a log and without offsets of their own."""
    unknown = [row for row in preserved if row.there is None and not row.offset]
    if not unknown:
        return []
    message = (
        f"{many(len(unknown), 'channel')} of sources {agreeing(len(unknown), 'have')} messages to send again and no "
        f"log is here to tell whether they were preserved, {among(len(unknown), unknown[0].channel)}: find "
        f"{'its log' if len(unknown) == 1 else 'their logs'}, or those messages are lost"
    )
    return [Finding("no-channel-log", "warning", unknown[0].channel, message)]
