"""Aligned rounds of a short chain of operators, and its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.native import checkpoint

AB, BC = "a/0->b/0", "b/0->c/0"
Record = dict[str, Any]


def chain(rounds: int, **more: Any) -> list[Record]:
    """Aligned rounds of a/0 -> b/0 -> c/0, ten messages on each channel in each."""
    found = []
    for n in range(1, rounds + 1):
        base = {"kind": "coordinated", "round": n, "bytes": 100, **more}
        found.append(checkpoint("a/0", n, **base, sent={AB: 10 * n}))
        found.append(checkpoint("b/0", n, **base, received={AB: 10 * n}, sent={BC: 10 * n}))
        found.append(checkpoint("c/0", n, **base, received={BC: 10 * n}))
    return found


def manifest(folder: Path, **more: Any) -> None:
    operators = [{"name": name, "parallelism": 1, "placement": {"0": f"n-{name}"}} for name in "abc"]
    (folder / "job.json").write_text(json.dumps({"operators": operators, **more}))
