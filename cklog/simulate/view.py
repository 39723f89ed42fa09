"""The answers of `cklog simulate` for people: what was run, and its figures."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.render.curve import figure
from cklog.render.view import Section, View, section

_FIGURES = ("figure", "value", "unit")


def _files_section(result: dict[str, Any]) -> Section:
    return Section("Files", ("path", "bytes"), tuple((f["path"], f["bytes"]) for f in result["files"]))


# --- `simulate cec`


def simulate_view(answer: Answer[dict[str, Any]]) -> View:
    """Show the averages of a run under continuous eventual checkpointing, its totals, and the files, if any."""
    result = answer.result
    sections = [
        Section(f"Averages after the first {result['warm']:.0%} of the tuples", _FIGURES, _average_rows(result)),
        Section("The whole run", _FIGURES, _total_rows(result["statistics"])),
        _files_section(result),
    ]
    return View(_run_headline(result), tuple(s for s in sections if s.rows))


def _run_headline(result: dict[str, Any]) -> str:
    workload, figures = result["workload"], result["statistics"]
    lead = (
        f"Simulated {figures['tuples']} tuples of {workload['keys']} keys ({workload['distribution']}) in windows of "
        f"{_window_length(workload)}, with {_policy_words(result['policy'])}"
    )
    if figures["extent"] is None:
        return f"{lead}: too short for averages."
    return f"{lead}: an extent of {figures['extent']:.0f} records and a replay of {figures['replay']:.0f} tuples."


def _window_length(workload: dict[str, Any]) -> str:
    return f"{workload['count']} tuples" if workload["count"] is not None else f"{workload['window_ms']} ms"


def _policy_words(policy: dict[str, Any]) -> str:
    if policy["name"] == "none":
        return "no checks"
    if policy["name"] == "rollback":
        return f"all open windows saved every {policy['period_ms']:g} ms"
    if policy["name"] == "cost-benefit":
        return "checks as long as they pay"
    targets = [
        f"{name} = {policy[field]}{unit}"
        for name, field, unit in (("Q", "q", ""), ("Q", "q_windows", " × open windows"), ("U", "u", ""))
        if policy[field] is not None
    ]
    return f"the targets {' and '.join(targets)}"


def _average_rows(result: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    figures, megabyte = result["statistics"], 1_000_000
    if figures["extent"] is None:
        return ()
    rows = [
        ("open windows", f"{figures['open_windows']:.0f}", "windows"),
        ("extent", f"{figures['extent']:.0f}", "records"),
        ("largest extent", f"{figures['extent_max']}", "records"),
        ("replay", f"{figures['replay']:.0f}", "tuples"),
        ("replay bytes", f"{figures['replay'] * result['record_bytes'] / megabyte:.1f}", "MB"),
        ("checks", f"{figures['checks_per_second']:.1f}", "records/s"),
    ]
    if figures["response_s"] is not None:
        rows.append(("window response time", f"{figures['response_s']:.3f}", "s"))
    return tuple(rows)


def _total_rows(figures: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return (
        ("simulated time", f"{figures['seconds']:.1f}", "s"),
        ("open records", str(figures["opens"]), "records"),
        ("check records", str(figures["checks"]), "records"),
        ("result records", str(figures["results"]), "records"),
    )


_SWEPT = ("Q", "U", "CI", "CP", "open windows", "extent", "replay MB", "checks/s", "response s")


def sweep_view(answer: Answer[dict[str, Any]]) -> View:
    """Show one row per setting that was run on a workload."""
    result = answer.result
    workload = result["workload"]
    lead = (
        f"Simulated {len(result['runs'])} settings on {workload['tuples']} tuples of {workload['keys']} keys "
        f"({workload['distribution']}) in windows of {_window_length(workload)}; averages after the first "
        f"{result['warm']:.0%}."
    )
    rows = tuple(_sweep_row(run["policy"], run["statistics"], result["record_bytes"]) for run in result["runs"])
    return View(lead, (Section("Settings", _SWEPT, rows),))


def _sweep_row(policy: dict[str, Any], figures: dict[str, Any], record_bytes: int) -> tuple[str, ...]:
    extent = "all" if policy["name"] == "rollback" else "-" if policy.get("q") is None else f"{policy['q']:.0f}"
    if policy.get("q_windows") is not None:
        extent = f"{policy['q_windows']:g}x"
    replay = "-" if policy.get("u") is None else f"{policy['u']:.0f}"
    setting = (extent, replay, f"{policy['interval_ms']:g}", f"{policy['period_ms']:g}")
    if figures["extent"] is None:
        return (*setting, "-", "-", "-", "-", "-")
    response = figures["response_s"]
    return (
        *setting,
        f"{figures['open_windows']:.0f}",
        f"{figures['extent']:.0f}",
        f"{figures['replay'] * record_bytes / 1e6:.1f}",
        f"{figures['checks_per_second']:.0f}",
        "-" if response is None else f"{response:.2f}",
    )


# --- `simulate nexmark` and `simulate cyclic`

_PROTOCOLS = {
    "unc": "uncoordinated checkpoints",
    "cic-hmnr": "communication-induced checkpoints (HMNR)",
    "cic-bcs": "communication-induced checkpoints (BCS)",
    "coor": "coordinated checkpoints",
}

_OPERATORS = ("operator", "instances", "local", "forced", "coordinated", "rolled past", "useless")

_EDGES = ("from", "to", "channels", "messages", "per channel and interval")


def simulate_dataflow_view(answer: Answer[dict[str, Any]]) -> View:
    """Show the checkpoints by operator, then the figures of the whole run, then its messages."""
    result = answer.result
    figures = result["figures"]
    sections = [
        section("Checkpoints", _OPERATORS, [_operator_row(row) for row in figures["operators"]]),
        Section("The whole run", _FIGURES, _dataflow_rows(figures)),
        Section("Messages", _EDGES, tuple(_edge_row(row) for row in figures["edges"])),
        _files_section(result),
    ]
    return View(_dataflow_headline(result), tuple(s for s in sections if s.rows), _dataflow_notes(result))


def _dataflow_headline(result: dict[str, Any]) -> str:
    asked, figures = result["simulation"], result["figures"]
    return (
        f"Simulated {asked['query']['name']} on {asked['workers']} workers for {asked['failure_s']:g} s with "
        f"{_PROTOCOLS[asked['protocol']]}: {figures['checkpoints']} checkpoints, of which the failure's line rolls "
        f"past {_with_share(figures, 'rolled_past')}, and {_with_share(figures, 'useless')} are useless."
    )


def _with_share(figures: dict[str, Any], name: str) -> str:
    """A number of checkpoints, with its share of all.

    >>> _with_share({"useless": 3, "checkpoints": 400}, "useless")
    '3 (0.8%)'
    >>> _with_share({"useless": 0, "checkpoints": 400}, "useless")
    '0'
    """
    count, of = figures[name], figures["checkpoints"]
    return f"{count} ({count / of:.1%})" if count else "0"


def _dataflow_notes(result: dict[str, Any]) -> tuple[str, ...]:
    asked, figures = result["simulation"], result["figures"]
    found = []
    if figures["domino"]:
        found.append("a rollback forces another one (domino)")
    if asked["protocol"] == "coor" and figures["rounds_incomplete"]:
        found.append("the last round was not complete at the failure")
    if result["folder"] and asked["protocol"] == "coor":
        found.append("no message logs: a coordinated job keeps none")
    return tuple(found)


def _operator_row(row: dict[str, Any]) -> tuple[Any, ...]:
    counts = (row["local"], row["forced"], row["coordinated"])
    return (row["operator"], row["instances"], *(n or "-" for n in counts), row["rolled_past"], row["useless"])


def _edge_row(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["sender"], row["receiver"], row["channels"], row["messages"], f"{row['per_interval']:.2f}")


def _dataflow_rows(figures: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    rows = [
        ("checkpoints", str(figures["checkpoints"]), "checkpoints"),
        ("of them forced", str(figures["forced"]), "checkpoints"),
        ("rolled past", _with_share(figures, "rolled_past"), "checkpoints"),
        (
            "rolled past, channels inside workers left out",
            _with_share(figures, "rolled_past_between_workers"),
            "checkpoints",
        ),
        ("deepest rollback", str(figures["deepest"]), "checkpoints"),
        ("useless", _with_share(figures, "useless"), "checkpoints"),
    ]
    if figures["rounds_complete"] or figures["rounds_incomplete"]:
        rows.append(("complete rounds", str(figures["rounds_complete"]), "rounds"))
        rows.append(("incomplete rounds", str(figures["rounds_incomplete"]), "rounds"))
    if figures["checkpointing_ms"] is not None:
        rows.append(("average checkpointing time", f"{figures['checkpointing_ms']:.2f}", "ms"))
    if figures["latency_p50_ms"] is not None:
        rows.append(("latency, median", f"{figures['latency_p50_ms']:.2f}", "ms"))
        rows.append(("latency, 99th percentile", f"{figures['latency_p99_ms']:.2f}", "ms"))
    rows += [
        ("messages", str(figures["messages"]), "messages"),
        ("bytes of records", str(figures["payload_bytes"]), "bytes"),
        ("bytes they carry for the protocol", str(figures["carried_bytes"]), "bytes"),
        ("bytes of the protocol's own messages", str(figures["control_bytes"]), "bytes"),
    ]
    if figures["ratio"] is not None:
        rows.append(("all bytes to those of records", f"{figures['ratio']:.3f}", "times"))
    return tuple(rows)


# --- `simulate odysseus`

_FEWEST_MOMENTS = 30
"""With fewer moments a table says more than a curve."""

_OUTPUTS = ("output", "sent", "missing", "wrong", "doubled")


def simulate_odysseus_view(answer: Answer[dict[str, Any]]) -> View:
    """Show each output's results against those of the run without failure, then the files."""
    found = answer.result
    rows = tuple((o["output"], o["results"], o["missing"], o["wrong"], o["doubled"]) for o in found["outputs"])
    lead = (
        f"Simulated the query {found['query']} on {found['elements']:,} elements: a crash at "
        f"{found['crash'] / 1000:g} s, {found['recovery']} recovery from {found['restart'] / 1000:g} s on."
    )
    sections = [Section("Results against a run without failure", _OUTPUTS, rows)]
    sections += [_files_section(found)] if found["files"] else []
    figures = tuple(curve for output in found["outputs"] for curve in _output_curves(output))
    return View(lead, tuple(sections), figures=figures)


def _output_curves(output: dict[str, Any]) -> list[str]:
    """The paper's Figures 4 and 5: the results, 0 where there is none, and how often each time is among them."""
    moments = output["over_time"]
    seconds = [m["time"] / 1000 for m in moments]
    results = [m["result"] or 0 for m in moments]
    times = [m["results"] for m in moments]
    if len(moments) < _FEWEST_MOMENTS or not all(isinstance(result, int) and result >= 0 for result in results):
        return []
    name = output["output"]
    return [
        figure(f"{name}: results (0: none)", seconds, results, None),
        figure(f"{name}: results for each time", seconds, times, None),
    ]
