"""Avro's files of records (Avro 1.11, "Object Container Files"), decoded by the schema that each carries.

    file    = "Obj\\1"  {key: bytes} with avro.schema and avro.codec  sync: 16 bytes  block*
    block   = records: long  size: long  records, deflated or plain  sync
    long    = zigzag varint; a text has its length before it; arrays and maps come in blocks, and 0 ends them

A record becomes a dict, a union the value that it holds. Nothing is built for what a schema does not say, and every
value counts: an array of nothing has no bytes and may claim to have 2⁶³ of it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from cklog.budgets import budgets, inflated_of, over
from cklog.parsers.codecs.decompression import DecompressionError, ExcessOutput, inflate

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_NESTED = 64
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class NotAvro(ValueError):
    """Bytes that are no whole Avro file, or whose schema cannot be followed."""


def records_of(data: bytes) -> Iterator[Any]:
    """Yield the records of a file.

    Raises
    ------
    NotAvro : it is damaged, or compressed by a codec that is not read here
    OverBudget : it holds more values than there may be
    """
    if not data.startswith(_MAGIC):
        raise NotAvro("it does not begin as Avro files do")
    head = _Decoder(data, len(_MAGIC), {})
    meta = head.value({"type": "map", "values": "bytes"}, 0)
    sync, at = head.take(_SYNC_BYTES), head.at
    codec = meta.get("avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise NotAvro(f"its codec is {codec[:20]!r}, and only deflate is read")
    try:
        schema = json.loads(meta.get("avro.schema", b"").decode("utf-8"))
        names: dict[str, Any] = {}
        _take_names(schema, "", names, 0)
    except (ValueError, RecursionError):
        raise NotAvro("its schema is no JSON") from None
    left, room = budgets().table_values, inflated_of(len(data))
    while at < len(data):
        head.at = at
        count, size = head.long(), head.long()
        block = head.take(size)
        if head.take(_SYNC_BYTES) != sync:
            raise NotAvro(f"the block at byte {at} does not end as it should")
        plain = _inflated(block, room, len(data)) if codec == b"deflate" else block
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


def _take_names(schema: Any, space: str, names: dict[str, Any], depth: int) -> None:
    """Remember the named types of a schema, by their full names and by their short ones."""
    if depth > _NESTED:
        raise NotAvro("its schema nests too deep")
    if isinstance(schema, list):
        for one in schema:
            _take_names(one, space, names, depth + 1)
    if not isinstance(schema, dict):
        return
    space = schema.get("namespace", space) if isinstance(schema.get("namespace", space), str) else space
    if isinstance(name := schema.get("name"), str) and schema.get("type") in ("record", "error", "enum", "fixed"):
        names[name] = names[f"{space}.{name}"] = schema
    for field in schema.get("fields", []) if isinstance(schema.get("fields", []), list) else []:
        if isinstance(field, dict):
            _take_names(field.get("type"), space, names, depth + 1)
    for key in ("type", "items", "values"):
        _take_names(schema.get(key), space, names, depth + 1)


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
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise NotAvro(f"the number at byte {self.at} does not end")

    def value(self, schema: Any, depth: int) -> Any:
        """Return the next value of a schema."""
        self.left -= 1
        if self.left < 0:
            raise over("the number of values in it", self._most)
        if depth > _NESTED:
            raise NotAvro("its values nest too deep")
        if isinstance(schema, list):
            return self.value(self._one_of(schema), depth + 1)
        kind = schema.get("type") if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.value(kind, depth + 1)
        if kind in _PRIMITIVES:
            return self._primitive(kind)
        if isinstance(schema, str) or kind not in ("record", "error", "enum", "fixed", "array", "map"):
            return self.value(self._named(kind), depth + 1)
        return self._container(kind, schema, depth + 1)

    def _named(self, name: Any) -> Any:
        found = self._names.get(name) if isinstance(name, str) else None
        if found is None:
            raise NotAvro(f"its schema names a type that is not in it: {str(name)[:40]!r}")
        return found

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
        if kind in ("int", "long"):
            return self.long()
        if kind == "float":
            return struct.unpack("<f", self.take(4))[0]
        if kind == "double":
            return struct.unpack("<d", self.take(8))[0]
        data = self.take(self.long())
        return data if kind == "bytes" else data.decode("utf-8", "replace")

    def _container(self, kind: str, schema: dict[str, Any], depth: int) -> Any:
        if kind in ("record", "error"):
            fields = schema.get("fields")
            if not isinstance(fields, list) or not all(isinstance(f, dict) and "name" in f for f in fields):
                raise NotAvro("a record of its schema has no fields")
            return {str(field["name"]): self.value(field.get("type"), depth) for field in fields}
        if kind == "enum":
            symbols = schema.get("symbols")
            return self._one_of(symbols if isinstance(symbols, list) else [])
        if kind == "fixed":
            size = schema.get("size")
            return self.take(size if isinstance(size, int) else -1)
        if kind == "array":
            return [self.value(schema.get("items"), depth) for _ in self._blocks()]
        return {self._primitive("string"): self.value(schema.get("values"), depth) for _ in self._blocks()}

    def _blocks(self) -> Iterator[None]:
        """Yield once for each item of an array or a map."""
        while count := self.long():
            if count < 0:
                count = -count
                self.long()  # bytes of the block
            for _ in range(count):
                yield None
