"""The id that Flink gives an operator with a uid: MurmurHash3 (x64, 128 bits, seed 0) of the uid in UTF-8.

Without a uid the id depends on the whole job graph and cannot be computed from a name.
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def operator_id(uid: str) -> str:
    """Return the id, as Flink prints it, of the operator with this uid.

    >>> operator_id("kafka-src")
    '2cfff4cfdc12cf3ce3a313acc56edab3'
    """
    data = uid.encode("utf-8")
    first = second = 0
    whole = len(data) & ~15
    for low, high in struct.iter_unpack("<QQ", data[:whole]):
        first = (_rotate_left(first ^ _mix_low(low), 27) + second) * 5 + 0x52DCE729 & _MASK
        second = (_rotate_left(second ^ _mix_high(high), 31) + first) * 5 + 0x38495AB5 & _MASK
    low, high = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    first ^= _mix_low(low) ^ len(data)
    second ^= _mix_high(high) ^ len(data)
    first = first + second & _MASK
    second = second + first & _MASK
    first, second = _finish_word(first), _finish_word(second)
    first = first + second & _MASK
    second = second + first & _MASK
    return struct.pack("<QQ", first, second).hex()


def _mix_low(word: int) -> int:
    return _rotate_left(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_high(word: int) -> int:
    return _rotate_left(word * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate_left(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def _finish_word(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
