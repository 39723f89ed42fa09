"""The pieces that checkpoint records tell of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cklog.engine import Engine
from cklog.history.pieces import record_pieces
from cklog.history.records import records_of
from cklog.history.state_files import state_flaws
from cklog.model.findings import Finding, InputUsed
from cklog.model.verdict import DAMAGE
from cklog.runs.records.analyses import EventLog

SPLIT_BYTES = 64 << 20
"""Of a file of checkpoint records, per task."""


PiecesRead = tuple[pa.Table, tuple[Finding, ...], tuple[InputUsed, ...]]


def pieces_of_records(parser: Any, engine_for: Callable[[int], Engine]) -> PiecesRead:
    """The pieces that a parser's checkpoint records tell of."""
    return pieces_of_log(EventLog(parser, engine_for, SPLIT_BYTES, strict=False), parser)


def pieces_of_log(log: EventLog, parser: Any) -> PiecesRead:
    """By the checkpoint records of a run whose subtasks checkpoint one by one, and the state files that they name."""
    table, findings, inputs, _ = log.checkpoints()
    records = records_of(table, *log.named())
    del table  # as large as the records themselves, which are another table
    lost = any(f.id in DAMAGE for f in findings) or bool(records.findings)
    flaws, more = state_flaws(records, parser)
    return record_pieces(records, lost, flaws).table, (*findings, *records.findings, *more), tuple(inputs)
