"""Several runs side by side: a row per metric, a column per run."""

from __future__ import annotations

from typing import Any

from cklog.lines.view import metric_rows
from cklog.model.verdict import Answer
from cklog.render.view import Section, View


def compare_view(answer: Answer[dict[str, Any]]) -> View:
    """Every metric that some run has, in the order of the first run that has it."""
    runs = answer.result["runs"]
    columns = [dict(metric_rows({k: v for k, v in run.items() if k != "run"})) for run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = tuple((name, *(column.get(name, "-") for column in columns)) for name in names)
    section = Section("Metrics", ("metric", *(run["run"] for run in runs)), rows)
    return View(f"{len(runs)} runs side by side.", (section,))
