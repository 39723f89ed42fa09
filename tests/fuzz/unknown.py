"""What may be said of a file that a later version wrote: that its version is not known, and nothing more.

Such a file is neither damaged nor missing. An answer that rests on it is a bound (exit 5), and advises nobody to remove
it. Whether an answer rests on a version is seen by damaging the bytes around it: if nobody notices that, nobody reads
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.conftest import REPOSITORY
from tests.fuzz import measures
from tests.fuzz.mutations import Change
from tests.fuzz.oracle import Told

_ROW = re.compile(r"^\| (`[^|]+) \(damage\) \|", re.MULTILINE)

DAMAGE = frozenset(
    id
    for row in _ROW.findall((REPOSITORY / "docs" / "findings.md").read_text(encoding="utf-8"))
    for id in re.findall(r"`([a-z-]+)`", row)
)
"""The ids that docs/findings.md calls damage."""

_UNKNOWN = ("unknown-version", "unjudged-state", "unread-state", "unread-store")
"""The ids that say that nobody knows what a file holds."""

_HARM = ("restart-fails", "data-lost", "data-duplicated")
_REMOVAL = re.compile(r"\b(?:rm|remove[sd]?|delete[sd]?|backup|damaged)\b")
"""What a message about such a file has no reason to say."""


def alone(changes: tuple[Change, ...]) -> list[str]:
    """The files that a later version wrote, if nothing else happened to them, nor to any other file."""
    return [change.unknown for change in changes if change.unknown] if len(changes) == 1 else []


def violations_of(name: str, base: Told, found: Told, damaged: Callable[[], Told]) -> Iterator[str]:
    """What is wrong with an answer about a folder in which a file `name` is of a later version.

    Parameters
    ----------
    base : the answer about the folder as it was
    damaged : asks about the folder in which the bytes of the version are damaged
    """
    if found.ended.code in (65, 66) and base.answered:
        yield f"unknown-refused: exit {found.ended.code}: {found.ended.err.strip()[:200]}"
    for text in sorted(_removals(found, name) - _removals(base, name)):
        yield f"unknown-removed: {text[:200]}"
    before, after = base.answer, found.answer
    if before is None or after is None:
        return
    known = measures.findings(before)
    new = [one for one in after["findings"] if (one["id"], one["subject"], one["message"]) not in known]
    for one in new:
        if one["id"] in DAMAGE and _is_about(one, name):
            yield f"unknown-as-damage: {one['id']} {one['subject']}: {one['message'][:200]}"
        elif one["id"] not in _UNKNOWN and one["effect"] in _HARM and _is_about(one, name):
            yield f"unknown-as-damage: {one['id']} with the effect {one['effect']}: {one['message'][:200]}"
        elif one["id"] in _UNKNOWN and _REMOVAL.search(one["message"]):
            yield f"unknown-removed: {one['message'][:200]}"
    told = [one for one in new if one["id"] in _UNKNOWN]
    if any(one["severity"] == "error" for one in told) and found.ended.code != 5:
        yield f"unknown-decided: exit {found.ended.code} next to an error that a file is not known"
    if not (told or _row_names_it(after)) and _is_read(before, after, damaged):
        yield f"unknown-ignored: no unknown-version, and damage there in {name} is noticed"


def _row_names_it(answer: measures.Answer) -> bool:
    """Whether a row of `scan` or a part of `report` names such a file's finding, or is only a bound."""
    result = answer["result"] or {}
    rows = [row for row in result.get("runs") or () if isinstance(row, dict) and "worst" in row]
    parts = [one["id"] for part in result.get("parts") or () for one in part.get("findings") or ()]
    return bool({*_UNKNOWN} & {*parts}) or any(row["exit"] == 5 or {*_UNKNOWN} & {*row["worst"]} for row in rows)


def _is_read(before: measures.Answer, after: measures.Answer, damaged: Callable[[], Told]) -> bool:
    """Whether the answer rests on the file."""
    if _said(before) != _said(after):
        return True
    other = damaged()
    return other.answer is None or _said(before) != _said(other.answer)


def _said(answer: measures.Answer) -> Any:
    return measures.findings(answer), measures.said(answer["result"])


def _is_about(finding: dict[str, Any], name: str) -> bool:
    """Whether a finding names a file: by its place below PATH, below a part of it, or by its whole path."""
    places = {finding["subject"], *(place["path"] for place in finding["where"])}
    return any(place == name or f"/{name}".endswith(f"/{place}") or place.endswith(f"/{name}") for place in places)


def _removals(told: Told, name: str) -> set[str]:
    """Commands of an answer that remove a file, and places where it is listed to be removed."""
    tail = "/".join(name.split("/")[-2:])
    names = re.compile(rf"\brm\b[^\n;&|]*(?<![\w.-]){re.escape(tail)}(?![\w.-])")
    found = {match[0] for match in names.finditer(told.ended.out.replace("\\n", "\n"))}
    if told.answer is not None:
        details = (told.answer["result"] or {}).get("details") or {}
        found |= {path for path in details.get("remove") or () if f"/{name}".endswith(f"/{path}")}
    return found
