"""What is documented is produced by the tool: every finding, in the severities and with the exit codes that it has.

Exit codes, errors and actions stand in `test_outcomes`.
"""

from __future__ import annotations

import importlib.metadata
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from cklog.explanations.pages import all_pages
from tests.conftest import REPOSITORY
from tests.integration.produced.cases import Case, all_cases
from tests.program import cklog

CASES = all_cases()

ROOMS = ("sink_tables", "connect", "connectors", "joint", "sinks", "snapshots/test_pending.py")
"""Where findings of tables, connectors and several jobs are produced by tests of their rooms: no folder is here yet."""

PAGES = {page.id: page for page in all_pages() if page.kind == "finding"}
PRINTED = re.compile(r"^(error|warning|info) \[([a-z-]+)\] (.*)", flags=re.MULTILINE)

_NOUNS = "record message file checkpoint event channel segment offset snapshot subtask window result store chain step"
UNGRAMMATICAL = re.compile(
    rf"\b1 (?:{_NOUNS.replace(' ', '|')})s\b|\b1 (?!and )[a-z]+ (?:are|have|were|hold|do)\b"
    r"|\bone of the \d+ [a-z ]+ are\b|s (\d+) to \1\b|sss|\[\d+, \d+\)"
)
"""One of something in the plural, from a number to itself, and half-open intervals in sentences."""

LONGEST = 640
"""Characters of a message: eight lines of 80 columns, a third of a screen."""


@pytest.fixture(autouse=True)
def plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the parser of `plug_in`."""
    real = importlib.metadata.entry_points
    twice = EntryPoint("twice", "tests.integration.produced.plug_in:Twice", "cklog.parsers")

    def entry_points(**given: Any) -> Any:
        return [*real(**given), twice] if given == {"group": "cklog.parsers"} else real(**given)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def test_every_finding_that_is_documented_has_a_case_and_no_other_has() -> None:
    """An id that nothing can print is dead: either it gets a folder here, or a test of its room, or it goes."""
    here = {name for case in CASES for name in case.ids}
    assert here <= set(PAGES)
    tests = [path for room in ROOMS for path in (REPOSITORY / "tests").rglob(room)]
    files = [file for path in tests for file in (path.rglob("test_*.py") if path.is_dir() else [path])]
    told = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert [name for name in PAGES if name not in here and name not in told] == []


@pytest.mark.parametrize("case", CASES, ids=["+".join(case.ids) for case in CASES])
def test_a_finding_is_printed(case: Case, tmp_path: Path) -> None:
    ended = cklog(*case.make(tmp_path))
    printed = PRINTED.findall(ended.out)
    for name in case.ids:
        severities = {severity for severity, id, _ in printed if id == name}
        assert severities, ended
        documented = " ".join(one.severity for one in PAGES[name].meanings)
        assert all(severity in documented for severity in severities)
    assert ended.code == case.exit, ended
    for severity, name, message in printed:
        assert not UNGRAMMATICAL.search(message), message
        assert name not in message.replace(f"({name})", ""), f"{severity} [{name}] says its id instead of what it is"
        assert len(message) <= LONGEST, message
