"""Java's object streams by their grammar ("Java Object Serialization Specification", section 6.4), as values of Python.

Maps and arrays of bytes are all that is asked for; everything that the grammar has besides raises `NotJava`. Lists of
a tag and what belongs to it come out: ("map", pairs), ("bytes", bytes), ("class", name), None.
"""

from __future__ import annotations

import io
import math
from typing import Any

_HASH_MAP_ID = 362498820763181265
_BYTES_ID = -5984413125824719648


class NotJava(Exception):
    """Raised where the grammar has no rule for what stands there."""


class JavaStream:
    """A stream that is read from its first byte on."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self._objects: list[Any] = []

    def read_object(self) -> Any:
        """Return the object that the stream begins with."""
        if self._number(2) != 0xACED or self._number(2) != 5:
            raise NotJava("no stream")
        return self._content()

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count) if count >= 0 else b""
        if len(found) != count:
            raise NotJava("the stream ends")
        return found

    def _number(self, width: int, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(width), "big", signed=signed)

    def _new_handle(self, value: Any) -> int:
        self._objects.append(value)
        return len(self._objects) - 1

    def _content(self) -> Any:
        tag = self._number(1)
        if tag == 0x70:
            return None
        if tag == 0x71:
            return self._back_reference()
        if tag == 0x73:
            return self._object()
        if tag == 0x75:
            return self._array()
        raise NotJava(f"tag {tag:x}")

    def _back_reference(self) -> Any:
        number = self._number(4) - 0x7E0000
        if not 0 <= number < len(self._objects):
            raise NotJava("an invalid handle")
        return self._objects[number]

    def _class(self) -> Any:
        """Return what describes a class: ("class", name, id, flags, fields, parent); None where there is none."""
        tag = self._number(1)
        if tag == 0x70:
            return None
        if tag == 0x71:
            found = self._back_reference()
            if not (isinstance(found, tuple) and found[0] == "class"):
                raise NotJava("a handle of what is no class")
            return found
        if tag != 0x72:
            raise NotJava(f"tag {tag:x} for a class")
        name = self._bytes(self._number(2)).decode("latin-1")
        number = self._number(8, signed=True)
        place = self._new_handle(None)
        flags = self._number(1)
        fields = []
        for _ in range(self._number(2, signed=True)):
            kind = chr(self._number(1))
            if kind not in "BCDFIJSZ":
                raise NotJava("a field that is no number")
            fields.append((kind, self._bytes(self._number(2)).decode("latin-1")))
        if self._number(1) != 0x78:
            raise NotJava("annotations of a class")
        parent = self._class()
        self._objects[place] = found = ("class", name, number, flags, tuple(fields), parent)
        return found

    def _object(self) -> Any:
        described = self._class()
        if described is None:
            raise NotJava("an object without a class")
        _, name, number, flags, fields, parent = described
        if name != "java.util.HashMap" or number != _HASH_MAP_ID or flags != 3 or parent is not None:
            raise NotJava(f"an object of class {name}")
        pairs: list[tuple[Any, Any]] = []
        self._new_handle(("map", pairs))
        widths = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
        values = {field: self._bytes(widths[kind]) for kind, field in fields}
        factor = _float_of(values.get("loadFactor", bytes(4)))
        if not factor > 0 or math.isnan(factor):
            raise NotJava("the load factor")
        block = io.BytesIO(self._block())
        buckets, size = block.read(4), block.read(4)
        if len(buckets) + len(size) != 8 or block.read(1):
            raise NotJava("a block of another length")
        for _ in range(_signed(size)):
            pairs.append((self._content(), self._content()))
        if _signed(size) < 0 or self._number(1) != 0x78:
            raise NotJava("the end of a map")
        return ("map", pairs)

    def _block(self) -> bytes:
        if self._number(1) != 0x77:
            raise NotJava("no block of data")
        return self._bytes(self._number(1))

    def _array(self) -> Any:
        described = self._class()
        if described is None or described[1] != "[B" or described[2] != _BYTES_ID or described[4]:
            raise NotJava("an array of something else")
        place = self._new_handle(None)
        self._objects[place] = found = ("bytes", self._bytes(self._number(4, signed=True)))
        return found


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _float_of(data: bytes) -> float:
    """Return the number of an IEEE 754 binary32, from its sign, exponent and fraction."""
    word = int.from_bytes(data, "big")
    sign, exponent, fraction = -1.0 if word >> 31 else 1.0, word >> 23 & 0xFF, word & 0x7FFFFF
    if exponent == 0xFF:
        return math.nan if fraction else sign * math.inf
    return sign * math.ldexp(fraction + (1 << 23 if exponent else 0), max(exponent, 1) - 150)
