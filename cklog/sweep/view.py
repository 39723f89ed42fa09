"""A scan as sentences and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from cklog.model.actions import ACTIONS, MEANINGS, Action
from cklog.model.verdict import Answer
from cklog.model.wording import agreeing, many, unit_for, utc
from cklog.render.tables import typed
from cklog.render.view import MOST_ROWS, Section, View, cut_section
from cklog.sweep.model import ScanAnswer, ScannedRun

_COLUMNS = ("path", "format", "run", "action", "newest restorable", "its time", "age", "size", "findings")

_LONGEST = 32
"""Characters of a line that a row shows: all of it is in the other formats."""


def scan_view(answer: Answer[ScanAnswer]) -> View:
    """Show what to do about each run, and first how many need more than a restart."""
    found = answer.result
    runs = _in_order(found)
    rows = [_row(run) for run in runs]
    lead = tuple(_unchecked(found))
    return View(
        headline=_headline(found),
        sections=(cut_section("Runs", _COLUMNS, rows, elsewhere=_elsewhere(runs)),) if rows else (),
        notes=tuple(_notes(found)),
        data=_data(found),
        lead=lead,
        steps=(*lead, *_asking(found)),
        sentences=frozenset(lead),
    )


def _headline(found: ScanAnswer) -> str:
    shown = len(found.runs)
    if not shown:
        return f"None of {many(found.found, 'run', grouped=True)} tells of anything since {utc(found.since)}."
    counts: list[tuple[Action, int]] = [(name, n) for name, n in found.actions.items() if n]
    if found.action == "restart":
        return f"{many(shown, 'run', 'are', grouped=True)} ready to restart from the newest that was stored."
    asking = sum(n for name, n in counts if name != "restart")
    told = ", ".join(f"{n:,} {name}" for name, n in reversed(counts) if name != "restart")
    return f"{asking:,} of {many(shown, 'run', 'need', grouped=True)} more than a restart: {told}."


def _unchecked(found: ScanAnswer) -> Iterator[str]:
    """Say how much the actions take for granted, if anything."""
    granted = [run.unchecked for run in found.runs if run.unchecked]
    if granted:
        runs = f"{len(granted):,} of {many(len(found.runs), 'run', grouped=True)}"
        things = many(sum(granted), "thing", grouped=True)
        yield f"Not checked: {things} on which {runs} depend. cklog recovery-line PATH names them."


def _asking(found: ScanAnswer) -> Iterator[str]:
    """Each run that needs more than a restart in a line, the gravest first."""
    for run in _by_urgency(found.runs):
        if run.action != "restart":
            yield " ".join(filter(None, (f"{run.action}:", run.path, run.run)))


def _by_urgency(runs: Iterable[ScannedRun]) -> list[ScannedRun]:
    return sorted(runs, key=lambda run: -ACTIONS.index(run.action))


def _in_order(found: ScanAnswer) -> Sequence[ScannedRun]:
    """Return the rows as they were sorted; by urgency where some that ask for more than a restart would be cut off."""
    hidden = any(run.action != "restart" for run in found.runs[MOST_ROWS:])
    return _by_urgency(found.runs) if hidden else found.runs


def _elsewhere(runs: Sequence[ScannedRun]) -> str:
    """Say of rows that are left out how many need somebody."""
    asking = sum(run.action != "restart" for run in runs[MOST_ROWS:])
    told = f"; {asking:,} of them {agreeing(asking, 'need')} more than a restart" if asking else ""
    return f"{told}: --json has them all"


def _notes(found: ScanAnswer) -> list[str]:
    notes = []
    if found.since is not None:
        left_out = found.found - len(found.runs)
        notes.append(
            f"{many(left_out, 'run', 'are', grouped=True)} left out: nothing in their logs since {utc(found.since)}"
        )
        if found.untimed:
            notes.append(f"{many(found.untimed, 'run', 'tell', grouped=True)} no time, and so none is left out as old")
    for name, n in reversed([*found.actions.items()]):
        if n and name != "restart":
            notes.append(f"{name}: {MEANINGS[name]}")
    unanswered = [run for run in found.runs if run.error_id]
    for run in unanswered[:3]:
        notes.append(f"{run.path}: [{run.error_id}] {run.message}")
    if len(unanswered) > 3:
        rest = len(unanswered) - 3
        notes.append(f"{rest:,} more {agreeing(rest, 'have')} no answer: --format csv tells why")
    return notes


def _row(run: ScannedRun) -> tuple[Any, ...]:
    return (
        run.path,
        run.format or "-",
        run.run or "-",
        run.action,
        _cut(run.chosen or "-"),
        utc(run.chosen_time),
        "-" if run.age_ms is None else _age(run.age_ms),
        unit_for(run.bytes).spoken(run.bytes) if run.bytes >= 10_000 else f"{run.bytes:,} B",
        _findings(run),
    )


def _cut(text: str) -> str:
    """A line's checkpoints, as far as a column has room for them."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _age(milliseconds: int) -> str:
    """A length of time in its two largest units.

    >>> _age(57_819), _age(7_200_000), _age(266_400_000), _age(-5)
    ('57.8 s', '2 h 0 min', '3 d 2 h', '0.0 s')
    """
    seconds = max(milliseconds, 0) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def _findings(run: ScannedRun) -> str:
    """How many weigh most, and their ids."""
    if run.errors:
        return f"{many(run.errors, 'error')}: {', '.join(run.worst)}"
    return f"{many(run.warnings, 'warning')}: {', '.join(run.worst)}" if run.warnings else "-"


def _data(found: ScanAnswer) -> Section:
    """Every row with every member, times as ISO 8601."""
    columns = tuple(field.name for field in fields(ScannedRun))
    return Section(
        "Runs", columns, tuple(tuple(_cell(name, getattr(run, name)) for name in columns) for run in found.runs)
    )


def _cell(name: str, value: Any) -> Any:
    return " ".join(value) if isinstance(value, tuple) else typed(name, value)
