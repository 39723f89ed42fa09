"""Where the pieces of a run's chains come from: its parser, or its checkpoint records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cklog.chains import Together
from cklog.conclude import DAMAGE
from cklog.engine import Engine
from cklog.errors import NotFound
from cklog.event_log import EventLog
from cklog.model import Finding, InputUsed
from cklog.record_pieces import record_pieces
from cklog.state_places import state_flaws
from cklog.tables import records_of

SPLIT_BYTES = 64 << 20
"""Of a file of checkpoint records, per task."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a piece, its bytes that are read, and the oldest version that has it too."""

    path: str
    bytes: int
    since: int


@dataclass(frozen=True, slots=True)
class ChainSource:
    """The pieces of a run, what is wrong with what they were made from, and what is restored together.

    `notes` are what else a reader of the answer must know: what a version is, for instance. Where pieces are made of
    several files, `parts` tells those of a piece, by row. `unit` is the word for what is restored together, if that is
    not the one of `together`.
    """

    table: pa.Table
    findings: Sequence[Finding]
    inputs: Sequence[InputUsed]
    together: Together
    notes: tuple[str, ...] = ()
    parts: Callable[[int], list[Part]] | None = None
    unit: str = ""


def chain_source(parser: Any, analyses: Any, engine_for: Callable[[int], Engine]) -> ChainSource:
    """The pieces of a run.

    Raises
    ------
    NotFound : nothing of this kind of run stands on anything else
    """
    if isinstance(analyses, EventLog):
        table, findings, inputs = pieces_of_log(analyses, parser)
        return ChainSource(table, findings, inputs, "subtask")
    if hasattr(parser, "snapshots"):
        from cklog.snapshot_chains import snapshot_source

        return snapshot_source(parser, engine_for)
    if hasattr(parser, "pieces"):
        table, findings, inputs = parser.pieces()
        return ChainSource(table, findings, inputs, parser.restored_together, getattr(parser, "chain_notes", ()))
    raise NotFound(f"a {parser.name} folder has no chains of checkpoints", "cklog recovery-line says where to restart")


Pieces = tuple[pa.Table, tuple[Finding, ...], tuple[InputUsed, ...]]


def pieces_of_records(parser: Any, engine_for: Callable[[int], Engine]) -> Pieces:
    """The pieces that a parser's checkpoint records tell of."""
    return pieces_of_log(EventLog(parser, engine_for, SPLIT_BYTES, strict=False), parser)


def pieces_of_log(log: EventLog, parser: Any) -> Pieces:
    """By the checkpoint records of a run whose subtasks checkpoint one by one, and the state files that they name."""
    table, findings, inputs, _ = log.checkpoints()
    records = records_of(table, *log.named())
    del table  # as large as the records themselves, which are another table
    lost = any(f.id in DAMAGE for f in findings) or bool(records.findings)
    flaws, more = state_flaws(records, parser)
    return record_pieces(records, lost, flaws).table, (*findings, *records.findings, *more), tuple(inputs)
