"""CRC-32C of many lines at once, by tables of two bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import crc32c
import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.parsers.jsonl.words import Deviates, LineWords


def line_crcs(words_at: Callable[[Ints], LineWords], starts: Ints, end: Ints, longest_bytes: int) -> NDArray[np.uint32]:
    """CRC-32C of the bytes from `starts` to `end` of each line, `longest_bytes` at the most.

    Lines are aligned at their end: in front of a message, zeros leave a CRC that starts from zero as it is.
    What starting from ones adds depends on the length only; it is the CRC of as many zeros.
    """
    length = end - starts
    shortest, longest = int(length.min()), int(length.max())
    if longest > longest_bytes or shortest < 0:
        raise Deviates
    count = -(-longest // 8)
    words = words_at(end - 8 * count)
    crc = np.zeros(len(length), np.uint32)
    tables = crc_tables()
    for j in range(count):
        word = words[j]
        if (foreign := 8 * (count - j)) > shortest:  # bytes of the line before may be in this word
            bits = (np.minimum(np.maximum(foreign - length, 0), 8) * 8).astype(np.uint64)
            word = word >> bits << bits
        quarters = (word ^ crc).view("<u2").reshape(-1, 4).T.astype(np.intp)
        crc = tables[0][quarters[0]]
        for k in range(1, 4):
            crc ^= tables[k][quarters[k]]
    zeros = np.array([crc32c.crc32c(bytes(n)) for n in range(shortest, longest + 1)], np.uint32)
    crc ^= zeros[length - shortest]
    return crc


@lru_cache(maxsize=1)
def crc_tables() -> tuple[NDArray[np.uint32], ...]:
    """What two bytes at offset 0, 2, 4, 6 of a word add to the CRC, by their value."""
    start = crc32c.crc32c(bytes(8))
    tables = []
    for at in range(0, 64, 16):
        table = np.zeros(1, np.uint32)
        for bit in range(16):
            one = crc32c.crc32c((1 << (at + bit)).to_bytes(8, "little")) ^ start
            table = np.concatenate([table, table ^ np.uint32(one)])
        tables.append(table)
    return tuple(tables)
