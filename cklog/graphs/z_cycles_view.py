"""Useless checkpoints as sentences and rows."""

from __future__ import annotations

from cklog.lines.entries import message_words
from cklog.model.verdict import LOSSES, Answer
from cklog.model.zigzag import UselessCheckpoint, ZCycles, ZigzagMessage
from cklog.render.view import Section, View

_SENTENCES = 10
"""Witnesses told as sentences in a table or Markdown; JSON has all that were asked for."""


_LOST = (
    "Records are lost. What a checkpoint between two others may have held counts as received, so a cycle with an "
    "unknown message (m?) need not be real; what a newest one held is not known, so that a useless checkpoint may be "
    "missed, and one called obsolete may be needed: delete nothing because of it"
)


def z_cycles_view(answer: Answer[ZCycles]) -> View:
    """How many, then each with its cycle, then the other kinds by operator."""
    found = answer.result
    names = ("subtask", "checkpoint", "messages", "cycle")
    rows = tuple((_name(u), u.checkpoint, _length(u), _cycle(u)) for u in found.useless)
    shown = rows[:_SENTENCES] if len(found.useless) > 2 * _SENTENCES else rows
    note = f"and {len(rows) - len(shown)} more: --json lists them, --limit N gives N of them a witness"
    sections = [
        Section("Useless checkpoints", names, shown, note if len(shown) < len(rows) else ""),
        Section("By operator", ("operator", "checkpoints", *found.counts), _operators(found)),
        Section("What the kinds mean", ("kind", "checkpoints", "meaning"), _kinds(found)),
    ]
    told = [sentence(u) for u in found.useless if u.witness is not None][:_SENTENCES]
    lost = any(finding.id in LOSSES for finding in answer.findings)
    told += [_LOST] if lost else []
    data = Section("Useless checkpoints", names, rows)
    return View(_headline(found, lost), tuple(s for s in sections if s.rows), tuple(told), data=data)


def _headline(found: ZCycles, lost: bool) -> str:
    useless, total = found.counts["useless"], found.checkpoints
    if found.asked is not None:
        asked = f"{found.asked.operator}/{found.asked.subtask}={found.asked.checkpoint}"
        if found.useless:
            return f"{asked} is useless."
        return f"{asked} is on no Z-cycle{' that is left' if lost else ': some consistent line holds it'}."
    if not useless and lost:
        return f"None of {total} checkpoints is known to be useless: records are lost."
    if not found.cyclic:
        return f"None of {total} checkpoints is useless, nor can one be: the channels form no cycle."
    if not useless:
        return f"None of {total} checkpoints is useless."
    return f"{useless} of {total} checkpoints {'is' if useless == 1 else 'are'} useless ({useless / total:.1%})."


def _operators(found: ZCycles) -> tuple[tuple[str | int, ...], ...]:
    return tuple(
        (row["operator"], row["checkpoints"], *(row[kind] for kind in found.counts)) for row in found.operators
    )


def _kinds(found: ZCycles) -> tuple[tuple[str | int, ...], ...]:
    return tuple((kind, count, found.kinds[kind]) for kind, count in found.counts.items())


def _name(useless: UselessCheckpoint) -> str:
    return f"{useless.operator}/{useless.subtask}"


def _length(useless: UselessCheckpoint) -> int | str:
    return "-" if useless.witness is None else len(useless.witness)


def _cycle(useless: UselessCheckpoint) -> str:
    if useless.witness is None:
        return "-"
    return ", ".join(f"{_number(message)} {message.channel}" for message in useless.witness)


def _number(message: ZigzagMessage) -> str:
    return "m?" if message.seq is None else f"m{message.seq}"


def sentence(useless: UselessCheckpoint) -> str:
    """Why a checkpoint is useless, message by message.

    >>> there = ZigzagMessage("a/0->b/0", 1, 0, 4, 1)
    >>> back = ZigzagMessage("b/0->a/0", 0, 0, 2, 1)
    >>> sentence(UselessCheckpoint("a", 0, 1, (there, back)))  # doctest: +NORMALIZE_WHITESPACE
    'a/0=1: a/0 sent m4 after checkpoint 1, b/0 received it before checkpoint 1; b/0 sent m2 after checkpoint 0, a/0
     received it before checkpoint 1. Whatever line holds a/0=1, one of these is an orphan message'
    """
    name = f"{_name(useless)}={useless.checkpoint}"
    told = "; ".join(message_words(message) for message in useless.witness or ())
    return f"{name}: {told}. Whatever line holds {name}, one of these is an orphan message"
