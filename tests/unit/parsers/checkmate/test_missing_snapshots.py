"""Snapshots that the store of a dump has lost: whatever names them, no line is newer and no restart a plain one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.model.verdict import Answer
from tests.builders.checkmate import BUCKET, put_log, put_snapshot
from tests.conftest import SAMPLES
from tests.reading.checkmate import QUESTION, line_of, opened


def ids(answer: Answer[Any]) -> set[str]:
    return {finding.id for finding in answer.findings}


def rounds(folder: Path) -> None:
    """Three rounds of src → map on two workers."""
    for worker in (1, 2):
        for number in range(3):
            for operator in ("src", "map"):
                put_snapshot(folder, worker, operator, number, taken={str(worker - 1): 100 * number})
        for to in range(2):
            put_log(folder, worker, f"src_map_{2 * (worker - 1) + to}", [])


def test_any_snapshot_that_is_gone_makes_no_line_newer_and_no_restart_plain(tmp_path: Path) -> None:
    """Whichever object the store has lost: those that its worker wrote at the same moment name it."""
    shutil.copytree(SAMPLES / "checkmate-uncoordinated", tmp_path, dirs_exist_ok=True)
    whole = line_of(opened(tmp_path).recovery_line(QUESTION))
    for path in sorted((tmp_path / BUCKET).iterdir()):
        kept = path.read_bytes()
        path.unlink()
        answer = opened(tmp_path).recovery_line(QUESTION)
        assert answer.result.action == "restart-older", path.name
        assert all(number <= whole[unit] for unit, number in line_of(answer).items()), path.name
        path.write_bytes(kept)


@pytest.mark.parametrize("unit", ["1_bids", "2_join", "2_*"])
def test_a_unit_all_of_whose_snapshots_are_gone_is_missed(unit: str, tmp_path: Path) -> None:
    """The logs have its channels: it ran, and the others had the time for several."""
    shutil.copytree(SAMPLES / "checkmate-uncoordinated", tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / BUCKET).glob(f"snapshot_{unit}_*"):
        path.unlink()
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert "missing-checkpoints" in ids(answer)
    assert (answer.result.action, answer.exit_code) == ("restart-older", 0)


def test_a_round_of_which_an_object_is_gone_was_begun(tmp_path: Path) -> None:
    rounds(tmp_path)
    assert opened(tmp_path).recovery_line(QUESTION).result.action == "restart"
    (tmp_path / BUCKET / "snapshot_2_map_0.bin").unlink()  # older than a whole round: nobody needs it
    assert opened(tmp_path).recovery_line(QUESTION).result.action == "restart"
    (tmp_path / BUCKET / "snapshot_1_map_2.bin").unlink()
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert (answer.result.action, answer.exit_code, line_of(answer)["src/1"]) == ("restart-older", 0, 2)
    (tmp_path / BUCKET / "snapshot_1_src_1.bin").unlink()  # its round had ended before the next one began
    answer = opened(tmp_path).recovery_line(QUESTION)
    told = {(f.id, f.severity, f.subject.rpartition("/")[2]) for f in answer.findings if f.subject.endswith(".bin")}
    assert told == {
        ("missing-file", "error", "snapshot_1_src_1.bin"),
        ("unfinished-upload", "warning", "snapshot_1_map_2.bin"),
        ("missing-file", "error", "snapshot_2_map_0.bin"),
    }
    assert (answer.exit_code, answer.result.action) == (5, "undetermined")


@pytest.mark.parametrize(("last", "taken"), [(-1, 0), (0, 1), (2**63 - 3, 2**63 - 2)])
def test_numbers_of_last_messages_that_there_can_be(last: int, taken: int, tmp_path: Path) -> None:
    """-1 for none; what is next may not reach 2^63 - 1, which no table holds."""
    put_snapshot(tmp_path, 1, "src", 1_767_225_600_000, {"src_map_0": -1}, taken={"0": last})
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert "corrupt-file" not in ids(answer)
    assert [s.offset for s in answer.result.sources if s.source == "src-0"] == [taken]


@pytest.mark.parametrize("last", [-2, 2**63 - 2, 2**63 - 1, 2**63, True, 1.0, None])
def test_numbers_of_last_messages_that_there_cannot_be(last: Any, tmp_path: Path) -> None:
    put_snapshot(tmp_path, 1, "src", 1_767_225_600_000, {"src_map_0": 5}, taken={"0": 7})
    put_snapshot(tmp_path, 1, "src", 1_767_225_601_000, {"src_map_0": 6}, taken={"0": last})
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert "corrupt-file" in ids(answer)
    assert [s.offset for s in answer.result.sources if s.source == "src-0"] == [8]


def test_how_many_partitions_are_assumed_is_said(tmp_path: Path) -> None:
    """By the channels' numbers: on one worker, on two, two on each."""
    for workers, each, said in (
        (1, 1, "taken as one on the one worker"),
        (1, 2, "taken as 2 on the one worker"),
        (2, 1, "taken as one on each of the 2 workers"),
        (2, 2, "taken as 2 on each of the 2 workers"),
    ):
        folder, count = tmp_path / f"{workers}{each}", workers * each
        for worker in range(workers):
            starts = [start for start in range(count) if start % workers == worker]
            sent = {f"src_map_{start * count + end}": 3 for start in starts for end in range(count)}
            put_snapshot(folder, worker + 1, "src", 1_767_225_600_000 + worker, sent)
            put_snapshot(folder, worker + 1, "map", 1_767_225_600_000 + worker, {}, {})
            for name in sent:
                put_log(folder, worker + 1, name, [0] * 4)
        answer = opened(folder).recovery_line(QUESTION)
        [finding] = [f for f in answer.findings if f.id == "assumed-partitions"]
        assert said in finding.message, (workers, each, finding.message)
        assert finding.subject == BUCKET
        assert f"(partitions: map {count}, src {count})" in finding.message


def test_operators_that_differ_in_their_partitions_are_taken_as_spread_over_the_workers(tmp_path: Path) -> None:
    """A partition of src on each of three workers, two of map in all."""
    for worker in range(3):
        sent = {f"src_map_{worker * 2 + end}": 3 for end in range(2)}
        put_snapshot(tmp_path, worker + 1, "src", 1_767_225_600_000 + worker, sent)
        for name in sent:
            put_log(tmp_path, worker + 1, name, [0] * 4)
    for worker in range(2):
        put_snapshot(tmp_path, worker + 1, "map", 1_767_225_600_000 + worker, {}, {})
    [finding] = [f for f in opened(tmp_path).recovery_line(QUESTION).findings if f.id == "assumed-partitions"]
    assert "taken as spread over the 3 workers" in finding.message
    assert "(partitions: map 2, src 3)" in finding.message
