"""Stores with column families, and what else transformWithState needs: its metadata, and the schemas that it names."""

from __future__ import annotations

import json

import pytest

from cklog.parsers.codecs.hadoop_crc import encode
from tests.builders.spark import Memory
from tests.builders.spark_state import ROCKS, checkpoint, memory, operator, plan_without, snapshot, stream
from tests.reading.spark import said


def with_families(version: int) -> Memory:
    """A store with column families: changelogs 1 to 3 of `version`, a zip at 1."""
    files = {f"state/0/0/{v}.changelog": stream(b"\0\2v%d" % version + b"\0") for v in range(1, 4)}
    return memory(checkpoint(ROCKS, 3, partitions=1), operator(partitions=1), files, {"state/0/0/1.zip": snapshot()})


def test_column_families_need_the_first_zip() -> None:
    """Restarted for real: without any zip a query with transformWithState cannot load its state."""
    assert said(with_families(2).plan()) == []
    plan = plan_without(with_families(2), "state/0/0/1.zip")
    assert (plan.committed, said(plan)) == (-1, [("error", "missing-state-file", "state/0/0/1.changelog")])
    damaged = with_families(2)
    damaged.files["state/0/0/1.zip"] = b"PK"
    assert damaged.plan().committed == -1


def test_operator_metadata_of_transform_with_state_is_needed() -> None:
    """Restarted for real: without it the restart fails; without a schema it goes on."""
    root = memory(with_families(2).files, {"state/0/_stateSchema/default/0_x": b"v3"})
    del root.files["state/0/_metadata/metadata"]
    plan = root.plan()
    assert (plan.fails, said(plan)) == (True, [("error", "missing-state-file", "state/0/_metadata")])


TEXT = b"\0\2{}"
CHUNK = b"\0\0\0\1" + TEXT
SCHEMAS = b"\0\2v3\0\0\0\1" + TEXT + (b"\0\0" + CHUNK) * 2 + CHUNK * 2
"""One schema: a name, key and value each with an id, an encoder, and the key in a map."""

NAMED = "state/0/_stateSchema/default/0_x"


def with_schema(stored: str = f"file:/elsewhere/{NAMED}") -> Memory:
    """A transformWithState, whose metadata names the schema of its state by an absolute path."""
    root = memory(with_families(2).files, {NAMED: SCHEMAS})
    value = json.loads(root.files.pop("state/0/_metadata/metadata").split(b"\n")[1])
    value["stateStoreInfo"][0]["stateSchemaFilePaths"] = [stored]
    root.files["state/0/_metadata/v2/0"] = b"v2\n" + json.dumps(value).encode()
    return root


@pytest.mark.parametrize(
    ("schema", "id"),
    [(SCHEMAS, ""), (None, "missing-state-file"), (b"", "corrupt-file"), (b"?", "checksum-mismatch")],
)
def test_transform_with_state_needs_the_schemas_that_its_metadata_names(schema: bytes | None, id: str) -> None:
    root = with_schema()
    root.files["state/0/_stateSchema/default/.0_x.crc"] = encode(SCHEMAS)
    if schema is None:
        root.remove(NAMED)
    else:
        root.files[NAMED] = schema
    plan = root.plan()
    assert (plan.fails, said(plan)) == (bool(id), [("error", id, NAMED)] if id else [])


@pytest.mark.parametrize("data", [*(SCHEMAS[:size] for size in range(1, len(SCHEMAS), 5)), SCHEMAS + b"\0"])
def test_a_schema_of_another_form_is_not_judged(data: bytes) -> None:
    root = with_schema()
    root.files[NAMED] = data
    assert (root.plan().fails, said(root.plan())) == (False, [("error", "unknown-version", NAMED)])


def test_a_schema_that_a_restart_reads_outside_the_folder_is_taken_for_granted_openly() -> None:
    root = with_schema("/home/elsewhere/0_x")
    (row,) = root.plan().elsewhere
    assert (row.kind, row.subject, row.option) == ("stored-elsewhere", "/home/elsewhere/0_x", "--map OLD=NEW")
    there = Memory("memory", (), {**root.files, "elsewhere/0_x": SCHEMAS}, "/home")
    assert there.plan().elsewhere == ()


def test_a_schema_may_lie_where_its_path_says() -> None:
    root = with_schema("/home/other/0_x")
    root.remove(NAMED)
    root = Memory("memory", (), {**root.files, "other/0_x": SCHEMAS}, "/home")
    assert said(root.plan()) == []


def test_column_families_tell_of_transform_with_state_where_metadata_and_schemas_are_gone() -> None:
    plan = plan_without(with_families(2), "state/0/_metadata/metadata", "state/0/0/_metadata/schema")
    assert (plan.fails, said(plan)) == (True, [("error", "missing-state-file", "state/0/_metadata")])
