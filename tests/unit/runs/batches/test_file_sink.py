"""The log of a file sink: a hole in it stops the query where the log is compacted, and not before."""

from __future__ import annotations

import pytest

from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark import Memory
from tests.reading.spark import said

HEAD = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'
ENTRY = b'v1\n{"path":"file:///out/part-%s","size":1,"action":"add"}'


def written(committed: int, entries: list[str], more: dict[str, bytes] | None = None) -> BatchPlan:
    """A query that reads files, without a batch in flight, and a file sink with these entries in its log."""
    files = {"ck/metadata": b'{"id":"q"}', **(more or {})}
    for n in range(committed + 1):
        files[f"ck/offsets/{n}"] = HEAD + b'{"logOffset":%d}' % n
        files[f"ck/commits/{n}"] = b'v1\n{"nextBatchWatermarkMs":0}'
        files[f"ck/sources/0/{n}"] = b'v1\n{"path":"file:///data/in/part-%d","timestamp":1,"batchId":%d}' % (n, n)
    files |= {f"out/_spark_metadata/{name}": ENTRY % name.encode() for name in entries}
    return Memory("memory", (), files, "file:///data").plan()


def without(*numbers: int, of: range, compacts: tuple[int, ...] = ()) -> list[str]:
    return [f"{n}.compact" if n in compacts else str(n) for n in of if n not in numbers]


@pytest.mark.parametrize(
    ("committed", "entries", "stops", "when"),
    [
        (5, without(3, of=range(6)), False, "A restart works until batch 9, then every start fails"),
        (8, without(3, of=range(9)), True, "The restart fails in batch 9"),
        (8, without(8, of=range(9)), True, "The restart fails in batch 9"),
        (24, without(23, of=range(25), compacts=(9, 19)), False, "until batch 29"),
        (28, without(23, of=range(29), compacts=(9, 19)), True, "The restart fails in batch 29"),
        (13, without(12, of=range(14), compacts=(4, 9)), True, "The restart fails in batch 14"),
        (13, without(12, of=range(14), compacts=(6,)), False, "until the sink compacts this log"),
        (13, without(12, of=range(14)), False, "until the sink compacts this log"),
    ],
)
def test_a_hole_stops_the_query_at_the_next_compaction(
    committed: int, entries: list[str], stops: bool, when: str
) -> None:
    plan = written(committed, entries)
    assert plan.fails is stops
    assert {finding.id for finding in plan.findings} == {"sink-log-behind"}
    assert all(when in finding.message for finding in plan.findings)


def test_a_folder_that_the_query_has_read_is_not_its_sink() -> None:
    assert said(written(5, [], {"in/part-0": b"{}"})) == []
    assert said(written(5, [], {"other/part-0": b"{}"})) == [("error", "sink-log-behind", "other/_spark_metadata")]
