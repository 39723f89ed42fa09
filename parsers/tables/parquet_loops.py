"""Parquet pages decoded by loops, where there are many rows: 64-bit integers, and texts that stand in a dictionary.

    data page = [length:u32 levels] values      levels: one run of ones, where no value is null
    values    = 8 bytes each (PLAIN)  or  width:u8 run*, numbers in the dictionary
    run       = count << 1 (varint)  value, in whole bytes   or   groups << 1 | 1 (varint)  8 numbers a group, packed

Everything else, and whatever does not follow this, is left to Arrow's reader: a row group goes on there behind the rows
that were decoded here. So this file decides speed, never answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.loops import Loop, only_read
from cklog.arrays.types import Bytes, Ints, Small

_WIDEST = 25
"""Bits of a number in a dictionary that four bytes are sure to hold, wherever it begins."""

_PLAIN, _OLD_DICTIONARY, _RLE, _DICTIONARY = 0, 2, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class NotHere(Exception):
    """A column chunk has what only Arrow's reader reads."""


class StoredPage(NamedTuple):
    """A page of a column chunk: where its bytes begin in the chunk, how many are stored, and what its header says."""

    type: int
    bytes: int
    stored: int
    checked: int
    values: int
    encoding: int
    levels: int
    at: int


_FIELDS = len(StoredPage._fields)


def _read_headers(data: Bytes, ids: Ints, found: Ints) -> int:
    """Read the headers of all pages of a chunk into rows of `StoredPage`; -1 where there is anything unusual."""
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


def _unpack(data: Bytes, width: int, state: Ints, out: Small, start: int, end: int, limit: int) -> int:
    """Fill `out[start:end]` with the numbers of runs; 0, or -1 where they break off or are not below `limit`.

    `state`: where the next run begins, how many numbers of this one are left, its number or -1 if they are packed, and
    the bit where the next packed one begins.
    """
    at = state[0]
    left = state[1]
    value = state[2]
    bit = state[3]
    size = len(data)
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
                out[k] = value
        else:
            sure = i + max(0, min(count, (size * 8 - 32 - bit) // width)) if width else i  # four bytes are there
            for k in range(i, sure):
                low = (bit >> 3) & 0x7FFFFFFF  # said for the compiler: an index that is not below 0 needs no care
                word = data[low] | (data[low + 1] << 8) | (data[low + 2] << 16) | (data[low + 3] << 24)
                number = (word >> (bit & 7)) & mask
                greatest = max(greatest, number)
                out[k] = number
                bit += width
            for k in range(sure, i + count):
                word = 0
                low = bit >> 3
                for j in range(min(4, size - low)):
                    word |= data[low + j] << (8 * j)
                number = (word >> (bit & 7)) & mask
                greatest = max(greatest, number)
                out[k] = number
                bit += width
        i += count
        left -= count
    state[0] = at
    state[1] = left
    state[2] = value
    state[3] = bit
    return 0 if greatest < limit else -1


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


HEADERS = Loop(_read_headers)
UNPACK = Loop(_unpack)
TEXTS = Loop(_find_texts)


def stored_pages(chunk: Bytes, most: int) -> list[StoredPage] | None:
    """Return the pages of a column chunk, at most so many; None where one header is unusual, or no header."""
    found = np.empty(_FIELDS * most, np.int64)
    count = HEADERS(most, only_read(chunk), np.zeros(8, np.int64), found)
    return None if count < 0 else [StoredPage(*row) for row in found[: _FIELDS * count].reshape(-1, _FIELDS).tolist()]


class LoopColumn:
    """A column chunk that is decoded by loops, some rows at a time.

    Raises
    ------
    NotHere : only Arrow's reader can read it, or read on
    """

    def __init__(self, chunk: Bytes, stored: Sequence[StoredPage], codec: int, column: Any, kind: pa.DataType) -> None:
        self._chunk, self._texts = chunk, pa.types.is_string(kind)
        fits = {"INT64": pa.types.is_int64(kind), "BYTE_ARRAY": self._texts}.get(column.physical_type, False)
        if not fits or column.max_repetition_level or column.max_definition_level > 1 or "." in column.path:
            raise NotHere
        self._nullable = column.max_definition_level == 1
        if codec not in _CODECS:
            raise NotHere
        self._codec = _CODECS[codec]
        self._dictionary: Any = None
        if stored and stored[0].type == _DICTIONARY_PAGE:
            self._read_dictionary(stored[0])
            stored = stored[1:]
        usual = (_OLD_DICTIONARY, _DICTIONARY) if self._texts else (_PLAIN, _OLD_DICTIONARY, _DICTIONARY)
        if any(p.type != _DATA_PAGE or p.checked or p.encoding not in usual for p in stored):
            raise NotHere
        if self._nullable and any(page.levels != _RLE for page in stored):
            raise NotHere
        self._pages = iter(stored)
        self._codes = np.empty(0, np.int32)
        self._left = 0
        self._data, self._state, self._width = np.zeros(0, np.uint8), np.zeros(4, np.int64), 0

    def take(self, count: int) -> pa.Array:
        """Return the next rows."""
        size = 4 if self._texts else 8
        filled = pa.allocate_buffer(size * count)  # Arrow keeps memory for the next batch; fresh pages are dear
        found = None if self._texts else np.frombuffer(filled, np.int64)
        codes = np.frombuffer(filled, np.int32) if found is None else self._spare_codes(count)
        at = 0
        while at < count:
            if not self._left:
                self._next_page()
            end = min(count, at + self._left)
            self._fill(codes, found, at, end)
            self._left -= end - at
            at = end
        if found is not None:
            return pa.Array.from_buffers(pa.int64(), count, [None, filled])
        return pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int32(), count, [None, filled]), self._dictionary, safe=False
        )

    def _spare_codes(self, count: int) -> Small:
        """Return room for numbers in the dictionary, which are gone with the next batch."""
        if count > len(self._codes):
            self._codes = np.empty(count, np.int32)
        return self._codes[:count]

    def _fill(self, codes: Small, found: Ints | None, at: int, end: int) -> None:
        """Decode rows of one page."""
        if found is not None and self._width < 0:
            first = int(self._state[0])
            found[at:end] = self._data[first : first + 8 * (end - at)].view("<i8")
            self._state[0] += 8 * (end - at)
            return
        known = len(self._dictionary)
        if UNPACK(end - at, only_read(self._data), self._width, self._state, codes, at, end, known):
            raise NotHere
        if found is not None:
            np.take(self._dictionary, codes[at:end], out=found[at:end], mode="clip")

    def _next_page(self) -> None:
        page = next(self._pages, None)
        if page is None:
            raise NotHere
        data = self._inflated(page)
        if self._nullable:
            data = _behind_levels(data, page.values)
        self._left, self._state[:], self._width = page.values, 0, -1
        if page.encoding == _PLAIN:
            if len(data) < 8 * page.values:
                raise NotHere
        else:
            if self._dictionary is None or not len(data) or data[0] > _WIDEST:
                raise NotHere
            self._width, data = int(data[0]), data[1:]
        self._data = data

    def _inflated(self, page: StoredPage) -> Bytes:
        """Return the bytes of a page as they were before they were compressed."""
        stored = self._chunk[page.at : page.at + page.stored]
        if self._codec is None:
            return stored
        try:
            found = pa.Codec(self._codec).decompress(stored, page.bytes)
        except (OSError, pa.ArrowException):
            raise NotHere from None
        if len(found) != page.bytes:
            raise NotHere
        return np.frombuffer(found, np.uint8)

    def _read_dictionary(self, page: StoredPage) -> None:
        data = self._inflated(page)
        if page.checked or page.encoding not in (_PLAIN, _OLD_DICTIONARY):
            raise NotHere
        if not self._texts:
            if len(data) != 8 * page.values:
                raise NotHere
            self._dictionary = data.view("<i8")
            return
        if 4 * page.values > len(data):
            raise NotHere
        offsets, texts = np.empty(page.values + 1, np.int32), np.empty(len(data), np.uint8)
        if TEXTS(page.values, only_read(data), page.values, offsets, texts) < 0:
            raise NotHere
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
        self._dictionary = pa.Array.from_buffers(pa.string(), page.values, buffers)
        try:
            self._dictionary.validate(full=True)
        except pa.ArrowException:
            raise NotHere from None


def _behind_levels(data: Bytes, values: int) -> Bytes:
    """Return what stands behind levels that say that no value is null."""
    size = int.from_bytes(data[:4].tobytes(), "little")
    levels = data[4 : 4 + size].tolist()
    count, shift = 0, 0
    for at, byte in enumerate(levels[:5]):
        count |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if count == values << 1 and levels[at + 1 :] == [1] and len(data) >= 4 + size:
                return data[4 + size :]
            break
    raise NotHere


_CODECS: dict[int, str | None] = {0: None, 1: "snappy", 2: "gzip", 6: "zstd"}
"""By the number that a footer has for it."""


def batches_of(columns: Sequence[LoopColumn], names: Sequence[str], rows: int, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group, `most` at once; `NotHere` where Arrow's reader has to go on."""
    for at in range(0, rows, most):
        count = min(most, rows - at)
        yield pa.RecordBatch.from_arrays([column.take(count) for column in columns], names=list(names))
