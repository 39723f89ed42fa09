"""The view of `advise timing`: bytes by each way of choosing, the moments, the threshold, the curve."""

from __future__ import annotations

from typing import Any

from cklog.advise.timing.answer import PeriodTiming, TimingAdvice, Way
from cklog.model.verdict import Answer
from cklog.model.wording import ByteUnit, unit_for
from cklog.render.curve import figure
from cklog.render.view import Section, View, section

_SHOWN = 10
"""Rows of periods and of subtasks in a table; JSON has all."""

_MEANING = {
    "aware": "when the state is about to rise from below s_max",
    "oracle": "when it was least, known afterwards",
    "random": "at any moment of each period",
    "periodic": "every subtask on its own, in turn",
    "own": "every subtask when its own state is least, known afterwards; not one common moment",
}


def timing_view(answer: Answer[TimingAdvice]) -> View:
    """Show the curve, what each way of choosing costs, the moments, and the dynamic HAUs; as rows, the periods."""
    found = answer.result
    unit = _unit(found)
    sections = [_ways(found, unit), _moments(found, unit)]
    if found.s_max is not None:
        sections.append(_dynamic_haus(found, unit))
    names = (
        *("period", "from_ms", "to_ms", "alert", "fell", "forced", "time", "bytes"),
        *("oracle_time", "oracle_bytes", "random_time", "random_bytes", "periodic_bytes"),
    )
    rows = tuple(tuple(getattr(p, name) for name in names) for p in found.periods)
    drawn = _figure(found, unit)
    return View(
        headline=_headline(found, unit),
        sections=tuple(sections),
        notes=(*_notes(found, unit), *found.notes),
        figures=(drawn,) if drawn else (),
        data=Section("Periods", names, rows),
    )


def _unit(found: TimingAdvice) -> ByteUnit:
    return unit_for(max(way.largest for way in found.ways))


def _seconds_after_start(found: TimingAdvice, time: int) -> str:
    """Return a time in ms as seconds since the first sample, e.g. "12.5"."""
    return f"{(time - found.from_ms) / 1000:,.3f}".rstrip("0").rstrip(".")


def _way_named(found: TimingAdvice, name: str) -> Way:
    return next(way for way in found.ways if way.name == name)


def _headline(found: TimingAdvice, unit: ByteUnit) -> str:
    periodic, oracle = _way_named(found, "periodic"), _way_named(found, "oracle")
    best = f"the best moments take {unit.spoken(oracle.bytes)}, periodic checkpoints {unit.spoken(periodic.bytes)}"
    count = f"{len(found.periods):,} {'checkpoint' if len(found.periods) == 1 else 'checkpoints'}"
    if found.s_max is None:
        return f"No subtask is a dynamic HAU; {count}: {best}."
    lead = f"Checkpoint when the state is at most {unit.spoken(found.s_max)} (s_max) and about to rise"
    return f"{lead}; {count}: {unit.spoken(_way_named(found, 'aware').bytes)}; {best}."


def _ways(found: TimingAdvice, unit: ByteUnit) -> Section:
    rows = tuple(
        (
            way.name,
            unit.number(way.bytes),
            unit.number(way.average),
            unit.number(way.largest),
            _percent(way.of_periodic),
            _percent(way.over_oracle),
        )
        for way in found.ways
    )
    columns = ("moments", unit.name, f"{unit.name} each", f"{unit.name} at most", "of periodic", "of oracle")
    meaning = "; ".join(f"{way.name}: {_MEANING[way.name]}" for way in found.ways)
    random = f"random moments take {unit.spoken(found.expected_random)} each in the long run"
    title = f"Bytes in {len(found.periods):,} periods of {found.period_ms / 1000:g} s"
    return Section(title, columns, rows, f"{meaning}; {random}")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _moments(found: TimingAdvice, unit: ByteUnit) -> Section:
    rows: list[tuple[Any, ...]] = [_moment(found, p, unit) for p in found.periods[:_SHOWN]]
    rest = len(found.periods) - len(rows)
    columns = ("from s", "alert s", "because", f"ICRs {unit.name}/s", "chosen", unit.name, "oracle", f"{unit.name} ")
    note = "seconds after the first sample; alert mode begins with the period, or when a size fell by more than half"
    note += f"; and {rest:,} more periods, see --json" if rest > 0 else ""
    return section("Moments", columns, rows, note)


def _moment(found: TimingAdvice, p: PeriodTiming, unit: ByteUnit) -> tuple[str, ...]:
    icrs = [f"{report.icr / unit.bytes:+,.1f}" for report in p.reports]
    if p.heard > 2:
        icrs[1:-1] = ["…"]
    return (
        _seconds_after_start(found, p.from_ms),
        "-" if p.alert is None else _seconds_after_start(found, p.alert),
        _reason(p),
        " ".join(icrs) or "-",
        "-" if p.time is None else _seconds_after_start(found, p.time) + (" (end)" if p.forced else ""),
        "-" if p.bytes is None else unit.number(p.bytes),
        _seconds_after_start(found, p.oracle_time),
        unit.number(p.oracle_bytes),
    )


def _reason(p: PeriodTiming) -> str:
    """Say why alert mode began."""
    if p.alert is None:
        return "-"
    return "begin" if p.fell is None else f"{p.fell} fell"


def _dynamic_haus(found: TimingAdvice, unit: ByteUnit) -> Section:
    moving = sorted((s for s in found.subtasks if s.dynamic), key=lambda s: -s.average)
    rows = [
        (
            f"{s.operator}/{s.subtask}",
            unit.number(s.least),
            unit.number(s.average),
            f"{s.samples:,}",
            f"{s.turning_points:,}",
        )
        for s in moving[:_SHOWN]
    ]
    columns = ("subtask", f"least {unit.name}", f"average {unit.name}", "samples", "turning points")
    rest = len(moving) - len(rows)
    note = f"{len(moving):,} of {len(found.subtasks):,} subtasks: their least size is below half of their average"
    return section("Dynamic HAUs", columns, rows, note + (f"; {rest:,} are not shown" if rest else ""))


def _notes(found: TimingAdvice, unit: ByteUnit) -> list[str]:
    if found.s_max is None or found.s_min is None or found.highest is None:
        return []
    profiled = f"{found.profile_periods:,} profiled {'period' if found.profile_periods == 1 else 'periods'}"
    least = f"the {profiled}: least sums from {unit.spoken(found.s_min)} (s_min) to {unit.spoken(found.highest)}"
    if found.alpha is None or found.relaxation is None:
        factor = "the relaxation factor is infinite"
    elif found.relaxation > found.alpha:
        factor = f"relaxation factor {found.alpha:.1%}, raised to {found.relaxation:.0%}"
    else:
        factor = f"relaxation factor {found.alpha:.1%}"
    return [f"{least}; {factor}: s_max is {unit.spoken(found.s_max)}", *_missed(found, unit)]


def _missed(found: TimingAdvice, unit: ByteUnit) -> list[str]:
    """Say where the oracle found a better moment: the rule takes the first minimum in alert mode, by design."""
    missed = [(p.bytes - p.oracle_bytes, p) for p in found.periods if p.bytes is not None and p.bytes > p.oracle_bytes]
    if not missed:
        return ["the oracle finds no better moment in any period"]
    lost, worst = max(missed, key=lambda pair: (pair[0], -pair[1].period))
    periods = f"{len(missed):,} {'period' if len(missed) == 1 else 'periods'}"
    at = _seconds_after_start(found, worst.oracle_time)
    return [
        f"the oracle does better in {periods}, most at {at} s, by {unit.spoken(lost)}: "
        "the first minimum in alert mode is taken, whatever comes after"
    ]


def _figure(found: TimingAdvice, unit: ByteUnit) -> str:
    """Draw the dynamic HAUs' sum against seconds since the first sample, with s_max; "" if there is nothing to see."""
    seconds = [(time - found.from_ms) / 1000 for time, _ in found.curve]
    values = [size / unit.bytes for _, size in found.curve]
    if max(values) <= 0:
        return ""
    whose = "dynamic HAUs" if found.s_max is not None else "subtasks"
    limit = None if found.s_max is None else round(found.s_max / unit.bytes)
    return figure(f"State of the {whose} in {unit.name}", seconds, values, limit, "s_max")
