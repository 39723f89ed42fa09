"""The recovery line of a run of records, and what follows from it: replay, sources, what fell and how far.

Messages that an individual checkpoint holds itself: under MS-src+ap they are in no channel's log.

A checkpoint that was taken while tokens went on already contains the tuples between its outgoing tokens and itself
(Meteor Shower, ICDE 2012, section III-B). A restart takes them from there, so they count as logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.spans import Spans
from cklog.arrays.types import Ints
from cklog.engine.reading import Reading
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.state_files import newer_without_state
from cklog.inputs.offers import OffersRecords
from cklog.lines.entries import (
    line_entries,
    protocol_of,
    rolled_back,
    steps_of,
    useless_checkpoints,
)
from cklog.lines.replay_ranges import (
    Ranges,
    StoredRange,
    first_retained,
    ranges_of,
    receive_without_send,
    replay_rows,
    shared_sources,
    sources_of,
    unknown_receipts,
)
from cklog.lines.rollback import domino_depths, is_domino, rollback_distances
from cklog.lines.rounds import round_numbers
from cklog.lines.search import Searched, search_line
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import RecoveryLine, ReplayRange
from cklog.model.names import parse_channel
from cklog.model.question import Question
from cklog.model.values import is_integer
from cklog.model.verdict import FLAWS, HIDING
from cklog.runs.records.absent import missed_checkpoints
from cklog.runs.records.actions import no_line_action, records_action, with_untouched
from cklog.runs.records.evidence import Evidence, Fixed, Planned
from cklog.runs.records.reading import RecordReader

if TYPE_CHECKING:
    from cklog.history.tokens import TokensRead


def plan_line(reader: RecordReader, question: Question, fixed: Fixed | None = None, everyone: bool = False) -> Planned:
    """Find the line that a question asks for, and what follows from it; `fixed` subtasks stay where they are.

    With `everyone`, what failed subtasks held is looked up, too: no line needs it, but uselessness does.
    """
    if fixed is not None:
        return _plan_line(reader, question, fixed, everyone)
    return reader.once(("line", question, everyone), lambda: _plan_line(reader, question, None, everyone))


def _plan_line(reader: RecordReader, question: Question, fixed: Fixed | None, everyone: bool) -> Planned:
    checkpoints = reader.checkpoints(question.as_of)
    evidence = reader.evidence(question, checkpoints, fixed, everyone)
    evidence = evidence.joined(missed_checkpoints(evidence, checkpoints.raw.subtasks if checkpoints.raw else ()))
    found = search_line(evidence.records, evidence.built, question)
    evidence = evidence.joined(found.findings)
    if found.line is None:
        return _no_line(evidence, found.start, question, str(reader.tables.manifest.get("job", "")))
    chosen = line_entries(evidence.records, evidence.built, found.line)
    labels = {f"{entry.operator}/{entry.subtask}": entry.checkpoint for entry in chosen}
    ranges = ranges_of(evidence.history, found.line, evidence.built.newest_sent, evidence.deliveries)
    replay = replay_of(reader, evidence, evidence.history.channels, ranges, labels, question.as_of)
    result, findings = _result(reader, evidence, found, found.line, replay.channels, question)
    if evidence.gone.any():
        findings += newer_without_state(evidence.records, evidence.gone, _labels(evidence, found.line))
    evidence = replace(evidence, findings=with_untouched(reader.tables, evidence.records, chosen, evidence.findings))
    told = evidence.joined([*replay_findings(replay, evidence.findings), *findings], replay.inputs)
    planned = Planned(told, found.line, result)
    action = records_action(planned, str(reader.tables.manifest.get("job", "")))
    return planned._replace(result=replace(result, runs=(action,)))


class Replay(NamedTuple):
    """What is replayed on each channel, what is wrong with the logs that it is replayed from, and which they are.

    `missing`: what no log holds, by channel
    """

    channels: list[ReplayRange]
    missing: Mapping[str, Spans]
    findings: list[Finding]
    inputs: list[InputUsed]


def replay_of(
    reader: RecordReader,
    evidence: Evidence,
    channels: tuple[str, ...],
    ranges: Ranges,
    line: Mapping[str, int | None],
    as_of: int | None,
) -> Replay:
    """Hold the replay ranges of a line, one for each of `channels`, against the logs and the checkpoints.

    `line`: the checkpoint of each subtask, None: its current state.
    """
    logged, findings, inputs = logged_in(reader, channels, ranges, as_of)
    stored, more, used = _stored(reader, evidence, line, as_of)
    unread = any(finding.id in HIDING for finding in findings)
    retained = first_retained(reader.tables.manifest)
    rows, missing, holes = replay_rows(channels, ranges, logged, retained, stored, unread)
    return Replay(rows, missing, [*findings, *more, *holes], [*inputs, *used])


def replay_findings(replay: Replay, told: Iterable[Finding]) -> list[Finding]:
    """Return what is wrong with message logs, without what is `told`: damage is a warning where all replay was read."""
    known = set(told)
    whole = all(row.retained or row.replay_from >= row.replay_to for row in replay.channels)
    return [
        f.as_warning() if whole and f.severity == "error" and f.id in FLAWS else f
        for f in replay.findings
        if f not in known
    ]


def _stored(
    reader: RecordReader, evidence: Evidence, line: Mapping[str, int | None], as_of: int | None
) -> tuple[dict[str, list[StoredRange]], list[Finding], list[InputUsed]]:
    """The messages that the checkpoints of a line hold themselves."""
    if not reader.tables.has("system"):
        return {}, [], []
    return stored_tuples(reader.tables, reader.reading, evidence.records, line, as_of)


def logged_in(
    reader: RecordReader, channels: tuple[str, ...], ranges: Ranges, as_of: int | None
) -> tuple[pa.Table | None, list[Finding], list[InputUsed]]:
    """Return what the channel logs hold in replay ranges and after them; None if there are no logs."""
    if not reader.tables.has("channels"):
        return None, [], []
    from cklog.runs.records import channel_logs as log

    wanted = log.Wanted(channels, ranges.start, ranges.end, as_of, ranges.parts)
    scan = log.columns(as_of), log.in_ranges(wanted), log.RANGED, log.RANGED_REDUCE, wanted.row_group
    return reader.scan_all("channels", *scan)


def _result(
    reader: RecordReader,
    evidence: Evidence,
    found: Searched,
    line: Ints,
    channels: list[ReplayRange],
    question: Question,
) -> tuple[RecoveryLine, list[Finding]]:
    """Everything about a line by names and labels."""
    history = evidence.history
    sources = sources_of(evidence.records, history, line, reader.tables.manifest)
    depths = domino_depths(history, found.start) if question.explain else None
    result = RecoveryLine(
        consistent=True,
        protocol=protocol_of(evidence.records),
        line=line_entries(evidence.records, evidence.built, line),
        channels=tuple(channels),
        sources=tuple(sources),
        rolled_back=rolled_back(history, line),
        useless=useless_checkpoints(history, evidence.execution.useless),
        steps=tuple(steps_of(history, found.start)) if question.explain else (),
        domino=is_domino(history, found.start),
        rollback=rollback_distances(history, line, _failure_time(reader, history, question), depths, evidence.last),
        notes=found.notes,
    )
    unknown = unknown_receipts(history, found.start, line, evidence.findings)
    return result, [*receive_without_send(history, line), *unknown, *shared_sources(sources)]


def _failure_time(reader: RecordReader, history: History, question: Question) -> int | None:
    """When the job failed, in ms: as asked, by the manifest, or no earlier than the newest checkpoint."""
    stated = question.as_of if question.as_of is not None else reader.tables.manifest.get("failure_time")
    if is_integer(stated):
        return stated
    newest = int(history.time.max(initial=-1))
    return newest if newest >= 0 else None


def _labels(evidence: Evidence, line: Ints) -> Ints:
    """The checkpoint number of each subtask in the line, the greatest there is for a current state, shape (n,)."""
    history = evidence.history
    current = history.survivor & (line == history.newest)
    return np.where(current, np.iinfo(np.int64).max, history.label_of(line))


def _no_line(evidence: Evidence, start: Ints, question: Question, run: str) -> Planned:
    """The answer where there is no line: the rollbacks that show it; the findings say why."""
    result = RecoveryLine(
        consistent=False,
        protocol=protocol_of(evidence.records),
        line=(),
        channels=(),
        sources=(),
        rolled_back=(),
        useless=useless_checkpoints(evidence.history, evidence.execution.useless),
        steps=tuple(steps_of(evidence.history, start)),
        domino=False,
        runs=(no_line_action(run, asked=bool(question.at)),),
    )
    return Planned(evidence, np.zeros(0, np.int64), result)


def stored_tuples(
    tables: OffersRecords,
    reading: Reading,
    records: CheckpointRecords,
    line: Mapping[str, int | None],
    as_of: int | None,
) -> tuple[dict[str, list[StoredRange]], list[Finding], list[InputUsed]]:
    """Return the messages that the checkpoints of a line hold, by channel, in order and apart.

    `line`: the checkpoint of each subtask, None: its current state; what happened after `as_of` (ms) does not count.
    """
    from cklog.history.tokens import read_tokens  # few runs log tokens

    read = read_tokens(tables, reading, as_of)
    held: dict[str, list[StoredRange]] = {}
    for name, low, high, size in sorted(_spans(read, _rounds(records, line))):
        before = held.setdefault(name, [])
        at = max(low, before[-1].end) if before else low
        if at < high:
            before.append(StoredRange(start=at, end=high, rows=high - at, bytes=size))
    return held, read.findings, read.inputs


def _rounds(records: CheckpointRecords, line: Mapping[str, int | None]) -> dict[str, int]:
    """The round of each subtask's checkpoint in the line; none of one that is in no round."""
    chosen = np.array([-1 if (n := line.get(str(s))) is None else n for s in records.subtasks] or [-1], np.int64)
    rows = np.flatnonzero(records.number == chosen[records.subtask])
    number = round_numbers(records)
    return {str(records.subtasks[records.subtask[i]]): int(number[i]) for i in rows.tolist() if number[i] >= 0}


def _spans(read: TokensRead, rounds: Mapping[str, int]) -> set[tuple[str, int, int, int]]:
    """What the senders' checkpoints of these rounds hold: channel, from, to, bytes."""
    found = set()
    for row in read.on_channels.to_pylist():
        channel = parse_channel(row["channel"]) if row["event"] == "tuples-stored" else None
        if channel is not None and row["round"] == rounds.get(str(channel.sender), -1):
            found.add((row["channel"], row["seq"], row["seq"] + row["tuples"], row["bytes"] or 0))
    return found
