"""The answer of `z-cycles`: every useless checkpoint with a shortest witness, and what else is good for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cklog.arrays.types import Mask
from cklog.history.history import History
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
    """The useless checkpoints that get a witness: the first `limit` (0: all), or `only` one ("op/sub", checkpoint)."""

    limit: int = 100
    only: tuple[str, int] | None = None


def z_cycles_answer(reader: RecordReader, question: Question, asked: ZCycleQuestion) -> Draft[ZCycles]:
    """Find the useless checkpoints of a run, and why each is.

    Raises
    ------
    NotFound : there is no such checkpoint as asked for
    """
    planned = plan_line(reader, question, everyone=True)
    return planned.draft("z-cycles", z_cycles_of(planned, asked))


def z_cycles_of(planned: Planned, asked: ZCycleQuestion) -> ZCycles:
    """Find the useless checkpoints of what happened, and count the other kinds, which a planned line decides.

    Useless ones do not depend on what failed. Without a line, as initial states contradict each other, only they are
    known.
    """
    history, execution = planned.evidence.history, planned.evidence.execution
    happened = execution.history
    stored, on_cycles = history.label > 0, execution.useless
    sets = checkpoint_sets(history, planned.line, on_cycles) if planned.result.consistent else None
    mask = useless(happened) & (happened.label > 0)
    rows = named = np.flatnonzero(mask)
    wanted = rows[: asked.limit or None]
    if asked.only is not None:
        wanted = np.array([row_named(happened, "--witness", *asked.only)])
        named = wanted[mask[wanted]]
    search = Zigzags(happened) if len(wanted) else None
    witnesses = {row: _witness_messages(happened, search, row) for row in wanted.tolist()} if search else {}
    found = [(_checkpoint_id(happened, row), witnesses.get(row)) for row in named.tolist()]
    return ZCycles(
        checkpoints=int(np.count_nonzero(stored)),
        cyclic=bool(len(channels_on_cycles(happened))),
        counts=_counts_by_kind(sets, stored) if sets else {"useless": len(rows)},
        kinds=KINDS,
        operators=tuple(_counts_by_operator(history, sets, stored)) if sets else (),
        useless=tuple(UselessCheckpoint(c.operator, c.subtask, c.checkpoint, witness) for c, witness in found),
        asked=None if asked.only is None else _checkpoint_id(happened, int(wanted[0])),
        unseen=tuple(map(str, execution.unseen)),
    )


def _checkpoint_id(history: History, row: int) -> CheckpointId:
    """Return the checkpoint that is a row of `History.label`."""
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    return CheckpointId(*history.subtasks[owner], int(history.label[row]))


def _witness_messages(history: History, search: Zigzags, row: int) -> tuple[ZigzagMessage, ...] | None:
    """Return the messages of a shortest Z-cycle of a checkpoint (its row); None if it is on none."""
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    hops = search.cycle(owner, row - int(history.first[owner]))
    return None if hops is None else tuple(zigzag_message(history, hop) for hop in hops)


def _counts_by_kind(sets: CheckpointSets, stored: Mask) -> dict[str, int]:
    """Count the `stored` checkpoints of each kind."""
    return {kind: int(np.count_nonzero(getattr(sets, kind) & stored)) for kind in KINDS}


def _counts_by_operator(history: History, sets: CheckpointSets, stored: Mask) -> list[dict[str, Any]]:
    """Return a row of counts for each operator, in order; `stored` per row of `History.label`.

    E.g. [{"operator": "join", "checkpoints": 12, "useless": 3, …}].
    """
    operators = sorted({s.operator for s in history.subtasks})
    of_subtask = np.array([operators.index(s.operator) for s in history.subtasks], np.int64)
    number = of_subtask[owners(history)]  # of each row, the place of its operator
    columns = {"checkpoints": stored} | {kind: getattr(sets, kind) & stored for kind in KINDS}
    counted = {name: np.bincount(number[mask], minlength=len(operators)).tolist() for name, mask in columns.items()}
    return [{"operator": op} | {name: counts[i] for name, counts in counted.items()} for i, op in enumerate(operators)]
