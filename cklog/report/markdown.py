"""A report as Markdown: whole, or as a message that fits a chat."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cklog.model.actions import RunAction
from cklog.model.unchecked import unchecked_sentence
from cklog.model.wording import many
from cklog.render.markdown import fenced, finding_line, markdown_section
from cklog.render.text import escaped_markdown, visible
from cklog.report.compose import Composed
from cklog.report.orphans import step_sentences
from cklog.report.parts import (
    all_findings,
    evidence_section,
    no_runbook,
    runbook_command,
    runs_section,
    shown_command,
    shown_parts,
    verdict_line,
)
from cklog.runbook.view import markdown_steps
from cklog.version import __version__

_MOST_ROWS = 40
_MOST_REASONS = 40
_MOST_FINDINGS = 100
_MESSAGE = 1_500  # characters of a message: chats cut longer ones, or fold them away


def as_markdown(composed: Composed) -> str:
    """Write the whole report; its first line is what to do."""
    report = composed.answer.result
    lines = [f"**{escaped_markdown(verdict_line(composed))}**", ""]
    lines += [escaped_markdown(report.summary), ""] if report.summary else []
    lines += markdown_section(runs_section(report), most=_MOST_ROWS)
    lines += ["## What to do, in order", ""]
    lines += (
        []
        if report.runbook is None
        else markdown_steps(report.runbook, 3, lambda command: shown_command(command, runbook_command(report)))
    )
    lines += [escaped_markdown(no_runbook(report)), ""] if no_runbook(report) else []
    reasons = step_sentences(report.recovery_line)
    if reasons:
        lines += ["## Why subtasks fell", ""]
        lines += [f"{i}. {escaped_markdown(text)}" for i, text in enumerate(reasons[:_MOST_REASONS], 1)]
        more = len(reasons) - _MOST_REASONS
        lines += ["", f"And {more:,} more: JSON has them all.", ""] if more > 0 else [""]
    for shown in shown_parts(composed):
        lines += [f"## {shown.title}", ""]
        lines += [
            line
            for text in (shown.headline, shown.left_out, shown.part.left)
            if text
            for line in (escaped_markdown(text), "")
        ]
        for table in shown.sections:
            lines += markdown_section(table, 3, _MOST_ROWS)
        lines += [*(f"- {escaped_markdown(note)}" for note in shown.notes), ""] if shown.notes else []
    findings = all_findings(composed)
    if findings:
        lines += ["## Findings", "", *map(finding_line, findings[:_MOST_FINDINGS]), ""]
        more = len(findings) - _MOST_FINDINGS
        lines += [f"And {more:,} more: JSON has them all.", ""] if more > 0 else []
    lines += markdown_section(evidence_section(report), most=_MOST_ROWS)
    lines += [f"cklog {__version__}, a {report.format} run, asked as:", "", *fenced(command_line(composed)), ""]
    return "\n".join(lines)


def command_line(composed: Composed) -> str:
    """Return the words that the answers depend on, as a shell takes them."""
    return visible(shlex.join(composed.answer.result.arguments))


def as_message(composed: Composed) -> str:
    """Write the verdict, commands to paste and the worst findings in what a message of a chat holds."""
    report = composed.answer.result
    first = f"**{escaped_markdown(_cut(verdict_line(composed), 500))}**"
    blocks = [block for run in report.runs for block in _run_blocks(run, alone=len(report.runs) == 1)]
    unchecked = unchecked_sentence([row for run in report.runs for row in run.unchecked])
    blocks += [_cut(escaped_markdown(unchecked), 500)] if unchecked else []
    grave = [f for f in all_findings(composed) if f.severity != "info"]
    blocks += [_cut(finding_line(finding), 240) for finding in grave]
    last = f"All of it: `{command_line(composed).replace('`', '')}`"
    kept: list[str] = []
    room = _MESSAGE - len(first) - len(last) - 60
    for block in blocks:
        if len(block) + 1 > room:
            break
        room -= len(block) + 1
        kept.append(block)
    left = len(blocks) - len(kept)
    more = [f"And {many(left, 'line')} more."] if left else []
    return "\n".join([first, *kept, *more, last]) + "\n"


def _run_blocks(run: RunAction, alone: bool) -> Iterator[str]:
    """Yield what to do about a run, or to mind before its command is pasted; then the command."""
    words = [] if alone else [run.run or run.path, run.action]
    words += [f"{'Mind: ' if run.command else ''}{run.note}"] if run.note else []
    told = ": ".join(words)
    command = "\n".join(fenced(visible(run.command), "sh")) if run.command else ""
    text = f"{escaped_markdown(f'{told[:1].upper()}{told[1:]}' if alone else told)}." if told else ""
    yield "\n".join(part for part in (text, command) if part)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
