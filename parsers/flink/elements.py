"""What sources and sinks of Flink keep in operator state: splits with their offsets, and what waits to be committed.

    state       version:i32 [compressed:bool, from version 6 on] …       element, at the offsets of its list
    element     length:i32 VERSIONED                                     VERSIONED = version:i32 length:i32 bytes
                or, in the lists of `_BARE`, a value as its type is written
    coordinator 0|1:i32 VERSIONED                                        0: more follows, which says nothing new

Operator state carries no type, so that the bytes of an element are tried: they are what they fit exactly (what sinks
keep: `cklog.parsers.flink.committables`). What fits nothing becomes a row `unread`, one per list and version. A list's
state may be in a file of its own; what is wrong there is no damage of the metadata, and `unread` too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from cklog.inputs.snapshots import LATER_VERSION, SPLITS
from cklog.model.wording import agreeing, many
from cklog.parsers.flink.cdc import cdc_split
from cklog.parsers.flink.committables import COMMITTERS, NEWEST_PAIMON, commit_user, kafka_writer
from cklog.parsers.flink.contents import ByteStretch, SnapshotContents
from cklog.parsers.flink.iceberg import iceberg_by_checkpoint, iceberg_enumerator, iceberg_job
from cklog.parsers.flink.java import Cursor, Malformed, Unknown, UnknownVersion
from cklog.parsers.flink.layouts import Cells, ElementLayout, FoundElement, fitting
from cklog.parsers.flink.rows import Row, row
from cklog.parsers.flink.sink_files import file_bucket
from cklog.parsers.flink.splits import (
    KAFKA_STATUS,
    dynamic_split,
    kafka_enumerator,
    kafka_split,
    number_enumerator,
    number_split,
)
from cklog.unknown_formats import BEYOND_VERSIONS

_COMMITTER, _PAIMON_USER = "streaming_committer_raw_states", "commit_user_state"
"""The list of every committer, and a list that Paimon's alone has beside it."""

LAYOUTS: dict[str, tuple[tuple[ElementLayout, ...], str]] = {
    SPLITS: ((kafka_split, dynamic_split, number_split, cdc_split), "unknown-split"),
    "writer_raw_states": ((kafka_writer, file_bucket), "unknown-writer"),
    _COMMITTER: (COMMITTERS, "unknown-committable"),
}
"""By the name of a list: what its elements may be, and what to call others."""

_BARE: dict[str, Callable[[Cursor], Iterator[FoundElement]]] = {
    "iceberg-files-committer-state": iceberg_by_checkpoint,
    "iceberg-flink-job-id": iceberg_job,
    _PAIMON_USER: commit_user,
}
"""By the name of a list whose elements have no version: what they are."""

_INSIDE = {
    None: ("unknown-committable", "committable"),
    "paimon": ("unread-messages", "list of commit messages"),
    "file": ("unknown-place", "place of a file"),
}
_MANIFESTS = ("unknown-manifests", "list of manifests")
"""What of a pending commit is not understood, by its form: what to call it, and in words."""

_NEWEST = {"kafka": (0, 3), "number-sequence": (1, 1)}
"""By the kind of a source whose state shows which one it is: the newest version known of splits, and of enumerators.

State names no class: the version of what fits nothing is a later one only where other state shows the class.
"""

_NEWEST_MANIFESTS = 2

ENUMERATORS: tuple[ElementLayout, ...] = (kafka_enumerator, number_enumerator, iceberg_enumerator)


_LEGACY: dict[str, tuple[str, str, str]] = {
    "topic-partition-offset-states": (
        "legacy-kafka-consumer",
        "offset",
        "FlinkKafkaConsumer, which KafkaSource replaced",
    ),
    "bucket-states": ("legacy-file-sink", "bucket", "StreamingFileSink, which FileSink replaced"),
    "next-transactional-id-hint": ("legacy-kafka-producer", "hint", "FlinkKafkaProducer, which KafkaSink replaced"),
    "next-transactional-id-hint-v2": ("legacy-kafka-producer", "hint", "FlinkKafkaProducer, which KafkaSink replaced"),
    "pending-checkpoints": ("write-ahead-sink", "list", "a sink with a write-ahead log"),
}
"""Lists of older sources and sinks, which are not read: what to call them, their elements, and whose they are."""

_OFFSETS = "topic-partition-offset-states"
STATES = frozenset({*LAYOUTS, *_BARE, *_LEGACY})
"""Names of the lists of operator state that are understood, or known not to be."""

_OFFSET = struct.Struct(">q")
_COMPRESSIBLE = 6
_VERSIONS_NAMED = 8


class OperatorSource:
    """What the state of an operator shows of its source: its kind (a key of `_NEWEST`), and an enumerator not read."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._enumerator: tuple[int, int, str] | None = None

    def learn(self, entry: str, cells: Cells) -> None:
        """Take the kind of the source from a split or a partition of it."""
        kind = cells.get("kind")
        if entry == "enumerator" and kind in (*KAFKA_STATUS.values(), "discovering"):
            self.kind = "kafka"
        elif entry == "source" and kind in _NEWEST:
            self.kind = str(kind)

    @property
    def newest_split(self) -> int | None:
        """The newest version known of the source's splits; None: which source it is is not known."""
        return None if self.kind is None else _NEWEST[self.kind][0]

    def leave_enumerator(self, at: int, version: int, detail: str) -> None:
        """Keep that an enumerator fits no layout, until the readers' state has shown which source it is."""
        self._enumerator = at, version, detail

    def unread_enumerator(self, operator: str) -> Iterator[Row]:
        """Yield the row of an enumerator that fits no layout, if there is one."""
        if self._enumerator is not None:
            at, version, detail = self._enumerator
            later = _is_later(version, None if self.kind is None else _NEWEST[self.kind][1])
            kind = LATER_VERSION if later else "unknown-enumerator"
            yield row(at, "unread", operator=operator, kind=kind, name=SPLITS, detail=detail)


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
    source: OperatorSource,
) -> Iterator[Row]:
    """Read the lists of one subtask as rows.

    Parameters
    ----------
    data : the metadata
    at : place in it of the handle of the subtask's state
    whose : cells that all rows have: operator and subtask
    piece : where the bytes of the state are
    lists : which lists are in that state
    source : what the operator's state has shown of its source so far
    """
    kept = [one for one in lists if one.elements]
    for one in [one for one in kept if one.name in _LEGACY]:
        kind, noun, whose_list = _LEGACY[one.name]
        detail, name = f"{many(one.elements, noun)} of {whose_list}", SPLITS if one.name == _OFFSETS else one.name
        yield row(one.at, "unread", kind=kind, name=name, detail=detail, **whose)
    kept = [one for one in kept if one.name not in _LEGACY]
    state = contents.of(data, piece) if kept else ""
    if isinstance(state, str):
        if kept:
            names = _names(kept)
            yield row(at, "unread", kind="source-state-elsewhere", name=names, file=piece.file, detail=state, **whose)
    elif _is_compressed(state):
        detail = f"{', '.join(one.name for one in kept)}: compressed"
        yield row(at, "unread", kind="compressed-operator-state", name=_names(kept), detail=detail, **whose)
    else:
        of_paimon = any(one.name == _PAIMON_USER for one in kept)
        for one in kept:
            newest = NEWEST_PAIMON if of_paimon and one.name == _COMMITTER else None
            yield from _read_elements(data, one, state, None if piece.file is None else at, whose, source, newest)


def _names(lists: Iterable[StateList]) -> str:
    return SPLITS if any(one.name == SPLITS for one in lists) else ", ".join(one.name for one in lists)


def _is_compressed(state: Cursor) -> bool:
    """Return whether operator state begins with a version that may be compressed, and says that it is."""
    head = state.data[state.at : min(state.at + 5, state.end)]
    return len(head) == 5 and int.from_bytes(head[:4], "big", signed=True) >= _COMPRESSIBLE and head[4] != 0


def _read_elements(
    data: bytes,
    one: StateList,
    state: Cursor,
    at: int | None,
    whose: dict[str, Any],
    source: OperatorSource,
    newest: int | None,
) -> Iterator[Row]:
    """Yield rows of the elements of one list; `at` is their place if they are not in the metadata itself.

    `newest` is the newest version known of the elements of a sink; None: whose sink it is is not known.
    """
    odd = _NotUnderstood(one.name)
    broken: list[str] = []
    lowest = state.at
    for (offset,) in _OFFSET.iter_unpack(memoryview(data)[one.at : one.at + 8 * one.elements]):
        try:
            found, lowest = _read_element(one.name, state, offset, lowest, odd)
        except Malformed as reason:
            broken = broken or [f"{one.name}: {reason.why}"]
            continue
        for place, entry, cells in found:
            yield row(place if at is None else at, entry, **(whose | cells))
            source.learn(entry, cells)
            if entry == "pending" and cells.get("version") is not None:
                odd.inside(cells)
    for detail in broken:
        yield row(one.at, "unread", kind="corrupt-source-state", name=one.name, detail=detail, **whose)
    for kind, detail in odd.sentences(source.newest_split if one.name == SPLITS else newest):
        yield row(one.at, "unread", kind=kind, name=one.name, detail=detail, **whose)


class _NotUnderstood:
    """What of one list was not understood, counted by what it is and by its version."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: dict[tuple[str, str, int | None], int] = {}
        self._later: dict[str, int] = {}

    @property
    def any_element(self) -> bool:
        """Whether there was an element that fits no layout."""
        return any(noun == "element" for _, noun, _ in self._counts)

    def element(self, version: int | None) -> None:
        """Count an element that fits no layout; `version` None: such elements have none."""
        self._count(LAYOUTS[self._name][1] if self._name in LAYOUTS else "unknown-committable", "element", version)

    def later(self, why: str) -> None:
        """Count an element of a later version of what is known."""
        why = why if why in self._later or len(self._later) < _VERSIONS_NAMED else "other serializer versions"
        self._later[why] = self._later.get(why, 0) + 1

    def inside(self, cells: Cells) -> None:
        """Count a pending commit of which a part is not understood."""
        form = cells.get("form")
        kind, noun = _INSIDE.get(form if isinstance(form, str) else None, _MANIFESTS)
        version = cells["version"] if isinstance(cells["version"], int) else None
        later = (kind, noun) == _MANIFESTS and _is_later(version, _NEWEST_MANIFESTS)
        self._count(LATER_VERSION if later else kind, noun, version)

    def _count(self, kind: str, noun: str, version: int | None) -> None:
        known = sum(key[:2] == (kind, noun) for key in self._counts) < _VERSIONS_NAMED
        key = (kind, noun, version if known or (kind, noun, version) in self._counts else None)
        self._counts[key] = self._counts.get(key, 0) + 1

    def sentences(self, newest: int | None) -> Iterator[tuple[str, str]]:
        """Yield what to call each, and a sentence; `newest`: the newest version known of elements that fit nothing."""
        for why, count in self._later.items():
            yield LATER_VERSION, f"{many(count, 'element')} of {self._name}: {why}"
        for (kind, noun, version), count in self._counts.items():
            of_version = f"serializer version {version}"
            if version is None:
                of_version = "no version of its own" if self._name in _BARE else "other serializer versions"
            laid_out = f"{agreeing(count, 'are')} laid out in no known way"
            later = noun == "element" and _is_later(version, newest)
            yield LATER_VERSION if later else kind, f"{many(count, noun)} of {self._name}, of {of_version}, {laid_out}"


def _read_element(
    name: str, state: Cursor, offset: int, lowest: int, odd: _NotUnderstood
) -> tuple[Iterable[FoundElement], int]:
    """Return what the element at an offset of the state holds, and where it ends; count it if it fits nothing.

    Elements are written one behind the other: one that begins before byte `lowest`, where the last one ended, is none.
    """
    at = state.at + offset
    if not lowest <= at <= state.end:
        raise Malformed(lowest, f"an element at byte {offset}, not between {lowest - state.at} and its end")
    outer = Cursor(state.data, at, state.end)
    if name in _BARE:
        return _read_bare(_BARE[name], outer, odd)
    inner = Cursor(state.data, outer.blob("an element"), outer.at)
    version, start = inner.i32("a version"), inner.blob("a serialized element")
    inner.done("an element")
    try:
        found = fitting(LAYOUTS[name][0], version, Cursor(state.data, start, inner.at))
    except UnknownVersion as reason:
        odd.later(reason.why)
        return [], outer.at
    if found is None:
        odd.element(version)
    return found or [], outer.at


def _is_later(version: int | None, newest: int | None) -> bool:
    """Return whether a version of a serializer is later than all that are known of what it may serialize."""
    return version is not None and newest is not None and newest < version < BEYOND_VERSIONS


def _read_bare(
    layout: Callable[[Cursor], Iterator[FoundElement]], cursor: Cursor, odd: _NotUnderstood
) -> tuple[Iterable[FoundElement], int]:
    """Return what a value holds and where it ends: nothing tells its length.

    Where one is none, no other of its list is read: each might go on to the end of the state, and be none.
    """
    at = cursor.at
    try:
        if odd.any_element:
            raise Unknown("behind a value that is none")
        for _ in layout(cursor):
            pass
    except (Malformed, Unknown):
        odd.element(None)
        return [], at
    return layout(Cursor(cursor.data, at, cursor.end)), cursor.at


def coordinated(data: bytes, piece: ByteStretch, operator: str, source: OperatorSource) -> Iterator[Row]:
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
    detail = f"{cursor.at - start} bytes of an enumerator, of serializer version {version}"
    try:
        found = fitting(ENUMERATORS, version, Cursor(data, start, cursor.at))
    except UnknownVersion:
        yield row(start, "unread", operator=operator, kind=LATER_VERSION, name=SPLITS, detail=detail)
        return
    if found is None:
        source.leave_enumerator(start, version, detail)
        return
    for place, entry, cells in found:
        source.learn(entry, cells)
        yield row(place, entry, operator=operator, **cells)
