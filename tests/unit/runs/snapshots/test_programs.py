"""Snapshots of one job id that are of several programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.flink_folders import OLD, ORIGIN, Snapshot, checkpoint
from tests.program import cklog


def asked(root: Path, *snapshots: Snapshot) -> list[str]:
    """The programs that a finding names in a folder."""
    for number, snapshot in enumerate(snapshots, 7):
        checkpoint(root, OLD, number, snapshot)
    ended = cklog("recovery-line", root, "--map", f"{ORIGIN}={root}", "--json")
    messages = [f["message"] for f in json.loads(ended.out)["findings"] if f["id"] == "several-programs"]
    assert ended.code == (5 if messages else 0)
    return [told for message in messages for told in message.partition("programs: ")[2].partition(". ")[0].split("; ")]


def test_programs_without_a_common_operator(tmp_path: Path) -> None:
    assert asked(tmp_path, Snapshot(program="a"), Snapshot(program="b"), Snapshot(program="a")) == [
        "chk-9, chk-7 (operator a)",
        "chk-8 (operator b)",
    ]


def test_programs_of_one_shape_that_read_other_topics(tmp_path: Path) -> None:
    """Without uids the ids of operators follow from the shape of the program alone."""
    payments, views = Snapshot(sources=[[("payments", 0, 1)]]), Snapshot(sources=[[("views", 0, 1)]])
    assert asked(tmp_path, payments, views) == ["chk-8 (source views-0)", "chk-7 (source payments-0)"]


@pytest.mark.parametrize(
    "second",
    [
        Snapshot(program="b", sources=[[("t", 0, 9)]]),  # an operator was exchanged
        Snapshot(sources=[[("t", 0, 9), ("u", 0, 1)]]),  # a topic was added
        Snapshot(),  # its sources have ended
    ],
)
def test_one_program_that_changed(tmp_path: Path, second: Snapshot) -> None:
    assert asked(tmp_path, Snapshot(sources=[[("t", 0, 1)]]), second) == []


def test_who_names_the_checkpoint_chooses_the_program(tmp_path: Path) -> None:
    """Of the folder of the jobs, and of the folder of the job itself."""
    asked(tmp_path, Snapshot(program="a"), Snapshot(program="b"))
    for root, at in ((tmp_path, f"{OLD}/0=7"), (tmp_path / OLD, f"{OLD}/0=7")):
        ended = cklog("recovery-line", root, "--map", f"{ORIGIN}={tmp_path}", "--at", at, "--json")
        assert (ended.code, json.loads(ended.out)["result"]["action"]) == (0, "restart"), ended.out + ended.err


def test_one_checkpoint_that_cannot_be_restored_says_nothing_of_its_job(tmp_path: Path) -> None:
    for number in (7, 8):
        checkpoint(tmp_path, OLD, number, Snapshot())
    (tmp_path / OLD / "chk-8" / "_metadata").write_bytes(b"")
    ended = cklog("recovery-line", tmp_path / OLD / "chk-8", "--map", f"{ORIGIN}={tmp_path}", "--json")
    result = json.loads(ended.out)["result"]
    assert (ended.code, result["action"]) == (5, "undetermined")
    assert "Give the folder above" in result["details"]["headline"]


def test_a_checkpoint_that_was_asked_for_and_cannot_be_restored_is_no_reason_to_start_over(tmp_path: Path) -> None:
    for number in (7, 8):
        checkpoint(tmp_path, OLD, number, Snapshot())
    (tmp_path / OLD / "chk-7" / "_metadata").write_bytes(b"")
    ended = cklog("recovery-line", tmp_path, "--map", f"{ORIGIN}={tmp_path}", "--at", f"{OLD}/0=7", "--json")
    (run,) = json.loads(ended.out)["result"]["runs"]
    assert (ended.code, run["action"], run["command"]) == (4, "repair-first", None)
    assert "ask without it for the newest that can" in run["note"]


def test_at_says_nothing_of_another_job(tmp_path: Path) -> None:
    checkpoint(tmp_path, OLD, 7, Snapshot())
    checkpoint(tmp_path, "a" * 32, 3, Snapshot(program="b"))
    (tmp_path / ("a" * 32) / "chk-3" / "_metadata").write_bytes(b"")
    ended = cklog("recovery-line", tmp_path, "--map", f"{ORIGIN}={tmp_path}", "--at", f"{OLD}/0=7", "--json")
    runs = {run["run"]: run for run in json.loads(ended.out)["result"]["runs"]}
    assert runs["a" * 32]["note"] == "no snapshot can be restored"
