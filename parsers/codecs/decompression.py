"""Compressed blocks of a known size: every block is decompressed here, to exactly the size that its format states.

A decompressor that fills less than it was asked for leaves the rest of its output as the memory was: the answer would
be made of it. `pyarrow.Codec.decompress` returns a buffer of the size that was asked for and does not say how much of
it was filled. So the produced length is checked for each codec by what knows it:

    snappy    the block's own length, which Snappy checks what it produces against
    zstd      Arrow compares what Zstandard produced with the size
    lz4_raw   a frame around the block states the size, which LZ4 compares with what it produced; of blocks that no
              frame can have, a walk over their sequences adds up what they produce
    gzip, deflate, bz2   Python's decompressors say where a stream ends and what follows it

Bytes that follow the block's end are an error, too. Streams whose size nothing states are in
`cklog.parsers.codecs.streams`.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.loops import Loop
from cklog.arrays.types import Bytes
from cklog.errors import first_line
from cklog.parsers.codecs.varints import BadVarint, unsigned_varint

_RAW_WINDOW, _GZIP_OR_ZLIB_WINDOW = -15, 47
"""What zlib is told of a stream: no header at all, or the header of gzip or of zlib, which it finds by itself."""

_SNAPPY_LENGTH_BITS = 32
_LZ4_MAGIC, _SIZED_FRAME = b"\x04\x22\x4d\x18", 0x68
"""A frame's first bytes, and its flags: version 1, blocks that do not need each other, the size is stated."""

_LARGEST_IN_FRAME = 4 << 20
_SMALLEST_SEQUENCE = 3
"""Bytes of a sequence of LZ4: its token and a distance."""


class DecompressionError(ValueError):
    """Bytes that are not what a codec makes of a block of the stated size."""


class ExcessOutput(DecompressionError):
    """A block that holds more than it may."""


class Inflated(NamedTuple):
    """What one deflated stream holds, and the bytes that follow the stream."""

    plain: bytes
    rest: bytes


def decompress(codec: str, packed: Any, size: int) -> bytes:
    """Decompress a block that holds exactly `size` bytes.

    Codecs: snappy, zstd, lz4_raw, gzip, deflate, bz2.

    >>> decompress("deflate", zlib.compress(b"orders", wbits=-15), 6)
    b'orders'
    >>> decompress("gzip", zlib.compress(b"orders", wbits=31), 7)
    Traceback (most recent call last):
    cklog.parsers.codecs.decompression.DecompressionError: gzip: the block holds 6 bytes, not 7

    Raises
    ------
    DecompressionError : the block is damaged, holds more or less, or other bytes follow its end
    """
    found: bytes = _decompressed(codec, packed, size, True)
    return found


def decompress_to_array(codec: str, packed: Any, size: int) -> Bytes:
    """Decompress the same into memory that Arrow keeps for the next block; errors as `decompress` has them."""
    return np.frombuffer(_decompressed(codec, packed, size, False), np.uint8)


def _decompressed(codec: str, packed: Any, size: int, as_bytes: bool) -> Any:
    if size < 0:
        raise DecompressionError(f"{codec}: a size of {size} bytes")
    if codec in _INFLATED:
        return _inflate_exactly(codec, packed, size)
    try:
        if codec == "lz4_raw" and size and max(size, len(packed)) <= _LARGEST_IN_FRAME:
            pa.Codec("lz4").decompress(_lz4_frame(packed, size), size)
        elif codec in _PRODUCED and (produced := _PRODUCED[codec](packed)) != size:
            raise DecompressionError(f"{codec}: the block holds {produced} bytes, not {size}")
        return pa.Codec(codec).decompress(packed, size, asbytes=as_bytes)
    except (OSError, pa.ArrowInvalid) as error:
        raise DecompressionError(f"{codec}: {first_line(error)}") from None


def inflate(packed: Any, most: int, window: int = _RAW_WINDOW) -> Inflated:
    """Decompress one deflated stream that states no size; return its bytes and what follows the stream.

    >>> inflate(zlib.compress(b"orders", wbits=-15) + b"more", 100)
    Inflated(plain=b'orders', rest=b'more')

    Raises
    ------
    ExcessOutput : it holds more than `most` bytes
    DecompressionError : it is damaged or incomplete
    """
    stream = zlib.decompressobj(wbits=window)
    try:
        plain = stream.decompress(packed, most + 1)
    except zlib.error as error:
        raise DecompressionError(why_zlib_refuses(error)) from None
    return _ended(stream, plain, most)


def why_zlib_refuses(error: zlib.error) -> str:
    """Return what zlib says against a stream; raise MemoryError where that is no fault of the stream.

    >>> why_zlib_refuses(zlib.error("Error -3 while decompressing data: incorrect header check"))
    'Error -3 while decompressing data: incorrect header check'
    """
    if str(error).startswith("Error -4 "):  # Z_MEM_ERROR
        raise MemoryError(str(error)) from error
    return str(error)


def _ended(stream: Any, plain: bytes, most: int) -> Inflated:
    """Return what a decompressor made of one stream; raise where the stream does not end within `most` bytes."""
    if len(plain) > most:
        raise ExcessOutput(f"the block holds more than {most} bytes")
    if not stream.eof:
        raise DecompressionError("the compressed stream is incomplete")
    return Inflated(plain, stream.unused_data)


def _unpack_bz2(packed: Any, most: int) -> Inflated:
    """Decompress one stream of bzip2, as `inflate` does one of zlib."""
    import bz2  # rarely used: only tables of RocksDB may have it

    stream = bz2.BZ2Decompressor()
    try:
        plain = stream.decompress(packed, most + 1)
    except (OSError, ValueError) as error:
        raise DecompressionError(str(error)) from None
    return _ended(stream, plain, most)


def _inflate_exactly(codec: str, packed: Any, size: int) -> bytes:
    try:
        found = _INFLATED[codec](packed, size)
    except DecompressionError as error:
        raise type(error)(f"{codec}: {error}") from None
    if len(found.plain) != size:
        raise DecompressionError(f"{codec}: the block holds {len(found.plain)} bytes, not {size}")
    if found.rest:
        raise DecompressionError(f"{codec}: {len(found.rest)} bytes follow the end of the block")
    return found.plain


def _inflate_with_header(packed: Any, most: int) -> Inflated:
    return inflate(packed, most, _GZIP_OR_ZLIB_WINDOW)


_INFLATED = {"gzip": _inflate_with_header, "deflate": inflate, "bz2": _unpack_bz2}
"""Codecs whose decompressors say how much they produced."""


def snappy_size(packed: Any) -> int:
    """Return how many bytes a Snappy block holds by its own first bytes, a number of at most 32 bits.

    >>> snappy_size(bytes([0x80, 0x01, 0xFF]))
    128

    Raises
    ------
    DecompressionError : there is no such number
    """
    try:
        return unsigned_varint(memoryview(packed), 0, _SNAPPY_LENGTH_BITS)[0]
    except BadVarint:
        raise DecompressionError("snappy: the block does not begin with its length") from None


def _lz4_frame(packed: Any, size: int) -> bytes:
    """Put a frame around a raw LZ4 block, which states that the block holds so many bytes.

    frame = 0x184D2204:u32  flags:u8  largest block:u8  size:u64  checksum:u8  length:u32  block  0:u32
    """
    import xxhash  # most inputs have no LZ4

    largest = next(code for code in range(4, 8) if max(size, len(packed)) <= 1 << (8 + 2 * code))
    about = struct.pack("<BBQ", _SIZED_FRAME, largest << 4, size)
    checksum = xxhash.xxh32_intdigest(about) >> 8 & 0xFF
    return b"".join(
        (_LZ4_MAGIC, about, struct.pack("<BI", checksum, len(packed)), packed, bytes(4)),
    )


def lz4_size(packed: Any) -> int:
    """Return how many bytes the sequences of a raw LZ4 block produce.

    >>> lz4_size(bytes([0x10]) + b"a" + bytes([1, 0, 0x20]) + b"bc")
    7

    Raises
    ------
    DecompressionError : a sequence is incomplete, or the last one does not end the block
    """
    block = np.frombuffer(packed, np.uint8)
    size: int = _WALK_LZ4(len(block) // _SMALLEST_SEQUENCE, block)
    if size < 0:
        raise DecompressionError("lz4_raw: the block is incomplete")
    return size


def _walk_lz4(block: Bytes) -> int:
    """Add up what the sequences of an LZ4 block produce; -1 where the block does not end with the last one.

        sequence = token:u8 [length] literals [distance:u16 [length]]     the last one ends after its literals

    The token has two lengths of four bits: of the literals, and of the match less 4. Of 15, bytes follow that are added
    to it, the last of which is less than 255.
    """
    size = len(block)
    produced: int = 0
    at = 0
    while at < size:
        token = block[at] & 255  # said for the compiler: a signed number, whose shifts are signed
        at += 1
        count: int = token >> 4
        if count == 15:
            more = 255
            while more == 255:
                if at >= size:
                    return -1
                more = block[at] & 255
                count += more
                at += 1
        at += count
        produced += count
        if at == size:
            return produced
        at += 2
        count = (token & 15) + 4
        if count == 19:
            more = 255
            while more == 255:
                if at >= size:
                    return -1
                more = block[at] & 255
                count += more
                at += 1
        produced += count
    return -1


_WALK_LZ4 = Loop(_walk_lz4)

_PRODUCED = {"snappy": snappy_size, "lz4_raw": lz4_size}
"""What a block produces, of codecs of which Arrow does not compare that with the size. Of Zstandard it does."""
