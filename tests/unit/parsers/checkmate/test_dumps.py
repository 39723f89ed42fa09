"""Dumps of the CheckMate testbed: numbers that are not kept, names, and damage."""

from __future__ import annotations

import collections
import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.model.verdict import Answer
from cklog.parsers.checkmate.parser import CheckMate
from cklog.storage import Root
from tests.builders.checkmate import BUCKET, START, framed, message, put_log, put_snapshot
from tests.conftest import SAMPLES
from tests.reading.checkmate import QUESTION, line_of, opened, replayed


def ids(answer: Answer[Any]) -> set[str]:
    return {finding.id for finding in answer.findings}


# --- a job with one partition of each operator on every worker, as the testbed deploys it


def deploy(folder: Path, workers: int = 2, coordinated: bool = False, rounds: int = 3) -> None:
    """src → map on every pair of workers; every snapshot of a worker at one moment; all received but the last two."""
    for w in range(workers):
        for k in range(rounds):
            stamp = k if coordinated else START + 1000 * k + 7 * w
            sent = {f"src_map_{w * workers + j}": 10 * (k + 1) - 1 for j in range(workers)}
            got = {f"src_map_{i * workers + w}": 10 * (k + 1) - 3 for i in range(workers)}
            taken = {str(w): 100 * (k + 1)}
            put_snapshot(folder, w + 1, "src", stamp, None if coordinated else sent, taken=taken)
            put_snapshot(folder, w + 1, "map", stamp, None if coordinated else {}, None if coordinated else got)
        for j in range(workers):
            put_log(folder, w + 1, f"src_map_{w * workers + j}", [] if coordinated else [0] * (10 * rounds + 5))


def test_channels_sources_and_replay_of_a_deployment(tmp_path: Path) -> None:
    deploy(tmp_path)
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert answer.exit_code == 0
    assert line_of(answer) == {"map/1": 3, "map/2": 3, "src/1": 3, "src/2": 3}
    assert replayed(answer) == {f"src/{i}->map/{j}": (28, 30) for i in (1, 2) for j in (1, 2)}
    assert all(c.messages == 2 and c.retained and (c.bytes or 0) > 300 for c in answer.result.channels)
    assert {s.source: s.offset for s in answer.result.sources} == {"src-0": 301, "src-1": 301}
    assert {e.uri for e in answer.result.line} >= {f"{BUCKET}/snapshot_1_map_{START + 2000}.bin"}
    assert {e.time for e in answer.result.line if e.subtask == 1} == {START + 2000}
    assert ids(answer) == {"assumed-partitions"}


def assumed(folder: Path) -> tuple[str, str]:
    found = [f for f in opened(folder).recovery_line(QUESTION).findings if f.id == "assumed-partitions"]
    assert len(found) == 1
    return found[0].severity, found[0].message


def test_a_source_that_left_no_snapshot_begins_at_its_first_offset(tmp_path: Path) -> None:
    deploy(tmp_path)
    for path in tmp_path.glob(f"{BUCKET}/snapshot_2_src_*"):
        path.unlink()
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer)["src/2"] == 0
    assert {(s.source, s.offset, s.subtask) for s in answer.result.sources} == {("src-0", 301, 1), ("src-1", 0, 2)}


def test_names_that_several_deployments_fit_are_told(tmp_path: Path) -> None:
    """Of one worker with one channel to itself, nobody knows if others died before they left anything."""
    deploy(tmp_path, workers=2)
    assert assumed(tmp_path)[0] == "info"
    deploy(tmp_path / "one", workers=1)
    severity, message = assumed(tmp_path / "one")
    assert (severity, "fit other deployments" in message, "2 workers with 2 partitions" in message) == (
        "warning",
        True,
        True,
    )


def test_a_missing_log_is_told_with_what_was_guessed_without_it(tmp_path: Path) -> None:
    deploy(tmp_path)
    (tmp_path / "worker-2-logs/src_map_2.bin").unlink()
    severity, message = assumed(tmp_path)
    assert severity == "warning"
    assert "the log of src_map_2, which there would be, is missing" in message
    assert message.endswith("prove no deployment, because logs are missing: what was taken is a guess")


def test_equal_answers_for_any_split(tmp_path: Path) -> None:
    deploy(tmp_path, workers=3)
    assert opened(tmp_path, split_bytes=1).recovery_line(QUESTION) == opened(tmp_path).recovery_line(QUESTION)
    assert opened(tmp_path).inspect().exit_code == 0
    assert opened(tmp_path).replay(QUESTION).result == opened(tmp_path).recovery_line(QUESTION).result


def test_rounds_of_a_coordinated_run(tmp_path: Path) -> None:
    """The newest complete round: no list of confirmed rounds survives the coordinator."""
    deploy(tmp_path, coordinated=True)
    (tmp_path / BUCKET / "snapshot_2_map_2.bin").unlink()
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert answer.result.protocol == "coordinated"
    assert line_of(answer) == {"map/1": 2, "map/2": 2, "src/1": 2, "src/2": 2}
    assert "round 1 is used" in answer.result.notes
    assert {s.source: s.offset for s in answer.result.sources} == {"src-0": 201, "src-1": 201}


def test_a_unit_that_left_nothing_is_told_where_rounds_could_look_complete(tmp_path: Path) -> None:
    deploy(tmp_path, coordinated=True)
    for path in [*tmp_path.glob(f"{BUCKET}/snapshot_2_map_*"), *tmp_path.glob("worker-*-logs/*")]:
        path.unlink()
    assert "unit-without-snapshots" in ids(opened(tmp_path).recovery_line(QUESTION))


def test_the_logical_clock_makes_it_communication_induced(tmp_path: Path) -> None:
    put_snapshot(tmp_path, 1, "a", START, {"a_b_0": 0}, {}, clock=3)
    put_snapshot(tmp_path, 1, "b", START + 5, {}, {"a_b_0": 0}, clock=4)
    assert opened(tmp_path).recovery_line(QUESTION).result.protocol == "communication-induced"


def test_received_is_the_highest_so_far_where_messages_overtake_each_other(tmp_path: Path) -> None:
    put_snapshot(tmp_path, 1, "a", START, {"a_b_0": 9}, {})
    put_snapshot(tmp_path, 1, "b", START + 1, {}, {"a_b_0": 9})
    put_snapshot(tmp_path, 1, "b", START + 2, {}, {"a_b_0": 4})
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer) == {"a/1": 1, "b/1": 2}
    assert replayed(answer) == {}
    assert "watermark-decreases" not in ids(answer)


@pytest.mark.parametrize("own", [{}, {"a_b_0": 4}, {"a_b_0": 5}, {"a_b_0": 9}])
def test_a_lost_snapshot_never_makes_the_line_newer(tmp_path: Path, own: dict[str, int]) -> None:
    """What the lost one had received is in no other, not where the next one has numbers of its own either.

    Messages overtake each other, so that the next one may have less. The line is here the one that it was. Of one that
    is not here at all nothing tells whether it was lost or deleted as no longer needed: then the next one counts.
    """
    for lost in ("cut", "class") if own else ("unlink", "cut", "class"):
        folder = tmp_path / lost
        put_snapshot(folder, 1, "a", START, {"a_b_0": 2}, {})
        put_snapshot(folder, 1, "b", START, {}, {"a_b_0": 2})
        put_snapshot(folder, 1, "a", START + 1000, {"a_b_0": 3}, {})
        path = put_snapshot(folder, 1, "b", START + 1000, {}, {"a_b_0": 7})
        put_snapshot(folder, 1, "a", START + 2000, {"a_b_0": 5}, {})
        put_snapshot(folder, 1, "b", START + 2000, {}, own)
        assert line_of(opened(folder).recovery_line(QUESTION)) == {"a/1": 3, "b/1": 1}
        if lost == "unlink":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-9] if lost == "cut" else pickle.dumps(datetime.date(2026, 1, 1)))
        answer = opened(folder).recovery_line(QUESTION)
        assert line_of(answer) == {"a/1": 3, "b/1": 1}
        assert {f.id for f in answer.findings if f.severity == "error"} == {
            "missing-file" if lost == "unlink" else "corrupt-file",
            "unknown-receipts",
        }
        (unknown,) = [f for f in answer.findings if f.id == "unknown-receipts"]
        assert (unknown.subject, path.name in unknown.message) == ("a/1->b/1", True)
        with pytest.raises(CorruptInput):
            opened(folder, strict=True).recovery_line(QUESTION)


@pytest.mark.parametrize("together", [True, False])
def test_where_nothing_would_show_a_lost_snapshot_that_is_said(tmp_path: Path, together: bool) -> None:
    for k in range(3):
        put_snapshot(tmp_path, 1, "a", START + 100 * k, {"a_b_0": k}, {})
        put_snapshot(tmp_path, 1, "b", START + 100 * k + (0 if together else 7), {}, {"a_b_0": k})
    found = [f for f in opened(tmp_path).recovery_line(QUESTION).findings if f.id == "assumed-complete"]
    assert [f.severity for f in found] == ([] if together else ["info"])
    rounds = tmp_path / "rounds"
    deploy(rounds, coordinated=True)
    assert "assumed-complete" not in ids(opened(rounds).recovery_line(QUESTION))


@pytest.mark.parametrize("instead", ["folder", "link"])
def test_what_lies_where_a_snapshot_should_keeps_its_number(tmp_path: Path, instead: str) -> None:
    """Each at a moment of its own, so that no name shows it: what it had received is in no other, and bounds those."""
    put_snapshot(tmp_path / "run", 1, "a", START, {"a_b_0": 2}, {})
    path = put_snapshot(tmp_path / "run", 1, "b", START + 10, {}, {"a_b_0": 7})
    put_snapshot(tmp_path / "run", 1, "b", START + 20, {}, {})
    assert line_of(opened(tmp_path / "run").recovery_line(QUESTION)) == {"a/1": 1, "b/1": 0}
    path.rename(tmp_path / "away.bin")
    path.mkdir() if instead == "folder" else path.symlink_to(tmp_path / "away.bin")
    answer = opened(tmp_path / "run").recovery_line(QUESTION)
    assert (line_of(answer), answer.exit_code) == ({"a/1": 1, "b/1": 0}, 5)
    assert ("unreadable-file", path.relative_to(tmp_path / "run").as_posix()) in {
        (found.id, found.subject) for found in answer.findings
    }
    assert line_of(opened(tmp_path / "run", split_bytes=1).recovery_line(QUESTION)) == {"a/1": 1, "b/1": 0}


@pytest.mark.parametrize("instead", ["folder", "link"])
def test_what_lies_where_a_log_should_is_not_said_to_hold_nothing(tmp_path: Path, instead: str) -> None:
    deploy(tmp_path / "run")
    path = tmp_path / "run" / "worker-1-logs" / "src_map_1.bin"
    path.rename(tmp_path / "away.bin")
    path.mkdir() if instead == "folder" else path.symlink_to(tmp_path / "away.bin")
    answer = opened(tmp_path / "run").recovery_line(QUESTION)
    assert line_of(answer) == {"map/1": 3, "map/2": 3, "src/1": 3, "src/2": 3}
    assert (answer.exit_code, "unreadable-file" in ids(answer)) == (5, True)


def test_a_log_that_was_emptied_is_told_by_its_senders_snapshots(tmp_path: Path) -> None:
    deploy(tmp_path / "run")
    path = tmp_path / "run" / "worker-1-logs" / "src_map_1.bin"
    path.write_bytes(b"")
    found = [f for f in opened(tmp_path / "run").recovery_line(QUESTION).findings if f.id == "empty-file"]
    assert [(f.subject, "30 messages" in f.message) for f in found] == [("worker-1-logs/src_map_1.bin", True)]
    deploy(tmp_path / "rounds", coordinated=True)  # whose logs are all empty
    assert "empty-file" not in ids(opened(tmp_path / "rounds").recovery_line(QUESTION))
    put_log(tmp_path / "run", 1, "src_map_1", [0])
    (tmp_path / "run" / "worker-2-logs" / "map_sink_3.bin").write_bytes(b"")  # a channel without a message
    assert "empty-file" not in ids(opened(tmp_path / "run").recovery_line(QUESTION))


def test_an_upload_that_had_not_ended(tmp_path: Path) -> None:
    deploy(tmp_path)
    (tmp_path / BUCKET / f"snapshot_1_map_{START + 2000}.bin").unlink()
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer) == {"map/1": 2, "map/2": 3, "src/1": 3, "src/2": 3}
    assert "unfinished-upload" in ids(answer)
    assert (answer.exit_code, answer.result.action) == (0, "restart-older")


def test_objects_in_the_state_are_passed_over(tmp_path: Path) -> None:
    """What a query stores are objects of its own; nobody needs them to find the line."""
    deploy(tmp_path)
    before = line_of(opened(tmp_path).recovery_line(QUESTION))
    path = tmp_path / BUCKET / f"snapshot_1_map_{START + 2000}.bin"
    path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()) | {"local_state_data": datetime.date(2026, 1, 1)}))
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer) == before
    assert ids(answer) == {"assumed-partitions"}


def test_objects_instead_of_watermarks_are_damage(tmp_path: Path) -> None:
    deploy(tmp_path)
    path = tmp_path / BUCKET / f"snapshot_1_map_{START + 2000}.bin"
    changed = {"last_messages_processed": collections.OrderedDict(src_map_0=5)}
    path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()) | changed))
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert "last_messages_processed is no dict" in next(f for f in answer.findings if f.id == "corrupt-file").message
    assert line_of(answer)["map/1"] == 2


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"local_state_data": 1, "last_messages_sent": []},
        {"local_state_data": 1, "last_messages_sent": {"src_map_0": -2}},
        {"local_state_data": 1, "last_messages_sent": {"src_map_0": True}},
        {"local_state_data": 1, "last_messages_sent": {"src_map_0": 2**63}},
        {"local_state_data": 1, "last_messages_sent": {"src_map_0": "1"}},
        {"local_state_data": 1, "last_messages_sent": {"src_map_99": 1}},
        {"local_state_data": 1, "last_messages_sent": {"nonsense": 1}},
        {"local_state_data": 1, "last_messages_sent": {5: 1}},
    ],
    ids=str,
)
def test_a_snapshot_with_other_numbers_is_left_out(tmp_path: Path, body: Any) -> None:
    deploy(tmp_path)
    (tmp_path / BUCKET / f"snapshot_1_src_{START + 2000}.bin").write_bytes(pickle.dumps(body))
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer)["src/1"] == 2
    assert "corrupt-file" in ids(answer)


# --- logs


def test_a_torn_log_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    deploy(tmp_path)
    path = tmp_path / "worker-1-logs" / "src_map_0.bin"
    whole = path.read_bytes()
    for cut in (1, 100, len(framed(message(0, 0))) - 1):
        path.write_bytes(whole[:-cut])
        answer = opened(tmp_path).recovery_line(QUESTION)
        assert "torn-tail" in ids(answer)
        assert replayed(answer)["src/1->map/1"] == (28, 30)


def test_behind_a_bad_record_no_number_is_known(tmp_path: Path) -> None:
    deploy(tmp_path)
    path = tmp_path / "worker-1-logs" / "src_map_0.bin"
    data = bytearray(path.read_bytes())
    at = sum(len(framed(message(i, 0))) for i in range(29))
    data[at] = 9
    path.write_bytes(data)
    answer = opened(tmp_path).recovery_line(QUESTION)
    row = next(c for c in answer.result.channels if c.channel == "src/1->map/1")
    assert (row.messages, row.retained) == (1, False)
    told = next(f for f in answer.findings if f.id == "corrupt-file")
    assert told.where[0].offset == at
    assert "0902" in told.message


def test_records_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(tmp_path)
    before = opened(tmp_path).recovery_line(QUESTION)
    monkeypatch.setattr("cklog.parsers.checkmate.dump._BLOCK_BYTES", 64)
    assert opened(tmp_path).recovery_line(QUESTION) == before


def test_a_unit_that_left_no_snapshot_of_a_round_is_told(tmp_path: Path) -> None:
    """Nothing but its snapshots names it, and without them the rounds of the others look complete."""
    deploy(tmp_path, coordinated=True)
    for path in (path for path in tmp_path.rglob("*") if path.is_file() and "snapshot_" not in path.name):
        path.unlink()
    told = [f.subject for f in opened(tmp_path).recovery_line(QUESTION).findings if f.id == "unit-without-snapshots"]
    assert told == []
    for path in tmp_path.glob(f"{BUCKET}/snapshot_2_map_*"):
        path.unlink()
    told = [f.subject for f in opened(tmp_path).recovery_line(QUESTION).findings if f.id == "unit-without-snapshots"]
    assert told == ["map/2"]


def test_messages_after_an_earlier_recovery_are_told(tmp_path: Path) -> None:
    deploy(tmp_path)
    path = put_log(tmp_path, 1, "src_map_0", [0] * 20 + [1] * 10 + [2] * 5)
    put_log(tmp_path, 2, "src_map_3", [0] * 30 + [1] * 5)
    answer = opened(tmp_path).recovery_line(QUESTION)
    told = next(f for f in answer.findings if f.id == "dead-timeline")
    assert told.severity == "warning"
    assert f"{path.relative_to(tmp_path)} from message 20 on (recovery 1)" in told.message
    assert [(tmp_path / w.path).read_bytes()[w.offset :][:4] for w in told.where] == [b"\x00\x02\x80\x04"] * 3
    assert answer.exit_code == 0


def test_a_counter_in_a_payload_is_not_taken_for_one(tmp_path: Path) -> None:
    deploy(tmp_path)
    said = message(0, 0)
    said["__MSG__"]["__PARAMS__"] = {"__REC_CYC__": 7}
    (tmp_path / "worker-1-logs" / "src_map_0.bin").write_bytes(framed(said) * 35)
    assert ids(opened(tmp_path).recovery_line(QUESTION)) == {"assumed-partitions"}


# --- names


def test_operators_with_an_underscore(tmp_path: Path) -> None:
    put_snapshot(tmp_path, 1, "my_src", START, {"my_src_map_it_0": 3}, {})
    put_snapshot(tmp_path, 1, "map_it", START, {}, {"my_src_map_it_0": 1})
    put_log(tmp_path, 1, "my_src_map_it_0", [0] * 4)
    assert replayed(opened(tmp_path).recovery_line(QUESTION)) == {"my_src/1->map_it/1": (2, 4)}


def test_a_channel_that_can_be_split_in_two_ways_is_not_guessed(tmp_path: Path) -> None:
    for operator in ("a", "b_c", "a_b", "c"):
        put_snapshot(tmp_path, 1, operator, START, {}, {})
    put_snapshot(tmp_path, 1, "a", START, {"a_b_c_0": 3}, {})
    put_log(tmp_path, 1, "a_b_c_0", [0] * 4)
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert {"ambiguous-channel", "corrupt-file"} <= ids(answer)
    assert line_of(answer).get("a/1", 0) == 0


def test_partitions_are_told_by_the_log_folders(tmp_path: Path) -> None:
    """Worker 7 has partition 1: its log folder says so, its number does not."""
    for worker, partition in ((7, 1), (9, 0)):
        for j in (0, 1):
            put_log(tmp_path, worker, f"a_b_{2 * partition + j}", [0])
            put_log(tmp_path, worker, f"b_a_{2 * partition + j}", [0])
        put_snapshot(tmp_path, worker, "a", START, {f"a_b_{2 * partition}": 0}, {})
        put_snapshot(tmp_path, worker, "b", START, {}, {f"a_b_{partition}": 0})
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert not {f.id for f in answer.findings if f.severity == "error"}
    assert {c.channel for c in answer.result.channels} <= {
        f"{x}/{i}->{y}/{j}" for x, y in (("a", "b"), ("b", "a")) for i in (7, 9) for j in (7, 9)
    }


def test_several_runs_and_the_stores_own_files_are_refused(tmp_path: Path) -> None:
    deploy(tmp_path / "one")
    deploy(tmp_path / "two")
    with pytest.raises(UsageError, match="2 folders"):
        CheckMate(Root(str(tmp_path)))
    three = tmp_path / "three"
    (three / "data" / BUCKET / "snapshot_1_map_17.bin").mkdir(parents=True)
    (three / "data" / BUCKET / "snapshot_1_map_17.bin" / "xl.meta").write_bytes(b"XL2 ")
    assert CheckMate.recognises(Root(str(three)))
    with pytest.raises(NotFound, match="object store"):
        CheckMate(Root(str(three)))


def test_the_sample_gives_its_expected_line() -> None:
    sample = SAMPLES / "checkmate-uncoordinated"
    answer = opened(sample).recovery_line(QUESTION)
    expected = json.loads((sample / "expected.json").read_text())["result"]
    assert line_of(answer) == {f"{e['operator']}/{e['subtask']}": e["checkpoint"] for e in expected["line"]}
    assert answer.result.domino
    assert all(c.retained for c in answer.result.channels)
