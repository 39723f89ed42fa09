"""Schemas of state that Spark stores with a query: of every store its key and its value, as JSON of a struct.

state/OP/P/[STORE/]_metadata/schema     "v1" UTF(key) UTF(value) | "v2" chunks(key) chunks(value)
state/OP/_stateSchema/STORE/BATCH_UUID  "v3" count:i32 (UTF(name) id:u16 chunks(key) id:u16 chunks(value)
                                        chunks(encoder) chunks(key of a map))*      (transformWithState)
chunks = count:i32 UTF*                 UTF = length:u16 bytes
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from cklog.budgets import check_json
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.spark.metadata_log import Damaged, version_of

_MOST_CHUNKS = 1_000
_DEEPEST = 50
"""Structs in each other that are written out; a deeper one is shown as its JSON."""


class StoredSchema(NamedTuple):
    """The schema of a store, or of a column family with a name: its key and its value, as Spark writes types.

    `key_types` are the types of the key's fields, as JSON.
    """

    family: str
    key: str
    value: str
    key_types: tuple[Any, ...]


class _Text(NamedTuple):
    """A text of a file, and the offset of its first byte."""

    text: str
    offset: int


def decode_schemas(data: bytes) -> tuple[StoredSchema, ...]:
    """Decode a file of schemas of any version."""
    text, at = _utf(data, 0)
    version = version_of(text, 3)
    if version == 3:
        return tuple(_schema(family, *texts) for family, *texts in _families(data, at))
    read_text = _utf if version == 1 else _read_chunks
    key, after = read_text(data, at)
    value, _ = read_text(data, after)
    return (_schema("", _Text(key, at), _Text(value, after)),)


def has_all_schemas(data: bytes) -> bool:
    """Return whether this is a whole file of schemas as Spark 4.3 writes them for transformWithState.

    Raises
    ------
    Damaged : of an unknown version
    """
    try:
        decode_schemas(data)
    except Damaged as damaged:
        if damaged.flaw.id == UNKNOWN_VERSION:
            raise
        return False
    return _utf(data, 0)[0] == "v3"


def _families(data: bytes, at: int) -> Iterator[tuple[str, _Text, _Text]]:
    """Yield the column families of a file of version 3, which ends with the last of them."""
    count, at = int.from_bytes(data[at : at + 4], "big"), at + 4
    for _ in range(count):
        name, at = _utf(data, at)
        texts = []
        for id_bytes in (2, 2, 0, 0):
            start = at + id_bytes
            text, at = _read_chunks(data, start)
            texts.append(_Text(text, start))
        yield name, texts[0], texts[1]
    if at != len(data):
        raise Damaged("torn-batch-file", at, "more after the last schema")


def _utf(data: bytes, at: int) -> tuple[str, int]:
    """Read text as Java's `writeUTF` stores it, and return it with the offset behind it."""
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    if at + 2 > len(data) or end > len(data):
        raise Damaged("torn-batch-file", at, "the schema ends in the middle of a text")
    return data[at + 2 : end].decode("utf-8", "replace"), end


def _read_chunks(data: bytes, at: int) -> tuple[str, int]:
    """Read text that is stored in chunks, each as `writeUTF` stores it, and return it with the offset behind it."""
    count = int.from_bytes(data[at : at + 4], "big")
    if not 0 < count <= _MOST_CHUNKS:
        raise Damaged("torn-batch-file", at, f"{count} chunks of a schema")
    at, parts = at + 4, []
    for _ in range(count):
        part, at = _utf(data, at)
        parts.append(part)
    return "".join(parts), at


def _schema(family: str, key: _Text, value: _Text) -> StoredSchema:
    (key_shown, key_types), (value_shown, _) = map(_struct, (key, value))
    return StoredSchema(family, key_shown, value_shown, key_types)


def _struct(stored: _Text) -> tuple[str, tuple[Any, ...]]:
    """Return a struct as Spark writes types, and the types of its fields.

    >>> _struct(_Text('{"type":"struct","fields":[{"name":"k","type":{"type":"array","elementType":"long"}}]}', 0))[0]
    'struct<k:array<long>>'
    """
    check_json(stored.text)
    try:
        value = json.loads(stored.text)
        if value["type"] != "struct":
            raise ValueError(value["type"])
        return _type(value, 0), tuple(field["type"] for field in value["fields"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged("torn-batch-file", stored.offset, "no schema of a row") from None


def _type(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth > _DEEPEST:
        return json.dumps(value)
    inner = [value[name] for name in ("elementType", "keyType", "valueType") if name in value]
    if value["type"] == "struct":
        fields = (f"{field['name']}:{_type(field['type'], depth + 1)}" for field in value["fields"])
        return f"struct<{','.join(fields)}>"
    return f"{value['type']}<{','.join(_type(one, depth + 1) for one in inner)}>" if inner else json.dumps(value)
