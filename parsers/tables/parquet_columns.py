"""Column chunks of Parquet decoded by loops, some rows at a time, where they are of the usual kinds.

Everything else, and whatever the loops refuse, is left to Arrow's reader: a row group goes on there behind the rows
that were decoded here. So this file decides speed, never answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.blocks import ANY, BlockColumn, Blocks
from cklog.arrays.buffers import pooled, unfilled
from cklog.arrays.columns import arrow_integers
from cklog.arrays.loops import only_read
from cklog.arrays.types import Bytes, Ints, Small
from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import BlockKernel, Folded
from cklog.parsers.codecs.decompression import DecompressionError, decompress_to_array
from cklog.parsers.tables.column_rules import are_small
from cklog.parsers.tables.parquet_headers import (
    AT,
    BYTES,
    CHECKED,
    ENCODING,
    FIELDS,
    HEADERS,
    LEVELS,
    STORED,
    TYPE,
    VALUES,
)
from cklog.parsers.tables.parquet_loops import (
    DECODE,
    DICTIONARY,
    OLD_DICTIONARY,
    PLAIN,
    RLE,
    SNAPPY,
    STATE,
    TEXTS,
    UNCOMPRESSED,
    UNNAMED,
)
from cklog.parsers.tables.parquet_pages import DELTA_BYTE_ARRAY, INDICES, PageTotals
from cklog.parsers.tables.parquet_versions import NEWEST_ENCODING
from cklog.parsers.tables.records import BIGGEST

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class NotHere(Exception):
    """A column chunk has what only Arrow's reader reads."""


class StoredChunk(NamedTuple):
    """The bytes of a column chunk, its pages as `stored_pages` tells them, and what these add up to."""

    bytes: Bytes
    pages: Ints
    totals: PageTotals


def stored_pages(chunk: Bytes, most: int) -> Ints | None:
    """Return the pages of a column chunk, at most so many; None where a header is unusual, missing, or wrong.

    Shape (pages, `FIELDS`): of each what `HEADERS` tells, its place being in the chunk.
    """
    found = unfilled(FIELDS * most, np.int64)
    count = HEADERS(len(chunk), only_read(chunk), np.zeros(8, np.int64), found)
    if count < 0:
        return None
    pages = found[: FIELDS * count].reshape(-1, FIELDS)
    if (pages[:, ENCODING] > NEWEST_ENCODING).any():
        return None
    return None if ((pages[:, TYPE] == _DICTIONARY_PAGE) & (pages[:, VALUES] > pages[:, BYTES])).any() else pages


def totals_of_stored(stored: Ints) -> PageTotals:
    """Return what the pages of a column chunk add up to."""
    is_data = stored[:, TYPE] != _DICTIONARY_PAGE
    sizes = stored[:, BYTES]
    encodings = {*stored[is_data, ENCODING].tolist()}
    return PageTotals(
        pages=len(stored),
        dictionary=int((sizes * ~is_data).max(initial=0)),
        page=int((sizes * is_data).max(initial=0)),
        bytes=int(sizes.sum()),
        values=int((stored[:, VALUES] * is_data).sum()),
        shared=bool((is_data & (stored[:, ENCODING] == DELTA_BYTE_ARRAY)).any()),
        mixed=not encodings.isdisjoint(INDICES) and not encodings.issubset(INDICES),
    )


class LoopColumn:
    """A column chunk that is decoded by loops, some rows at a time, under its `name`.

    `chunk` is an array of its own, which stays as it is. `longest` is the size of its longest text. `in_range`: no
    number is less than 0 or beyond 64 bits, as its dictionary shows.

    Raises
    ------
    NotHere : only Arrow's reader can read it, or read on
    """

    def __init__(self, chunk: Bytes, stored: Ints, codec: int, column: Any, kind: pa.DataType) -> None:
        self._chunk, self._texts = chunk, pa.types.is_string(kind)
        fits = {"INT64": pa.types.is_int64(kind), "BYTE_ARRAY": self._texts}.get(column.physical_type, False)
        if not fits or column.max_repetition_level or column.max_definition_level > 1 or "." in column.path:
            raise NotHere
        self._nullable = column.max_definition_level
        if codec not in _CODECS:
            raise NotHere
        self._codec = codec
        self._dictionary: pa.Array | None = None
        self._values: Ints | Small = np.zeros(0, np.int32) if self._texts else np.zeros(0, np.int64)
        self._known = self.longest = 0
        self.name: str = column.path
        if len(stored) and stored[0, TYPE] == _DICTIONARY_PAGE:
            self._read_dictionary(stored[0])
            stored = stored[1:]
        usual = (OLD_DICTIONARY, DICTIONARY) if self._texts else (PLAIN, OLD_DICTIONARY, DICTIONARY)
        encodings = {*stored[:, ENCODING].tolist()}
        if (stored[:, TYPE] != _DATA_PAGE).any() or stored[:, CHECKED].any() or not encodings.issubset(usual):
            raise NotHere
        if self._nullable and (stored[:, LEVELS] != RLE).any():
            raise NotHere
        self._pages = stored
        self._stored = only_read(stored.reshape(-1))
        self._page = unfilled(int(stored[:, [BYTES, STORED]].max(initial=0)), np.uint8)
        self._state = np.zeros(STATE, np.int64)
        self._values = _padded(self._values)
        self.in_range = not self._texts and PLAIN not in encodings and are_small(pa.array(self._values))

    def take(self, count: int) -> pa.Array:
        """Return the next rows."""
        found = pooled(count, np.int32) if self._texts else pooled(count, np.int64)
        about = self._chunk, self._stored, self._codec, self._nullable, self._state, self._page
        row = 0
        while (row := DECODE(count - row, *about, self._values, self._known, found, row)) < count:
            if row == UNNAMED:  # in small batches Arrow's reader may have other values for them
                raise pa.ArrowInvalid(f"a page of column {self.name} has numbers that its dictionary has not")
            if row < 0:
                raise NotHere
            self._inflate_next()
        filled = arrow_integers(found)
        return filled if not self._texts else pa.DictionaryArray.from_arrays(filled, self._dictionary, safe=False)

    def undecoded(self) -> BlockColumn | None:
        """Return the rows from here on as loops decode them among others; None where they cannot without Arrow."""
        if self._codec not in (UNCOMPRESSED, SNAPPY) or (self._texts and self._dictionary is None):
            return None
        values = self._values.astype(np.int64, copy=False)
        given = (self._chunk, self._stored, self._codec, self._nullable, self._state, self._page, only_read(values))
        limit = ANY if self._texts or self.in_range else BIGGEST
        return BlockColumn(DECODE, (*given, self._known), limit, self._dictionary)

    def _inflate_next(self) -> None:
        """Inflate the next page, of what no loop inflates."""
        page = self._pages[self._state[4]]
        self._page[: page[BYTES]] = self._inflated(page)
        self._state[7] = 1

    def _inflated(self, page: Ints) -> Bytes:
        """Return the bytes of a page as they were before they were compressed."""
        at, size = int(page[AT]), int(page[BYTES])
        stored, codec = self._chunk[at : at + int(page[STORED])], _CODECS[self._codec]
        if codec is None:
            return stored
        try:
            return decompress_to_array(codec, stored, size)
        except DecompressionError:
            raise NotHere from None  # Arrow's reader says what is wrong with the page

    def _read_dictionary(self, page: Ints) -> None:
        data = self._inflated(page)
        self._known = known = int(page[VALUES])
        if page[CHECKED] or page[ENCODING] not in (PLAIN, OLD_DICTIONARY):
            raise NotHere
        if not self._texts:
            if len(data) != 8 * known:
                raise NotHere
            self._values = data.view("<i8")
            return
        if 4 * known > len(data):
            raise NotHere
        offsets, texts = unfilled(known + 1, np.int32), unfilled(len(data), np.uint8)
        if TEXTS(known, only_read(data), known, offsets, texts) < 0:
            raise NotHere
        self._dictionary = pa.Array.from_buffers(pa.string(), known, [None, pa.py_buffer(offsets), pa.py_buffer(texts)])
        try:
            self._dictionary.validate(full=True)
        except ARROW_ERRORS:
            raise NotHere from None
        self.longest = int(np.diff(offsets).max(initial=0))
        self._values = np.arange(known, dtype=np.int32)


_CODECS: dict[int, str | None] = {UNCOMPRESSED: None, SNAPPY: "snappy", 2: "gzip", 6: "zstd"}
"""By the number that a footer has for it."""


_LEAST_ROOM = 256
"""Some writers take more bits for a number than the dictionary needs: of one value Arrow takes one, and not none."""


def _padded(values: Ints | Small) -> Ints | Small:
    """Return the values of a dictionary, and zeros behind them: one for each number of as many bits as theirs take."""
    found = np.zeros(max(_LEAST_ROOM, 1 << max(len(values) - 1, 0).bit_length()), values.dtype)
    found[: len(values)] = values
    found.flags.writeable = False
    return found


def batches_of(
    columns: Sequence[LoopColumn], rows: int, most: int, kernel: BlockKernel | None
) -> Iterator[pa.RecordBatch | Folded]:
    """Yield the rows of a row group, `most` at once, or what a kernel makes of them while they are decoded.

    Raises
    ------
    NotHere : Arrow's reader has to go on
    """
    names = [column.name for column in columns]
    for at in range(0, rows, most):
        count = min(most, rows - at)
        blocks = None if kernel is None else _blocks_of(columns, count)
        if kernel is None or blocks is None:
            yield pa.RecordBatch.from_arrays([column.take(count) for column in columns], names=names)
            continue
        try:
            part = kernel.blocks(blocks)
        except (OSError, ValueError, *ARROW_ERRORS) as error:  # which of reading would be damage
            raise AssertionError(f"a kernel failed: {error}") from error
        if part is None:
            raise NotHere
        yield Folded(part, count)


def _blocks_of(columns: Sequence[LoopColumn], rows: int) -> Blocks | None:
    """Return the next rows as they are to be decoded; None where some column cannot be decoded among others."""
    found = {column.name: column.undecoded() for column in columns}
    known = {name: column for name, column in found.items() if column is not None}
    return Blocks(rows, known) if len(known) == len(found) else None
