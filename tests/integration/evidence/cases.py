"""Folders that were found with a wrong answer, beside the shared data: where they are, and how they are asked about."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import SHARED
from tests.program import cklog

CASES = SHARED.parent / "round3" / "cases"


def answer(command: str, path: str, *options: str) -> tuple[int, Any]:
    """Ask about a folder of a case; return the exit code and the answer."""
    ended = cklog(command, CASES / path, "--json", *options)
    return ended.code, json.loads(ended.out)
