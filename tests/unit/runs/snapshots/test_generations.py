"""Restarts of one pipeline are one lineage; jobs of one program that run side by side are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.flink_folders import HEIR, OLD, THIRD, Snapshot, checkpoint, savepoint, torn
from tests.reading.flink_folders import asked, fates, ids

LATER = "c" * 32


def run(
    root: Path, job: str, offsets: dict[int, int], program: str = "count", backend: str = "u-1", topic: str = "t"
) -> None:
    """A job's checkpoints with the offset of its one split, by number."""
    for number, offset in offsets.items():
        sources = [[(topic, 0, offset)]]
        checkpoint(root, job, number, Snapshot(sources=sources, program=program, backend=backend, own={"p": 2}))


def line(root: Path) -> dict[str, int | None]:
    return {entry["operator"]: entry["checkpoint"] for entry in asked("recovery-line", root)["result"]["line"]}


def test_restarts_are_one_lineage_with_one_line(tmp_path: Path) -> None:
    run(tmp_path, HEIR, {1: 10, 2: 20})
    run(tmp_path, OLD, {3: 30})
    torn(tmp_path, OLD, 4, {"x": 3})
    run(tmp_path, THIRD, {4: 40, 5: 50})
    answer = asked("recovery-line", tmp_path)
    assert {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]} == {THIRD: 5}
    assert len(answer["result"]["details"]["restore"]) == 1
    assert [(s["source"], s["offset"]) for s in answer["result"]["sources"]] == [("t-0", 50)]
    assert "inferred-lineage" in ids(answer)
    assert "same-program" not in ids(answer)


def test_an_older_generation_is_restored_if_the_newer_ones_cannot(tmp_path: Path) -> None:
    run(tmp_path, OLD, {1: 10, 2: 20})
    run(tmp_path, HEIR, {3: 30})
    (tmp_path / HEIR / "chk-3" / "p").unlink()
    assert line(tmp_path) == {HEIR: 2}


def test_checkpoints_begun_and_never_completed_are_no_sign_of_life(tmp_path: Path) -> None:
    """Several were in progress, or expired, when the job crashed; the restart counts on from the last complete one."""
    run(tmp_path, OLD, {1: 10})
    for number in (2, 3, 4, 9):
        torn(tmp_path, OLD, number, {"x": 3})
    run(tmp_path, HEIR, {2: 20, 3: 30})
    assert line(tmp_path) == {HEIR: 3}


def test_a_source_without_new_records_goes_on_too(tmp_path: Path) -> None:
    run(tmp_path, OLD, {1: 10, 2: 20})
    run(tmp_path, HEIR, {3: 20})
    assert line(tmp_path) == {HEIR: 3}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({1: 10, 2: 20, 3: 30}, {3: 31, 4: 41}, "one number of both"),
        ({1: 10, 9: 90}, {3: 91, 4: 95}, "numbers among each other"),
        ({5: 50, 6: 60}, {5: 51, 6: 61}, "the same numbers"),
        ({1: 10, 2: 20}, {3: 19, 4: 40}, "a source that went back"),
        ({1: 10, 2: 20}, {3: -1}, "a source that begins anew"),
        ({1: -1, 2: -2}, {3: 30}, "no offset to compare"),
    ],
)
def test_jobs_side_by_side_are_not_merged(
    tmp_path: Path, first: dict[int, int], second: dict[int, int], why: str
) -> None:
    run(tmp_path, OLD, first)
    run(tmp_path, HEIR, second)
    assert line(tmp_path) == {OLD: max(first), HEIR: max(second)}, why
    assert "same-program" in ids(asked("recovery-line", tmp_path))


def test_other_programs_other_roots_and_new_starts_are_not_merged(tmp_path: Path) -> None:
    for name, where, other in (
        ("program", HEIR, {"program": "sum"}),
        ("topic", HEIR, {"topic": "u"}),
        ("backend", HEIR, {"backend": "u-2"}),
        ("root", f"elsewhere/{HEIR}", {}),
    ):
        root = tmp_path / name
        run(root, OLD, {1: 10, 2: 20})
        run(root, where, {3: 30}, **other)
        assert line(root) == {OLD: 2, where: 3}, name
    assert "same-program" not in ids(asked("recovery-line", tmp_path / "program"))


def test_sources_alone_are_asked_for(tmp_path: Path) -> None:
    """The same operators and numbers that go on, and nothing that says where sources were."""
    checkpoint(tmp_path, OLD, 2, Snapshot(own={"p": 1}))
    checkpoint(tmp_path, HEIR, 3, Snapshot(own={"p": 1}))
    assert line(tmp_path) == {OLD: 2, HEIR: 3}


def test_a_savepoint_says_that_a_job_went_on(tmp_path: Path) -> None:
    run(tmp_path, OLD, {1: 10, 2: 20})
    run(tmp_path, HEIR, {3: 30})
    assert line(tmp_path) == {HEIR: 3}
    savepoint(tmp_path, f"savepoint-{OLD[:6]}-0123456789ab", 7, Snapshot(own={"q": 4}, savepoint=True))
    assert line(tmp_path) == {OLD: 7, HEIR: 3}


def test_a_split_that_two_readers_hold_is_where_the_older_of_them_is(tmp_path: Path) -> None:
    """30 could have come of 20, 15 could not: the job did not go on from the other one."""
    run(tmp_path, OLD, {1: 10, 2: 20})
    checkpoint(tmp_path, HEIR, 3, Snapshot(sources=[[("t", 0, 30)], [("t", 0, 15)]], own={"p": 2}))
    assert line(tmp_path) == {OLD: 2, HEIR: 3}


def test_two_restarts_of_one_job_are_two_jobs(tmp_path: Path) -> None:
    run(tmp_path, OLD, {1: 10, 2: 20})
    run(tmp_path, HEIR, {3: 30, 5: 50})
    run(tmp_path, THIRD, {4: 40})
    assert line(tmp_path) == {HEIR: 5, THIRD: 4}


def test_damage_to_a_number_merges_nothing(tmp_path: Path) -> None:
    """Numbers that a folder's name and the metadata disagree about both count."""
    run(tmp_path, OLD, {1: 10, 5: 20})
    run(tmp_path, HEIR, {3: 30, 6: 60})
    assert line(tmp_path) == {OLD: 5, HEIR: 6}
    for job, number in ((OLD, 5), (HEIR, 3)):
        path = tmp_path / job / f"chk-{number}" / "_metadata"
        whole = path.read_bytes()
        for bit in range(1, 64):
            wrong = bytearray(whole)
            wrong[8 + bit // 8] ^= 128 >> bit % 8
            path.write_bytes(wrong)
            assert set(line(tmp_path)) == {OLD, HEIR}, bit
        path.write_bytes(whole)


def test_nothing_is_let_go_of_by_inference(tmp_path: Path) -> None:
    """What each generation restarts from stays, whatever is asked for: that they are one pipeline is no proof."""
    run(tmp_path, OLD, {1: 10, 2: 20})
    run(tmp_path, HEIR, {3: 30, 4: 40})
    told = fates(asked("retention", tmp_path, "--keep", "1", "--jobs-stopped"))
    assert told[f"{OLD}/chk-2/p"][1] == told[f"{HEIR}/chk-4/p"][1] == "restorable"
