"""Committed offsets of consumer groups, in the partitions of Kafka's topic `__consumer_offsets`.

    key    = version:i16 0 or 1  group  topic  partition:i32          a committed offset
           | version:i16 2 to 24  ...                                 groups and their members: passed over
    value  = version:i16  offset:i64  rest                            null: the commit was deleted, or has expired
    rest   = 0, 2: metadata  commitTime:i64         1: metadata  commitTime:i64  expireTime:i64
             3: leaderEpoch:i32  metadata  commitTime:i64
             4: the same, its string with a varint length + 1 before it, and tagged fields behind
    strings are length:i16 and UTF-8; all integers are big-endian

The committed offset is the next one that the group will read. The topic is compacted: the last record of a key holds.
A record may be part of a transaction, and then holds only if that is committed (`cklog.kafka_logs.group_commits`).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import KEYS_KEPT, PART_BATCHES, PART_BYTES
from cklog.engine.scan import DAMAGE_LISTED, Damage, Split
from cklog.errors import first_line
from cklog.inputs.partitions import COMMITS
from cklog.model.wording import numbered
from cklog.parsers.codecs.varints import BadVarint, unsigned_varint
from cklog.parsers.kafka.batches import Header
from cklog.parsers.kafka.decode import Decoded, decode_parts
from cklog.parsers.kafka.headers import WINDOW_BYTES, Heads, heads_in
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import Segment
from cklog.parsers.tables.records import PSEUDO
from cklog.unknown_formats import UnknownFormat

TOPIC = "__consumer_offsets"
READER = "cklog.parsers.kafka.groups:read"

_ROWS_AT_ONCE = 1 << 16
"""Records that are Python's objects at a time."""

_NEWEST_KEY = 24
"""Of keys the newest kind that is known, of groups of Kafka Streams."""

_FLEXIBLE = 4
"""The version of a value from which on strings have varints as lengths."""


class NotACommit(Exception):
    """Why a record's bytes are no committed offset; `id` is the one of the damage."""

    id = "bad-record"


class UnknownCommit(NotACommit, UnknownFormat):
    """Why a committed offset was not decoded, though nothing may be wrong with it: it has another version."""

    id = UnknownFormat.id


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` of `COMMITS`, and records that cannot be understood; a `cklog.engine.scan.Reader`.

    Damage of whole batches is not reported here: the scan of the headers has reported it.
    """
    shape = pa.schema([pa.field(n, PSEUDO[n]) if n in PSEUDO else COMMITS.field(n) for n in columns])
    keys: dict[bytes, tuple[str, str, int] | None] = {}
    try:
        for part in read_records(split):
            if isinstance(part, Damage):
                continue
            for fault in part.records.faults:
                head = part.heads[fault.batch]
                detail = f"{numbered('offset', head.base, head.last)}: {fault.reason}"
                yield Damage(
                    path=split.path,
                    id="bad-record" if fault.id == BadBatch.id else fault.id,
                    offset=int(part.at[fault.batch]),
                    detail=detail,
                    count=max(head.count, 1),
                )
            found = _Commits(split.path, part, keys)
            yield from found.damage
            yield found.batch(shape)
            if len(keys) > KEYS_KEPT:
                keys.clear()
    except (OSError, *ARROW_ERRORS) as error:
        yield Damage(split.path, "unreadable-file", None, first_line(error))


class _Commits:
    """The committed offsets of some batches, column by column.

    `keys` are those understood before: a group commits under the same ones all its life.
    """

    def __init__(self, path: str, part: SegmentPart, keys: dict[bytes, tuple[str, str, int] | None]) -> None:
        self._path, self._part, self._keys = path, part, keys
        self.damage: list[Damage] = []
        self._unlisted = Counter[str]()
        self._rows: list[tuple[Any, ...]] = []
        passed_over = [head.control or head.magic != 2 for head in part.heads]
        for some in part.records.to_table().to_batches(_ROWS_AT_ONCE):
            columns = (some[name].to_pylist() for name in ("batch", "offset", "key", "value"))
            for batch, offset, key, value in zip(*columns, strict=True):
                if not passed_over[batch]:
                    self._add(batch, offset, key or b"", value)
        self.damage += [Damage(path, id, None, "", count) for id, count in self._unlisted.items()]

    def _add(self, batch: int, offset: int, key: bytes, value: bytes | None) -> None:
        try:
            if key not in self._keys:
                self._keys[key] = commit_key(key)
            named = self._keys[key]
            if named is not None:
                self._rows.append((batch, offset, *named, *commit_value(value)))
        except NotACommit as reason:
            if len(self.damage) < DAMAGE_LISTED:
                at = int(self._part.at[batch])
                self.damage.append(Damage(self._path, reason.id, at, f"Kafka offset {offset}: {reason}"))
            else:
                self._unlisted[reason.id] += 1

    def batch(self, shape: pa.Schema) -> pa.RecordBatch:
        """Return the rows, as the columns of `shape`."""
        names = ("batch", "at", "group", "topic", "partition", "offset", "time", "leader_epoch")
        lists = zip(*self._rows, strict=True) if self._rows else ((),) * len(names)
        columns: dict[str, Any] = dict(zip(names, lists, strict=True))
        headers, at = self._part.heads, self._part.at.tolist()
        columns["producer"] = [headers[i].producer for i in columns["batch"]]
        columns["transactional"] = [headers[i].transactional for i in columns["batch"]]
        columns["_offset"] = [at[i] for i in columns["batch"]]
        columns["_path"] = [self._path] * len(self._rows)
        return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in shape], schema=shape)


def commit_key(key: bytes) -> tuple[str, str, int] | None:
    """Decode a committed offset's key to (group, topic, partition); None for a record of another kind.

    >>> commit_key(bytes.fromhex("0001 0002 6731 0001 74 00000003"))
    ('g1', 't', 3)

    Raises
    ------
    NotACommit : a field is cut short, or cannot be what it stands for
    UnknownCommit : a later kind of record
    """
    version, at = _read_number(key, 0, ">h")
    if version > _NEWEST_KEY:
        raise UnknownCommit(f"a key of version {version}, known are 0 to {_NEWEST_KEY}")
    if version < 0:
        raise NotACommit(f"a key of version {version}")
    if version > 1:
        return None
    group, at = _read_string(key, at)
    topic, at = _read_string(key, at)
    partition, _ = _read_number(key, at, ">i")
    if partition < 0:
        raise NotACommit(f"partition {partition}")
    return group, topic, partition


def commit_value(value: bytes | None) -> tuple[int | None, int | None, int | None]:
    """Decode a committed offset's value to (offset, commit time in ms, leader epoch); all None if it is a deletion.

    >>> commit_value(struct.pack(">hqihq", 3, 1200, 7, 0, 1700000000000))
    (1200, 1700000000000, 7)

    Raises
    ------
    UnknownCommit : another version
    NotACommit : a field is cut short or negative
    """
    if value is None:
        return None, None, None
    version, at = _read_number(value, 0, ">h")
    if version < 0:
        raise NotACommit(f"a committed offset of version {version}")
    if version > _FLEXIBLE:
        raise UnknownCommit(f"a committed offset of version {version}, known are 0 to {_FLEXIBLE}")
    offset, at = _read_number(value, at, ">q")
    if offset < 0:
        raise NotACommit(f"a committed offset of {offset}")
    epoch = -1
    if version >= 3:
        epoch, at = _read_number(value, at, ">i")
    _, at = _read_compact_string(value, at) if version == _FLEXIBLE else _read_string(value, at)
    time, _ = _read_number(value, at, ">q")
    return offset, None if time < 0 else time, None if epoch < 0 else epoch


def coordinator(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that holds a group's commits, by Java's hash of its name.

    >>> [coordinator(group, 5) for group in ("g1", "g2", "g3", "brandnew")]
    [2, 3, 4, 3]
    """
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code  # Java drops the sign of the hash, and 0 stands for the smallest
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def _read_number(data: bytes, at: int, form: str) -> tuple[int, int]:
    """Return the number at `at`, of a `form` as `struct` writes it, and where it ends."""
    end = at + struct.calcsize(form)
    if end > len(data):
        raise NotACommit(f"a field at byte {at} of {len(data)} is cut short")
    return int(struct.unpack_from(form, data, at)[0]), end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    length, at = _read_number(data, at, ">h")
    return _decode_string(data, at, length)


def _read_compact_string(data: bytes, at: int) -> tuple[str, int]:
    """Return the string at `at`, before which its length + 1 is an unsigned varint, and its end."""
    try:
        length, at = unsigned_varint(data, at)
    except BadVarint as reason:
        raise NotACommit(f"the length of a string: {reason}") from None
    return _decode_string(data, at, length - 1)


def _decode_string(data: bytes, at: int, length: int) -> tuple[str, int]:
    if length < 0 or at + length > len(data):
        raise NotACommit(f"a string of {length} bytes where {len(data) - at} are left")
    try:
        return data[at : at + length].decode("utf-8"), at + length
    except UnicodeDecodeError:
        raise NotACommit(f"a string at byte {at} is not UTF-8") from None


class SegmentPart(NamedTuple):
    """Some batches of a segment: their byte positions, their headers, and their records."""

    at: Ints
    heads: list[Header]
    records: Decoded


def read_records(split: Split, check: bool = True) -> Iterator[SegmentPart | Damage]:
    """Yield the records of a split's batches, part by part, and the damage; with `check` every CRC is verified.

    A split is a segment, or a part of one that begins at a batch; it owns the batches that begin in it. What a crash
    left is reported as `cklog.parsers.kafka.headers` does; a batch that is intact and does not decode is a corrupt
    batch besides.
    """
    with Segment(split.uri, split.path, split.size, WINDOW_BYTES) as segment:
        for found in heads_in(segment, split.start, split.end, check):
            if isinstance(found, Damage):
                yield found
                continue
            for at, some in _parts_of(found):
                batches = [
                    (head, memoryview(segment.bytes(i, head.size))) for i, head in zip(at.tolist(), some, strict=True)
                ]
                for first, end, decoded in decode_parts(batches, segment.budget):
                    yield SegmentPart(at[first:end], some[first:end], decoded)
                    for i, reason, id in decoded.faults:
                        head = some[first + i]
                        yield Damage(
                            path=split.path,
                            id=id,
                            offset=int(at[first + i]),
                            detail=f"{numbered('offset', head.base, head.last)}: {reason}",
                            count=head.count,
                        )


def _parts_of(found: Heads) -> Iterator[tuple[Ints, list[Header]]]:
    """Yield positions and headers in parts of `PART_BATCHES` and about `PART_BYTES` at the most."""
    every = found.headers()
    end = np.cumsum([head.size for head in every])
    start = 0
    while start < len(every):
        before = int(end[start - 1]) if start else 0
        stop = min(max(int(np.searchsorted(end, before + PART_BYTES)), start + 1), start + PART_BATCHES)
        yield found.at[start:stop], every[start:stop]
        start = stop
