"""Serialized splits and enumerators of Flink's connectors, each with the version of its serializer.

    split       Kafka (0)    utf topic  partition:i32  start:i64  stop:i64
                dynamic (1)  utf cluster  0:i32  Kafka        (2)  utf cluster  bool [until:i64]  0:i32  Kafka
                numbers (1)  utf id  next:i64  last:i64
    enumerator  Kafka (1)    n:i32 (utf topic  partition:i32)*n, all of them assigned
                Kafka (2)    n:i32 (utf topic  partition:i32  status:i32)*n  discovered:bool
                Kafka (3)    n:i32 0:i32 (length:i32 Kafka  status:i32)*n  discovered:bool
                numbers (1)  n:i32 numbers*n, the splits that no reader has
                Iceberg (1), (2): `cklog.parsers.flink.iceberg`

A function for each yields what it finds as `FoundElement`s, and raises `Malformed` or `Unknown` unless all of the bytes
are laid out so, topics have names that Kafka allows, and numbers are possible. Offsets are the
next ones to read, ends are exclusive; Kafka's markers (-1 latest, -2 earliest, -3 committed, the smallest number: none
yet) stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.layouts import Cells, FoundElement, expect_version

_NO_STOP = -(1 << 63)
_BIGGEST = (1 << 63) - 1
_LOWEST_MARKER = -3
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
KAFKA_STATUS = {0: "assigned", 1: "unassigned"}
"""Where a partition that the enumerator knows is, by its number."""


def kafka_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a partition and its offsets, as KafkaPartitionSplitSerializer writes them."""
    expect_version(version, 0)
    at = cursor.at
    cells = _read_partition_offsets(cursor)
    cursor.done("a split")
    yield FoundElement(at, "source", cells)


def dynamic_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a partition with its cluster, as DynamicKafkaSourceSplitSerializer writes it."""
    expect_version(version, 1, 2)
    at = cursor.at
    cluster = cursor.utf("a cluster")
    if version == 2 and cursor.flag("whether the split is kept"):
        cursor.i64("until when")
    expect_version(cursor.i32("a version"), 0)
    cells = _read_partition_offsets(cursor) | {"kind": "dynamic-kafka", "detail": cluster}
    cursor.done("a split")
    yield FoundElement(at, "source", cells)


def number_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a range of numbers, which sources that generate data have for a split."""
    expect_version(version, 1)
    yield from _read_number_range(cursor)
    cursor.done("a split")


def _read_partition_offsets(cursor: Cursor) -> Cells:
    name = _read_partition(cursor)
    start, stop = _read_offset(cursor), _read_offset(cursor)
    return {"name": name, "kind": "kafka", "offset": start, "stop": None if stop == _NO_STOP else stop}


def _read_partition(cursor: Cursor) -> str:
    at = cursor.at
    topic, partition = cursor.utf("a topic"), cursor.i32("a partition")
    if not _TOPIC.fullmatch(topic) or partition < 0:
        raise Malformed(at, "no partition of Kafka")
    return f"{topic}-{partition}"


def _read_offset(cursor: Cursor) -> int:
    """Read an offset or a marker."""
    found = cursor.i64("an offset")
    if found < _LOWEST_MARKER and found != _NO_STOP:
        raise Malformed(cursor.at - 8, f"an offset of {found}")
    return found


def _read_number_range(cursor: Cursor) -> Iterator[FoundElement]:
    at = cursor.at
    name, start, last = cursor.utf("a split"), cursor.i64("a number"), cursor.i64("a number")
    if not name or start > last:
        raise Malformed(at, "no range of numbers")
    stop = None if last == _BIGGEST else last + 1
    yield FoundElement(at, "source", {"name": name, "kind": "number-sequence", "offset": start, "stop": stop})


def kafka_enumerator(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read which partitions readers have, as KafkaSourceEnumStateSerializer writes it."""
    expect_version(version, 1, 2, 3)
    start = cursor.at
    count = cursor.count(6, "partitions")
    if version == 3:
        expect_version(cursor.i32("a version"), 0)
    for _ in range(count):
        at = cursor.at
        cells: Cells = _read_enumerated_split(cursor) if version == 3 else {"name": _read_partition(cursor)}
        status = cursor.i32("a status") if version > 1 else 0
        if status not in KAFKA_STATUS:
            raise Unknown(f"a status {status}")
        yield FoundElement(at, "enumerator", cells | {"kind": KAFKA_STATUS[status]})
    if version > 1 and not cursor.flag("whether partitions were looked for"):
        yield FoundElement(start, "enumerator", {"kind": "discovering"})
    cursor.done("an enumerator")


def _read_enumerated_split(cursor: Cursor) -> Cells:
    """Read a split of an enumerator, version 3."""
    inner = Cursor(cursor.data, cursor.blob("a split"), cursor.at)
    cells = _read_partition_offsets(inner)
    inner.done("a split")
    return {"name": cells["name"], "offset": cells["offset"]}


def number_enumerator(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read the ranges of numbers that no reader has yet."""
    expect_version(version, 1)
    for _ in range(cursor.count(18, "splits")):
        yield from _read_number_range(cursor)
    cursor.done("an enumerator")
