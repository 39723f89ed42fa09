"""A query whose file sink cannot go back writes to a new folder: what it needs there, tried with real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_BEFORE, _AFTER = 6, 20
"""Batches before and after the folder is changed; Spark compacts a sink's log after ten."""


def test_a_new_folder_needs_a_compact_file_of_no_results(restarting: Any, tmp_path: Path) -> None:
    read, checkpoint, old, bare, anchored = (tmp_path / name for name in ("in", "ck", "old", "bare", "anchored"))
    read.mkdir()

    def run(target: Path, first: int, end: int) -> str:
        for i in range(first, end):
            (read / f"{i:03}.txt").write_text(f"row {i}\n")
        stream = restarting.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(read)).writeStream
        query = stream.format("text").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        try:
            query.start(str(target)).awaitTermination()
        except Exception as error:
            return str(error)
        return ""

    assert run(old, 0, _BEFORE) == ""
    assert "BATCH_METADATA_NOT_FOUND" in run(bare, _BEFORE, _AFTER)
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (anchored / "_spark_metadata").mkdir(parents=True)
    (anchored / "_spark_metadata" / f"{last}.compact").write_text("v1")
    assert run(anchored, _AFTER, 2 * _AFTER) == ""
    listed = {row.value for folder in (old, anchored) for row in restarting.read.text(str(folder)).collect()}
    loose = {line for part in bare.glob("part-*") for line in part.read_text().splitlines()}  # nobody can list them
    assert listed | loose == {f"row {i}" for i in range(2 * _AFTER)}
