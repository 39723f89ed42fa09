"""Chains of base and delta checkpoints as sentences and rows that fit 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cklog.chains.findings import chain_name, restorable_up_to, why
from cklog.chains.model import ChainAnswer, ChainRestore, ChainRow, ReadStep
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, section

_SHOWN = 40
"""Rows of a section that are shown; all of them are in the JSON."""

_WORST_FIRST = ("orphaned deltas", "broken chain", "unchecked chain", "intact chain")


def chain_view(answer: Answer[ChainAnswer]) -> View:
    """How many chains are whole, each chain with what restoring it reads, the worst first, and the pieces in order."""
    found = answer.result
    rows = sorted(found.chains, key=lambda row: _WORST_FIRST.index(row.status))
    columns = ("chain", "status", "stored", "newest", "restorable", "pieces", "back to", "bytes", "about s")
    sections = [
        _short(
            "Chains",
            columns,
            [_chain_cells(row) for row in rows],
            "pieces: files or records to read, the oldest of checkpoint `back to`",
        ),
        _short("Restored together", ("of", "chains", "checkpoint", "pieces", "bytes", "about s"), _together(found)),
        _short("To read, in order", ("chain", "for", "piece", "form", "bytes", "about s", "path"), _steps(found.read)),
    ]
    shown = tuple(s for s in sections if s.rows)
    return View(_headline(found), shown, tuple(_notes(found)), data=_data(found))


def _headline(found: ChainAnswer) -> str:
    totals = found.totals
    whole = totals["intact"] == totals["chains"]
    count = f"{totals['chains']} {'chain is' if totals['chains'] == 1 else 'chains are'}"
    lead = f"{count} intact" if whole else f"{totals['intact']} of {count} intact"
    bad = [f"{totals[kind]} {told}" for kind, told in _BAD if totals[kind]]
    return f"{', '.join([lead, *bad])}; {_goal(found)}."


_BAD = (("broken", "broken"), ("orphaned", "of orphaned deltas only"), ("unchecked", "unchecked"))


def _goal(found: ChainAnswer) -> str:
    """What can be restored: a run has one checkpoint for all; subtasks, and jobs, have one each."""
    reached = [restore for restore in found.together if restore.checkpoint is not None]
    if found.asked is not None:
        able = "can" if len(reached) == len(found.together) else "cannot"
        return f"checkpoint {found.asked} {able} be restored"
    if not reached:
        return (
            "nothing can be restored for all that is known" if found.totals["unchecked"] else "nothing can be restored"
        )
    if found.restored_together == "run":
        return f"checkpoint {reached[0].checkpoint} can be restored by all"
    return f"{len(reached)} of {len(found.together)} {found.restored_together}s can be restored"


def _notes(found: ChainAnswer) -> list[str]:
    notes = [*found.notes]
    notes += [
        f"{restorable_up_to(row)}." for row in found.chains if row.status != "intact chain" and row.because is not None
    ][:_SHOWN]
    if any(row.time_from == "history" for row in found.chains):
        notes.append("Times: 1.2 times what taking the pieces took, the patent's estimate; subtasks side by side.")
    if any(row.time_from == "read-rate" for row in found.chains):
        notes.append("Times: by --read-rate, where no durations are recorded.")
    if any(row.time_from is None and row.checkpoint is not None for row in found.chains):
        notes.append("Without durations no time is told: --read-rate gives one by the sizes.")
    if found.read_left_out:
        notes.append(f"{found.read_left_out} more pieces are to be read: --operator tells which.")
    return notes


def _chain_cells(row: ChainRow) -> tuple[Any, ...]:
    cells = (chain_name(row), row.status, row.checkpoints, row.newest, _cell(row.restorable))
    return (*cells, _cell(row.pieces), _cell(row.back_to), _cell(row.bytes), _seconds(row.time_ms))


def _together(found: ChainAnswer) -> list[tuple[Any, ...]]:
    return [
        (_owner(r), r.chains, _cell(r.checkpoint), r.pieces, _cell(r.bytes), _seconds(r.time_ms))
        for r in found.together
    ]


def _owner(restore: ChainRestore) -> str:
    return "run" if restore.operator is None else f"{restore.operator}/{restore.subtask}"


def _steps(steps: Sequence[ReadStep]) -> list[tuple[Any, ...]]:
    return [
        (
            f"{s.operator}/{s.subtask}" + (f" {s.store}" if s.store else ""),
            s.restore,
            s.checkpoint,
            s.form,
            _cell(s.bytes),
            _seconds(s.time_ms),
            _place(s.path, s.offset),
        )
        for s in steps
    ]


def _place(path: str | None, offset: int | None) -> str:
    return "-" if not path else path if offset is None else f"{path}:{offset}"


def _cell(value: Any) -> Any:
    return "-" if value in (None, "") else value


def _seconds(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:.3f}"


def _short(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], note: str = "") -> Section:
    more = f"and {len(rows) - _SHOWN} more rows: --json has them all" if len(rows) > _SHOWN else ""
    return section(title, columns, rows[:_SHOWN], "; ".join(part for part in (note, more) if part))


def _data(found: ChainAnswer) -> Section:
    """Every chain, for CSV and JSON lines."""
    columns = (
        "operator",
        "subtask",
        "store",
        "status",
        "checkpoints",
        "unrestorable",
        "oldest",
        "newest",
        "restorable",
        "checkpoint",
        "pieces",
        "deltas",
        "back_to",
        "bytes",
        "time_ms",
        "time_from",
    )
    rows = [(*(_cell(getattr(row, name)) for name in columns), _because(row)) for row in found.chains]
    return Section("Chains", (*columns, "because"), tuple(rows))


def _because(row: ChainRow) -> str:
    return "-" if row.because is None else why(row.because)
