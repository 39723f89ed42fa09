"""The audit of a communication-induced protocol's index, in words."""

from __future__ import annotations

from cklog.lines.entries import message_words
from cklog.model.names import CheckpointId
from cklog.model.verdict import LOSSES, Answer
from cklog.model.zigzag import AuditResult, ZigzagMessage
from cklog.render.view import Section, View

_RULES = {
    "messages": "The index rises as it must: no message goes to an interval of a lower index, so no Z-cycle can exist.",
    "zigzag paths": "The index rises along every zigzag path, so no Z-cycle can exist; single messages do fall (HMNR).",
}

_LOST = (
    "Records are lost. What they may have held counts as received, so a path with an unknown message (m?) need not be "
    "real; and an index that does not rise may be among them"
)


def audit_view(answer: Answer[AuditResult]) -> View:
    """The verdict, then every breach."""
    found = answer.result
    broken = f"The index does not rise at {found.broken} of {found.indexed} checkpoints: the protocol was broken."
    rows = tuple(
        (_name(b.end), b.end_index, _name(b.start), b.start_index, len(b.path), _path(b.path)) for b in found.breaches
    )
    names = ("checkpoint", "index", "not above", "its index", "messages", "Z-path")
    rest = found.broken - len(rows)
    note = f"and {rest} more; --limit N lists N of them" if rest else ""
    notes = []
    if found.by_message is not None:
        notes.append(f"{found.falling} messages fall in index; the first: {message_words(found.by_message)}")
    if found.not_indexed:
        notes.append(f"{found.not_indexed} checkpoints state no index and were taken to have that of the one before")
    notes += [_LOST] if any(finding.id in LOSSES for finding in answer.findings) else []
    section = Section("Indices that do not rise", names, rows, note)
    return View(_RULES.get(found.rule, broken), (section,) if rows else (), tuple(notes), data=section)


def _name(checkpoint: CheckpointId) -> str:
    return f"{checkpoint.operator}/{checkpoint.subtask}={checkpoint.checkpoint}"


def _path(path: tuple[ZigzagMessage, ...]) -> str:
    return ", ".join(f"m{'?' if m.seq is None else m.seq} {m.channel}" for m in path) or "-"
