"""Records of Avro, encoded by the schema: the few kinds that Hudi's metadata have."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

SYNC = bytes(range(16))


def long(value: int) -> bytes:
    """A whole number, zigzag and in groups of seven bits."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encoded(schema: Any, value: Any) -> bytes:
    """A value of a schema; in a union the branch `null` where there is nothing, else the first other one."""
    if isinstance(schema, list):
        at = next(i for i, branch in enumerate(schema) if (branch == "null") == (value is None))
        return long(at) + encoded(schema[at], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "null":
        return b""
    if kind in ("int", "long"):
        return long(value)
    if kind in ("string", "bytes"):
        data = value.encode() if isinstance(value, str) else value
        return long(len(data)) + data
    if kind == "record":
        return b"".join(encoded(field["type"], value.get(field["name"])) for field in schema["fields"])
    if kind == "array":
        items = b"".join(encoded(schema["items"], item) for item in value)
        return (long(len(value)) + items if value else b"") + long(0)
    if kind == "map":
        pairs = b"".join(encoded("string", key) + encoded(schema["values"], item) for key, item in value.items())
        return (long(len(value)) + pairs if value else b"") + long(0)
    raise ValueError(kind)


def container(schema: Any, records: Sequence[Any], codec: str = "null") -> bytes:
    """A file of records."""
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    head = b"Obj\x01" + encoded({"type": "map", "values": "bytes"}, meta) + SYNC
    data = b"".join(encoded(schema, record) for record in records)
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(data) + packer.flush()
    return head + long(len(records)) + long(len(data)) + data + SYNC
