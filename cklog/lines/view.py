"""Recovery lines, proofs and inspections as sentences and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cklog.lines.recovery.view import recovery_notes, recovery_sections
from cklog.lines.sentences import rollback_sentence
from cklog.model.actions import ACTIONS, MEANINGS, RunAction
from cklog.model.audits import RestoredAudit
from cklog.model.findings import InputUsed
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange, position_words
from cklog.model.unchecked import unchecked_sentence
from cklog.model.verdict import Answer, Verdict
from cklog.model.wording import first_few, utc
from cklog.render.formats import plain
from cklog.render.text import visible
from cklog.render.view import Section, View, detail_sections, rows_section, section
from cklog.sink_tables.view import sink_notes, sink_sections

if TYPE_CHECKING:
    from cklog.model.checks import Verification
    from cklog.model.inspection import Inspection


_RUNS_SHOWN = 20


def recovery_line_view(answer: Answer[RecoveryLine]) -> View:
    """Show the line, what is replayed and sent again, where sources resume, how far subtasks fell back, and why."""
    line = answer.result
    sections = [_line_section(line)]
    busy = [c for c in line.channels if c.replay_to > c.replay_from]
    if busy:
        sections.append(_replay_section(busy))
    again = [c for c in line.channels if c.resent_from is not None]
    if again:
        sections.append(_resent_section(again))
    if line.sources:
        sections.append(_sources_section(line))
    if any(d.depth is not None and d.checkpoints for d in line.rollback):
        sections.append(_distance_section(line))
    sections += sink_sections(line.details)
    sections += detail_sections(line.details, answer.command)
    sections += recovery_sections(line.recovery_time)
    notes = [rollback_sentence(step) for step in line.steps] + list(line.notes)
    notes += sink_notes(line.details)
    notes += recovery_notes(line.recovery_time)
    commands = [run.command for run in line.runs if run.command]
    lead = tuple(_action_sentences(line))
    facts = () if commands else tuple(line_steps(line))
    return View(
        line_headline(line, answer.verdict),
        tuple(s for s in sections if s.rows),
        tuple(notes),
        figures=("\n".join(commands),) if commands else (),
        lead=lead,
        steps=(*lead, *(commands or facts)),
        sentences=frozenset((*lead, *facts)),
    )


def _action_sentences(line: RecoveryLine) -> Iterator[str]:
    """Say what to do, and what to mind; of several runs, those of which there is something to say."""
    alone = line.runs[0] if len(line.runs) == 1 else None
    anew = sum(run.action == "start-over" for run in line.runs)
    count = sum(run.action == line.action for run in line.runs)
    counted = f" for {count} of {len(line.runs)}, start-over for {anew}" if anew else ""
    told = counted if ACTIONS.index(line.action) < ACTIONS.index("start-over") else ""
    yield f"Action: {line.action} ({MEANINGS[line.action]}){told if alone is None else _note_of(alone)}."
    runs = [] if alone else [run for run in line.runs if run.action != "restart" or run.note]
    for run in runs[:_RUNS_SHOWN]:
        yield f"{run.run or run.path}: {run.action}{_note_of(run)}."
    if len(runs) > _RUNS_SHOWN:
        yield f"And {len(runs) - _RUNS_SHOWN} more: --json names them."
    if unchecked := unchecked_sentence([row for run in line.runs for row in run.unchecked]):
        yield unchecked


def _note_of(run: RunAction) -> str:
    """What to do, or what to mind about a command."""
    if not run.note:
        return ""
    return f". Mind: {run.note}" if run.command else f": {run.note}"


_NAMED = 12
"""Subtasks, channels and sources that one step names at the most."""


def line_steps(line: RecoveryLine) -> list[str]:
    """Say in a few lines what a restart from a line takes: which checkpoints, and what is read and sent again."""
    if not line.consistent:
        return []
    own = line.details.get("headline")  # of kinds of run that are not restored subtask by subtask
    entries = () if own else line.line
    restored = [f"{e.operator}/{e.subtask}={_checkpoint_word(e)}" for e in entries if e.state != "current"]
    readers, reader = Counter(s.source for s in line.sources), line.reader_names()
    resumed = [
        f"{s.source} at {position_words(s.offset)}" + (f" ({reader(s)})" if readers[s.source] > 1 else "")
        for s in line.sources
    ]
    replayed = [f"{c.channel} {c.replay_from} to {c.replay_to}" for c in line.channels if c.replay_to > c.replay_from]
    resent = [f"{c.channel} from {c.resent_from}" for c in line.channels if c.resent_from is not None]
    steps = {
        "restore": restored,
        "sources resume": resumed,
        "replay": replayed,
        "truncate, or process each number once": resent,
    }
    return [visible(f"{what}: {first_few(names, _NAMED)}") for what, names in steps.items() if names]


_NOT_YET = "Not yet: this line is right, and a restart from it goes wrong as the files are."


def line_headline(line: RecoveryLine, verdict: Verdict) -> str:
    """Say where to restart, in one or two sentences."""
    if line.details.get("headline"):
        return str(line.details["headline"])
    if not line.line:
        return "No consistent line can be given."
    back = [e for e in line.line if e.rolled_back]
    running = sum(e.state == "current" for e in line.line)
    eventual = sum(e.state == "eventual" and not e.rolled_back for e in line.line)
    lead = {
        "indeterminate": "Indeterminate. What can be proven: this line is consistent.",
        "unrecoverable": "No recovery point but the initial state: everything is processed again from the start.",
    }.get(verdict, "Restart from this line." if line.action != "repair-first" else _NOT_YET)
    parts = [
        f"{len(line.line) - len(back) - running - eventual} of {len(line.line)} subtasks at their newest checkpoint"
        + (f", {eventual} at the end of their output queue" if eventual else "")
        + (f", {running} keep running" if running else ""),
        _rolled_back_words(len(back), len(line.rolled_back)),
    ]
    end = " One rollback forced another (domino effect)." if line.domino else ""
    return f"{lead} {'; '.join(parts)}.{end}"


def _rolled_back_words(subtasks: int, checkpoints: int) -> str:
    if not subtasks:
        return "none rolled back further"
    past = f", past {checkpoints} stored checkpoint{'s' if checkpoints != 1 else ''}" if checkpoints else ""
    return f"{subtasks} rolled back further{past}"


def _line_section(line: RecoveryLine) -> Section:
    rows = [
        (f"{e.operator}/{e.subtask}", _checkpoint_word(e), "back" if e.rolled_back else "no", utc(e.time), e.uri or "-")
        for e in line.line
    ]
    return section("Recovery line", ("subtask", "checkpoint", "rolled", "time", "uri"), rows)


def _checkpoint_word(entry: LineEntry) -> str:
    if entry.state in ("current", "eventual"):
        return entry.state
    if entry.state == "initial":
        return "initial" if entry.checkpoint is None else f"{entry.checkpoint} (initial)"
    return "unknown" if entry.checkpoint is None else str(entry.checkpoint)


def _replay_section(channels: list[ReplayRange]) -> Section:
    rows = [
        (
            c.channel,
            c.replay_from,
            c.replay_to,
            _count_or_dash(c.messages),
            _count_or_dash(c.bytes),
            _retained_word(c.retained),
        )
        for c in channels
    ]
    return section("To replay from the channel logs", ("channel", "from", "to", "messages", "bytes", "in log"), rows)


def _resent_section(channels: list[ReplayRange]) -> Section:
    rows = [(c.channel, c.resent_from, c.resent_to) for c in channels]
    note = (
        "the sender sends these again; no receiver on this line has processed them: truncate each log at `from`, or "
        "process each number once"
    )
    return section("Sent again after the restart", ("channel", "from", "known to"), rows, note)


def _sources_section(line: RecoveryLine) -> Section:
    reader = line.reader_names()
    rows = [
        (
            s.source,
            position_words(s.offset),
            "-" if s.replay_to is None else position_words(s.replay_to),
            f"{reader(s)}/{s.subtask}",
        )
        for s in line.sources
    ]
    return section("Sources resume at", ("source", "offset", "planned to", "reader"), rows)


def _distance_section(line: RecoveryLine) -> Section:
    """Show how far the subtasks that fell went back; of messages, those known to be undone."""
    rows = [
        (
            f"{d.operator}/{d.subtask}",
            d.checkpoints,
            "-" if d.time_ms is None else f"{d.time_ms / 1000:.3f}",
            d.received,
            d.sent,
            _count_or_dash(d.depth),
        )
        for d in line.rollback
        if d.checkpoints
    ]
    columns = ("subtask", "checkpoints", "seconds", "received", "sent", "depth")
    note = "depth: orphan messages on a shortest chain from a failure; received, sent: messages undone, at least"
    return section("Rollback distance", columns, rows, note)


def _retained_word(retained: bool | None) -> str:
    return {True: "yes", False: "NO", None: "unknown"}[retained]


def _count_or_dash(count: int | None) -> str:
    return "-" if count is None else str(count)


def verify_view(answer: Answer[Verification]) -> View:
    """Show the checks of a given line."""
    words = {True: "holds", False: "FAILS", None: "cannot tell"}
    rows = [(check.check, words[check.holds], check.because) for check in answer.result.checks]
    return View(answer.result.summary, (section("Checks", ("check", "result", "because"), rows),))


def audit_view(answer: Answer[RestoredAudit]) -> View:
    """Show the checks of a restored line, what it did to messages, and the right one beside it; as rows, the line."""
    found = answer.result
    words = {True: "holds", False: "FAILS", None: "cannot tell"}
    checks = [(check.check, words[check.holds], check.because) for check in found.checks]
    spans = [(s.channel, s.fate, s.start, s.end, s.messages) for s in found.spans]
    entries = [(e.subject, *map(_current_or_number, (e.restored, e.right)), e.age) for e in found.line]
    columns = ("subject", "restored", "right", "age")
    sections = [
        section("Checks", ("check", "result", "because"), checks),
        *([section("Messages", ("channel", "fate", "from", "to", "messages"), spans)] if spans else []),
        section("Restored, and right", columns, entries),
    ]
    data = Section("Line", columns, tuple((e.subject, e.restored, e.right, e.age) for e in found.line))
    return View(found.summary, tuple(sections), data=data)


def _current_or_number(checkpoint: int | None) -> str:
    return "current" if checkpoint is None else "0 (initial)" if checkpoint == 0 else str(checkpoint)


def inspect_view(answer: Answer[Inspection]) -> View:
    """Show every list of rows in the result as a section, and metrics with a row for each."""
    result: dict[str, Any] = plain(answer.result)
    sections = [Section("Input", ("path", "format", "bytes", "records"), tuple(_input_row(i) for i in answer.inputs))]
    for title, rows in result.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            sections.append(rows_section(title.capitalize(), rows))
    for title in ("metrics", "protocol_metrics"):
        rows = tuple(metric_rows(result.get(title, {})))
        sections.append(Section(title.replace("_", " ").capitalize(), ("metric", "value"), rows))
    span = result.get("time_span")
    between = f" From {utc(span['from'])} to {utc(span['to'])}." if span else ""
    return View(result["summary"] + between, tuple(s for s in sections if s.rows))


def _input_row(used: InputUsed) -> tuple[Any, ...]:
    return used.path, used.format, used.bytes, _count_or_dash(used.records)


def metric_rows(metrics: dict[str, Any], lead: str = "") -> list[tuple[str, str]]:
    """Return a row for every number in nested metrics, None left out.

    >>> metric_rows({"invalid": {"useless": {"share": 0.25}}, "restart": None})
    [('invalid useless share', '25.0%')]
    """
    rows: list[tuple[str, str]] = []
    for name, value in metrics.items():
        if isinstance(value, dict):
            rows += metric_rows(value, f"{lead}{name} ")
        elif value is not None:
            rows.append((f"{lead}{name}", _metric_value(name, value)))
    return rows


def _metric_value(name: str, value: Any) -> str:
    if name == "share":
        return f"{value:.1%}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "ratio":
        return f"{value:.2f}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
