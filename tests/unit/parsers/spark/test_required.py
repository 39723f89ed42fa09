"""Which stores of Spark must be there: by metadata, by what else is left, and said where nothing tells."""

from __future__ import annotations

import json

import pytest

from cklog.parsers.codecs.hadoop_crc import encode
from tests.builders.spark_state import (
    DELTA,
    HDFS,
    KEY,
    NULL,
    by_ids,
    checkpoint,
    deltas,
    hdfs,
    memory,
    operator,
    plan_without,
    schema_of,
)
from tests.reading.spark import said

METADATA, SCHEMA = "state/0/_metadata/metadata", "state/0/0/_metadata/schema"
PARTITION = tuple(path for path in hdfs().files if path.startswith("state/0/1/"))


@pytest.mark.parametrize("gone", [(), (METADATA,)])
@pytest.mark.parametrize("key", [(), NULL])
def test_an_operator_without_a_key_has_one_partition_whatever_its_metadata_says(
    key: tuple[str, ...], gone: tuple[str, ...]
) -> None:
    """`groupBy().count()` and `limit(3)` on Spark 4.3: metadata with "numPartitions": 2, and partition 0 alone."""
    root = hdfs()
    root.files[SCHEMA] = schema_of(key)
    plan = plan_without(root, *PARTITION, *gone)
    assert (plan.committed, plan.fails, plan.unjudged) == (6, False, "")
    assert "error" not in {severity for severity, *_ in said(plan)}


@pytest.mark.parametrize(("name", "unjudged"), [("stateStoreSave", True), ("globalLimit", False), ("dedupe", False)])
def test_the_name_of_an_operator_tells_whether_it_can_be_global(name: str, unjudged: bool) -> None:
    root = hdfs()
    root.files[METADATA] = root.files[METADATA].replace(b"stateStoreSave", name.encode())
    plan = plan_without(root, *PARTITION, SCHEMA)
    assert (bool(plan.unjudged), plan.fails) == (unjudged, name == "dedupe")


@pytest.mark.parametrize("schema", [None, b"", b"\0\2v3\0\0\0\1", schema_of(KEY)[:-9][:20], b"\0\2v2\xff\xff\xff\xff"])
@pytest.mark.parametrize("commits", [1, 7])
def test_where_nothing_tells_how_many_partitions_there_were_it_is_said(commits: int, schema: bytes | None) -> None:
    root = hdfs(commits)
    gone = [path for path in root.files if path.startswith("state/0/1/")]
    root.files[SCHEMA] = schema or b""
    plan = plan_without(root, *gone, METADATA, *([SCHEMA] if schema is None else []))
    assert plan.unjudged.startswith("state/0: nothing shows whether it had one partition")
    assert ("warning", "unjudged-state", "state") in said(plan)
    assert plan.committed == commits - 1


def test_a_checksum_file_of_a_partition_and_the_ids_of_a_commit_tell_of_it() -> None:
    root = memory(hdfs().files)
    for path in (*PARTITION, METADATA, SCHEMA):
        root.remove(path)
    root.files["state/0/1/.7.delta.crc"] = encode(DELTA)
    plan = root.plan()
    assert ("error", "missing-state-file", "state/0/1/7.delta") in said(plan)
    for partitions, fails in ((1, False), (2, True)):
        root = by_ids(6)
        ids = [[f"i{root.plan().committed + 1}"]] * partitions
        newest = f"commits/{root.plan().committed}"
        value = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": ids}}
        root.files[newest] = b"v2\n" + json.dumps(value).encode()
        root.files.pop(SCHEMA, None)
        root.files.pop(METADATA, None)
        assert (root.plan().fails, root.plan().unjudged) == (fails, "")


def test_a_store_of_a_join_that_is_gone_from_all_partitions_is_missed_without_metadata() -> None:
    """Every join between streams has all four, an outer one and one without a watermark too."""
    names = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
    stores = [deltas(range(1, 8), place=f"state/0/{{}}/{name}") for name in names[:3]]
    root = memory(checkpoint(HDFS, 7), operator(stores=names), *stores)
    plan = plan_without(root, METADATA)
    assert plan.fails
    assert ("error", "missing-state-file", f"state/0/0/{names[3]}/7.delta") in said(plan)
