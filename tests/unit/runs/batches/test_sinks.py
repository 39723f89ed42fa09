"""What a restart of a Spark query presents to its sink: its id, and which numbers come with the same range."""

from __future__ import annotations

import json

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.runs.batches.sinks import batch_restart
from cklog.sink_tables.model import Restart
from tests.builders.spark import Memory

QUERY = "076cd710-724e-4811-b8bb-470ae9f06c5d"


def presented(planned: list[int], committed: list[int], at: int | None = None, metadata: bool = True) -> Restart:
    """Of a query without state, whose rate source counts; its sink is no file sink."""
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}})
    files = {"ck/metadata": json.dumps({"id": QUERY}).encode()} if metadata else {}
    files |= {f"ck/offsets/{n}": f"v1\n{head}\n{n}".encode() for n in planned}
    files |= {f"ck/commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in committed}
    return batch_restart(plan_of(SparkCheckpoint(Memory("memory", (), files, "file:///home")), at=at))


def test_the_batch_in_flight_runs_again_as_it_was() -> None:
    found = presented([4, 5, 6], [4, 5])
    assert (found.asks, found.line, found.same_to, found.since) == (QUERY, 5, 6, 5)


def test_behind_the_plan_that_stays_other_ranges_get_the_numbers() -> None:
    found = presented([3, 4, 5, 6], [3, 4, 5], at=3)
    assert (found.line, found.same_to) == (3, 4)


def test_without_an_id_nobody_knows_the_query() -> None:
    found = presented([0, 1], [0], metadata=False)
    assert (found.asks, found.writers) == ("", frozenset())


def test_a_query_that_has_not_begun() -> None:
    found = presented([0], [])
    assert (found.line, found.same_to) == (-1, 0)


def test_progress_that_is_tracked_now_and_then() -> None:
    """With asynchronous progress tracking batches 1, 3 and 4 leave nothing: 5 reads again what they had read."""
    found = presented([0, 2, 5], [0, 2])
    assert (found.line, found.same_to) == (4, 2)
