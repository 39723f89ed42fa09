"""Flink's sinks: offsets that are read again, and transactions that a restore commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cklog.parsers.flink.derived import operator_id
from tests.builders import flink as fb
from tests.builders.kafka import ABORT, COMMIT, TRANSACTIONAL, Row, batch
from tests.builders.kafka_broker import TopicLog, job_logs
from tests.program import cklog
from tests.reading.impact import fates, impact, kept

JOB = "a" * 32


def sink_state(lists: dict[str, Sequence[bytes]]) -> fb.Built:
    data, places = fb.operator_state(lists)
    return fb.subtask(6, 0, managed=fb.states(fb.inline(data), places))


def flink(root: Path, number: int, offset: int, pending: Sequence[str], committer: bool = True) -> Path:
    """A job that reads topic `in` and writes with Kafka's exactly-once sink."""
    splits = [fb.versioned(0, fb.kafka_split("in", 0, offset))]
    source = fb.operator(6, [sink_state({"SourceReaderState": splits})], bytes.fromhex(operator_id("s")), "Source: in")
    both = [fb.committable(name, 70 + int(name.rpartition("-")[2]), 0) for name in pending]
    state: dict[str, Sequence[bytes]] = {}
    if pending:
        state = {"streaming_committer_raw_states": [fb.versioned(2, fb.collector(number, both))]}
    operators = [source, fb.operator(6, [fb.subtask(6)], bytes.fromhex(operator_id("w")), "out: Writer")]
    if committer:
        made = [sink_state(state)] if pending else [fb.subtask(6)]
        operators.append(fb.operator(6, made, bytes.fromhex(operator_id("c")), "out: Committer"))
    folder = root / JOB / f"chk-{number}"
    folder.mkdir(parents=True)
    data = fb.metadata(6, operators, checkpoint=number, properties=fb.properties((), "Checkpoint", "FORWARD_BACKWARD"))
    (folder / "_metadata").write_bytes(data.data)
    return folder


def test_pending_transactions_are_committed_by_the_restore(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, ["out-0-7"])
    found = impact(tmp_path)
    assert fates(found) == [
        ("out", "of all records", "may-be-doubled", 100, None, "read-again"),
        ("out", "of committed records", "once", "out-0-7", None, "committed-by-restore"),
    ]
    assert [(t["transaction"], t["fate"], t["producer"]) for t in found["transactions"]] == [
        ("out-0-7", "committed", "producer 77 epoch 0")
    ]
    best = {row["readers"]: row["at_best"] for row in found["guarantees"]}
    assert best == {"of committed records": "exactly-once", "of all records": "at-least-once"}


def test_what_a_newer_checkpoint_has_committed_is_doubled(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, ["out-0-7"])
    flink(tmp_path, 8, 250, ["out-0-8"])
    found = impact(tmp_path, "--at", f"{JOB}=7")
    assert ("out", "of all records", "doubled", 100, 250, "read-again") in fates(found)
    assert ("out", "of committed records", "may-be-doubled", "out-0-8", None, "committed-later") in fates(found)
    assert {t["transaction"]: t["fate"] for t in found["transactions"]} == {
        "out-0-7": "committed",
        "out-0-8": "visible",
    }
    assert found["intervals"][0]["count"] == 150
    assert {row["at_best"] for row in found["guarantees"]} == {"at-least-once"}


def test_a_sink_without_a_committer_takes_all_again(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [], committer=False)
    flink(tmp_path, 8, 250, [], committer=False)
    found = impact(tmp_path, "--at", f"{JOB}=7", "--against", "chk-8")
    assert fates(found) == [("out", "", "doubled", 100, 250, "read-again")]
    (row,) = found["guarantees"]
    assert (row["guarantee"], row["at_best"]) == ("none", "at-least-once")
    assert row["evidence"][-1]["because"] == "no-committer"


def test_another_committer_is_not_guessed_about(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [])
    (row,) = impact(tmp_path)["guarantees"]
    assert (row["at_best"], row["evidence"][-1]["because"]) == ("exactly-once", "unread-committer")


def test_against_names_one_snapshot(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [])
    assert cklog("impact", tmp_path, "--against", "chk-9").code == 66


def test_kafka_logs_bound_what_comes_again(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 100, ["out-0-7"])
    kafka = ("--kafka", str(job_logs(tmp_path / "kafka")))
    found = impact(tmp_path / "job", *kafka)
    (row,) = found["again"]
    assert (row["from"], row["to"], row["most"], row["kept"]) == (100, None, 300, True)
    (told,) = found["transactions"]
    assert [told[k] for k in ("fate", "log", "from", "to", "records")] == ["committed", "out-0", 5, 9, 4]
    assert kept(found) == {"out of committed records": "exactly-once", "out of all records": "at-least-once"}
    found = impact(tmp_path / "job", *kafka, "--group", "job")
    (row,) = found["again"]
    assert (row["from"], row["to"], row["most"]) == (100, 180, 300)
    assert fates(found)[0] == ("out", "of all records", "doubled", 100, 180, "read-again")


def test_offsets_that_the_log_no_longer_has_are_lost(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 400, ["out-0-7"])
    found = impact(tmp_path / "job", "--kafka", str(job_logs(tmp_path / "kafka")), exit=3)
    assert found["action"] == "repair-first"
    assert found["again"][0]["kept"] is False
    assert kept(found) == {"out of committed records": "at-most-once", "out of all records": "none"}


def test_logs_that_are_not_there(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 100, [])
    folder = job_logs(tmp_path / "kafka")
    assert cklog("impact", tmp_path / "job", "--kafka", folder, "--group", "other").code == 66
    assert cklog("impact", tmp_path / "job", "--kafka", folder, "--channel", "in-0=no-9").code == 66
    assert cklog("impact", tmp_path / "job", "--group", "job").code == 2


def test_the_impact_is_that_of_a_checkpoint_without_aborted_transactions(tmp_path: Path) -> None:
    """As the line: 8 is passed over, because Kafka has aborted what it has pending; nothing of that is visible."""
    for number, offset in ((7, 0), (8, 1)):
        flink(tmp_path / "ck", number, offset, [f"out-0-{number}"])
    read, written = TopicLog(), TopicLog()
    read.add(batch(0, [Row(b"a"), Row(b"b")]), [0, 1], 2, "data")
    for offset, producer, end in ((0, 77, COMMIT), (2, 78, ABORT)):
        made = batch(offset, [Row(b"v")], flags=TRANSACTIONAL, producer=producer, epoch=0)
        written.add(made, [offset], offset + 1, "open", producer)
        written.end_transaction(producer, end)
    read.write(tmp_path / "kafka" / "in-0")
    written.write(tmp_path / "kafka" / "out-0")
    line = json.loads(cklog("recovery-line", tmp_path / "ck", "--kafka", tmp_path / "kafka", "--json").out)
    found = impact(tmp_path / "ck", "--kafka", str(tmp_path / "kafka"), exit=3)
    assert (line["result"]["action"], line["result"]["line"][0]["checkpoint"]) == ("restart-older", 7)
    assert (found["action"], found["line"][0]["checkpoint"]) == ("restart-older", 7)
    assert {(row["transaction"], row["fate"]) for row in found["transactions"]} == {
        ("out-0-7", "done"),
        ("out-0-8", "aborted"),
    }


COMMITTABLE = fb.committable("out-7", 7, 3)
COLLECTOR = fb.collector(7, [COMMITTABLE])
COMMITTER, WRITER = "streaming_committer_raw_states", "writer_raw_states"


def sink_alone(root: Path, role: str, lists: dict[str, Sequence[bytes]]) -> None:
    made = [fb.operator(6, [sink_state(lists)], bytes(range(16)), f"out{role}")]
    folder = root / JOB / "chk-7"
    folder.mkdir(parents=True)
    properties = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    (folder / "_metadata").write_bytes(fb.metadata(6, made, checkpoint=7, properties=properties).data)


def of_version(version: int) -> bytes:
    """A committer's state with a committable of a version of its own."""
    size = len(COMMITTABLE)
    return fb.versioned(2, COLLECTOR.replace(fb.i32(1, size), fb.i32(version, size)))


@pytest.mark.parametrize(
    ("role", "lists"),
    [
        (": Committer", {COMMITTER: [fb.versioned(3, COLLECTOR)]}),
        (": Committer", {COMMITTER: [of_version(99)]}),
        (": Writer", {WRITER: [fb.versioned(9, fb.utf("a-prefix"))]}),
    ],
    ids=["collector", "committable", "writer"],
)
def test_of_an_unknown_version_nothing_is_said_of_results(
    tmp_path: Path, role: str, lists: dict[str, Sequence[bytes]]
) -> None:
    sink_alone(tmp_path, role, lists)
    for command in ("recovery-line", "impact"):
        ended = cklog(command, tmp_path, "--json")
        assert (ended.code, json.loads(ended.out)["result"]["action"]) == (5, "undetermined")
    assert "what a restore commits for the sink is unknown" in cklog("impact", tmp_path).out


@pytest.mark.parametrize(
    ("role", "lists"),
    [
        (": Committer", {"iceberg-files-committer-state": [b"\0\1zz"]}),
        ("", {"bucket-states": [b"a bucket"]}),
        ("", {"next-transactional-id-hint-v2": [b"a hint"]}),
        ("", {"pending-checkpoints": [b"a list"]}),
    ],
    ids=["iceberg", "files-of-before", "kafka-of-before", "write-ahead"],
)
def test_what_an_unknown_sink_has_pending_is_not_known(
    tmp_path: Path, role: str, lists: dict[str, Sequence[bytes]]
) -> None:
    sink_alone(tmp_path, role, lists)
    ended = cklog("recovery-line", tmp_path, "--fail-on", "unchecked")
    assert ended.code == 5
    assert "whether a restore commits all that is pending for sink out" in ended.out
    found = impact(tmp_path)
    assert fates(found) == [("out", "", "may-be-missing", None, None, "pending-unread")]
    assert {row["guarantee"] for row in found["guarantees"]} == {"none"}
    assert 'May be missing: what is pending for "out".' in cklog("impact", tmp_path).out
    assert cklog("impact", tmp_path, "--fail-on", "unchecked").code == 5


def test_a_sink_whose_state_is_read_has_nothing_unknown_pending(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, ["out-0-7"])
    assert "that cklog cannot read" not in cklog("recovery-line", tmp_path).out
    assert all(why != "pending-unread" for *_, why in fates(impact(tmp_path)))
