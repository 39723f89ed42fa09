"""The newest line whose replay is whole, where the logs lack messages of the newest line.

A line lacks messages of a channel if some between what its receiver had and what its sender had sent are gone. Every
older line without loss has a checkpoint of the sender from before the first of them, so the newest such line is found
by going back to those, and to the consistent line below, until nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.history import History
from cklog.lines.entries import protocol_of
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.lines.replay_ranges import (
    Ranges,
    first_missing,
    first_retained,
    logged_messages,
    ranges_of,
    sources_of,
)
from cklog.model.question import Question
from cklog.model.verdict import HIDING
from cklog.model.wording import many
from cklog.runs.records.evidence import Planned
from cklog.runs.records.plan import logged_in
from cklog.runs.records.reading import RecordReader

_ROUNDS = 100
"""The search goes back at most this often; no line is offered beyond that."""


def with_lossless(reader: RecordReader, planned: Planned, question: Question) -> Planned:
    """Return a plan that names the newest line without loss, if messages of its own line are gone and there is one."""
    result, history = planned.result, planned.evidence.history
    lacking = any(row.retained is False for row in result.channels)
    coordinated = protocol_of(planned.evidence.records) == "coordinated"
    if not lacking or question.at or coordinated or reader.tables.has("system"):
        return planned
    ranges = _ranges(planned, planned.line)
    every = replace(ranges, start=np.zeros_like(ranges.start), parts={})
    logs, findings, _ = logged_in(reader, history.channels, every, question.as_of)
    if any(finding.id in HIDING for finding in findings):
        return planned
    retained = first_retained(reader.tables.manifest)
    held = None if logs is None else logged_messages(logs)
    found, lowered = lossless_line(
        history, planned.line, lambda line: first_missing(history.channels, _ranges(planned, line), held, retained)
    )
    if found is None or not (history.label_of(found) > 0).any():
        return planned
    at = " ".join(f"--at {history.subtasks[i]}={history.label_of(found)[i]}" for i in sorted(lowered))
    more = _read_more(reader, planned, found)
    again = f", and reads {many(more, 'record')} of sources again" if more else ""
    whole = f"the newest line whose messages are all in the logs: it loses nothing{again}"
    note = f"{result.runs[0].note}. Or take {at}, {whole}"
    return planned._replace(result=replace(result, runs=(replace(result.runs[0], note=note), *result.runs[1:])))


def _ranges(planned: Planned, line: Ints) -> Ranges:
    evidence = planned.evidence
    return ranges_of(evidence.history, line, evidence.built.newest_sent, evidence.deliveries)


def lossless_line(history: History, line: Ints, missing_at: Callable[[Ints], Ints]) -> tuple[Ints | None, set[int]]:
    """Return the newest line up to `line` that lacks no message, shape (n,), and whose checkpoints alone lead to it.

    `missing_at` : the first message in flight across a line that is gone, by channel; -1: none is. The line is None
    where there is none, or it is too far back.
    """
    lowered: set[int] = set()
    for _ in range(_ROUNDS):
        missing = missing_at(line)
        lacking = np.flatnonzero(missing >= 0)
        if not len(lacking):
            return line, lowered
        lower = line.copy()
        for k in lacking.tolist():
            sent = history.sent[history.sent_at[k] : history.sent_at[k + 1]]
            before = int(np.searchsorted(sent, missing[k], "right")) - 1
            sender = int(history.src[k])
            lower[sender] = min(int(lower[sender]), before)
            lowered.add(sender)
        if lower.min() < 0:
            return None, set()
        try:
            line = recovery_line(history, lower)
        except NoConsistentLine:
            return None, set()
    return None, set()


def _read_more(reader: RecordReader, planned: Planned, line: Ints) -> int:
    """Count the records of sources that a line reads again, which the planned one does not."""
    evidence, manifest = planned.evidence, reader.tables.manifest
    before = {(s.source, s.operator, s.subtask): s.offset for s in planned.result.sources}
    rows = sources_of(evidence.records, evidence.history, line, manifest)
    pairs = [(before.get((s.source, s.operator, s.subtask)), s.offset) for s in rows]
    return sum(had - (has or 0) for had, has in pairs if isinstance(had, int))
