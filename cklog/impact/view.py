"""The impact of a crash as sentences, rows and drawings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cklog.impact.figure import LEGEND, impact_figure
from cklog.impact.model import BoundedTime, Count, Impact, OutputImpact, Phase, RecoveryTask
from cklog.model.verdict import Answer
from cklog.model.wording import utc
from cklog.render.view import View, section

_EARLY = 10**10
"""Times before that (in April 1970) are seconds of a simulation, and not shown as dates."""

_COLUMNS = ("output", "phase", "from", "to", "results", "are")
_SAYS = {"offline": "missing", "convergence": "wrong", "duplicate": "doubled"}
_KINDS = {
    "none": "no convergence phase",
    "finite": "results converge",
    "infinite": "results never converge",
    "unknown": "nobody can say whether results converge",
}


def impact_view(answer: Answer[Impact | None]) -> View:
    """A headline with the worst, the phases and the trust of each output, guarantees, and the recovery tasks."""
    found = answer.result
    if found is None:
        return View("Nothing can be said: the times of crash and restart contradict each other or are not there.", ())
    phases = [row for output in found.outputs for row in _phases(output)]
    sections = [
        section("Phases", _COLUMNS, phases),
        section("Trust of what is sent after the restart", ("output", "trust", "from", "to", "results"), _trust(found)),
        section("Guarantees", ("output", "recovery", "guarantee", "lacks"), _classes(found)),
        section("Operators", ("output", "operator", "class", "why"), _operators(found)),
        section("Recovery, in this order", ("step", "task", "of", "with"), _tasks(found)),
    ]
    figures = [impact_figure(found, output) for output in found.outputs]
    figures += [LEGEND] if figures else []
    headline = f"{_when(found)} " + " ".join(_sentence(output) for output in found.outputs)
    return View(headline.rstrip(), tuple(s for s in sections if s.rows), (*_next(found), *found.notes), tuple(figures))


def _when(found: Impact) -> str:
    crash = f"at {_time(found.crash.least)}" if found.crash.exact else f"between {_bounds(found.crash)}"
    again = "is not back yet" if found.restart is None else f"is back at {_time(found.restart)}"
    return f"The system crashed {crash} and {again}."


def _bounds(moment: BoundedTime) -> str:
    return f"{_time(moment.least)} and {_time(moment.most)}"


def _time(ms: int | None) -> str:
    if ms is None:
        return "-"
    return f"{ms / 1000:,.10g} s" if abs(ms) < _EARLY else utc(ms)


def _sentence(output: OutputImpact) -> str:
    """An output in one sentence."""
    told = [
        f"{_number(count)} {word}"
        for count, word in ((output.missing, "missing"), (output.wrong, "wrong"), (output.doubled, "doubled"))
        if count.most != 0
    ]
    ends = f", right again from {_time(output.first_right)} on" if output.first_right is not None else ""
    what = f"{', '.join(told)} results{ends}" if told else "nothing missing, wrong or doubled"
    return f"{output.output} ({output.recovery} recovery, {_promise(output)}): {what}."


def _promise(output: OutputImpact) -> str:
    return "no guarantee" if output.guarantee == "none" else output.guarantee


def _number(count: Count) -> str:
    """A count, or its bounds.

    >>> _number(Count(9000, 9000)), _number(Count(0, 6000)), _number(Count(7, None)), _number(Count(0, None))
    ('9,000', '0 to 6,000', 'at least 7', 'an unknown number of')
    """
    if count.exact:
        return f"{count.least:,}"
    if count.most is None:
        return f"at least {count.least:,}" if count.least else "an unknown number of"
    return f"{count.least:,} to {count.most:,}"


def _cell(count: Count) -> str:
    return "unknown" if count.most is None and not count.least else _number(count)


def _phases(output: OutputImpact) -> list[tuple[str, ...]]:
    if not output.phases:
        return [(output.output, "none", "-", "-", "-", _KINDS[output.convergence])]
    return [_phase(output, phase) for phase in output.phases]


def _phase(output: OutputImpact, phase: Phase) -> tuple[str, ...]:
    end = _time(phase.to) if phase.to is not None else "no end" if phase.kind == "infinite" else "unknown"
    kind = "" if phase.kind is None else f", {_KINDS[phase.kind]}"
    return (
        output.output,
        phase.phase,
        _time(phase.from_),
        end,
        _cell(phase.results),
        f"{_SAYS[phase.phase]}{kind}",
    )


def _trust(found: Impact) -> list[tuple[str, ...]]:
    return [
        (output.output, span.trust, _time(span.from_), "-" if span.to is None else _time(span.to), _cell(span.results))
        for output in found.outputs
        for span in output.trust
    ]


def _classes(found: Impact) -> list[tuple[str, ...]]:
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


def _operators(found: Impact) -> list[tuple[str, ...]]:
    return [(o.output, c.operator, c.recovery, c.why) for o in found.outputs for c in o.operators]


def _tasks(found: Impact) -> list[tuple[str, ...]]:
    return [(str(task.step), task.task, task.subject, _with(task)) for task in found.tasks]


def _with(task: RecoveryTask) -> str:
    """The logged values of a step in words."""
    words = _WITH.get(task.task)
    return "-" if words is None else words(task.with_)


def _boot(v: dict[str, Any]) -> str:
    at = "" if v["boot"] is None else f" at {_time(v['boot'])}"
    return f"a boot{at} without a shutdown"


def _installed(v: dict[str, Any]) -> str:
    return "logged at its installation" if v["logged"] else "by hand: its installation is not logged"


def _state(v: dict[str, Any]) -> str:
    place = "" if v["uri"] is None else f": {v['uri']}"
    return f"checkpoint {v['checkpoint']}{place}"


def _alignment(v: dict[str, Any]) -> str:
    following = "" if v["next"] is None else f"; the next start is {_time(v['next'])}"
    return f"start {_time(v['start'])}, slide {_time(v['slide'])}{following}"


def _input(v: dict[str, Any]) -> str:
    return "from a checkpoint's element" if v["element"] is None else f"from element {v['element']} of its log"


def _watermark(v: dict[str, Any]) -> str:
    equal = f", with {v['equal']} equal ones before it" if v["equal"] else ""
    return f"up to and including the element at {_time(v['ts'])}{equal}"


def _switch(v: dict[str, Any]) -> str:
    at = "" if v["earliest_watermark"] is None else f": element {v['earliest_watermark']} at the earliest"
    return f"{', '.join(v['modes'])}; watermark: the first logged element not older than the source's{at}"


_WITH: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "detect crash": _boot,
    "install query": _installed,
    "load state": _state,
    "align windows": _alignment,
    "resume input": _input,
    "drop duplicates": _watermark,
    "set query state": lambda v: str(v["state"]),
    "switch to source": _switch,
}


def _next(found: Impact) -> list[str]:
    """What each output needs for the next class."""
    notes = []
    for output in found.outputs:
        names = [support.recovery for support in output.classes]
        for support in output.classes[names.index(output.recovery) + 1 :]:
            if support.missing:
                notes.append(f"{output.output}: {support.recovery} recovery would need {'; '.join(support.missing)}")
                break
    return notes
