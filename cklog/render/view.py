"""What table, Markdown, CSV and JSON lines are made from: sections of rows, and sentences.

Sentences are made in the `view` modules of the rooms and nowhere else, from the facts of a result, so that no two
renderings disagree.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cklog.model.findings import Finding
from cklog.model.verdict import UNDETERMINED, Answer, is_bound
from cklog.model.wording import many, utc


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title, and a note below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What people are shown of an answer; the headline answers the question.

    `sections` : the first is the answer in rows
    `lead` : sentences that follow the headline: what to do
    `figures` : commands and drawings as text, which follow these
    `steps` : what to do, a line each: commands to paste as they are, or what is restored and read again
    `sentences` : lines of figures and steps that a terminal wraps between words; all others are pasted, or drawn
    `data` : what CSV and JSON lines hold if that is not the first section; made when it is asked for, if it is long
    """

    headline: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    data: Section | Callable[[], Section] | None = None
    lead: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    sentences: frozenset[str] = frozenset()


def headline_of(shown: View, findings: tuple[Finding, ...]) -> str:
    """Return the first sentence, after a word of warning where something could not be read."""
    if not is_bound(findings) or shown.headline.startswith(UNDETERMINED):
        return shown.headline
    return f"{UNDETERMINED}: not everything could be read. {shown.headline}"


def section(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], note: str = "") -> Section:
    """Make a section without the columns in which every cell is empty ("-")."""
    keep = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    cut = tuple(tuple(row[i] for i in keep) for row in rows)
    return Section(title, tuple(columns[i] for i in keep), cut, note)


MOST_ROWS = 40
"""Rows of a long section that are shown; all of them are in the JSON."""


def cut_section(
    title: str,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    note: str = "",
    elsewhere: str = ": --json has them all",
) -> Section:
    """Make a section of the first `MOST_ROWS` rows; its note says how many more there are, and where (`elsewhere`).

    >>> cut_section("Numbers", ("n",), [(n,) for n in range(42)]).note
    'and 2 more rows: --json has them all'
    >>> cut_section("Numbers", ("n",), [(n,) for n in range(41)]).note
    'and 1 more row: --json has them all'
    """
    left_out = len(rows) - MOST_ROWS
    more = f"and {many(left_out, 'more row', grouped=True)}{elsewhere}" if left_out > 0 else ""
    return section(title, columns, rows[:MOST_ROWS], "; ".join(part for part in (note, more) if part))


def view(answer: Answer[object]) -> View:
    """Make the view of any command's answer; its module is loaded when it is needed."""
    module, _, name = VIEWS[answer.command].partition(":")
    found: View = getattr(importlib.import_module(module), name)(answer)
    return found


VIEWS = {
    "recovery-line": "cklog.lines.view:recovery_line_view",
    "replay": "cklog.lines.view:recovery_line_view",
    "runbook": "cklog.runbook.view:runbook_view",
    "verify": "cklog.lines.view:verify_view",
    "verify-restored": "cklog.lines.view:audit_view",
    "inspect": "cklog.lines.view:inspect_view",
    "chain": "cklog.chains.view:chain_view",
    "retention": "cklog.retention.view:retention_view",
    "impact-sinks": "cklog.impact.sinks.view:sink_impact_view",
    "impact-guarantee": "cklog.impact.sinks.view:guarantee_view",
    "graph": "cklog.graphs.view:graph_view",
    "audit-cic": "cklog.protocols.view:audit_view",
    "compare": "cklog.protocols.view:compare_view",
    "failures-over-time": "cklog.protocols.view:failures_view",
    "z-cycles": "cklog.graphs.view:z_cycles_view",
    "extent": "cklog.queues.view:extent_view",
    "eventual-checkpoint": "cklog.queues.view:eventual_checkpoint_view",
    "extent-over-time": "cklog.queues.view:over_time_view",
    "advise-extent": "cklog.advise.extent.view:advise_extent_view",
    "advise-delta": "cklog.advise.delta.view:advise_delta_view",
    "advise-timing": "cklog.advise.timing.view:timing_view",
    "advise-protocol": "cklog.protocols.choice.view:advise_protocol_view",
    "rounds": "cklog.rounds.view:rounds_view",
    "rounds-sweep": "cklog.rounds.view:sweep_view",
    "impact": "cklog.impact.view:impact_view",
    "latency": "cklog.latency.view:latency_view",
    "scan": "cklog.sweep.view:scan_view",
    "report": "cklog.report.view:report_view",
    "diff": "cklog.differences.view:differences_view",
    "explain": "cklog.explanations.view:explain_view",
    "simulate": "cklog.simulate.view:simulate_view",
    "simulate-sweep": "cklog.simulate.view:sweep_view",
    "simulate-cec-paper": "cklog.simulate.cec.view:paper_view",
    "simulate-odysseus": "cklog.simulate.view:simulate_odysseus_view",
    "simulate-dataflow": "cklog.simulate.view:simulate_dataflow_view",
}
"""The function, as module:function, that turns each command's result into a view."""


# --- details of an answer

_DETAIL_TITLES: Mapping[str, str] = {
    "snapshots": "Snapshots",
    "needs": "Needed outside the job's own folder",
    "in_flight": "In flight, and restored with the checkpoint",
    "in_flight_channels": "In flight by channel",
    "transactions": "Open transactions of sinks",
    "pending": "Pending for sinks",
    "against": "Against the other snapshot, in records",
    "groups": "Groups go on at",
    "deleted_groups": "Deleted offsets of groups",
    "committed_difference": "What groups have committed beside the checkpoint",
    "ranges": "To read again",
    "partitions": "Partitions",
    "cuts": "What a restarting broker cuts",
    "stores": "Stores",
    "connectors": "Connectors resume at",
    "joint_order": "What restarts, in this order",
    "joint_links": "What passes between the jobs",
    "not_checked": "Not checked",
}
_LEFT_TO_THE_OTHER = {
    "recovery-line": ("in_flight_channels", "ranges"),
    "replay": ("snapshots", "needs", "in_flight"),
}
"""Details that one of the two commands about a line leaves to the other."""


def detail_sections(details: Mapping[str, Any], command: str) -> list[Section]:
    """Make a section of every detail that is a list of rows and has a title, in the order of the titles."""
    left_out = _LEFT_TO_THE_OTHER.get(command, ())
    return [
        rows_section(title, details[name], without=list | tuple | dict)
        for name, title in _DETAIL_TITLES.items()
        if name not in left_out and _are_rows(details.get(name))
    ]


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def rows_section(title: str, rows: list[dict[str, Any]], without: Any = list | tuple) -> Section:
    """Make a section of rows of one shape; members of the types `without` are in the JSON only."""
    columns = tuple(name for name in rows[0] if not any(isinstance(row[name], without) for row in rows))
    return cut_section(title, columns, [tuple(_detail_cell(name, row[name]) for name in columns) for row in rows])


def _detail_cell(name: str, value: Any) -> Any:
    """A value as a table shows it."""
    if value is None:
        return "-"
    if name.endswith("time"):
        return utc(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | str) else json.dumps(value)
