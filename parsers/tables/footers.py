"""What the footer of a Parquet file notes of its row groups: the least and the greatest of columns of 64-bit integers.

pyarrow ends the process where a footer's entry of a column contradicts itself, and no checksum covers a footer. So
these entries are read here, and pyarrow is never asked for them. A footer is a `FileMetaData` in Thrift's compact
protocol; of its fields only those below matter, the others are passed over.

    file      = … FileMetaData length:u32 "PAR1"
    struct    = (delta:4 kind:4 [id] value)* 00           an id is that of the field before it + delta, or is said
    list      = count:4 kind:4 [count] value*             the second count where the first is 15
    binary    = length bytes                              lengths, counts and integers: 7 bits a byte, lowest first
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_TAIL = struct.Struct("<I4s")
_INTEGER = struct.Struct("<q")
_INT64 = 2
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 16
_LONGEST_VARINT = 10

Bounds = dict[str, tuple[int, int]]
"""(least, greatest) by column."""


class _Field(NamedTuple):
    """A field that matters: its kind, and how its value is read."""

    kind: int
    read: Callable[[_Compact], Any]


def bounds_of_row_groups(file: Any) -> list[Bounds] | None:
    """Return what is noted of each row group of an open file, None if its footer does not make sense.

    Columns inside others, such as the values of maps, are left out.
    """
    size = file.size()
    file.seek(max(size - _TAIL.size, 0))
    tail = file.read(_TAIL.size)
    if len(tail) < _TAIL.size:
        return None
    length, mark = _TAIL.unpack(tail)
    if mark != b"PAR1" or length > size - _TAIL.size:
        return None
    file.seek(size - _TAIL.size - length)
    return bounds_in(file.read(length))


def bounds_in(footer: bytes) -> list[Bounds] | None:
    """Return the same of the bytes of a footer."""
    try:
        found: list[Bounds] = _Compact(footer).fields(_FILE).get(4, [])
    except (IndexError, ValueError, struct.error):
        return None
    return found


class _Compact:
    """A reader of the compact protocol; `IndexError`, `ValueError` or `struct.error` where bytes do not follow it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self, wanted: Mapping[int, _Field], depth: int = 0) -> dict[int, Any]:
        """Read a struct: the fields that are wanted, by id."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        id = 0
        while head := self._byte():
            id = id + (head >> 4) if head >> 4 else self.integer()
            kind, field = head & 15, wanted.get(id)
            if field is None:
                self._pass(kind, depth)
            elif field.kind != kind:
                raise ValueError("another kind")
            else:
                found[id] = field.read(self)
        return found

    def integer(self) -> int:
        """Read a signed integer."""
        number = self._count()
        return number >> 1 ^ -(number & 1)

    def binary(self) -> bytes:
        """Read bytes that are as many as is said before them."""
        length = self._count()
        self._at += length
        if self._at > len(self._data):
            raise ValueError("too short")
        return self._data[self._at - length : self._at]

    def list_of(self, kind: int, read: Callable[[_Compact], Any]) -> list[Any]:
        """Read a list of values of a kind."""
        count, found = self._head_of_list()
        if count and found != kind:
            raise ValueError("another kind")
        return [read(self) for _ in range(count)]

    def _head_of_list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._count()
        if count > len(self._data) - self._at:  # a value takes a byte at least
            raise ValueError("too short")
        return count, head & 15

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _count(self) -> int:
        data, at, found, shift = self._data, self._at, 0, 0
        while True:
            byte = data[at]
            at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at
                return found
            shift += 7
            if shift >= 7 * _LONGEST_VARINT:
                raise ValueError("too long")

    def _pass(self, kind: int, depth: int, in_list: bool = False) -> None:
        """Pass over a value; of a boolean field the kind is the value."""
        if kind in (_TRUE, _FALSE):
            self._at += in_list
        elif kind == _BYTE:
            self._at += 1
        elif kind in (_I16, _I32, _I64):
            self._count()
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            self.binary()
        elif kind == _STRUCT:
            self.fields({}, depth + 1)
        elif depth > _DEEPEST:
            raise ValueError("too deep")
        elif kind in (_LIST, _SET):
            count, inner = self._head_of_list()
            for _ in range(count):
                self._pass(inner, depth + 1, in_list=True)
        elif kind == _MAP:
            count = self._count()
            kinds = self._byte() if count else 0
            if count > len(self._data) - self._at:
                raise ValueError("too short")
            for _ in range(count):
                self._pass(kinds >> 4, depth + 1, in_list=True)
                self._pass(kinds & 15, depth + 1, in_list=True)
        else:
            raise ValueError("no such kind")


def _bounds_of_group(compact: _Compact) -> Bounds:
    """Read a row group's entry."""
    columns = compact.fields(_GROUP).get(1, [])
    return {name: bounds for name, bounds in columns if bounds is not None}


def _column(compact: _Compact) -> tuple[str, tuple[int, int] | None]:
    """Read a column's entry: its name, and its bounds if it holds integers whose bounds are noted."""
    about = compact.fields(_CHUNK, 2).get(3, {})
    path, noted = about.get(3, []), about.get(12, {})
    if about.get(1) != _INT64 or len(path) != 1:
        return "", None
    least, greatest = noted.get(6, noted.get(2, b"")), noted.get(5, noted.get(1, b""))
    if len(least) != _INTEGER.size or len(greatest) != _INTEGER.size:
        return "", None
    return path[0].decode(), (_INTEGER.unpack(least)[0], _INTEGER.unpack(greatest)[0])


_NOTED = {id: _Field(_BINARY, _Compact.binary) for id in (1, 2, 5, 6)}
"""`Statistics`: the greatest and the least, in fields of old and of new writers."""

_ABOUT = {
    1: _Field(_I32, _Compact.integer),
    3: _Field(_LIST, lambda compact: compact.list_of(_BINARY, _Compact.binary)),
    12: _Field(_STRUCT, lambda compact: compact.fields(_NOTED, 4)),
}
"""`ColumnMetaData`: type, path_in_schema, statistics."""

_CHUNK = {3: _Field(_STRUCT, lambda compact: compact.fields(_ABOUT, 3))}
_GROUP = {1: _Field(_LIST, lambda compact: compact.list_of(_STRUCT, _column))}
_FILE = {4: _Field(_LIST, lambda compact: compact.list_of(_STRUCT, _bounds_of_group))}
"""`ColumnChunk`: meta_data; `RowGroup`: columns; `FileMetaData`: row_groups."""
