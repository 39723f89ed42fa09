"""Where the range of a batch begins or ends, if the plan that says it cannot be read: not known, and not the start."""

from __future__ import annotations

import pytest

from cklog.model.question import Question
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.line import BatchLog
from tests.builders.spark import Memory, sample

TORN, NEWER = b'v1\n{"batchWatermarkMs":0', b"v9\n{}\n0"


def without(batch: int, data: bytes) -> Memory:
    root = sample().without_checksums()
    root.files[f"ck/offsets/{batch}"] = data
    return root


@pytest.mark.parametrize("data", [TORN, NEWER])
def test_the_start_of_a_range_that_cannot_be_read_is_not_the_source_s_start(data: bytes) -> None:
    log = BatchLog(SparkCheckpoint(without(5, data)))
    line = log.line("recovery-line", Question())[0].result
    assert [(s.offset, s.replay_to) for s in line.sources] == [("unknown", {"logOffset": 6})]
    assert "exactly its stored range" not in line.details["headline"]
    [row] = log.inspect().result["sources"]
    assert (row["start"], row["end"]) == ("unknown", {"logOffset": 6})


@pytest.mark.parametrize("data", [TORN, NEWER])
def test_a_batch_whose_plan_cannot_be_read_runs_no_stored_range(data: bytes) -> None:
    line = BatchLog(SparkCheckpoint(without(6, data))).line("recovery-line", Question())[0].result
    assert [(s.offset, s.replay_to) for s in line.sources] == [({"logOffset": 5}, "unknown")]
    assert "its stored range" not in line.details["headline"]
    assert "which range it reads is not known" in line.details["headline"]


def test_before_the_first_batch_a_source_begins_at_its_start() -> None:
    root = sample()
    for n in range(1, 7):
        root.remove(f"ck/offsets/{n}")
    for n in range(6):
        root.remove(f"ck/commits/{n}")
    line = BatchLog(SparkCheckpoint(root)).line("recovery-line", Question())[0].result
    assert [s.offset for s in line.sources] == [None]
