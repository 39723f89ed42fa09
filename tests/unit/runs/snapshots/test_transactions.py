"""Pending transactions in Kafka's logs: how they ended, and which checkpoint that leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cklog.kafka_logs.ended import EndedTransaction, ProducerEpoch
from cklog.kafka_logs.logs import PartitionLogs
from tests.builders import flink as fb
from tests.builders.kafka import ABORT, COMMIT, TRANSACTIONAL, Row, batch
from tests.builders.kafka_broker import TopicLog
from tests.program import cklog

JOB = "a" * 32


def checkpoint(root: Path, number: int, *producers: tuple[int, int]) -> None:
    """A checkpoint with a pending transaction of each producer: its id and epoch."""
    committables = [fb.committable(f"out-{producer}-{epoch}", producer, epoch) for producer, epoch in producers]
    collected = fb.versioned(2, fb.collector(number, committables))
    data, lists = fb.operator_state({"streaming_committer_raw_states": [collected]})
    held = fb.subtask(6, 0, managed=fb.states(fb.inline(data), lists))
    made = [fb.operator(6, [held], bytes(range(16)), "out: Committer")]
    folder = root / JOB / f"chk-{number}"
    folder.mkdir(parents=True)
    properties = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    (folder / "_metadata").write_bytes(fb.metadata(6, made, checkpoint=number, properties=properties).data)


def log_of(*parts: tuple[int, int, int | None]) -> TopicLog:
    """A log of transactions, each of a producer's id and epoch, and ended or open."""
    log = TopicLog()
    for producer, epoch, end in parts:
        made = batch(log.end, [Row(b"v")], flags=TRANSACTIONAL, producer=producer, epoch=epoch)
        log.add(made, [log.end], log.end + 1, "open", producer)
        if end is not None:
            log.end_transaction(producer, end)
    return log


def line(root: Path, logs: Sequence[TopicLog]) -> tuple[int, dict[str, Any], list[str]]:
    """The exit code, the run, and how each transaction ended."""
    for number, log in enumerate(logs):
        log.write(root / "kafka" / f"out-{number}")
    ended = cklog("recovery-line", root / "ck", "--kafka", root / "kafka", "--json")
    found = json.loads(ended.out)["result"]
    return ended.code, found["runs"][0], [row["ended"] for row in found["details"]["transactions"]]


@pytest.mark.parametrize(
    ("logs", "how"),
    [
        ([log_of((7, 3, COMMIT))], "committed"),
        ([log_of((7, 3, ABORT))], "aborted"),
        ([log_of((7, 3, None))], "open"),
        ([log_of((7, 2, ABORT), (7, 3, COMMIT))], "committed"),  # another epoch is another transaction
        ([log_of((7, 2, COMMIT))], "unknown"),
        ([log_of((7, 2, None), (7, 3, COMMIT))], "committed"),
        ([log_of((8, 3, COMMIT))], "unknown"),
        ([log_of((7, 3, COMMIT)), log_of((7, 3, COMMIT))], "committed"),
        ([log_of((7, 3, COMMIT)), log_of((7, 3, ABORT))], "unknown"),  # two transactions, or damage
        ([log_of((7, 3, COMMIT)), log_of((7, 3, None))], "unknown"),
    ],
)
def test_how_a_transaction_ended(tmp_path: Path, logs: list[TopicLog], how: str) -> None:
    checkpoint(tmp_path / "ck", 7, (7, 3))
    code, run, ended = line(tmp_path, logs)
    assert ended == [how]
    assert (code, run["action"]) == ((3, "repair-first") if how == "aborted" else (0, "restart"))
    assert any("Kafka can still commit" in row["claim"] for row in run["unchecked"]) == (how == "unknown")


def test_an_older_checkpoint_makes_lost_results_again(tmp_path: Path) -> None:
    for number in (6, 7, 8):
        checkpoint(tmp_path / "ck", number, (number, 0))
    code, run, _ = line(tmp_path, [log_of((6, 0, COMMIT), (7, 0, ABORT), (8, 0, ABORT))])
    assert (code, run["action"], run["chosen"]) == (3, "restart-older", "chk-6")
    assert run["command"].endswith(f"{JOB}/chk-6")
    steps = cklog("runbook", tmp_path / "ck", "--kafka", tmp_path / "kafka").out
    assert "Restore chk-6" in steps


def test_without_logs_the_answer_says_what_it_rests_on(tmp_path: Path) -> None:
    checkpoint(tmp_path / "ck", 7, (7, 3))
    run = json.loads(cklog("recovery-line", tmp_path / "ck", "--json").out)["result"]["runs"][0]
    claims = {row["claim"]: row["option"] for row in run["unchecked"]}
    assert claims["Kafka can still commit 1 pending transaction of sink out"] == "--kafka FOLDER"


def test_a_marker_after_the_first_broken_batch_has_ended_nothing(tmp_path: Path) -> None:
    """The broker truncates the log there when it restarts."""
    checkpoint(tmp_path / "ck", 7, (7, 3))
    log = log_of((7, 3, None))
    at = len(log.segments[0])
    log.data(2)
    log.end_transaction(7, COMMIT)
    log.segments[0][at + 60] ^= 1
    _, _, ended = line(tmp_path, [log])
    assert ended == ["open"]


def test_all_older_checkpoints_cost_one_more_scan_of_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(1, 7)
    for number in numbers:
        checkpoint(tmp_path / "ck", number, (number, 0))
    searched: list[int] = []
    find_ended = PartitionLogs._find_ended

    def counted(logs: PartitionLogs, asked: frozenset[ProducerEpoch]) -> dict[ProducerEpoch, list[EndedTransaction]]:
        searched.extend([len(asked)] if asked else [])
        return find_ended(logs, asked)

    monkeypatch.setattr(PartitionLogs, "_find_ended", counted)
    _, run, _ = line(tmp_path, [log_of((1, 0, COMMIT), *((number, 0, ABORT) for number in numbers[1:]))])
    assert (run["chosen"], searched) == ("chk-1", [1, 5])
