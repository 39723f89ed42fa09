"""Folders that real systems left, held against what those systems did with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.program import cklog


@pytest.fixture(scope="module")
def verified(shared_data: Path) -> Path:
    return shared_data / "engine-verified"


def answer(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog(*words, "--json").out)
    return found


@pytest.mark.parametrize("name", ["checkmate-q1", "checkmate-q3", "checkmate-two-partitions"])
def test_the_line_of_a_dump_is_that_of_its_execution(verified: Path, name: str) -> None:
    """Forward channels, objects as payload, workers without a snapshot, two partitions on each worker."""
    truth = json.loads((verified / name / "truth.json").read_text())
    found = answer("recovery-line", verified / name)
    line = {f"{row['operator']}/{row['subtask']}": row["checkpoint"] for row in found["result"]["line"]}
    assert line == truth["line"]
    if "sources" in truth:
        resumed = {row["source"]: row["offset"] for row in found["result"]["sources"]}
        assert {name: offset for name, offset in truth["sources"].items() if offset} == resumed
    assert not [finding for finding in found["findings"] if finding["id"] == "corrupt-file"]


@pytest.mark.parametrize("name", ["checkmate-q1", "checkmate-q3"])
def test_every_stored_checkpoint_is_read(verified: Path, name: str) -> None:
    truth = json.loads((verified / name / "truth.json").read_text())
    found = answer("inspect", verified / name)["result"]["subtasks"]
    stored = {f"{row['operator']}/{row['subtask']}": row["last"] or 0 for row in found}
    assert {unit: count for unit, count in truth["stored"].items() if count} == {k: n for k, n in stored.items() if n}
