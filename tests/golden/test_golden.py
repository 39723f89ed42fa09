"""Answers on the samples, byte for byte, on both engines. `pytest --refresh-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.engine import Engine
from cklog.run import Run
from tests.cli import cklog
from tests.conftest import REPOSITORY

HERE = Path("tests/golden")
MAP = "--map file:///srv/cklog-sample/wordcount=sample_logs/spark-wordcount"
FLINK = "sample_logs/flink-orders --map file:///srv/cklog-sample/flink-orders=sample_logs/flink-orders"
STREAMS = "sample_logs/kafka-streams-state/state --kafka sample_logs/kafka-streams-state/kafka"
CASES = {
    "sample_logs/kafka-broker/expected.json": "recovery-line sample_logs/kafka-broker --json",
    "sample_logs/checkmate-uncoordinated/expected.json": (
        "recovery-line sample_logs/checkmate-uncoordinated --explain --json"
    ),
    "sample_logs/kafka-streams-state/expected.json": f"recovery-line {STREAMS} --json",
    "kafka-broker.txt": "recovery-line sample_logs/kafka-broker",
    "kafka-broker-replay.json": "replay sample_logs/kafka-broker --json",
    "kafka-broker-replay.csv": "replay sample_logs/kafka-broker --operator billing --format kafka-csv",
    "kafka-broker-inspect.txt": "inspect sample_logs/kafka-broker",
    "kafka-streams.txt": f"recovery-line {STREAMS}",
    "checkmate.txt": "recovery-line sample_logs/checkmate-uncoordinated --explain",
    "checkmate-inspect.json": "inspect sample_logs/checkmate-uncoordinated --json",
    "sample_logs/flink-orders/expected.json": f"recovery-line {FLINK} --json",
    "flink.txt": f"recovery-line {FLINK}",
    "flink-moved.txt": "recovery-line sample_logs/flink-orders/125c88b9401f9252baa1b39e412cc4b8/chk-13",
    "flink-at.txt": f"recovery-line {FLINK} --at 125c=5",
    "flink-replay.json": f"replay {FLINK} --against chk-11 --json",
    "flink-replay.csv": f"replay {FLINK} --format kafka-csv",
    "flink-inspect.txt": f"inspect {FLINK} --uid orders --job-log sample_logs/flink-orders/jobmanager.log",
    "flink-retention.txt": f"retention {FLINK}",
    "flink-retention.json": f"retention {FLINK} --json",
    "flink-retention.sh": f"retention {FLINK} --jobs-stopped --format script",
    "sample_logs/domino-cycle/expected.json": "recovery-line sample_logs/domino-cycle --explain --json",
    "sample_logs/uncoordinated-join/expected.json": "recovery-line sample_logs/uncoordinated-join --explain --json",
    "sample_logs/raw-events/expected.json": "recovery-line sample_logs/raw-events --explain --json",
    "sample_logs/uncoordinated-join-parquet/expected.json": (
        "recovery-line sample_logs/uncoordinated-join-parquet --explain --json"
    ),
    "sample_logs/spark-wordcount/expected.json": f"recovery-line sample_logs/spark-wordcount {MAP} --json",
    "sample_logs/cec-aggregate/expected.json": (
        "eventual-checkpoint --operator agg1 sample_logs/cec-aggregate --forward --json"
    ),
    "sample_logs/reachability-uncoordinated/expected.json": (
        "recovery-line sample_logs/reachability-uncoordinated --json"
    ),
    "sample_logs/reachability-cic/expected.json": "recovery-line sample_logs/reachability-cic --json",
    "sample_logs/q3-coordinated/expected.json": "recovery-line sample_logs/q3-coordinated --json",
    "audit-cic.txt": "z-cycles sample_logs/reachability-cic --audit-cic",
    "rounds.txt": "recovery-line sample_logs/q3-coordinated",
    "rounds-metrics.txt": "inspect sample_logs/q3-coordinated --metrics",
    "reachability-failed-at.txt": "recovery-line sample_logs/reachability-uncoordinated --failed-at all",
    "reachability-z-cycles.json": "z-cycles sample_logs/reachability-uncoordinated --limit 5 --json",
    "cec-recovery-line.txt": "recovery-line sample_logs/cec-aggregate",
    "cec-recovery-line.json": "recovery-line sample_logs/cec-crashed --json",
    "cec-inspect.txt": "inspect sample_logs/cec-crashed",
    "cec-extent.json": "extent --operator agg1 sample_logs/cec-aggregate --forward --json",
    "cec-extent.txt": "extent --operator agg1 sample_logs/cec-aggregate --forward",
    "cec-extent-parquet.txt": "extent --operator agg1 sample_logs/cec-aggregate-parquet --forward",
    "cec-extent-kafka.txt": "extent --operator agg1 sample_logs/cec-aggregate-kafka --forward",
    "cec-crashed-extent.txt": "extent --operator agg1 sample_logs/cec-crashed --forward",
    "cec-crashed.json": "eventual-checkpoint --operator agg1 sample_logs/cec-crashed --forward --json",
    "cec-crashed.md": "eventual-checkpoint --operator agg1 sample_logs/cec-crashed --format md",
    "cec-aggregate.csv": "eventual-checkpoint --operator agg1 sample_logs/cec-aggregate --format csv",
    "domino-explain.txt": "recovery-line sample_logs/domino-cycle --explain",
    "domino-one-failed.json": "recovery-line sample_logs/domino-cycle --failed op1 --explain --json",
    "join-one-failed.txt": "recovery-line sample_logs/uncoordinated-join --failed join/1",
    "join-as-of.json": "recovery-line sample_logs/uncoordinated-join --as-of 2026-01-01T00:00:10Z --json",
    "join-at.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=2",
    "join-unreachable.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=5",
    "join.md": "recovery-line sample_logs/uncoordinated-join --explain --format md",
    "join.csv": "recovery-line sample_logs/uncoordinated-join --format csv",
    "join.jsonl": "recovery-line sample_logs/uncoordinated-join --format jsonl",
    "join-replay.json": "replay sample_logs/uncoordinated-join --json",
    "join-replay.csv": "replay sample_logs/uncoordinated-join --format csv",
    "join-replay-kafka.csv": "replay sample_logs/uncoordinated-join --format kafka-csv",
    "join-replay-delete.json": "replay sample_logs/uncoordinated-join --format kafka-delete-records",
    "join-replay-kcat.sh": "replay sample_logs/uncoordinated-join --format kcat",
    "join-replay-spark.json": "replay sample_logs/uncoordinated-join --format spark-offsets",
    "join-replay-flink.txt": "replay sample_logs/uncoordinated-join --format flink-offsets --topic orders",
    "join-verify.txt": (
        "verify sample_logs/uncoordinated-join --line sample_logs/uncoordinated-join/expected.json --maximal"
    ),
    "join-inspect.json": "inspect sample_logs/uncoordinated-join --json",
    "join-inspect.txt": "inspect sample_logs/uncoordinated-join",
    "join-earliest.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=2 --earliest",
    "join-z-cycles.txt": "z-cycles sample_logs/uncoordinated-join",
    "domino-z-cycles.txt": "z-cycles sample_logs/domino-cycle",
    "domino-z-cycles.json": "z-cycles sample_logs/domino-cycle --json",
    "domino-z-cycles.csv": "z-cycles sample_logs/domino-cycle --format csv",
    "domino-failed-at.txt": "recovery-line sample_logs/domino-cycle --failed-at all",
    "domino-failed-at.csv": "recovery-line sample_logs/domino-cycle --failed-at all --format csv",
    "domino-metrics.txt": "inspect sample_logs/domino-cycle --metrics",
    "compare.txt": "compare sample_logs/domino-cycle sample_logs/uncoordinated-join",
    "docs/domino-cycle.svg": "graph sample_logs/domino-cycle --format svg",
    "docs/uncoordinated-join.svg": "graph sample_logs/uncoordinated-join --format svg",
    "domino-graph.dot": "graph sample_logs/domino-cycle --format dot",
    "domino-graph.mmd": "graph sample_logs/domino-cycle --format mermaid",
    "domino-graph.json": "graph sample_logs/domino-cycle --json",
    "join-graph.txt": "graph sample_logs/uncoordinated-join",
    "raw-events.txt": "recovery-line sample_logs/raw-events --explain",
    "raw-events.json": "inspect sample_logs/raw-events --json",
    "wordcount.txt": f"recovery-line sample_logs/spark-wordcount {MAP}",
    "wordcount-inspect.txt": f"inspect sample_logs/spark-wordcount {MAP}",
}
EXITS = (
    {"join-unreachable.txt": 4, "flink-at.txt": 4, "flink-moved.txt": 5, "kafka-broker-replay.csv": 3}
    | dict.fromkeys(
        (
            "sample_logs/kafka-broker/expected.json",
            "kafka-broker.txt",
            "kafka-broker-replay.json",
            "kafka-broker-inspect.txt",
        ),
        3,
    )
    | dict.fromkeys(("sample_logs/kafka-streams-state/expected.json", "kafka-streams.txt"), 3)
    | dict.fromkeys(
        ("cec-crashed-extent.txt", "cec-crashed.json", "cec-crashed.md", "cec-recovery-line.json", "cec-inspect.txt"), 3
    )
)


def check(name: str, refresh: bool) -> None:
    path = REPOSITORY / (name if "/" in name else HERE / name)
    ended = cklog(*CASES[name].split())
    assert ended.code == EXITS.get(name, 0), ended.err
    if refresh:
        path.write_text(ended.out, encoding="utf-8", newline="\n")
    assert ended.out == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_local_engine_prints_the_golden_bytes(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(REPOSITORY)
    check(name, refresh=request.config.getoption("--refresh-golden"))


@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_the_spark_engine_prints_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch, spark: Engine) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    check(name, refresh=False)


def test_three_encodings_of_one_queue_give_the_same_bytes() -> None:
    texts = [(REPOSITORY / HERE / f"cec-extent{name}.txt").read_bytes() for name in ("", "-parquet", "-kafka")]
    assert texts[0] == texts[1] == texts[2]
