"""The impact of a crash as sentences, rows and drawings.

The drawing shows the phases of one output over time, as the paper's Figures 4 to 6 do: how often each time is among
the results, whether they are right, and their trust, in three lanes over one time axis instead of in three figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from cklog.impact.model import BoundedTime, Count, Impact, OutputImpact, Phase, RecoveryTask
from cklog.model.verdict import Answer
from cklog.model.wording import utc
from cklog.render.view import View, section

_EARLY = 10**10
"""Times before that (in April 1970) are seconds of a simulation, and not shown as dates."""

_PHASE_COLUMNS = ("output", "phase", "from", "to", "results", "are")
_TRUST_COLUMNS = ("output", "trust", "from", "to", "results")
_SAYS = {"offline": "missing", "convergence": "wrong", "duplicate": "doubled"}
_KINDS = {
    "none": "no convergence phase",
    "finite": "results converge",
    "infinite": "results never converge",
    "unknown": "nobody can say whether results converge",
}


def impact_view(answer: Answer[Impact | None]) -> View:
    """Show the worst as headline, the phases and trust of each output, guarantees, and the recovery tasks."""
    found = answer.result
    if found is None:
        return View("Nothing can be said: the times of crash and restart contradict each other or are not there.", ())
    phases = [row for output in found.outputs for row in _phase_rows(output)]
    sections = [
        section("Phases", _PHASE_COLUMNS, phases),
        section("Trust of what is sent after the restart", _TRUST_COLUMNS, _trust_rows(found)),
        section("Guarantees", ("output", "recovery", "guarantee", "lacks"), _class_rows(found)),
        section("Operators", ("output", "operator", "class", "why"), _operator_rows(found)),
        section("Recovery, in this order", ("step", "task", "of", "with"), _task_rows(found)),
    ]
    figures = [impact_figure(found, output) for output in found.outputs]
    figures += [LEGEND] if figures else []
    headline = f"{_crash_sentence(found)} " + " ".join(_output_sentence(output) for output in found.outputs)
    notes = (*_upgrade_notes(found), *found.notes)
    return View(headline.rstrip(), tuple(s for s in sections if s.rows), notes, tuple(figures))


def _crash_sentence(found: Impact) -> str:
    crash = f"at {_time_text(found.crash.least)}" if found.crash.exact else f"between {_bounds_text(found.crash)}"
    again = "is not back yet" if found.restart is None else f"is back at {_time_text(found.restart)}"
    return f"The system crashed {crash} and {again}."


def _bounds_text(moment: BoundedTime) -> str:
    return f"{_time_text(moment.least)} and {_time_text(moment.most)}"


def _time_text(ms: int | None) -> str:
    """A time in ms as a date, or in seconds if it is one of a simulation.

    >>> _time_text(360_000), _time_text(1795226310693), _time_text(None)
    ('360 s', '2026-11-21 01:58:30.693Z', '-')
    """
    if ms is None:
        return "-"
    return f"{ms / 1000:,.10g} s" if abs(ms) < _EARLY else utc(ms)


def _output_sentence(output: OutputImpact) -> str:
    suffered = [
        f"{_count_text(count)} {word}"
        for count, word in ((output.missing, "missing"), (output.wrong, "wrong"), (output.doubled, "doubled"))
        if count.most != 0
    ]
    ends = f", right again from {_time_text(output.first_right)} on" if output.first_right is not None else ""
    what = f"{', '.join(suffered)} results{ends}" if suffered else "nothing missing, wrong or doubled"
    promise = "no guarantee" if output.guarantee == "none" else output.guarantee
    return f"{output.output} ({output.recovery} recovery, {promise}): {what}."


def _count_text(count: Count) -> str:
    """A count, or its bounds.

    >>> _count_text(Count(9000, 9000)), _count_text(Count(0, 6000)), _count_text(Count(7, None))
    ('9,000', '0 to 6,000', 'at least 7')
    >>> _count_text(Count(0, None))
    'an unknown number of'
    """
    if count.exact:
        return f"{count.least:,}"
    if count.most is None:
        return f"at least {count.least:,}" if count.least else "an unknown number of"
    return f"{count.least:,} to {count.most:,}"


def _count_cell(count: Count) -> str:
    return "unknown" if count.most is None and not count.least else _count_text(count)


def _phase_rows(output: OutputImpact) -> list[tuple[str, ...]]:
    if not output.phases:
        return [(output.output, "none", "-", "-", "-", _KINDS[output.convergence])]
    return [_phase_row(output, phase) for phase in output.phases]


def _phase_row(output: OutputImpact, phase: Phase) -> tuple[str, ...]:
    no_end = "no end" if phase.kind == "infinite" else "unknown"
    end = no_end if phase.to is None else _time_text(phase.to)
    kind = "" if phase.kind is None else f", {_KINDS[phase.kind]}"
    are = f"{_SAYS[phase.phase]}{kind}"
    return output.output, phase.phase, _time_text(phase.from_), end, _count_cell(phase.results), are


def _trust_rows(found: Impact) -> list[tuple[str, ...]]:
    return [
        (output.output, span.trust, _time_text(span.from_), _time_text(span.to), _count_cell(span.results))
        for output in found.outputs
        for span in output.trust
    ]


def _class_rows(found: Impact) -> list[tuple[str, ...]]:
    return [
        (
            output.output,
            f"{support.recovery}{' <-' if support.recovery == output.recovery else ''}",
            support.guarantee,
            "; ".join(support.missing) or "nothing",
        )
        for output in found.outputs
        for support in output.classes
    ]


def _operator_rows(found: Impact) -> list[tuple[str, ...]]:
    return [(o.output, c.operator, c.recovery, c.why) for o in found.outputs for c in o.operators]


def _task_rows(found: Impact) -> list[tuple[str, ...]]:
    return [(str(task.step), task.task, task.subject, _values_text(task)) for task in found.tasks]


def _values_text(task: RecoveryTask) -> str:
    """The logged values of a step in words."""
    words = _VALUES_IN_WORDS.get(task.task)
    return "-" if words is None else words(task.with_)


def _boot_words(v: dict[str, Any]) -> str:
    at = "" if v["boot"] is None else f" at {_time_text(v['boot'])}"
    return f"a boot{at} without a shutdown"


def _installation_words(v: dict[str, Any]) -> str:
    return "logged at its installation" if v["logged"] else "by hand: its installation is not logged"


def _state_words(v: dict[str, Any]) -> str:
    place = "" if v["uri"] is None else f": {v['uri']}"
    return f"checkpoint {v['checkpoint']}{place}"


def _alignment_words(v: dict[str, Any]) -> str:
    following = "" if v["next"] is None else f"; the next start is {_time_text(v['next'])}"
    return f"start {_time_text(v['start'])}, slide {_time_text(v['slide'])}{following}"


def _input_words(v: dict[str, Any]) -> str:
    return "from a checkpoint's element" if v["element"] is None else f"from element {v['element']} of its log"


def _watermark_words(v: dict[str, Any]) -> str:
    equal = f", with {v['equal']} equal ones before it" if v["equal"] else ""
    return f"up to and including the element at {_time_text(v['ts'])}{equal}"


def _switch_words(v: dict[str, Any]) -> str:
    at = "" if v["earliest_watermark"] is None else f": element {v['earliest_watermark']} at the earliest"
    return f"{', '.join(v['modes'])}; watermark: the first logged element not older than the source's{at}"


_VALUES_IN_WORDS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "detect crash": _boot_words,
    "install query": _installation_words,
    "load state": _state_words,
    "align windows": _alignment_words,
    "resume input": _input_words,
    "drop duplicates": _watermark_words,
    "set query state": lambda v: str(v["state"]),
    "switch to source": _switch_words,
}
"""By task: puts its values (`RecoveryTask.with_`) in words."""


def _upgrade_notes(found: Impact) -> list[str]:
    """What each output lacks for the next recovery class above its own."""
    notes = []
    for output in found.outputs:
        names = [support.recovery for support in output.classes]
        for support in output.classes[names.index(output.recovery) + 1 :]:
            if support.missing:
                notes.append(f"{output.output}: {support.recovery} recovery would need {'; '.join(support.missing)}")
                break
    return notes


# --- the drawing

_WIDTH, _LABEL, _GAP = 66, 11, 2
"""Columns of a lane, of its label and between the two: 80 with the margins."""

_TRUST_MARKS = {"trustworthy": "+", "indefinite": "?", "untrustworthy": "-"}

LEGEND = (
    "results: . none, 1 once, 2 twice   values: = right, x wrong, ? unknown   "
    "trust: + trustworthy, ? indefinite, - untrustworthy"
)


def impact_figure(impact: Impact, output: OutputImpact) -> str:
    """Draw the phases and the trust of an output: a title, a time axis in seconds, and three lanes.

    Seconds count from the crash, or from 0 in a simulation. A cell that holds two things shows the worse.
    """
    marks = _change_times(impact, output)
    margin = max((marks[-1] - marks[0]) // 4, 1)
    low, high = marks[0] - margin, marks[-1] + margin
    spans = list(pairwise(low + (high - low) * i / _WIDTH for i in range(_WIDTH + 1)))
    lanes = (
        ("results", [_result_mark(output, a, b) for a, b in spans]),
        ("values", [_value_mark(output, a, b) for a, b in spans]),
        ("trust", [_trust_mark(output, a, b) for a, b in spans]),
    )
    lines = [f"{output.output}, {output.recovery} recovery", *_axis_lines(marks, low, high, _zero_time(impact))]
    lines += [f"{name.ljust(_LABEL)}{' ' * _GAP}{''.join(lane)}".rstrip() for name, lane in lanes]
    return "\n".join(lines)


def _zero_time(impact: Impact) -> int:
    """What the axis counts from: 0 for times of a simulation, else the crash."""
    return 0 if abs(impact.crash.least) < _EARLY else impact.crash.least


def _change_times(impact: Impact, output: OutputImpact) -> list[int]:
    """The times at which something changes, rising."""
    found = {impact.crash.least, impact.restart}
    for phase in output.phases:
        found |= {phase.from_, phase.to}
    for span in output.trust:
        found |= {span.from_, span.to}
    return sorted(time for time in found if time is not None)


def _axis_lines(marks: list[int], low: int, high: int, zero: int) -> list[str]:
    """Seconds after `zero` over ticks; a label that would touch the one before is left out, its tick stays."""
    numbers, ticks = [" "] * (_WIDTH + 8), [" "] * (_WIDTH + 1)
    free = -_LABEL
    for mark in marks:
        at = round((mark - low) * _WIDTH / (high - low))
        ticks[at] = "|"
        text = f"{round((mark - zero) / 1000, 2):g}"
        if at >= free and at + len(text) <= len(numbers):
            numbers[at : at + len(text)] = text
            free = at + len(text) + 1
    indent = " " * (_LABEL + _GAP)
    unit = "seconds" if zero == 0 else "s, crash 0"
    return [f"{unit.ljust(_LABEL)}{' ' * _GAP}{''.join(numbers)}".rstrip(), f"{indent}{''.join(ticks)}".rstrip()]


def _phase_within(output: OutputImpact, name: str, low: float, high: float) -> Phase | None:
    """The phase of a name that covers a part of [low, high)."""
    for phase in output.phases:
        if phase.phase == name and phase.from_ < high and (phase.to is None or phase.to > low):
            return phase
    return None


def _result_mark(output: OutputImpact, low: float, high: float) -> str:
    """How often each time comes in the results (Figure 5)."""
    if _phase_within(output, "offline", low, high) is not None:
        return "."
    return "2" if _phase_within(output, "duplicate", low, high) is not None else "1"


def _value_mark(output: OutputImpact, low: float, high: float) -> str:
    """Whether results are those of a run without failure (Figure 4)."""
    phase = _phase_within(output, "convergence", low, high)
    if phase is not None:
        return "?" if phase.kind == "unknown" else "x"
    return " " if _phase_within(output, "offline", low, high) is not None else "="


def _trust_mark(output: OutputImpact, low: float, high: float) -> str:
    """The trust of what was sent last (Figure 6)."""
    here = [s for s in output.trust if s.from_ < high and (s.to is None or s.to > low)]
    if here:
        return max((_TRUST_MARKS[s.trust] for s in here), key="+?-".index)
    return " " if _phase_within(output, "offline", low, high) is not None else "+"
