"""What no damage may do to an answer.

Of every end: a documented exit code, no traceback, an answer where the code promises one and none where it does not.
Of an answer by itself: nothing that contradicts its own findings (`tests.oracles.answers.contradictions`).
Of an answer, against the undamaged one, at the level that `excuses` gives: no position newer, no range that begins
later, none shorter on the same line, nothing more that may be deleted, no change unsaid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.conftest import REPOSITORY
from tests.fuzz import measures
from tests.fuzz.excuses import Levels
from tests.oracles.answers.contradictions import contradictions, contradictions_of_text
from tests.program import Ended

ANSWERED = frozenset({0, 3, 4, 5})
REFUSED = frozenset({2, 65, 66})
"""docs/json.md; 70 is a bug, 73 about the output, 130 and 143 signals."""


_SENTINEL = "92233720368547758"
"""How 2^63 and its neighbours begin: what stands for an unknown or endless number inside, and for nothing outside."""


_QUOTED = re.compile(r"is -?\d+, (beyond|less)")
"""What a record is refused for is quoted. What is forged may say anything."""


@dataclass(frozen=True)
class Told:
    """How a question ended, and the answer if there is one in JSON."""

    ended: Ended
    json: bool
    command: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return self.ended.code in ANSWERED

    @cached_property
    def answer(self) -> dict[str, Any] | None:
        """The answer; None: there is none, or none in JSON."""
        if not (self.json and self.answered):
            return None
        try:
            found: dict[str, Any] = json.loads(self.ended.out)
        except ValueError:
            return None
        return None if "error" in found else found


def ends(told: Told) -> Iterator[str]:
    """Yield what is wrong with how a question ended, and with an answer by itself."""
    ended = told.ended
    if ended.code not in ANSWERED | REFUSED:
        yield f"exit-{ended.code}: {ended.err.strip().splitlines()[:1]}"
    if "Traceback" in ended.err:
        yield f"traceback: {ended.err.strip().splitlines()[-1]}"
    if ended.code in REFUSED:
        if ended.out and not (told.json and _is_error(ended)):
            yield "refused-with-output: an answer was begun, or an error that no page has"
        if not ended.err.strip():
            yield "refused-without-a-word: nothing on stderr"
    if told.json and told.answered and told.answer is None and not _is_error(ended):
        yield "no-json: the answer is none"
    if told.json and told.answer is not None:
        for said in contradictions(ended.code, told.answer):
            yield f"contradiction: {said}"
        for part in measures.failed(told.answer):
            yield f"exit-70: {part}"
    if not told.json and told.answered:
        for said in contradictions_of_text(told.command, ended.code, ended.out):
            yield f"contradiction: {said}"


_ERROR_ROW = re.compile(r"^\| `([a-z-]+)` \| ([0-9]+) \|", re.MULTILINE)

ERRORS = frozenset(
    (id, int(code)) for id, code in _ERROR_ROW.findall((REPOSITORY / "docs" / "json.md").read_text(encoding="utf-8"))
)
"""The errors of docs/json.md, with their exit codes: the ends that have no answer."""


def _is_error(ended: Ended) -> bool:
    """Whether the object of a documented error is all that stdout has."""
    if not (ended.out.startswith('{"error": ') and ended.out.count("\n") == 1):
        return False
    error = json.loads(ended.out)["error"]
    return error["exit"] == ended.code and (error["id"], ended.code) in ERRORS


def violations(base: Told, found: Told, held: Levels) -> list[str]:
    """What is wrong with an answer about a damaged folder; each begins with the name of its oracle."""
    wrong = [*ends(found)]
    if _SENTINEL in _QUOTED.sub("", found.ended.out) and set(held.values()) <= {"strict", "told"}:
        wrong.append(f"sentinel: {_SENTINEL}.. is printed")
    before, after = base.answer, found.answer
    if before is None or after is None:
        return wrong
    told = bool(measures.findings(after) - measures.findings(before)) or found.ended.code not in (0, base.ended.code)
    excused = {"strict": False, "told": told, "free": True}
    same_line = measures.positions(before) == measures.positions(after)
    checks = {
        "newer": _above(measures.positions(before), measures.positions(after)),
        "later": _above(measures.starts(before), measures.starts(after)),
        "shorter": _below(measures.ends(before), measures.ends(after)) if same_line else [],
        "deletable": _deletable(before, after),
        "silent": [] if told else _changed(before, after),
    }
    for name, cases in checks.items():
        if cases and not excused[held[name]]:
            wrong.append(f"{name}: {'; '.join(cases[:3])}{' (silent)' if not told else ''}")
    return wrong


def _changed(before: measures.Answer, after: measures.Answer) -> list[str]:
    was, now = (measures.said(answer["result"]) or {} for answer in (before, after))
    names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    return [f"another {', '.join(names)}, and no new finding"] if names else []


def _deletable(before: measures.Answer, after: measures.Answer) -> list[str]:
    kept = measures.stays(before)
    was, now = measures.deletable(before), measures.deletable(after)
    found = [key[1] for key in now if key[0] == "row" and key not in was and key[1] in kept]
    trims = {key: number for key, number in was.items() if key[0] == "trim"}
    return found + _above(trims, {key: number for key, number in now.items() if key in trims})


def _above(before: measures.Measured, after: measures.Measured) -> list[str]:
    pairs = [(key, before[key], after[key]) for key in before.keys() & after.keys() if after[key] > before[key]]
    return [f"{' '.join(key)}: {was} -> {now}" for key, was, now in sorted(pairs)]


def _below(before: measures.Measured, after: measures.Measured) -> list[str]:
    pairs = [(key, before[key], after[key]) for key in before.keys() & after.keys() if after[key] < before[key]]
    return [f"{' '.join(key)}: {was} -> {now}" for key, was, now in sorted(pairs)]
