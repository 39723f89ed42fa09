"""What `cklog rounds` answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.program import cklog


def asked(folder: Path, *args: str) -> tuple[int, Any, dict[str, str]]:
    """Exit code, result, and the messages of findings by id."""
    ended = cklog("rounds", folder, "--json", *args)
    found = json.loads(ended.out)
    return ended.code, found["result"], {f["id"]: f["message"] for f in found["findings"]}
