"""Changelogs whose first records were deleted: what they had is lost to a store that is restored from the beginning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.stores import APP, put_log, put_task
from tests.program import cklog
from tests.standins import run_script

COUNTS, SUMS = f"{APP}-counts-changelog", f"{APP}-sums-changelog"


def place(folder: Path, counts: int | None, start: int) -> tuple[str, ...]:
    """A task with two stores: `sums` is intact; `counts` is at an offset, or at none, and its changelog has a start."""
    entries = {f"{SUMS} 0": 49} | ({} if counts is None else {f"{COUNTS} 0": counts})
    put_task(folder / "state" / APP, "0_0", ("counts", "sums"), entries)
    put_log(folder / "kafka", COUNTS, 0, 90, start)
    put_log(folder / "kafka", SUMS, 0, 60, 0)
    return str(folder / "state" / APP), "--kafka", str(folder / "kafka")


def answer(command: str, words: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog(command, *words, "--json").out)
    return found


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("counts", "start", "late"),
    [(41, 50, True), (None, 20, True), (41, 42, False), (None, 0, False), (41, 0, False)],
)
def test_state_that_cannot_be_restored_is_given_up_by_somebody(
    tmp_path: Path, counts: int | None, start: int, late: bool
) -> None:
    """By definition: a store that begins at its changelog's first record lacks what was deleted before that."""
    words = place(tmp_path, counts, start)
    line = answer("recovery-line", words)
    (run,) = line["result"]["runs"]
    assert line["result"]["action"] == ("restart-older" if late else "restart")
    assert ("cannot be restored: counts of 0/0" in run["note"]) is late
    headline = line["result"]["details"]["headline"]
    assert ("of 1 the changelog begins late: what was written only before is lost" in headline) is late
    told = {f["id"]: f["effect"] for f in line["findings"] if f["id"] in ("store-below-log", "compacted-log-cut")}
    assert told == ({"compacted-log-cut" if counts is None else "store-below-log": "unknown"} if late else {})
    script = cklog("runbook", *words, "--format", "script").out
    without = run_script(script, tmp_path / "without")
    assert (["job", "start"] in without.calls) is not late
    assert without.code == (1 if late else 0), without.err
    assert ("this state is given up" in without.err) is late
    given = run_script(script, tmp_path / "given", LOST="yes", cwd=tmp_path)
    assert given.code == 0, given.err
    assert ["job", "start"] in given.calls


def test_stores_that_are_restored_from_logs_nobody_looked_at_are_given_up_first(tmp_path: Path) -> None:
    words = place(tmp_path, None, 0)[:1]
    script = cklog("runbook", *words, "--format", "script").out
    assert f"counts of 0/0 from {COUNTS}-0, which was not looked at (--kafka FOLDER)" in script
    assert run_script(script, tmp_path / "without").named("job", "start") == []
    assert run_script(script, tmp_path / "given", LOST="yes").named("job", "start") == [[]]
