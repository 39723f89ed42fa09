"""`impact` says of every line what `recovery-line` says of it: its errors, its action, its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES as FOLDERS
from tests.integration.evidence.cases import kept
from tests.integration.produced.cases import all_cases
from tests.program import cklog

GROUPS = ("brute", "engines", "mission", "reports", "users")
CASE_FOLDERS = sorted(path for group in GROUPS for path in (FOLDERS / group).glob("*") if path.is_dir())
LINES = ("recovery-line", "replay", "impact", "runbook")


def errors(found: Any) -> set[tuple[str, str, str]]:
    return {(f["id"], f["subject"], f["effect"]) for f in found["findings"] if f["severity"] == "error"}


def agrees(asked: list[str | Path]) -> bool:
    """Hold the impact of a line to that line, asked with the same options; return whether it tells of sinks."""
    line, impact = (cklog(command, *asked, "--json", "-q") for command in ("recovery-line", "impact"))
    if impact.code in (2, 66) or not line.out.startswith("{"):
        return False
    one, other = json.loads(line.out), json.loads(impact.out)
    if other.get("schema") != "cklog.impact-sinks/1":
        return False
    assert errors(one) <= errors(other), asked
    assert (impact.code, other["result"]["action"]) == (line.code, one["result"]["action"]), asked
    weighs = {effect for *_, effect in errors(other)} - {"none", "older-line"}
    headline = cklog("impact", *asked, "--brief", "-q").out.partition("\n")[0]
    if weighs:
        assert "No result is known" not in headline, asked
        assert all(row["guarantee"] != "exactly-once" for row in other["result"]["guarantees"]) or weighs == {
            "data-duplicated"
        }
    if "restart-fails" in weighs and other["result"]["line"]:
        assert headline.startswith("As the files are now, a restart fails")
    return True


def test_the_impact_has_what_the_lines_of_produced_cases_have(tmp_path: Path) -> None:
    compared = 0
    for number, case in enumerate(all_cases()):
        (folder := tmp_path / str(number)).mkdir()
        command, *asked = case.make(folder)
        compared += command in LINES and agrees(asked)
    assert compared > 100


@pytest.mark.parametrize(
    "path", sorted(path for path in SAMPLES.iterdir() if path.is_dir()), ids=lambda path: path.name
)
def test_the_impact_has_what_the_line_of_a_sample_has(path: Path) -> None:
    agrees([path])


@pytest.mark.quarter
@kept
@pytest.mark.parametrize("path", CASE_FOLDERS, ids=lambda path: path.name)
def test_the_impact_has_what_the_line_of_a_case_has(path: Path) -> None:
    agrees([path])


@kept
def test_lines_of_cases_have_an_impact() -> None:
    """Without one that is compared, the test above would hold nothing."""
    assert any(agrees([path]) for path in CASE_FOLDERS if path.parent.name == "engines")
