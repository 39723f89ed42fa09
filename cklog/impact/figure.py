"""The phases of an output drawn over time, as text: how often each time is in the results, right or not, its trust.

As the paper's Figures 4 to 6 draw them, in lanes over one time axis instead of in three figures.
"""

from __future__ import annotations

from itertools import pairwise

from cklog.impact.model import Impact, OutputImpact, Phase

_WIDTH, _LABEL, _GAP = 66, 11, 2
"""Columns of a lane and of its label: 80 with the margins."""

_TRUST = {"trustworthy": "+", "indefinite": "?", "untrustworthy": "-"}

LEGEND = (
    "results: . none, 1 once, 2 twice   values: = right, x wrong, ? unknown   "
    "trust: + trustworthy, ? indefinite, - untrustworthy"
)


def impact_figure(impact: Impact, output: OutputImpact) -> str:
    """A title, a time axis in seconds after `zero`, and three lanes; cells that hold two things show the worse."""
    low, high = _extent(impact, output)
    cells = [low + (high - low) * i / _WIDTH for i in range(_WIDTH + 1)]
    spans = list(pairwise(cells))
    lanes = (
        ("results", [_times(output, a, b) for a, b in spans]),
        ("values", [_value(impact, output, a, b) for a, b in spans]),
        ("trust", [_trust(impact, output, a, b) for a, b in spans]),
    )
    axis = _axis(_marks(impact, output), low, high, zero(impact))
    lines = [f"{output.output}, {output.recovery} recovery", *axis]
    lines += [f"{name.ljust(_LABEL)}{' ' * _GAP}{''.join(lane)}".rstrip() for name, lane in lanes]
    return "\n".join(lines)


def zero(impact: Impact) -> int:
    """What times are counted from: 0 for times of a simulation, else the crash."""
    return 0 if abs(impact.crash.least) < 10**10 else impact.crash.least


def _marks(impact: Impact, output: OutputImpact) -> list[int]:
    """The times at which something changes, rising."""
    found = {impact.crash.least, *([] if impact.restart is None else [impact.restart])}
    for phase in output.phases:
        found |= {phase.from_, *([] if phase.to is None else [phase.to])}
    for span in output.trust:
        found |= {span.from_, *([] if span.to is None else [span.to])}
    return sorted(found)


def _extent(impact: Impact, output: OutputImpact) -> tuple[int, int]:
    marks = _marks(impact, output)
    margin = max((marks[-1] - marks[0]) // 4, 1)
    return marks[0] - margin, marks[-1] + margin


def _axis(marks: list[int], low: int, high: int, first: int) -> list[str]:
    """Seconds after `first` over ticks; a label that would touch the one before is left out, its tick stays."""
    numbers, ticks = [" "] * (_WIDTH + 8), [" "] * (_WIDTH + 1)
    free = -_LABEL
    for mark in marks:
        at = round((mark - low) * _WIDTH / (high - low))
        ticks[at] = "|"
        text = f"{round((mark - first) / 1000, 2):g}"
        if at >= free and at + len(text) <= len(numbers):
            numbers[at : at + len(text)] = text
            free = at + len(text) + 1
    indent = " " * (_LABEL + _GAP)
    unit = "seconds" if first == 0 else "s, crash 0"
    return [f"{unit.ljust(_LABEL)}{' ' * _GAP}{''.join(numbers)}".rstrip(), f"{indent}{''.join(ticks)}".rstrip()]


def _in(phase: Phase, low: float, high: float) -> bool:
    return phase.from_ < high and (phase.to is None or phase.to > low)


def _of(output: OutputImpact, name: str, low: float, high: float) -> Phase | None:
    return next((p for p in output.phases if p.phase == name and _in(p, low, high)), None)


def _times(output: OutputImpact, low: float, high: float) -> str:
    """How often each time comes in the results (Figure 5)."""
    if _of(output, "offline", low, high) is not None:
        return "."
    return "2" if _of(output, "duplicate", low, high) is not None else "1"


def _value(impact: Impact, output: OutputImpact, low: float, high: float) -> str:
    """Whether results are those of a run without failure (Figure 4)."""
    phase = _of(output, "convergence", low, high)
    if phase is not None:
        return "?" if phase.kind == "unknown" else "x"
    return " " if _of(output, "offline", low, high) is not None else "="


def _trust(impact: Impact, output: OutputImpact, low: float, high: float) -> str:
    """The trust of what was sent last (Figure 6)."""
    here = [s for s in output.trust if s.from_ < high and (s.to is None or s.to > low)]
    if here:
        return max((_TRUST[s.trust] for s in here), key="+?-".index)
    return " " if _of(output, "offline", low, high) is not None else "+"
