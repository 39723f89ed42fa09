"""Flink's file sink killed with SIGKILL: what cklog says of its pending files beside what Flink does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.flink.live.jobs import Flink, Running
from tests.program import cklog

pytestmark = pytest.mark.slow

SETTINGS = {
    "execution.checkpointing.storage": "filesystem",
    "execution.checkpointing.interval": "500ms",
    "execution.checkpointing.num-retained": "3",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


class Written:
    """A job that wrote files until it was killed, and what is asked of its folder."""

    def __init__(self, flink: Flink, root: Path, closed: bool) -> None:
        self.root, self._flink, self._closed = root, flink, closed
        self._runs = 0
        job = self.run({})
        job.until(lambda: len(job.completed()) > 3)
        job.kill()

    def run(self, settings: dict[str, str]) -> Running:
        self._runs += 1
        places = {"execution.checkpointing.dir": (self.root / "ck").as_uri()}
        log = self.root / f"log-{self._runs}"
        return self._flink.write_files({**SETTINGS, **places, **settings}, log, self._closed, self.root / "out")

    def restore(self, checkpoint: str) -> Running:
        return self.run({"execution.state-recovery.path": checkpoint})

    def asked(self) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The pending commits of the line, and the findings about them."""
        answer = self.answer()
        told = [(f["id"], f["severity"]) for f in answer["findings"] if f["id"].startswith("pending")]
        result = answer["result"]
        (row,) = result["details"]["pending"]
        return {"uri": result["line"][0]["uri"], **row}, told

    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cklog("recovery-line", self.root, "--json", "-q").out)
        return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def renamed(path: str) -> Path:
    """What a pending file becomes: its name without the dot and what follows `.inprogress`."""
    held = Path(path)
    return held.with_name(held.name.removeprefix(".").partition(".inprogress")[0])


def test_a_pending_file_is_renamed_by_the_restore_and_one_that_is_gone_is_passed_over(flink: Flink, root: Path) -> None:
    written = Written(flink, root, closed=True)
    row, told = written.asked()
    assert (row["state"], row["named"], row["gone"], told) == ("pending", 2, 0, [])
    first, second = row["files"]
    for path in (Path(first), renamed(first)):
        path.unlink(missing_ok=True)
    row, told = written.asked()
    assert (row["missing"], told) == ([first], [("pending-file-missing", "error")])
    again = written.restore(row["uri"])
    again.until(lambda: bool(again.completed()))
    again.kill()
    assert renamed(second).is_file()
    assert not renamed(first).exists()


def test_without_a_file_in_progress_a_restore_fails(flink: Flink, root: Path) -> None:
    written = Written(flink, root, closed=False)
    row, told = written.asked()
    assert (row["state"], row["named"], row["gone"], told) == ("in-progress", 2, 0, [])
    Path(row["files"][0]).unlink()
    answer = written.answer()  # every checkpoint goes on with that file
    assert answer["result"]["action"] == "repair-first"
    assert {f["id"] for f in answer["findings"] if f["severity"] == "error"} >= {"pending-file-missing"}
    again = written.restore(row["uri"])
    with pytest.raises(AssertionError, match="ended by itself"):
        again.until(lambda: bool(again.completed()))
    assert f"FileNotFoundException: File Not Found: {row['files'][0]}" in again.text()
