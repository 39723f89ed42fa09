"""Runs of which brute force found another answer: each has a README that says the right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED
from tests.program import cklog

CASES = SHARED.parent / "round3" / "cases" / "brute"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the folders of cases lie beside the repository, or nowhere")


def result(command: str, *words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog(command, *words, "--json").out)["result"]
    return found


def test_what_is_in_no_line_is_needed_by_no_failure() -> None:
    run = CASES / "useless-not-obsolete" / "run-events"
    counts = result("z-cycles", run)["counts"]
    assert (counts["useless"], counts["obsolete"]) == (1, 1)
    (row,) = [row for row in result("retention", run)["rows"] if row["path"] == "c/0=1"]
    assert (row["fate"], row["needed_by"]) == ("KEEP", None), "records may be missing here: it stays for that alone"


def test_the_message_that_is_lost_is_named_alone() -> None:
    case = CASES / "restored-span"
    (span,) = result("verify", case / "run", "--restored", case / "line.json")["spans"]
    assert (span["fate"], span["start"], span["end"], span["messages"]) == ("lost", 2, 3, 1)
