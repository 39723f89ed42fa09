"""Replay offsets in the words of the tools that will use them: exactly what each accepts, or nothing.

The formats were read off the tools themselves (`formats/kafka.md` section 4). What a tool would misread is refused.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from typing import Any

from cklog.errors import UsageError
from cklog.model import Answer, RecoveryLine, SourceOffset

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LARGEST = 1 << 63


def exports(operator: str = "", topic: str = "") -> dict[str, Callable[[Answer], str]]:
    """Each format by name; `operator` and `topic` choose among several readers and topics.

    Raises
    ------
    UsageError : (the exports) an offset that the tool would misread, or readers that disagree; says which
    """

    def bound(form: Callable[[RecoveryLine, str, str], str]) -> Callable[[Answer], str]:
        return lambda answer: form(answer.result, operator, topic)

    return {name: bound(form) for name, form in _FORMATS.items()}


def _csv(line: RecoveryLine, operator: str, topic: str) -> str:
    """Every range and offset, with a header: for people and spreadsheets, not for a Kafka tool."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "name", "from", "to", "messages", "bytes", "retained"])
    for c in line.channels:
        held = "" if c.retained is None else str(c.retained).lower()
        writer.writerow(["channel", c.channel, c.replay_from, c.replay_to, c.messages, c.bytes, held])
    for s in line.sources:
        writer.writerow(["source", s.source, _json(s.offset), _json(s.replay_to), "", "", ""])
    return out.getvalue()


def _json(offset: Any) -> Any:
    if offset is None or isinstance(offset, int | str):
        return offset
    return json.dumps(offset, sort_keys=True)


def _kafka_csv(line: RecoveryLine, operator: str, topic: str) -> str:
    """`kafka-consumer-groups --reset-offsets --from-file`: topic,partition,offset; no header, no blank line."""
    rows = _numeric(_partitions(line, operator, topic), "kafka-csv")
    return "".join(f"{name},{partition},{offset}\n" for (name, partition), offset in rows)


def _delete_records(line: RecoveryLine, operator: str, topic: str) -> str:
    """`kafka-delete-records --offset-json-file`: what lies before the offsets is deleted."""
    rows = _numeric(_partitions(line, operator, topic), "kafka-delete-records")
    partitions = [{"topic": name, "partition": p, "offset": offset} for (name, p), offset in rows]
    return json.dumps({"partitions": partitions, "version": 1}) + "\n"


def _kcat(line: RecoveryLine, operator: str, topic: str) -> str:
    """One kcat command per partition (without -p one offset would hit all); $BOOTSTRAP_SERVERS is the reader's."""
    rows = _partitions(line, operator, topic)
    return "".join(
        f'kcat -C -b "$BOOTSTRAP_SERVERS" -t {shlex.quote(name)} -p {partition} '
        f"-o {'beginning' if offset is None else offset} -e\n"
        for (name, partition), offset in rows
    )


def _spark(line: RecoveryLine, operator: str, topic: str) -> str:
    """Spark's `startingOffsets`; -2 is earliest."""
    topics: dict[str, dict[str, int]] = {}
    for (name, partition), offset in _partitions(line, operator, topic):
        topics.setdefault(name, {})[str(partition)] = -2 if offset is None else offset
    return json.dumps(topics) + "\n"


def _flink(line: RecoveryLine, operator: str, topic: str) -> str:
    """Flink SQL's `scan.startup.specific-offsets`: one topic per table, no spaces."""
    rows = _numeric(_partitions(line, operator, topic), "flink-offsets")
    topics = sorted({name for (name, _), _ in rows})
    if len(topics) > 1:
        raise UsageError(
            f"flink-offsets: {len(topics)} topics ({', '.join(topics)}), and a table reads one",
            "choose one with --topic",
        )
    return ";".join(f"partition:{partition},offset:{offset}" for (_, partition), offset in rows) + "\n"


def _partitions(line: RecoveryLine, operator: str, topic: str) -> list[tuple[tuple[str, int], int | None]]:
    """Offset per (topic, partition), sorted; None = from the start."""
    chosen = [s for s in line.sources if operator in ("", s.operator)]
    if not chosen:
        readers = ", ".join(sorted({s.operator for s in line.sources})) or "none"
        raise UsageError("there is no source offset to export", f"operators that read a source: {readers}")
    found: dict[tuple[str, int], SourceOffset] = {}
    for source in chosen:
        key = _topic_partition(source)
        if topic not in ("", key[0]):
            continue
        if key in found and found[key].offset != source.offset:
            raise UsageError(
                f"{source.source} resumes at {found[key].offset} for {found[key].operator}/{found[key].subtask} "
                f"and at {source.offset} for {source.operator}/{source.subtask}",
                "each group needs a file of its own: choose one reader with --operator",
            )
        found[key] = source
    if not found:
        raise UsageError(f"--topic {topic}: no such topic among the sources")
    return [(key, found[key].offset) for key in sorted(found)]


def _topic_partition(source: SourceOffset) -> tuple[str, int]:
    name, _, partition = source.source.rpartition("-")
    if not _TOPIC.fullmatch(name) or not (partition.isascii() and partition.isdigit() and len(partition) < 10):
        raise UsageError(f"source {source.source} is no Kafka topic-partition, and a Kafka tool would misread it")
    if source.offset is not None and not (isinstance(source.offset, int) and 0 <= source.offset < _LARGEST):
        raise UsageError(f"source {source.source}: offset {source.offset} is no Kafka offset")
    return name, int(partition)


def _numeric(rows: list[tuple[tuple[str, int], int | None]], form: str) -> list[tuple[tuple[str, int], int]]:
    for (name, partition), offset in rows:
        if offset is None:
            raise UsageError(
                f"{form}: {name}-{partition} resumes at its start (initial state), for which {form} has no word",
                "reset that partition with --to-earliest, or use spark-offsets or kcat",
            )
    return [(key, offset) for key, offset in rows if offset is not None]


_FORMATS: dict[str, Callable[[RecoveryLine, str, str], str]] = {
    "csv": _csv,
    "kafka-csv": _kafka_csv,
    "kafka-delete-records": _delete_records,
    "kcat": _kcat,
    "spark-offsets": _spark,
    "flink-offsets": _flink,
}
