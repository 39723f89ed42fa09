"""Avro's files of records (Avro 1.11, "Object Container Files"), decoded by the schema that each carries.

    file    = "Obj\\1"  {key: bytes} with avro.schema and avro.codec  sync: 16 bytes  block*
    block   = records: long  size: long  records, deflated or plain  sync
    long    = zigzag varint; a text has its length before it; arrays and maps come in blocks, and 0 ends them

A record becomes a dict, a union the value that it holds. Nothing is built for what a schema does not say, and every
value counts: an array of nothing has no bytes and may claim to have 2⁶³ of it.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from cklog.budgets import budgets, inflated_of, over
from cklog.parsers.codecs.decompression import DecompressionError, ExcessOutput, inflate
from cklog.parsers.codecs.varints import BadVarint, unsigned_varint
from cklog.unknown_formats import UnknownFormat, require_known, require_known_name

_MAGIC, _VERSION = b"Obj", 1
_CODECS = ("null", "deflate")
_SYNC_BYTES = 16
_NESTED = 64
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_COMPLEX = ("record", "error", "enum", "fixed", "array", "map")
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class NotAvro(ValueError):
    """Bytes that are no whole Avro file, or whose schema cannot be followed."""


def records_of(data: bytes) -> Iterator[Any]:
    """Yield the records of a file.

    Raises
    ------
    NotAvro : it is damaged
    UnknownFormat : it is of a later version, compressed by a codec that is not read here, or has types of another Avro
    OverBudget : it holds more values than there may be
    """
    if not data.startswith(_MAGIC) or not data[3:4]:
        raise NotAvro("it does not begin as Avro files do")
    require_known("Avro: version of the file", data[3], _VERSION)
    if data[3] != _VERSION:
        raise NotAvro("it does not begin as Avro files do")
    head = _Decoder(data, len(_MAGIC) + 1, {})
    meta = head.value({"type": "map", "values": "bytes"}, 0)
    sync, at = head.take(_SYNC_BYTES), head.at
    codec = meta.get("avro.codec", b"null").decode("latin-1")  # keeps every bit
    require_known_name("Avro: codec", codec, _CODECS)
    if codec not in _CODECS:
        raise NotAvro(f"its codec is {codec[:20]!r}, one bit away from a known one")
    try:
        names: dict[str, Any] = {}
        schema = _resolved(json.loads(meta.get("avro.schema", b"").decode("utf-8")), "", names, 0)
    except (NotAvro, UnknownFormat):
        raise
    except (ValueError, RecursionError):
        raise NotAvro("its schema is no JSON") from None
    left, room = budgets().table_values, inflated_of(len(data))
    while at < len(data):
        head.at = at
        count, size = head.long(), head.long()
        block = head.take(size)
        if head.take(_SYNC_BYTES) != sync:
            raise NotAvro(f"the block at byte {at} does not end as it should")
        plain = _inflated(block, room, len(data)) if codec == "deflate" else block
        room -= len(plain)
        decoder = _Decoder(plain, 0, names, left)
        for _ in range(count):
            yield decoder.value(schema, 0)
        if count < 0 or decoder.at < len(plain):
            raise NotAvro(f"the block at byte {at} does not hold the {count} records that it says")
        left, at = decoder.left, head.at


def _inflated(block: bytes, room: int, packed: int) -> bytes:
    """Decompress a block, of which `room` is left of what the file's `packed` bytes may become.

    Writers in Python take zlib's stream and cut off its header and its last byte: of the checksum three bytes stay.
    """
    try:
        found = inflate(block, room)
    except ExcessOutput:
        raise over(f"what its {packed} compressed bytes become", inflated_of(packed)) from None
    except DecompressionError as error:
        raise NotAvro(f"a block cannot be decompressed: {error}") from None
    if not zlib.adler32(found.plain).to_bytes(4, "big").startswith(found.rest):
        raise NotAvro(f"{len(found.rest)} bytes follow the end of a block's compressed stream")
    return found.plain


def _resolved(schema: Any, space: str, names: dict[str, Any], depth: int) -> Any:
    """Return a schema in which each name is a full one, and remember its named types by theirs.

    A name without dots is one of the namespace around it, or of none (`Schema.Names` of Avro's own library).

    Raises
    ------
    NotAvro : it is none, or nests too deep
    """
    if depth > _NESTED:
        raise NotAvro("its schema nests too deep")
    if isinstance(schema, list):
        return [_resolved(one, space, names, depth + 1) for one in schema]
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else _full_name_of(schema, space, names)
    kind = _member(schema, "type", dict | list | str)
    if kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        return {"type": kind, inner: _resolved(_member(schema, inner, dict | list | str), space, names, depth + 1)}
    if kind not in ("record", "error", "enum", "fixed"):
        return _resolved(kind, space, names, depth + 1)
    name = _member(schema, "name", str)
    if "." not in name:
        space = _member(schema, "namespace", str) if "namespace" in schema else space
        name = f"{space}.{name}" if space else name
    if name in names or not all(map(_NAME.fullmatch, name.split("."))):
        raise NotAvro(f"a type of its schema has the name {name[:40]!r}, of another one or of none")
    found: dict[str, Any] = {"type": kind}
    names[name] = found
    if kind == "enum":
        found["symbols"] = _distinct(_member(schema, "symbols", list))
    elif kind == "fixed":
        found["size"] = _member(schema, "size", int)
    else:
        fields = _member(schema, "fields", list)
        _distinct([_member(field, "name", str) for field in fields])
        space, kinds = name.rpartition(".")[0], [_member(field, "type", dict | list | str) for field in fields]
        found["fields"] = [
            {"name": field["name"], "type": _resolved(kind, space, names, depth + 1)}
            for field, kind in zip(fields, kinds, strict=True)
        ]
    return found


def _full_name_of(name: str, space: str, names: dict[str, Any]) -> str:
    """Return the full name of a type that a schema names."""
    for full in (f"{space}.{name}" if space and "." not in name else name, name):
        if full in names:
            return full
    require_known_name("Avro: type", name, [*sorted(_PRIMITIVES), *_COMPLEX, *sorted(names)])
    raise NotAvro(f"its schema names a type that is not in it: {name[:40]!r}")


def _member(schema: Any, name: str, kind: Any) -> Any:
    """Return what a schema has under a name."""
    if not isinstance(schema, dict) or not isinstance(schema.get(name), kind) or isinstance(schema[name], bool):
        raise NotAvro(f"a part of its schema has no {name}")
    return schema[name]


def _distinct(names: list[Any]) -> list[str]:
    """Return names of fields, or symbols, of one type."""
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names) or len({*names}) < len(names):
        raise NotAvro("a type of its schema has fields or symbols of one name, or of none")
    return names


class _Decoder:
    """Values read one after the other; `left` counts down what may still be built."""

    def __init__(self, data: bytes, at: int, names: dict[str, Any], left: int | None = None) -> None:
        self._data, self.at, self._names = data, at, names
        self._most = budgets().table_values
        self.left = self._most if left is None else left

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size < 0 or size > len(self._data) - self.at:
            raise NotAvro(f"{size} bytes are needed at byte {self.at}, and {len(self._data) - self.at} are there")
        self.at += size
        return self._data[self.at - size : self.at]

    def long(self) -> int:
        """Return the next whole number."""
        try:
            value, self.at = unsigned_varint(self._data, self.at, 64)
        except BadVarint as reason:
            raise NotAvro(f"{reason} at byte {self.at}") from None
        return (value >> 1) ^ -(value & 1)

    def short(self) -> int:
        """Return the next whole number, which has 32 bits."""
        found = self.long()
        if not -(1 << 31) <= found < 1 << 31:
            raise NotAvro(f"the number that ends at byte {self.at} has more than 32 bits")
        return found

    def value(self, schema: Any, depth: int) -> Any:
        """Return the next value of a schema."""
        self.left -= 1
        if self.left < 0:
            raise over("the number of values in it", self._most)
        if depth > _NESTED:
            raise NotAvro("its values nest too deep")
        if isinstance(schema, list):
            return self.value(self._one_of(schema), depth + 1)
        if isinstance(schema, str):
            return self._primitive(schema) if schema in _PRIMITIVES else self.value(self._names[schema], depth + 1)
        return self._container(schema["type"], schema, depth + 1)

    def _one_of(self, branches: list[Any]) -> Any:
        which = self.long()
        if not 0 <= which < len(branches):
            raise NotAvro(f"no branch {which} of a union at byte {self.at}")
        return branches[which]

    def _primitive(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return self.take(1) != b"\0"
        if kind == "int":
            return self.short()
        if kind == "long":
            return self.long()
        if kind == "float":
            return struct.unpack("<f", self.take(4))[0]
        if kind == "double":
            return struct.unpack("<d", self.take(8))[0]
        data, at = self.take(self.long()), self.at
        try:
            return data if kind == "bytes" else data.decode("utf-8")
        except UnicodeDecodeError:
            raise NotAvro(f"the text that ends at byte {at} is not UTF-8") from None

    def _container(self, kind: str, schema: dict[str, Any], depth: int) -> Any:
        if kind in ("record", "error"):
            return {field["name"]: self.value(field["type"], depth) for field in schema["fields"]}
        if kind == "enum":
            return self._one_of(schema["symbols"])
        if kind == "fixed":
            return self.take(schema["size"])
        if kind == "array":
            return [self.value(schema["items"], depth) for _ in self._blocks()]
        return {self._primitive("string"): self.value(schema["values"], depth) for _ in self._blocks()}

    def _blocks(self) -> Iterator[None]:
        """Yield once for each item of an array or a map."""
        while count := self.long():
            if count < 0:
                count = -count
                self.long()  # bytes of the block
            for _ in range(count):
                yield None
