"""Snappy streams as snappy-java frames them (`SnappyOutputStream`): Kafka's Java client and Spark write them.

    stream = "\\x82SNAPPY\\0" version:i32 compatible:i32 (size:i32 block)*      big-endian
    block  = the number of its plain bytes as a varint, elements

Nothing in a stream proves its bytes: a cut inside a block shows, one between blocks and most flipped bits do not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cklog.errors import Picklable
from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.decompression import DecompressionError, decompress, snappy_size
from cklog.unknown_formats import require_known

MAGIC = b"\x82SNAPPY\0"
_HEADER, _NEWEST = struct.Struct(">8sii"), 1
_MOST_PER_BYTE = 22
"""A snappy element of 3 bytes makes 64 at the most: a block that claims to hold more is a lie."""


class BadSnappy(Picklable, Exception):
    """Why bytes are no snappy stream; `at` is the offset of the block where it shows."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.at = at


class SnappyOverLimit(Exception):
    """A block holds more than was asked for; nothing may be wrong with it."""


def unframed(stream: ByteStream, limit: int) -> Iterator[bytes]:
    """Decompress a framed stream block by block, each of `limit` plain bytes at the most.

    Raises
    ------
    BadSnappy : the stream is cut short, or no such stream
    SnappyOverLimit : a block holds more
    UnknownFormat : it is of a later version
    """
    _, version, compatible = _HEADER.unpack(stream.take(_HEADER.size).ljust(_HEADER.size, b"\0"))
    require_known("snappy: version of the stream", max(version, compatible), _NEWEST)
    while head := stream.take(4):
        at, size = stream.at - len(head), int.from_bytes(head, "big")
        taken = min(size, _packed_bytes(limit))
        block = stream.take(taken)
        if len(block) < taken or len(head) < 4:
            raise BadSnappy(f"a snappy block of {size} bytes where {len(block)} are left", at)
        if taken < size:
            raise SnappyOverLimit
        try:
            yield decompress_block(block, limit)
        except BadSnappy as bad:
            raise BadSnappy(str(bad), at) from None


def _packed_bytes(plain: int) -> int:
    """Return how long a block of some plain bytes is at most: the bound that every writer allocates."""
    return 32 + plain + plain // 6


def decompress_block(block: bytes, limit: int) -> bytes:
    """Decompress one block, which begins with the number of its plain bytes: a varint of at most 5 bytes."""
    try:
        size = snappy_size(block)
        if size > _MOST_PER_BYTE * len(block):
            raise BadSnappy(f"a snappy block of {len(block)} bytes that claims to hold {size}")
        if size > limit:
            raise SnappyOverLimit
        return decompress("snappy", block, size)
    except DecompressionError as error:
        raise BadSnappy(str(error)) from None
