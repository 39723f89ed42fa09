"""What `cklog impact` answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cklog.impact.answer import ImpactQuestion
from cklog.impact.model import Impact
from cklog.run import Options, open_run
from tests.program import cklog


def impact_of(folder: Path, split_bytes: int = 1 << 20, **asked: Any) -> Impact:
    """What `cklog impact` answers on a folder."""
    with open_run(str(folder), Options(engine="local", split_bytes=split_bytes)) as run:
        found = run.impact(ImpactQuestion(**asked)).result
    assert isinstance(found, Impact)
    return found


def impact(folder: Path, *options: str, exit: int = 0) -> dict[str, Any]:
    ended = cklog("impact", folder, "--json", "-q", *options)
    assert ended.code == exit, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    assert found["schema"] == "cklog.impact-sinks/1"
    result: dict[str, Any] = found["result"]
    return result


def fates(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    keys = ("sink", "readers", "fate", "from", "to", "why")
    return [tuple(row[key] for key in keys) for row in result["intervals"]]


def kept(result: dict[str, Any]) -> dict[str, str]:
    return {f"{row['sink']} {row['readers']}".strip(): row["guarantee"] for row in result["guarantees"]}
