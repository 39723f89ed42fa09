"""What a restart of a Spark query presents to its sink: its id, and which numbers come with the same range."""

from __future__ import annotations

import json

from cklog.inputs.sink_tables import Writer
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.runs.batches.sinks import SinkProgress, sink_progress
from tests.builders.spark import Memory

QUERY = "076cd710-724e-4811-b8bb-470ae9f06c5d"


def progress(planned: list[int], committed: list[int], at: int | None = None, metadata: bool = True) -> SinkProgress:
    """Of a query without state, whose rate source counts; its sink is no file sink."""
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}})
    files = {"ck/metadata": json.dumps({"id": QUERY}).encode()} if metadata else {}
    files |= {f"ck/offsets/{n}": f"v1\n{head}\n{n}".encode() for n in planned}
    files |= {f"ck/commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in committed}
    return sink_progress(plan_of(SparkCheckpoint(Memory("memory", (), files, "file:///home")), at=at))


def test_the_batch_in_flight_runs_again_under_its_number() -> None:
    found = progress([4, 5, 6], [4, 5])
    assert found == SinkProgress(Writer(QUERY, "batch"), None, 5, 6, again=(6,), afresh=())


def test_what_is_gone_back_from_gets_its_numbers_again_with_other_ranges() -> None:
    """The plan after the one that is gone back to stays: it runs again as it was."""
    found = progress([3, 4, 5, 6], [3, 4, 5], at=3)
    assert (found.committed, found.planned) == (3, 6)
    assert (found.again, found.afresh) == ((4,), (5, 6))


def test_without_an_id_nobody_knows_the_query() -> None:
    assert progress([0, 1], [0], metadata=False).writer is None


def test_a_query_that_has_not_begun() -> None:
    assert progress([0], []) == SinkProgress(Writer(QUERY, "batch"), None, -1, 0, again=(0,), afresh=())


def test_progress_that_is_tracked_now_and_then() -> None:
    """With Spark's asynchronous progress tracking batches 1, 3 and 4 leave nothing."""
    found = progress([0, 2, 5], [0, 2])
    assert (found.committed, found.planned, found.again, found.sparse) == (2, 5, (5,), True)
    assert found.afresh == ()
    assert not progress([4, 5, 6], [4, 5]).sparse
