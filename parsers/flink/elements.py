"""Serialized splits, enumerators and transactions of Flink's connectors, each with the version of its serializer.

    split       Kafka (0)    utf topic  partition:i32  start:i64  stop:i64
                dynamic (1)  utf cluster  0:i32  Kafka        (2)  utf cluster  bool [until:i64]  0:i32  Kafka
                numbers (1)  utf id  next:i64  last:i64
    enumerator  Kafka (1)    n:i32 (utf topic  partition:i32)*n, all of them assigned
                Kafka (2)    n:i32 (utf topic  partition:i32  status:i32)*n  discovered:bool
                Kafka (3)    n:i32 0:i32 (length:i32 Kafka  status:i32)*n  discovered:bool
                numbers (1)  n:i32 numbers*n, the splits that no reader has
    writer      (1)  utf prefix
                (2)  utf prefix  subtask:i32  subtasks:i32  ownership:i32  n:i32 (utf id  checkpoint:i64)*n
    collector   (1)  b91f252c LIST(committable)                   (2)  b91f252c LIST(checkpoint)
    checkpoint  (0, 1)     id:i64 [1: subtasks:i32] LIST(subtask)
    subtask     (0, 1, 2)  [1, 2: subtask:i32] LIST(request) n:i32 [0, 1: drained:i32] failed:i32
    request     (0)        version:i32 length:i32 committable  retries:i32  state:i32
    committable (1)        epoch:i16 producer:i64 utf id
    LIST(x)     version:i32 n:i32 (length:i32 x)*n

A function for each yields what it finds as `FoundElement`s, and raises `Malformed` or `Unknown` unless all of the bytes
are laid out so, topics have names that Kafka allows, and numbers are possible. Offsets are the
next ones to read, ends are exclusive; Kafka's markers (-1 latest, -2 earliest, -3 committed, the smallest number: none
yet) stay as they are.

What sources and sinks of Flink keep in operator state: splits with their offsets, and open Kafka transactions.

    state       version:i32 [compressed:bool, from version 6 on] …       element, at the offsets of its list
    element     length:i32 VERSIONED                                     VERSIONED = version:i32 length:i32 bytes
    coordinator 0|1:i32 VERSIONED                                        0: more follows, which says nothing new

Operator state carries no type, so that the bytes of an element (`cklog.parsers.flink.elements`) are tried: they are
what they fit exactly. What fits nothing becomes a row `unread`, one per list and version. A list's state may be in a
file of its own; what is wrong there is no damage of the metadata, and `unread` too.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from cklog.model.wording import agreeing, many
from cklog.parsers.flink.contents import ByteStretch, SnapshotContents
from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.rows import Row, row

Cells = dict[str, str | int | None]


class FoundElement(NamedTuple):
    """A row of the table of snapshots in the making: what stands at byte `at`, by its columns."""

    at: int
    entry: str
    cells: Cells


ElementLayout = Callable[[int, Cursor], Iterator[FoundElement]]

_NO_STOP = -(1 << 63)
_BIGGEST = (1 << 63) - 1
_LOWEST_MARKER = -3
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_STATUS = {0: "assigned", 1: "unassigned"}
_COLLECTOR = bytes.fromhex("b91f252c")
_FATES = {0: "pending", 1: "pending", 2: "failed", 3: "committed"}
"""Of a request to commit: received, to be tried again, failed, done."""


def kafka_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a partition and its offsets, as KafkaPartitionSplitSerializer writes them."""
    _expect_version(version, 0)
    at = cursor.at
    cells = _read_partition_offsets(cursor)
    cursor.done("a split")
    yield FoundElement(at, "source", cells)


def dynamic_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a partition with its cluster, as DynamicKafkaSourceSplitSerializer writes it."""
    _expect_version(version, 1, 2)
    at = cursor.at
    cluster = cursor.utf("a cluster")
    if version == 2 and cursor.flag("whether the split is kept"):
        cursor.i64("until when")
    _expect_version(cursor.i32("a version"), 0)
    cells = _read_partition_offsets(cursor) | {"kind": "dynamic-kafka", "detail": cluster}
    cursor.done("a split")
    yield FoundElement(at, "source", cells)


def number_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a range of numbers, which sources that generate data have for a split."""
    _expect_version(version, 1)
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
    _expect_version(version, 1, 2, 3)
    start = cursor.at
    count = cursor.count(6, "partitions")
    if version == 3:
        _expect_version(cursor.i32("a version"), 0)
    for _ in range(count):
        at = cursor.at
        cells: Cells = _read_enumerated_split(cursor) if version == 3 else {"name": _read_partition(cursor)}
        status = cursor.i32("a status") if version > 1 else 0
        if status not in _STATUS:
            raise Unknown(f"a status {status}")
        yield FoundElement(at, "enumerator", cells | {"kind": _STATUS[status]})
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
    _expect_version(version, 1)
    for _ in range(cursor.count(18, "splits")):
        yield from _read_number_range(cursor)
    cursor.done("an enumerator")


def kafka_writer(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read transactions of a writer that are to be committed, as KafkaWriterStateSerializer writes them."""
    _expect_version(version, 1, 2)
    at = cursor.at
    yield FoundElement(at, "transaction", {"name": _read_transaction_id(cursor), "kind": "prefix"})
    if version == 2:
        cursor.skip(12, "whose transactions they are")
        for _ in range(cursor.count(10, "transactions")):
            at = cursor.at
            cells: Cells = {"name": _read_transaction_id(cursor), "kind": "open"}
            yield FoundElement(at, "transaction", cells | {"checkpoint": cursor.i64("a checkpoint")})
    cursor.done("a writer")


def _read_transaction_id(cursor: Cursor) -> str:
    name = cursor.utf("a transactional id")
    if not name:
        raise Malformed(cursor.at, "an empty transactional id")
    return name


def kafka_committer(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read transactions that were to be committed when the checkpoint was complete."""
    _expect_version(version, 1, 2)
    at = cursor.skip(4, "the start of a collector")
    if cursor.data[at : cursor.at] != _COLLECTOR:
        raise Unknown("no collector of committables")
    for inner, number in _read_list(cursor, (1,) if version == 1 else (0, 1)):
        if version == 1:
            at = inner.at
            yield FoundElement(at, "transaction", _read_committable(inner) | {"kind": "pending"})
            inner.done("a committable")
        else:
            yield from _read_checkpoint_committables(inner, number)
    cursor.done("a collector")


def _read_checkpoint_committables(cursor: Cursor, version: int) -> Iterator[FoundElement]:
    """Read a checkpoint of a collector: the requests of all subtasks."""
    checkpoint = cursor.i64("a checkpoint")
    if version == 1:
        cursor.i32("the number of subtasks")
    for inner, number in _read_list(cursor, (0, 1, 2)):
        if number:
            inner.i32("a subtask")
        for request, _ in _read_list(inner, (0,)):
            yield _read_request(request, checkpoint)
        inner.skip(8 if number == 2 else 12, "counts of committables")
        inner.done("a subtask's committables")
    cursor.done("a checkpoint's committables")


def _read_request(cursor: Cursor, checkpoint: int) -> FoundElement:
    """Read a request to commit a transaction, and what became of it."""
    _expect_version(cursor.i32("a version"), 1)
    inner = Cursor(cursor.data, cursor.blob("a committable"), cursor.at)
    at = inner.at
    cells = _read_committable(inner) | {"checkpoint": checkpoint}
    inner.done("a committable")
    cursor.i32("a number of retries")
    fate = cursor.i32("the state of a request")
    cursor.done("a request")
    if fate not in _FATES:
        raise Unknown(f"a request in state {fate}")
    return FoundElement(at, "transaction", cells | {"kind": _FATES[fate]})


def _read_committable(cursor: Cursor) -> Cells:
    at = cursor.skip(2, "an epoch")
    epoch = int.from_bytes(cursor.data[at : cursor.at], "big", signed=True)
    producer = cursor.i64("a producer")
    return {"name": _read_transaction_id(cursor), "detail": f"producer {producer} epoch {epoch}"}


def _read_list(cursor: Cursor, versions: tuple[int, ...]) -> Iterator[tuple[Cursor, int]]:
    """Read a LIST: yield the bytes of each element, and the version of its serializer."""
    version = cursor.i32("a version")
    _expect_version(version, *versions)
    for _ in range(cursor.count(4, "elements")):
        yield Cursor(cursor.data, cursor.blob("an element"), cursor.at), version


def _expect_version(version: int, *versions: int) -> None:
    if version not in versions:
        raise Unknown(f"version {version}")


LAYOUTS: dict[str, tuple[tuple[ElementLayout, ...], str]] = {
    "SourceReaderState": ((kafka_split, dynamic_split, number_split), "unknown-split"),
    "writer_raw_states": ((kafka_writer,), "unknown-writer"),
    "streaming_committer_raw_states": ((kafka_committer,), "unknown-committable"),
}
"""By the name of a list: what its elements may be, and what to call others."""

ENUMERATORS: tuple[ElementLayout, ...] = (kafka_enumerator, number_enumerator)


_LEGACY = "topic-partition-offset-states"
STATES = frozenset({*LAYOUTS, _LEGACY})
"""Names of the lists of operator state that are understood, or known not to be."""

_OFFSET = struct.Struct(">q")
_COMPRESSIBLE = 6
_VERSIONS_NAMED = 8


class StateList(NamedTuple):
    """A list of operator state: the offsets of its `elements` begin at byte `at` of the metadata."""

    name: str
    at: int
    elements: int


def listed_state(
    contents: SnapshotContents,
    data: bytes,
    at: int,
    whose: dict[str, Any],
    piece: ByteStretch,
    lists: Iterable[StateList],
) -> Iterator[Row]:
    """Read the lists of one subtask as rows.

    Parameters
    ----------
    data : the metadata
    at : place in it of the handle of the subtask's state
    whose : cells that all rows have: operator and subtask
    piece : where the bytes of the state are
    lists : which lists are in that state
    """
    kept = [one for one in lists if one.elements]
    for one in [one for one in kept if one.name == _LEGACY]:
        detail = f"{many(one.elements, 'offset')} of FlinkKafkaConsumer, which KafkaSource replaced"
        yield row(one.at, "unread", kind="legacy-kafka-consumer", detail=detail, **whose)
    kept = [one for one in kept if one.name != _LEGACY]
    state = contents.of(data, piece) if kept else ""
    if isinstance(state, str):
        if kept:
            yield row(at, "unread", kind="source-state-elsewhere", file=piece.file, detail=state, **whose)
    elif _is_compressed(state):
        detail = f"{', '.join(one.name for one in kept)}: compressed"
        yield row(at, "unread", kind="compressed-operator-state", detail=detail, **whose)
    else:
        for one in kept:
            yield from _read_elements(data, one, state, None if piece.file is None else at, whose)


def _is_compressed(state: Cursor) -> bool:
    """Return whether operator state begins with a version that may be compressed, and says that it is."""
    head = state.data[state.at : min(state.at + 5, state.end)]
    return len(head) == 5 and int.from_bytes(head[:4], "big", signed=True) >= _COMPRESSIBLE and head[4] != 0


def _read_elements(data: bytes, one: StateList, state: Cursor, at: int | None, whose: dict[str, Any]) -> Iterator[Row]:
    """Yield rows of the elements of one list; `at` is their place if they are not in the metadata itself."""
    layouts, unknown = LAYOUTS[one.name]
    odd: dict[int | None, int] = {}
    broken: list[str] = []
    lowest = state.at
    for (offset,) in _OFFSET.iter_unpack(memoryview(data)[one.at : one.at + 8 * one.elements]):
        try:
            version, element, lowest = _cut_element(state, offset, lowest)
        except Malformed as reason:
            broken = broken or [f"{one.name}: {reason.why}"]
            continue
        found = fitting(layouts, version, element)
        if found is None:
            named = version if version in odd or len(odd) < _VERSIONS_NAMED else None
            odd[named] = odd.get(named, 0) + 1
        else:
            for place, entry, cells in found:
                yield row(place if at is None else at, entry, **(whose | cells))
    for detail in broken:
        yield row(one.at, "unread", kind="corrupt-source-state", detail=detail, **whose)
    for named, count in odd.items():
        of_version = "other serializer versions" if named is None else f"serializer version {named}"
        laid_out = f"{agreeing(count, 'are')} laid out in no known way"
        detail = f"{many(count, 'element')} of {one.name}, of {of_version}, {laid_out}"
        yield row(one.at, "unread", kind=unknown, detail=detail, **whose)


def _cut_element(state: Cursor, offset: int, lowest: int) -> tuple[int, Cursor, int]:
    """Return serializer version and bytes of the element at an offset of the state, and where it ends.

    Elements are written one behind the other: one that begins before byte `lowest`, where the last one ended, is none.
    """
    at = state.at + offset
    if not lowest <= at <= state.end:
        raise Malformed(lowest, f"an element at byte {offset}, not between {lowest - state.at} and its end")
    outer = Cursor(state.data, at, state.end)
    inner = Cursor(state.data, outer.blob("an element"), outer.at)
    version, start = inner.i32("a version"), inner.blob("a serialized element")
    inner.done("an element")
    return version, Cursor(state.data, start, inner.at), outer.at


def coordinated(data: bytes, piece: ByteStretch, operator: str) -> Iterator[Row]:
    """Read the inlined state of an operator's coordinator as rows: what it says of its source."""
    at = piece.at or 0
    cursor = Cursor(data, at, at + (piece.bytes or 0))
    if at == cursor.end:
        return
    try:
        framing, version, start = cursor.i32(), cursor.i32(), cursor.blob("an enumerator")
        if framing not in (0, 1):
            raise Unknown("no coordinator of a source")
        if framing == 1:
            cursor.done("an enumerator")
    except (Malformed, Unknown):
        detail = f"{piece.bytes} bytes of a coordinator that is no source's"
        yield row(at, "unread", operator=operator, kind="unknown-coordinator", detail=detail)
        return
    if start == cursor.at:  # an enumerator without any state, as most are that generate data
        return
    found = fitting(ENUMERATORS, version, Cursor(data, start, cursor.at))
    if found is None:
        detail = f"{cursor.at - start} bytes of an enumerator, of serializer version {version}"
        yield row(start, "unread", operator=operator, kind="unknown-enumerator", detail=detail)
        return
    for place, entry, cells in found:
        yield row(place, entry, operator=operator, **cells)


def fitting(layouts: Iterable[ElementLayout], version: int, cursor: Cursor) -> Iterator[FoundElement] | None:
    """Decode bytes by the first layout that fits them to the end; None if none fits."""
    at = cursor.at
    for layout in layouts:
        try:
            for _ in layout(version, Cursor(cursor.data, at, cursor.end)):
                pass
        except (Malformed, Unknown):
            continue
        return layout(version, Cursor(cursor.data, at, cursor.end))
    return None
