"""Names in a file that are one bit off a known one: such a name is damaged, another one may be of a later version."""

from __future__ import annotations

from collections.abc import Iterable


def is_one_bit_off(name: str, known: Iterable[str]) -> bool:
    """Return whether a name differs from one of the known ones in a single bit of its UTF-8.

    >>> is_one_bit_off("UNIOO", ["UNION"]), is_one_bit_off("UNIOQ", ["UNION"]), is_one_bit_off("SHARED", ["UNION"])
    (True, False, False)
    """
    raw = name.encode("utf-8", "surrogatepass")
    return any(_differing_bits(raw, one.encode()) == 1 for one in known)


def _differing_bits(one: bytes, other: bytes) -> int:
    if len(one) != len(other):
        return -1
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
