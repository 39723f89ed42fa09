"""Advice about D as sentences and rows that fit 80 columns."""

from __future__ import annotations

from typing import Any

from cklog.advise.delta.answer import DeltaAdvice, SubtaskDelta, Sum
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
    """What the method would have saved in all, its D for every subtask, and D over time where there is one subtask."""
    found = answer.result
    unit = unit_for(max((outcome.bytes or 0 for outcome in found.total.outcomes), default=0))
    rows = tuple(_subtask_row(row, unit) for row in found.subtasks)
    columns = ("subtask", "checkpoints", "D now", f"saved {unit.name}", "saved s", "best D", "restore s")
    note = "saved against what was recorded; restore: the longest with the method; best D: fixed, in hindsight"
    sections = [_short("Subtasks", columns, rows, note)]
    if found.total.outcomes:
        sections.insert(0, _schedules(found.total, unit))
    if len(found.operators) > 1:
        sections.append(_operators(found, unit))
    answered = [row for row in found.subtasks if row.outcomes]
    alone = answered[0] if len(answered) == 1 else None
    if alone is not None:
        sections.append(_over_time(alone))
    figures = () if alone is None else _figures(alone)
    return View(_headline(found, unit), tuple(sections), tuple(_notes(found, unit)), figures, _every(found))


def _every(found: DeltaAdvice) -> Section:
    """Every subtask with plain numbers, for CSV and JSON lines; bytes and ms that each schedule takes."""
    columns = (
        *("operator", "subtask", "checkpoints", "left_out", "d", "tracking", "changes", "best_d"),
        *(f"{word}_{unit}" for word in _TAKEN.values() for unit in ("bytes", "ms")),
        *("worst_restore_ms", "missing"),
    )
    return Section("Subtasks", columns, tuple(_every_row(row) for row in found.subtasks))


def _every_row(row: SubtaskDelta) -> tuple[Any, ...]:
    of = {outcome.schedule: outcome for outcome in row.outcomes}
    return (
        *(row.operator, row.subtask, row.checkpoints, row.left_out, row.number, row.tracking, row.changes),
        of[BEST].number if BEST in of else None,
        *(getattr(of.get(name), unit, None) for name in _TAKEN for unit in ("bytes", "checkpoint_ms")),
        of[METHOD].worst_restore_ms if METHOD in of else None,
        ", ".join(row.missing) or None,
    )


def _headline(found: DeltaAdvice, unit: ByteUnit) -> str:
    total = found.total
    if not total.outcomes:
        return "Nothing can be said about D: the history lacks what the findings name."
    saving = total.saved[0]
    one = _name(found.subtasks[0]) if len(found.subtasks) == 1 else ""
    of = one or f"{total.subtasks} of {len(found.subtasks)} subtasks"
    return f"{of}: adapting D would have {_gains(saving, unit)}, compared with what was done."


def _gains(saving: Saving, unit: ByteUnit) -> str:
    """Bytes and time saved, or spent in addition.

    >>> _gains(Saving("as recorded", 2_500_000, 120.0, 3.0), ByteUnit(10**6, "MB"))
    'saved 2.5 MB and 0.120 s of checkpoint time'
    >>> _gains(Saving("as recorded", -2_500_000, 120.0, 3.0), ByteUnit(10**6, "MB"))
    'taken 2.5 MB more and saved 0.120 s of checkpoint time'
    """
    pairs = ((saving.bytes, unit.spoken), (saving.checkpoint_ms, _timed))
    saved = [spoken(value) for value, spoken in pairs if value is not None and value >= 0]
    spent = [spoken(-value) for value, spoken in pairs if value is not None and value < 0]
    told = [f"taken {' and '.join(spent)} more"] if spent else []
    return " and ".join([*told, f"saved {' and '.join(saved)}"] if saved else told)


def _timed(ms: float) -> str:
    return f"{ms / 1000:,.3f} s of checkpoint time"


def _name(row: SubtaskDelta) -> str:
    return f"{row.operator}/{row.subtask}"


def _schedules(total: Sum, unit: ByteUnit) -> Section:
    """What was done, the method, a base every time, the best D: their costs in all."""
    columns = ("schedule", "D", "bases", "deltas", "est.", unit.name, "s", "track s", "restore s")
    rows = tuple(_schedule_row(outcome, unit) for outcome in total.outcomes)
    note = (
        "est.: in another form than recorded, priced by estimate; tracking changes takes 10 % of a delta; "
        "restore: the longest; best fixed D: one D all along, the cheapest that keeps the bounds"
    )
    return _short("Schedules", columns, rows, note)


def _schedule_row(outcome: DeltaOutcome, unit: ByteUnit) -> tuple[Any, ...]:
    return (
        outcome.schedule,
        "-" if outcome.number is None else outcome.number,
        outcome.bases,
        outcome.deltas,
        outcome.estimated,
        _sized(outcome.bytes, unit),
        _seconds(outcome.checkpoint_ms),
        _seconds(outcome.logging_ms),
        _seconds(outcome.worst_restore_ms),
    )


def _subtask_row(row: SubtaskDelta, unit: ByteUnit) -> tuple[Any, ...]:
    saving = row.saved[0] if row.saved else Saving("", None, None, None)
    of = {outcome.schedule: outcome for outcome in row.outcomes}
    return (
        _name(row),
        row.checkpoints,
        "-" if row.number is None else row.number,
        _sized(saving.bytes, unit),
        _seconds(saving.checkpoint_ms),
        of[BEST].number if BEST in of else "-",
        _seconds(of[METHOD].worst_restore_ms) if METHOD in of else "-",
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
                for cell in (_sized(saving.bytes, unit), _seconds(saving.checkpoint_ms))
            ),
        )
        for row in found.operators
    )
    return _short("Operators", columns, rows, "vs base: saved against a base checkpoint every time")


def _over_time(row: SubtaskDelta) -> Section:
    """The newest changes of D."""
    rows = tuple((c.checkpoint, utc(c.time), c.number, c.reason) for c in row.over_time[-_SHOWN:])
    rest = row.changes + 1 - len(rows)
    note = f"the newest; {rest} before them" if rest else ""
    return Section(f"D of {_name(row)} over time", ("from checkpoint", "time", "D", "because"), rows, note)


def _figures(row: SubtaskDelta) -> tuple[str, ...]:
    """D against the seconds since the first change that is listed; none without a curve to see."""
    timed = [(change.time, change.number) for change in row.over_time if change.time is not None]
    if len(timed) < 2 or len(timed) < len(row.over_time) or timed[0][0] >= timed[-1][0]:
        return ()
    pairs = [(timed[max(i - 1, 0)], now) for i, now in enumerate(timed)]
    seconds = [(now[0] - timed[0][0]) / 1000 for _, now in pairs for _ in range(2)]
    values = [number for pair in pairs for _, number in pair]
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


def _short(title: str, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], note: str) -> Section:
    """A section of the first rows, without the columns in which every cell is empty."""
    keep = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    rest = len(rows) - _SHOWN
    more = f"and {rest} more in the JSON" if rest > 0 else ""
    shown = tuple(tuple(row[i] for i in keep) for row in rows[:_SHOWN])
    return Section(title, tuple(columns[i] for i in keep), shown, "; ".join(text for text in (note, more) if text))


def _sized(size: int | None, unit: ByteUnit) -> str:
    return "-" if size is None else unit.number(size)


def _seconds(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:,.3f}"
