"""Unsigned numbers of any width: seven bits a byte, the lowest first; bit 7 says that another byte follows."""

from __future__ import annotations

from typing import Any


class BadVarint(ValueError):
    """Why bytes are not such a number."""


def unsigned_varint(data: Any, at: int, bits: int = 32) -> tuple[int, int]:
    """Decode the number of at most `bits` at byte `at`; return it and where it ends.

    >>> unsigned_varint(bytes([0xac, 0x02]), 0)
    (300, 2)

    Raises
    ------
    BadVarint : the bytes end inside it, or it is larger
    """
    number, shift = 0, 0
    for byte in data[at : at + (bits + 6) // 7]:
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if number >> bits:
                break
            return number, at
    if shift < bits:
        raise BadVarint("a number that is cut short")
    raise BadVarint(f"a number beyond {bits} bits")
