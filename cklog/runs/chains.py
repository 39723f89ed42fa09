"""Where the pieces of a run's chains come from: its parser, or its checkpoint records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cklog.chains.source import ChainSource
from cklog.engine import Engine
from cklog.errors import NotFound
from cklog.runs.records.analyses import EventLog
from cklog.runs.records.pieces import pieces_of_log


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
        from cklog.runs.snapshots.chains import snapshot_source

        return snapshot_source(parser, engine_for)
    if hasattr(parser, "pieces"):
        table, findings, inputs = parser.pieces()
        return ChainSource(table, findings, inputs, parser.restored_together, getattr(parser, "chain_notes", ()))
    raise NotFound(f"a {parser.name} folder has no chains of checkpoints", "cklog recovery-line says where to restart")
