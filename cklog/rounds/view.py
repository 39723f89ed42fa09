"""The view of `rounds`: where to restart, where the newest round hangs, what is replayed, what each node does."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.model.wording import first_few, many, utc
from cklog.render.view import Section, View, cut_section, section
from cklog.rounds.answer import RoundsAnswer
from cklog.rounds.hangs import Hang, HangReason
from cklog.rounds.sweep import DomainFailure, SweepAnswer
from cklog.rounds.token_rounds import Individual, TokenRound

_SHOWN = 20
"""Rows of a section that are shown; all of them are in the JSON."""

_WHY: dict[HangReason, str] = {
    "token-not-sent": "its token has not been sent",
    "token-under-way": "its token was sent and has not been taken",
    "checkpoint-not-begun": "it waits for no token and has begun no checkpoint",
    "checkpoint-not-stored": "its checkpoint was begun and is not stored",
    "no-checkpoint": "all before it have stored theirs; it has not",
}
_VARIANT = {
    "MS-src": " Tokens follow each checkpoint (MS-src).",
    "MS-src+ap": " Tokens go out at once (MS-src+ap).",
}


def rounds_view(answer: Answer[RoundsAnswer]) -> View:
    """Show the rounds, which are the rows of CSV, then hangs, checkpoints, tuples, sources, the restart, and nodes."""
    found = answer.result
    sections = [
        _rounds(found.rounds),
        _hangs(found.hangs),
        _individual(found),
        _saved(found),
        _preserved(found),
        _sources(found),
        _restart(found),
        _nodes(found),
    ]
    return View(_headline(answer), tuple(s for s in sections if s.rows), (*_cause_sentences(found), *found.notes))


def _headline(answer: Answer[RoundsAnswer]) -> str:
    found = answer.result
    newest = found.rounds[-1]
    lead = "Indeterminate. " if answer.verdict == "indeterminate" else ""
    if found.round is None:
        lead += "No round is complete and can be read: everything goes back to its initial state."
    else:
        size = "" if found.bytes is None else f", {found.bytes:,} bytes to read"
        when = "" if found.completed is None else f", complete at {utc(found.completed)}"
        each = many(len(found.line), "individual checkpoint")
        lead += f"Restart everything from round {found.round}{when}: {each}{size}."
    if newest.state == "incomplete":
        missing = f", {_count_of(newest.tokens_missing, 'token')} missing" if newest.tokens_missing else ""
        lead += f" Round {newest.round} has {newest.checkpoints} of {newest.subtasks}{missing}."
    return lead + (_VARIANT[found.variant] if found.variant else "")


def _count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rounds(rounds: tuple[TokenRound, ...]) -> Section:
    rows = [
        (
            r.round,
            r.state,
            f"{r.checkpoints}/{r.subtasks}",
            _cell(r.tokens_missing),
            utc(r.first_time),
            _seconds_cell(r.span_ms),
            r.slowest or "-",
            _seconds_cell(r.late_ms),
            r.slowest_channel or "-",
            _seconds_cell(r.alignment_ms),
            r.aligned or "-",
        )
        for r in rounds[-_SHOWN:]
    ]
    columns = (
        *("round", "state", "stored", "tokens missing", "begun", "took s", "slowest", "behind s", "slowest channel"),
        *("aligned s", "by"),
    )
    earlier = len(rounds) - len(rows)
    note = f"and {earlier:,} earlier rounds: --json has them all; " if earlier > 0 else ""
    meaning = "behind: after the last but one; aligned: the longest wait from a first token to the last"
    return section("Rounds", columns, rows, note + meaning)


def _hangs(hangs: tuple[Hang, ...]) -> Section:
    rows = [
        (
            h.round,
            f"{h.operator}/{h.subtask}",
            "cause" if not h.depth else f"{h.depth} behind",
            h.channel or "-",
            _WHY[h.why],
        )
        for h in hangs
    ]
    return cut_section("Where it hangs", ("round", "subtask", "", "channel", "because"), rows)


def _cause_sentences(found: RoundsAnswer) -> list[str]:
    """Say the first causes in sentences."""
    causes = [h for h in found.hangs if not h.depth]
    sentences = []
    for h in causes[:3]:
        where = f"{h.operator}/{h.subtask}" + (f" waits for {h.channel}" if h.channel else "")
        sentences.append(f"round {h.round}: {where}: {_WHY[h.why]}")
    if len(causes) > len(sentences):
        sentences.append(f"and {len(causes) - len(sentences):,} more causes")
    return sentences


def _individual(found: RoundsAnswer) -> Section:
    rows = [_checkpoint_row(row) for row in found.individual]
    columns = ("round", "subtask", "state", "checkpoint", "time", "bytes", "tokens", "aligned s", "last token by")
    return cut_section("Individual checkpoints", columns, rows)


def _checkpoint_row(row: Individual) -> tuple[Any, ...]:
    return (
        row.round,
        f"{row.operator}/{row.subtask}",
        row.state,
        _cell(row.checkpoint),
        utc(row.time),
        _cell(row.bytes),
        "-" if row.tokens is None or not row.channels else f"{row.tokens}/{row.channels}",
        _seconds_cell(row.alignment_ms),
        row.slowest_channel or "-",
    )


def _saved(found: RoundsAnswer) -> Section:
    rows = [
        (f"{t.operator}/{t.subtask}", t.channel, t.from_, t.to, t.stored, t.logged, _cell(t.bytes), _yes_or_no(t.there))
        for t in found.saved
    ]
    columns = ("checkpoint of", "channel", "from", "to", "stored", "in a log", "bytes", "there")
    return cut_section("Tuples that belong to individual checkpoints", columns, rows)


def _preserved(found: RoundsAnswer) -> Section:
    rows = [
        (f"{t.operator}/{t.subtask}", t.channel, t.from_, t.to, _cell(t.preserved), _cell(t.bytes), _yes_or_no(t.there))
        for t in found.preserved
        if t.to > t.from_
    ]
    columns = ("source", "channel", "from", "to", "preserved", "bytes", "there")
    return cut_section("Sources send again", columns, rows)


def _sources(found: RoundsAnswer) -> Section:
    rows = [
        (s.source, "its start" if s.offset is None else s.offset, f"{s.operator}/{s.subtask}") for s in found.sources
    ]
    return cut_section("Sources resume at", ("source", "offset", "reader"), rows)


def _restart(found: RoundsAnswer) -> Section:
    if not found.nodes:
        return section("Restart", (), [])
    rows = [
        (
            f"{r.operator}/{r.subtask}",
            r.node or "?",
            r.fate,
            r.on or "?",
            _cell(r.checkpoint),
            r.read_from,
            _cell(r.bytes),
        )
        for r in found.restart
    ]
    columns = ("subtask", "ran on", "", "resumes on", "checkpoint", "read from", "bytes")
    return cut_section("Restart", columns, rows)


def _nodes(found: RoundsAnswer) -> Section:
    rows = [
        (
            n.node or "?",
            "failed" if n.failed else "-",
            n.restarts,
            n.rolls_back,
            n.local_bytes,
            n.shared_bytes,
            n.unknown,
        )
        for n in found.nodes
    ]
    columns = ("node", "state", "restarts", "roll back", "bytes from its disk", "bytes from shared storage", "unknown")
    return cut_section("Nodes", columns, rows)


def _cell(value: int | None) -> int | str:
    return "-" if value is None else value


def _seconds_cell(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.3f}"


def _yes_or_no(there: bool | None) -> str:
    return {True: "yes", False: "NO", None: "unknown"}[there]


def sweep_view(answer: Answer[SweepAnswer]) -> View:
    """Show what is left after every failure, the worst first, and how often they come."""
    found = answer.result
    columns = (found.by, "restart from", "lost", "back s", "moved", "disk MB", "shared MB", "again", "a year")
    shown = [_failure_row(found, row) for row in found.domains]
    notes = [_lost_with(row) for row in found.domains if row.unreachable][:_SHOWN]
    if found.per_year is not None:
        notes.append(
            f"Meteor Shower's Table I and section II-B1 imply {found.per_year:,.2g} such failures a year; the failures "
            "of a rack are among those of its nodes, so the rates of --sweep node and --sweep rack do not add up"
        )
    note = (
        "lost: complete rounds that went with it; moved: subtasks that restart elsewhere; "
        "again: tuples that sources send again"
    )
    names = tuple(name for name in DomainFailure.__slots__ if name not in ("nodes", "unreachable"))
    data = Section("Failures", names, tuple(tuple(getattr(row, name) for name in names) for row in found.domains))
    return View(_swept(found), (cut_section("Failures", columns, shown, note),), tuple(notes), data=data)


def _swept(found: SweepAnswer) -> str:
    if found.newest is None:
        return "No round is complete: everything goes back to its initial state, whatever fails."
    worst = found.domains[0]
    count = f"Any one of {many(len(found.domains), found.by)} may fail"
    if worst.round == found.newest:
        return f"{count}: the job restarts from round {found.newest}, the newest complete one."
    back = "its initial state" if worst.round is None else f"round {worst.round}"
    return f"{count}, and the worst is {worst.domain}: the job goes back to {back}, not to round {found.newest}."


def _failure_row(found: SweepAnswer, row: DomainFailure) -> tuple[Any, ...]:
    unknown = f"+{row.unknown}?" if row.unknown else ""
    return (
        row.domain,
        "initial state" if row.round is None else f"round {row.round}",
        row.rounds_lost,
        "-" if row.lost_ms is None else f"{row.lost_ms / 1000:,.3f}",
        f"{row.restarts}/{found.subtasks}",
        f"{row.local_bytes / 1e6:,.3f}",
        f"{row.shared_bytes / 1e6:,.3f}{unknown}",
        _cell(row.replayed),
        "-" if row.per_year is None else f"{row.per_year:.2g}",
    )


def _lost_with(row: DomainFailure) -> str:
    names = first_few(row.unreachable, 5)
    return f"{row.domain}: the only copies of {names} in the newest complete round lie there"
