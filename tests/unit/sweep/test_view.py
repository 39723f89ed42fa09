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


@pytest.mark.parametrize(("sort", "first"), [("path", "--sort action has those first, "), ("action", "")])
def test_rows_that_the_table_leaves_out_are_told_by_what_they_need(sort: str, first: str) -> None:
    ready = ScannedRun.of(json.loads(cklog("scan", "sample_logs/domino-cycle", "--json").out)["result"]["runs"][0])
    runs = tuple(replace(ready, path=f"runs/{n:02}", action="restart" if n < 41 else "repair-first") for n in range(43))
    found = ScanAnswer("repair-first", ("runs",), None, sort, len(runs), 0, counted(runs), runs)
    [shown] = scan_view(Answer("scan", "findings", 3, (), (), found)).sections
    assert len(shown.rows) == 40
    assert shown.note == f"and 3 more rows, of which 2 need more than a restart: {first}--json has them all"


def test_brief_names_the_runs_that_need_somebody() -> None:
    told = cklog("scan", "sample_logs/domino-cycle", "sample_logs/patent-store", "sample_logs/kafka-broker", "--brief")
    assert told.out.splitlines() == [
        "2 of 4 runs need more than a restart: 1 salvage-first, 1 restart-older.",
        "salvage-first: sample_logs/kafka-broker",
        "restart-older: sample_logs/patent-store totals/0",
    ]
