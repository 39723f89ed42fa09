"""What the commands say about one folder has to fit together: one action, one exit code, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

COMMANDS = ("recovery-line", "replay", "report", "runbook", "impact", "inspect", "retention", "scan", "verify")
"""The commands whose answers are compared; the first is the one that the others are held to."""

_SAME = ("replay", "report", "runbook")
"""Commands whose answer has the action of the line, its exit code and its runs."""


class _Ended(Protocol):
    @property
    def code(self) -> int: ...


class Said(Protocol):
    """How a command ended, and its answer in JSON, if it has one."""

    @property
    def ended(self) -> _Ended: ...
    @property
    def answer(self) -> dict[str, Any] | None: ...


def disagreements(answers: Mapping[str, Said]) -> Iterator[str]:
    """Yield where a command says something else about a folder than `recovery-line`."""
    line = answers["recovery-line"]
    code, found = line.ended.code, line.answer
    for command in _SAME:
        if command in answers:
            yield from _same(command, answers[command], code, found)
    if "impact" in answers and found is not None:
        yield from _impact(answers["impact"], code, found)
    if "scan" in answers and answers["scan"].answer is not None:
        yield from _rows(answers["scan"].answer["result"]["runs"], code, found)
    if "verify" in answers and found is not None and found["result"].get("action") == "restart":
        verified = answers["verify"].ended.code
        if verified not in (code, 2, 5, 66):  # 5: what a restart takes for granted, no log may prove
            yield f"disagreement: verify ends with {verified} for the line of a restart"
    if "retention" in answers and found is not None and answers["retention"].answer is not None:
        yield from _kept(answers["retention"].answer["result"] or {}, found["result"])


def _impact(impact: Said, code: int, found: dict[str, Any]) -> Iterator[str]:
    """It has no more to say for a restart than the line, and may lack evidence that no line needs."""
    ended, answer = impact.ended.code, impact.answer
    action = (answer["result"] or {}).get("action") if answer is not None else None
    if action not in (None, found["result"]["action"]):
        yield f"disagreement: impact says {action}, recovery-line {found['result']['action']}"
    more = answer is not None and _errors(answer) - _errors(found)
    if ended in (code, 66):
        return
    if ended not in _WEIGHT or _WEIGHT.index(ended) < _WEIGHT.index(code) or not more:
        yield f"disagreement: impact ends with {ended}, recovery-line with {code}"


_WEIGHT = (0, 3, 4, 5)
"""Exit codes of answers, from the one that promises most."""


def _errors(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {(f["id"], f["subject"]) for f in answer["findings"] if f["severity"] == "error"}


def _same(command: str, other: Said, code: int, found: dict[str, Any] | None) -> Iterator[str]:
    if other.ended.code != code:
        yield f"disagreement: {command} ends with {other.ended.code}, recovery-line with {code}"
    if found is None or other.answer is None:
        return
    one, two = found["result"].get("action"), other.answer["result"].get("action")
    if one != two:
        yield f"disagreement: {command} says {two}, recovery-line {one}"
    for id, subject in sorted(_errors(found) ^ _errors(other.answer)):
        yield f"disagreement: {id} {subject} is an error of only one of {command} and recovery-line"


def _rows(rows: list[dict[str, Any]], code: int, found: dict[str, Any] | None) -> Iterator[str]:
    """The rows of a folder in which there is one run, or of which each row is a run of the line's."""
    if found is None:
        if len(rows) == 1 and rows[0]["action"] != "undetermined":
            yield f"disagreement: scan says {rows[0]['action']}, recovery-line ends with {code}"
        return
    runs = sorted(run["action"] for run in found["result"]["runs"])
    if len(rows) != len(runs):
        return
    if sorted(row["action"] for row in rows) != runs:
        yield f"disagreement: scan says {', '.join(row['action'] for row in rows)}, recovery-line {', '.join(runs)}"
    if [row["exit"] for row in rows] != [code] * len(rows):
        yield f"disagreement: scan's rows have exit {rows[0]['exit']}, recovery-line ends with {code}"


def _kept(plan: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    """What the line restores from does not go, whatever the action is."""
    gone = {row["path"] for row in plan.get("rows") or () if row.get("fate") == "OBSOLETE"}
    for entry in result.get("line") or ():
        uri = entry.get("uri")
        if uri is not None and any(uri == path or uri.endswith(f"/{path}") for path in gone):
            yield f"disagreement: retention lets {uri} go, and the line restores from it"
