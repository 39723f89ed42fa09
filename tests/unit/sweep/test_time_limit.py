"""Runs that take too long, never answer, are no files, or go away: none costs the rows of the others."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cklog.kinds.snapshots import SnapshotsKind
from cklog.sweep import worker, workers
from cklog.sweep.time_limit import TimeUp, at_most
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog

GOOD = ("flink-orders", "spark-wordcount", "domino-cycle", "kafka-broker")


@pytest.fixture(autouse=True)
def _from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def rows(*args: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cklog("scan", *args, "--json").out)["result"]["runs"]
    return found


def of_samples(place: Path, *names: str) -> Path:
    for name in names:
        shutil.copytree(SAMPLES / name, place / name)
    return place


def test_a_run_that_takes_too_long_costs_its_own_row_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm is rung by the run itself: no clock decides."""
    of_samples(tmp_path / "runs", *GOOD)
    before = rows(tmp_path / "runs")
    shutil.copytree(SAMPLES / "flink-orders", tmp_path / "runs" / "middle")
    real = SnapshotsKind.recovery_line

    def endless(self: SnapshotsKind, *asked: Any) -> Any:
        if self._opened.root.path.endswith("middle"):
            try:
                signal.raise_signal(signal.SIGALRM)
            except Exception:
                return real(self, *asked)
        return real(self, *asked)

    monkeypatch.setattr(SnapshotsKind, "recovery_line", endless)
    ended = cklog("scan", tmp_path / "runs", "--time-limit", "77", "--json")
    found = json.loads(ended.out)["result"]["runs"]
    assert [row for row in found if "middle" not in row["path"]] == before
    (mine,) = (row for row in found if "middle" in row["path"])
    assert (mine["action"], mine["error_id"], mine["exit"], mine["chosen"]) == ("undetermined", "not-finished", 5, None)
    assert mine["message"] == "not finished in 77 s: --time-limit gives it longer"
    assert mine["files"] == sum(path.is_file() for path in (SAMPLES / "flink-orders").rglob("*"))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert [cklog("scan", tmp_path / "runs", "--fail-on", how).code for how in ("error", "never")] == [5, 0]


def never_ending() -> None:
    with at_most(0.01):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(60)


def test_the_clock_ends_what_never_ends() -> None:
    with pytest.raises(TimeUp):
        never_ending()


def test_a_process_that_never_answers_is_left_alone_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows("sample_logs")
    monkeypatch.setattr(workers, "_PER_PROCESS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    real, asked = worker.job_line, threading.local()

    def unfinished(root: Any, form: str, shown: str, how: Any) -> bytes:
        asked.hangs = shown.endswith("domino-cycle")
        return b"{" if asked.hangs else real(root, form, shown, how)  # half a line: it waits for the rest

    def waited(reads: Any, writes: Any, others: Any, seconds: float) -> Any:
        assert seconds == 77 + workers._GRACE
        return select.select(reads, writes, others, 0.01 if asked.hangs else 600)

    monkeypatch.setattr(worker, "job_line", unfinished)
    monkeypatch.setattr(workers, "select", SimpleNamespace(select=waited))
    after = rows("sample_logs", "--time-limit", "77")
    assert [(row["path"], row["error_id"]) for row in after if row not in before] == [
        ("sample_logs/domino-cycle", "not-finished")
    ]
    assert len(after) == len(before)


def test_pipes_and_sockets_in_a_folder_are_not_opened(tmp_path: Path) -> None:
    of_samples(tmp_path / "runs", *GOOD)
    before = rows(tmp_path / "runs")
    for place in ("flink-orders/pipe", "domino-cycle/checkpoints/pipe.jsonl", "spark-wordcount/ck/offsets/99"):
        os.mkfifo(tmp_path / "runs" / place)
    os.mkfifo(tmp_path / "runs" / "_metadata")
    assert rows(tmp_path / "runs") == before


def test_a_run_that_goes_while_it_is_asked_costs_its_own_row_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_samples(tmp_path / "runs", *GOOD)
    before = rows(tmp_path / "runs")
    shutil.copytree(SAMPLES / "flink-orders", tmp_path / "runs" / "middle")
    real = SnapshotsKind.recovery_line

    def late(self: SnapshotsKind, *asked: Any) -> Any:
        if self._opened.root.path.endswith("middle"):
            shutil.rmtree(self._opened.root.path)
        return real(self, *asked)

    monkeypatch.setattr(SnapshotsKind, "recovery_line", late)
    found = rows(tmp_path / "runs")
    assert [row for row in found if "middle" not in row["path"]] == before
    assert {(row["action"], row["exit"]) for row in found if "middle" in row["path"]} == {("undetermined", 5)}
