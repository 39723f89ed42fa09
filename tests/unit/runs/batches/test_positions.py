"""What sources keep below `sources/`: without it a restart fails, or goes on, by what the source is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark import Memory
from tests.reading.spark import said

EARLY, STEP = 1_700_000_000_000, 60_000


def planned(ends: list[Any], committed: int, kept: dict[str, bytes] | None = None) -> BatchPlan:
    """A query without state whose one source ends so in each batch, one batch a minute."""
    files = {"metadata": b'{"id":"q"}', **{f"sources/{path}": data for path, data in (kept or {}).items()}}
    for n, end in enumerate(ends):
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": EARLY + n * STEP, "conf": {}})
        files[f"offsets/{n}"] = f"v1\n{head}\n{json.dumps(end)}".encode()
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(committed + 1)}
    return Memory("memory", (), files).plan()


def test_a_rate_source_without_its_start_time_fails_where_it_plans_a_batch() -> None:
    seconds = [5, 65, 125]
    idle = planned(seconds, 2)
    assert (idle.fails, said(idle)) == (True, [("error", "missing-source-log", "sources/0/0")])
    assert str(EARLY - 5000) in idle.findings[0].message, "the file can be written anew"
    assert not planned(seconds, 2, {"0/0": b"v1\n%d" % (EARLY - 5000)}).findings
    unread = planned([0], 0)
    assert (unread.fails, said(unread)) == (False, [("warning", "missing-source-log", "sources/0/0")])
    busy = planned(seconds, 1)
    assert (busy.fails, said(busy)) == (False, [("warning", "missing-source-log", "sources/0/0")])
    assert "restart fails" not in busy.findings[0].message


@pytest.mark.parametrize("data", [bytes(16), b"w1\n%d" % (EARLY - 5000)], ids=["zeros", "no version"])
def test_a_damaged_start_time_stops_a_rate_source(data: bytes) -> None:
    plan = planned([5, 65, 125], 1, {"0/0": data})
    assert (plan.fails, [id for _, id, _ in said(plan)]) == (True, ["torn-batch-file"])


@pytest.mark.parametrize("data", [bytes(16), b"\x00w1\n{}"], ids=["zeros", "no version"])
def test_a_damaged_beginning_stops_a_kafka_source(data: bytes) -> None:
    plan = planned([{"orders": {"0": 10}}], -1, {"0/0": data})
    assert (plan.fails, [id for _, id, _ in said(plan)]) == (True, ["torn-batch-file"])


def test_what_a_source_keeps_in_a_form_of_its_own_is_not_judged() -> None:
    assert said(planned([{"offset": 3, "own": True}], 0, {"0/0": b"own"})) == []
    assert said(planned([{"offset": 3, "own": True}], 0, {"0/0": bytes(16)})) != []


def test_numbers_that_do_not_go_with_the_time_are_of_a_source_that_keeps_nothing() -> None:
    assert said(planned([3, 4, 900], 2)) == []


def test_kafka_needs_its_beginning_until_a_batch_is_committed() -> None:
    ends = [{"orders": {"0": 10}}, {"orders": {"0": 20}}]
    first = planned(ends[:1], -1)
    assert (first.fails, first.begins) == (True, False)
    assert said(first) == [("error", "missing-source-log", "sources/0/0")]
    later = planned(ends, 1)
    assert (later.fails, said(later)) == (False, [("warning", "missing-source-log", "sources/0/0")])
    begun = planned(ends[:1], -1, {"0/0": b'\x00v1\n{"orders":{"0":0}}'})
    assert (begun.fails, begun.begins) == (False, True)
    old = planned(ends[:1], -1, {"0/0": b'\xc0{"orders":{"0":0}}'})
    assert (old.fails, said(old)) == (False, []), "Spark 2.1.0 wrote no version"
    assert planned(ends[:1], -1, {"0/0": b'\x00{"orders":{"0":'}).fails


@pytest.mark.parametrize("end", [7, {"offset": 3, "own": True}])
def test_a_checksum_file_that_is_left_alone_stops_a_source_that_writes_the_file_anew(end: Any) -> None:
    plan = planned([end], 0, {"0/.0.crc": b"crc\0"})
    assert (plan.fails, said(plan)) == (True, [("error", "missing-source-log", "sources/0/0")])


def shard(batch: int, **more: str) -> dict[str, Any]:
    """An offset of Kinesis."""
    at = {"iteratorType": "AFTER_SEQUENCE_NUMBER", "iteratorPosition": str(batch)}
    return {"shardId-0": at | more, "metadata": {"streamName": "clicks", "batchId": str(batch)}}


@pytest.mark.parametrize("folder", ["shard-source", "shard-commit"])
def test_kinesis_reads_the_shards_of_the_last_batch(folder: str) -> None:
    ends = [shard(n) for n in range(4)]
    kept = {f"0/{folder}/{n}/shardId-0": b"{}" for n in range(4)}
    assert said(planned(ends, 3, kept)) == []
    gone = {path: data for path, data in kept.items() if "/3/" not in path}
    plan = planned(ends, 3, gone)
    assert (plan.fails, said(plan)) == (True, [("error", "missing-source-log", f"sources/0/{folder}/3")])
    assert "--at query/0=2" in plan.findings[0].message
    assert said(planned(ends, 2, gone)) == [], "the batch in flight writes them"
    older = {path: data for path, data in gone.items() if "/2/" not in path}
    assert said(planned(ends, 2, older)) == [], "the batch in flight begins where its own plan says"
    assert said(planned(ends, 3, {})) == [], "they may be kept elsewhere"
    other = planned(ends, 3, gone | {f"0/{folder}/3/shardId-1": b"{}"})
    assert (other.fails, bool(other.unjudged)) == (False, True)
    assert said(other) == [("error", "unjudged-source", f"sources/0/{folder}/3")]
    closed = [*ends[:3], shard(3, isLast="true")]
    assert said(planned(closed, 3, gone | {f"0/{folder}/3/shardId-1": b"{}"})) == []


@pytest.mark.parametrize("place", ["positions/", ""])
def test_an_entry_for_each_batch_that_a_source_of_no_known_kind_has_not_kept(place: str) -> None:
    ends = [{"cursor": n} for n in range(4)]
    kept = {f"0/{place}{n}": b"v1\n7" for n in range(4)}
    assert said(planned(ends, 3, kept)) == []
    del kept[f"0/{place}3"]
    plan = planned(ends, 3, kept)
    assert (plan.fails, bool(plan.unjudged)) == (False, True)
    assert said(plan) == [("error", "unjudged-source", f"sources/0/{place}3")]
    assert said(planned(ends, 3, {"0/offsets/0": b"{}"})) == [], "where it began, as Iceberg keeps it"
    late = {f"0/{place}{n}": b"7" for n in (3, 4)}
    assert said(planned([{"cursor": n} for n in range(6)], 5, late)) == [], "not an entry for each batch"
    assert said(planned(ends, 3, {"0/_schema_log_t/0": b"{}", "0/_schema_log_t/1": b"{}"})) == []


def test_shards_whose_positions_are_kept_elsewhere_are_taken_for_granted_openly() -> None:
    """Kinesis keeps them where its options say; only those below `sources/` can be looked at."""
    ends = [shard(n) for n in range(4)]
    (row,) = planned(ends, 3).elsewhere
    assert (row.kind, row.subject, row.option) == ("stored-elsewhere", "source/0", None)
    assert planned(ends, 3, {f"0/shard-source/{n}/shardId-0": b"{}" for n in range(4)}).elsewhere == ()
