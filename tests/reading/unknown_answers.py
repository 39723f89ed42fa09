"""What `cklog` says of a folder in which one file has a version, a type or a layout that it does not know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cklog.model.verdict import DAMAGE
from tests.program import cklog

_REMOVAL = re.compile(r"\b(rm|unlink|remove|delete)\b", re.IGNORECASE)


def said(command: str, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer to a command, its text under "shown"."""
    ended = cklog(command, folder, "--json", *options)
    answer: dict[str, Any] = json.loads(ended.out)
    return ended.code, answer | {"shown": cklog(command, folder, *options).out}


def about(answer: dict[str, Any], subject: str) -> dict[str, str]:
    """The ids and severities of the findings about a file, or about what it belongs to."""
    names = (subject, subject.rpartition("/")[0])
    places = ((f, {f["subject"], *(place["path"] for place in f["where"])}) for f in answer["findings"])
    return {f["id"]: f["severity"] for f, where in places if any(name and name in where for name in names)}


def leaves_open(folder: Path, subject: str, *options: str, shown: bool = True) -> None:
    """Nothing is concluded from a file: it is of an unknown version, and neither damaged nor to be removed."""
    for command in ("recovery-line", "inspect"):
        ended = cklog(command, folder, "--json", *options)
        answer = json.loads(ended.out)
        found = about(answer, subject)
        assert found.get("unknown-version") == "error", (command, subject, answer["findings"])
        assert not found.keys() & DAMAGE, (command, subject, found)
        assert ended.code == 5, (command, subject)
        if command == "recovery-line":
            assert answer["result"]["action"] == "undetermined", subject
            assert "the restart fails" not in json.dumps(answer["findings"])
            assert "restart-fails" not in {f["effect"] for f in answer["findings"]}, answer["findings"]
        if shown:
            text = cklog(command, folder, *options).out
            assert not _REMOVAL.search(text), (command, subject, text)


def keeps_all(folder: Path, *options: str) -> None:
    """No file may go while the line depends on a file of an unknown version."""
    ended = cklog("retention", folder, "--json", *options)
    rows = json.loads(ended.out)["result"]["rows"]
    assert rows
    assert not [row for row in rows if row["fate"] == "OBSOLETE"]
