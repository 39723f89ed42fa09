"""Schemas of state that Spark stores with a query: of every store its key and its value, as JSON of a struct.

state/OP/P/[STORE/]_metadata/schema     "v1" UTF(key) UTF(value) | "v2" chunks(key) chunks(value)
state/OP/_stateSchema/STORE/BATCH_UUID  "v3" count:i32 (UTF(name) id:u16 chunks(key) id:u16 chunks(value)
                                        chunks(encoder) chunks(key of a map))*      (transformWithState)
chunks = count:i32 UTF*                 UTF = length:u16 bytes
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cklog.budgets import check_json
from cklog.parsers.spark.metadata_log import Damaged

_MOST_CHUNKS = 1_000
_DEEPEST = 50
"""Structs in each other that are written out; a deeper one is shown as its JSON."""


class StoredSchema(NamedTuple):
    """The schema of a store, or of a column family with a name: its key and its value, as Spark writes types."""

    family: str
    key: str
    value: str


def decode_key_types(data: bytes) -> tuple[Any, ...]:
    """Decode the types of the key's fields in the schema of a store."""
    version, at = _known_version(data)
    key = _read_text(data, at, version)[0]
    try:
        return tuple(field["type"] for field in _fields(key))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged("torn-batch-file", at, "no type of a key") from None


def decode_schemas(data: bytes) -> tuple[StoredSchema, ...]:
    """Decode a file of schemas of any version."""
    version, at = _utf(data, 0)
    if version == "v3":
        return tuple(StoredSchema(name, *map(_shown, texts[:2])) for name, *texts in _families(data, at))
    version, at = _known_version(data)
    key, at = _read_text(data, at, version)
    value, _ = _read_text(data, at, version)
    return (StoredSchema("", _shown(key), _shown(value)),)


def has_all_schemas(data: bytes) -> bool:
    """Return whether this is a whole file of schemas as Spark 4.3 writes them for transformWithState."""
    try:
        version, at = _utf(data, 0)
        _families(data, at)
    except Damaged:
        return False
    return version == "v3"


def _families(data: bytes, at: int) -> list[tuple[str, ...]]:
    """Read the column families of a file of version 3, which ends with the last of them."""
    found = []
    count, at = int.from_bytes(data[at : at + 4], "big"), at + 4
    for _ in range(count):
        name, at = _utf(data, at)
        texts = []
        for id_bytes in (2, 2, 0, 0):
            text, at = _read_chunks(data, at + id_bytes)
            texts.append(text)
        found.append((name, *texts))
    if at != len(data):
        raise Damaged("torn-batch-file", at, "more behind the last schema")
    return found


def _known_version(data: bytes) -> tuple[str, int]:
    version, at = _utf(data, 0)
    if version not in ("v1", "v2"):
        raise Damaged("unknown-version", 0, f"version {version[:20]!r}, known are v1 and v2")
    return version, at


def _read_text(data: bytes, at: int, version: str) -> tuple[str, int]:
    return _utf(data, at) if version == "v1" else _read_chunks(data, at)


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


def _fields(text: str) -> list[dict[str, Any]]:
    check_json(text)
    fields: list[dict[str, Any]] = json.loads(text)["fields"]
    return fields


def _shown(text: str) -> str:
    """Return the JSON of a struct as Spark writes types; of another form the text itself.

    >>> _shown('{"type":"struct","fields":[{"name":"k","type":{"type":"array","elementType":"long"}}]}')
    'struct<k:array<long>>'
    """
    try:
        check_json(text)
        return _type(json.loads(text), 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return text


def _type(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth > _DEEPEST:
        raise ValueError(depth)
    inner = [value[name] for name in ("elementType", "keyType", "valueType") if name in value]
    if value["type"] == "struct":
        fields = (f"{field['name']}:{_type(field['type'], depth + 1)}" for field in value["fields"])
        return f"struct<{','.join(fields)}>"
    return f"{value['type']}<{','.join(_type(one, depth + 1) for one in inner)}>" if inner else json.dumps(value)
