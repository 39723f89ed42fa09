"""Avro's files: what another decoder reads, what is damaged, and what asks for more than there may be."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from cklog.budgets import Budgets, budgets, use
from cklog.errors import OverBudget
from cklog.parsers.codecs.avro import NotAvro, records_of
from cklog.unknown_formats import UnknownFormat
from tests.builders.lakes.avro import SYNC, container, long
from tests.builders.lakes.sink_tables import append, iceberg_table, place

TREE: Any = {"type": "record", "name": "Tree", "fields": [{"name": "under", "type": ["null", "Tree"]}]}


def test_what_pyiceberg_wrote(tmp_path: Path) -> None:
    """Lists of manifests as another library writes them, and as it reads them itself."""
    pytest.importorskip("pyiceberg")
    table = iceberg_table(tmp_path)
    append(table, {})
    append(table, {})
    (path,) = [p for p in place(table).rglob("snap-*.avro") if str(table.current_snapshot().snapshot_id) in p.name]
    told = list(records_of(path.read_bytes()))
    known = table.current_snapshot().manifests(table.io)
    assert [(m["manifest_path"], m["manifest_length"], m["added_rows_count"]) for m in told] == [
        (m.manifest_path, m.manifest_length, m.added_rows_count) for m in known
    ]
    for one in known:
        entries = list(records_of(Path(one.manifest_path.removeprefix("file://")).read_bytes()))
        assert [e["data_file"]["record_count"] for e in entries] == [
            e.data_file.record_count for e in one.fetch_manifest_entry(table.io)
        ]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_every_cut_is_noticed(codec: str) -> None:
    """A file that ends anywhere before its end, but right before a block, is damaged."""
    schema = {"type": "array", "items": ["null", "string", "long"]}
    data = container(schema, [["a", None, "b"], []], codec)
    assert list(records_of(data)) == [["a", None, "b"], []]
    ends = data.index(SYNC) + len(SYNC)
    for cut in range(len(data)):
        if cut != ends:
            with pytest.raises(NotAvro):
                list(records_of(data[:cut]))


@pytest.mark.parametrize("count", [-2, 0, 1, 3])
def test_a_block_holds_as_many_records_as_it_says(count: int) -> None:
    """Avro's own reader refuses a block of which bytes are left: one bit of the count takes records away."""
    head = container("long", []).removesuffix(long(0) * 2 + SYNC)
    with pytest.raises(NotAvro):
        list(records_of(head + long(count) + container("long", [7, 8])[len(head) + 1 :]))


def test_blocks_together_become_no_more_than_a_file_may() -> None:
    """70 kB that become 64 MiB are within the budget, ten of them are not; nor do bytes behind records come free."""
    packed = zlib.compressobj(9, wbits=-15)
    block = packed.compress(bytes(60 << 20)) + packed.flush()
    head = container("null", [], "deflate")
    head = head[: head.index(SYNC) + len(SYNC)]
    with pytest.raises(NotAvro, match="does not hold the 0 records"):
        list(records_of(head + long(0) + long(len(block)) + block + SYNC))
    schema = {"type": "fixed", "name": "F", "size": 60 << 20}
    head = container(schema, [], "deflate")
    head = head[: head.index(SYNC) + len(SYNC)]
    with pytest.raises(OverBudget, match="compressed bytes become"):
        list(records_of(head + (long(1) + long(len(block)) + block + SYNC) * 10))


def test_other_codecs_and_schemas() -> None:
    """What cannot be followed is said, by its name; one bit away from a known name it is damage."""
    with pytest.raises(UnknownFormat, match="snappy"):
        list(records_of(container("long", [1], "snappy")))
    with pytest.raises(NotAvro, match="deflatd"):
        list(records_of(container("long", [1], "deflatd")))
    with pytest.raises(NotAvro, match="one bit away"):
        list(records_of(container("long", [1], "deflate").replace(b"deflate", b"deflat\xe5")))
    with pytest.raises(UnknownFormat, match="Lost"):
        list(records_of(container("long", [1]).replace(b'"long"', b'"Lost"')))
    with pytest.raises(NotAvro, match="not in it"):
        list(records_of(container("long", [1]).replace(b'"long"', b'"lonf"')))


def test_what_asks_for_too_much() -> None:
    """Values without bytes, and trees without end."""
    nothing = long(1) + long(9) + b"\x80\x80\x80\x80\x80\x80\x80\x80\x01"
    empty = container({"type": "array", "items": "null"}, []).removesuffix(long(0) * 2 + SYNC)
    before = budgets()
    use(Budgets(64 << 20))
    try:
        with pytest.raises(OverBudget, match="number of values"):
            list(records_of(empty + nothing + SYNC))
    finally:
        use(before)
    data = long(1) * 10_000
    tree = container(TREE, []).removesuffix(long(0) * 2 + SYNC)
    with pytest.raises(NotAvro, match="too deep"):
        list(records_of(tree + long(1) + long(len(data)) + data + SYNC))


def test_texts_are_utf_8_and_numbers_have_as_many_bits_as_their_type() -> None:
    """Damage that another text, or another number, would hide."""
    text = container("string", ["naïve"])
    at = text.index("ï".encode())
    with pytest.raises(NotAvro, match="not UTF-8"):
        list(records_of(text[:at] + b"\xff" + text[at + 1 :]))
    head = container("long", [])
    head = head[: head.index(SYNC) + len(SYNC)]
    for bits, more in ((b"\xff" * 9 + b"\x01", None), (b"\xff" * 9 + b"\x02", "64 bits"), (b"\xff" * 10, "64 bits")):
        data = head + long(1) + long(len(bits)) + bits + SYNC
        if more is None:
            assert list(records_of(data)) == [-(1 << 63)]
        else:
            with pytest.raises(NotAvro, match=more):
                list(records_of(data))
    assert list(records_of(container("int", [(1 << 31) - 1]))) == [(1 << 31) - 1]
    with pytest.raises(NotAvro, match="32 bits"):
        list(records_of(container("long", [1 << 31]).replace(b'"long"', b'"int" ')))


FIELD = {"name": "f", "type": "long"}


def head_of(schema: Any) -> bytes:
    """What a file begins with."""
    text = json.dumps(schema).encode()
    return b"Obj\1" + long(1) + long(11) + b"avro.schema" + long(len(text)) + text + long(0) + SYNC


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "fields": [FIELD]},
        {"type": "record", "name": "R", "fields": [{"type": "long"}]},
        {"type": "record", "name": "R", "fields": [{"name": "f"}]},
        {"type": "record", "name": "R", "fields": [FIELD, FIELD]},
        {"type": "record", "name": "R-1", "fields": [FIELD]},
        {"type": "recorf", "name": "R", "fields": [FIELD]},
        {"type": "array"},
        {"type": "map", "items": "long"},
        {"type": "enum", "name": "E"},
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "fixed", "name": "F", "size": True},
        {"type": "lonf"},
        ["null", {"type": "record", "name": "R", "fields": [{"name": "f", "type": "S"}]}],
        [{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}],
    ],
)
def test_a_schema_that_is_none_is_refused_before_any_record(schema: Any) -> None:
    """A damaged letter of it would name other fields, or none."""
    with pytest.raises(NotAvro, match="schema"):
        list(records_of(head_of(schema)))


def test_a_type_is_named_in_its_namespace_or_in_none() -> None:
    inner = {"type": "record", "name": "I", "fields": [FIELD]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "I"}, {"name": "c", "type": "n.I"}]
    outer = {"type": "record", "name": "O", "namespace": "n", "fields": fields}
    data = head_of(outer) + long(1) + long(3) + long(0) + long(1) + long(2) + SYNC
    assert list(records_of(data)) == [{name: {"f": number} for number, name in enumerate("abc")}]
