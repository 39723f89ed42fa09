"""What people see of a scan: the table that ends after some rows, and the verdict alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cklog.model.verdict import Answer
from cklog.sweep.model import ScanAnswer, ScannedRun, counted
from cklog.sweep.view import scan_view
from tests.conftest import REPOSITORY
from tests.program import cklog


@pytest.fixture(autouse=True)
def _from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


@pytest.mark.parametrize("sort", ["path", "size"])
def test_rows_that_need_somebody_are_shown_before_the_table_ends(sort: str) -> None:
    ready = ScannedRun.of(json.loads(cklog("scan", "sample_logs/domino-cycle", "--json").out)["result"]["runs"][0])
    runs = tuple(replace(ready, path=f"runs/{n:02}", action="restart" if n < 41 else "repair-first") for n in range(43))
    found = ScanAnswer("repair-first", ("runs",), None, sort, len(runs), 0, counted(runs), runs)
    [shown] = scan_view(Answer("scan", "findings", 3, (), (), found)).sections
    assert len(shown.rows) == 40
    assert [row[0] for row in shown.rows[:3]] == ["runs/41", "runs/42", "runs/00"]
    assert shown.note == "and 3 more rows: --json has them all"


def test_rows_that_need_somebody_and_find_no_room_are_counted() -> None:
    ready = ScannedRun.of(json.loads(cklog("scan", "sample_logs/domino-cycle", "--json").out)["result"]["runs"][0])
    runs = tuple(replace(ready, path=f"runs/{n:02}", action="repair-first") for n in range(43))
    found = ScanAnswer("repair-first", ("runs",), None, "path", len(runs), 0, counted(runs), runs)
    [shown] = scan_view(Answer("scan", "findings", 3, (), (), found)).sections
    assert shown.note == "and 3 more rows; 3 of them need more than a restart: --json has them all"


def test_brief_names_the_runs_that_need_somebody() -> None:
    told = cklog("scan", "sample_logs/domino-cycle", "sample_logs/patent-store", "sample_logs/kafka-broker", "--brief")
    assert told.out.splitlines() == [
        "2 of 4 runs need more than a restart: 1 salvage-first, 1 restart-older.",
        "salvage-first: sample_logs/kafka-broker",
        "restart-older: sample_logs/patent-store totals/0",
    ]
