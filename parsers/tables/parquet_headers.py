"""The loop that reads the headers of all pages of a Parquet column chunk at once.

A header is a `PageHeader` in Thrift's compact protocol; `parquet_pages` reads what is unusual.
"""

from __future__ import annotations

from cklog.arrays.loops import Loop
from cklog.arrays.types import Bytes, Ints

TYPE, BYTES, STORED, CHECKED, VALUES, ENCODING, LEVELS, AT = range(8)
FIELDS = 8
"""Numbers that `HEADERS` tells of a page: its type, its bytes when inflated and as stored, whether it has a checksum,
how many values it has, their encoding, that of the levels, and where it begins."""


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


HEADERS = Loop(_read_headers)
