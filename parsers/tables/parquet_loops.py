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

TYPE, BYTES, STORED, CHECKED, VALUES, ENCODING, LEVELS, AT = range(8)
FIELDS = 8
"""Numbers that `HEADERS` tells of a page: its type, its bytes when inflated and as stored, whether it has a checksum,
how many values it has, their encoding, that of the levels, and where it begins."""

STATE = 9
"""Numbers that `DECODE` keeps from batch to batch: the four of `unpack_runs`; the next page; rows left of this one;
bits of a number in a dictionary, or -1; whether the next page is inflated already; and the bytes of this one."""

PLAIN, OLD_DICTIONARY, RLE, DICTIONARY = 0, 2, 3, 8
UNCOMPRESSED, SNAPPY = 0, 1

_WIDEST = 25
"""Bits of a number in a dictionary that four bytes are sure to hold, wherever it begins."""


def _read_headers(data: Bytes, ids: Ints, found: Ints) -> int:
    """Read the headers of all pages of a chunk into rows of `FIELDS` numbers; -1 where there is anything unusual."""
    size = len(data)
    most = len(found) // 8
    at = 0
    count = 0
    while at < size:
        if count == most:
            return -1
        row = 8 * count
        for k in range(8):
            found[row + k] = 0
        found[row + 2] = -1
        depth = 0
        seen = 0
        ids[0] = 0
        while True:
            if at >= size:
                return -1
            head = data[at]
            at += 1
            if head == 0:
                if depth == 0:
                    break
                depth -= 1
                continue
            kind = head & 15
            if head >> 4 == 0:
                return -1
            ids[depth] += head >> 4
            inner = depth == 1 and ((ids[0] == 5 and ids[1] <= 4) or (ids[0] == 7 and ids[1] <= 2))
            if (depth == 0 and ids[0] <= 4) or inner:
                if kind != 5:
                    return -1
                seen |= 1 << (ids[0] if depth == 0 else 8 * ids[0] + ids[1])
            elif depth == 1 and ids[0] == 7 and ids[1] == 3:  # whether the dictionary is sorted
                if kind != 1 and kind != 2:
                    return -1
            elif depth == 0 and ids[0] <= 8 and ids[0] != 6 and kind != 12:
                return -1
            if kind == 12:  # a struct
                depth += 1
                if depth >= len(ids):
                    return -1
                ids[depth] = 0
            elif kind == 3:
                at += 1
            elif kind == 7:
                at += 8
            elif kind == 4 or kind == 5 or kind == 6 or kind == 8:  # integers, and the length of bytes
                number = 0
                shift = 0
                while True:
                    if at >= size or shift > 56:
                        return -1
                    byte = data[at]
                    at += 1
                    number |= (byte & 127) << shift
                    if byte < 128:
                        break
                    shift += 7
                if kind == 8:
                    if number > size - at:
                        return -1
                    at += number
                    continue
                if number >> 32:
                    return -1
                number = (number >> 1) ^ -(number & 1)
                to = -1
                if depth == 0 and ids[0] <= 4:
                    to = ids[0] - 1
                elif inner and ids[1] <= 3:
                    to = ids[1] + 3
                elif depth == 1 and ids[0] == 8:
                    return -1
                if to >= 0:
                    found[row + to] = 1 if to == 3 else number
            elif kind != 1 and kind != 2:
                return -1
        asked = (
            0b11110 << 40 if found[row] == 0 else 0b110 << 56
        )  # fields 1 to 4 of a data page, 1 and 2 of a dictionary
        if seen & ~16 != asked | 14 or (found[row] != 0 and found[row] != 2):
            return -1
        if found[row + 1] < 0 or found[row + 2] < 0 or found[row + 4] < 0 or found[row + 2] > size - at:
            return -1
        found[row + 7] = at
        at += found[row + 2]
        count += 1
    return count


def unpack_runs(
    data: Bytes, size: int, width: int, state: Ints, values: Ints, known: int, out: Ints, start: int, end: int
) -> int:
    """Fill `out[start:end]` with the values that runs of numbers name; 0, or -1 where they break off or name none.

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
            header = 0
            shift = 0
            while True:
                if at >= size or shift > 28:
                    return -1
                byte = data[at]
                at += 1
                header |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
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
            if left == 0 or at > size or value > mask:
                return -1
        count = min(left, end - i)
        if value >= 0:
            greatest = max(greatest, value)
            for k in range(i, i + count):
                out[k] = values[value]
        else:
            sure = i + max(0, min(count, (size * 8 - 32 - bit) // width)) if width else i  # four bytes are there
            for k in range(i, sure):
                low = (bit >> 3) & 0x7FFFFFFF  # said for the compiler: an index that is not below 0 needs no care
                word = data[low] | (data[low + 1] << 8) | (data[low + 2] << 16) | (data[low + 3] << 24)
                number = (word >> (bit & 7)) & mask
                greatest = max(greatest, number)
                out[k] = values[number & 0x7FFFFFFF]
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
    return 0 if greatest < known else -1


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


def inflate_snappy(data: Bytes, at: int, end: int, out: Bytes, size: int) -> int:
    """Inflate what `data[at:end]` has to exactly `size` bytes; 0, or -1 where that is not what it has."""
    length = 0
    shift = 0
    while True:
        if at >= end or shift > 28:
            return -1
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    if length != size:
        return -1
    to = 0
    while at < end:
        tag = data[at] & 255  # said for the compiler: a signed number, whose shifts are signed
        at += 1
        more = tag & 3
        if more == 0:  # bytes as they are
            count = tag >> 2
            more = max(0, count - 59)
            if more > end - at:
                return -1
            if more:
                count = 0
                for k in range(more):
                    count |= data[at + k] << (8 * k)
                at += more
            count += 1
            if count > end - at or count > size - to:
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


def _open_page(page: Bytes, size: int, values: int, encoding: int, nullable: int, state: Ints) -> int:
    """Pass over the levels of a page; 0, or -1 where a value may be null or its numbers are too wide."""
    at = 0
    if nullable:
        if size < 4:
            return -1
        at = 4 + (page[0] | (page[1] << 8) | (page[2] << 16) | (page[3] << 24))
        if at > size:
            return -1
        count = 0
        shift = 0
        k = 4
        while True:
            if k >= at or shift > 28:
                return -1
            byte = page[k]
            k += 1
            count |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if count != values << 1 or k != at - 1 or page[k] != 1:
            return -1
    state[6] = -1
    if encoding == PLAIN:
        if 8 * values > size - at:
            return -1
    else:
        if at >= size or page[at] > _WIDEST:
            return -1
        state[6] = page[at]
        at += 1
    state[0] = at
    state[1] = 0
    state[4] += 1
    state[5] = values
    state[7] = 0
    state[8] = size
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
    """Fill `out[start:]` with the next rows of a column chunk; return how far it came, -1 where that is not for loops.

    It comes less far where whoever asks has to inflate the next page. `stored` are its data pages as `HEADERS` tells
    them, `page` has room for the largest, `values` are the `known` ones of the dictionary, and as many more as make
    their number a power of two.
    """
    row = start
    while row < len(out):
        if state[5] == 0:
            about = 8 * state[4]
            if about >= len(stored):
                return -1
            size = stored[about + 1]
            if state[7] == 0:
                if codec > 1:
                    return row
                at = stored[about + 7]
                if codec == UNCOMPRESSED:
                    size = stored[about + 2]
                    page[:size] = chunk[at : at + size]
                elif inflate_snappy(chunk, at, at + stored[about + 2], page, size):
                    return -1
            if _open_page(page, size, stored[about + 4], stored[about + 5], nullable, state):
                return -1
        count = min(state[5], len(out) - row)
        if state[6] < 0:
            at = state[0]
            for k in range(row, row + count):
                low = page[at] | (page[at + 1] << 8) | (page[at + 2] << 16) | (page[at + 3] << 24)
                high = page[at + 4] | (page[at + 5] << 8) | (page[at + 6] << 16) | (page[at + 7] << 24)
                out[k] = low | (high << 32)
                at += 8
            state[0] = at
        elif count and unpack_runs(page, state[8], state[6], state, values, known, out, row, row + count):
            return -1
        state[5] -= count
        row += count
    return row


HEADERS = Loop(_read_headers)
TEXTS = Loop(_find_texts)
DECODE = Loop(_decode, (inflate_snappy, _open_page, unpack_runs))
