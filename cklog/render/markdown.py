"""Answers as Markdown: what comes from the input is text there, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cklog.model.findings import Finding
from cklog.render.text import escaped_markdown, visible, visible_lines
from cklog.render.view import Section, View


def markdown_text(headline: str, shown: View, findings: Sequence[Finding]) -> str:
    """Write a view and its findings as a document that begins with the headline."""
    lines = [escaped_markdown(headline), ""]
    lines += [line for sentence in shown.lead for line in (escaped_markdown(sentence), "")]
    for figure in shown.figures:
        lines += [*fenced(figure), ""]
    for section in shown.sections:
        lines += markdown_section(section)
    if shown.notes:
        lines += ["## Why", "", *(f"{i}. {escaped_markdown(note)}" for i, note in enumerate(shown.notes, 1)), ""]
    if findings:
        lines += ["## Findings", "", *map(finding_line, findings), ""]
    return "\n".join(lines)


def markdown_section(section: Section, level: int = 2, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a table under a heading of some level; of more than `most` rows it says how many there are."""
    yield from (f"{'#' * level} {visible(section.title)}", "")
    if section.note:
        yield from (visible(section.note), "")
    yield "| " + " | ".join(map(escaped_markdown, section.columns)) + " |"
    yield "|" + " --- |" * len(section.columns)
    for row in section.rows[:most]:
        yield "| " + " | ".join(escaped_markdown(str(cell)) for cell in row) + " |"
    yield ""
    if most is not None and len(section.rows) > most:
        yield from (f"The first {most} of {len(section.rows):,} rows; JSON has them all.", "")


def finding_line(finding: Finding) -> str:
    """Write a finding as an item of a list."""
    return f"- **{finding.severity}** `{finding.id}`: {escaped_markdown(finding.message)}"


def fenced(text: str, language: str = "text") -> tuple[str, str, str]:
    """Return a text as a block of code, which it cannot end: its fence is longer than any in it; and without secrets.

    >>> fenced("a ``` b")
    ('````text', 'a ``` b', '````')
    """
    text = visible_lines(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}", text, fence
