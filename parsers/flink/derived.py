"""What Flink computes and writes down beside what it was computed from: where the two disagree, bytes are damaged.

operator id     MurmurHash3 (x64, 128 bits, seed 0) of the operator's uid in UTF-8, where it has one; without a uid
                it depends on the whole job graph and cannot be computed from a name
key groups      of subtask i of p, with m groups in all: from ceil(i * m / p) up to ceil((i + 1) * m / p), exclusive
class names     Java identifiers with dots between them
"""

from __future__ import annotations

import re
import struct

MOST_KEY_GROUPS = 1 << 15
"""The highest parallelism that Flink takes: so many key groups are the most that there can be."""


def key_groups(subtask: int, parallelism: int, most: int) -> tuple[int, int]:
    """Return the first key group of a subtask and how many it has, `most` being the operator's highest parallelism.

    >>> [key_groups(subtask, 3, 128) for subtask in range(3)]
    [(0, 43), (43, 43), (86, 42)]
    """
    first = -(-subtask * most // parallelism)
    return first, -(-(subtask + 1) * most // parallelism) - first


_DESCRIBED = re.compile(r"\[*(?:[BCDFIJSZ]|L([^;]+);)")


def is_class_name(name: str) -> bool:
    """Return whether a class can be called so: identifiers with dots between them, each with `$` like a letter.

    >>> is_class_name("org.apache.Flink$Inner"), is_class_name("org..Flink"), is_class_name("org.apache.F&ink")
    (True, False, False)
    """
    return all(part.replace("$", "_").isidentifier() for part in name.split("."))


def is_descriptor(name: str) -> bool:
    """Return whether the type of a field can be written so.

    >>> is_descriptor("Ljava/lang/String;"), is_descriptor("[[J"), is_descriptor("Ljava/la g/String;")
    (True, True, False)
    """
    found = _DESCRIBED.fullmatch(name)
    return found is not None and (
        found[1] is None or ("." not in found[1] and is_class_name(found[1].replace("/", ".")))
    )


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
