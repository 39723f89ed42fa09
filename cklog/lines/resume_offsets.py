"""Where the partitions of Kafka topics resume: a row each, taken from a line and checked for what Kafka can take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from cklog.errors import NothingToWrite, UsageError
from cklog.model.lines import UNREAD_POSITION, RecoveryLine, SourceOffset, position_words
from cklog.model.values import is_integer

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}")
_PARTITIONS = 1 << 31
_LARGEST_OFFSET = 1 << 63


class ResumeOffset(NamedTuple):
    """A partition: the next `offset` to read (None: from its start), and before which offset to end (None: no end)."""

    topic: str
    partition: int
    offset: int | None
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def planned_offsets(line: RecoveryLine, operator: str, topic: str) -> list[ResumeOffset]:
    """Return where the sources of a line resume, sorted by partition.

    `operator` and `topic` choose among several readers and topics, "" takes all.

    Raises
    ------
    NothingToWrite : the line has no source
    UsageError : none of this operator; readers of one partition that disagree; a source or offset that is not Kafka's
    """
    sources = [*sources_to_export(line), *_deleted_offsets(line, operator)]
    if not sources:
        raise NothingToWrite("there is no source offset to export: the line has no source")
    name = line.reader_names()
    chosen = [s for s in sources if operator in ("", s.operator, name(s))]
    if not chosen:
        readers = ", ".join(sorted({name(s) for s in line.sources}))
        raise UsageError("there is no source offset to export", f"operators that read a source: {readers}")
    found: dict[tuple[str, int], ResumeOffset] = {}
    reader: dict[tuple[str, int], SourceOffset] = {}  # the last one seen of each partition
    for source in chosen:
        if source.offset == UNREAD_POSITION:
            why = f"source {source.source}: {position_words(source.offset)}, because cklog does not read its state"
            raise UsageError(why, "choose another reader with --operator")
        key = _topic_partition(source.source)
        if topic not in ("", key[0]):
            continue
        if key in reader and reader[key].offset != source.offset:
            raise UsageError(
                f"{source.source} resumes at {_reader_words(line, reader[key])} and at {_reader_words(line, source)}",
                "each group needs a file of its own: choose one reader with --operator",
            )
        row = _resume_offset(key, source)
        found[key] = _to_later_end(found[key], row) if key in found else row
        reader[key] = source
    return _sorted_rows(found.values(), topic)


def sources_to_export(line: RecoveryLine) -> list[SourceOffset]:
    """Return the sources of a line, those of a topic that was created again at the start of its log.

    The stored offset counts records of the former topic, and so does the end of a stored range.
    """
    rows = line.details.get("recreated_topics", ())
    starts = {(row["source"], row["operator"], row["subtask"], row["job"]): row["start"] for row in rows}
    keys = ((s.source, s.operator, s.subtask, s.job) for s in line.sources)
    return [
        replace(source, offset=starts[key], replay_to=None) if key in starts else source
        for source, key in zip(line.sources, keys, strict=True)
    ]


def _deleted_offsets(line: RecoveryLine, group: str) -> list[SourceOffset]:
    """Return the last values of a group's offsets that were deleted; "": of the only group that there is."""
    rows = [row for row in line.details.get("deleted_groups", ()) if row["resume"] is not None]
    groups = {row["group"] for row in rows} | {source.operator for source in line.sources}
    return [
        SourceOffset(row["partition"], row["resume"], row["group"], 0)
        for row in rows
        if row["group"] == group or (not group and len(groups) == 1)
    ]


def with_new_partitions(line: RecoveryLine, rows: list[ResumeOffset]) -> list[ResumeOffset]:
    """Return offsets, and the starts of partitions that the logs have and the line does not."""
    topics = {row.topic for row in rows}
    held = {(row.topic, row.partition) for row in rows}
    there = {(row["topic"], row["partition"]) for row in line.details.get("partitions_without_offset", ())}
    return sorted([*rows, *(ResumeOffset(*key, None) for key in there - held if key[0] in topics)])


def committed_offsets(line: RecoveryLine, group: str, topic: str) -> list[ResumeOffset]:
    """Return what is committed in Kafka now, sorted: the offsets of one group, before any plan is carried out.

    `line.details["committed_offsets"]` lists {"group", "topic", "partition", "offset"}; `group` may be empty where
    there is only one.

    Raises
    ------
    UsageError : nothing is known to be committed, or by several groups; says which
    """
    found_there = line.details.get("committed_offsets")
    rows: list[dict[str, Any]] = found_there if isinstance(found_there, list) else []  # a batch number, of a query
    groups = sorted({str(row["group"]) for row in rows})
    if not groups:
        raise UsageError(
            "--rollback needs the offsets that are committed now, and no committed offset was found",
            "they are in the broker's topic __consumer_offsets: give its data folder with --kafka",
        )
    if group not in groups and (group or len(groups) > 1):
        whose = f"no group {group} has" if group else f"{len(groups)} groups have"
        raise UsageError(
            f"--rollback: {whose} committed offsets, and each group needs a file of its own",
            f"choose one with --operator: {', '.join(groups)}",
        )
    found: dict[tuple[str, int], ResumeOffset] = {}
    for row in rows:
        name, partition = _topic_partition(f"{row['topic']}-{row['partition']}")
        if row["group"] == (group or groups[0]) and topic in ("", name):
            found[name, partition] = ResumeOffset(name, partition, _kafka_offset(f"{name}-{partition}", row["offset"]))
    return _sorted_rows(found.values(), topic)


def all_bounded(rows: list[ResumeOffset]) -> bool:
    """Return whether every partition has an end: only then is it a range that ends as a whole."""
    return all(row.end is not None for row in rows)


def _sorted_rows(rows: Iterable[ResumeOffset], topic: str) -> list[ResumeOffset]:
    """Sort rows by partition; refuse `topic` if there is none."""
    found = sorted(rows, key=lambda row: (row.topic, row.partition))
    if not found:
        raise UsageError(f"--topic {topic}: no such topic among the sources")
    return found


def _topic_partition(source: str) -> tuple[str, int]:
    """Split a source's name into topic and partition, e.g. orders-eu-3 → ("orders-eu", 3); refuse any other name."""
    name, _, partition = source.rpartition("-")
    numbered = _PARTITION.fullmatch(partition) and int(partition) < _PARTITIONS
    if not _TOPIC.fullmatch(name) or name in (".", "..") or not numbered:
        raise UsageError(
            f"source {source} is no Kafka topic-partition, and a Kafka tool would misread it",
            "choose an operator that reads Kafka with --operator",
        )
    return name, int(partition)


def _resume_offset(key: tuple[str, int], source: SourceOffset) -> ResumeOffset:
    start = None if source.offset is None else _kafka_offset(source.source, source.offset)
    end = None if source.replay_to is None else _kafka_offset(source.source, source.replay_to)
    if end is not None and end < (start or 0):
        raise UsageError(f"source {source.source}: the range [{start}, {end}) ends before it begins")
    return ResumeOffset(*key, start, end)


def _to_later_end(one: ResumeOffset, other: ResumeOffset) -> ResumeOffset:
    """Merge two readers of a partition from the same offset: up to the later end, if both are known."""
    if one.end is None or other.end is None:
        return one._replace(end=None)
    return max(one, other)


def _kafka_offset(source: str, offset: Any) -> int:
    if is_integer(offset) and 0 <= offset < _LARGEST_OFFSET:
        return offset
    raise UsageError(f"source {source}: offset {offset} is no Kafka offset")


def _reader_words(line: RecoveryLine, source: SourceOffset) -> str:
    return f"{source.offset} for {line.reader_names()(source)}/{source.subtask}"
