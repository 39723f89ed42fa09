"""Subtasks that something names, and of whose state nothing here tells: without them no answer is about the job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cklog.history.records import CheckpointRecords
from cklog.model.findings import Finding, Where
from cklog.model.names import Channel, Subtask
from cklog.model.wording import first_few, many
from cklog.runs.records.evidence import Evidence

_ENOUGH = 2
"""Checkpoints that half of the others have at least, before one that has none is missed: there was time to take one."""


def missed_checkpoints(evidence: Evidence, told: Collection[Subtask]) -> list[Finding]:
    """Report subtasks without any checkpoint beside others that have several: their records may be gone.

    One that took none yet looks the same, so that its initial state is where it goes; that is never too new. Nobody is
    missed that has sent nothing and was sent nothing, as far as others counted, and nobody whose own raw events are
    here (`told`): they would tell of its checkpoints.
    """
    records, history = evidence.records, evidence.history
    counts = np.bincount(records.subtask, minlength=len(records.subtasks))
    others = counts[counts > 0]
    if not len(others) and len(counts) and not told and not history.survivor.any():
        message = (
            "no checkpoint of any subtask is here: if one was ever taken, its record is gone. Look for checkpoints/ "
            "before anything is started from the beginning"
        )
        return [Finding("missing-checkpoints", "warning", "checkpoints", message, effect="older-line")]
    if not len(others) or 2 * int((others >= _ENOUGH).sum()) < len(others):
        return []
    known = _idle(records) | set(told)
    surviving = {s for s, yes in zip(history.subtasks, history.survivor.tolist(), strict=True) if yes}
    pairs = zip(records.subtasks, counts.tolist(), strict=True)
    missed = [str(s) for s, count in pairs if not count and s not in surviving and s not in known]
    if not missed:
        return []
    one = len(missed) == 1
    message = (
        f"no checkpoint of {first_few(missed, 3)} is here, and others have up to {int(others.max())}: either "
        f"{'it' if one else 'they'} never took one, or the records are gone. {'It counts' if one else 'They count'} as "
        "at the initial state, which is never too new; look for the records"
    )
    who = missed[0] if one else many(len(missed), "subtask")
    return [Finding("missing-checkpoints", "warning", who, message, effect="older-line")]


def _idle(records: CheckpointRecords) -> set[Subtask]:
    """Return subtasks on whose channels others count messages, and have counted none."""
    counted: dict[Subtask, int] = {}
    for marks, ends in ((records.sent, "receiver"), (records.received, "sender")):
        most = np.full(len(records.channels), -1, np.int64)
        np.maximum.at(most, marks.channel, marks.value)
        for channel, value in zip(records.channels, most.tolist(), strict=True):
            end: Subtask = getattr(channel, ends)
            counted[end] = max(counted.get(end, -1), value)
    return {subtask for subtask, value in counted.items() if value == 0}


def missed_queues(
    manifest: Mapping[str, Any], channels: Iterable[Channel], known: Collection[Subtask]
) -> Iterator[tuple[Subtask, bool]]:
    """Yield subtasks that the manifest names and that are not `known`, where their state could only lie in a queue.

    With each, whether the manifest says so itself. Sources hold nothing that is not in their input, and sinks put
    nothing out: those are passed over, and so is what sends, is sent nothing, and has no kind: it is a source.
    """
    fed, sending = set(), set()
    for channel in channels:
        fed.add(channel.receiver)
        sending.add(channel.sender)
    rows: dict[str, list[Mapping[str, Any]]] = {}  # a name may be listed twice: then all that is said of it counts
    for row in manifest.get("operators", []):
        rows.setdefault(row["name"], []).append(row)
    most = {name: max(row.get("parallelism", 1) for row in told) for name, told in rows.items()}
    named = {Subtask(name, i) for name, count in most.items() for i in range(count)}
    for subtask in sorted((named | fed | sending) - set(known)):
        told = rows.get(subtask.operator, [])
        promised = any(row.get("recovery") == "eventual" for row in told)
        kinds = {row.get("kind") for row in told} or {None}
        source = kinds == {None} and subtask in sending - fed
        if promised or not (source or kinds <= {"source", "sink"}):
            yield subtask, promised


def no_queue_of(missed: Iterable[tuple[Subtask, bool]]) -> list[Finding]:
    """Report subtasks whose output queue is not here, one finding for each operator."""
    by_operator: dict[tuple[str, bool], list[str]] = {}
    for subtask, promised in missed:
        by_operator.setdefault((subtask.operator, promised), []).append(str(subtask))
    found = []
    for (operator, promised), subtasks in by_operator.items():
        says = "restarts from its output queue" if promised else "is part of the job, and no source or sink"
        message = (
            f"job.json says that {first_few(subtasks, 3)} {says}, and no queue or checkpoint of it is here: nothing is "
            "known of where it restarts"
        )
        place = f"outputs/{operator}"
        found.append(Finding("missing-queue", "error", place, message, (Where(place),), effect="data-lost"))
    return found
