"""Eight bytes at a time: values of many lines as little-endian words, the arithmetic on them, and their CRC-32C.

The tricks on words ("SWAR") are those of Hacker's Delight, chapter 6, and of simdjson's number parsing. Every
function works on one word of each line at once; arrays have shape (lines,). The first byte of a text is the lowest
byte of its word, so that "12" is 0x3231.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import crc32c
import numpy as np
from numpy.typing import NDArray

from cklog.arrays.types import U64, Ints

Widths = NDArray[np.uint8]
"""Bytes that values take, shape (lines,)."""

WORDS_AT_ONCE = 4
"""Words per gather: numpy's cost is per gather, hardly per byte."""


class Deviates(Exception):
    """A line is not of the first line's shape, or the shape is none that this reader knows."""


def every_byte(byte: int) -> np.uint64:
    """Return the word whose eight bytes are all `byte`."""
    return np.uint64(byte * 0x0101010101010101)


LOW, HIGH, QUOTES, ZEROS = every_byte(0x01), every_byte(0x80), every_byte(0x22), every_byte(0x30)
"""Words of one repeated byte: its lowest bit, its highest bit, the quotation mark, the digit 0."""

PAIRS = np.uint64(0x000000FF000000FF)
"""The first byte of each half of a word."""

MIX = np.uint64(0x9E3779B97F4A7C15)
"""A multiplier that spreads the bits of a hash: odd and without structure, from the golden ratio."""

POWERS = 10 ** np.arange(9, dtype=np.uint64)


class LineWords:
    """The words of eight bytes that follow one address per line; `words[j]` has shape (lines,). Best read in order.

    `windows` are the bytes of the block, `WORDS_AT_ONCE` words from every address on: one gather reads so many.
    """

    def __init__(self, windows: NDArray[np.void], at: Ints, skip: int = 0) -> None:
        self._windows, self._at, self._skip = windows, at, skip
        self._window, self._read = -1, np.zeros((0, WORDS_AT_ONCE), np.uint64)

    def __getitem__(self, j: int) -> U64:
        window, word = divmod(self._skip + j, WORDS_AT_ONCE)
        if window != self._window:
            at = self._at + 8 * WORDS_AT_ONCE * window
            self._window, self._read = window, self._windows[at].view("<u8").reshape(-1, WORDS_AT_ONCE)
        return self._read[:, word]

    def behind(self, words: int) -> LineWords:
        """Return the words behind the first `words`, keeping what has been read."""
        rest = LineWords(self._windows, self._at, words)
        rest._window, rest._read = self._window, self._read
        return rest

    def moved(self, by: NDArray[np.bool_]) -> LineWords:
        """Return the words one byte further on in the lines that `by` marks."""
        return LineWords(self._windows, self._at + 8 * self._skip + by)


def bytes_below(stop: U64) -> Widths:
    """Count the bytes before the first one whose high bit is set in `stop`; 8 if there is none.

    >>> bytes_below(np.array([0x80, 0x8000, 0x80800000, 0], np.uint64)).tolist()
    [0, 1, 2, 8]
    """
    below = stop - np.uint64(1)
    below &= ~stop  # now all bits below the lowest one of `stop`
    count: Widths = np.bitwise_count(below) >> np.uint8(3)
    return count


def unused_bits(count: Widths) -> U64:
    """Return how many bits of a word lie behind its first `count` bytes."""
    return (np.uint8(64) - (count << np.uint8(3))).astype(np.uint64)


def read_digits(words: LineWords) -> tuple[U64, Widths]:
    """Return the number that each line's leading digits spell, and how many digits it has; shapes (lines,).

    >>> text = np.ndarray(1, "V32", b"1234,".ljust(32))
    >>> [found.tolist() for found in read_digits(LineWords(text, np.array([0])))]
    [[1234], [4]]

    Raises
    ------
    Deviates : more digits than 64 bits hold, or a 0 before others
    """
    for j in range(3):
        word = words[j] ^ ZEROS  # digits become 0 to 9
        stop = word + every_byte(0x76)  # sets the high bit of all that is not 0..9
        stop |= word
        stop &= HIGH
        count = bytes_below(stop)
        if j == 0:
            number, width = spelt(word, count), count
            if ((word & np.uint64(0xFF) == 0) & (width > 1)).any():
                raise Deviates
        else:
            count *= width == 8 * j  # no digit counts behind one that ended the number
            number = number * POWERS[count] + spelt(word, count)
            width = width + count
        if (longest := width.max()) < 8 * (j + 1):
            break
    if longest > 19:  # 19 digits still fit into an unsigned word
        raise Deviates
    return number, width


def spelt(digits: U64, count: Widths) -> U64:
    """Return the number of the first `count` bytes of each word, which hold 0..9; shapes (lines,).

    Neighbours are joined: digits to pairs, pairs to fours, fours to the number.

    >>> spelt(np.array([0x030201], np.uint64), np.array([3], np.uint8)).tolist()
    [123]
    """
    word = digits << unused_bits(count)  # leading zeros come in
    word = word * np.uint64(10) + (word >> np.uint64(8))  # every other byte is a number of two digits
    upper = word >> np.uint64(16)
    upper &= PAIRS
    word &= PAIRS
    word *= np.uint64(100 + (1000000 << 32))
    upper *= np.uint64(1 + (10000 << 32))
    word += upper
    word >>= np.uint64(32)
    return word


def zero_bytes(word: U64) -> U64:
    """Set the high bit of every byte that is zero; the lowest bit set is exact, one above it may be false.

    >>> hex(zero_bytes(np.uint64(0x6161616100616161)))
    '0x80000000'
    """
    found = word - LOW
    found &= ~word
    found &= HIGH
    return found


def hexadecimal(numbers: NDArray[np.uint32]) -> U64:
    """Return the eight lowercase hexadecimal digits of each number, as a word of text.

    >>> hexadecimal(np.array([0x89abcdef], np.uint32)).tobytes()
    b'89abcdef'
    """
    word = numbers.astype(np.uint64)
    for bits, kept in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F)):
        word |= word << np.uint64(bits)
        word &= np.uint64(kept)  # at last a digit in each byte, the lowest first
    letters = (word + every_byte(6)) >> np.uint64(4) & LOW
    word += letters * np.uint64(ord("a") - ord("0") - 10)
    word += ZEROS
    return word.byteswap(inplace=True)


def line_crcs(words_at: Callable[[Ints], LineWords], starts: Ints, end: Ints, longest_bytes: int) -> NDArray[np.uint32]:
    """Return the CRC-32C of the bytes from `starts` to `end` of each line; shapes (lines,).

    Lines are aligned at their end: in front of a message, zeros leave a CRC that starts from zero as it is.
    What starting from ones adds depends on the length only; it is the CRC of as many zeros.

    Raises
    ------
    Deviates : a line of more than `longest_bytes`
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
        quarters = (word ^ crc).view("<u2").reshape(-1, 4).T.astype(np.intp)  # (4, lines), each an index of a table
        crc = tables[0][quarters[0]]
        for k in range(1, 4):
            crc ^= tables[k][quarters[k]]
    zeros = np.array([crc32c.crc32c(bytes(n)) for n in range(shortest, longest + 1)], np.uint32)
    crc ^= zeros[length - shortest]
    return crc


@lru_cache(maxsize=1)
def crc_tables() -> tuple[NDArray[np.uint32], ...]:
    """Return what two bytes at offset 0, 2, 4, 6 of a word add to the CRC, by their value; four of shape (65536,)."""
    start = crc32c.crc32c(bytes(8))
    tables = []
    for at in range(0, 64, 16):
        table = np.zeros(1, np.uint32)
        for bit in range(16):
            one = crc32c.crc32c((1 << (at + bit)).to_bytes(8, "little")) ^ start  # what this bit alone adds
            table = np.concatenate([table, table ^ np.uint32(one)])
        tables.append(table)
    return tuple(tables)
