"""Mutations of compressed frames: gzip members, Zstandard frames, and Kafka's batches with a right checksum again."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Mapping

import crc32c

from tests.builders.native import zstd
from tests.fuzz.mutations.change import Change, Mutation, some_file
from tests.fuzz.mutations.fields import packed, unpacked
from tests.fuzz.tree import Tree

_ENDINGS = (".gz", ".zst")
_BOMB = 24 << 20
"""Bytes of nothing that a few thousand bytes unpack to: more than any reader needs to hold at once."""
_HEADER = 61
"""Bytes of a batch before its records."""


def inside(tree: Tree, dice: random.Random) -> Change | None:
    """A byte inside a compressed stream, behind its header: what is inflated before the checksum fails is no record."""
    found = some_file(tree, dice, _ENDINGS)
    if found is None or len(found[1]) < 40:
        return None
    name, data = found[0], bytearray(found[1])
    at = dice.randrange(12, len(data) - 8)
    length = dice.choice((1, 1, 4, 16, 200))
    data[at : at + length] = bytes(length) if dice.random() < 0.5 else dice.randbytes(length)
    tree.put(name, bytes(data[: len(found[1])]))
    return Change((name,), f"{name}: {length} bytes at {at} of the stream")


def trailer(tree: Tree, dice: random.Random) -> Change | None:
    """What ends a gzip member: checksum and size."""
    found = some_file(tree, dice, (".gz",))
    if found is None or len(found[1]) < 20:
        return None
    name, data = found[0], bytearray(found[1])
    data[-dice.randrange(1, 9)] ^= 1 << dice.randrange(8)
    tree.put(name, bytes(data))
    return Change((name,), f"{name}: trailer")


def members(tree: Tree, dice: random.Random) -> Change | None:
    """A stream again behind itself, an empty one, garbage, or one that unpacks to far too much."""
    found = some_file(tree, dice, _ENDINGS)
    if found is None:
        return None
    name, data = found
    how = dice.choice(("again", "empty", "garbage", "bomb", "bomb in a line"))
    more = {
        "again": data,
        "empty": packed(name, b""),
        "garbage": dice.randbytes(50),
        "bomb": _bomb(name, b"\n"),
        "bomb in a line": _bomb(name, b" "),
    }[how]
    tree.put(name, data + more)
    return Change((name,), f"{name}: behind it {how}")


_bombs: dict[tuple[bool, bytes], bytes] = {}


def _bomb(name: str, fill: bytes) -> bytes:
    key = (name.endswith(".gz"), fill)
    if key not in _bombs:
        _bombs[key] = gzip.compress(fill * _BOMB, mtime=0) if key[0] else zstd(fill * _BOMB)
    return _bombs[key]


def repacked(tree: Tree, dice: random.Random) -> Change | None:
    """A byte of the content, with every checksum of the compression right again."""
    found = some_file(tree, dice, _ENDINGS)
    plain = unpacked(*found) if found else None
    if not found or not plain:
        return None
    data = bytearray(plain)
    at = dice.randrange(len(data))
    data[at] ^= 1 << dice.randrange(8)
    tree.put(found[0], packed(found[0], bytes(data)))
    return Change((found[0],), f"{found[0]}: byte {at} of the content")


def batches(data: bytes) -> list[tuple[int, int]]:
    """The whole batches of a segment of Kafka's: (first byte, byte behind)."""
    found, at = [], 0
    while at + 17 <= len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        if not at + 17 < end <= len(data):
            break
        found.append((at, end))
        at = end
    return found


def signed(data: bytearray, first: int, end: int) -> None:
    """Give a batch the checksum that its bytes have."""
    if data[first + 16] == 2 and end - first > 21:
        struct.pack_into(">I", data, first + 17, crc32c.crc32c(bytes(data[first + 21 : end])))
    else:
        struct.pack_into(">I", data, first + 12, zlib.crc32(data[first + 16 : end]))


def batch(tree: Tree, dice: random.Random) -> Change | None:
    """A byte of a batch behind its checksum, which is made right again: a hostile writer's, no accident."""
    found = some_file(tree, dice, (".log",))
    places = batches(found[1]) if found else []
    if not found or not places:
        return None
    name, data = found[0], bytearray(found[1])
    first, end = dice.choice(places)
    start = first + (21 if dice.random() < 0.4 else _HEADER)
    if start >= end:
        return None
    at = dice.randrange(start, end)
    how = dice.choice(("flip", "zeros", "number"))
    if how == "flip":
        data[at] ^= 1 << dice.randrange(8)
    elif how == "zeros":
        data[at:end] = bytes(end - at)
    else:
        width = min(4, end - at)
        data[at : at + width] = dice.choice((b"\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x80\0\0\0"))[:width]
    signed(data, first, end)
    tree.put(name, bytes(data))
    lifted = frozenset({"newer", "later", "shorter", "silent", "deletable"})
    return Change((name,), f"{name}: {how} at byte {at}, the batch signed again", free=lifted)


MUTATIONS: Mapping[str, tuple[Mutation, int]] = {
    "frame.inside": (inside, 8),
    "frame.trailer": (trailer, 3),
    "frame.members": (members, 2),
    "frame.repacked": (repacked, 4),
    "frame.batch": (batch, 6),
}
