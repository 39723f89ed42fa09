"""No finding contradicts the action of its answer: in all samples, and in folders that once had a wrong answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES, kept
from tests.oracles.answers.contradictions import contradictions
from tests.program import cklog


def runs_below(folder: Path) -> list[Path]:
    """Folders that may be runs: one level below each case or sample, and itself."""
    if not folder.is_dir():
        return []
    return [one for each in sorted(folder.iterdir()) if each.is_dir() for one in (each, *sorted(each.iterdir()))]


FOLDERS = [
    *runs_below(SAMPLES),
    *(
        one
        for group in ("engines", "reports", "users", "brute", "mission", "words")
        for one in runs_below(CASES / group)
    ),
]


CODES = {
    "restart": {0, 3, 4},
    "restart-older": {0, 3, 4},
    "repair-first": {3, 4},
    "salvage-first": {3, 4},
    "start-over": {0, 3, 4},
    "undetermined": {4, 5},
}
"""The exit codes that go with an action: 3 also where an error does nothing to the restart, 4 where it is not the line
that was asked for, or the initial state."""

ORDER = re.compile(r"(Restore|The line is|Restart) ")


def tells_one_story(found: dict[str, Any], folder: Path) -> None:
    """Hold the headline and the verdict to the action: what is not known is no order."""
    action, headline = found["result"]["action"], found["result"].get("details", {}).get("headline", "")
    code = {"ok": 0, "unrecoverable": 4, "indeterminate": 5}.get(found["verdict"])
    if code is None:
        asks = action in ("repair-first", "salvage-first")
        code = 3 if asks or any(f["severity"] == "error" for f in found["findings"]) else 0
    assert code in CODES[action], (folder, action, code)
    if action == "undetermined":
        assert not ORDER.match(headline) or found["verdict"] == "unrecoverable", (folder, headline)


TABLES = [
    ("13-hudi-flink-savepoint/ckpt", "13-hudi-flink-savepoint/tbl"),
    ("14-delta-sink-corrupt-checkpoint/ck", "14-delta-sink-corrupt-checkpoint/sink"),
    ("04-delta-source-cleaned/ck", "04-delta-source-cleaned/src"),
    ("04-delta-source-cleaned/ck-recreated", "04-delta-source-cleaned/src"),
    ("35-new-checkpoint-same-appid/ck", "35-new-checkpoint-same-appid/sink"),
]


@kept
@pytest.mark.parametrize(("run", "table"), TABLES)
def test_a_line_beside_its_tables_tells_one_story(run: str, table: str) -> None:
    place = CASES / "reports" / run
    ended = cklog("recovery-line", place, "--sink", CASES / "reports" / table, "--json")
    found = json.loads(ended.out)
    tells_one_story(found, place)
    assert (ended.code == 0) == (found["result"]["action"] == "restart")
    if found["result"]["action"] == "undetermined":
        assert found["result"]["details"]["headline"].startswith("Undetermined: whether the tables")
        assert found["result"]["details"].get("restore", []) == []


@pytest.mark.quarter
@pytest.mark.parametrize("start", range(0, len(FOLDERS), 25))
def test_what_a_finding_says_of_the_restart_is_what_the_action_says(start: int) -> None:
    answered = 0
    for folder in FOLDERS[start : start + 25]:
        if not folder.is_dir():
            continue
        ended = cklog("recovery-line", folder, "--json", "-q")
        found = json.loads(ended.out or "{}")
        if "result" not in found:
            continue
        answered += 1
        assert list(contradictions(ended.code, found)) == [], folder
        tells_one_story(found, folder)
    assert answered or start
