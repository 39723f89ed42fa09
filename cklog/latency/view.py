"""The view of `latency`: the curve of the p99, the way back to normal, steps around checkpoints, and the steps."""

from __future__ import annotations

import numpy as np

from cklog.arrays.order import worst_of_stretches
from cklog.latency.model import BackToNormal, Latency, LatencyStep
from cklog.model.verdict import Answer
from cklog.model.wording import first_few, many, utc
from cklog.render.curve import figure
from cklog.render.view import Section, View, cut_section, section

_DRAWN = 1_000
"""Steps of a curve; of a longer log the worst one of each stretch."""

_BEFORE, _AFTER = 3, 3
"""Steps shown before the failure, and from the way back on."""

_WORST = 10
"""Steps shown where no failure is known."""


def latency_view(answer: Answer[Latency]) -> View:
    """Show the curve, the steps of the way back or the worst ones, and checkpoints; as data, every step."""
    found = answer.result
    names = ("time", "records", "p50", "p99", "max", "checkpoints")
    every = tuple((utc(s.time), s.records, s.p50, s.p99, s.max, s.checkpoints) for s in found.steps)
    sections = [_steps(found), *([_checkpoints(found)] if found.around_checkpoints else [])]
    drawn = _figure(found)
    return View(
        headline=f"{_headline(found)} {_whole(found)}",
        sections=tuple(sections),
        figures=(drawn,) if drawn else (),
        data=Section("Steps", names, every),
    )


def _whole(found: Latency) -> str:
    of = "results" if found.of == "results" else f"messages into {first_few(found.sinks, 3)}"
    return f"All {found.records:,} {of}: p50 {found.p50:,}, p99 {found.p99:,}, at most {found.max:,} ms."


def _headline(found: Latency) -> str:
    failure = found.failure
    if failure is None:
        return "No failure is known, so there is no way back to normal."
    if failure.normal_p99 is None or failure.limit is None:
        return f"What was normal before the failure at {utc(failure.failed_at)} is not known."
    normal = f"normal is a p99 of {failure.normal_p99:,} ms, and up to {failure.limit:,}"
    if failure.time_to_normal_ms is None:
        seen = (found.to - failure.failed_at) / 1000
        if seen <= 0:
            return f"The log ends with the failure at {utc(failure.failed_at)}; {normal}."
        return f"Not back to normal in the {seen:,.3f} s after the failure at {utc(failure.failed_at)}: {normal}."
    time = f"{failure.time_to_normal_ms / 1000:,.3f} s after the failure at {utc(failure.failed_at)}"
    return f"Latency was back to normal {time}: {normal}.{_disturbance(failure)}"


def _disturbance(failure: BackToNormal) -> str:
    """Say what was not normal until then, and whether it stayed normal."""
    parts = []
    if failure.silent_ms:
        parts.append(f"the sink was silent for {failure.silent_ms / 1000:,.3f} s")
    if failure.worst_p99 is not None and failure.limit is not None and failure.worst_p99 > failure.limit:
        parts.append(f"the p99 rose to {failure.worst_p99:,} ms")
    until = f" Until then {' and '.join(parts)}." if parts else ""
    later = failure.steps_above_later
    return f"{until} {many(later, 'later step', 'were')} above that." if later else until


def _seconds(found: Latency, time: int) -> float:
    """Return a time in ms as seconds since the failure, or since the first step."""
    start = found.steps[0].time if found.failure is None else found.failure.failed_at
    return (time - start) / 1000


def _steps(found: Latency) -> Section:
    """Show the steps around the failure, or the worst ones."""
    if found.failure is None:
        worst = sorted(found.steps, key=lambda step: (-step.p99, step.time))[:_WORST]
        return _rows("Steps with the highest p99", found, sorted(worst, key=lambda step: step.time), "the first step")
    failed_at, back = found.failure.failed_at, found.failure.back_at
    before = [step for step in found.steps if step.time + found.step_ms <= failed_at]
    rest = [step for step in found.steps if step.time + found.step_ms > failed_at]
    until = [step for step in rest if back is None or step.time < back]
    shown = [*before[-_BEFORE:], *until, *rest[len(until) : len(until) + _AFTER]]
    return _rows("From the failure to normal", found, shown, "the failure")


def _rows(title: str, found: Latency, steps: list[LatencyStep], since: str) -> Section:
    limit = None if found.failure is None else found.failure.limit
    rows = [
        (
            f"{_seconds(found, step.time):,.3f}",
            step.records,
            f"{step.p50:,}",
            f"{step.p99:,}",
            f"{step.max:,}",
            step.checkpoints or "-",
            "-" if limit is None else "no" if step.p99 > limit else "yes",
        )
        for step in steps
    ]
    note = f"seconds since {since}; a step is {found.step_ms / 1000:g} s; latencies in ms; empty steps are left out"
    columns = ("from s", "records", "p50", "p99", "max", "checkpoints", "normal")
    return cut_section(title, columns, list(rows), note)


def _checkpoints(found: Latency) -> Section:
    rows = [
        (g.steps_are, g.steps, g.records, f"{g.p50:,}", f"{g.p99:,}", f"{g.max:,}", f"{g.median_p99:,}")
        for g in found.around_checkpoints
    ]
    note = "ms, of all records in such steps"
    note += "; without those from the failure to normal" if found.failure is not None else ""
    columns = ("steps", "count", "records", "p50", "p99", "max", "a step's p99")
    return section("Around checkpoints", columns, list(rows), note)


def _figure(found: Latency) -> str:
    """Draw the p99 of the steps against the seconds since the first; nothing where no curve can be seen."""
    chosen = worst_of_stretches(np.array([step.p99 for step in found.steps], np.int64), _DRAWN)
    steps = [found.steps[place] for place in chosen.tolist()]
    seconds = [(step.time - steps[0].time) / 1000 for step in steps]
    values = [max(step.p99, 0) for step in steps]
    if max(seconds) <= 0 or max(values) <= 0:
        return ""
    limit = None if found.failure is None else found.failure.limit
    target = None if limit is None or limit < 0 else limit
    return figure("p99 of latency in ms", seconds, values, target, "normal up to")
