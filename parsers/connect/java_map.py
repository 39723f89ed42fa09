"""The offsets file of a standalone worker, or of an engine embedded in a program: one serialised `java.util.HashMap`.

    stream  = ac ed 00 05  73 hashmap  f32 loadFactor  i32 threshold  77 08 i32 capacity  i32 size  pair*size  78
    pair    = bytes bytes
    bytes   = 70 null | 71 i32 handle | 75 bytearray  i32 length  so many bytes
    hashmap = class "java.util.HashMap" 05 07 da c1 c3 16 60 d1  03  0002 F "loadFactor" I "threshold"  78 70
    bytearray = class "[B" ac f3 17 f8 06 08 54 e0  02  0000  78 70         | 71 i32 handle, after the first
    class   = 72 u16 length, name, i64 serial, u8 flags, u16 fields
    a handle counts classes, objects and arrays from 7e0000, in order of appearance

`FileOffsetBackingStore` writes it over the old one, in place: a worker that is killed meanwhile leaves it cut short,
or empty. It then starts as if there were no file, without a word. Nothing but this one shape is read, and nothing is
built: whatever else Java's serialisation can hold is refused, by its place.
"""

from __future__ import annotations

import math
import re
import struct
from typing import NamedTuple

from cklog.errors import Picklable
from cklog.unknown_formats import require_known, require_known_name

STREAM = b"\xac\xed\x00\x05"
_FIRST_HANDLE = 0x7E0000
_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_CLASS_NAME = re.compile(rb"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)+")
_MAP_NAME = "java.util.HashMap"
_MAP = (
    struct.pack(">H", len(_MAP_NAME))
    + _MAP_NAME.encode()
    + bytes.fromhex("0507dac1c31660d1")
    + b"\x03"  # serializable, and writes more than its fields
    + b"\x00\x02"
    + b"F\x00\x0aloadFactor"
    + b"I\x00\x09threshold"
    + b"\x78\x70"
)
_BYTES = b"\x00\x02[B" + bytes.fromhex("acf317f8060854e0") + b"\x02\x00\x00\x78\x70"
_I32, _F32 = struct.Struct(">i"), struct.Struct(">f")


class NotThisMap(Picklable, Exception):
    """Raised for bytes that are no such file: at byte `at`, and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(f"{why} at byte {at}")
        self.at, self.why = at, why


class MapCutShort(NotThisMap):
    """Raised where the file ends inside the map: what a worker takes for no file at all."""


class Pair(NamedTuple):
    """A key and a value of the map, and the byte at which the key's array begins."""

    at: int
    key: bytes | None
    value: bytes | None


class MapRead(NamedTuple):
    """The pairs of a map in the order of the file, and where it ends; what follows there nobody reads."""

    pairs: tuple[Pair, ...]
    end: int


def read_map(data: bytes) -> MapRead:
    """Read the map of a file.

    Raises
    ------
    NotThisMap : it holds anything else
    UnknownFormat : it is a stream of a later version, or an object of another class
    MapCutShort : it ends inside
    """
    read = _Reader(data)
    read.exactly(STREAM[:2], "the start of a Java stream")
    version = int.from_bytes(data[2:4], "big") if len(data) > 3 else 0
    require_known("version of the Java stream", version, STREAM[3])
    read.exactly(STREAM[2:], "the version of the Java stream")
    read.exactly(bytes((_OBJECT, _CLASS)), "an object")
    _require_known_class(data[read.at :])
    read.exactly(_MAP, "the class java.util.HashMap")
    factor_at, factor = read.at, _F32.unpack(read.take(4))[0]
    if math.isnan(factor) or factor <= 0:
        raise NotThisMap(factor_at, f"a load factor of {factor}")
    read.take(4)
    read.exactly(bytes((_BLOCK, 8)), "the sizes of the map")
    read.take(4)
    size_at, size = read.at, read.i32()
    if size < 0:
        raise NotThisMap(size_at, f"a map of {size} pairs")
    arrays = _Arrays(read)
    pairs = []
    for _ in range(size):  # each takes two bytes at least, so that a false size ends with the file
        at = read.at
        pairs.append(Pair(at, arrays.next(), arrays.next()))
    read.exactly(bytes((_END,)), "the end of the map")
    return MapRead(tuple(pairs), read.at)


def _require_known_class(data: bytes) -> None:
    """Raise `UnknownFormat` where the description of a class, which begins here, is that of another one."""
    length = int.from_bytes(data[:2], "big")
    name = data[2 : 2 + length]
    if len(name) == length and _CLASS_NAME.fullmatch(name):
        require_known_name("class", name.decode(), [_MAP_NAME])


class _Reader:
    """A place in bytes, which moves behind what is read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        """Read so many bytes."""
        end = self.at + length
        if end > len(self.data):
            raise MapCutShort(self.at, f"{length} bytes are wanted and {len(self.data) - self.at} are left")
        found = self.data[self.at : end]
        self.at = end
        return found

    def i32(self) -> int:
        """Read a signed number of 32 bits."""
        return int(_I32.unpack(self.take(4))[0])

    def exactly(self, wanted: bytes, what: str) -> None:
        """Read these bytes and no others."""
        for byte in wanted:
            found = self.take(1)[0]
            if found != byte:
                raise NotThisMap(self.at - 1, f"{found:02x} in place of {byte:02x}, in {what}")


class _Arrays:
    """The arrays of bytes of a map, with the handles that they have: 0 is the map's class, 1 the map."""

    def __init__(self, read: _Reader) -> None:
        self._read = read
        self._handles: list[bytes | None] = [None, None]
        self._class: int | None = None

    def next(self) -> bytes | None:
        """Read an array; None: null stands there."""
        read = self._read
        at, kind = read.at, read.take(1)[0]
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            found = self._named(self._handle())
            if found is None:
                raise NotThisMap(at, "a reference to what is no array of bytes")
            return found
        if kind != _ARRAY:
            raise NotThisMap(at, f"a value of type {kind:02x}, where arrays of bytes are")
        self._array_class()
        length_at, length = read.at, read.i32()
        if length < 0:
            raise NotThisMap(length_at, f"an array of {length} bytes")
        made = read.take(length)
        self._handles.append(made)
        return made

    def _array_class(self) -> None:
        """Pass over the class of an array, written out the first time and referred to from then on."""
        read = self._read
        at, kind = read.at, read.take(1)[0]
        if kind == _REFERENCE and self._class is not None and self._handle() == self._class:
            return
        if kind != _CLASS:
            raise NotThisMap(at, "an array whose class is not that of bytes")
        read.exactly(_BYTES, "the class of arrays of bytes")
        self._class = len(self._handles) if self._class is None else self._class
        self._handles.append(None)

    def _handle(self) -> int:
        return self._read.i32() - _FIRST_HANDLE

    def _named(self, handle: int) -> bytes | None:
        return self._handles[handle] if 0 <= handle < len(self._handles) else None
