"""Streams of blocks by their descriptions: lz4-java's, RocksDB's log, Hadoop's sums; each read as a whole, at once."""

from __future__ import annotations

import functools
import zlib

import lz4.block
import xxhash


class Broken(Exception):
    """Raised where bytes are not laid out as the description has it."""


def lz4_stream(data: bytes) -> bytes:
    """Return what a stream of `LZ4BlockOutputStream` holds: blocks of a magic, a token, two lengths and a checksum.

    `LZ4BlockInputStream`: the level is in the token's lower half, the method in its upper; a block of no bytes ends it.
    """
    out: list[bytes] = []
    at = 0
    while True:
        front = data[at : at + 21]
        if len(front) < 21 or front[:8] != b"LZ4Block":
            raise Broken("no block")
        token = front[8]
        size, plain_size, stored = (int.from_bytes(front[i : i + 4], "little", signed=i < 17) for i in (9, 13, 17))
        method, longest = token & 0xF0, 1 << 10 + (token & 0x0F)
        if method not in (0x10, 0x20) or not 0 <= plain_size <= longest or size < 0:
            raise Broken("a header that cannot be")
        if (size == 0) != (plain_size == 0) or (method == 0x10 and size != plain_size):
            raise Broken("lengths that do not fit")
        at += 21
        if plain_size == 0:
            if stored:
                raise Broken("an end with a checksum")
            if at != len(data):
                raise Broken("bytes behind the end")
            return b"".join(out)
        packed = data[at : at + size]
        if len(packed) < size:
            raise Broken("a block that is cut short")
        at += size
        plain = packed if method == 0x10 else lz4.block.decompress(packed, uncompressed_size=plain_size)
        if len(plain) != plain_size or xxhash.xxh32(plain, seed=0x9747B28C).intdigest() & 0xFFFFFFF != stored:
            raise Broken("another length or checksum")
        out.append(plain)


@functools.cache
def _table() -> list[int]:
    """Return the remainders of CRC-32C, byte by byte, from its polynomial."""
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        found.append(byte)
    return found


def masked_crc(data: bytes) -> int:
    """Return CRC-32C, rotated by 15 bits and moved by a constant, as LevelDB and RocksDB store it."""
    crc, table = 0xFFFFFFFF, _table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def log_records(data: bytes) -> list[bytes]:
    """Return the records of a log that RocksDB, or LevelDB, has written; nothing may be missing at its end."""
    records: list[bytes] = []
    parts: list[bytes] | None = None
    at = 0
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            if any(data[at : at + left]):
                raise Broken("a trailer that is not zeros")
            at += left
            continue
        if len(data) - at < 7:
            if any(data[at:]):
                raise Broken("a head that is cut short")
            break
        stored, length, kind = (
            int.from_bytes(data[a:b], "little") for a, b in ((at, at + 4), (at + 4, at + 6), (at + 6, at + 7))
        )
        head = 11 if kind in (5, 6, 7, 8, 11, 131) else 7
        room = min(left, len(data) - at)
        if kind == 0 and room < 11 and not any(data[at : at + room]):
            at += room
            continue
        if head + length > room:
            raise Broken("a record beyond its block")
        if masked_crc(data[at + 6 : at + head + length]) != stored:
            raise Broken("a checksum")
        body = data[at + head : at + head + length]
        at += head + length
        step = {1: "full", 5: "full", 2: "first", 6: "first", 3: "middle", 7: "middle", 4: "last", 8: "last"}.get(kind)
        if step is None and kind not in (9, 10, 11) and kind < 128:
            raise Broken("a record of an unknown type")
        if step in ("full", "first"):
            if parts is not None:
                raise Broken("a record in another")
            parts = [body]
        elif step in ("middle", "last"):
            if parts is None:
                raise Broken("a record that never began")
            parts.append(body)
        if step in ("full", "last") and parts is not None:
            records.append(b"".join(parts))
            parts = None
    if parts is not None or not records:
        raise Broken("a record that does not end" if parts is not None else "no record")
    return records


def hadoop_sums_hold(data: bytes, side: bytes) -> bool:
    """Return whether a side file of Hadoop's, whose header can be read, has the sum of each chunk and no others."""
    chunk = int.from_bytes(side[4:8], "big", signed=True)
    if chunk <= 0:
        return False
    chunks = [data[i : i + chunk] for i in range(0, len(data), chunk)]
    return side[8:] == b"".join(zlib.crc32(one).to_bytes(4, "big") for one in chunks)
