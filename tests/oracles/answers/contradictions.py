"""What an answer may not say next to its own findings: by the tables of docs/json.md, and nothing of `cklog`.

A finding's effect is what it does to the restart that the answer offers. So an action never asks less of people than an
error does, a message that speaks of a restart that fails has that effect, no sentence says that nothing is lost or
duplicated next to a finding that says otherwise, and the exit code is the one of the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Answer = Mapping[str, Any]
Finding = Mapping[str, Any]

ASKS = {
    "none": "restart",
    "older-line": "restart-older",
    "data-duplicated": "repair-first",
    "data-lost": "repair-first",
    "restart-fails": "repair-first",
    "unknown": "undetermined",
}
"""What an error with an effect asks for (docs/json.md, Effects)."""

ORDER = ("restart", "restart-older", "repair-first", "salvage-first", "start-over", "undetermined")
"""Actions, from the one that asks least of people (docs/json.md, What to do)."""

VERDICTS = {0: ("ok", "findings"), 3: ("findings",), 4: ("unrecoverable",), 5: ("indeterminate",)}
"""Exit codes of answers, and the verdicts that have them (docs/json.md, Verdict and exit code)."""

MOST_NAMED = 50
"""Of more errors than so many a run names the first."""

_OFFERS = ("recovery-line", "replay", "report", "runbook")
"""Commands whose answer offers a restart."""

_FAILS = re.compile(
    r"(?:^|[.:;,] |\b(?:so|and|because) )(?:[Tt]he|[Ee]very|[Aa]) (?:restart|restore) fails"
    r"(?! (?:or|if|in|when|later)\b)"
)
"""A sentence that says without a condition that the restart fails."""

_HARMLESS = re.compile(
    r"nothing is (?:lost|missing|doubled|duplicated)|no result is known to be|"
    r"nothing found that stops it",
    re.IGNORECASE,
)
"""A sentence that says that a restart does no harm."""

_HARMS = frozenset({"data-lost", "data-duplicated", "restart-fails", "unknown"})


def contradictions(code: int, answer: Answer) -> Iterator[str]:
    """Yield what an answer says against its own findings, each beginning with a word for its kind."""
    command = answer["schema"].partition(".")[2].partition("/")[0]
    findings = answer["findings"]
    yield from _texts(findings)
    yield from _exit_code(code, answer)
    result = answer["result"]
    if command == "scan":
        for row in result["runs"]:
            yield from _row_of_scan(row)
    if command in _OFFERS and result:
        yield from _severities(result, findings)
        yield from _action(code, result, _errors(findings))
        yield from _sentences(result, findings)
    if command == "impact-sinks" and result:
        yield from _asked(code, result["action"], _errors(findings))


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding["severity"] == "error"]


def _texts(findings: Sequence[Finding]) -> Iterator[str]:
    for one in findings:
        if one["effect"] != "restart-fails" and _FAILS.search(one["message"]):
            yield f"text: {one['id']} says that the restart fails, and has the effect {one['effect']}"


def _exit_code(code: int, answer: Answer) -> Iterator[str]:
    errors = _errors(answer["findings"])
    if answer["verdict"] not in VERDICTS.get(code, ()):
        yield f"exit: {code} with the verdict {answer['verdict']}"
    if errors and code == 0:
        yield f"exit: 0 next to the error {errors[0]['id']}"
    if code == 3 and not errors and not answer["schema"].startswith("cklog.scan/"):
        yield "exit: 3 without an error"


def _severities(result: Answer, findings: Sequence[Finding]) -> Iterator[str]:
    """An error does something to the restart; next to what is no error and may do something, no restart."""
    for one in findings:
        if one["severity"] == "error" and one["effect"] == "none" and one["id"] != "over-recovery-time":
            yield f"severity: {one['id']} is an error, and does nothing to the restart"
        if one["severity"] != "error" and one["effect"] != "none" and result["action"] == "restart":
            yield f"severity: {result['action']} next to the {one['severity']} {one['id']} ({one['effect']})"


def _action(code: int, result: Answer, errors: Sequence[Finding]) -> Iterator[str]:
    """The action of all runs, and of each, next to the errors about them."""
    yield from _asked(code, result["action"], errors)
    runs = [run for run in result["runs"] if isinstance(run, Mapping)]
    effects: dict[str, set[str]] = {}
    for one in errors:
        effects.setdefault(f"{one['id']} {one['subject']}", set()).add(one["effect"])
    for run in runs:
        for name in run["blocked_by"]:
            known = effects.get(name)
            least = min(ORDER.index(ASKS[effect]) for effect in known or ("unknown",))
            if known is None:
                yield f"action: {run['run']} is blocked by {name}, which is no error"
            elif ORDER.index(run["action"]) < least:
                yield f"action: {run['action']} of {run['run']} next to {name}"
        if run["action"] == "undetermined" and run["command"]:
            yield f"action: {run['run']} is undetermined and has a command"
    named = {name for run in runs for name in run["blocked_by"]}
    if runs and all(len(run["blocked_by"]) < MOST_NAMED for run in runs):
        for name, its in effects.items():
            if name not in named and its != {"none"}:
                yield f"action: no run is blocked by {name}"
    for run in runs:
        its = {effect for name in run["blocked_by"] for effect in effects.get(name, ())}
        for effect, member in (("data-lost", "lost"), ("data-duplicated", "doubled")):
            if its == {effect} and run[member] == 0:
                yield f"sentence: {member} of {run['run']} is 0 next to the effect {effect}"


def _asked(code: int, action: str, errors: Sequence[Finding]) -> Iterator[str]:
    """The action of an answer, next to all its errors and the exit code."""
    for one in errors:
        if ORDER.index(action) < ORDER.index(ASKS[one["effect"]]):
            yield f"action: {action} next to {one['id']} with the effect {one['effect']}"
    if (action == "undetermined") != (code == 5):
        yield f"exit: {code} with the action {action}"


def _row_of_scan(row: Answer) -> Iterator[str]:
    if row["error_id"] is not None:
        if row["action"] != "undetermined":
            yield f"action: {row['action']} in scan's row of what has no answer"
        return
    if row["errors"] and not row["exit"]:
        yield f"exit: 0 in scan's row with {row['errors']} errors"
    if row["action"] == "undetermined" and row["exit"] != 5:
        yield f"exit: {row['exit']} in scan's row with the action undetermined"


def _sentences(result: Answer, findings: Sequence[Finding]) -> Iterator[str]:
    harms = {one["effect"] for one in _errors(findings)} & _HARMS
    told = [result.get("headline"), result.get("summary"), (result.get("details") or {}).get("headline")]
    told += [run.get("note") for run in result["runs"] if isinstance(run, Mapping)]
    for text in told:
        if harms and text and _HARMLESS.search(text):
            yield f"sentence: {text!r} next to the effects {', '.join(sorted(harms))}"


_ERROR = re.compile(r"^error \[([a-z-]+)\]", re.MULTILINE)


def contradictions_of_text(command: str, code: int, out: str) -> Iterator[str]:
    """Yield what a printed answer says against the errors that it lists."""
    errors = _ERROR.findall(out)
    if errors and code == 0:
        yield f"exit: 0 next to the error {errors[0]}"
    if command in _OFFERS and errors:
        spoken = "\n".join(line for line in out.splitlines() if not re.match(r"(?:error|warning|info) \[", line))
        for found in set(re.findall(r"Action: restart \(|nothing found that stops it", spoken)):
            yield f"sentence: {found!r} next to the error {errors[0]}"
