"""Kafka messages of formats 0 and 1 (before Kafka 0.11), on bytes.

    log     = message*                                                   all integers are big-endian
    message = offset:i64  size:i32  crc:u32  magic:i8  attributes:i8  [timestamp:i64]  bytes(key)  bytes(value)
    bytes   = length:i32, -1 for null, and so many bytes                 the timestamp is there in format 1

`size` counts what follows it; the CRC-32 (that of zlib) covers `magic` to the end. Attributes: bits 0-2 codec, 3
LogAppendTime. A codec makes the message a wrapper: its value is a whole log, compressed, and its offset that of the
last message inside. Inside, offsets are absolute in format 0, and relative to each other in format 1, so that a
broker could assign them by writing one number. A message has no header with names and values, and no transaction.

Old clients wrote the checksum of an lz4 frame's descriptor over the frame's magic too, in format 0 alone
(KAFKA-3160); readers look past it, and so does this one. All of it may be damaged or hostile: what does not fit
raises `BadBatch`, and no length field is believed before the bytes behind it are there.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Bytes
from cklog.budgets import BATCH_BYTES
from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.kafka.batches import BEFORE_LENGTH, Header, KafkaRecord
from cklog.parsers.kafka.payloads import BadBatch, Budget
from cklog.unknown_formats import proves_damaged_bit

FRONT = struct.Struct(
    ">q"  # offset
    "i"  # size: bytes behind it
    "I"  # crc32 of what follows
    "b"  # magic
    "b"  # attributes
)
_CHECKED_FROM = 16
_SMALLEST = 14
"""Of `size`: a message without timestamp, key and value."""

_TIME, _LENGTH = struct.Struct(">q"), struct.Struct(">i")
_CODEC, _APPEND_TIME = 0x07, 0x08
_NO_TIME = -1
_DELTA_LIMIT = 1 << 31
"""As in format 2, where the field for it has 32 bits."""

_LZ4, _ZSTD = 3, 4
_LZ4_MAGIC = b"\x04\x22\x4d\x18"


class Message(NamedTuple):
    """One message as it lies in a log, maybe a wrapper; `time` in ms, `size` with all its fields, in bytes."""

    offset: int
    crc: int
    magic: int
    attributes: int
    time: int
    key: bytes | None
    value: bytes | None
    size: int


def size(data: bytes, at: int = 0) -> int:
    """Return the bytes that the message at byte `at` takes, by its size field.

    Raises
    ------
    BadBatch
        no front, another magic, or a size that no writer can have written.
    """
    if len(data) - at < FRONT.size:
        raise BadBatch(f"a message needs {FRONT.size} bytes, there are {max(len(data) - at, 0)}")
    offset, length, _, magic, _ = FRONT.unpack_from(data, at)
    if magic not in (0, 1):
        raise BadBatch(f"magic is {magic}, not 0 or 1")
    if not _SMALLEST + 8 * magic <= length <= BATCH_BYTES:
        raise BadBatch(f"a message of {BEFORE_LENGTH + length} bytes")
    if not 0 <= offset < (1 << 63) - 1:
        raise BadBatch(f"offset {offset}")
    return int(BEFORE_LENGTH + length)


def verify(message: bytes) -> None:
    """Raise `BadBatch` unless the bytes of a whole message match its CRC-32."""
    crc = FRONT.unpack_from(message)[2]
    computed = zlib.crc32(memoryview(message)[_CHECKED_FROM:])
    if computed != crc:
        raise BadBatch(f"crc is {crc:08x}, the message's bytes give {computed:08x}")


def is_damaged_magic(message: bytes) -> bool:
    """Return whether the CRC-32 of a message of a later format proves that one bit of the format is damaged."""
    crc, magic = FRONT.unpack_from(message)[2:4]
    rest = message[_CHECKED_FROM + 1 :]
    return proves_damaged_bit(magic, (0, 1), lambda one: one in (0, 1) and zlib.crc32(bytes([one]) + rest) == crc)


def header(data: bytes, budget: Budget | None = None) -> Header:
    """Return what a whole message says as a header of a batch; a wrapper is decompressed for it.

    The CRC is not looked at.

    Raises
    ------
    BadBatch
        as `records`.
    """
    outer = _decode_message(data, 0)
    first, last, count = outer, outer, 1
    if outer.attributes & _CODEC:
        count = 0
        for last in _inner_messages(outer, budget or Budget()):
            first = last if not count else first
            count += 1
    base = first.offset if outer.magic == 0 else outer.offset - (last.offset - first.offset)
    if base < 0 or last.offset > outer.offset or outer.offset - base >= _DELTA_LIMIT:
        raise BadBatch(f"offsets up to {last.offset} inside a message with offset {outer.offset}")
    base_time = outer.time if outer.attributes & _APPEND_TIME else first.time
    attributes = outer.attributes & (_CODEC | _APPEND_TIME * outer.magic)
    return Header(
        base=base,
        length=outer.size - BEFORE_LENGTH,
        crc=outer.crc,
        attributes=attributes,
        last_delta=outer.offset - base,
        base_time=base_time,
        max_time=outer.time,
        producer=-1,
        count=count,
        magic=outer.magic,
    )


def records(head: Header, data: bytes, budget: Budget | None = None) -> Iterator[KafkaRecord]:
    """Yield the records of a whole message, in order: itself, or those that it wraps.

    Raises
    ------
    BadBatch
        a length that does not fit, a payload that does not decompress, nothing in it, a wrapper inside a wrapper,
        another format inside, or offsets that do not ascend.
    """
    outer = _decode_message(data, 0)
    if not outer.attributes & _CODEC:
        yield _as_record(outer, outer.offset, outer.time)
        return
    shift: int | None = 0 if outer.magic == 0 else None
    for inner in _inner_messages(outer, budget or Budget()):
        shift = head.base - inner.offset if shift is None else shift
        yield _as_record(inner, inner.offset + shift, outer.time if head.log_append_time else inner.time)


def _as_record(message: Message, offset: int, time: int) -> KafkaRecord:
    return KafkaRecord(
        offset=offset, timestamp=time, key=message.key, value=message.value, headers=(), size=message.size
    )


def _inner_messages(outer: Message, budget: Budget) -> Iterator[Message]:
    """Yield the messages that a wrapper holds, at least one."""
    codec = outer.attributes & _CODEC
    if outer.value is None or codec >= _ZSTD:
        raise BadBatch("a wrapper around nothing" if outer.value is None else f"compression codec {codec}")
    packed = _repaired_lz4(outer.value) if (outer.magic, codec) == (0, _LZ4) else outer.value
    data = budget.payload(codec, packed)
    at, before = 0, -1
    while at < len(data) or not at:
        inner = _decode_message(data, at)
        if inner.magic != outer.magic or inner.attributes & _CODEC:
            raise BadBatch(f"a message of format {inner.magic}, codec {inner.attributes & _CODEC} inside a wrapper")
        if inner.offset <= before:
            raise BadBatch(f"offset {inner.offset} after {before} inside a wrapper")
        budget.count(1)
        at, before = at + inner.size, inner.offset
        yield inner


def _decode_message(data: bytes, start: int) -> Message:
    """Decode the message at byte `start` of a log."""
    end = start + size(data, start)
    if end > len(data):
        raise BadBatch(f"the message needs {end - start} bytes, there are {len(data) - start}")
    offset, _, crc, magic, attributes = FRONT.unpack_from(data, start)
    at = start + FRONT.size
    time = _TIME.unpack_from(data, at)[0] if magic else _NO_TIME
    key, at = _decode_bytes(data, at + _TIME.size * magic, end)
    value, at = _decode_bytes(data, at, end)
    if at != end:
        raise BadBatch(f"a message that ends {end - at} bytes before its size says")
    return Message(
        offset=offset, crc=crc, magic=magic, attributes=attributes, time=time, key=key, value=value, size=end - start
    )


def _decode_bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Decode the field of bytes at `at`, which ends by `end`; return it, None if it is null, and where it ends."""
    length = _LENGTH.unpack_from(data, at)[0] if at + _LENGTH.size <= end else -2
    at += _LENGTH.size
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        raise BadBatch(f"a field of {length} bytes where {max(end - at, 0)} are left")
    return data[at : at + length], at + length


def _repaired_lz4(frame: bytes) -> bytes:
    """Return an lz4 frame with the right checksum of its descriptor."""
    if len(frame) < 7 or not frame.startswith(_LZ4_MAGIC):
        return frame
    flags = frame[4]
    at = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)  # content size, dictionary
    return frame[:at] + bytes([xxh32([frame[4:at]])[0] >> 8 & 0xFF]) + frame[at + 1 :]


def places(block: Bytes) -> NDArray[np.intp]:
    """Return where in a block of bytes the fronts of messages may begin, ascending.

    Shapes (bytes,) → (places,): every place whose magic, size and upper bytes are possible, e.g. of a message behind
    three bytes 0xff [3], and whatever looks like one besides.
    """
    n = len(block) - FRONT.size + 1
    if n <= 0:
        return np.zeros(0, np.intp)
    # magic is 0 or 1; the first byte of an offset and of a size, and the upper bits of the attributes, are 0
    good = (block[16:][:n] <= 1) & (block[:n] == 0) & (block[8:][:n] <= BATCH_BYTES >> 24) & (block[17:][:n] < 16)
    at = np.flatnonzero(good)
    length = block[at + 9].astype(np.int64) << 16 | block[at + 10].astype(np.int64) << 8 | block[at + 11]
    return at[(length >= _SMALLEST) | (block[at + 8] > 0)]
