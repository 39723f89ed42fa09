"""Connectors that copy from Kafka (MirrorMaker 2), compared with the logs of the cluster that they copy from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.connect import Topic, entry
from tests.builders.kafka_broker import TopicLog
from tests.program import Ended, cklog

MIRROR = "MirrorSourceConnector"
STORED = 19
"""The last offset that was copied: the copy goes on at the one after."""


def store(folder: Path, *places: tuple[str, int], connector: str = MIRROR) -> Path:
    """Offsets of a worker: (cluster, partition of topic t) each."""
    topic = Topic()
    for cluster, partition in places:
        at = {"cluster": cluster, "partition": partition, "topic": "t"}
        topic.add(entry(connector, at, {"offset": STORED}))
    topic.write(folder / "mm2-offsets.A.internal-0")
    return folder


def log(folder: Path, begin: int, records: int) -> Path:
    """The logs of the source's cluster: t-0 has `records` offsets from `begin` on."""
    made = TopicLog(end=begin, segments={begin: bytearray()})
    made.data(records)
    made.write(folder / "t-0")
    return folder


def asked(*words: str | Path) -> Ended:
    return cklog("recovery-line", *words, "--from", "connect")


def told(*words: str | Path) -> tuple[int, str, dict[str, str]]:
    """Exit code, action, and the messages by id."""
    ended = asked(*words, "--json")
    found: dict[str, Any] = json.loads(ended.out)
    return ended.code, found["result"]["action"], {f["id"]: f["message"] for f in found["findings"]}


@pytest.mark.parametrize(
    ("begin", "records", "why"),
    [
        (20, 5, ""),
        (0, 20, ""),  # the next record is still to be written
        (21, 5, "begins at 21: 1 offset from 20 on was deleted"),
        (0, 19, "ends at 19: the log was truncated, or the topic was deleted"),
    ],
)
def test_the_next_offset_is_in_the_log_or_at_its_end(tmp_path: Path, begin: int, records: int, why: str) -> None:
    code, action, said = told(store(tmp_path / "s", ("A", 0)), "--kafka", log(tmp_path / "k", begin, records))
    assert (code, action) == ((3, "repair-first") if why else (0, "restart"))
    assert set(said) == ({"position-gone"} if why else set())
    assert why in said.get("position-gone", "")


def test_a_partition_that_is_not_among_the_logs_stays_unchecked(tmp_path: Path) -> None:
    code, action, said = told(store(tmp_path / "s", ("A", 0), ("A", 1)), "--kafka", log(tmp_path / "k", 20, 5))
    assert (code, action) == (0, "restart")
    assert said["partition-elsewhere"].startswith("t-1: not in the FOLDER of --kafka, which has other partitions")


def test_a_topic_that_is_not_among_the_logs_leaves_the_restart_undetermined(tmp_path: Path) -> None:
    logs = tmp_path / "k"
    made = TopicLog()
    made.data(5)
    made.write(logs / "other-0")
    code, action, said = told(store(tmp_path / "s", ("A", 0), ("A", 1)), "--kafka", logs)
    assert (code, action, set(said)) == (5, "undetermined", {"missing-topic"})
    assert "topic t: the FOLDER of --kafka has none of its partitions, and t-0, t-1 are read" in said["missing-topic"]


def test_logs_of_one_cluster_are_not_compared_with_positions_of_another(tmp_path: Path) -> None:
    ended = asked(store(tmp_path / "s", ("A", 0), ("B", 0)), "--kafka", log(tmp_path / "k", 20, 5))
    assert ended.code == 2
    assert "connectors copy from several clusters (A, B); a folder has the logs of one" in ended.err
    assert "--source-from NAME=POSITION" in ended.err


def test_logs_are_refused_where_no_connector_copies_from_kafka(tmp_path: Path) -> None:
    Topic().add(entry("shop", {"server": "shop"}, {"lsn": 9})).write(tmp_path / "s" / "connect-offsets-0")
    ended = asked(tmp_path / "s", "--kafka", log(tmp_path / "k", 20, 5))
    assert ended.code == 2
    assert "no connector here copies from Kafka" in ended.err


def test_what_somebody_says_of_the_source_does_not_outweigh_its_log(tmp_path: Path) -> None:
    place, claim = store(tmp_path / "s", ("A", 0)), ("--source-from", f"{MIRROR}/0=20")
    assert told(place, *claim)[:2] == (0, "restart")
    assert told(place, *claim, "--kafka", log(tmp_path / "k", 30, 5))[:2] == (3, "repair-first")
    refuted = ("--source-from", f"{MIRROR}/0=25")
    code, _, said = told(place, *refuted, "--kafka", log(tmp_path / "whole", 0, 30))
    assert code == 3
    assert "begins at 25" in said["position-gone"]


def test_a_segment_that_was_not_read_may_hold_the_next_offset(tmp_path: Path) -> None:
    """It leads out of the folder, so that nobody looked; and what lies before it was read."""
    folder = log(tmp_path / "k", 0, 10)
    hidden = log(tmp_path / "elsewhere", 10, 20) / "t-0" / f"{10:020}.log"
    (folder / "t-0" / hidden.name).symlink_to(hidden)
    code, action, said = told(store(tmp_path / "s", ("A", 0)), "--kafka", folder)
    assert (code, action) == (5, "undetermined")
    assert "a segment of t-0 could not be read" in said["position-unknown"]
    read = told(tmp_path / "s", "--kafka", folder, "--follow-links")
    assert read[:2] == (0, "restart")
