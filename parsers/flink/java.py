"""What Java's DataOutputStream and ObjectOutputStream write, read from bytes that may be anything.

    DataOutputStream    integers big-endian two's complement; boolean = 1 byte, 0 or 1
                        utf = length:u16 and so many bytes of modified UTF-8: U+0000 as C0 80, and what lies beyond
                        U+FFFF as two surrogates of three bytes each
    ObjectOutputStream  ac ed 00 05 content         content = 70 null | 71 handle:i32 | 73 class field* | 74 utf
                                                            | 7e class content(the constant's name)
                        class = 70 | 71 handle:i32 | 72 utf serial:i64 flags:u8 n:u16 (type:u8 utf [content])*n 78 class
                        a handle counts classes, objects, strings and constants from 7e0000, in order of appearance

Of the second only what the classes of Flink's checkpoint properties need is known: no arrays, no class that writes
itself. What is cut short or impossible raises `Malformed`, with its place; what is merely unknown raises `Unknown`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cklog.budgets import JAVA_NESTED
from cklog.errors import Picklable
from cklog.parsers.flink.derived import is_class_name, is_descriptor
from cklog.unknown_formats import BEYOND_VERSIONS, UnknownFormat, is_one_bit_off

_I32, _I64, _U16 = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">H")
_STREAM = b"\xac\xed\x00\x05"
_FIRST_HANDLE = 0x7E0000
_PRIMITIVES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
_SERIALIZABLE, _ENUM = 0x02, 0x10


class Malformed(Picklable, Exception):
    """Raised where bytes cannot be what they should be: at byte `at`, and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


class Unknown(Picklable, Exception):
    """Raised for something that may well be right, but that is not decoded here."""


class UnknownVersion(Unknown, UnknownFormat):
    """Raised for a number or a name, at byte `at`, that Flink may have from a later version on: the bytes may be right.

    What it stands for is a version, a type or a layout, so that nothing after it can be read.
    """

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


def wrong_number(at: int, number: int, newest: int, why: str) -> Malformed | UnknownVersion:
    """Return what to raise for a number that no known version has: a later one may have a greater one."""
    later = newest < number < BEYOND_VERSIONS
    return UnknownVersion(at, f"{why}, known are up to {newest}") if later else Malformed(at, why)


def wrong_name(at: int, name: str, known: Iterable[str], why: str) -> Malformed | UnknownVersion:
    """Return what to raise for a name that no known version has: one bit beside a known one it is damaged."""
    return Malformed(at, why) if is_one_bit_off(name, known) else UnknownVersion(at, why)


class Cursor:
    """A place in bytes, which moves behind what is read; nothing is read at or behind `end`.

    All methods raise `Malformed` where fewer bytes are left than they need; `what` is what to call them then. The
    hottest methods check the bounds themselves, and leave it to `skip` to complain.
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def skip(self, length: int, what: str) -> int:
        """Pass over bytes; return where they begin."""
        at = self.at
        if not 0 <= length <= self.end - at:
            raise Malformed(at, f"{what} of {length} bytes where {self.end - at} are left")
        self.at = at + length
        return at

    def u8(self, what: str = "a byte") -> int:
        """Read an unsigned byte."""
        at = self.at
        if at >= self.end:
            self.skip(1, what)
        self.at = at + 1
        return self.data[at]

    def u16(self, what: str = "a number") -> int:
        """Read an unsigned number of 16 bits."""
        return int(_U16.unpack_from(self.data, self.skip(2, what))[0])

    def i32(self, what: str = "a number") -> int:
        """Read a signed number of 32 bits."""
        return int(_I32.unpack_from(self.data, self.skip(4, what))[0])

    def i64(self, what: str = "a number") -> int:
        """Read a signed number of 64 bits."""
        return int(_I64.unpack_from(self.data, self.skip(8, what))[0])

    def flag(self, what: str) -> bool:
        """Read a boolean of one byte."""
        found = self.u8(what)
        if found > 1:
            raise Malformed(self.at - 1, f"{what} is {found}, neither 0 nor 1")
        return found == 1

    def size(self, what: str) -> int:
        """Read a number of 64 bits that counts bytes: it is not negative."""
        found = self.i64(what)
        if found < 0:
            raise Malformed(self.at - 8, f"{what} is {found}")
        return found

    def count(self, smallest: int, what: str) -> int:
        """Read how many things follow (i32), each of at least `smallest` bytes."""
        found = self.i32(f"the number of {what}")
        if not 0 <= found <= (self.end - self.at) // smallest:
            left = self.end - self.at
            raise Malformed(self.at - 4, f"{found} {what} of at least {smallest} bytes where {left} are left")
        return found

    def blob(self, what: str) -> int:
        """Pass over bytes with their length (i32) before them; return where they begin."""
        return self.skip(self.i32(f"the length of {what}"), what)

    def utf(self, what: str) -> str:
        """Read a string of modified UTF-8, its length (u16) before it."""
        start = self.at + 2
        if start > self.end:
            self.skip(2, what)
        (length,) = _U16.unpack_from(self.data, self.at)
        self.at = start
        if length > self.end - start:
            self.skip(length, what)
        self.at = start + length
        raw = self.data[start : self.at]
        if raw.isascii() and b"\0" not in raw:
            return raw.decode("ascii")
        return _modified_utf8(raw, start, what)

    def done(self, what: str) -> None:
        """Raise unless everything is read."""
        if self.at != self.end:
            raise Malformed(self.at, f"{self.end - self.at} bytes behind {what}")


def _modified_utf8(raw: bytes, at: int, what: str) -> str:
    """Decode modified UTF-8, to the letter of it; `at` is where `raw` begins in the file.

    >>> _modified_utf8(b"a\\xc0\\x80\\xed\\xa0\\xbd\\xed\\xb8\\x80", 0, "a name")
    'a\\x00😀'
    """
    wrong = next((i for i, byte in enumerate(raw) if byte == 0 or byte >= 0xF0), None)
    if wrong is not None:
        raise Malformed(at + wrong, f"{what} has a byte {raw[wrong]:02x}, which modified UTF-8 never has")
    try:
        halves = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise Malformed(at, f"{what} is not modified UTF-8") from None


class Instance(NamedTuple):
    """An object of the class `name`; fields by name. Of a number only that it is there: its value is None."""

    name: str
    fields: dict[str, JavaValue]


class Constant(NamedTuple):
    """A constant of an enumeration."""

    enum: str
    name: str


JavaValue = None | bool | str | Instance | Constant


class _Class(NamedTuple):
    name: str
    flags: int
    fields: tuple[tuple[str, str], ...]  # (name, type)
    parent: _Class | None


def serialized(cursor: Cursor) -> JavaValue:
    """Read the one value of an object stream that fills the rest of the cursor.

    Raises
    ------
    Malformed
        it is cut short, goes on behind its value, or is no object stream.
    Unknown
        it holds something that is not decoded here.
    """
    at = cursor.skip(len(_STREAM), "the start of an object stream")
    found = cursor.data[at : cursor.at]
    if found != _STREAM:
        if found[:2] == _STREAM[:2] and found > _STREAM:
            raise UnknownVersion(at, f"an object stream of version {int.from_bytes(found[2:], 'big')}, known is 5")
        raise Malformed(at, f"{found.hex()} is not how an object stream begins")
    value = _Objects(cursor).content(0)
    cursor.done("an object stream")
    return value


class _Objects:
    """A reader of contents that remembers what handles name: `_handles[n]` is what handle 7e0000 + n stands for."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._handles: list[JavaValue | _Class] = []

    def content(self, depth: int) -> JavaValue:
        """Read one content, which is nested `depth` deep."""
        cursor = self._cursor
        if depth > JAVA_NESTED:
            raise Unknown(f"objects nested more than {JAVA_NESTED} deep")
        kind = cursor.u8("a serialized value")
        if kind == 0x70:
            return None
        if kind == 0x71:
            number, known = self._read_handle()
            if isinstance(known, str | Instance | Constant):
                return known
            raise _of_nothing(cursor, number)
        if kind == 0x74:
            text = cursor.utf("a string")
            self._handles.append(text)
            return text
        if kind == 0x7E:
            return self._constant(depth)
        if kind == 0x73:
            return self._instance(depth)
        raise Unknown(f"a serialized value of type {kind:#04x} at byte {cursor.at - 1}")

    def _instance(self, depth: int) -> Instance:
        """Read an object: its class, then the fields of each class that it is of, the oldest first."""
        described = self._class(depth)
        if described is None:
            raise Malformed(self._cursor.at, "an object without a class")
        made = Instance(described.name, {})
        self._handles.append(made)
        for one in _lineage(described):
            if one.flags != _SERIALIZABLE:
                raise Unknown(f"class {one.name} writes its objects itself")
            for name, type_ in one.fields:
                made.fields[name] = self._field(type_, depth)
        return made

    def _field(self, type_: str, depth: int) -> JavaValue:
        if type_ in "L[":
            return self.content(depth + 1)
        if type_ == "Z":
            return self._cursor.flag("a boolean")
        self._cursor.skip(_PRIMITIVES[type_], "a field")
        return None  # no number is of interest

    def _constant(self, depth: int) -> Constant:
        """Read a constant: its class, then its name, which has the handle after the constant's own."""
        described = self._class(depth)
        if described is None or not described.flags & _ENUM:
            raise Malformed(self._cursor.at, "a constant of no enumeration")
        place = len(self._handles)
        self._handles.append(None)
        at, name = self._cursor.at, self.content(depth + 1)
        if not isinstance(name, str) or not is_class_name(name):
            raise Malformed(at, f"a constant whose name is {name!r:.99}")
        made = Constant(described.name, name)
        self._handles[place] = made
        return made

    def _class(self, depth: int) -> _Class | None:
        """Read a class description; classes are written with their parents."""
        cursor = self._cursor
        if depth > JAVA_NESTED:
            raise Unknown(f"classes nested more than {JAVA_NESTED} deep")
        kind = cursor.u8("a class")
        if kind == 0x70:
            return None
        if kind == 0x71:
            number, known = self._read_handle()
            if isinstance(known, _Class):
                return known
            raise _of_nothing(cursor, number)
        if kind != 0x72:
            raise Unknown(f"a class of type {kind:#04x} at byte {cursor.at - 1}")
        name = _checked(cursor, "a class name", is_class_name)
        cursor.skip(8, "a class's serial number")
        place = len(self._handles)
        self._handles.append(None)
        flags = cursor.u8("a class's flags")
        fields = tuple(self._declared_field(depth) for _ in range(cursor.u16("the number of fields")))
        if cursor.u8("the end of a class") != 0x78:
            raise Unknown(f"class {name} is annotated")
        described = _Class(name, flags, fields, self._class(depth + 1))
        self._handles[place] = described
        return described

    def _declared_field(self, depth: int) -> tuple[str, str]:
        """Read name and type of a field; the class of an object field is read and dropped."""
        type_ = chr(self._cursor.u8("the type of a field"))
        if type_ not in _PRIMITIVES and type_ not in "L[":
            raise Malformed(self._cursor.at - 1, f"a field of type {ord(type_):#04x}")
        name = _checked(self._cursor, "a field's name", str.isidentifier)
        if type_ in "L[":
            at, described = self._cursor.at, self.content(depth + 1)
            if not isinstance(described, str) or not is_descriptor(described):
                raise Malformed(at, f"a field whose class is {described!r:.99}")
        return name, type_

    def _read_handle(self) -> tuple[int, JavaValue | _Class]:
        """Read a handle: its number, and what was written before that it names; None if there is no such thing."""
        number = self._cursor.i32("a handle") - _FIRST_HANDLE
        return number, self._handles[number] if 0 <= number < len(self._handles) else None


def _checked(cursor: Cursor, what: str, fits: Callable[[str], bool]) -> str:
    """Read a string that must be of a form; Java refuses others."""
    at, found = cursor.at, cursor.utf(what)
    if not fits(found):
        raise Malformed(at, f"{what} that no compiler takes: {found!r:.99}")
    return found


def _of_nothing(cursor: Cursor, number: int) -> Malformed:
    """Return the damage of a handle, just read, that names nothing of the kind needed here."""
    return Malformed(cursor.at - 4, f"a handle of nothing that was written before: {number}")


def _lineage(described: _Class | None) -> list[_Class]:
    """List a class and its parents, the oldest first: the order of their fields."""
    found: list[_Class] = []
    while described is not None:
        found.insert(0, described)
        described = described.parent
    return found
