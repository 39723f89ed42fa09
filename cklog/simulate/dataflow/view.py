"""The answer of `simulate nexmark` and `simulate cyclic` for people: what was run, and its figures."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.render.view import Section, View, section

_NAMES = {
    "unc": "uncoordinated checkpoints",
    "cic-hmnr": "communication-induced checkpoints (HMNR)",
    "cic-bcs": "communication-induced checkpoints (BCS)",
    "coor": "coordinated checkpoints",
}

_OPERATORS = ("operator", "instances", "local", "forced", "coordinated", "rolled past", "useless")

_EDGES = ("from", "to", "channels", "messages", "per channel and interval")


def simulate_dataflow_view(answer: Answer[dict[str, Any]]) -> View:
    """Checkpoints by operator first, then the figures of the whole run, then its messages."""
    result = answer.result
    figures = result["figures"]
    sections = [
        section("Checkpoints", _OPERATORS, [_operator(row) for row in figures["operators"]]),
        Section("The whole run", ("figure", "value", "unit"), _totals(figures)),
        Section("Messages", _EDGES, tuple(_edge(row) for row in figures["edges"])),
        Section("Files", ("path", "bytes"), tuple((f["path"], f["bytes"]) for f in result["files"])),
    ]
    return View(_headline(result), tuple(s for s in sections if s.rows), _notes(result))


def _headline(result: dict[str, Any]) -> str:
    asked, figures = result["simulation"], result["figures"]
    return (
        f"Simulated {asked['query']['name']} on {asked['workers']} workers for {asked['failure_s']:g} s with "
        f"{_NAMES[asked['protocol']]}: {figures['checkpoints']} checkpoints, of which the failure's line rolls past "
        f"{_share(figures, 'rolled_past')}, and {_share(figures, 'useless')} are useless."
    )


def _share(figures: dict[str, Any], name: str) -> str:
    """
    >>> _share({"useless": 3, "checkpoints": 400}, "useless"), _share({"useless": 0, "checkpoints": 400}, "useless")
    ('3 (0.8%)', '0')
    """
    count, of = figures[name], figures["checkpoints"]
    return f"{count} ({count / of:.1%})" if count else "0"


def _notes(result: dict[str, Any]) -> tuple[str, ...]:
    asked, figures = result["simulation"], result["figures"]
    found = []
    if figures["domino"]:
        found.append("a rollback forces another one (domino)")
    if asked["protocol"] == "coor" and figures["rounds_incomplete"]:
        found.append("the last round was not complete at the failure")
    if result["folder"] and asked["protocol"] == "coor":
        found.append("no message logs: a coordinated job keeps none")
    return tuple(found)


def _operator(row: dict[str, Any]) -> tuple[Any, ...]:
    counts = (row["local"], row["forced"], row["coordinated"])
    return (row["operator"], row["instances"], *(n or "-" for n in counts), row["rolled_past"], row["useless"])


def _edge(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["sender"], row["receiver"], row["channels"], row["messages"], f"{row['per_interval']:.2f}")


def _totals(figures: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    rows = [
        ("checkpoints", str(figures["checkpoints"]), "checkpoints"),
        ("of them forced", str(figures["forced"]), "checkpoints"),
        ("rolled past", _share(figures, "rolled_past"), "checkpoints"),
        ("deepest rollback", str(figures["deepest"]), "checkpoints"),
        ("useless", _share(figures, "useless"), "checkpoints"),
    ]
    if figures["rounds_complete"] or figures["rounds_incomplete"]:
        rows.append(("complete rounds", str(figures["rounds_complete"]), "rounds"))
        rows.append(("incomplete rounds", str(figures["rounds_incomplete"]), "rounds"))
    if figures["checkpointing_ms"] is not None:
        rows.append(("average checkpointing time", f"{figures['checkpointing_ms']:.2f}", "ms"))
    rows += [
        ("messages", str(figures["messages"]), "messages"),
        ("bytes of records", str(figures["payload_bytes"]), "bytes"),
        ("bytes they carry for the protocol", str(figures["carried_bytes"]), "bytes"),
        ("bytes of the protocol's own messages", str(figures["control_bytes"]), "bytes"),
    ]
    if figures["ratio"] is not None:
        rows.append(("all bytes to those of records", f"{figures['ratio']:.3f}", "times"))
    return tuple(rows)
