"""Thrift's compact protocol, in which Parquet writes footers and headers of pages: a reader of the fields that matter.

struct    = (delta:4 kind:4 [id] value)* 00           an id is that of the field before it + delta, or is said
list      = count:4 kind:4 [count] value*             the second count where the first is 15
binary    = length bytes                              lengths, counts and integers: 7 bits a byte, lowest first
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""Kinds of values; of a boolean field the kind is the value."""

_DEEPEST = 16
_LONGEST_VARINT = 10


class Field(NamedTuple):
    """A field that matters: its kind, and how its value is read."""

    kind: int
    read: Callable[[Compact], Any]


class Compact:
    """A reader of the compact protocol; `IndexError`, `ValueError` or `struct.error` where bytes do not follow it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at(self) -> int:
        """How many bytes were read."""
        return self._at

    def fields(self, wanted: Mapping[int, Field], depth: int = 0) -> dict[int, Any]:
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

    def leading(self, wanted: Mapping[int, Field]) -> dict[int, Any]:
        """Read the fields that are wanted from the beginning of a struct, up to the first other one."""
        found: dict[int, Any] = {}
        id = 0
        while head := self._byte():
            id = id + (head >> 4) if head >> 4 else self.integer()
            field = wanted.get(id)
            if field is None or field.kind != head & 15:
                break
            found[id] = field.read(self)
        return found

    def union(self, depth: int) -> int:
        """Pass over a struct of one field; return the id of that field."""
        id = 0
        while head := self._byte():
            id = id + (head >> 4) if head >> 4 else self.integer()
            self._pass(head & 15, depth)
        return id

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

    def list_of(self, kind: int, read: Callable[[Compact], Any]) -> list[Any]:
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
        if kind in (TRUE, FALSE):
            self._at += in_list
        elif kind == BYTE:
            self._at += 1
        elif kind in (I16, I32, I64):
            self._count()
        elif kind == DOUBLE:
            self._at += 8
        elif kind == BINARY:
            self.binary()
        elif kind == STRUCT:
            self.fields({}, depth + 1)
        elif depth > _DEEPEST:
            raise ValueError("too deep")
        elif kind in (LIST, SET):
            count, inner = self._head_of_list()
            for _ in range(count):
                self._pass(inner, depth + 1, in_list=True)
        elif kind == MAP:
            count = self._count()
            kinds = self._byte() if count else 0
            if count > len(self._data) - self._at:
                raise ValueError("too short")
            for _ in range(count):
                self._pass(kinds >> 4, depth + 1, in_list=True)
                self._pass(kinds & 15, depth + 1, in_list=True)
        else:
            raise ValueError("no such kind")
