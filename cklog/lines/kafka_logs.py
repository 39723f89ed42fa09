"""A line beside the Kafka logs that it will be replayed from: what its ranges hold, and what groups have committed.

A source named after a topic's partition is that partition; a channel is one if its manifest entry (`log`) or
`--channel` says so: its messages are then numbered by the log's offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from cklog.errors import NotFound, UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.partitions import UNREAD, Range, RangeCount
from cklog.kafka_logs.absent import absent_partitions, is_partition, missing_topic, partitions_elsewhere
from cklog.kafka_logs.deleted import deleted_findings
from cklog.kafka_logs.findings import range_findings
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.replay_ranges import unlogged_channels
from cklog.lines.topics import ReadLog, compare_topics, with_unchecked_topics
from cklog.lines.unchecked import range_names
from cklog.model.actions import RunAction
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import RecoveryLine, ReplayRange, SourceOffset
from cklog.model.question import KafkaLogs
from cklog.model.values import is_integer
from cklog.model.verdict import Draft
from cklog.model.wording import first_few


@dataclass(frozen=True, slots=True)
class Bindings:
    """Which partition (topic-number) each channel or source is, by its name.

    `asked` is what `--channel` says and goes first, `manifest` what the job's manifest says. `group` is the consumer
    group whose committed offsets count, "" for every group.
    """

    asked: Mapping[str, str]
    manifest: Mapping[str, str]
    group: str = ""

    def partition(self, name: str) -> str | None:
        """Return the partition of a channel; None if nothing says."""
        return self.asked.get(name, self.manifest.get(name))

    def source(self, name: str) -> str:
        """Return the partition of a source: its own name, unless `--channel` says otherwise."""
        return self.asked.get(name, name)


@dataclass(frozen=True, slots=True)
class _AskedRange:
    """Offsets [start, end) of a partition that the line will replay; `end` None: up to the log's end.

    `channel` is the index in the line's channels, None for a source; `job` whose source it is.
    """

    subject: str
    partition: str
    start: int
    end: int | None
    channel: int | None
    job: str = ""


def beside_logs(
    found: Draft[RecoveryLine],
    logs: PartitionLogs,
    bindings: Bindings,
    written: Mapping[str, int] = MappingProxyType({}),
) -> Draft[RecoveryLine]:
    """Add to a line what the logs hold of its ranges and of its topics, and what groups have committed.

    Parameters
    ----------
    written : when the files of a job's checkpoint were last written, where nothing else tells when it was taken

    Raises
    ------
    NotFound : a partition that `--channel` names, or the group, is not there
    """
    line = found.result
    known = {folder.name for folder in logs.layout.folders}
    asked = [*_ranges_of_channels(line, bindings, known), *_ranges_of_sources(line, bindings, known)]
    missing = sorted(set(bindings.asked.values()) - known)
    if missing:
        raise NotFound(f"{', '.join(missing)}: no such partition in the Kafka folder", "see cklog inspect on it")
    counts = logs.counts([Range(*_topic_and_number(a.partition), a.start, a.end) for a in asked])
    findings = [finding for a, count in zip(asked, counts, strict=True) for finding in range_findings(a.subject, count)]
    channels = _channels_with_counts(line.channels, asked, counts)
    committed = _committed_rows(logs, bindings.group)
    left = _not_compared(line, bindings, known)
    topics = compare_topics(line, logs, [*_logs_of_sources(line, bindings, known)], written)
    details = line.details | {
        "ranges": [_range_row(a, count) for a, count in zip(asked, counts, strict=True)],
        "committed_offsets": committed,
        "committed_difference": _offset_differences(line, bindings, committed),
        "partitions_without_offset": topics.without_offset,
        **({"recreated_topics": topics.recreated} if topics.recreated else {}),
        "partitions_elsewhere": left.elsewhere,
    }
    kept = [f for f in found.findings if f.id != "no-channel-log"]
    if any(f.id == "no-channel-log" for f in found.findings):
        kept += unlogged_channels(channels)
    runs = _runs_with_counts(line, asked, counts)
    unread = _log_damage(logs, asked)
    deleted = logs.commits.of_group(bindings.group).deleted if bindings.group else ()
    return replace(
        found,
        result=replace(line, channels=channels, details=details, runs=with_unchecked_topics(runs, topics.unchecked)),
        findings=[
            *kept,
            *findings,
            *topics.findings,
            *logs.layout.findings,
            *unread,
            *left.findings,
            *deleted_findings(deleted, beside=True),
        ],
        inputs=[*found.inputs, *_inputs_read(logs, asked)],
        indeterminate=found.indeterminate or any(finding.id in UNREAD for finding in unread),
    )


def _runs_with_counts(
    line: RecoveryLine, asked: Sequence[_AskedRange], counts: Sequence[RangeCount]
) -> tuple[RunAction, ...]:
    """Return the runs with what their sources read again, as the logs count it."""
    alone = len(line.runs) == 1
    sources = Counter("" if alone else s.job for s in line.sources)
    counted: dict[str, list[RangeCount]] = {}
    open_ended: dict[str, list[RangeCount]] = {}
    for a, count in zip(asked, counts, strict=True):
        if a.channel is None:
            job = "" if alone else a.job
            counted.setdefault(job, []).append(count)
            if a.end is None:
                open_ended.setdefault(job, []).append(count)
    found = []
    for run in line.runs:
        job = "" if alone else run.run
        again, mine = open_ended.get(job, []), counted.get(job, [])
        found.append(
            replace(
                run,
                read_again=run.read_again + sum(count.data for count in again),
                read_again_bytes=run.read_again_bytes + sum(count.data_bytes for count in again),
                reads_more=run.reads_more and not (mine and len(mine) == sources[job]),
            )
        )
    return tuple(found)


def _ranges_of_channels(line: RecoveryLine, bindings: Bindings, known: set[str]) -> Iterable[_AskedRange]:
    """Yield the ranges of channels that are one of the `known` partitions; refuse a `--channel` of no such name."""
    names = {c.channel for c in line.channels} | {s.source for s in line.sources}
    unknown = sorted(set(bindings.asked) - names)
    if unknown:
        raise NotFound(f"--channel {unknown[0]}: no such channel or source", "cklog inspect names them")
    for i, c in enumerate(line.channels):
        partition = bindings.partition(c.channel)
        if partition in known and c.replay_from < c.replay_to:
            yield _AskedRange(subject=c.channel, partition=partition, start=c.replay_from, end=c.replay_to, channel=i)


def _ranges_of_sources(line: RecoveryLine, bindings: Bindings, known: set[str]) -> Iterable[_AskedRange]:
    """Yield the ranges of sources that are one of the `known` partitions."""
    name = range_names(line)
    for s, partition, start in _logs_of_sources(line, bindings, known):
        end = s.replay_to if isinstance(s.replay_to, int) else None
        yield _AskedRange(subject=name(s), partition=partition, start=start, end=end, channel=None, job=s.job)


def _logs_of_sources(line: RecoveryLine, bindings: Bindings, known: set[str]) -> Iterable[ReadLog]:
    """Yield the sources that are one of the `known` partitions, with that and their offset in it."""
    for s in line.sources:
        partition = bindings.source(s.source)
        start = _first_offset(s)
        if partition in known and start is not None:
            yield ReadLog(s, partition, start)


def _first_offset(source: SourceOffset) -> int | None:
    """Return the first offset that a source reads again; None if it has no offset of a Kafka log."""
    start = 0 if source.offset is None else source.offset
    return start if isinstance(start, int) and start >= 0 else None


class _NotCompared(NamedTuple):
    """What was not compared with the logs, though it reads or is one: findings, and sources of other brokers."""

    findings: list[Finding]
    elsewhere: list[dict[str, Any]]


def _not_compared(line: RecoveryLine, bindings: Bindings, known: set[str]) -> _NotCompared:
    """Report what the line reads and the logs lack: of a missing topic, of another broker, or of no known partition."""
    jobs: dict[str, set[str]] = {}
    unbound = set()
    for c in line.channels:
        partition = bindings.partition(c.channel)
        if partition is not None and partition not in known and c.replay_from < c.replay_to:
            jobs.setdefault("", set()).add(partition)
    sources = {}
    for s in line.sources:
        partition = bindings.source(s.source)
        counts = s.offset is None or is_integer(s.offset)
        if counts and partition not in known and is_partition(partition):
            jobs.setdefault(s.job, set()).add(partition)
            sources[s.source] = partition
        elif partition not in known or _first_offset(s) is None:
            unbound.add(s.source)
    absent = {job: absent_partitions(needed, known) for job, needed in jobs.items()}
    findings = [missing_topic(topic, names, job) for job, a in absent.items() for topic, names in a.topics.items()]
    away = sorted({name for a in absent.values() for name in a.elsewhere})
    findings += partitions_elsewhere(away)
    if unbound:
        some = sorted(unbound)
        message = (
            f"{first_few(some, 5)}: named after no partition of these Kafka logs, so not compared with them. --channel "
            "NAME=TOPIC-PARTITION says which one it is"
        )
        findings.append(Finding("partition-elsewhere", "info", some[0], message))
    rows = [{"source": source, "partition": name} for source, name in sources.items() if name in away]
    return _NotCompared(findings, rows)


def _topic_and_number(partition: str) -> tuple[str, int]:
    """Split the name of a partition, e.g. orders-eu-3 → ("orders-eu", 3)."""
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def _channels_with_counts(
    channels: tuple[ReplayRange, ...], asked: list[_AskedRange], counts: list[RangeCount]
) -> tuple[ReplayRange, ...]:
    """Return the channels' ranges with what the logs hold of them; of records only the data that applications get."""
    found = list(channels)
    for a, count in zip(asked, counts, strict=True):
        if a.channel is not None:
            whole = not count.missing and not count.beyond
            found[a.channel] = replace(found[a.channel], messages=count.data, bytes=count.data_bytes, retained=whole)
    return tuple(found)


def _range_row(a: _AskedRange, count: RangeCount) -> dict[str, Any]:
    """Return what a log holds of a range as a row of the answer's details."""
    return {
        "of": a.subject,
        "log": a.partition,
        "from": count.start,
        "to": count.end,
        "data": count.data,
        "control": count.control,
        "aborted": count.aborted,
        "open": count.open,
        "bytes": count.bytes,
        "exact": count.exact,
    }


def _committed_rows(logs: PartitionLogs, group: str) -> list[dict[str, Any]]:
    """Return the committed offsets of `group` ("": of all) as rows of the answer's details."""
    commits = logs.commits.of_group(group) if group else logs.commits
    return [{"group": c.group, "topic": c.topic, "partition": c.partition, "offset": c.offset} for c in commits.found]


def _offset_differences(
    line: RecoveryLine, bindings: Bindings, committed: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Lay each committed offset of a source beside the one in the checkpoint, which is the one that the job uses."""
    readers: dict[str, list[SourceOffset]] = {}
    for source in line.sources:
        readers.setdefault(bindings.source(source.source), []).append(source)
    rows = []
    for row in committed:
        for source in readers.get(f"{row['topic']}-{row['partition']}", []):
            if isinstance(source.offset, int) and source.offset >= 0:
                rows.append(
                    {
                        "source": source.source,
                        "group": row["group"],
                        "in_checkpoint": source.offset,
                        "committed": row["offset"],
                        "difference": row["offset"] - source.offset,
                    }
                )
    return rows


def _log_damage(logs: PartitionLogs, asked: Iterable[_AskedRange]) -> list[Finding]:
    """Report damage in the logs that ranges lie in, and in the log of commits: newer commits may be lost with it."""
    names = {a.partition for a in asked} | {folder.name for folder in logs.layout.commit_folders}
    damage = [item for p in logs.partitions(names).values() for item in p.damage] if names else []
    return damage_findings([*damage, *logs.commits.damage], "data-lost")


def _inputs_read(logs: PartitionLogs, asked: Iterable[_AskedRange]) -> list[InputUsed]:
    """Return the partitions that were read as one row of the inputs."""
    names = {a.partition for a in asked}
    if not names:
        return []
    read = logs.partitions(names).values()
    return [InputUsed("(Kafka)", "kafka", sum(p.bytes for p in read), sum(p.records for p in read))]


def bindings_of(kafka: KafkaLogs, manifest: Mapping[str, Any]) -> Bindings:
    """Return what `--channel` and the manifest's channels say."""
    rows = manifest.get("channels", [])
    return Bindings(
        parse_bindings(kafka.channels),
        {row["channel"]: row["log"] for row in rows if isinstance(row.get("log"), str)},
        kafka.group,
    )


def parse_bindings(given: Iterable[str]) -> dict[str, str]:
    """Return the partition by name, from NAME=TOPIC-PARTITION of `--channel`.

    Raises
    ------
    UsageError : a text of another form

    >>> parse_bindings(["src/0->join/1=orders-3"])
    {'src/0->join/1': 'orders-3'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, partition = text.rpartition("=")
        topic, dash, number = partition.rpartition("-")
        counts = number.isascii() and number.isdigit() and len(number) <= 10 and int(number) < 1 << 31
        if not (name and topic and dash and counts):
            raise UsageError(f"--channel {text}: expected NAME=TOPIC-PARTITION")
        found[name] = partition
    return found
