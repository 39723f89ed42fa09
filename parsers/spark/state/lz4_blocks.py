"""LZ4Block streams, in which Spark writes deltas, snapshots and changelogs (`LZ4BlockOutputStream` of lz4-java).

    stream = block* end
    block  = "LZ4Block"  token:u8  compressed:i32  plain:i32  checksum:u32  payload       little-endian
    end    = a block whose lengths and checksum are 0
    token  = method (0x10 stored, 0x20 LZ4) + level; no block is longer than 2**(10 + level) bytes

The checksum is XXH32 of the plain bytes, of which the writer keeps 28 bits. A stream that was cut short has no end
block, or ends in the middle of one; a flipped bit fails the checksum. No checksum covers the method.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.decompression import DecompressionError, decompress
from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.spark.metadata_log import Damaged

MAGIC = b"LZ4Block"
HEADER = struct.Struct(
    "<8s"  # magic
    "B"  # token
    "i"  # bytes of the payload
    "i"  # bytes of it when decompressed
    "I"  # checksum
)
SEED = 0x9747B28C
KEPT_BITS = 0x0FFFFFFF
_STORED, _LZ4 = 0x10, 0x20
_TOGETHER_BYTES = 8 << 20  # plain bytes whose checksums are proved at once


class _PlainBlock(NamedTuple):
    """A decompressed block: the offset of the compressed one, its stored checksum, and its plain bytes."""

    at: int
    checksum: int
    plain: bytes


def decoded(chunks: Iterable[bytes], prove: bool = True) -> Iterator[bytes]:
    """Decompress a stream that comes in any pieces, block by block; `prove` the checksums.

    Raises
    ------
    Damaged : the stream is cut short, a length or a checksum is wrong, or something follows its end
    """
    stream = ByteStream(chunks)
    waiting: list[_PlainBlock] = []
    size = 0
    for block in _read_blocks(stream):
        waiting.append(block)
        size += len(block.plain)
        if size >= _TOGETHER_BYTES:
            yield from _prove_blocks(waiting, prove)
            waiting, size = [], 0
    yield from _prove_blocks(waiting, prove)
    if stream.take(1):
        raise Damaged("corrupt-file", stream.at - 1, "bytes follow the end of its stream")


def _read_blocks(stream: ByteStream) -> Iterator[_PlainBlock]:
    """Read and decompress the blocks of a stream, up to the end block."""
    while True:
        at = stream.at
        head = stream.take(HEADER.size)
        if len(head) < HEADER.size:
            raise Damaged("corrupt-file", at, f"a block needs {HEADER.size} bytes of header, {len(head)} are left")
        magic, token, size, plain, checksum = HEADER.unpack(head)
        if magic == MAGIC and token & 0xF0 > _LZ4:
            raise Damaged("unknown-version", at, f"a block is compressed by method {token >> 4}; 1 and 2 are known")
        if magic != MAGIC or not _is_possible(token, size, plain):
            raise Damaged("corrupt-file", at, "no block of an LZ4 stream begins here")
        if plain == 0:
            if checksum:
                raise Damaged("corrupt-file", at, f"the end of its stream has a checksum, {checksum:08x}")
            return
        payload = stream.take(size)
        if len(payload) < size:
            raise Damaged("corrupt-file", at, f"a block needs {size} bytes, {len(payload)} are left")
        yield _PlainBlock(at, checksum, _decompress_block(token & 0xF0, payload, plain, at))


def _is_possible(token: int, size: int, plain: int) -> bool:
    """Return whether the lengths go together; LZ4 makes no block longer by more than a byte in 255 and 16."""
    method, longest = token & 0xF0, 1 << (10 + (token & 0x0F))
    if method not in (_STORED, _LZ4) or not 0 <= plain <= longest or (plain == 0) != (size == 0):
        return False
    return size == plain if method == _STORED else 0 <= size <= plain + plain // 255 + 16


def _decompress_block(method: int, payload: bytes, size: int, at: int) -> bytes:
    """Decompress the payload of the block at byte `at` into `size` bytes."""
    if method == _STORED:
        return payload
    try:
        return decompress("lz4_raw", payload, size)
    except DecompressionError as error:
        raise Damaged("corrupt-file", at, f"a block cannot be decompressed ({error})") from None


def _prove_blocks(blocks: list[_PlainBlock], prove: bool) -> Iterator[bytes]:
    """Yield the plain bytes of blocks, whose checksums are proved first, all at once."""
    for block, whole_sum in zip(blocks, xxh32([block.plain for block in blocks], SEED) if prove else (), strict=False):
        computed = whole_sum & KEPT_BITS
        if computed != block.checksum:
            message = f"XXH32 of a block is {computed:07x}, not {block.checksum:07x}"
            raise Damaged("corrupt-file", block.at, message)
    yield from (block.plain for block in blocks)
