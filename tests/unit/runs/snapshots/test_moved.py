"""Checkpoints that are not where they were written: a copy, or a directory that was moved, which is another thing."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cklog.parsers.flink.derived import operator_id
from cklog.runs.snapshots.verdicts import _lies_elsewhere
from tests.builders import flink as fb
from tests.builders.flink_folders import OLD, ORIGIN, Snapshot, file, job, savepoint
from tests.builders.sinks import flink as sinks
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


JOB, CONTENT = "a" * 32, b"12345"


def job_with_sink(root: Path, state: bool = True) -> Path:
    """A job with checkpoints in `ck` and, beside them, the folder of a sink with a pending file; return that file."""
    held, target = root / "out" / "b1" / ".part-1d2c-0.inprogress.1", root / "out" / "b1" / "part-1d2c-0"
    place = sinks.place(str(target), str(held), len(CONTENT))
    pending = sinks.file_committable(sinks.pending_file(place, f"file:{target}", len(CONTENT)))
    data, lists = fb.operator_state(
        {"streaming_committer_raw_states": [fb.versioned(2, sinks.collected(7, [(2, pending)]))]}
    )
    waits = fb.subtask(6, 0, managed=fb.states(fb.inline(data), lists))
    operators = [fb.operator(6, [waits], bytes.fromhex(operator_id("c")), "out: Committer")]
    folder = root / "ck" / JOB
    (folder / "chk-7").mkdir(parents=True)
    if state:
        shared = [fb.absolute(f"file:{folder}/shared/s1", 9)]
        counts = fb.subtask(6, keyed=fb.incremental(fb.inline(b"meta"), shared, [], "u"))
        operators.append(fb.operator(6, [counts], bytes.fromhex(operator_id("n")), "Count", "n"))
        file(folder / "shared" / "s1", 9)
    properties = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    (folder / "chk-7" / "_metadata").write_bytes(fb.metadata(6, operators, checkpoint=7, properties=properties).data)
    held.parent.mkdir(parents=True)
    held.write_bytes(CONTENT)
    return held


def way_back(root: Path) -> str:
    _, [message] = line(root)
    found = re.search(r"first, with (test .*?)(?:\. The files|$)", message)
    assert found, message
    return found[1]


@pytest.mark.parametrize(
    ("moved", "state"),
    [("root", True), ("root", False), ("both", True), ("both", False), ("checkpoints", True)],
    ids=["root", "root, state inlined", "both", "both, state inlined", "checkpoints"],
)
def test_the_printed_command_puts_back_together_what_was_moved(tmp_path: Path, moved: str, state: bool) -> None:
    stored, now = tmp_path / "job", tmp_path / "moved to"
    held = job_with_sink(stored, state)
    if moved == "root":
        stored.rename(now)
    else:
        now.mkdir()
        for name in ("ck", "out") if moved == "both" else ("ck",):
            (stored / name).rename(now / name)
    assert json.loads(cklog("recovery-line", now, "--json").out)["result"]["action"] == "undetermined"
    command = way_back(now)
    assert command.count("mv -- ") == (2 if state and moved != "checkpoints" else 1)
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert held.read_bytes() == CONTENT
    found = json.loads(cklog("recovery-line", stored if state else tmp_path, "--json").out)
    assert (found["result"]["action"], [f["id"] for f in found["findings"] if f["severity"] != "info"]) == (
        "restart",
        [],
    )


@pytest.mark.parametrize("harm", ["the sink's folder is lost", "something is in the way"])
def test_the_printed_command_moves_nothing_where_a_job_would_lack_its_sink(tmp_path: Path, harm: str) -> None:
    stored, now = tmp_path / "job", tmp_path / "moved"
    held = job_with_sink(stored)
    stored.rename(now)
    if harm == "something is in the way":
        held.parent.mkdir(parents=True)
    else:
        (now / "out").rename(tmp_path / "else")
    _, [message] = line(now)
    assert ("The files also name" in message) == (harm == "the sink's folder is lost")
    assert subprocess.run(["/bin/sh", "-c", way_back(now)], check=False).returncode != 0
    assert (now / "ck" / JOB / "chk-7" / "_metadata").exists()


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
