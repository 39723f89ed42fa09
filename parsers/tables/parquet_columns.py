"""Column chunks of Parquet decoded by loops, some rows at a time, where they are of the usual kinds.

Everything else, and whatever the loops refuse, is left to Arrow's reader: a row group goes on there behind the rows
that were decoded here. So this file decides speed, never answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.loops import only_read
from cklog.arrays.types import Bytes, Ints, Small
from cklog.parsers.tables.parquet_loops import (
    DECODE,
    DICTIONARY,
    FIELDS,
    HEADERS,
    OLD_DICTIONARY,
    PLAIN,
    RLE,
    SNAPPY,
    STATE,
    TEXTS,
    UNCOMPRESSED,
)

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


def stored_pages(chunk: Bytes, most: int) -> list[StoredPage] | None:
    """Return the pages of a column chunk, at most so many; None where one header is unusual, or no header."""
    found = np.empty(FIELDS * most, np.int64)
    count = HEADERS(most, only_read(chunk), np.zeros(8, np.int64), found)
    return None if count < 0 else [StoredPage(*row) for row in found[: FIELDS * count].reshape(-1, FIELDS).tolist()]


class LoopColumn:
    """A column chunk that is decoded by loops, some rows at a time.

    Raises
    ------
    NotHere : only Arrow's reader can read it, or read on
    """

    def __init__(self, chunk: Bytes, stored: Sequence[StoredPage], codec: int, column: Any, kind: pa.DataType) -> None:
        self._chunk, self._texts = only_read(chunk), pa.types.is_string(kind)
        fits = {"INT64": pa.types.is_int64(kind), "BYTE_ARRAY": self._texts}.get(column.physical_type, False)
        if not fits or column.max_repetition_level or column.max_definition_level > 1 or "." in column.path:
            raise NotHere
        self._nullable = column.max_definition_level
        if codec not in _CODECS:
            raise NotHere
        self._codec = codec
        self._dictionary: pa.Array | None = None
        self._values: Ints | Small = np.zeros(0, np.int32) if self._texts else np.zeros(0, np.int64)
        if stored and stored[0].type == _DICTIONARY_PAGE:
            self._read_dictionary(stored[0])
            stored = stored[1:]
        usual = (OLD_DICTIONARY, DICTIONARY) if self._texts else (PLAIN, OLD_DICTIONARY, DICTIONARY)
        if any(p.type != _DATA_PAGE or p.checked or p.encoding not in usual for p in stored):
            raise NotHere
        if self._nullable and any(page.levels != RLE for page in stored):
            raise NotHere
        self._pages = stored
        self._stored = only_read(np.array(stored, np.int64).reshape(-1))
        self._page = np.empty(max((max(p.bytes, p.stored) for p in stored), default=0), np.uint8)
        self._state = np.zeros(STATE, np.int64)

    def take(self, count: int) -> pa.Array:
        """Return the next rows."""
        filled = pa.allocate_buffer((4 if self._texts else 8) * count)  # Arrow keeps memory for the next batch
        found = np.frombuffer(filled, np.int32 if self._texts else np.int64)
        about = self._chunk, self._stored, self._codec, self._nullable, self._state, self._page
        row, values = 0, only_read(self._values)
        while (row := DECODE(count - row, *about, values, found, row)) < count:
            if row < 0:
                raise NotHere
            self._inflate_next()
        if not self._texts:
            return pa.Array.from_buffers(pa.int64(), count, [None, filled])
        return pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int32(), count, [None, filled]), self._dictionary, safe=False
        )

    def _inflate_next(self) -> None:
        """Inflate the next page, of what no loop inflates."""
        page = self._pages[int(self._state[4])]
        self._page[: page.bytes] = self._inflated(page)
        self._state[7] = 1

    def _inflated(self, page: StoredPage) -> Bytes:
        """Return the bytes of a page as they were before they were compressed."""
        stored, codec = self._chunk[page.at : page.at + page.stored], _CODECS[self._codec]
        if codec is None:
            return stored
        try:
            found = pa.Codec(codec).decompress(stored, page.bytes)
        except (OSError, pa.ArrowException):
            raise NotHere from None
        if len(found) != page.bytes:
            raise NotHere
        return np.frombuffer(found, np.uint8)

    def _read_dictionary(self, page: StoredPage) -> None:
        data = self._inflated(page)
        if page.checked or page.encoding not in (PLAIN, OLD_DICTIONARY):
            raise NotHere
        if not self._texts:
            if len(data) != 8 * page.values:
                raise NotHere
            self._values = data.view("<i8")
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
        self._values = np.arange(page.values, dtype=np.int32)


_CODECS: dict[int, str | None] = {UNCOMPRESSED: None, SNAPPY: "snappy", 2: "gzip", 6: "zstd"}
"""By the number that a footer has for it."""


def batches_of(columns: Sequence[LoopColumn], names: Sequence[str], rows: int, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group, `most` at once; `NotHere` where Arrow's reader has to go on."""
    for at in range(0, rows, most):
        count = min(most, rows - at)
        yield pa.RecordBatch.from_arrays([column.take(count) for column in columns], names=list(names))
