"""What each kind of run has to read and to process again in a recovery, held against its files, or other commands."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cklog.inputs.partitions import Folder, SegmentFile
from cklog.policies.load_time import PUBLISHED
from cklog.runs.partitions.line import unchecked_bytes
from tests.conftest import REPOSITORY
from tests.program import cklog

SAMPLES = REPOSITORY / "sample_logs"


def told(command: str, run: Path | str, *options: str) -> dict[str, Any]:
    ended = cklog(command, run, "--json", "--fail-on", "never", *options)
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads(ended.out)["result"]
    return result


def time_of(run: str, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = told("recovery-line", SAMPLES / run, *options)["recovery_time"]
    return found


def test_flink_reads_the_state_of_the_snapshot_and_its_metadata_tells_no_rate() -> None:
    line = told("recovery-line", SAMPLES / "flink-orders", "--read-rate", "2")
    (size,) = [row["state_bytes"] for row in line["details"]["snapshots"] if row["id"] == line["line"][0]["checkpoint"]]
    (part,) = line["recovery_time"]["parts"]
    assert (part["bytes"], part["restore_ms"]["high"]) == (size, pytest.approx(size / 2000, abs=0.001))
    assert (part["messages"], line["recovery_time"]["total_ms"]) == (None, None)
    unsaid = time_of("flink-orders")
    assert unsaid["restore_ms"] is None
    assert any("how fast state is read" in reason for reason in unsaid["unknown"])


@pytest.mark.parametrize(
    ("job", "size"),
    [("changelog/82d0b3a4969cad4810f85a8322f21839", None), ("f39964/f2d94ce82da46440c2b4005edf87a083", 0)],
)
def test_a_flink_job_without_a_snapshot_is_not_ready_at_once(shared_data: Path, job: str, size: int | None) -> None:
    """One that cannot be told (exit 5) may have state to read; one without any starts over, and reads all again."""
    found = told("recovery-line", shared_data / "flink-checkpoints" / job, "--read-rate", "5")["recovery_time"]
    (part,) = found["parts"]
    assert (part["bytes"], part["messages"], found["ready_ms"], found["total_ms"]) == (size, None, None, None)


@pytest.mark.parametrize("run", ["spark-state-hdfs", "spark-state-rocksdb", "spark-wordcount"])
def test_spark_loads_what_its_chains_stand_on_and_runs_one_batch_again(run: str) -> None:
    (part,) = time_of(run)["parts"]
    (together,) = told("chain", SAMPLES / run)["together"]
    assert part["bytes"] == together["bytes"]
    plans = sorted((SAMPLES / run).glob("**/offsets/[0-9]*"), key=lambda path: int(path.name))
    times = [json.loads(path.read_text().splitlines()[1])["batchTimestampMs"] for path in plans]
    assert part["replay_ms"] == {"low": 0.0, "high": max(b - a for a, b in pairwise(times))}


def test_streams_applies_the_rest_of_the_changelogs_task_by_task() -> None:
    line = told("recovery-line", SAMPLES / "kafka-streams-state", "--replay-rate", "50", "--read-rate", "1")
    stores = line["details"]["stores"]
    for part in line["recovery_time"]["parts"]:
        mine = [row for row in stores if row["task"] == part["name"]]
        assert part["bytes"] == sum(row["bytes"] for row in mine)
        assert part["messages"]["low"] == sum(row["records"] for row in mine)
    ready, parts = line["recovery_time"]["ready_ms"], line["recovery_time"]["parts"]
    each = [part["ready_ms"]["high"] for part in parts]
    assert ready == {"low": pytest.approx(max(each)), "high": pytest.approx(sum(each))}  # side by side, or in turn


def test_a_broker_checks_segments_from_the_one_with_the_recovery_point() -> None:
    segments = tuple(SegmentFile(f"t-0/{base}.log", base, size) for base, size in ((0, 1), (10, 20), (30, 300)))
    for point, size in ((None, 321), (0, 321), (9, 321), (10, 320), (29, 320), (30, 300), (99, 300)):
        assert unchecked_bytes(Folder("t", 0, "t-0", segments, clean=False, recovery_point=point)) == size
    assert unchecked_bytes(Folder("t", 0, "t-0", segments, clean=True, recovery_point=0)) == 0


def test_a_broker_is_up_when_its_logs_are_checked_and_no_backlog_counts() -> None:
    found = time_of("kafka-broker", "--read-rate", "1")
    assert found["catch_up_ms"] == {"low": 0.0, "high": 0.0}
    times = [part["restore_ms"]["low"] for part in found["parts"]]
    assert found["total_ms"] == {"low": max(times), "high": pytest.approx(sum(times), abs=0.01)}


@pytest.mark.parametrize("options", [(), ("--read-rate", "3")])
def test_a_store_by_key_reads_its_chains(options: tuple[str, ...]) -> None:
    chains = {
        f"{r['operator']}/{r['subtask']}": r for r in told("chain", SAMPLES / "patent-store", *options)["together"]
    }
    for part in time_of("patent-store", *options)["parts"]:
        assert part["bytes"] == chains[part["name"]]["bytes"]
        own = None if part["restore_ms"] is None else part["restore_ms"]["high"]
        assert own == (
            None
            if chains[part["name"]]["time_ms"] is None
            else pytest.approx(chains[part["name"]]["time_ms"], abs=0.01)
        )


@pytest.mark.parametrize("point", PUBLISHED)
def test_an_extent_of_a_published_size_loads_within_the_range(point: Any) -> None:
    """By the definition of `_queue_work`: from the fastest record that was published to the slower of both curves."""
    from cklog.policies.load_time import published

    fastest = min(one.seconds / one.records for one in PUBLISHED) * point.records
    assert fastest <= point.seconds <= float(published().seconds(point.records))


@pytest.mark.parametrize("run", ["cec-aggregate", "cec-aggregate-kafka", "cec-aggregate-parquet"])
def test_an_operator_with_a_queue_loads_its_extent_and_replays_from_t(run: str) -> None:
    (part,) = [p for p in time_of(run)["parts"] if p["name"] == "agg1/0"]
    extent = told("extent", SAMPLES / run, "--operator", "agg1")
    assert part["bytes"] == extent["bytes"]
    assert part["messages"] == {"low": extent["replay"]["tuples"], "high": extent["replay"]["tuples"]}
    slowest = 3.5 / 120_000 * extent["records"]  # below the first published size each record takes as long as there
    assert part["restore_ms"]["high"] == pytest.approx(1000 * slowest, abs=0.001)
    assert part["restore_ms"]["low"] == pytest.approx(1000 * 2.5 / 120_000 * extent["records"], abs=0.001)


def test_the_size_of_splits_does_not_show_in_a_queue_s_time() -> None:
    assert time_of("cec-aggregate", "--split-size", "3KiB") == time_of("cec-aggregate")
