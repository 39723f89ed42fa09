"""The answer of `z-cycles`: every useless checkpoint with a shortest witness, and what else is good for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cklog.history.arrays import History
from cklog.lines.checkpoint_sets import CheckpointSets, checkpoint_sets, owners
from cklog.lines.entries import zigzag_message
from cklog.lines.search import row_named
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.zigzag import UselessCheckpoint, ZCycles, ZigzagMessage
from cklog.runs.records.evidence import Planned
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader
from cklog.zigzag.intervals import channels_on_cycles, useless
from cklog.zigzag.paths import Zigzags

KINDS = {
    "useless": "on a Z-cycle: in no consistent line, now or ever",
    "rolled_past": "newer than the line of this failure; later messages or checkpoints may save it",
    "unusable": "in no consistent set of stored checkpoints: useless, or rolled past if every subtask fails",
    "obsolete": "in the line of no failure that can still come: storage that nothing will ask for",
}
"""The kinds of checkpoints that are counted apart, and what each means."""


@dataclass(frozen=True, slots=True)
class ZCycleQuestion:
    """What `z-cycles` is asked: witnesses for the first `limit` useless checkpoints, or for `only` one."""

    limit: int = 100
    only: tuple[str, int] | None = None


def z_cycles_answer(reader: RecordReader, question: Question, asked: ZCycleQuestion) -> Draft[ZCycles]:
    """Find the useless checkpoints of a run, and why each is.

    Raises
    ------
    NotFound : there is no such checkpoint as asked for
    """
    planned = plan_line(reader, question)
    return planned.draft("z-cycles", z_cycles(planned, asked))


def z_cycles(planned: Planned, asked: ZCycleQuestion) -> ZCycles:
    """The result, from a planned line; without a line (initial states disagree) only useless ones are told."""
    history = planned.evidence.history
    stored = (history.label > 0) & (history.label >= 0)
    consistent = planned.result.consistent
    sets = checkpoint_sets(history, planned.line) if consistent else None
    mask = sets.useless if sets else useless(history)
    rows = np.flatnonzero(mask & stored)
    wanted = (
        rows[: asked.limit or None] if asked.only is None else np.array([row_named(history, "--witness", *asked.only)])
    )
    search = Zigzags(history) if len(wanted) else None
    witnesses = {row: _witness(history, search, row) for row in wanted.tolist()} if search else {}
    named = [(_id(history, row), row) for row in (rows if asked.only is None else wanted[mask[wanted]]).tolist()]
    found = [UselessCheckpoint(c.operator, c.subtask, c.checkpoint, witnesses.get(row)) for c, row in named]
    return ZCycles(
        checkpoints=int(np.count_nonzero(stored)),
        cyclic=bool(len(channels_on_cycles(history))),
        counts=_counts(sets, stored) if sets else {"useless": len(rows)},
        kinds=KINDS,
        operators=tuple(_by_operator(history, sets, stored)) if sets else (),
        useless=tuple(found),
        asked=None if asked.only is None else _id(history, row_named(history, "--witness", *asked.only)),
    )


def _id(history: History, row: int) -> CheckpointId:
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    return CheckpointId(*history.subtasks[owner], int(history.label[row]))


def _witness(history: History, search: Zigzags, row: int) -> tuple[ZigzagMessage, ...] | None:
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    hops = search.cycle(owner, row - int(history.first[owner]))
    return None if hops is None else tuple(zigzag_message(history, hop) for hop in hops)


def _counts(sets: CheckpointSets, stored: Any) -> dict[str, int]:
    return {kind: int(np.count_nonzero(getattr(sets, kind) & stored)) for kind in KINDS}


def _by_operator(history: History, sets: CheckpointSets, stored: Any) -> list[dict[str, Any]]:
    """A row of counts for each operator, in order."""
    operators = sorted({s.operator for s in history.subtasks})
    number = np.array([operators.index(s.operator) for s in history.subtasks], np.int64)[owners(history)]
    columns = {"checkpoints": stored} | {kind: getattr(sets, kind) & stored for kind in KINDS}
    counted = {name: np.bincount(number[mask], minlength=len(operators)).tolist() for name, mask in columns.items()}
    return [{"operator": op} | {name: counts[i] for name, counts in counted.items()} for i, op in enumerate(operators)]
