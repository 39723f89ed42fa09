"""Checksums and compression of RocksDB's blocks, by the numbers that its tables have for them.

A block's checksum is of its bytes and the byte that says how it is compressed, which `CHECKSUMS` take as the last.
Compressed blocks begin with their plain length as a varint, as Snappy's own do; before table version 2 others have
none, or another, and are not decompressed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import xxhash

from cklog.budgets import over
from cklog.parsers.codecs.decompression import decompress
from cklog.parsers.codecs.varints import unsigned_varint

_MASK = (1 << 32) - 1
_CRC_DELTA = 0xA282EAD8
_LAST_BYTE_PRIME = 0x6B9083D9
_SNAPPY, _ZLIB, _BZIP2, _LZ4, _LZ4HC, _ZSTD = 1, 2, 3, 4, 5, 7
_PLAIN_LENGTH_FROM = 2
_CODECS = {_SNAPPY: "snappy", _ZLIB: "deflate", _BZIP2: "bz2", _LZ4: "lz4_raw", _LZ4HC: "lz4_raw", _ZSTD: "zstd"}
_NAMES = {6: "XPRESS"}
NEWEST_COMPRESSION = _ZSTD


def masked_crc32c(data: bytes) -> int:
    """Return CRC-32C as RocksDB stores it: turned and moved, so that a sum of sums is none by chance.

    >>> f"{masked_crc32c(b'foo'):08x}"
    'febe8a61'
    """
    import crc32c  # slow to import, and most tables have checksums of another type

    crc = int(crc32c.crc32c(data))
    return ((crc >> 15 | crc << 17) + _CRC_DELTA) & _MASK


def _xxh3(data: bytes) -> int:
    return xxhash.xxh3_64_intdigest(memoryview(data)[:-1]) & _MASK ^ data[-1] * _LAST_BYTE_PRIME & _MASK


CHECKSUMS: Mapping[int, Callable[[bytes], int]] = {
    0: lambda data: 0,
    1: masked_crc32c,
    2: xxhash.xxh32_intdigest,
    3: lambda data: xxhash.xxh64_intdigest(data) & _MASK,
    4: _xxh3,
}
"""By the type in a table's footer."""


def decompress_block(block: bytes, compression: int, version: int, limit: int) -> bytes:
    """Return the plain bytes of a block, `limit` at the most, in a table of some version.

    Raises
    ------
    ValueError : the compression is not known, or the bytes are not of it
    OverBudget : there would be more
    """
    if compression == 0:
        return block
    length, start = _plain_length(block, compression, version)
    if length > limit:
        raise over(f"what a block of {len(block)} bytes becomes, {length} bytes,", limit)
    codec = _CODECS.get(compression)
    if codec is None:
        raise ValueError(f"compression {_NAMES.get(compression, compression)}")
    return decompress(codec, block[start:], length)


def _plain_length(block: bytes, compression: int, version: int) -> tuple[int, int]:
    """Return how long a compressed block is when it is plain, and where its packed bytes begin."""
    if compression != _SNAPPY and version < _PLAIN_LENGTH_FROM:
        raise ValueError(f"a block of table version {version}")
    length, end = unsigned_varint(block, 0, 64)
    return length, 0 if compression == _SNAPPY else end
