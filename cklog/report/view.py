"""A report on a terminal: what to do, in order, and what became of each part."""

from __future__ import annotations

from cklog.model.actions import MEANINGS
from cklog.model.unchecked import unchecked_sentence
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, cut_section
from cklog.report.model import Report
from cklog.runbook.view import step_figures, step_sentences, step_title


def report_view(answer: Answer[Report]) -> View:
    """Show the action, the steps, and each part with its verdict."""
    report = answer.result
    book = report.runbook
    figures = () if book is None else step_figures(book)
    unchecked = unchecked_sentence([row for run in report.runs for row in run.unchecked])
    lead = (unchecked,) if unchecked else ()
    parts = [
        (part.name, part.state, part.verdict or "-", "-" if part.exit_code is None else part.exit_code, part.why or "-")
        for part in report.parts
    ]
    findings = [(f.severity, f.id, f.subject) for part in report.parts for f in part.findings]
    sections: list[Section] = [
        cut_section("Parts", ("part", "state", "verdict", "exit", "why it is left out"), parts),
        cut_section("Findings of other parts than the line", ("severity", "id", "subject"), findings),
    ]
    steps = () if book is None else tuple(f"{step.number}. {step_title(book, step)}" for step in book.steps)
    return View(
        f"Action: {report.action} ({MEANINGS[report.action]}). {report.summary}".rstrip(),
        tuple(s for s in sections if s.rows),
        lead=lead,
        figures=figures,
        steps=(*lead, *steps),
        sentences=step_sentences(figures).union(lead, steps),
    )
