"""What an answer must and must not say of a file whose version it does not know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cklog.model.verdict import DAMAGE
from tests.program import cklog

LATER = (1, 9, 99, 255)
"""What is added to the newest number, or stands in its place where that is larger."""

_ADVICE = re.compile(r"\b(?:rm|remove[sd]?|delete[sd]?)\b|\bfails\b", re.IGNORECASE)


def later(newest: int) -> list[int]:
    """Return numbers beyond the newest one: the next one first."""
    return sorted({newest + 1, *(number for number in LATER if number > newest)})


def answer(*args: str | Path) -> tuple[int, Any]:
    """Return the exit code and the answer of a command."""
    ended = cklog(*args, "--json")
    return ended.code, json.loads(ended.out) if ended.out else json.loads(ended.err or "{}")


def require_unknown(about: str, *args: str | Path) -> None:
    """Expect that the answer rests on a file of an unknown version, and calls that neither damaged nor in the way."""
    code, found = answer(*args)
    if "error" in found:  # nothing else is there that an answer could rest on
        assert (code, found["error"]["id"]) == (5, "unknown-version"), found
        assert about in found["error"]["message"]
        assert not _ADVICE.search(found["error"]["message"] + found["error"]["hint"]), found
        return
    rows = _about(found, about)
    assert [row["severity"] for row in rows if row["id"] == "unknown-version"][:1] == ["error"], (about, found)
    assert code == 5, (about, code, found["findings"])
    assert found["verdict"] == "indeterminate"
    assert found["result"].get("action", "undetermined") == "undetermined"
    _require_no_damage(rows)


def require_warning(about: str, intact: int, *args: str | Path) -> None:
    """Expect that the answer says so of a file, and rests on others."""
    code, found = answer(*args)
    rows = _about(found, about)
    assert [row["severity"] for row in rows if row["id"] == "unknown-version"] == ["warning"], (about, found)
    assert code == intact
    _require_no_damage(rows)


def require_damaged(about: str, *args: str | Path) -> None:
    """Expect that a file is called damaged, and of no unknown version."""
    _, found = answer(*args)
    ids = {row["id"] for row in _about(found, about)}
    assert ids & DAMAGE, (about, found["findings"])
    assert "unknown-version" not in ids


def _about(found: Any, about: str) -> list[Any]:
    rows: list[Any] = found["findings"]
    return [row for row in rows if about in row["message"] or about in row["subject"]]


def _require_no_damage(rows: list[Any]) -> None:
    assert not [row for row in rows if row["id"] in DAMAGE], rows
    for row in rows:
        if row["id"] == "unknown-version":
            assert not _ADVICE.search(row["message"]), row
