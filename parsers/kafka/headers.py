"""Kafka segments as a table of their batches (`cklog.inputs.record_batches.BATCHES`), from headers alone.

    segment = batch*        one row per batch of format 2, one per outer message of formats 0 and 1

A split is a segment, or a part of one that begins at a batch; it owns the batches that begin in it. Which batches
there are, and what lies between them, says `cklog.parsers.kafka.segment.walk`. Gaps between offsets are legal here
(compaction, markers that were cleaned away); offsets that go backwards are damage.

A segment is read in windows, and each window in runs: the length fields lead from batch to batch, the headers are
gathered and judged at once. A run ends before the first batch about which anything is unusual. That batch and some
behind it are walked one by one: the careful walk decides, the run only agrees with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cklog.arrays.types import Ints, Mask
from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import BATCH_BYTES
from cklog.engine.scan import Damage, Split
from cklog.errors import first_line
from cklog.inputs.record_batches import BATCHES
from cklog.parsers.kafka.batches import (
    BEFORE_LENGTH,
    CHECKED_FROM,
    FARTHEST,
    HEADER,
    NEWEST_MARKER,
    UNKNOWN_ATTRIBUTES,
    Header,
    marker,
)
from cklog.parsers.kafka.payloads import NEWEST_CODEC, BadBatch, Budget, UnknownBatch
from cklog.parsers.kafka.segment import FileShrunk, Segment, jumps, step
from cklog.parsers.tables.records import PSEUDO

READER = "cklog.parsers.kafka.headers:read"
READER_UNCHECKED = "cklog.parsers.kafka.headers:read_unchecked"

ROWS_AT_ONCE = 1 << 16
"""Rows of an Arrow batch at the most."""

WINDOW_BYTES = 4 << 20
"""Read at a time, and the most that a run goes over."""

_FIRST_RUN, _CAREFUL = 64, 64
"""Batches of the first run, and of a careful walk before the next one: damage must not cost a long run each time."""

FIELDS = np.dtype(
    [
        ("base", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("base_time", ">i8"),
        ("max_time", ">i8"),
        ("producer", ">i8"),
        ("producer_epoch", ">i2"),
        ("sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""The header of `cklog.parsers.kafka.batches`, and the fields of its `Header`, in the file's order of bytes."""

HeaderRows = NDArray[np.void]
"""Headers as an array of `FIELDS`, one entry each."""

_MarkerCodes = NDArray[np.int8]
"""What control batches say, as indices into `_MARKERS`."""

_LENGTH = struct.Struct(">8xI")  # unsigned: a negative length leads beyond any file
_BASE = struct.Struct(">q")

_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20

_MARKERS = np.array([None, "abort", "commit", "other"], dtype=object)
_ABORT, _COMMIT, _OTHER = 1, 2, 3
_CODE_OF = {"abort": _ABORT, "commit": _COMMIT, None: _OTHER}
_USUAL_MARKER = np.frombuffer(bytes.fromhex("2000000008 0000 0000 0c 0000 00000000 00"), np.uint8)
_FIXED = np.array([0, 1, 2, 3, 4, 5, 6, 9, 16])
"""The record of a marker as brokers write it, its kind at 7, and the places in it that are the same in all."""


class Heads(NamedTuple):
    """Headers of batches in the order of the file: byte positions, `FIELDS`, indices into `_MARKERS`; shapes (n,)."""

    at: Ints
    fields: HeaderRows
    marker: _MarkerCodes

    def headers(self) -> list[Header]:
        """Return one `Header` for each."""
        in_order = self.fields[list(Header.__slots__)]  # the columns as the fields of `Header` follow each other
        return [Header(*row) for row in in_order.tolist()]


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage, every CRC verified; a `cklog.engine.scan.Reader`."""
    return _read_table(split, columns, check=True)


def read_unchecked(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read from the 61 bytes of each header alone: no CRC is looked at, and bytes that changed are not seen."""
    return _read_table(split, columns, check=False)


def _read_table(split: Split, columns: tuple[str, ...], check: bool) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the headers of a split as rows of `BATCHES`, gathered into large Arrow batches, and the damage."""
    shape = pa.schema([pa.field(n, PSEUDO[n]) if n in PSEUDO else BATCHES.field(n) for n in columns])
    held: list[Heads] = []
    rows = 0
    try:
        for found in heads(split, check, "marker" in columns):
            if isinstance(found, Damage):
                yield found
                continue
            rows += len(found.at)
            if held and rows > ROWS_AT_ONCE:
                yield _table_batch(held, split.path, shape)
                held, rows = [], len(found.at)
            held.append(found)
    except (OSError, *ARROW_ERRORS) as error:
        yield Damage(split.path, "unreadable-file", None, first_line(error))
    if held:
        yield _table_batch(held, split.path, shape)


def heads(split: Split, check: bool = True, markers: bool = False) -> Iterator[Heads | Damage]:
    """Yield the headers of a split's batches, at most `ROWS_AT_ONCE` at a time, and the damage between them.

    With `check` every CRC is verified; with `markers` control batches are decoded for what they say.
    """
    with Segment(split.uri, split.path, split.size, WINDOW_BYTES) as segment:
        yield from heads_in(segment, split.start, split.end, check, markers)


def heads_in(
    segment: Segment, start: int, end: int, check: bool = True, markers: bool = False
) -> Iterator[Heads | Damage]:
    """Yield what `heads` does, of the batches that begin in [start, end) of an open segment."""
    segment.limit = end = min(end, segment.size)
    segment.budget = Budget.of_split(end - start)
    at, want = start, _FIRST_RUN
    try:
        while at < end:
            run = _read_run(segment, at, end, want, check)
            if len(run.heads.at):
                yield from _with_markers(segment, run.heads) if markers else [run.heads]
                at = run.after
            if run.whole:
                want = min(2 * want, ROWS_AT_ONCE)
                continue
            want = _FIRST_RUN
            walked, damage, after = _walk_some(segment, at, end, check)
            yield from damage
            if len(walked.at):
                yield from _with_markers(segment, walked) if markers else [walked]
            at = after
    except FileShrunk as cut:
        yield from _left_runs(segment, at, min(end, cut.end), check, markers)
        raise


def _left_runs(segment: Segment, at: int, end: int, check: bool, markers: bool) -> Iterator[Heads | Damage]:
    """Yield the whole batches before the end of a file that was cut; the batch that lies across it is not torn."""
    segment.size = segment.limit = end
    while at < end:
        run = _read_run(segment, at, end, ROWS_AT_ONCE, check)
        if not len(run.heads.at):
            return
        yield from _with_markers(segment, run.heads) if markers else [run.heads]
        at = run.after


def _walk_some(segment: Segment, at: int, end: int, check: bool) -> tuple[Heads, list[Damage], int]:
    """Return some batches and damage from `at` on as the careful walk has them, and where to go on."""
    places: list[int] = []
    found: list[Header] = []
    damage: list[Damage] = []
    while at < end and len(found) + len(damage) < _CAREFUL:
        one, after = step(segment, at, check, ordinary=True)
        if isinstance(one, Damage):
            damage.append(one)
        else:
            places.append(at)
            found.append(one)
            damage += jumps(segment, at, one, ordinary=True)
        at = after
    rows = [tuple(getattr(head, name) for name in FIELDS.names or ()) for head in found]
    return Heads(np.array(places, np.int64), np.array(rows, FIELDS), np.zeros(len(rows), np.int8)), damage, at


class _Run(NamedTuple):
    """Batches that nothing speaks against, where the next one begins, and whether a further run may be of use."""

    heads: Heads
    after: int
    whole: bool


def _read_run(segment: Segment, start: int, end: int, most: int, check: bool) -> _Run:
    """Return at most so many batches from `start` on that nothing speaks against, as far as they are read."""
    view = segment.window(start)
    places, length = _batch_places(view, end - start, most)
    if len(places) and len(view) - length < _BASE.size <= segment.size - start - length:
        places, length = places[:-1], int(places[-1])  # whether the next offset follows is seen in the next window
    if not len(places):
        return _Run(Heads(places, np.zeros(0, FIELDS), np.zeros(0, np.int8)), start, False)
    at, after = places + start, start + length
    fields = segment.gather(at, HEADER.size).view(FIELDS)[:, 0]
    good = _first_marked(~_fitting(segment, at, fields, view[length:]))
    if check:
        good = _first_bad_crc(view, places[:good], fields[:good])
    whole = good == len(at)
    return _Run(Heads(at[:good], fields[:good], np.zeros(good, np.int8)), after if whole else int(at[good]), whole)


def _batch_places(view: memoryview, end: int, most: int) -> tuple[Ints, int]:
    """Return the positions of at most so many batches that begin in [0, end), and that of the next one.

    The length fields lead from one to the next: of batches of 70, 80 and 90 bytes, [0, 70] if at most 2 are wanted,
    and 150. Nothing is judged yet: each position has as many bytes behind it as its batch says, and that is all.
    """
    places: list[int] = []
    append, length, at = places.append, _LENGTH.unpack_from, 0
    last = min(end - 1, len(view) - HEADER.size)
    for _ in range(most):
        if at > last:
            break
        after = at + BEFORE_LENGTH + length(view, at)[0]
        if after > len(view):
            break
        append(at)
        at = after
    return np.array(places, np.int64), at


def _fitting(segment: Segment, at: Ints, fields: HeaderRows, behind: memoryview) -> Mask:
    """Mark the headers that the careful walk would take without a word, if their batches' bytes are right; shapes (n,).

    Headers follow each other, each at its place `at`; `behind` are the bytes that follow the last one, none at the
    file's end. E.g. of three batches with the offsets 0-4, 5-9 and 7-8: [True, False, True], since the second runs into
    the third.
    """
    base, delta = fields["base"].astype(np.int64), fields["last_delta"].astype(np.int64)
    size, count = fields["length"].astype(np.int64) + BEFORE_LENGTH, fields["count"]
    good: Mask = (fields["magic"] == 2) & (size >= HEADER.size) & (size <= BATCH_BYTES)
    good &= at + size <= segment.size
    good &= (base >= 0) & (delta >= 0) & (base < (1 << 63) - 1 - delta) & (count >= 0) & (count <= delta + 1)
    attributes = fields["attributes"]
    good &= ((attributes & UNKNOWN_ATTRIBUTES) == 0) & ((attributes & _CODEC) <= NEWEST_CODEC)
    last = base + delta  # may overflow where it is not good already
    good[:-1] &= base[1:] > last[:-1]
    if len(behind) >= _BASE.size:
        good[-1] &= bool(_BASE.unpack_from(behind)[0] > last[-1])
    good &= last < segment.base + FARTHEST
    if at[0] == 0:
        good[0] &= bool(base[0] >= segment.base)
    return good


def _first_marked(marked: Mask) -> int:
    """Return the first place that is marked, or how many places there are."""
    return int(marked.argmax()) if marked.any() else len(marked)


def _first_bad_crc(view: memoryview, at: Ints, fields: HeaderRows) -> int:
    """Return the first of these batches whose bytes do not match its CRC, or how many there are."""
    ends = at + fields["length"] + BEFORE_LENGTH
    checksum: Callable[[memoryview], int] = crc32c.crc32c
    batches = zip((at + CHECKED_FROM).tolist(), ends.tolist(), fields["crc"].tolist(), strict=True)
    for i, (start, end, crc) in enumerate(batches):
        if checksum(view[start:end]) != crc:
            return i
    return len(at)


def _with_markers(segment: Segment, found: Heads) -> Iterator[Heads | Damage]:
    """Fill in what control batches say, and yield all; one without a readable marker is damage and keeps its row."""
    fields = found.fields
    control = np.flatnonzero((fields["magic"] == 2) & ((fields["attributes"] & _CONTROL) != 0))
    if len(control):
        found.marker[control] = _usual_markers(segment, found.at[control], fields[control])
    unusual = control[found.marker[control] == 0]
    for i, head in zip(unusual.tolist(), Heads(found.at, fields[unusual], found.marker).headers(), strict=True):
        at = int(found.at[i])
        try:
            found.marker[i] = _CODE_OF[marker(head, segment.bytes(at, head.size))]
        except BadBatch as reason:
            kind = reason.id if isinstance(reason, UnknownBatch) else "bad-record"
            yield Damage(segment.path, kind, at, f"Kafka offset {head.base}: {reason}")
    yield found


def _usual_markers(segment: Segment, at: Ints, fields: HeaderRows) -> _MarkerCodes:
    """Return what markers say that are written as brokers write them, 0 for others; shapes (n,).

    E.g. of a commit, a compressed marker and an abort: [2, 0, 1].
    """
    usual = (fields["length"] == HEADER.size + len(_USUAL_MARKER) - BEFORE_LENGTH) & (fields["count"] == 1)
    usual &= (fields["attributes"] & _CODEC) == 0
    codes = np.zeros(len(at), np.int8)
    record = segment.gather(at[usual] + HEADER.size, len(_USUAL_MARKER))  # (usual, 17)
    kind = record[:, 7].astype(np.int64) << 8 | record[:, 8]
    found = np.select([kind == 0, kind == 1], [_ABORT, _COMMIT], _OTHER)
    same = (record[:, _FIXED] == _USUAL_MARKER[_FIXED]).all(axis=1) & (kind <= NEWEST_MARKER)
    codes[usual] = np.where(same, found, 0)
    return codes


def _table_batch(held: Sequence[Heads], path: str, shape: pa.Schema) -> pa.RecordBatch:
    whole = Heads(
        at=np.concatenate([part.at for part in held]),
        fields=np.concatenate([part.fields for part in held]),
        marker=np.concatenate([part.marker for part in held]),
    )
    oldest = int(whole.fields["magic"].min(initial=2))
    return pa.RecordBatch.from_arrays([_table_column(field, whole, path, oldest) for field in shape], schema=shape)


def _table_column(field: pa.Field, found: Heads, path: str, oldest: int) -> pa.Array:
    """Return one column of the table; null where the batch's format does not have it (`oldest`: the lowest of all)."""
    fields, name = found.fields, field.name
    if name == "_path":
        return pa.array([path], field.type).take(pa.array(np.zeros(len(found.at), np.int8)))
    if name == "marker":
        return pa.array(_MARKERS[found.marker], field.type)
    values = _COLUMNS[name](found)
    since = _SINCE.get(name, 0)
    absent = fields["magic"] < since if oldest < since else None
    dtype = np.bool_ if pa.types.is_boolean(field.type) else np.int64
    return pa.array(values.astype(dtype), field.type, mask=absent)


def _read_flag(bit: int) -> Callable[[Heads], NDArray[Any]]:
    return lambda found: (found.fields["attributes"] & bit) != 0


def _read_field(name: str) -> Callable[[Heads], NDArray[Any]]:
    return lambda found: found.fields[name]


_COLUMNS: dict[str, Callable[[Heads], NDArray[Any]]] = {
    "_offset": lambda found: found.at,
    "at": lambda found: found.at,
    "bytes": lambda found: found.fields["length"].astype(np.int64) + BEFORE_LENGTH,
    "base": _read_field("base"),
    "last": lambda found: found.fields["base"].astype(np.int64) + found.fields["last_delta"],
    "records": _read_field("count"),
    "format": _read_field("magic"),
    "codec": lambda found: found.fields["attributes"] & _CODEC,
    "leader_epoch": _read_field("leader_epoch"),
    "base_time": _read_field("base_time"),
    "max_time": _read_field("max_time"),
    "append_time": _read_flag(_APPEND_TIME),
    "producer": _read_field("producer"),
    "producer_epoch": _read_field("producer_epoch"),
    "sequence": _read_field("sequence"),
    "transactional": _read_flag(_TRANSACTIONAL),
    "control": _read_flag(_CONTROL),
}

_SINCE = {"base_time": 1, "max_time": 1, "append_time": 1} | dict.fromkeys(
    ("leader_epoch", "producer", "producer_epoch", "sequence", "transactional", "control"), 2
)
"""The first format that has a column."""
