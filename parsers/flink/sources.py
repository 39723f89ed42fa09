"""What sources and sinks of Flink keep in operator state: splits with their offsets, and open Kafka transactions.

    state       version:i32 [compressed:bool, from version 6 on] …       element, at the offsets of its list
    element     length:i32 VERSIONED                                     VERSIONED = version:i32 length:i32 bytes
    coordinator 0|1:i32 VERSIONED                                        0: more follows, which says nothing new

Operator state carries no type, so that the bytes of an element (`cklog.parsers.flink.elements`) are tried: they are
what they fit exactly. What fits nothing becomes a row `unread`, one per list and version. A list's state may be in a
file of its own; what is wrong there is no damage of the metadata, and `unread` too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cklog.parsers.flink.contents import ByteStretch, SnapshotContents
from cklog.parsers.flink.elements import ENUMERATORS, LAYOUTS, ElementLayout, FoundElement
from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.rows import Row, row

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
        detail = f"{one.elements} offsets of FlinkKafkaConsumer, which KafkaSource replaced"
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
        detail = f"{count} elements of {one.name}, of {of_version}, are laid out in no known way"
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
