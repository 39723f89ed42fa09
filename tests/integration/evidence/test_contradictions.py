"""No finding contradicts the action of its answer: in all samples, and in folders that once had a wrong answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES
from tests.program import cklog

SAYS_SO = re.compile(r"(?:^|[.:] )[Tt]he restart fails")


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


@pytest.mark.parametrize("start", range(0, len(FOLDERS), 25))
def test_what_a_finding_says_of_the_restart_is_what_the_action_says(start: int) -> None:
    answered = 0
    for folder in FOLDERS[start : start + 25]:
        if not folder.is_dir():
            continue
        found = json.loads(cklog("recovery-line", folder, "--json", "--fail-on", "never", "-q").out or "{}")
        if "result" not in found:
            continue
        answered += 1
        saying = [(f["effect"], f["id"]) for f in found["findings"] if SAYS_SO.search(f["message"])]
        assert {effect for effect, _ in saying} <= {"restart-fails"}, (folder, saying)
        if saying:
            assert found["result"]["action"] not in ("restart", "restart-older"), (folder, saying)
        errors = {f["effect"] for f in found["findings"] if f["severity"] == "error"}
        if errors & {"data-lost", "data-duplicated", "restart-fails", "unknown"} and len(found["result"]["runs"]) == 1:
            assert found["result"]["action"] not in ("restart", "restart-older"), (folder, errors)
        if found["result"]["action"] == "restart":
            assert errors <= {"none"}, (folder, errors)
        blocked = [run for run in found["result"]["runs"] if run["blocked_by"] and run["action"] == "restart"]
        assert blocked == [], folder
    assert answered or start
