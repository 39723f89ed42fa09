"""Avro's files of records, against fastavro."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from typing import Any

import fastavro

from cklog.errors import OverBudget
from cklog.parsers.codecs.avro import NotAvro, records_of
from cklog.unknown_formats import UnknownFormat
from tests.differential.mutations import Damage
from tests.differential.verdicts import Decoder, Excuse, Outcome

_SYNC = bytes(range(100, 116))
_LEAVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def long_of(number: int) -> bytes:
    """Return a whole number as Avro has it: zigzag, seven bits a byte."""
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*out, raw])


def _sized(data: bytes) -> bytes:
    return long_of(len(data)) + data


class _Schemas:
    """Schemas by chance, with names that are each given once."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._named: list[str] = []

    def any(self, depth: int) -> Any:
        """Return a schema that nests `depth` deep at the most."""
        chance = self._chance
        kind = chance.choice(("leaf", "leaf", "record", "array", "map", "union", "enum", "fixed", "again", "long"))
        if depth <= 0 or kind == "leaf":
            leaf = chance.choice(_LEAVES)
            return {"type": leaf} if chance.random() < 0.2 else leaf
        if kind == "record":
            return self.record(depth)
        if kind == "array":
            return {"type": "array", "items": self.any(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.any(depth - 1)}
        if kind == "union":
            other = self.any(depth - 1)
            wrapped = (
                ["null", "string"]
                if isinstance(other, list) or other in ("null", {"type": "null"})
                else ["null", other]
            )
            return wrapped if chance.random() < 0.5 else wrapped[::-1]
        if kind == "enum":
            return {"type": "enum", "name": self._name(), "symbols": ["A", "B", "C"][: chance.randint(1, 3)]}
        if kind == "fixed":
            return {"type": "fixed", "name": self._name(), "size": chance.choice((1, 4, 16))}
        return chance.choice(self._named) if self._named and kind == "again" else "long"

    def record(self, depth: int) -> Any:
        """Return the schema of a record; it may be named again once it is complete."""
        name = self._name(keep=False)
        fields = [{"name": f"f{i}", "type": self.any(depth - 1)} for i in range(self._chance.randint(1, 4))]
        found: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
        self._named.append(name)
        return found

    def _name(self, keep: bool = True) -> str:
        name = f"n{self._chance.randrange(1 << 30)}"
        if keep:
            self._named.append(name)
        return name


def _value(schema: Any, names: dict[str, Any], chance: random.Random) -> bytes:
    """Return the bytes of a value of a schema, by chance."""
    if isinstance(schema, list):
        which = chance.randrange(len(schema))
        return long_of(which) + _value(schema[which], names, chance)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in names and kind not in _LEAVES:
        return _value(names[kind], names, chance)
    if isinstance(schema, dict) and "name" in schema:
        names[schema["name"]] = schema
    if kind == "record":
        return b"".join(_value(field["type"], names, chance) for field in schema["fields"])
    if kind == "enum":
        return long_of(chance.randrange(len(schema["symbols"])))
    if kind == "fixed":
        return chance.randbytes(schema["size"])
    if kind in ("array", "map"):
        return _blocks(schema, names, chance)
    return _leaf(kind, chance)


def _blocks(schema: Any, names: dict[str, Any], chance: random.Random) -> bytes:
    data = b""
    for _ in range(chance.choice((0, 1, 1, 2))):
        count = chance.randint(1, 3)
        inner = b""
        for _ in range(count):
            key = _sized(f"k{chance.randrange(99)}".encode()) if schema["type"] == "map" else b""
            inner += key + _value(schema.get("items", schema.get("values")), names, chance)
        data += long_of(-count) + long_of(len(inner)) + inner if chance.random() < 0.4 else long_of(count) + inner
    return data + b"\0"


def _leaf(kind: str, chance: random.Random) -> bytes:
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([chance.randrange(2)])
    if kind in ("int", "long"):
        most = 31 if kind == "int" else 63
        return long_of(chance.choice((0, -1, 1, 300, (1 << most) - 1, -(1 << most))))
    if kind == "float":
        return struct.pack("<f", chance.choice((0.0, 1.5, -2.25)))
    if kind == "double":
        return struct.pack("<d", chance.choice((0.0, 1.1, -2.25, 1e300)))
    return _sized(chance.choice((b"", b"abc", "naïve".encode(), b"x" * 70)))


def _made(damage: Damage) -> bytes:
    chance = damage.chance
    schema = _Schemas(chance).record(3) | ({"namespace": "a.b"} if chance.random() < 0.2 else {})
    codec = chance.choice((b"null", b"deflate", None))
    meta = {b"avro.schema": damage.inside(json.dumps(schema).encode(), 0.3)}
    meta |= {} if codec is None else {b"avro.codec": codec}
    data = b"Obj\1" + long_of(len(meta)) + b"".join(_sized(k) + _sized(v) for k, v in meta.items()) + b"\0" + _SYNC
    for _ in range(chance.choice((0, 1, 1, 2))):
        count = chance.randint(1, 4)
        plain = damage.inside(b"".join(_value(schema, {}, chance) for _ in range(count)))
        if codec == b"deflate":
            packer = zlib.compressobj(wbits=-15)
            plain = damage.inside(packer.compress(plain) + packer.flush())
        data += long_of(count) + _sized(plain) + _SYNC
    return data


def _read(data: bytes) -> Outcome:
    try:
        return Outcome("value", [*records_of(data)])
    except OverBudget as reason:
        return Outcome("limit", why=reason.what)
    except (NotAvro, UnknownFormat) as reason:
        return Outcome("refused", why=str(reason))


def _refer(data: bytes) -> Outcome:
    try:
        return Outcome("value", [*fastavro.reader(io.BytesIO(data))])
    except Exception as error:  # it has no one kind of error
        return Outcome("refused", why=f"{type(error).__name__}: {error}")


def _has_binary_metadata(data: bytes, ours: Outcome, theirs: Outcome) -> bool:
    """Return whether a value of the header's metadata is no text."""
    meta = fastavro.schemaless_reader(io.BytesIO(data[4:]), {"type": "map", "values": "bytes"}, None)
    assert isinstance(meta, dict)
    try:
        b" ".join(bytes(value) for value in meta.values()).decode()
    except UnicodeDecodeError:
        return "UnicodeDecodeError" in theirs.why
    return False


EXCUSES = (
    Excuse(
        "metadata that is no text",
        "values of a header's metadata are bytes by the specification; the library decodes all of them as text",
        _has_binary_metadata,
    ),
)

DECODERS = (Decoder(name="avro", reference="fastavro", make=_made, read=_read, refer=_refer, excuses=EXCUSES),)
