"""Offsets judged one by one: read as a restarted broker will have them, held against sources and data topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from cklog.engine.scan import Damage
from cklog.errors import NotFound
from cklog.inputs.connectors import StoredOffset, StoredOffsets, TakenRecord
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import OffersConnectors
from cklog.inputs.partitions import Partition
from cklog.kafka_logs.findings import OFFSETS_DELETED, late_start_findings, partition_findings
from cklog.kafka_logs.group_commits import record_fates
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.findings import Effect, Finding, Where, effect_of_error
from cklog.model.question import Question
from cklog.model.wording import agreeing, first_few
from cklog.runs.connectors.judged import Judged, findings_of
from cklog.runs.connectors.mirrored import beside_sources
from cklog.runs.connectors.taken import Taken, taken_of
from cklog.source_positions.named_options import by_name
from cklog.source_positions.retained import retained


class OffsetJudge:
    """What judges the offsets of a parser; `logs` are the partitions of a broker that lie below PATH, if any do.

    `sources` : the partitions that connectors copy from
    """

    def __init__(self, parser: OffersConnectors, logs: PartitionLogs | None, sources: PartitionLogs | None) -> None:
        self._parser = parser
        self._logs = logs
        self._sources = sources

    @cached_property
    def _partitions(self) -> dict[str, Partition]:
        """The partitions of the topics of offsets, read as far as their batches go."""
        if self._logs is None:
            return {}
        topics = set(self._parser.topics())
        return self._logs.partitions([f.name for f in self._logs.layout.folders if f.topic in topics])

    @cached_property
    def stored(self) -> StoredOffsets:
        """What lies in every store."""
        return self._parser.offsets(record_fates(self._partitions.values()))

    def judge(self, question: Question) -> tuple[list[Judged], list[Finding]]:
        """Every partition of a connector, and what is wrong."""
        stored = self.stored
        if not stored.stores:
            raise NotFound(
                "no offsets of connectors are here",
                "they are in the topic connect-offsets (segments, or exported as lines), or in a worker's file",
            )
        judged = list(_named(stored.entries))
        names = {one.run for one in judged} | {one.name for one in judged}
        starts = by_name("--source-from", question.source_from, names)
        places = by_name("--taken", question.taken, names)
        judged = [self._held(one, starts) for one in judged]
        judged, elsewhere = beside_sources(judged, self._sources)
        judged, more = self._with_taken(judged, places)
        findings = [*stored.findings, *more, *elsewhere, *findings_of(judged)]
        partitions = self._partitions.values()
        if self._logs is not None:
            cut = partition_findings(partitions, self._logs.layout.folders)
            findings += self._logs.layout.findings
            findings += [
                replace(f, effect=effect_of_error(f.severity, _OF_OFFSETS.get(f.id, "older-line"))) for f in cut
            ]
            findings += damage_findings(item for p in partitions for item in p.damage)
            findings += _missing_partitions(self._partitions)
            findings += _empty_partitions(partitions)
            findings += late_start_findings(partitions, OFFSETS_DELETED)
        return judged, findings

    def _held(self, one: Judged, starts: Mapping[str, str]) -> Judged:
        told = starts.get(one.name, starts.get(one.run))
        if told is None or one.offset is None:
            return one
        return one._replace(retained=retained(one.offset, told))

    def _with_taken(self, judged: list[Judged], places: Mapping[str, str]) -> tuple[list[Judged], list[Finding]]:
        """The same with what of data topics comes again: those that are told, and those whose records name a source."""
        found: dict[str, list[Taken]] = {}
        topics = self._data_topics()
        findings: list[Finding] = []
        for name, place in places.items():
            for one in judged:
                if one.entry.offset is not None and name in (one.name, one.run):
                    found.setdefault(one.name, []).extend(self._taken_at(one.entry.offset, place, topics))
        for topic in sorted(topics - set(places.values())):
            for records in self._records(topic):
                found_in = _owner(records, judged)
                if found_in is not None:
                    owner, log, rest = found_in
                    found.setdefault(owner.name, []).append(taken_of(owner.entry.offset or {}, log, rest))
        damaged = self._damaged(topics)  # of all: one without a record that can be read may be any connector's
        findings += damage_findings((item for items in damaged.values() for item in items), "data-duplicated")
        hiding = {log for log, items in damaged.items() if any(item.id != "torn-tail" for item in items)}
        for name, taken in found.items():
            found[name] = [one._replace(again=None) if one.log in hiding else one for one in taken]
        return [one._replace(taken=tuple(found.get(one.name, ()))) for one in judged], findings

    def _damaged(self, topics: Iterable[str]) -> dict[str, tuple[Damage, ...]]:
        """The damage of data topics, by log; a torn end hides nothing that was durable, all else may."""
        if self._logs is None:
            return {}
        wanted = set(topics)
        partitions = self._logs.partitions([f.name for f in self._logs.layout.folders if f.topic in wanted])
        return {p.name: p.damage for p in partitions.values() if p.damage}

    def _data_topics(self) -> set[str]:
        if self._logs is None:
            return set()
        held = set(self._parser.topics())
        return {f.topic for f in self._logs.layout.folders if f.topic not in held and not f.internal}

    def _taken_at(self, offset: Mapping[str, Any], place: str, topics: set[str]) -> Iterator[Taken]:
        if place in topics:
            for records in self._records(place):
                first = next(records, None)
                if first is not None:
                    yield taken_of(offset, first.log, _again_from(first, records))
            return
        try:
            yield taken_of(offset, place, self._parser.taken_in(place))
        except OSError as error:
            hint = f"topics there: {', '.join(sorted(topics)) or 'none'}"
            raise NotFound(
                f"--taken {place}: no topic below PATH, and no such file ({error.strerror or error})", hint
            ) from None

    def _records(self, topic: str) -> Iterator[Iterator[TakenRecord]]:
        """The records of each partition of a topic, those that count."""
        if self._logs is None:
            return
        names = [f.name for f in self._logs.layout.folders if f.topic == topic]
        yield from self._parser.taken(topic, record_fates(self._logs.partitions(names).values()))


def _named(entries: Iterable[StoredOffset]) -> Iterator[Judged]:
    """Number the partitions of each connector; its store is named where several stores have a connector of its name."""
    entries = list(entries)
    stores: dict[str, set[str]] = {}
    for entry in entries:
        stores.setdefault(entry.connector, set()).add(entry.store)
    counts: dict[str, int] = {}
    for entry in entries:
        run = entry.connector if len(stores[entry.connector]) == 1 else f"{entry.store}:{entry.connector}"
        counts[run] = counts.get(run, -1) + 1
        yield Judged(run, counts[run], entry)


def _owner(
    records: Iterator[TakenRecord], judged: Iterable[Judged]
) -> tuple[Judged, str, Iterator[TakenRecord]] | None:
    """The partition of a connector that a log's records come from, by the name that the newest one gives its source."""
    passed: list[TakenRecord] = []
    for record in records:
        passed.append(record)
        if record.source is not None and isinstance(record.source.get("name"), str):
            for one in judged:
                if one.entry.offset is not None and _is_of(one.entry.partition, record.source):
                    return one, record.log, _chained(passed, records)
            return None
        if len(passed) >= _PASSED:
            return None
    return None


_PASSED = 100
"""Records without a source that are passed over in search of one."""


def _is_of(partition: Mapping[str, Any], source: Mapping[str, Any]) -> bool:
    """Whether a source block names a partition: its server, and its database or replica set where both have one."""
    pairs = (("database", "db"), ("rs", "rs"))
    if source["name"] not in (partition.get("server"), partition.get("server_id")):
        return False
    return all(
        partition[a] == source[b] for a, b in pairs if partition.get(a) is not None and source.get(b) is not None
    )


def _chained(passed: Iterable[TakenRecord], rest: Iterator[TakenRecord]) -> Iterator[TakenRecord]:
    yield from passed
    yield from rest


def _again_from(first: TakenRecord, rest: Iterator[TakenRecord]) -> Iterator[TakenRecord]:
    return _chained([first], rest)


def _missing_partitions(partitions: Mapping[str, Partition]) -> Iterator[Finding]:
    """Report partitions of a topic of offsets that other brokers have: connectors may have stored there, too."""
    numbers: dict[str, set[int]] = {}
    for p in partitions.values():
        numbers.setdefault(p.folder.topic, set()).add(p.folder.partition)
    for topic, found in sorted(numbers.items()):
        gone = sorted(set(range(max(found) + 1)) - found) if len(found) < 1 << 16 else []
        if gone:
            message = (
                f"{topic}: partitions {first_few(gone, 5)} are not here: connectors whose offsets lie there seem to "
                "have none. Copy them from the other brokers"
            )
            yield Finding("missing-offsets-partition", "warning", topic, message)


def _empty_partitions(partitions: Iterable[Partition]) -> Iterator[Finding]:
    """Report logs of offsets without a batch: never used, or emptied."""
    unreadable: dict[str, list[str]] = {}
    empty: dict[str, list[str]] = {}
    for p in partitions:
        if not p.batches and p.damage and not p.unread:
            unreadable.setdefault(p.folder.topic, []).append(p.folder.path)
        elif not (p.batches or p.damage):
            empty.setdefault(p.folder.topic, []).append(p.folder.path)
    for topic, places in unreadable.items():
        message = (
            f"{topic}: no batch of {first_few(places, 5)} can be read. Connectors whose offsets are there seem to have "
            "none: they would start over. Look for another copy of these files before a worker starts"
        )
        yield Finding(
            "empty-offsets-partition", "error", topic, message, tuple(map(Where, places)), effect="data-duplicated"
        )
    for topic, places in empty.items():
        message = (
            f"{topic}: {first_few(places, 5)} {agreeing(len(places), 'hold')} no record. That is usual where a topic "
            "has more partitions than connectors. But if files were emptied, connectors whose offsets were there start "
            "over"
        )
        yield Finding("empty-offsets-partition", "info", topic, message, tuple(map(Where, places)))


_OF_OFFSETS: Mapping[str, Effect] = {"unchecked-damage": "restart-fails"}
"""What a flaw of the offsets topic does to workers, which read all of it when they start."""
