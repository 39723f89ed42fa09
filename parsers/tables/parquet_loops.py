"""Loops that decode Parquet pages, where there are many rows: 64-bit integers, and texts that stand in a dictionary.

    data page = [length:u32 levels] values      levels: one run of ones, where no value is null
    values    = 8 bytes each (PLAIN)  or  width:u8 run*, numbers in the dictionary
    run       = count << 1 (varint)  value, in whole bytes   or   groups << 1 | 1 (varint)  8 numbers a group, packed

Rows are decoded in one call a column and batch, Snappy included: threads that give the interpreter lock back and forth
for each page wait for each other longer than the work takes.
"""

from __future__ import annotations

from cklog.arrays.loops import Loop
from cklog.arrays.types import Bytes, Ints, Small

STATE = 10
"""Numbers that `DECODE` keeps from batch to batch: the four of `unpack_runs`; the next page; rows left of this one;
bits of a number in a dictionary, or -1; whether the next page is inflated already; where this one ends; and whether
that is in the chunk, where its bytes stand as they are."""

PLAIN, OLD_DICTIONARY, RLE, DICTIONARY = 0, 2, 3, 8
UNCOMPRESSED, SNAPPY = 0, 1

UNNAMED = -2
"""What loops return where a page has numbers that its dictionary has not. All else that they cannot decode is -1."""

_WIDEST = 25
"""Bits of a number in a dictionary that four bytes are sure to hold, wherever it begins."""


def read_varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number in seven bits a byte, lowest first, and where it ends; -1 there if it breaks off or is too long.

    No number that is read here has more than 32 bits.
    """
    found = 0
    shift = 0
    while at < end and shift <= 28:
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128 and found >> 32 == 0:
            return found, at
        shift += 7
    return 0, -1


def unpack_runs(
    data: Bytes, size: int, width: int, state: Ints, values: Ints, known: int, out: Ints, start: int, end: int
) -> int:
    """Fill `out[start:end]` with the values that runs of numbers name; return 0, -1 where they break off, or `UNNAMED`.

    `values` has one for every number of so many bits, of which the first `known` count. `state`: where in the `size`
    bytes the next run begins, how many numbers of this one are left, its number or -1 if they are packed, and the bit
    where the next packed one begins.
    """
    if width < 0 or width > _WIDEST or len(values) >> width == 0:
        return -1
    at = state[0]
    left = state[1]
    value = state[2]
    bit = state[3]
    mask = (1 << width) - 1
    i = start
    greatest = 0
    while i < end:
        if left == 0:
            header, at = read_varint(data, at, size)
            if at < 0:
                return -1
            if header & 1:
                left = (header >> 1) * 8
                value = -1
                bit = at * 8
                at += (header >> 1) * width
            else:
                left = header >> 1
                value = 0
                for k in range((width + 7) >> 3):
                    if at >= size:
                        return -1
                    value |= data[at] << (8 * k)
                    at += 1
            if left == 0 or left >> 31 or at > size or value > mask:
                return -1
        count = min(left, end - i)
        if value >= 0:
            greatest = max(greatest, value)
            for k in range(i, i + count):
                out[k] = values[value]
        else:
            sure = i + max(0, min(count, (size * 8 - 32 - bit) // width)) if width else i  # four bytes are there
            k = i
            if 0 < width <= 14 or width == 16:  # eight bytes hold four numbers, wherever these begin
                for _ in range(min(count, (size * 8 - 64 - bit) // width) // 4):
                    low = (bit >> 3) & 0x7FFFFFFF  # said for the compiler: an index that is not below 0 needs no care
                    word = data[low] | (data[low + 1] << 8) | (data[low + 2] << 16) | (data[low + 3] << 24)
                    word |= (
                        (data[low + 4] << 32) | (data[low + 5] << 40) | (data[low + 6] << 48) | (data[low + 7] << 56)
                    )
                    word >>= bit & 7
                    for j in range(k, k + 4):
                        number = word & mask
                        greatest = max(greatest, number)
                        out[j] = values[number & 0x7FFFFFFF]
                        word >>= width
                    bit += 4 * width
                    k += 4
            for j in range(k, sure):
                low = (bit >> 3) & 0x7FFFFFFF
                word = data[low] | (data[low + 1] << 8) | (data[low + 2] << 16) | (data[low + 3] << 24)
                number = (word >> (bit & 7)) & mask
                greatest = max(greatest, number)
                out[j] = values[number & 0x7FFFFFFF]
                bit += width
            for k in range(sure, i + count):
                word = 0
                low = bit >> 3
                for j in range(min(4, size - low)):
                    word |= data[low + j] << (8 * j)
                number = (word >> (bit & 7)) & mask
                greatest = max(greatest, number)
                out[k] = values[number]
                bit += width
        i += count
        left -= count
    state[0] = at
    state[1] = left
    state[2] = value
    state[3] = bit
    return 0 if greatest < known else UNNAMED


def _find_texts(data: Bytes, count: int, offsets: Small, texts: Bytes) -> int:
    """Put texts one behind the other, each of which has its length in four bytes before it; their bytes, or -1."""
    at = 0
    size = len(data)
    total = 0
    offsets[0] = 0
    for i in range(count):
        if at + 4 > size:
            return -1
        length = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24)
        at += 4
        if length > size - at:
            return -1
        for j in range(length):
            texts[total + j] = data[at + j]
        at += length
        total += length
        offsets[i + 1] = total
    return total


def read_literal(data: Bytes, tag: int, at: int, end: int) -> tuple[int, int]:
    """Return how many bytes Snappy has as they are behind a tag, and where they begin; -1 there if it breaks off."""
    count = tag >> 2
    more = max(0, count - 59)
    if more > end - at:
        return 0, -1
    if more:
        count = 0
        for k in range(more):
            count |= data[at + k] << (8 * k)
    return count + 1, at + more


def inflate_snappy(data: Bytes, at: int, end: int, out: Bytes, size: int) -> int:
    """Inflate what `data[at:end]` has to exactly `size` bytes; 0, or -1 where that is not what it has."""
    length, at = read_varint(data, at, end)
    if at < 0 or length != size:
        return -1
    to = 0
    while at < end:
        tag = data[at] & 255  # said for the compiler: a signed number, whose shifts are signed
        at += 1
        more = tag & 3
        if more == 0:  # bytes as they are
            count, at = read_literal(data, tag, at, end)
            if at < 0 or count > end - at or count > size - to:
                return -1
            out[to : to + count] = data[at : at + count]
            at += count
        else:  # bytes from before, by a distance in 1, 2 or 4 bytes
            more = 4 if more == 3 else more
            if more > end - at:
                return -1
            count = (tag >> 2) + 1
            back = 0
            for k in range(more):
                back |= data[at + k] << (8 * k)
            if more == 1:
                count = ((tag >> 2) & 7) + 4
                back |= (tag >> 5) << 8
            at += more
            if back == 0 or back > to or count > size - to:
                return -1
            if back < count:  # what is copied begins to be copied again
                for k in range(to, to + count):
                    out[k] = out[k - back]
            else:
                out[to : to + count] = out[to - back : to - back + count]
        to += count
    return 0 if to == size else -1


def _snappy_literal(data: Bytes, at: int, end: int, size: int) -> int:
    """Return where `size` bytes stand in `data[at:end]` as they are, in one piece; -1 where Snappy has them otherwise.

    So it has numbers of a dictionary mostly, which are packed already.
    """
    length, at = read_varint(data, at, end)
    if at < 0 or at >= end or length != size:
        return -1
    tag = data[at] & 255
    if tag & 3:
        return -1
    count, at = read_literal(data, tag, at + 1, end)
    return at if at >= 0 and count == size == end - at else -1


def _open_page(data: Bytes, at: int, end: int, values: int, encoding: int, nullable: int, state: Ints) -> int:
    """Pass over the levels of the page `data[at:end]`; 0, or -1 where a value may be null or numbers are too wide."""
    if nullable:
        if end - at < 4:
            return -1
        levels = at + 4
        at = levels + (data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24))
        if at > end:
            return -1
        count, behind = read_varint(data, levels, at)
        if count != values << 1 or behind != at - 1 or data[behind] != 1:
            return -1
    state[6] = -1
    if encoding == PLAIN:
        if 8 * values > end - at:
            return -1
    else:
        if at >= end or data[at] > _WIDEST:
            return -1
        state[6] = data[at]
        at += 1
    state[0] = at
    state[1] = 0
    state[4] += 1
    state[5] = values
    state[7] = 0
    state[8] = end
    return 0


def _decode(
    chunk: Bytes,
    stored: Ints,
    codec: int,
    nullable: int,
    state: Ints,
    page: Bytes,
    values: Ints,
    known: int,
    out: Ints,
    start: int,
) -> int:
    """Fill `out[start:]` with the next rows of a column chunk; return how far it came, or -1 or `UNNAMED` if it cannot.

    It comes less far where whoever asks has to inflate the next page. `stored` are its data pages as `HEADERS` tells
    them, `page` has room for the largest, `values` are the `known` ones of the dictionary, and as many more as make
    their number a power of two. Nothing is written to `chunk`, though it has to be of the same type as `page`.
    """
    row = start
    while row < len(out):
        if state[5] == 0:
            about = 8 * state[4]
            if about >= len(stored):
                return -1
            size = stored[about + 1]
            if state[7] == 0 and codec > 1:
                return row
            state[9] = 0
            begin = 0
            if state[7] == 0:
                at = stored[about + 7]
                behind = at + stored[about + 2]
                literal = at if codec == UNCOMPRESSED else _snappy_literal(chunk, at, behind, size)
                if literal >= 0:
                    state[9] = 1
                    begin = literal
                    size = behind - literal
                elif inflate_snappy(chunk, at, behind, page, size):
                    return -1
            about_values = stored[about + 4], stored[about + 5], nullable, state
            if _open_page(chunk if state[9] else page, begin, begin + size, *about_values):
                return -1
        source = chunk if state[9] else page
        count = min(state[5], len(out) - row)
        if state[6] < 0:
            at = state[0]
            for k in range(row, row + count):
                low = source[at] | (source[at + 1] << 8) | (source[at + 2] << 16) | (source[at + 3] << 24)
                high = source[at + 4] | (source[at + 5] << 8) | (source[at + 6] << 16) | (source[at + 7] << 24)
                out[k] = low | (high << 32)
                at += 8
            state[0] = at
        elif count:
            failed = unpack_runs(source, state[8], state[6], state, values, known, out, row, row + count)
            if failed:
                return failed
        state[5] -= count
        row += count
    return row


TEXTS = Loop(_find_texts)
DECODE = Loop(_decode, (read_varint, read_literal, inflate_snappy, _snappy_literal, _open_page, unpack_runs))
