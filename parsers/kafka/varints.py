"""The numbers of Kafka's records: varints, one at a time or at many places of some bytes at once.

varint = byte*      7 bits of the number in each, the lowest first; bit 7 says that another byte follows
zig-zag             0, -1, 1, -2 are 0, 1, 2, 3
"""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Bytes, Ints, Mask
from cklog.parsers.codecs.varints import unsigned_varint

_ONE_BYTE = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(256)], np.int64)
"""The number that a zig-zag varint of one byte is."""


def varint(data: bytes, at: int, bits: int = 32) -> tuple[int, int]:
    """Decode the zig-zag varint of at most `bits` at byte `at`; return the number, and where it ends.

    >>> varint(bytes([0x01]), 0), varint(bytes([0xac, 0x02]), 0)
    ((-1, 1), (150, 2))

    Raises
    ------
    BadVarint : as `unsigned_varint`
    """
    raw, at = unsigned_varint(data, at, bits)
    return (raw >> 1) ^ -(raw & 1), at


def varints(data: Bytes, at: Ints, bits: int) -> tuple[Ints, Ints, Mask]:
    """Decode the zig-zag varints of at most `bits` at many places, as `varint` does one; shapes (n,).

    Returns the numbers, where each ends, and which are longer than `bits`. `data` goes on for 10 bytes behind every
    place.

    >>> data = np.frombuffer(bytes([0x01, 0xAC, 0x02, *bytes(10)]), np.uint8)
    >>> [found.tolist() for found in varints(data, np.array([0, 1]), 32)]
    [[-1, 150], [1, 3], [False, False]]
    """
    byte = data[at]
    longer = np.flatnonzero(byte >= 0x80)
    if len(longer) and len(longer) == len(at):
        return _long_varints(data, at, bits)
    found, after = _ONE_BYTE[byte], at + 1
    bad = np.zeros(len(at), np.bool_)
    if len(longer):
        found[longer], after[longer], bad[longer] = _long_varints(data, at[longer], bits)
    return found, after, bad


def _long_varints(data: Bytes, at: Ints, bits: int) -> tuple[Ints, Ints, Mask]:
    """Decode, as `varints` does, those of more than one byte: nearly all of them have two."""
    second = data[at + 1]
    raw = (data[at] & 0x7F) | (second & 0x7F).astype(np.int64) << 7
    found, after, bad = (raw >> 1) ^ -(raw & 1), at + 2, np.zeros(len(at), np.bool_)
    more = np.flatnonzero(second >= 0x80)
    if len(more):
        found[more], after[more], bad[more] = _longest_varints(data, at[more], bits)
    return found, after, bad


def _longest_varints(data: Bytes, at: Ints, bits: int) -> tuple[Ints, Ints, Mask]:
    """Decode, as `varints` does, those of more than two bytes, byte by byte."""
    raw, end = (data[at] & 0x7F).astype(np.uint64), at + 1
    bad, more = np.zeros(len(at), np.bool_), np.arange(len(at))  # `more`: those that another byte follows
    for shift in range(7, bits, 7):
        byte = data[end[more]]
        bad[more] |= (byte & 0x7F) >> min(bits - shift, 7) != 0  # bits of the byte that the number has no room for
        raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        end[more] += 1
        more = more[byte >= 0x80]
        if not len(more):
            break
    bad[more] = True
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), end, bad
