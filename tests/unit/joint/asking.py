"""`recovery-line --with`, asked; and jobs whose logs lack something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.program import Ended, cklog


def ask(*words: object) -> tuple[Ended, dict[str, Any]]:
    ended = cklog("recovery-line", *map(str, words), "--json")
    return ended, json.loads(ended.out) if ended.out else {}


def points(answer: dict[str, Any]) -> dict[str, str]:
    return {row["job"]: row["from"] for row in answer["result"]["details"]["joint_order"]}


def drop(folder: Path, *numbers: int) -> None:
    """Numbered files of a log, with their checksums."""
    for number in numbers:
        (folder / str(number)).unlink()
        (folder / f".{number}.crc").unlink(missing_ok=True)
