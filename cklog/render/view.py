"""What table, Markdown, CSV and JSON lines are made from: sections of rows, and sentences.

Sentences are made in the `…_view` modules and nowhere else, from the facts of a result, so that no two renderings
disagree.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from cklog.model.verdict import Answer


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title; `short` columns stay when a terminal is narrow."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The headline answers the question; the first section is the answer in rows.

    `figures` are drawn as text and follow the headline. `data`: what CSV and JSON lines hold if that is not the
    first section.
    """

    headline: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    data: Section | None = None


def section(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], note: str = "") -> Section:
    """A section without the columns in which every cell is empty."""
    keep = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    cut = tuple(tuple(row[i] for i in keep) for row in rows)
    return Section(title, tuple(columns[i] for i in keep), cut, note)


def view(answer: Answer[object]) -> View:
    """The view of any command's answer; its module is loaded when it is needed."""
    module, _, name = _VIEWS[answer.command].partition(":")
    found: View = getattr(importlib.import_module(module), name)(answer)
    return found


_VIEWS = {
    "recovery-line": "cklog.lines.view:recovery_line_view",
    "replay": "cklog.lines.view:recovery_line_view",
    "verify": "cklog.lines.view:verify_view",
    "inspect": "cklog.lines.view:inspect_view",
    "chain": "cklog.chains.view:chain_view",
    "retention": "cklog.retention.view:retention_view",
    "impact-sinks": "cklog.impact.sinks.view:sink_impact_view",
    "impact-guarantee": "cklog.impact.sinks.view:guarantee_view",
    "graph": "cklog.graphs.view:graph_view",
    "audit-cic": "cklog.protocols.index_audit_view:audit_view",
    "compare": "cklog.protocols.compare_view:compare_view",
    "failures-over-time": "cklog.protocols.failures_over_time_view:failures_view",
    "z-cycles": "cklog.graphs.z_cycles_view:z_cycles_view",
    "extent": "cklog.queues.view:extent_view",
    "eventual-checkpoint": "cklog.queues.view:eventual_checkpoint_view",
    "extent-over-time": "cklog.queues.view:over_time_view",
    "advise-extent": "cklog.advise.extent.view:advise_extent_view",
    "advise-delta": "cklog.advise.delta.view:advise_delta_view",
    "advise-timing": "cklog.advise.timing.view:timing_view",
    "rounds": "cklog.rounds.view:rounds_view",
    "impact": "cklog.impact.view:impact_view",
    "simulate": "cklog.simulate.cec.view:simulate_view",
    "simulate-sweep": "cklog.simulate.cec.view:sweep_view",
    "simulate-odysseus": "cklog.simulate.odysseus.view:simulate_odysseus_view",
    "simulate-dataflow": "cklog.simulate.dataflow.view:simulate_dataflow_view",
}
"""The function, as module:function, that turns each command's result into a view."""
