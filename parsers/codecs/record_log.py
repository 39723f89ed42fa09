"""RocksDB's log format, which its MANIFEST has, as its page "Write Ahead Log File Format" has it.

    file   = block*, each of 32 KiB but the last
    block  = record*  [zeros, where fewer bytes are left than the head of a record takes]
    record = checksum:u32 length:u16 type:u8 [log number:u32, in a recycled log] bytes

Integers are little-endian. The checksum is CRC-32C, masked, of all from the type on. A record of type 1 is whole; one
of type 2 goes on in others of type 3 and ends in one of type 4; in a recycled log these are 5 to 8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cklog.parsers.codecs.block_checksums import masked_crc32c
from cklog.parsers.codecs.sst import Read
from cklog.unknown_formats import is_later

_BLOCK_BYTES = 32 << 10
_STRETCH_BYTES = 128 * _BLOCK_BYTES
_HEAD = struct.Struct("<IHB")
_OF_RECYCLED = (5, 6, 7, 8, 11, 131)
_LOG_NUMBER_BYTES = 4
_WHOLE, _FIRST, _MIDDLE, _LAST = (1, 5), (2, 6), (3, 7), (4, 8)
_DATA = (*_WHOLE, *_FIRST, *_MIDDLE, *_LAST)
_OF_THE_LOG = (9, 10, 11)
"""Kinds of records that say something of the log itself: how it is compressed, and which timestamps its keys have."""

_NEWEST_KIND, _IGNORABLE = 11, 128
"""The newest kind that readers have to know, and from which on they may pass over what they do not know."""


class LogFlaw(NamedTuple):
    """What is wrong with a log at byte `at` of it; `unknown`: nothing, perhaps, as a later version may write this."""

    at: int
    why: str
    unknown: bool = False


class _Record(NamedTuple):
    at: int
    kind: int


def check_record_log(read: Read, size: int) -> LogFlaw | None:
    """Check every record of a log of `size` bytes, which must end with a whole one; raises whatever `read` raises."""
    inside = False
    count = 0
    for found in _records(read, size):
        if isinstance(found, LogFlaw):
            return found
        count += 1
        if inside == (found.kind in (*_WHOLE, *_FIRST)):
            return LogFlaw(
                found.at, "a record begins inside another" if inside else "a record goes on that never began"
            )
        inside = found.kind in (*_FIRST, *_MIDDLE)
    if inside:
        return LogFlaw(size, "its last record does not end")
    return None if count else LogFlaw(0, "it has no record")


def joined_records(data: bytes) -> bytes:
    """Return what the records of a log hold, one behind the other, as far as their lengths lead; nothing is checked.

    A record that does not fit into its block goes on in the next, behind a head of its own.

    >>> joined_records(_HEAD.pack(0, 2, 2) + b"ab" + _HEAD.pack(0, 1, 4) + b"c")
    b'abc'
    """
    parts = []
    for start in range(0, len(data), _BLOCK_BYTES):
        at, end = start, min(start + _BLOCK_BYTES, len(data))
        while end - at >= _HEAD.size:
            _, length, kind = _HEAD.unpack_from(data, at)
            if not length and not kind:
                break  # zeros up to the block's end
            at += _head_bytes(kind)
            if kind in _DATA:
                parts.append(data[at : min(at + length, end)])
            at += length
    return b"".join(parts)


def _records(read: Read, size: int) -> Iterator[_Record | LogFlaw]:
    """Yield the records whose checksums hold, up to the first flaw; those of kinds that say nothing are left out."""
    for start in range(0, size, _STRETCH_BYTES):
        data = read(start, min(_STRETCH_BYTES, size - start))
        if len(data) != min(_STRETCH_BYTES, size - start):
            yield LogFlaw(start + len(data), f"it ends there, and not at byte {size}")
            return
        for block in range(0, len(data), _BLOCK_BYTES):
            for found in _records_of_block(data[block : block + _BLOCK_BYTES], start + block):
                yield found
                if isinstance(found, LogFlaw):
                    return


def _head_bytes(kind: int) -> int:
    return _HEAD.size + (_LOG_NUMBER_BYTES if kind in _OF_RECYCLED else 0)


def _holds_with_kind(block: bytes, at: int) -> Callable[[int], bool]:
    """Return a function that tells whether the checksum of the record at byte `at` holds with another kind."""
    stored, length, _ = _HEAD.unpack_from(block, at)
    rest = block[at + _HEAD.size :]
    return lambda kind: bool(masked_crc32c(bytes([kind]) + rest[: _head_bytes(kind) - _HEAD.size + length]) == stored)


def _records_of_block(block: bytes, start: int) -> Iterator[_Record | LogFlaw]:
    """Yield the records of a block that begins at byte `start` of the file."""
    at = 0
    while len(block) - at >= _HEAD.size:
        stored, length, kind = _HEAD.unpack_from(block, at)
        head = _head_bytes(kind)
        if kind == 0 and not any(block[at:]) and len(block) - at < _HEAD.size + _LOG_NUMBER_BYTES:
            return  # zeros: a recycled log's record would not fit
        if at + head + length > len(block):
            yield LogFlaw(start + at, f"a record of {length} bytes where {max(len(block) - at - head, 0)} are left")
            return
        if kind < _IGNORABLE and is_later(kind, _NEWEST_KIND, _holds_with_kind(block, at)):
            yield LogFlaw(start + at, f"a record of the unknown type {kind}", unknown=True)
            return
        computed = masked_crc32c(block[at + 6 : at + head + length])
        if computed != stored:
            why = (
                "zeros where a record should be"
                if not any(block[at : at + _HEAD.size])
                else (f"the checksum of a record is {computed:08x}, stored is {stored:08x}")
            )
            yield LogFlaw(start + at, why)
            return
        if kind in _DATA:
            yield _Record(start + at, kind)
        elif kind not in _OF_THE_LOG and kind < _IGNORABLE:
            yield LogFlaw(start + at, f"a record of the unknown type {kind}", unknown=True)
            return
        at += head + length
    if any(block[at:]):
        yield LogFlaw(start + at, "bytes behind the last record of a block that are no zeros")
