"""The answer of `chain` as sentences and rows that fit 80 columns."""

from __future__ import annotations

from typing import Any

from cklog.chains.findings import chain_name, restorable_up_to, why
from cklog.chains.model import ChainAnswer, ChainRestore, ChainRow, ReadStep
from cklog.inputs.pieces import subject_of
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, cut_section

_SHOWN = 40
"""Rows of a section that are shown; all of them are in the JSON."""

_WORST_FIRST = ("orphaned deltas", "broken chain", "unchecked chain", "intact chain")


def chain_view(answer: Answer[ChainAnswer]) -> View:
    """Show how many chains are whole, what restoring each of them reads (worst first), and the pieces in order."""
    found = answer.result
    rows = sorted(found.chains, key=lambda row: _WORST_FIRST.index(row.status))
    columns = ("chain", "status", "stored", "newest", "restorable", "pieces", "back to", "bytes", "about s")
    sections = [
        cut_section(
            "Chains",
            columns,
            [_chain_cells(row) for row in rows],
            "pieces: files or records to read, the oldest of checkpoint `back to`",
        ),
        cut_section(
            "Restored together",
            ("of", "chains", "checkpoint", "pieces", "bytes", "about s"),
            [_together_cells(restore) for restore in found.together],
        ),
        cut_section(
            "To read, in order",
            ("chain", "for", "piece", "form", "bytes", "about s", "path"),
            [_step_cells(step) for step in found.read],
        ),
    ]
    shown = tuple(s for s in sections if s.rows)
    return View(_headline(found), shown, tuple(_notes(found)), data=_data_section(found))


def _headline(found: ChainAnswer) -> str:
    totals = found.totals
    whole = totals["intact"] == totals["chains"]
    count = f"{totals['chains']} {'chain is' if totals['chains'] == 1 else 'chains are'}"
    lead = f"{count} intact" if whole else f"{totals['intact']} of {count} intact"
    bad = [f"{totals[kind]} {words}" for kind, words in _BAD if totals[kind]]
    return f"{', '.join([lead, *bad])}; {_goal_reached(found)}."


_BAD = (("broken", "broken"), ("orphaned", "of orphaned deltas only"), ("unchecked", "unchecked"))
"""Names of totals, and what the headline says of such chains."""


def _goal_reached(found: ChainAnswer) -> str:
    """Say what can be restored: a run has one checkpoint for all; subtasks, and jobs, have one each."""
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
    cells = (chain_name(row), row.status, row.checkpoints, row.newest, _or_dash(row.restorable))
    return (*cells, _or_dash(row.pieces), _or_dash(row.back_to), _or_dash(row.bytes), _seconds_of_ms(row.time_ms))


def _together_cells(restore: ChainRestore) -> tuple[Any, ...]:
    owner = "run" if restore.operator is None else f"{restore.operator}/{restore.subtask}"
    cells = (owner, restore.chains, _or_dash(restore.checkpoint), restore.pieces)
    return (*cells, _or_dash(restore.bytes), _seconds_of_ms(restore.time_ms))


def _step_cells(step: ReadStep) -> tuple[Any, ...]:
    chain = subject_of((step.operator, step.subtask, step.store))
    cells = (chain, step.restore, step.checkpoint, step.form, _or_dash(step.bytes), _seconds_of_ms(step.time_ms))
    return (*cells, _path_and_offset(step.path, step.offset))


def _path_and_offset(path: str | None, offset: int | None) -> str:
    if not path:
        return "-"
    return path if offset is None else f"{path}:{offset}"


def _or_dash(value: Any) -> Any:
    return "-" if value in (None, "") else value


def _seconds_of_ms(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:.3f}"


def _data_section(found: ChainAnswer) -> Section:
    """List every chain, for CSV and JSON lines."""
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
    rows = []
    for row in found.chains:
        because = "-" if row.because is None else why(row.because)
        rows.append((*(_or_dash(getattr(row, name)) for name in columns), because))
    return Section("Chains", (*columns, "because"), tuple(rows))
