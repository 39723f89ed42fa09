"""What a Spark query reads and writes, as other jobs see it: files are numbered by the batch that their log says."""

from __future__ import annotations

import json

from cklog.inputs.feeds import Feeds
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.feeds import batch_feeds
from cklog.runs.batches.plan import plan_of
from tests.builders.spark import Memory

HEAD = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}})


def log(*lines: dict[str, object]) -> bytes:
    """A file of a log."""
    return "\n".join(["v1", *(json.dumps(line) for line in lines)]).encode()


def listed(name: str, batch: int) -> dict[str, object]:
    """A file as a source's log lists it."""
    return {"path": f"file:///in/{name}", "timestamp": 1, "batchId": batch}


def feeds(batches: int, source: dict[str, bytes], in_flight: bool = False) -> Feeds:
    """Of a query that has done so many batches, each of which read one file; the last may be in flight."""
    files = {"ck/metadata": json.dumps({"id": "q"}).encode()}
    files |= {f"ck/offsets/{n}": f'v1\n{HEAD}\n{{"logOffset":{n}}}'.encode() for n in range(batches)}
    files |= {f"ck/commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(batches - in_flight)}
    files |= {f"ck/sources/0/{name}": data for name, data in source.items()}
    parser = SparkCheckpoint(Memory("memory", (), files, "file:///home"))
    return batch_feeds(parser, plan_of(parser), (), 64)


def test_a_compact_file_lists_files_of_older_batches_under_their_own_numbers() -> None:
    source = {"2.compact": log(listed("a", 0), listed("b", 1), listed("c", 2)), "3": log(listed("d", 3))}
    (given,) = feeds(4, source).inputs
    assert given.files == {"file:/in/a": 0, "file:/in/b": 1, "file:/in/c": 2, "file:/in/d": 3}


def test_points_are_the_newest_first_and_end_with_the_beginning() -> None:
    found = feeds(3, {str(n): log(listed(name, n)) for n, name in enumerate("abc")})
    (given,) = found.inputs
    assert [(p.label, p.read[given.name]) for p in found.points] == [
        ("batch 2", 3),
        ("batch 1", 2),
        ("batch 0", 1),
        ("the beginning", 0),
    ]
    assert [p.initial for p in found.points] == [False, False, False, True]


def test_the_plan_of_the_batch_in_flight_may_be_dropped() -> None:
    found = feeds(3, {str(n): log(listed(name, n)) for n, name in enumerate("abc")}, in_flight=True)
    (given,) = found.inputs
    assert [(p.label, p.at, p.read[given.name]) for p in found.points[:3]] == [
        ("batch 1", (), 3),
        ("batch 1, the plan of batch 2 dropped", (("query/0", 1), ("plan/0", 1)), 2),
        ("batch 0", (("query/0", 0),), 1),
    ]
