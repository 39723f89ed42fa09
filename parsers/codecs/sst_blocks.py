"""The blocks of RocksDB's tables, and of LevelDB's, that hold entries; `cklog.parsers.codecs.sst` has the layout.

    block   = entry*  restart:u32*n  n:u32
    entry   = shared:varint rest:varint length:varint key[rest] value[length]
    restart = where in the block an entry begins that shares nothing with the key before it; the first one is 0

A reader that looks for one key begins at a restart, so that a wrong one hides entries though the checksum holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from cklog.budgets import inflated_of, over
from cklog.errors import Picklable
from cklog.parsers.codecs.varints import BadVarint, unsigned_varint

TRAILER_BYTES = 5
"""Behind every block: how it is compressed, and its checksum."""
_U32 = struct.Struct("<I")


class SstFlaw(Picklable, Exception):
    """Raised where a table is not what was written: at byte `at` of it, and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


class Handle(NamedTuple):
    """Where a block is: its offset, and its bytes without compression and checksum."""

    at: int
    size: int

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.at + self.size + TRAILER_BYTES


def entries(block: bytes, at: int, deltas: bool) -> Iterator[tuple[bytes, bytes, int, int]]:
    """Yield key, value, place and shared bytes of the entries of the block at byte `at` of its file.

    `deltas`: values have no length; each is a number or two, which say where they end. Raises `SstFlaw` where an entry
    or a restart point does not fit, `OverBudget` for keys that together are too long.
    """
    if len(block) < 8:
        raise SstFlaw(at, "a block without restart points")
    (count,) = _U32.unpack_from(block, len(block) - 4)
    end = len(block) - 4 * (count + 1)
    if end < 0:
        raise SstFlaw(at, f"a block of {len(block)} bytes with {count} restart points")
    restarts = iter(struct.unpack_from(f"<{count}I", block, end))
    restart = next(restarts, None)
    if restart != 0:
        raise SstFlaw(at, "a block whose first restart point is not its first entry")
    key, i, left = b"", 0, inflated_of(len(block))
    while i < end:
        begin = i
        shared, i = decode_varint(block, i, at)
        if begin == restart and not shared:
            restart = next(restarts, None)
        rest, i = decode_varint(block, i, at)
        length = 0
        if not deltas:
            length, i = decode_varint(block, i, at)
        if shared > len(key) or i + rest + length > end:
            raise SstFlaw(at, "a block with an entry that is longer than the block")
        key, i = key[:shared] + block[i : i + rest], i + rest
        left -= len(key)  # each may repeat all of the one before
        if left < 0:
            raise over("what the keys of a block become", inflated_of(len(block)))
        if deltas:
            value = block[i : min(i + 20, end)]
            _, length = decode_varint(value, 0, at)
            if not shared:
                _, length = decode_varint(value, length, at)
        yield key, block[i : i + length], at, shared
        i += length
    if restart is not None and (end or count > 1):  # a block without entries has one
        raise SstFlaw(at, f"a block whose restart point {restart} is no entry that has its whole key")


def decode_handle(data: bytes, i: int, at: int) -> tuple[Handle, int]:
    """Decode a handle at byte i of data, and where it ends; `at` is where in the file to say that it cannot be.

    >>> decode_handle(bytes([0x8F, 0x13, 0x21]), 0, 0)
    (Handle(at=2447, size=33), 3)
    """
    offset, i = decode_varint(data, i, at)
    size, i = decode_varint(data, i, at)
    return Handle(offset, size), i


def decode_varint(data: bytes, i: int, at: int) -> tuple[int, int]:
    """Decode an unsigned number of at most 64 bits, seven to a byte and in no more bytes than it needs; and its end."""
    if i < len(data) and data[i] < 128:  # most are
        return data[i], i + 1
    with suppress(BadVarint):
        value, end = unsigned_varint(data, i, 64)
        if data[end - 1]:
            return value, end
    raise SstFlaw(at, "a number that does not end")
