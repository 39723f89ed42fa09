"""No finding contradicts the action of its answer: in all samples, and in folders that once had a wrong answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES
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
    assert answered or start
