"""Headers of Parquet pages: what each page becomes, which the footer of a file need not say truly.

    column chunk = [dictionary page] page*       page = header  (compressed) bytes
    header       = Thrift's compact protocol: 1 type  2 bytes of the page, inflated  3 bytes of it in the file
                   5, 7, 8 what is special to a data page, a dictionary, a data page of version 2: 1 values, 2 encoding
                   (in 8 the encoding is 4)

Arrow allocates what a header asks for, and a page of a few bytes may hold a value for each of millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.parsers.tables.compact import I32, STRUCT, Compact, Field
from cklog.parsers.tables.parquet_versions import NEWEST_ENCODING, NEWEST_PAGE_TYPE
from cklog.unknown_formats import require_known

DICTIONARY = 2
INDICES = (2, 8)
"""Encodings of a data page that has numbers of texts in the dictionary, not texts."""

DELTA_BYTE_ARRAY = 7
"""An encoding in which each text may begin with the whole text before it."""

_FIRST_READ, _LONGEST_HEADER = 512, 16 << 20


class Page(NamedTuple):
    """A page: its type, its bytes when inflated, how many values it has, and their encoding."""

    type: int
    bytes: int
    values: int
    encoding: int


class PageTotals(NamedTuple):
    """What the pages of a column chunk add up to: their number, the bytes of its dictionary, of its largest page and of
    all pages, and the values. `shared`: texts may repeat what stands before them. `mixed`: some pages have indices into
    the dictionary, and others the values themselves.
    """

    pages: int
    dictionary: int
    page: int
    bytes: int
    values: int
    shared: bool
    mixed: bool


def totals_of(found: Iterable[Page], most: int) -> PageTotals:
    """Add pages up; of more than `most` no more than the first one beyond is looked at."""
    count = dictionary = largest = total = values = 0
    shared = False
    forms = set()
    for page in found:
        count += 1
        if count > most:
            break
        total += page.bytes
        if page.type == DICTIONARY:
            dictionary = max(dictionary, page.bytes)
        else:
            largest, values = max(largest, page.bytes), values + page.values
            shared = shared or page.encoding == DELTA_BYTE_ARRAY
            forms.add(page.encoding in INDICES)
    return PageTotals(count, dictionary, largest, total, values, shared, len(forms) > 1)


def pages(handle: Any, start: int, size: int) -> Iterator[Page]:
    """Read the headers of the pages of the column chunk at byte `start`.

    Raises
    ------
    ArrowInvalid : there is no header where one should be, or one that cannot be true
    UnknownFormat : a page is of a type, or in an encoding, that cklog does not know
    """
    at, end = start, start + size
    while at < end:
        length, fields = _read_header(handle, at, end)
        inner: dict[int, int] = next((fields[kind] for kind in _KINDS if kind in fields), {})
        found = Page(fields.get(1, 0), fields.get(2, 0), inner.get(1, 0), inner.get(4, inner.get(2, 0)))
        stored = fields.get(3, -1)
        if min(stored, found.bytes, found.values) < 0:
            raise pa.ArrowInvalid(f"no page begins at byte {at}")
        if found.type == DICTIONARY and found.values > found.bytes:  # Arrow allocates for as many as the header says
            raise pa.ArrowInvalid(f"the dictionary at byte {at} has {found.values} values in {found.bytes} bytes")
        require_known(f"the page at byte {at} has type", found.type, NEWEST_PAGE_TYPE)
        require_known(f"the page at byte {at} has encoding", found.encoding, NEWEST_ENCODING)
        yield found
        at += length + stored


def _read_header(handle: Any, at: int, end: int) -> tuple[int, dict[int, Any]]:
    """Read the header at a byte; return its length and its fields by their numbers."""
    size = _FIRST_READ
    while True:
        handle.seek(at)
        header = Compact(handle.read(min(size, end - at)))
        try:
            fields = header.fields(_HEADER)
            return header.at, fields
        except (IndexError, ValueError) as error:  # it is no header, or goes on
            if size >= min(end - at, _LONGEST_HEADER):
                raise pa.ArrowInvalid(f"the header of the page at byte {at} cannot be read: {error}") from None
            size *= 8


_DATA = {1: Field(I32, Compact.integer), 2: Field(I32, Compact.integer)}
_DATA_2 = {1: Field(I32, Compact.integer), 4: Field(I32, Compact.integer)}
"""The number of values, and the encoding."""

_KINDS = {
    5: Field(STRUCT, lambda compact: compact.fields(_DATA, 1)),
    7: Field(STRUCT, lambda compact: compact.fields(_DATA, 1)),
    8: Field(STRUCT, lambda compact: compact.fields(_DATA_2, 1)),
}
_HEADER = {number: Field(I32, Compact.integer) for number in (1, 2, 3)} | _KINDS
