"""Folders of Flink's own making, and what Flink 2.3 did with them; and metadata of every version that there is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.program import cklog


@pytest.fixture
def verified(shared_data: Path) -> Path:
    return shared_data / "engine-verified"


def answer(command: str, path: Path, *more: str) -> dict[str, Any]:
    """The JSON of an answer, its exit code as `exit`."""
    ended = cklog(command, path, *more, "--json")
    found: dict[str, Any] = json.loads(ended.out)
    return found | {"exit": ended.code}


def mapped(verified: Path, name: str, run: str) -> tuple[Path, tuple[str, str]]:
    """A folder, and the option that says where it was when it was written."""
    return verified / name, ("--map", f"file:///srv/stream/fk/{run}={verified / name}")


def resumed(found: dict[str, Any]) -> dict[str, int]:
    return {source["source"]: source["offset"] for source in found["result"]["sources"]}


def snapshot_folders(shared_data: Path) -> list[Path]:
    paths = [*shared_data.glob("flink-checkpoints/*"), *shared_data.glob("flink-metadata/*")]
    found = [path for path in sorted(paths) if any(path.rglob("_metadata"))]
    assert len(found) >= 15
    return found


def test_no_real_metadata_contradicts_itself(shared_data: Path) -> None:
    for path in [*snapshot_folders(shared_data), shared_data / "flink-checkpoints"]:
        found = answer("inspect", path)
        assert not [row for row in found["result"]["snapshots"] if row["verdict"] == "corrupt"]
        assert not [finding for finding in found["findings"] if finding["id"] == "corrupt-metadata"]


def test_metadata_that_does_not_say_what_it_is_is_called_neither(shared_data: Path) -> None:
    """Versions 2 and 3; the names of the folders that they were copied to are no evidence."""
    seen = set[int]()
    for path in shared_data.glob("flink-metadata/*"):
        found = answer("inspect", path)["result"]
        (row,) = found["snapshots"]
        seen.add(row["version"])
        if row["version"] < 4:
            assert row["kind"] == "Snapshot"
            assert "(0 savepoints)" in found["summary"]
    assert {2, 3} <= seen


def test_every_finding_says_what_it_is_about(shared_data: Path) -> None:
    for path in snapshot_folders(shared_data):
        single = next(iter(sorted(path.rglob("_metadata")))).parent
        for one in (path, single):
            for command in ("inspect", "recovery-line", "replay"):
                findings = answer(command, one)["findings"]
                assert all(finding["subject"] and not finding["message"].startswith(":") for finding in findings)
                assert not [f for f in findings if f["id"] == "unread-state" and " 0 bytes" in f["message"]]


def test_state_in_flight_is_counted_once(shared_data: Path) -> None:
    """Six subtasks share one file of 428,243 bytes: each has its own part of it."""
    rows = answer("inspect", shared_data / "flink-checkpoints" / "unaligned")["result"]["operators"]
    told = [(kind, size) for row in rows for kind, size in row["state_bytes"].items() if kind.endswith("-channel")]
    assert {side: sum(size for kind, size in told if kind == side) for side, _ in told} == {
        "input-channel": 6_859,
        "output-channel": 421_380,
    }


def test_one_checkpoint_s_source_state_is_read_through_the_map(verified: Path, tmp_path: Path) -> None:
    """File merging puts it into `taskowned/`: what the job's root shows is what each checkpoint alone shows."""
    folder, maps = mapped(verified, "flink-filemerge", "merge")
    whole = answer("replay", folder, *maps)
    newest = resumed(whole)
    assert (whole["exit"], len(newest)) == (0, 2)
    job = next((folder / "ck").iterdir())
    for path in (folder, job, job / "chk-4"):
        for options in (maps, ()):
            found = answer("replay", path, *options)
            assert resumed(found) == newest
            assert "unread-state" not in {finding["id"] for finding in found["findings"]}
    copy = tmp_path / job.name / "chk-4"
    shutil.copytree(job / "chk-4", copy)
    assert resumed(answer("replay", copy, *maps)) == newest
    shutil.copytree(job / "chk-4", tmp_path / "alone")
    found = answer("replay", tmp_path / "alone", "--no-check-files")
    told = {f["message"] for f in found["findings"] if f["id"] == "unread-state"}
    assert told
    assert all("lies outside PATH" in message and "--map OLD=NEW" in message for message in told)


def test_a_changelog_has_to_be_claimed(verified: Path) -> None:
    """Flink: with NO_CLAIM 10 of 10 restores died at their first checkpoint, with CLAIM 10 of 10 went on."""
    folder, maps = mapped(verified, "flink-changelog-noclaim", "rockscl")
    found = answer("recovery-line", folder, *maps)
    (restore,) = found["result"]["details"]["restore"]
    assert restore["command"].endswith("/chk-4 -claimMode CLAIM")
    (told,) = [finding for finding in found["findings"] if finding["id"] == "claim-needed"]
    assert "NO_CLAIM" in told["message"]
    assert "chk-2" in told["message"]
    assert "chk-3" in told["message"]


def test_what_needs_no_claim_is_restored_without(shared_data: Path) -> None:
    """All other backends: a changelog alone asks for it."""
    claimed = set()
    for path in snapshot_folders(shared_data):
        for row in answer("recovery-line", path, "--no-check-files")["result"]["details"].get("restore", []):
            claimed |= {path.name} if "CLAIM" in row["command"] else set()
    assert claimed == {"changelog"}


def test_restarts_of_one_pipeline_are_one_lineage(verified: Path) -> None:
    """Killed and restarted three times: the newest of all is the line, and no job is started twice."""
    folder, maps = mapped(verified, "flink-generations/genA", "genA")
    found = answer("recovery-line", folder, *maps)
    assert found["exit"] == 0
    ((entry,), (restore,)) = found["result"]["line"], found["result"]["details"]["restore"]
    assert (entry["operator"], entry["checkpoint"]) == ("ck/1c44fae92dbc9c5754269621c971573a", 6)
    assert restore["command"].endswith("/1c44fae92dbc9c5754269621c971573a/chk-6")
    assert resumed(found) == {"1": 864, "2": 549755814751}
    assert len(found["result"]["sources"]) == 2


def test_jobs_that_were_started_anew_are_no_restarts(shared_data: Path) -> None:
    """Two jobs of one program in one folder, whose numbers and offsets happen to go on, from 4 to 5."""
    found = answer("recovery-line", shared_data / "flink-checkpoints" / "rocksdb-incr")
    line = {entry["operator"][:4]: entry["checkpoint"] for entry in found["result"]["line"]}
    assert line["552d"] == 4
    assert "a50b" in line
    assert "inferred-lineage" not in {finding["id"] for finding in found["findings"]}
