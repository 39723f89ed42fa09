"""Checkpoints that are not where they were written: a copy, or a directory that was moved, which is another thing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cklog.runs.snapshots.verdicts import _lies_elsewhere
from tests.builders.flink_folders import OLD, ORIGIN, Snapshot, job, savepoint
from tests.program import cklog


def line(root: Path, *options: str) -> tuple[dict[str, Any], list[str]]:
    """The run, and the messages about where files are stored."""
    found = json.loads(cklog("recovery-line", root, *options, "--json").out)
    (run,) = found["result"]["runs"]
    return run, [f["message"] for f in found["findings"] if f["id"] == "stored-elsewhere"]


def test_a_checkpoint_elsewhere_is_taken_for_a_copy_and_the_way_back_is_told(tmp_path: Path) -> None:
    job(tmp_path)
    run, [message] = line(tmp_path)
    assert "PATH is a copy" in run["note"]
    assert "only savepoints can be moved" in message
    assert f"mkdir -p /mnt/flink && mv -- {tmp_path} {ORIGIN.removeprefix('file:')}" in message


def test_a_map_says_that_it_is_a_copy(tmp_path: Path) -> None:
    job(tmp_path)
    run, messages = line(tmp_path, "--map", f"{ORIGIN}={tmp_path}")
    assert (run["command"], messages) == (f"flink run -s {ORIGIN}/{OLD}/chk-7", [])


def test_a_savepoint_can_be_moved(tmp_path: Path) -> None:
    savepoint(tmp_path, "savepoint-000000-a", 9, Snapshot(own={"p9": 9}, savepoint=True))
    run, messages = line(tmp_path)
    assert (run["action"], messages) == ("restart", [])
    assert run["command"] == f"flink run -s {tmp_path}/savepoint-000000-a"


@pytest.mark.parametrize(
    ("uri", "original", "number", "elsewhere"),
    [
        ("file:/data/ck/job/chk-7", "/data/ck/job/chk-7", 7, False),
        ("file:///data/ck/job/chk-7", "/data/ck/./job/chk-7", 7, False),
        ("file:/data/ck/job/chk-7", "/copy/job/chk-7", 7, True),
        ("s3://bucket/job/chk-7", "/copy/job/chk-7", 7, True),
        ("s3://bucket/job/chk-7", "s3://bucket/job/chk-7/", 7, False),
        ("file:/data/savepoint-1", "/copy/savepoint-1", None, False),
        (None, "/copy/job/chk-7", 7, False),
    ],
)
def test_a_checkpoint_that_names_no_file_lies_where_it_was_written(
    uri: str | None, original: str, number: int | None, elsewhere: bool
) -> None:
    """All of its state may stand in its metadata; its command leads to where it was written."""
    parser: Any = SimpleNamespace(original=lambda path: original)
    folder: Any = SimpleNamespace(path="job/chk-7", number=number)
    head: Any = SimpleNamespace(row={"file": uri})
    assert _lies_elsewhere(parser, folder, head) == elsewhere
