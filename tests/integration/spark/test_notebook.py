"""The notebook of the docs, run by a real kernel: it shows what is stored in it, in as few lines as it promises."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from cklog.engine.scan import Engine
from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "incident.ipynb"
OURS = ("text/html", "image/svg+xml")


def shown(notebook: Any) -> list[dict[str, Any]]:
    """What each cell of code shows last, by kind."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [dict(cell.outputs[-1].get("data", {})) if cell.outputs else {} for cell in cells]


def code(notebook: Any) -> list[str]:
    return [line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.splitlines() if line]


@pytest.mark.slow
@pytest.mark.spark
def test_the_notebook_shows_what_is_stored_in_it(
    spark: Engine, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`spark` is asked for as the notebook cannot run where it skips; the notebook starts a session of its own."""
    stored = nbformat.read(NOTEBOOK, as_version=4)
    ran = nbformat.read(NOTEBOOK, as_version=4)
    assert len(code(ran)) <= 30
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    client = NotebookClient(ran, timeout=300, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}})
    client.execute()
    if request.config.getoption("--refresh-golden"):
        write(ran, NOTEBOOK)
        return
    line, ranges, orphans, picture, sql, _ = shown(ran)
    kept = shown(stored)
    assert line["text/html"] == kept[0]["text/html"]
    assert {kind: picture[kind] for kind in OURS} == {kind: kept[3][kind] for kind in OURS}
    assert "to replay" in ranges["text/plain"]
    assert "join/0" in orphans["text/plain"]
    # Of the stored checkpoints three are newer than the line: one of each join, and the sink's.
    assert re.findall(r"^\d+ +(\w+) +(\d+) +(\d+) +(\d+)", sql["text/plain"], re.MULTILINE) == [
        ("join", "0", "5", "4"),
        ("join", "1", "4", "3"),
        ("sink", "0", "4", "3"),
    ]


def write(notebook: Any, path: Path) -> None:
    """Write a notebook without what differs from run to run: times, counts, and what Java says."""
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [one for one in cell.outputs if one.output_type != "stream"]
            for one in cell.outputs:
                one["execution_count"] = None
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)
