"""Kafka record batches, format 2 (magic 2, since Kafka 0.11), on bytes: header, checksum, payload, records.

    batch   = header payload                                    all integers of the header are big-endian
    header  = baseOffset:i64  batchLength:i32  leaderEpoch:i32  magic:i8  crc:u32  attributes:i16
              lastOffsetDelta:i32  baseTimestamp:i64  maxTimestamp:i64  producerId:i64  producerEpoch:i16
              baseSequence:i32  count:i32
    payload = record*, compressed as one block if bits 0-2 of the attributes say so
    record  = length  attributes:i8  timestampDelta  offsetDelta  bytes(key)  bytes(value)  n  (name bytes(value))*n
    bytes   = length, -1 for null, and so many bytes            lengths, deltas and n are zig-zag varints

`batchLength` counts what follows it. The CRC-32C covers `attributes` to the end: base offset and length are not
under it. `lastOffsetDelta` outlives compaction, `count` does not: offsets come from the former alone.
Attributes: bits 0-2 codec, 3 LogAppendTime (every record has maxTimestamp), 4 transactional, 5 control (the one
record is a marker and no data). All of it is bytes that a crash or a stranger may have written: what does not
fit raises `BadBatch`, and no length field is believed before the bytes behind it are there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import crc32c

from cklog.budgets import BATCH_BYTES, MARKER_BYTES
from cklog.model.wording import many
from cklog.parsers.codecs.varints import BadVarint
from cklog.parsers.kafka.payloads import BadBatch, Budget, UnknownBatch
from cklog.parsers.kafka.varints import varint

HEADER = struct.Struct(
    ">q"  # baseOffset
    "i"  # batchLength
    "i"  # partitionLeaderEpoch
    "b"  # magic
    "I"  # crc
    "h"  # attributes
    "i"  # lastOffsetDelta
    "q"  # baseTimestamp
    "q"  # maxTimestamp
    "q"  # producerId
    "h"  # producerEpoch
    "i"  # baseSequence
    "i"  # count
)
BEFORE_LENGTH = 12
"""Bytes of a batch that batchLength does not count."""

UNKNOWN_ATTRIBUTES = ~0x7F
"""The bits of the attributes that no known version writes."""

CHECKED_FROM = 21
"""Where the bytes begin that the CRC covers."""

FARTHEST = 1 << 31
"""How far behind a segment's base no offset is: indexes have 32 bits for it, and a broker begins another segment."""

_MARKERS: dict[int, Literal["abort", "commit"]] = {0: "abort", 1: "commit"}
_MARKER = struct.Struct(">hh")  # version, type
_MARKER_VERSION, NEWEST_MARKER = 0, 6
"""Behind a broker's two markers are four of KRaft's: a change of leader, a snapshot's ends, versions and voters."""


class KafkaRecord(NamedTuple):
    """One record; `timestamp` in ms, `size` its encoded length in bytes, before compression, with its length field."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a batch, its fields possible but not yet verified.

    `magic` is the format, `base` the first offset, `length` the bytes behind the length field; times are in ms.
    What formats 0 and 1 (`cklog.parsers.kafka.legacy`) do not have is -1: all times of format 0, and the last three
    fields.
    """

    base: int
    length: int
    crc: int
    attributes: int
    last_delta: int
    base_time: int
    max_time: int
    producer: int
    count: int
    magic: int = 2
    leader_epoch: int = -1
    producer_epoch: int = -1
    sequence: int = -1

    @property
    def size(self) -> int:
        """The bytes of the whole batch."""
        return BEFORE_LENGTH + self.length

    @property
    def last(self) -> int:
        """The last offset that the batch takes."""
        return self.base + self.last_delta

    @property
    def codec(self) -> int:
        """The compression of the payload: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & 0x07

    @property
    def log_append_time(self) -> bool:
        """Whether every record has the time at which the broker took the batch, `max_time`."""
        return bool(self.attributes & 0x08)

    @property
    def transactional(self) -> bool:
        """Whether the records are part of their producer's transaction."""
        return bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        """Whether the one record is a marker that ends a transaction, and no data."""
        return bool(self.attributes & 0x20)


def header(data: bytes, at: int = 0) -> Header:
    """Decode the header at byte `at`.

    Raises
    ------
    BadBatch
        fewer than 61 bytes, another magic, or a field that no writer can have written.
    """
    if len(data) - at < HEADER.size:
        raise BadBatch(f"a header needs {HEADER.size} bytes, there are {max(len(data) - at, 0)}")
    (
        base,
        length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last,
        base_time,
        max_time,
        producer,
        producer_epoch,
        sequence,
        count,
    ) = HEADER.unpack_from(data, at)
    if magic != 2:
        raise BadBatch(f"magic is {magic}, not 2")
    if not HEADER.size <= BEFORE_LENGTH + length <= BATCH_BYTES:
        raise BadBatch(f"a batch of {BEFORE_LENGTH + length} bytes")
    if base < 0 or last < 0 or base + last >= (1 << 63) - 1:
        raise BadBatch("its offsets are none that a log has")
    if not 0 <= count <= last + 1:
        raise BadBatch(f"{count} records in {last + 1} offsets")
    return Header(
        base=base,
        length=length,
        crc=crc,
        attributes=attributes,
        last_delta=last,
        base_time=base_time,
        max_time=max_time,
        producer=producer,
        count=count,
        magic=magic,
        leader_epoch=leader_epoch,
        producer_epoch=producer_epoch,
        sequence=sequence,
    )


def near(head: Header, base: int) -> Header:
    """Return the header; raise `BadBatch` if its offsets, under no CRC, are too far behind the segment's base."""
    if head.last - base >= FARTHEST:
        raise BadBatch(f"offset {head.last} is too far behind the segment's base {base}")
    return head


def verify(head: Header, batch: bytes) -> None:
    """Raise `BadBatch` unless the batch is whole and its bytes match its CRC-32C."""
    if len(batch) != head.size:
        raise BadBatch(f"the batch needs {head.size} bytes, there are {len(batch)}")
    computed = crc32c.crc32c(memoryview(batch)[CHECKED_FROM:])
    if computed != head.crc:
        raise BadBatch(f"crc is {head.crc:08x}, the batch's bytes give {computed:08x}")


def records(head: Header, batch: bytes, budget: Budget | None = None) -> Iterator[KafkaRecord]:
    """Yield the records of a whole batch, in order, decoded as they are asked for; the CRC is not looked at.

    Parameters
    ----------
    budget : what may be decompressed; by default what one batch may hold

    Raises
    ------
    BadBatch
        at the first record that does not decode, or if there are more or fewer bytes than records.
    """
    if head.count == 0:
        check_empty(head)
        return
    data = (budget or Budget()).payload(head.codec, batch[HEADER.size : head.size], head.count)
    at, before = 0, -1
    for _ in range(head.count):
        try:
            record, delta, at = _decode_record(head, data, at)
        except BadVarint as reason:
            raise BadBatch(str(reason)) from None
        if not before < delta <= head.last_delta:
            raise BadBatch(f"offset {record.offset} after {head.base + before} in a batch up to {head.last}")
        before = delta
        yield record
    if at != len(data):
        raise BadBatch(f"{len(data) - at} bytes behind the last of {many(head.count, 'record')}")


def check_empty(head: Header) -> None:
    """Raise `BadBatch` if a batch of no records has a payload: compaction leaves the header alone behind."""
    if head.size > HEADER.size:
        raise BadBatch(f"{head.size - HEADER.size} bytes behind the last of {many(0, 'record')}")


def marker(head: Header, batch: bytes) -> Literal["abort", "commit"] | None:
    """Return how a control batch ends its producer's transaction; None if it speaks of something else.

    Raises
    ------
    BadBatch
        as `records`, or a record whose key is no marker's.
    """
    for record in records(head, batch, Budget(MARKER_BYTES)):
        if record.key is None or len(record.key) < _MARKER.size:
            raise BadBatch("a control record without a version and a type")
        version, kind = _MARKER.unpack_from(record.key)
        if version > _MARKER_VERSION or kind > NEWEST_MARKER:
            raise UnknownBatch(f"a control record of version {version} and type {kind}, known are 0 and 0 to 6")
        if version < 0 or kind < 0:
            raise BadBatch(f"a control record of version {version} and type {kind}")
        return _MARKERS.get(kind)
    return None


def _decode_record(head: Header, data: bytes, start: int) -> tuple[KafkaRecord, int, int]:
    """Decode the record at `start`; return it, its offset delta, and where the next one begins."""
    length, at = varint(data, start)
    end = at + length
    if length < 0 or end > len(data):
        raise BadBatch(f"a record of {length} bytes where {len(data) - at} are left")
    time_delta, at = varint(data, at + 1, bits=64)
    delta, at = varint(data, at)
    key, at = _decode_bytes(data, at, end)
    value, at = _decode_bytes(data, at, end)
    count, at = varint(data, at)
    if not 0 <= count <= end - at:
        raise BadBatch(f"{count} headers in {end - at} bytes")
    headers, at = _decode_headers(data, at, end, count)
    if at != end:
        raise BadBatch(f"a record that ends {abs(end - at)} bytes from where its length says")
    time = head.max_time if head.log_append_time else head.base_time + time_delta
    if not -(1 << 63) <= time < 1 << 63:
        raise BadBatch(f"a timestamp of {time}")
    record = KafkaRecord(
        offset=head.base + delta, timestamp=time, key=key, value=value, headers=headers, size=end - start
    )
    return record, delta, end


def _decode_headers(data: bytes, at: int, end: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    """Decode `count` headers from `at` on; return their names and values, and where they end."""
    found = []
    for _ in range(count):
        name, at = _decode_bytes(data, at, end)
        value, at = _decode_bytes(data, at, end)
        found.append((_header_name(name), value))
    return tuple(found), at


def headers_at(data: bytes, at: int, count: int) -> tuple[tuple[str, bytes | None], ...]:
    """Return names and values of the `count` headers that begin at `at` in a payload that is known to decode."""
    return _decode_headers(data, at, len(data), count)[0]


def _decode_bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Decode the field of bytes at `at`, which ends by `end`; return it, None if it is null, and where it ends."""
    length, at = varint(data, at)
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        raise BadBatch(f"a field of {length} bytes where {max(end - at, 0)} are left")
    return data[at : at + length], at + length


def _header_name(name: bytes | None) -> str:
    if name is None:
        raise BadBatch("a header without a name")
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise BadBatch("a header's name is not UTF-8") from None
