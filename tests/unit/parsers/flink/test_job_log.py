"""What a job manager's log says, in the sentences of every Flink; and what is made of it beside the folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.inputs.snapshots import LoggedCheckpoint
from cklog.parsers.flink.derived import operator_id
from cklog.parsers.flink.job_log import job_log, last_restore
from tests.builders.flink_folders import HEIR, OLD, Snapshot, checkpoint, job, torn
from tests.reading.flink_folders import asked, ids

LINES: dict[str, dict[str, Any]] = {
    f"Triggering checkpoint 5 (type=CheckpointType{{name='Checkpoint', sharingFilesStrategy=FORWARD_BACKWARD}}) "
    f"@ 1795226310693 for job {OLD}.": {"state": "triggered", "trigger_time": 1795226310693},
    f"Triggering checkpoint 5 (type=CHECKPOINT) @ 1795226310693 for job {OLD}.": {"trigger_time": 1795226310693},
    f"Triggering checkpoint 5 @ 1795226310693 for job {OLD}.": {"trigger_time": 1795226310693},
    f"Completed checkpoint 5 for job {OLD} (12345 bytes, checkpointDuration=87 ms, finalizationTime=3 ms).": {
        "state": "completed",
        "bytes": 12345,
        "duration_ms": 87,
    },
    f"Completed checkpoint 5 for job {OLD} (12345 bytes in 87 ms).": {
        "state": "completed",
        "bytes": 12345,
        "duration_ms": 87,
    },
    f"Checkpoint 5 of job {OLD} expired before completing.": {"state": "expired"},
    f"Decline checkpoint 5 by task 77_cbc3_0_0 of job {OLD} at tm-1 @ host (dataPort=1).": {"state": "declined"},
    f"Failed to trigger or complete checkpoint 5 for job {OLD}. (1 consecutive failed attempts so far)": {
        "state": "failed"
    },
    f"Received late message for now expired checkpoint attempt 5 from task 77_cbc3_0_0 of job {OLD} at tm-1.": {
        "late": 1
    },
    f"Restoring job {OLD} from Checkpoint 5 @ 1795226310693 for {OLD} located at file:/x.": {"restored": 1},
    f"Restoring job {OLD} from Suspend Savepoint 5 @ 1795226310693 for {OLD} located at file:/x.": {"restored": 1},
    f"Restoring job {OLD} from latest valid checkpoint: Checkpoint 5 @ 1795226310693 for {OLD}.": {"restored": 1},
}
EMPTY: dict[str, Any] = {
    "state": "triggered",
    "trigger_time": None,
    "duration_ms": None,
    "bytes": None,
    "late": 0,
    "restored": 0,
}


def told(path: Path, *lines: str) -> list[LoggedCheckpoint]:
    path.write_text("".join(f"2026-11-21 12:00:00,123 INFO  o.a.f.r.CheckpointCoordinator [] - {x}\n" for x in lines))
    return job_log(str(path))


@pytest.mark.parametrize("line", LINES)
def test_every_sentence(tmp_path: Path, line: str) -> None:
    assert told(tmp_path / "log", line) == [{"job": OLD, "checkpoint": 5} | EMPTY | LINES[line]]


def test_the_last_word_counts(tmp_path: Path) -> None:
    lines = (
        f"Triggering checkpoint 5 (type=x) @ 10 for job {OLD}.",
        f"Triggering checkpoint 6 (type=x) @ 20 for job {OLD}.",
        f"Failed to trigger or complete checkpoint 5 for job {OLD}. (1 consecutive failed attempts so far)",
        f"Checkpoint 5 of job {OLD} expired before completing.",
        f"Completed checkpoint 6 for job {OLD} (1 bytes in 2 ms).",
        "Received late message for now expired checkpoint attempt 5",
        f"Triggering checkpoint 6 (type=x) @ 20 for job {HEIR}.",
    )
    found = {(row["job"], row["checkpoint"]): row for row in told(tmp_path / "log", *lines[:-1])}
    assert {key: (row["state"], row["late"]) for key, row in found.items()} == {
        (OLD, 5): ("expired", 1),
        (OLD, 6): ("completed", 0),
    }
    rows = told(tmp_path / "log", *lines)  # of two jobs, nobody knows whose message came late
    assert [(row["job"], row["checkpoint"]) for row in rows] == [(None, 5), (OLD, 5), (OLD, 6), (HEIR, 6)]


@given(st.lists(st.sampled_from(sorted(LINES)), max_size=6), st.binary(max_size=40), st.integers(0, 400))
def test_a_log_may_be_cut_anywhere_and_hold_anything(lines: list[str], noise: bytes, cut: int) -> None:
    import tempfile

    data = b"\n".join([noise, *(line.encode() for line in lines), noise])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(data[: len(data) - cut])
        rows = job_log(str(path))
    assert all(row["job"] in (None, OLD) for row in rows)


def test_long_lines_take_no_long(tmp_path: Path) -> None:
    """A line of nothing but beginnings of sentences: only the first of it is looked at."""
    path = tmp_path / "log"
    path.write_bytes((b"Triggering checkpoint 5 @ " * 50_000 + b"\n") * 2)
    assert [row["checkpoint"] for row in job_log(str(path))] == [5]


def test_history_is_joined_by_the_checkpoint(tmp_path: Path) -> None:
    job(tmp_path)
    torn(tmp_path, OLD, 8)
    torn(tmp_path, OLD, 9)
    log = tmp_path / "jobmanager.log"
    log.write_text(
        f"INFO Triggering checkpoint 4 (type=x) @ 1700000000000 for job {OLD}.\n"
        f"INFO Completed checkpoint 4 for job {OLD} (9 bytes, checkpointDuration=3 ms, finalizationTime=1 ms).\n"
        f"INFO Completed checkpoint 7 for job {OLD} (9 bytes in 3 ms).\n"
        f"INFO Completed checkpoint 8 for job {OLD} (9 bytes in 3 ms).\n"
        f"INFO Checkpoint 9 of job {OLD} expired before completing.\n"
        f"INFO Completed checkpoint 3 for job {HEIR} (9 bytes in 3 ms).\n",
        encoding="utf-8",
    )
    answer = asked("inspect", tmp_path, "--job-log", str(log), root=tmp_path)
    rows = {(row["job"], row["checkpoint"]): (row["state"], row["verdict"]) for row in answer["result"]["history"]}
    assert rows == {
        (OLD, 4): ("completed", "gone"),
        (OLD, 7): ("completed", "restorable"),
        (OLD, 8): ("completed", "no-metadata"),
        (OLD, 9): ("expired", "no-metadata"),
        (HEIR, 3): ("completed", "gone"),
    }
    assert (answer["exit"], "completed-without-metadata" in ids(answer)) == (3, True)
    assert asked("inspect", tmp_path, "--job-log", str(tmp_path / "none"), root=tmp_path)["exit"] == 66
    assert asked("inspect", tmp_path, "--job-log", str(tmp_path), root=tmp_path)["exit"] == 66


def test_operators_and_uids(tmp_path: Path) -> None:
    checkpoint(tmp_path, OLD, 7, Snapshot({f"{OLD}/shared/s": 20}, {"p": 3}, sources=[[("t", 0, 1)]]))
    answer = asked("inspect", tmp_path, "--uid", "count", root=tmp_path)
    rows = {row["uid"]: row for row in answer["result"]["operators"]}
    assert rows["count"]["state_bytes"] == {"managed-keyed": 20 + 3 + 4}
    assert set(rows["orders"]["state_bytes"]) == {"managed-operator"}
    id = operator_id("count")
    assert answer["result"]["uid"] == [{"uid": "count", "id": id, "snapshot": f"{OLD}/chk-7", "name": "Count"}]
    answer = asked("inspect", tmp_path, "--uid", "nobody", root=tmp_path)
    assert answer["result"]["uid"][0]["snapshot"] is None


def test_the_last_restore_names_the_folder_that_it_came_from(tmp_path: Path) -> None:
    done = "Completed checkpoint {} for job {} (12345 bytes, checkpointDuration=87 ms, finalizationTime=3 ms)."
    restore = "Restoring job {} from Checkpoint {} @ 1795226310693 for {} located at file:/x/{}/chk-{}."
    new = "f" * 32
    log = tmp_path / "jm.log"
    lines = [done.format(4, OLD), done.format(5, OLD), restore.format(new, 4, new, OLD, 4), done.format(6, new)]
    log.write_text("\n".join(lines))
    assert last_restore(str(log)) == (OLD, 4, 5)
    log.write_text(lines[0])
    assert last_restore(str(log)) is None
