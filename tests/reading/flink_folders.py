"""What cklog answers about folders of Flink checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.flink_folders import ORIGIN
from tests.program import cklog


def asked(command: str, path: Path | str, *more: str, root: Path | None = None) -> dict[str, Any]:
    """The JSON of an answer with its exit code as `exit`; `root`: what ORIGIN is mapped to."""
    maps = () if root is None else ("--map", f"{ORIGIN}={root}")
    ended = cklog(command, path, *maps, *more, "--json")
    assert "Traceback" not in ended.err
    answer: dict[str, Any] = json.loads(ended.out) if ended.out else {"error": ended.err}
    return answer | {"exit": ended.code}


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    return {row["snapshot"]: row["verdict"] for row in answer["result"]["details"]["snapshots"]}


def restored(answer: dict[str, Any]) -> dict[str, str | None]:
    """What each job is restored from."""
    return {entry["operator"]: entry["uri"] for entry in answer["result"]["line"]}


def fates(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Fate and rule of each file."""
    return {row["path"]: (row["fate"], row["rule"]) for row in answer["result"]["rows"]}


def ids(answer: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in answer["findings"]}
