"""Folders that were found with a wrong answer, beside the shared data: where they are, and how they are asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED
from tests.program import cklog

CASES = SHARED.parent / "round3" / "cases"

kept = pytest.mark.skipif(not CASES.is_dir(), reason="the folders of cases lie beside the repository, or nowhere")


def answer(command: str, path: str | Path, *options: str | Path) -> tuple[int, Any]:
    """Ask about a folder, named whole or below the cases; return the exit code and the answer."""
    ended = cklog(command, CASES / path, "--json", *options)
    return ended.code, json.loads(ended.out)


def ids(found: Any, *severities: str) -> set[str]:
    """The ids of an answer's findings: all, or those of some severities."""
    return {f["id"] for f in found["findings"] if not severities or f["severity"] in severities}


def said(found: Any, id: str) -> list[tuple[str, str]]:
    """The findings of an id: severity and message."""
    return [(f["severity"], f["message"]) for f in found["findings"] if f["id"] == id]


def claims(found: Any) -> str:
    """What the runs of an answer take for granted."""
    return "; ".join(row["claim"] for run in found["result"]["runs"] for row in run["unchecked"])
