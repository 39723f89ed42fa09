"""What LevelDB would allocate to read a table: it believes every length before it looks at a byte.

    file   = data block*  metaindex  index  footer       as RocksDB's first tables (`cklog.parsers.codecs.sst`)
    block  = bytes  compression:u8  checksum:u32         1: Snappy, whose bytes begin with their plain length
    index  = entries whose values are handles, and offsets of entries: whoever reads backwards begins at those

LevelDB has no bound on either length, and where memory is refused it the process ends. Whether a checksum holds it asks
of a block that it has read, and of an index only in its strict mode.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from cklog.budgets import budgets, over
from cklog.parsers.codecs.block_checksums import decompress_block, masked_crc32c
from cklog.parsers.codecs.sst import Read
from cklog.parsers.codecs.sst_blocks import Handle, SstFlaw, decode_handle, decode_varint
from cklog.unknown_formats import UnknownFormat, is_later, require_known

_MAGIC = bytes.fromhex("57fb808b247547db")
_OTHER_MAGICS = tuple(
    bytes.fromhex(magic) for magic in ("f7cff485b741e288", "6495bf6396224282", "b8138f7aeb18344f", "7378f1c5d0896792")
)
"""RocksDB's tables: by blocks, plain (two versions) and cuckoo."""

_FOOTER_BYTES, _TRAILER_BYTES, _LENGTH_BYTES = 48, 5, 10
_SNAPPY = 1


class TableClaims(NamedTuple):
    """The most bytes that one block takes, plain, after its checksum held.

    `sound`: the checksums of the index, and of what would take more, hold; LevelDB's strict mode reads nothing else.
    """

    block: int
    sound: bool


def claims_of(read: Read, size: int, most: int) -> TableClaims:
    """Return what a table of `size` bytes claims of its blocks; of those that claim `most` at the most a few bytes are
    read.

    Raises
    ------
    SstFlaw : a block would not be in the file, or the index is not laid out as LevelDB does it
    OverBudget : the index is larger than any
    UnknownFormat : it is a table of RocksDB, or a block is compressed by what is not known
    """
    footer = read(size - _FOOTER_BYTES, _FOOTER_BYTES) if size >= _FOOTER_BYTES else b""
    if footer[-8:] in _OTHER_MAGICS:
        raise UnknownFormat("it ends as a table of RocksDB")
    if footer[-8:] != _MAGIC:
        return TableClaims(0, True)  # LevelDB says so, and reads nothing of it
    _, end = decode_handle(footer, 0, 0)
    index = _inside(decode_handle(footer, end, 0)[0], size)
    if index.size > budgets().block:
        raise over(f"its index of {index.size} bytes", budgets().block)
    body = read(index.at, index.size + _TRAILER_BYTES)
    sound = _holds(body)
    _require_known_compression(body)
    plain = body[: index.size]
    try:
        if body[index.size] == _SNAPPY:
            plain = decompress_block(plain, _SNAPPY, 0, budgets().block)
        largest = len(plain)
        for handle in _handles(plain, index.at):
            claim = _plain_bytes(read, _inside(handle, size))
            if claim > most and not _holds(read(handle.at, handle.size + _TRAILER_BYTES)):
                sound = False
            else:
                largest = max(largest, claim)
    except UnknownFormat:
        raise
    except (SstFlaw, ValueError):
        if sound:
            raise
        return TableClaims(0, sound)  # of chance: the strict mode reads nothing of such a table
    return TableClaims(largest, sound)


def _holds(block: bytes) -> bool:
    """Return whether the checksum of a block, given with what is behind it, is right."""
    (stored,) = struct.unpack_from("<I", block, len(block) - 4)
    return bool(masked_crc32c(block[:-4]) == stored)


def _require_known_compression(block: bytes) -> None:
    """Raise `UnknownFormat` where a block, given with what is behind it, is compressed by what is not known."""
    plain, kind, stored = block[:-_TRAILER_BYTES], block[-_TRAILER_BYTES], block[-4:]
    if is_later(kind, _SNAPPY, lambda one: _holds(plain + bytes([one]) + stored)):
        require_known("LevelDB: compression of a block", kind, _SNAPPY)


def _plain_bytes(read: Read, handle: Handle) -> int:
    """Return how many bytes a block becomes, by its length and, where Snappy made it small, by what that says."""
    compression = read(handle.at + handle.size, 1)
    if compression > bytes([_SNAPPY]):
        _require_known_compression(read(handle.at, handle.size + _TRAILER_BYTES))
    if compression != bytes([_SNAPPY]):
        return handle.size
    head = read(handle.at, min(handle.size, _LENGTH_BYTES))
    try:
        return max(handle.size, decode_varint(head, 0, handle.at)[0])
    except SstFlaw:
        return handle.size  # no length: LevelDB takes nothing for it


def _handles(block: bytes, at: int) -> list[Handle]:
    """Return the handles of an index block; every place at which reading may begin is that of an entry."""
    if len(block) < 4:
        raise SstFlaw(at, "its index has no entries")
    (count,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (count + 1)
    if end < 0:
        raise SstFlaw(at, f"its index of {len(block)} bytes names {count} entries to begin at")
    begins = set(struct.unpack_from(f"<{count}I", block, end))
    found: list[Handle] = []
    i = 0
    while i < end:
        begins.discard(i)
        _, i = decode_varint(block, i, at)
        rest, i = decode_varint(block, i, at)
        length, i = decode_varint(block, i, at)
        i += rest + length
        if i > end:
            raise SstFlaw(at, "an entry of its index is longer than the index")
        found.append(decode_handle(block[i - length : i], 0, at)[0])
    if begins - {end}:
        raise SstFlaw(at, "its index begins to be read in the middle of an entry")
    return found


def _inside(handle: Handle, size: int) -> Handle:
    """Return a handle of a block in the file; raise for any other."""
    if handle.end > size:
        raise SstFlaw(handle.at, f"a block of {handle.size} bytes at byte {handle.at} is not in its {size} bytes")
    return handle
