"""A sample with other names in it, as a hostile log might have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def rename_operators(run: Path, names: Mapping[str, str]) -> None:
    """Replace names of operators in every record of a native run, and drop the checksums that no longer hold."""
    for checksum in run.rglob(".*.crc"):
        checksum.unlink()
    for file in [run / "job.json", *run.rglob("*.jsonl")]:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row.pop("crc32c", None)
        renamed = (json.dumps(_renamed(row, names)) + "\n" for row in rows)
        file.write_text("".join(renamed), encoding="utf-8")


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
    return value
