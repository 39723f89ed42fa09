"""A line held against the Kafka logs that it is replayed from: counts, holes, what groups have committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.kafka import ABORT, COMMIT
from tests.builders.kafka_broker import TopicLog, commit_batch
from tests.conftest import REPOSITORY
from tests.program import cklog

CHANNEL = "src/0->out/0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A native run: `src` reads orders-0 and had sent 8 messages, of which `out` has 3; both checkpointed once."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    rows = [
        {"operator": "src", "subtask": 0, "checkpoint": 1, "sent": {CHANNEL: 8}, "sources": {"orders-0": 4}},
        {"operator": "out", "subtask": 0, "checkpoint": 1, "received": {CHANNEL: 3}},
    ]
    (folder / "checkpoints" / "part-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def broker(folder: Path, **logs: TopicLog) -> str:
    for name, log in logs.items():
        topic, _, number = name.rpartition("_")
        log.write(folder / f"{topic}-{number}")
    return str(folder)


def orders() -> TopicLog:
    """Offsets 0 to 5 data, 6 and 7 aborted with marker 8, 9 data, 10 open."""
    log = TopicLog()
    log.data(6)
    log.data(2, producer=7)
    log.end_transaction(7, ABORT)
    log.data(1)
    log.data(1, producer=9)
    return log


def wire(count: int) -> TopicLog:
    log = TopicLog()
    for _ in range(count):
        log.data(1)
    return log


def asked(*command: str) -> dict[str, Any]:
    ended = cklog(*command, "--json")
    assert ended.code in (0, 3), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def ids(answer: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in answer["findings"]}


def test_a_source_is_counted_as_data_markers_aborted_and_open_records(run: Path, tmp_path: Path) -> None:
    logs = broker(tmp_path / "kafka", orders_0=orders())
    answer = asked("replay", str(run), "--kafka", logs)
    [row] = answer["result"]["details"]["ranges"]
    assert (row["log"], row["from"], row["to"]) == ("orders-0", 4, 11)
    assert (row["data"], row["control"], row["aborted"], row["open"]) == (3, 1, 2, 1)
    assert "open-transaction" in ids(answer)


def test_a_channel_is_the_partition_that_the_option_or_the_manifest_names(run: Path, tmp_path: Path) -> None:
    logs = broker(tmp_path / "kafka", orders_0=orders(), wire_3=wire(8))
    without = asked("replay", str(run), "--kafka", logs)
    assert "no-channel-log" in ids(without)
    bound = asked("replay", str(run), "--kafka", logs, "--channel", f"{CHANNEL}=wire-3")
    [channel] = bound["result"]["channels"]
    assert (channel["replay_from"], channel["replay_to"], channel["messages"], channel["retained"]) == (3, 8, 5, True)
    assert "no-channel-log" not in ids(bound)
    (run / "job.json").write_text(json.dumps({"channels": [{"channel": CHANNEL, "log": "wire-3"}]}))
    assert asked("replay", str(run), "--kafka", logs)["result"]["channels"] == bound["result"]["channels"]


def test_what_the_log_no_longer_holds_is_a_hole(run: Path, tmp_path: Path) -> None:
    late = wire(8)
    late.segments = {5: bytearray().join(wire_bytes(late, 5))}
    logs = broker(tmp_path / "kafka", orders_0=orders(), wire_3=late)
    answer = asked("replay", str(run), "--kafka", logs, "--channel", f"{CHANNEL}=wire-3")
    [channel] = answer["result"]["channels"]
    assert (channel["messages"], channel["retained"]) == (3, False)
    assert "retention-hole" in ids(answer)


def wire_bytes(log: TopicLog, first: int) -> list[bytes]:
    """The batches of a log of one segment, one offset each, from `first` on."""
    data = bytes(log.segments[0])
    places = sorted(at for _, at in log.sizes)
    return [data[at : at + log.sizes[0, at]] for at in places[first:]]


def test_a_line_beyond_the_end_of_the_log_is_an_error(run: Path, tmp_path: Path) -> None:
    logs = broker(tmp_path / "kafka", orders_0=wire(2), wire_3=wire(6))
    answer = asked("replay", str(run), "--kafka", logs, "--channel", f"{CHANNEL}=wire-3")
    assert answer["verdict"] == "findings"
    assert "beyond-log-end" in ids(answer)
    assert answer["result"]["channels"][0]["retained"] is False


def test_committed_offsets_stand_beside_the_checkpoints(run: Path, tmp_path: Path) -> None:
    commits = TopicLog()
    commits.segments[0] += commit_batch(0, [("billing", "orders", 0, 6), ("audit", "orders", 0, 2)])
    logs = broker(tmp_path / "kafka", orders_0=orders(), __consumer_offsets_0=commits)
    answer = asked("recovery-line", str(run), "--kafka", logs, "--group", "billing")
    [row] = answer["result"]["details"]["committed_difference"]
    assert (row["group"], row["in_checkpoint"], row["committed"], row["difference"]) == ("billing", 4, 6, 2)
    undo = cklog("replay", str(run), "--kafka", logs, "--group", "billing", "--rollback", "--format", "kafka-csv")
    assert (undo.code, undo.out) == (0, "orders,0,6\n")
    both = cklog("replay", str(run), "--kafka", logs, "--rollback", "--format", "kafka-csv")
    assert both.code == 2
    assert "audit, billing" in both.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--channel", "x=t-0"), 2),
        (("--group", "g"), 2),
        (("--kafka", "KAFKA", "--channel", "no such=wire-3"), 66),
        (("--kafka", "KAFKA", "--channel", f"{CHANNEL}=gone-1"), 66),
        (("--kafka", "KAFKA", "--channel", f"{CHANNEL}=wire"), 2),
        (("--kafka", "KAFKA", "--group", "nobody"), 66),
        (("--kafka", "no such folder"), 66),
        (("--kafka", "RUN"), 66),
    ],
)
def test_what_cannot_be_bound_is_refused_in_one_line(
    options: tuple[str, ...], code: int, run: Path, tmp_path: Path
) -> None:
    logs = broker(tmp_path / "kafka", orders_0=orders(), wire_3=wire(8))
    given = [{"KAFKA": logs, "RUN": str(run)}.get(option, option) for option in options]
    ended = cklog("replay", str(run), *given)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("cklog: ")


def test_committed_transactions_are_data(run: Path, tmp_path: Path) -> None:
    log = TopicLog()
    log.data(4)
    log.data(3, producer=1)
    log.end_transaction(1, COMMIT)
    [row] = asked("replay", str(run), "--kafka", broker(tmp_path / "kafka", orders_0=log))["result"]["details"][
        "ranges"
    ]
    assert (row["data"], row["control"], row["aborted"], row["open"]) == (3, 1, 0, 0)


def test_flinks_sources_are_held_against_the_log_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    logs = broker(tmp_path / "kafka", orders_0=wire(3))
    flink = ("sample_logs/flink-orders", "--map", "file:///srv/cklog-sample/flink-orders=sample_logs/flink-orders")
    answer = asked("replay", *flink, "--kafka", logs)
    assert [row["log"] for row in answer["result"]["details"]["ranges"]] == ["orders-0"]
    assert "beyond-log-end" in ids(answer)
