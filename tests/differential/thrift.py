"""Thrift's compact protocol as trees that can be changed and written again; apart from the readers of cklog.

A struct is a list of fields, each a list [id, kind, value]; of a boolean field the kind is the value.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class NoThrift(Exception):
    """Raised where bytes do not follow the protocol."""


def read_struct(data: bytes, at: int, depth: int = 0) -> tuple[list[Any], int]:
    """Return the struct that begins at a byte, and where it ends."""
    if depth > 20:
        raise NoThrift("too deep")
    fields: list[Any] = []
    number = 0
    while True:
        head, at = _byte(data, at)
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        value, at = _read_value(data, at, head & 15, depth)
        fields.append([number, head & 15, value])


def write_struct(fields: list[Any]) -> bytes:
    """Return the bytes of a struct."""
    out, before = b"", 0
    for number, kind, value in fields:
        step = number - before
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _zigzag(number)
        out += _write_value(kind, value)
        before = number
    return out + b"\0"


def get(fields: list[Any], number: int) -> Any:
    """Return the value of a field; None where there is none."""
    return next((value for id, _, value in fields if id == number), None)


def put(fields: list[Any], number: int, value: Any, kind: int = I32) -> None:
    """Give a field another value; without one it is added, in its place."""
    for field in fields:
        if field[0] == number:
            field[2] = value
            return
    fields.append([number, kind, value])
    fields.sort(key=lambda field: field[0])


def numbers_in(fields: list[Any]) -> list[list[Any]]:
    """Return the fields of integers of a struct and of those inside it."""
    found = []
    for field in fields:
        _, kind, value = field
        if kind in (I16, I32, I64):
            found.append(field)
        elif kind == STRUCT:
            found += numbers_in(value)
        elif kind == LIST and value[0] == STRUCT:
            for one in value[1]:
                found += numbers_in(one)
    return found


def _byte(data: bytes, at: int) -> tuple[int, int]:
    if not 0 <= at < len(data):
        raise NoThrift("the bytes end")
    return data[at], at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte, at = _byte(data, at)
        found |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return found, at
        if shift > 70:
            raise NoThrift("a number that does not end")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    found, at = _varint(data, at)
    return found >> 1 ^ -(found & 1), at


def _read_value(data: bytes, at: int, kind: int, depth: int, inside: bool = False) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return _byte(data, at) if inside else (None, at)
    if kind == BYTE:
        return _byte(data, at)
    if kind in (I16, I32, I64):
        return _integer(data, at)
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        if length > len(data) - at:
            raise NoThrift("the bytes end")
        return data[at : at + length], at + length
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind not in (LIST, SET):
        raise NoThrift(f"kind {kind}")
    head, at = _byte(data, at)
    count = head >> 4
    if count == 15:
        count, at = _varint(data, at)
    if count > len(data) - at:
        raise NoThrift("the bytes end")
    values = []
    for _ in range(count):
        value, at = _read_value(data, at, head & 15, depth + 1, True)
        values.append(value)
    return (head & 15, values), at


def _write_varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _zigzag(number: int) -> bytes:
    return _write_varint((number << 1 ^ number >> 63) & (1 << 64) - 1)


def _write_value(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b"" if value is None else bytes([value])
    if kind == BYTE:
        return bytes([value])
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _write_varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return write_struct(value)
    inner, values = value
    head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xF0 | inner]) + _write_varint(len(values))
    return head + b"".join(_write_value(inner, one) for one in values)
