"""Rules of a restart that differ by the version of Spark, and what shows that version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cklog.inputs.batches import spark_version
from cklog.parsers.spark.parser import SparkCheckpoint
from tests.builders.spark import Memory
from tests.reading.spark import said

STORE = "spark.sql.streaming.stateStore."
OF_35 = {f"{STORE}rocksdb.formatVersion": "5", "spark.sql.shuffle.partitions": "2"}
OF_40 = OF_35 | {f"{STORE}encodingFormat": "unsaferow"}
OF_41 = OF_40 | {f"{STORE}rowChecksum.enabled": "false"}
OF_42 = OF_41 | {f"{STORE}rocksdb.mergeOperatorVersion": "2"}


def query(conf: dict[str, str], plan: str = "v1", commit: str = "v1", ends: dict[str, Any] | None = None) -> Memory:
    lines = [f"{key}:{json.dumps(end)}" for key, end in (ends or {}).items()] or ["7"]
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b"v1\n-6995"}
    for n in range(3):
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": n, "conf": conf})
        files[f"offsets/{n}"] = "\n".join([plan, head, *lines]).encode()
        files[f"commits/{n}"] = f'{commit}\n{{"nextBatchWatermarkMs":0}}'.encode()
    return Memory("memory", (), files)


@pytest.mark.parametrize(
    ("conf", "plan", "commit", "since"),
    [
        (OF_35, "v1", "v1", (False, False, False)),
        (OF_40, "v1", "v1", (True, False, False)),
        (OF_35, "v1", "v2", (True, False, False)),
        (OF_41, "v1", "v1", (True, True, False)),
        (OF_42, "v1", "v1", (True, True, True)),
        ({}, "v2", "v1", (True, True, True)),
        ({}, "v1", "v2", (True, None, None)),
        ({}, "v1", "v1", (None, None, None)),
        ({"spark.sql.shuffle.partitions": "2"}, "v1", "v1", (None, None, None)),
    ],
)
def test_what_files_show_of_the_version(
    conf: dict[str, str], plan: str, commit: str, since: tuple[bool | None, ...]
) -> None:
    ends = {"0": 7} if plan == "v2" else {}
    found = spark_version(SparkCheckpoint(query(conf, plan, commit, ends)).logs())
    versions = [(4, 0), (4, 1), (4, 2)]
    assert tuple(map(found.since, versions)) == since
    assert bool(str(found)) == (since != (None, None, None))


@pytest.mark.parametrize(("conf", "fails"), [(OF_35, False), (OF_40, False), (OF_42, True), ({}, True)])
def test_missing_metadata_stops_a_spark_from_4_2_on_and_gives_others_a_new_id(
    conf: dict[str, str], fails: bool
) -> None:
    root = query(conf)
    root.remove("metadata")
    plan = root.plan()
    assert plan.fails is fails
    assert said(plan) == [("error", "missing-metadata", "metadata")]
    message = plan.findings[0].message
    assert ("silently takes a new query id" in message) is (conf is not OF_42)
    assert ("does not fail" in message) is not fails


def test_a_named_source_that_lost_its_line_is_read_again_from_its_start() -> None:
    root = query({}, "v2", ends={"orders": {"orders": {"0": 7}}, "clicks": {"clicks": {"0": 9}}})
    root.files["offsets/2"] = root.files["offsets/2"].rpartition(b"\n")[0]
    plan = root.plan()
    assert not plan.fails
    [message] = [f.message for f in plan.findings if f.id == "torn-batch-file"]
    assert "reads all of clicks again from its start" in message
    assert "restart fails" not in message


def test_a_source_without_a_name_that_lost_its_line_stops_the_restart() -> None:
    root = query({}, "v2", ends={"0": 7, "1": 9})
    root.files["offsets/2"] = root.files["offsets/2"].rpartition(b"\n")[0]
    assert root.plan().fails


def continuous(planned: int, committed: int) -> Memory:
    files = {"metadata": b'{"id":"q"}'}
    files |= {f"offsets/{n}": b'v1\n\n{"0":{"value":%d,"runTimeMs":1}}' % n for n in range(planned + 1)}
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(committed + 1)}
    return Memory("memory", (), files)


@pytest.mark.parametrize("planned", [3, 4])
def test_a_continuous_trigger_leaves_no_plan_of_what_is_in_flight(planned: int) -> None:
    plan = continuous(planned, 3).plan()
    assert (plan.committed, plan.planned, plan.fails, plan.asynchronous) == (3, None, False, True)
    assert "Nothing is in flight" not in plan.restart
    assert "may get its results again" in plan.restart


def test_a_continuous_trigger_reads_one_plan_alone() -> None:
    root = continuous(3, 3)
    root.remove("offsets/2")
    assert not root.plan().fails
