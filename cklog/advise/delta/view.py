"""The view of `advise delta`: sentences, and rows that fit 80 columns."""

from __future__ import annotations

import itertools
from typing import Any

from cklog.advise.delta.answer import DeltaAdvice, DeltaTotal, SubtaskDelta
from cklog.advise.delta.costs import ALWAYS_BASE, BEST, METHOD, RECORDED, DeltaOutcome, Saving
from cklog.model.verdict import Answer
from cklog.model.wording import ByteUnit, unit_for, utc
from cklog.render.curve import figure
from cklog.render.view import Section, View

_SHOWN = 40
"""Rows of a section that are shown; all of them are in the JSON."""

_TAKEN = {RECORDED: "recorded", METHOD: "method", ALWAYS_BASE: "base", BEST: "best"}
"""Schedules as parts of column names."""


def advise_delta_view(answer: Answer[DeltaAdvice]) -> View:
    """Show what the method would have saved in all, its D for every subtask, and D over time of an only one."""
    found = answer.result
    unit = unit_for(max((outcome.bytes or 0 for outcome in found.total.outcomes), default=0))
    rows = tuple(_subtask_row(row, unit) for row in found.subtasks)
    columns = ("subtask", "checkpoints", "D now", f"saved {unit.name}", "saved s", "best D", "restore s")
    note = "saved against what was recorded; restore: the longest with the method; best D: fixed, in hindsight"
    sections = [_short_section("Subtasks", columns, rows, note)]
    if found.total.outcomes:
        sections.insert(0, _schedules(found.total, unit))
    if len(found.operators) > 1:
        sections.append(_operators(found, unit))
    answered = [row for row in found.subtasks if row.outcomes]
    alone = answered[0] if len(answered) == 1 else None
    if alone is not None:
        sections.append(_over_time(alone))
    figures = () if alone is None else _figures(alone)
    return View(
        headline=_headline(found, unit),
        sections=tuple(sections),
        notes=tuple(_notes(found, unit)),
        figures=figures,
        data=_every_subtask(found),
    )


def _every_subtask(found: DeltaAdvice) -> Section:
    """Return every subtask with plain numbers, for CSV and JSON lines: bytes and ms that each schedule takes."""
    columns = (
        *("operator", "subtask", "checkpoints", "left_out", "d", "tracking", "changes", "best_d"),
        *(f"{word}_{unit}" for word in _TAKEN.values() for unit in ("bytes", "ms")),
        *("worst_restore_ms", "missing"),
    )
    return Section("Subtasks", columns, tuple(_every_row(row) for row in found.subtasks))


def _every_row(row: SubtaskDelta) -> tuple[Any, ...]:
    best, method = row.outcome_of(BEST), row.outcome_of(METHOD)
    costs = [row.outcome_of(schedule) for schedule in _TAKEN]
    return (
        *(row.operator, row.subtask, row.checkpoints, row.left_out, row.number, row.tracking, row.changes),
        best.number if best else None,
        *itertools.chain.from_iterable((cost.bytes, cost.checkpoint_ms) if cost else (None, None) for cost in costs),
        method.worst_restore_ms if method else None,
        ", ".join(row.missing) or None,
    )


def _headline(found: DeltaAdvice, unit: ByteUnit) -> str:
    total = found.total
    if not total.outcomes:
        return "Nothing can be said about D: the history lacks what the findings name."
    saving = total.saved[0]
    one = _subtask_name(found.subtasks[0]) if len(found.subtasks) == 1 else ""
    of = one or f"{total.subtasks} of {len(found.subtasks)} subtasks"
    return f"{of}: adapting D would have {_gains(saving, unit)}, compared with what was done."


def _gains(saving: Saving, unit: ByteUnit) -> str:
    """Say what bytes and time were saved, or spent in addition.

    >>> _gains(Saving("as recorded", 2_500_000, 120.0, 3.0), ByteUnit(10**6, "MB"))
    'saved 2.5 MB and 0.120 s of checkpoint time'
    >>> _gains(Saving("as recorded", -2_500_000, 120.0, 3.0), ByteUnit(10**6, "MB"))
    'taken 2.5 MB more and saved 0.120 s of checkpoint time'
    """
    pairs = ((saving.bytes, unit.spoken), (saving.checkpoint_ms, _spoken_seconds))
    saved = [spoken(value) for value, spoken in pairs if value is not None and value >= 0]
    spent = [spoken(-value) for value, spoken in pairs if value is not None and value < 0]
    parts = [f"taken {' and '.join(spent)} more"] if spent else []
    if saved:
        parts.append(f"saved {' and '.join(saved)}")
    return " and ".join(parts)


def _spoken_seconds(ms: float) -> str:
    return f"{ms / 1000:,.3f} s of checkpoint time"


def _subtask_name(row: SubtaskDelta) -> str:
    return f"{row.operator}/{row.subtask}"


def _schedules(total: DeltaTotal, unit: ByteUnit) -> Section:
    """Show the costs in all of what was done, of the method, of a base every time, and of the best D."""
    columns = ("schedule", "D", "bases", "deltas", "est.", unit.name, "s", "track s", "restore s")
    rows = tuple(_schedule_row(outcome, unit) for outcome in total.outcomes)
    note = (
        "est.: in another form than recorded, priced by estimate; tracking changes takes 10 % of a delta; "
        "restore: the longest; best fixed D: one D all along, the cheapest that keeps the bounds"
    )
    return _short_section("Schedules", columns, rows, note)


def _schedule_row(outcome: DeltaOutcome, unit: ByteUnit) -> tuple[Any, ...]:
    return (
        outcome.schedule,
        "-" if outcome.number is None else outcome.number,
        outcome.bases,
        outcome.deltas,
        outcome.estimated,
        _size_cell(outcome.bytes, unit),
        _seconds_cell(outcome.checkpoint_ms),
        _seconds_cell(outcome.logging_ms),
        _seconds_cell(outcome.worst_restore_ms),
    )


def _subtask_row(row: SubtaskDelta, unit: ByteUnit) -> tuple[Any, ...]:
    saving = row.saved[0] if row.saved else Saving("", None, None, None)
    best, method = row.outcome_of(BEST), row.outcome_of(METHOD)
    return (
        _subtask_name(row),
        row.checkpoints,
        "-" if row.number is None else row.number,
        _size_cell(saving.bytes, unit),
        _seconds_cell(saving.checkpoint_ms),
        best.number if best else "-",
        _seconds_cell(method.worst_restore_ms) if method else "-",
    )


def _operators(found: DeltaAdvice, unit: ByteUnit) -> Section:
    columns = (
        "operator",
        "subtasks",
        "checkpoints",
        f"saved {unit.name}",
        "saved s",
        f"vs base {unit.name}",
        "vs base s",
    )
    rows = tuple(
        (
            row.name,
            row.subtasks,
            row.checkpoints,
            *(
                cell
                for saving in row.saved[:2]
                for cell in (_size_cell(saving.bytes, unit), _seconds_cell(saving.checkpoint_ms))
            ),
        )
        for row in found.operators
    )
    return _short_section("Operators", columns, rows, "vs base: saved against a base checkpoint every time")


def _over_time(row: SubtaskDelta) -> Section:
    """Show the newest changes of D."""
    rows = tuple((c.checkpoint, utc(c.time), c.number, c.reason) for c in row.over_time[-_SHOWN:])
    rest = row.changes + 1 - len(rows)
    note = f"the newest; {rest} before them" if rest else ""
    return Section(f"D of {_subtask_name(row)} over time", ("from checkpoint", "time", "D", "because"), rows, note)


def _figures(row: SubtaskDelta) -> tuple[str, ...]:
    """Draw D, in steps, against the seconds since the first change that is listed; nothing without a curve to see."""
    timed = [(change.time, change.number) for change in row.over_time if change.time is not None]
    if len(timed) < 2 or len(timed) < len(row.over_time) or timed[0][0] >= timed[-1][0]:
        return ()
    start, before = timed[0]
    seconds: list[float] = []
    values: list[int] = []
    for time, number in timed:  # up to each change D is what it was before
        seconds += [(time - start) / 1000] * 2
        values += [before, number]
        before = number
    return (figure("D over time", seconds, values, None),) if max(values) else ()


def _notes(found: DeltaAdvice, unit: ByteUnit) -> list[str]:
    bounds = [f"deltas at most {found.ratio:g} times their base"]
    if found.max_delta is not None:
        bounds.append(f"at most {found.max_delta} of them")
    if found.max_restore_ms is not None:
        bounds.append(f"restored within {found.max_restore_ms / 1000:g} s")
    notes = [f"a delta pays if its {found.by}, and 10 % for tracking, is less than the base's; {', '.join(bounds)}"]
    if found.total.outcomes:
        notes += [f"against {saving.against}: {_gains(saving, unit)}" for saving in found.total.saved[1:]]
    return notes


def _short_section(title: str, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], note: str) -> Section:
    """Return a section of the first rows, without the columns in which every cell is empty."""
    keep = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    rest = len(rows) - _SHOWN
    more = f"and {rest} more in the JSON" if rest > 0 else ""
    shown = tuple(tuple(row[i] for i in keep) for row in rows[:_SHOWN])
    return Section(title, tuple(columns[i] for i in keep), shown, "; ".join(text for text in (note, more) if text))


def _size_cell(size: int | None, unit: ByteUnit) -> str:
    return "-" if size is None else unit.number(size)


def _seconds_cell(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:,.3f}"
