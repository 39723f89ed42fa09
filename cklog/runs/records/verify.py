"""A given line of a run of records, proved or refuted: by code that shares nothing with the search (`cklog.lines`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from cklog.history.state_files import is_gone
from cklog.lines.proof import Marks
from cklog.lines.proof_rows import rows_to_judge
from cklog.lines.replay_ranges import Ranges, with_parts
from cklog.lines.verify import judge, rounds_of_rows, stored_and_marks, weakened
from cklog.model.audits import MessageSpan, RestoredAudit, audit_of, entry_of
from cklog.model.checks import Check, Verification, hides_newer, unless_hidden, verification
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry
from cklog.model.names import parse_subtask
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import among, many
from cklog.runs.records.actions import with_untouched
from cklog.runs.records.evidence import Evidence
from cklog.runs.records.plan import Replay, plan_line, replay_findings, replay_of
from cklog.runs.records.reading import RecordReader


def verify_line(
    reader: RecordReader, line: Mapping[str, int | None], maximal: bool, question: Question
) -> Draft[Verification]:
    """Prove or refute that a line, the checkpoint of each subtask (None: its current state), can be restarted from.

    With `maximal` also that no newer line can.
    """
    judged = _judged(reader, line, maximal, question)
    result = verification(judged.checks)
    evidence = judged.evidence
    return Draft("verify", result, evidence.findings, evidence.inputs, indeterminate=result.undecided)


def audit_line(reader: RecordReader, line: Mapping[str, int | None], question: Question) -> Draft[RestoredAudit]:
    """Say whether a line that was restored was consistent, what it did to messages, and which line is right."""
    judged = _judged(reader, line, maximal=False, question=question)
    planned = plan_line(reader, question)
    right = {f"{entry.operator}/{entry.subtask}": entry.checkpoint for entry in planned.result.line}
    entries = [entry_of(name, line[name], right[name]) for name in sorted(right) if name in line]
    result = audit_of(judged.checks, [*_doubled(judged), *_lost(judged)], entries)
    found = list(dict.fromkeys((*judged.evidence.findings, *planned.evidence.findings)))
    older = [entry.subject for entry in entries if entry.age == "older"]
    if older:
        message = f"{many(len(older), 'subtask')} went back further than they had to, {among(len(older), older[0])}"
        found.append(Finding("not-maximal", "error", older[0], message, effect="older-line"))
    return Draft("verify-restored", result, found, judged.evidence.inputs, indeterminate=result.undecided)


class _Judged(NamedTuple):
    """A line that was judged: its checks, where its checkpoints are among the watermarks, what is replayed if it is."""

    evidence: Evidence
    checks: list[Check]
    marks: Marks
    places: Mapping[str, int]
    line: Mapping[str, int | None]
    replay: Replay | None


def _judged(reader: RecordReader, line: Mapping[str, int | None], maximal: bool, question: Question) -> _Judged:
    checkpoints = reader.checkpoints(question.as_of)
    evidence = reader.evidence(question, checkpoints)
    history, records = evidence.history, evidence.records
    rows, before = rows_to_judge(checkpoints.table, line, records.names, question.as_of, maximal)
    survivors = {str(s) for s, kept in zip(history.subtasks, history.survivor.tolist(), strict=True) if kept}
    current = dict.fromkeys(survivors, (evidence.current.sent, evidence.current.received))
    gone = frozenset(i for i, row in enumerate(rows) if is_gone(reader.tables, row["uri"]))
    stored, marks = stored_and_marks(rows, records.subtasks, records.names, current, gone, before)
    rounds = rounds_of_rows(rows, checkpoints.table)
    checks, findings, index = judge(line, stored, marks, survivors, maximal, rounds)
    evidence = evidence.joined(findings)
    replay = None
    if all(check.holds is not None for check in checks):
        replay = _in_flight(reader, evidence, marks, index, line, question.as_of)
        evidence = evidence.joined(replay_findings(replay, evidence.findings), replay.inputs)
        checks = [*checks, _replayable(replay)]
    if evidence.bound:
        checks = [weakened(check) for check in checks]
    checks = unless_hidden(checks, hides_newer(evidence.findings) or evidence.unproven)
    known = with_untouched(reader.tables, records, [*_entries(line, rows)], evidence.findings)
    evidence = replace(evidence, findings=known)
    return _Judged(evidence, checks, marks, index, line, replay)


def _entries(line: Mapping[str, int | None], rows: Iterable[Mapping[str, Any]]) -> Iterator[LineEntry]:
    """Yield what a line takes of each subtask that has a record of it."""
    times = {(f"{row['operator']}/{row['subtask']}", row["checkpoint"]): row["time"] for row in rows}
    for name, number in line.items():
        subtask = parse_subtask(name)
        state: Literal["stored", "current", "initial"] = "stored" if (name, number) in times else "initial"
        if subtask is not None:
            time = times.get((name, number))
            yield LineEntry(*subtask, number, time, None, False, "current" if number is None else state)


def _doubled(judged: _Judged) -> Iterator[MessageSpan]:
    """Messages that a restored receiver has taken, and its restored sender has not sent yet."""
    if not set(judged.line) >= {end for mark in judged.marks.values() for end in mark[:2]}:
        return
    for name, (sender, receiver, sent, received) in sorted(judged.marks.items()):
        start, end = sent[judged.places[sender]], received[judged.places[receiver]]
        if end > start and judged.line[sender] is not None:
            yield MessageSpan(name, "doubled", start, end, end - start)


def _lost(judged: _Judged) -> Iterator[MessageSpan]:
    """Messages in flight across the line that no log holds."""
    if judged.replay is None:
        return
    for channel, spans in judged.replay.missing.items():
        for start, end in spans:
            yield MessageSpan(channel, "lost", start, end, end - start)
    for row in judged.replay.channels:
        if row.retained is None and row.replay_to > row.replay_from:
            count = row.replay_to - row.replay_from
            yield MessageSpan(row.channel, "may-be-lost", row.replay_from, row.replay_to, count)


def _in_flight(
    reader: RecordReader,
    evidence: Evidence,
    marks: Marks,
    index: Mapping[str, int],
    line: Mapping[str, int | None],
    as_of: int | None,
) -> Replay:
    """The messages in flight across the line, held against the logs; `index`: the place of each subtask's checkpoint.

    Between two survivors nothing is in flight that a replay would bring: each goes on where it is.
    """
    start, end, parts = [], [], {}
    for k, (name, (sender, receiver, sent, received)) in enumerate(marks.items()):
        both_run = line[sender] is None and line[receiver] is None
        high = sent[index[sender]]
        low = received[index[receiver]]
        high = max(low, high) if both_run else high
        start.append(high if both_run else min(low, high))
        end.append(high)
        if name in evidence.deliveries.received and not both_run:
            parts[k] = evidence.deliveries.missing(name, line[receiver], high)
    ends = np.array(end, np.int64)
    ranges = with_parts(Ranges(np.array(start, np.int64), ends, ends), parts)
    return replay_of(reader, evidence, tuple(marks), ranges, line, as_of)


def _replayable(replay: Replay) -> Check:
    """Whether the logs hold every message in flight across the line."""
    lost = [row for row in replay.channels if row.retained is False]
    unknown = [row for row in replay.channels if row.retained is None]
    if lost:
        one = among(len(lost), lost[0].channel)
        because = f"{many(len(lost), 'channel', 'have')} lost messages that are in flight, {one}"
        return Check("replayable", False, because)
    if unknown:
        named = f"{many(len(unknown), 'channel')}, {among(len(unknown), unknown[0].channel)}"
        return Check("replayable", None, f"no log is here for {named}")
    count = sum(row.replay_to - row.replay_from for row in replay.channels)
    return Check("replayable", True, f"{many(count, 'message')} in flight, all of them in the logs")
