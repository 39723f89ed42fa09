"""The parts of a report as titles, sentences and tables: the same ones for each document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cklog.explanations.pages import all_pages
from cklog.lines.recovery.view import TITLE as TIME_TO_RECOVER
from cklog.lines.recovery.view import recovery_headline, recovery_notes, recovery_sections
from cklog.model.actions import MEANINGS, RunAction
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.wording import many, utc
from cklog.render.view import Section, headline_of, section, view
from cklog.report.compose import Composed
from cklog.report.model import Part, PartName, Report

TITLES: dict[PartName, str] = {
    "recovery-line": "Recovery line",
    "runbook": "What to do, in order",
    "proof": "Proof",
    "recovery-time": "How long the recovery takes",
    "replay": "Replay",
    "impact": "Impact on results",
    "chains": "Chains of checkpoints",
    "retention": "What may be deleted, and what must stay",
    "failures": "Failures over time",
    "damage": "What is here, and what is damaged",
}


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part as it is shown: a headline and tables, or one sentence in their place (`left_out`)."""

    part: Part
    title: str
    headline: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    left_out: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding with what its page says of it: what it means, for the answer, too, and what to do."""

    finding: Finding
    means: tuple[str, ...]


def verdict_line(composed: Composed) -> str:
    """Return the first line of every document: the action, and the answer in a sentence."""
    line = composed.answers["recovery-line"]
    report = composed.answer.result
    return f"Action: {report.action} ({MEANINGS[report.action]}). {headline_of(view(line), line.findings)}"


def shown_parts(composed: Composed) -> Iterator[ShownPart]:
    """Yield the parts in the order of the report; what to do stands before all of them (`no_runbook`)."""
    report = composed.answer.result
    for part in report.parts:
        if part.name == "runbook":
            continue
        if part.name == "recovery-time":
            yield _recovery_time(part, report.recovery_line)
            continue
        answer = composed.answers.get(part.name)
        title = TITLES[part.name]
        if answer is None:
            yield ShownPart(part, title, "", (), (), part.why)
            continue
        shown = view(answer)
        notes = () if part.name == "recovery-line" and report.recovery_line.steps else shown.notes
        if part.name == "recovery-line":  # how long it takes is a part of its own
            timed = {*recovery_notes(report.recovery_line.recovery_time)}
            notes = tuple(note for note in notes if note not in timed)
        if part.name == "replay":  # it is about the same line: what the first part has is not said again
            sections = tuple(s for s in shown.sections if s.title not in ("Recovery line", TIME_TO_RECOVER))
            yield ShownPart(part, title, "" if sections else "There is nothing to replay.", sections, (), "")
            continue
        drop: tuple[str, ...] = (TIME_TO_RECOVER,) if part.name == "recovery-line" else ()
        drop += _REPLAYED if part.name == "recovery-line" and "replay" in composed.answers else ()
        sections = tuple(s for s in shown.sections if s.title not in drop)
        yield ShownPart(part, title, headline_of(shown, answer.findings), sections, notes, "")


def _recovery_time(part: Part, line: RecoveryLine) -> ShownPart:
    """How long the recovery takes, of the whole and of every subtask, with the rates that it rests on."""
    found = line.recovery_time
    sections = tuple(recovery_sections(found, most=_MOST_PARTS))
    notes = tuple(recovery_notes(found))
    if not sections:
        unknown = "; ".join(found.unknown) if found else ""
        why = sentence(f"nothing tells how long it takes{f': {unknown}' if unknown else ''}")
        return ShownPart(part, TITLES[part.name], "", (), (), why)
    return ShownPart(part, TITLES[part.name], recovery_headline(found), sections, notes, "")


_MOST_PARTS = 10_000

_REPLAYED = ("To replay from the channel logs", "Sent again after the restart", "Sources resume at")


def shown_command(command: str, all_of_it: str) -> tuple[str, str]:
    """Return a command as a document has it, and of very many lines what is said of those that it leaves out.

    >>> shown_command("echo a", "cklog runbook RUN")
    ('echo a', '')
    """
    lines = command.split("\n")
    if len(lines) <= _MOST_LINES:
        return command, ""
    told = f"These are the first {_MOST_LINES} of {len(lines):,} lines, and not to be pasted alone"
    return "\n".join(lines[:_MOST_LINES]), f"{told}: {all_of_it} --format md has them all, --format script runs them."


_MOST_LINES = 100


def runbook_command(report: Report) -> str:
    """Return the command that prints the steps alone."""
    return next((part.command for part in report.parts if part.name == "runbook"), "")


def no_runbook(report: Report) -> str:
    """Return why there are no steps, in a sentence; "" where there are."""
    return next((part.why for part in report.parts if part.name == "runbook"), "")


def runs_section(report: Report) -> Section:
    """Return the runs below PATH as a table."""
    columns = ("run", "action", "newest", "chosen", "chosen at", "age", "read again", "lost", "doubled", "blocked by")
    return section("Runs", columns, [_run_cells(run) for run in report.runs])


def _run_cells(run: RunAction) -> tuple[object, ...]:
    again = f"{run.read_again}{' or more' if run.reads_more else ''}"
    return (
        run.run or run.path,
        run.action,
        run.newest or "-",
        run.chosen or "-",
        utc(run.chosen_time),
        "-" if run.age_ms is None else f"{run.age_ms / 1000:.3f} s",
        again,
        "unknown" if run.lost is None else run.lost,
        "unknown" if run.doubled is None else run.doubled,
        ", ".join(run.blocked_by) or "-",
    )


def evidence_section(report: Report) -> Section:
    """Return the files that decided as a table."""
    rows = [(row.path, row.files, row.bytes, row.sha256 or "not computed") for row in report.evidence]
    left = report.not_hashed
    parts = [f"{many(left, 'file', grouped=True)} not hashed, for their size or number"] if left else []
    parts.append("of a folder: sha256sum of each file, sorted by name as bytes, hashed together")
    return section("Evidence", ("path", "files", "bytes", "sha256"), rows, "; ".join(parts))


def all_findings(composed: Composed) -> tuple[Finding, ...]:
    """Return the findings of all parts, those of the line first and each once."""
    parts = composed.answer.result.parts
    return tuple(dict.fromkeys([*composed.answer.findings, *(f for part in parts for f in part.findings)]))


def explained(finding: Finding) -> Explained:
    """Return a finding with its page."""
    means: list[str] = []
    for page in all_pages():
        if page.id == finding.id and page.kind == "finding":
            several = len(page.meanings) > 1
            for meaning in page.meanings:
                topic = f"{meaning.topic}: " if several else ""
                parts = [meaning.means, meaning.answer, f"What to do: {meaning.do}" if meaning.do else ""]
                means.append(topic + " ".join(sentence(part) for part in parts if part))
    return Explained(finding, tuple(means))


def sentence(text: str) -> str:
    """Return words as a sentence: a capital letter first, a full stop last."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."
