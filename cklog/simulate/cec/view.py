"""The answer of `simulate` for people: what was run, and its figures."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.render.view import Section, View

_FIGURES = ("figure", "value", "unit")


def simulate_view(answer: Answer[dict[str, Any]]) -> View:
    """Figures first; then the files, if any."""
    result = answer.result
    sections = [
        Section(f"Averages after the first {result['warm']:.0%} of the tuples", _FIGURES, _averages(result)),
        Section("The whole run", _FIGURES, _totals(result["statistics"])),
        Section("Files", ("path", "bytes"), tuple((f["path"], f["bytes"]) for f in result["files"])),
    ]
    return View(_headline(result), tuple(s for s in sections if s.rows))


def _headline(result: dict[str, Any]) -> str:
    workload, figures = result["workload"], result["statistics"]
    of = f"{workload['count']} tuples" if workload["count"] is not None else f"{workload['window_ms']} ms"
    lead = (
        f"Simulated {figures['tuples']} tuples of {workload['keys']} keys ({workload['distribution']}) in windows of "
        f"{of}, with {_policy(result['policy'])}"
    )
    if figures["extent"] is None:
        return f"{lead}: too short for averages."
    return f"{lead}: an extent of {figures['extent']:.0f} records and a replay of {figures['replay']:.0f} tuples."


def _policy(policy: dict[str, Any]) -> str:
    if policy["name"] == "none":
        return "no checks"
    if policy["name"] == "cost-benefit":
        return "checks as long as they pay"
    targets = [
        f"{name} = {policy[field]}{unit}"
        for name, field, unit in (("Q", "q", ""), ("Q", "q_windows", " × open windows"), ("U", "u", ""))
        if policy[field] is not None
    ]
    return f"the targets {' and '.join(targets)}"


def _averages(result: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
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


def _totals(figures: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return (
        ("simulated time", f"{figures['seconds']:.1f}", "s"),
        ("open records", str(figures["opens"]), "records"),
        ("check records", str(figures["checks"]), "records"),
        ("result records", str(figures["results"]), "records"),
    )


_SWEPT = ("Q", "U", "CI", "CP", "open windows", "extent", "replay MB", "checks/s", "response s")


def sweep_view(answer: Answer[dict[str, Any]]) -> View:
    """One row per setting, averages over the samples."""
    result = answer.result
    workload = result["workload"]
    of = f"{workload['count']} tuples" if workload["count"] is not None else f"{workload['window_ms']} ms"
    lead = (
        f"Simulated {len(result['runs'])} settings on {workload['tuples']} tuples of {workload['keys']} keys "
        f"({workload['distribution']}) in windows of {of}; averages after the first {result['warm']:.0%}."
    )
    rows = tuple(_swept(run["policy"], run["statistics"], result["record_bytes"]) for run in result["runs"])
    return View(lead, (Section("Settings", _SWEPT, rows),))


def _swept(policy: dict[str, Any], figures: dict[str, Any], record_bytes: int) -> tuple[str, ...]:
    q = policy.get("q_windows")
    extent = f"{q:g}x" if q is not None else f"{policy['q']:.0f}" if policy.get("q") is not None else "-"
    replay = f"{policy['u']:.0f}" if policy.get("u") is not None else "-"
    pace = (f"{policy['interval_ms']:g}", f"{policy['period_ms']:g}")
    if figures["extent"] is None:
        return (extent, replay, *pace, "-", "-", "-", "-", "-")
    response = figures["response_s"]
    return (
        extent,
        replay,
        *pace,
        f"{figures['open_windows']:.0f}",
        f"{figures['extent']:.0f}",
        f"{figures['replay'] * record_bytes / 1e6:.1f}",
        f"{figures['checks_per_second']:.0f}",
        "-" if response is None else f"{response:.2f}",
    )
