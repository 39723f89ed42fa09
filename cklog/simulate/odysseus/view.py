"""The answer of `simulate odysseus` for people: what the crash and the recovery did to the results."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.render.curve import figure
from cklog.render.view import Section, View

_FEWEST = 30
"""With fewer moments a table says more than a curve."""

_COLUMNS = ("output", "sent", "missing", "wrong", "doubled")


def simulate_odysseus_view(answer: Answer[dict[str, Any]]) -> View:
    """Each output's results against those of the run without failure, then the files."""
    found = answer.result
    rows = tuple((o["output"], o["results"], o["missing"], o["wrong"], o["doubled"]) for o in found["outputs"])
    lead = (
        f"Simulated the query {found['query']} on {found['elements']:,} elements: a crash at "
        f"{found['crash'] / 1000:g} s, {found['recovery']} recovery from {found['restart'] / 1000:g} s on."
    )
    sections = [Section("Results against a run without failure", _COLUMNS, rows)]
    files = tuple((f["path"], f["bytes"]) for f in found["files"])
    figures = tuple(figure for output in found["outputs"] for figure in _figures(output))
    sections += [Section("Files", ("path", "bytes"), files)] if files else []
    return View(lead, tuple(sections), figures=figures)


def _figures(output: dict[str, Any]) -> list[str]:
    """The paper's Figures 4 and 5: the results, 0 where there is none, and how often each time is among them."""
    moments = output["over_time"]
    seconds = [m["time"] / 1000 for m in moments]
    results = [m["result"] or 0 for m in moments]
    times = [m["results"] for m in moments]
    if len(moments) < _FEWEST or not all(isinstance(result, int) and result >= 0 for result in results):
        return []
    name = output["output"]
    return [
        figure(f"{name}: results (0: none)", seconds, results, None),
        figure(f"{name}: results for each time", seconds, times, None),
    ]
