"""A given line of a run of records, proved or refuted: by code that shares nothing with the search (`cklog.lines`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cklog.history.state_files import is_gone
from cklog.lines.proof import Marks
from cklog.lines.replay_ranges import Ranges, with_parts
from cklog.lines.verify import distinct_rows, judge, stored_and_marks, weakened
from cklog.model.checks import Check, Verification, hides_newer, unless_hidden, verification
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import among, many
from cklog.runs.records.evidence import Evidence
from cklog.runs.records.plan import Replay, replay_of
from cklog.runs.records.reading import RecordReader


def verify_line(
    reader: RecordReader, line: Mapping[str, int | None], maximal: bool, question: Question
) -> Draft[Verification]:
    """Prove or refute that a line, the checkpoint of each subtask (None: its current state), can be restarted from.

    With `maximal` also that no newer line can.
    """
    checkpoints = reader.checkpoints(question.as_of)
    rows = distinct_rows(checkpoints.table.to_batches(1 << 14), question.as_of)
    evidence = reader.evidence(question, checkpoints)
    history, records = evidence.history, evidence.records
    survivors = {str(s) for s, kept in zip(history.subtasks, history.survivor.tolist(), strict=True) if kept}
    current = dict.fromkeys(survivors, (evidence.current.sent, evidence.current.received))
    gone = frozenset(i for i, row in enumerate(rows) if is_gone(reader.tables, row["uri"]))
    stored, marks = stored_and_marks(rows, records.subtasks, records.names, current, gone)
    checks, findings, index = judge(line, stored, marks, survivors, maximal)
    evidence = evidence.joined(findings)
    if all(check.holds is not None for check in checks):
        replay = _in_flight(reader, evidence, marks, index, line, question.as_of)
        evidence = evidence.joined(replay.findings, replay.inputs)
        checks = [*checks, _replayable(replay)]
    if evidence.bound:
        checks = [weakened(check) for check in checks]
    checks = unless_hidden(checks, hides_newer(evidence.findings) or evidence.unproven)
    result = verification(checks)
    return Draft("verify", result, evidence.findings, evidence.inputs, indeterminate=result.undecided)


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
