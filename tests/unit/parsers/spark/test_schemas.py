"""Schemas of state, as Spark stores them in files of three versions."""

from __future__ import annotations

import json

import pytest

from cklog.parsers.spark.metadata_log import Damaged
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.parsers.spark.state.schemas import decode_schemas, has_all_schemas
from cklog.runs.batches.line import BatchLog
from tests.builders.spark import sample


def struct(**fields: object) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": name, "type": type} for name, type in fields.items()]})


def utf(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "big") + text.encode()


def chunks(*parts: str) -> bytes:
    return len(parts).to_bytes(4, "big") + b"".join(map(utf, parts))


KEY = struct(k="long", tags={"type": "array", "elementType": "string"})
VALUE = struct(by={"type": "map", "keyType": "string", "valueType": json.loads(struct(n="integer"))})
SHOWN = "struct<k:long,tags:array<string>>", "struct<by:map<string,struct<n:integer>>>"
FAMILY = utf("cnt") + b"\0\0" + chunks(KEY) + b"\0\0" + chunks(VALUE) + chunks("NoPrefix") + chunks("{}")


@pytest.mark.parametrize(
    ("data", "family"),
    [
        (utf("v1") + utf(KEY) + utf(VALUE), ""),
        (utf("v2") + chunks(KEY[:9], KEY[9:]) + chunks(VALUE), ""),
        (utf("v3") + b"\0\0\0\1" + FAMILY, "cnt"),
    ],
)
def test_key_and_value_are_read_of_every_version(data: bytes, family: str) -> None:
    [found] = decode_schemas(data)
    assert found[:3] == (family, *SHOWN)
    assert found.key_types == ("long", {"type": "array", "elementType": "string"})
    assert has_all_schemas(data) is (family == "cnt")
    for end in range(len(data)):
        with pytest.raises(Damaged):
            decode_schemas(data[:end])


@pytest.mark.parametrize("text", ["", "\0" * 9, "[]", "null", '"long"', '{"type":"strucu","fields":[]}', struct(k={})])
@pytest.mark.parametrize("broken", ["key", "value"])
def test_text_that_is_no_struct_is_damage(broken: str, text: str) -> None:
    key, value = (text, VALUE) if broken == "key" else (KEY, text)
    with pytest.raises(Damaged) as raised:
        decode_schemas(utf("v2") + chunks(key) + chunks(value))
    assert (raised.value.flaw.id, raised.value.flaw.offset) == (
        "torn-batch-file",
        4 if broken == "key" else 4 + len(chunks(KEY)),
    )


def test_a_deep_struct_is_no_damage() -> None:
    deep: object = "long"
    for _ in range(90):
        deep = {"type": "array", "elementType": deep}
    [found] = decode_schemas(utf("v1") + utf(struct(k=deep)) + utf(VALUE))
    assert found.key.startswith("struct<k:array<array<")


def test_another_version_is_unknown() -> None:
    with pytest.raises(Damaged) as raised:
        decode_schemas(utf("v4") + utf(KEY))
    assert raised.value.flaw.id == "unknown-version"


def test_inspect_shows_the_schema_of_every_store() -> None:
    rows = BatchLog(SparkCheckpoint(sample())).inspect().result["schemas"]
    key = "struct<window:struct<start:timestamp,end:timestamp>,word:string>"
    path = "ck/state/0/0/_metadata/schema"
    told = {
        "operator": "0",
        "store": "default",
        "family": None,
        "key": key,
        "value": "struct<count:long>",
        "path": path,
    }
    assert rows == [told]
    root = sample()
    root.write(path, b"\0\2v9")
    assert BatchLog(SparkCheckpoint(root)).inspect().result["schemas"] == [told | {"key": None, "value": None}]
