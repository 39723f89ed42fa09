"""What a finding does to a restart, and the action that follows from it."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import get_args

import pytest

from cklog.impact.sinks.model import SinkImpact
from cklog.model.actions import ACTIONS, Action, RunAction
from cklog.model.findings import Effect, Finding
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft, conclude
from tests.conftest import REPOSITORY

EFFECTS: tuple[Effect, ...] = get_args(Effect)
ASKED: dict[Effect, Action] = {
    "none": "restart",
    "older-line": "restart-older",
    "data-duplicated": "repair-first",
    "data-lost": "repair-first",
    "restart-fails": "repair-first",
    "unknown": "undetermined",
}
"""What an error asks for where a restart would be without it."""


def concluded(action: Action, *findings: Finding) -> tuple[Action, int, RunAction]:
    """The action, the exit code and the only run of an answer that has these findings."""
    run = RunAction("job", action, command="start", newest="9", chosen="9")
    line = RecoveryLine(True, "coordinated", (), (), (), (), (), (), False, runs=(run,))
    answer = conclude(Draft("recovery-line", line, findings, ()))
    [told] = answer.result.runs
    return answer.result.action, answer.exit_code, told


def error(effect: Effect, id: str = "some-id") -> Finding:
    return Finding(id, "error", "job", "message", effect=effect)


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_error_asks_for_what_its_effect_asks_for(effect: Effect) -> None:
    action, code, run = concluded("restart", error(effect))
    assert action == ASKED[effect]
    assert code == (5 if effect == "unknown" else 3)
    assert run.blocked_by == (() if effect == "none" else ("some-id job",))
    assert (run.command is None) == (action in ("repair-first", "undetermined"))


@pytest.mark.parametrize("effect", EFFECTS)
def test_no_action_is_a_restart_next_to_a_warning_with_an_effect(effect: Effect) -> None:
    action, code, run = concluded("restart", replace(error(effect), severity="warning"))
    asked = {"none": ("restart", 0), "older-line": ("restart-older", 0)}
    assert (action, code) == asked.get(effect, ("undetermined", 5))
    assert run.blocked_by == ()


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_warning_changes_no_action_but_a_restart(effect: Effect) -> None:
    for action in ACTIONS[1:]:
        assert concluded(action, replace(error(effect), severity="warning"))[0] == action


@pytest.mark.parametrize("effect", EFFECTS)
def test_nothing_is_counted_as_harmless_that_an_error_calls_harmful(effect: Effect) -> None:
    run = RunAction("job", "restart", newest="9", chosen="9", lost=0, doubled=0)
    line = RecoveryLine(True, "coordinated", (), (), (), (), (), (), False, runs=(run,))
    [told] = conclude(Draft("recovery-line", line, (error(effect),), ())).result.runs
    assert told.lost == (None if effect in ("data-lost", "unknown") else 0)
    assert told.doubled == (None if effect in ("data-duplicated", "unknown") else 0)


@pytest.mark.parametrize(("effect", "other"), list(itertools.combinations(EFFECTS, 2)))
def test_of_two_errors_the_one_that_asks_more_counts(effect: Effect, other: Effect) -> None:
    found = concluded("restart", error(effect), error(other, "other-id"))[0]
    assert found == max(ASKED[effect], ASKED[other], key=ACTIONS.index)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("effect", EFFECTS)
def test_an_error_never_makes_an_action_ask_less(action: Action, effect: Effect) -> None:
    assert ACTIONS.index(concluded(action, error(effect))[0]) >= ACTIONS.index(action)


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_error_that_names_none_of_several_runs_counts_for_each(effect: Effect) -> None:
    runs = tuple(RunAction(name, "restart", path=name, newest="9", chosen="9") for name in ("one", "oneself"))
    line = RecoveryLine(True, "coordinated", (), (), (), (), (), (), False, runs=runs)
    for subject, about in (("elsewhere", (True, True)), ("oneself source 3", (False, True)), ("one/f", (True, False))):
        answer = conclude(Draft("recovery-line", line, (replace(error(effect), subject=subject),), ()))
        assert [run.action for run in answer.result.runs] == [ASKED[effect] if it else "restart" for it in about]


def test_an_error_without_an_effect_is_one_of_which_it_is_not_known() -> None:
    assert Finding("id", "error", "subject", "message").effect == "unknown"
    assert Finding("id", "warning", "subject", "message").effect == "none"


def test_every_error_in_the_code_says_what_it_does_to_a_restart() -> None:
    """An error that a line of code makes has its effect written next to it."""
    silent = []
    for path in sorted([*(REPOSITORY / "cklog").rglob("*.py"), *(REPOSITORY / "parsers").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding"):
                continue
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            severity = named.get("severity") or (node.args[1] if len(node.args) > 1 else None)
            literal = isinstance(severity, ast.Constant) and severity.value == "error"
            if literal and "effect" not in named and len(node.args) < 6:
                silent.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    assert silent == []


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_result_about_a_restart_says_what_its_line_asks_for_with_all_findings(effect: Effect) -> None:
    """However late a finding comes: the action is judged once, when the answer is concluded."""
    line = RecoveryLine(
        True, "coordinated", (), (), (), (), (), (), False, runs=(RunAction("job", "restart", newest="9", chosen="9"),)
    )
    impact = SinkImpact("flink", (), (), (), (), ())
    answer = conclude(Draft("impact-sinks", impact, (error(effect),), (), line=line))
    assert (answer.result.action, answer.exit_code) == concluded("restart", error(effect))[:2]
