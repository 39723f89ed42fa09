"""Headers of Parquet pages: what each page becomes, which the footer of a file need not say truly.

    column chunk = [dictionary page] page*       page = header  (compressed) bytes
    header       = Thrift's compact protocol: 1 type  2 bytes of the page, inflated  3 bytes of it in the file
                   5, 7, 8 what is special to a data page, a dictionary, a data page of version 2: 1 values, 2 encoding
                   (in 8 the encoding is 4)

Arrow allocates what a header asks for, and a page of a few bytes may hold a value for each of millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

DICTIONARY = 2
DELTA_BYTE_ARRAY = 7
"""An encoding in which each text may begin with the whole text before it."""

_FIRST_READ, _LONGEST_HEADER = 512, 16 << 20
_KINDS = {5: (1, 2), 7: (1, 2), 8: (1, 4)}
"""By field of the header that tells of a kind of page: the fields in it with the number of values and the encoding."""

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST = 16


class Page(NamedTuple):
    """A page: its type, its bytes when inflated, how many values it has, and their encoding."""

    type: int
    bytes: int
    values: int
    encoding: int


def pages(handle: Any, start: int, size: int) -> Iterator[Page]:
    """Read the headers of the pages of the column chunk at byte `start`.

    Raises
    ------
    ArrowInvalid : there is no header where one should be
    """
    at, end = start, start + size
    while at < end:
        length, fields = _read_header(handle, at, end)
        stored = fields.get(3, -1)
        if not isinstance(stored, int) or stored < 0:
            raise pa.ArrowInvalid(f"no page begins at byte {at}")
        yield _page_of(fields)
        at += length + stored


def _page_of(fields: dict[int, Any]) -> Page:
    """Return a page by the fields of its header; numbers that are not there are 0."""
    values = encoding = 0
    for number, (count, kind) in _KINDS.items():
        inner = fields.get(number)
        if isinstance(inner, dict):
            values, encoding = inner.get(count, 0), inner.get(kind, 0)
    return Page(fields.get(1, 0), fields.get(2, 0), values, encoding)


def _read_header(handle: Any, at: int, end: int) -> tuple[int, dict[int, Any]]:
    """Read the header at a byte; return its length and its fields by their numbers."""
    size = _FIRST_READ
    while True:
        handle.seek(at)
        data = handle.read(min(size, end - at))
        try:
            fields, length = _read_struct(data, 0, 0)
            return length, fields
        except IndexError:
            if size >= min(end - at, _LONGEST_HEADER):
                raise pa.ArrowInvalid(f"the header of the page at byte {at} does not end") from None
            size *= 8


def _read_struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Read a struct of the compact protocol; return its fields, and where it ends. IndexError: it is cut short."""
    found: dict[int, Any] = {}
    number = 0
    while data[at] != _STOP:
        step, kind = data[at] >> 4, data[at] & 0x0F
        at += 1
        if step:
            number += step
        else:
            number, at = _read_integer(data, at)
        if kind in (_TRUE, _FALSE):
            found[number] = kind == _TRUE
        else:
            found[number], at = _read_value(data, at, kind, depth)
    return found, at + 1


def _read_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Read a value; a text, and what is in lists, is passed over."""
    if kind == _STRUCT and depth < _DEEPEST:
        return _read_struct(data, at, depth + 1)
    if kind in (_BYTE, _DOUBLE):
        return None, _checked(data, at + (1 if kind == _BYTE else 8))
    if kind == _BINARY:
        size, at = _read_varint(data, at)
        return None, _checked(data, at + size)
    if _BYTE < kind < _DOUBLE:
        return _read_integer(data, at)
    raise pa.ArrowInvalid(f"the header of a page has a field of type {kind}")


def _checked(data: bytes, at: int) -> int:
    """Return a place in the data; IndexError if it lies behind its end."""
    if at > len(data):
        raise IndexError(at)
    return at


def _read_integer(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed number, which is folded so that small ones are short."""
    found, at = _read_varint(data, at)
    return (found >> 1) ^ -(found & 1), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in groups of seven bits, the least first.

    >>> _read_varint(b"\\xac\\x02", 0)
    (300, 2)
    """
    found = shift = 0
    while data[at] & 0x80:
        found |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if shift > 63:
            raise pa.ArrowInvalid("a number of more than 64 bits in the header of a page")
    return found | data[at] << shift, at + 1
