"""A report on a terminal: what to do, in order, and what became of each part."""

from __future__ import annotations

from cklog.model.actions import MEANINGS
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, cut_section
from cklog.report.model import Report


def report_view(answer: Answer[Report]) -> View:
    """Show the action, the steps, and each part with its verdict."""
    report = answer.result
    steps = [
        f"{number}. {step.do}" + "".join(f"\n   {line}" for line in (step.command or "").split("\n") if line)
        for number, step in enumerate(report.steps, 1)
    ]
    parts = [
        (part.name, part.state, part.verdict or "-", "-" if part.exit_code is None else part.exit_code, part.why or "-")
        for part in report.parts
    ]
    findings = [(f.severity, f.id, f.subject) for part in report.parts for f in part.findings]
    sections: list[Section] = [
        cut_section("Parts", ("part", "state", "verdict", "exit", "why it is left out"), parts),
        cut_section("Findings of other parts than the line", ("severity", "id", "subject"), findings),
    ]
    return View(
        f"Action: {report.action} ({MEANINGS[report.action]}). {report.summary}".rstrip(),
        tuple(s for s in sections if s.rows),
        figures=("\n".join(steps),),
        steps=tuple(line for step in steps for line in step.split("\n")),
    )
