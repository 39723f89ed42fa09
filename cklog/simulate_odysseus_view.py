"""The answer of `simulate odysseus` for people: what the crash and the recovery did to the results."""

from __future__ import annotations

from cklog.model import Answer
from cklog.view import Section, View

_COLUMNS = ("output", "sent", "missing", "wrong", "doubled")


def simulate_odysseus_view(answer: Answer) -> View:
    """Each output's results against those of the run without failure, then the files."""
    found = answer.result
    rows = tuple((o["output"], o["results"], o["missing"], o["wrong"], o["doubled"]) for o in found["outputs"])
    lead = (
        f"Simulated the query {found['query']} on {found['elements']:,} elements: a crash at "
        f"{found['crash'] / 1000:g} s, {found['recovery']} recovery from {found['restart'] / 1000:g} s on."
    )
    sections = [Section("Results against a run without failure", _COLUMNS, rows)]
    files = tuple((f["path"], f["bytes"]) for f in found["files"])
    return View(lead, (*sections, *([Section("Files", ("path", "bytes"), files)] if files else [])))
