"""Topics that a line reads, compared with their logs: whether they are the same, and which partitions are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cklog.inputs.partitions import Folder
from cklog.kafka_logs.identity import recreated_findings, why_another_log
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.unchecked import range_names
from cklog.model.actions import RunAction
from cklog.model.findings import Finding, Where
from cklog.model.lines import RecoveryLine, SourceOffset
from cklog.model.unchecked import Unchecked
from cklog.model.wording import first_few, many

_EARLIEST_TIME = 10**11
"""In ms, in 1973: a smaller time counts from the start of a run and cannot be compared with the times of records."""


class ReadLog(NamedTuple):
    """A source, the partition that it reads, and the first offset that it reads again."""

    source: SourceOffset
    partition: str
    offset: int


class TopicComparison(NamedTuple):
    """What logs show of the topics that a line reads.

    `without_offset` are rows of partitions without a position, `recreated` of sources whose topic was created again.
    """

    findings: list[Finding]
    unchecked: Mapping[str, list[Unchecked]]
    without_offset: list[dict[str, Any]]
    recreated: list[dict[str, Any]]


def compare_topics(
    line: RecoveryLine, logs: PartitionLogs, read: Sequence[ReadLog], written: Mapping[str, int]
) -> TopicComparison:
    """Compare the topics that a line reads with their logs.

    Parameters
    ----------
    written : when the files of a job's checkpoint were last written, where nothing else tells when it was taken
    """
    findings: list[Finding] = []
    recreated: list[dict[str, Any]] = []
    unchecked: dict[str, dict[Unchecked, None]] = {}
    subject, taken_at = range_names(line), _checkpoint_times(line)
    partitions = logs.partitions({one.partition for one in read}) if read else {}
    for source, name, offset in read:
        p, taken = partitions[name], taken_at.get((source.operator, source.subtask, source.job))
        stored = written.get(source.job) if taken is None else taken
        findings += recreated_findings(subject(source), p, offset, stored)
        another = bool(why_another_log(p, offset, stored))
        if another:
            reader = {"source": source.source, "operator": source.operator, "subtask": source.subtask}
            places = {"start": p.log_start, "stored": offset, "end": p.restart_end}
            recreated.append({**reader, "job": source.job, **places})
        if taken is None and not another and offset > p.log_start:
            topic = p.folder.topic
            claim = f"topic {topic} was not deleted and created again since the checkpoint"
            unchecked.setdefault(source.job, {})[Unchecked("topic", topic, claim)] = None
    without_offset = _partitions_without_offset(logs, read)
    findings += _without_offset_findings(without_offset)
    return TopicComparison(findings, {job: [*rows] for job, rows in unchecked.items()}, without_offset, recreated)


def with_unchecked_topics(runs: Sequence[RunAction], unchecked: Mapping[str, list[Unchecked]]) -> tuple[RunAction, ...]:
    """Return runs that say of which topics nothing shows that they are still the same."""
    if len(runs) == 1:
        unchecked = {runs[0].run: [row for rows in unchecked.values() for row in rows]}
    return tuple(replace(run, unchecked=(*run.unchecked, *unchecked.get(run.run, ()))) for run in runs)


def _checkpoint_times(line: RecoveryLine) -> dict[tuple[str, int, str], int]:
    """Return when stored checkpoints were taken, in ms since 1970, by operator, subtask and job; known times only."""
    return {
        (entry.operator, entry.subtask, entry.job): entry.time
        for entry in line.line
        if entry.state == "stored" and entry.time is not None and entry.time >= _EARLIEST_TIME
    }


def _partitions_without_offset(logs: PartitionLogs, read: Sequence[ReadLog]) -> list[dict[str, Any]]:
    """Partitions of the topics that a job reads, of which the line has no position."""
    known: dict[tuple[str, str], set[str]] = {}
    for source, name, _ in read:
        known.setdefault((source.job, name.rpartition("-")[0]), set()).add(name)
    folders: dict[str, list[Folder]] = {}
    for folder in logs.layout.folders:
        folders.setdefault(folder.topic, []).append(folder)
    new = [
        (job, folder)
        for (job, topic), names in known.items()
        for folder in folders.get(topic, ())
        if folder.name not in names
    ]
    found = logs.partitions({folder.name for _, folder in new}) if new else {}
    return [
        {"job": job, "topic": folder.topic, "partition": folder.partition, "records": found[folder.name].data}
        for job, folder in new
    ]


def _without_offset_findings(rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Say of each topic which partitions have no position, and what becomes of them."""
    found = []
    by_topic: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        by_topic.setdefault((row["job"], row["topic"]), []).append(row)
    for (job, topic), mine in by_topic.items():
        names = [f"{topic}-{row['partition']}" for row in mine]
        records = sum(row["records"] for row in mine)
        message = (
            f"the line has no offset for {many(len(names), 'partition')} of topic {topic}: {first_few(names, 5)}, with "
            f"{many(records, 'record')}. A restarted job with partition discovery reads these partitions from their "
            "start; a job without it never reads them"
        )
        places = tuple(Where(name) for name in names)
        found.append(Finding("partition-without-offset", "info", f"{job} {topic}".strip(), message, where=places))
    return found
