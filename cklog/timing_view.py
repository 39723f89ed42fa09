"""When to checkpoint, for people: bytes by each way of choosing, the moments, the threshold, the curve."""

from __future__ import annotations

from typing import Any

from cklog.advise_timing import PeriodTiming, TimingAdvice, Way
from cklog.model import Answer
from cklog.text_figure import figure
from cklog.view import Section, View, section

_SHOWN = 10
"""Rows of periods and of subtasks in a table; JSON has all."""

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))

_MEANING = {
    "aware": "when the state is about to rise from below s_max",
    "oracle": "when it was least, known afterwards",
    "random": "at any moment of each period",
    "periodic": "every subtask on its own, in turn",
}


def timing_view(answer: Answer) -> View:
    """The curve, then what each way of choosing costs, the moments, and the dynamic HAUs; as rows, the periods."""
    found: TimingAdvice = answer.result
    scale = _scale(found)
    sections = [_ways(found, scale), _moments(found, scale)]
    if found.s_max is not None:
        sections.append(_dynamic(found, scale))
    names = (
        *("period", "from_ms", "to_ms", "alert", "fell", "forced", "time", "bytes"),
        *("oracle_time", "oracle_bytes", "random_time", "random_bytes", "periodic_bytes"),
    )
    rows = tuple(tuple(getattr(p, name) for name in names) for p in found.periods)
    drawn = _figure(found, scale)
    return View(
        _headline(found, scale),
        tuple(sections),
        (*_notes(found, scale), *found.notes),
        (drawn,) if drawn else (),
        Section("Periods", names, rows),
    )


def _scale(found: TimingAdvice) -> tuple[int, str]:
    """The unit in which the largest checkpoint has two digits or more before the point."""
    largest = max(way.largest for way in found.ways)
    return next((unit for unit in _UNITS if largest >= 10 * unit[0]), _UNITS[-1])


def _size(size: float, scale: tuple[int, str]) -> str:
    return f"{size / scale[0]:,.1f}"


def _spoken(size: float, scale: tuple[int, str]) -> str:
    return f"{_size(size, scale)} {scale[1]}"


def _after(found: TimingAdvice, time: int) -> str:
    return f"{(time - found.from_ms) / 1000:,.3f}"


def _way(found: TimingAdvice, name: str) -> Way:
    return next(way for way in found.ways if way.name == name)


def _headline(found: TimingAdvice, scale: tuple[int, str]) -> str:
    periodic, oracle = _way(found, "periodic"), _way(found, "oracle")
    best = (
        f"the best moments take {_spoken(oracle.bytes, scale)}, periodic checkpoints {_spoken(periodic.bytes, scale)}"
    )
    count = f"{len(found.periods):,} {'checkpoint' if len(found.periods) == 1 else 'checkpoints'}"
    if found.s_max is None:
        return f"No subtask is a dynamic HAU; {count}: {best}."
    lead = f"Checkpoint when the state is at most {_spoken(found.s_max, scale)} (s_max) and about to rise"
    return f"{lead}; {count}: {_spoken(_way(found, 'aware').bytes, scale)}; {best}."


def _ways(found: TimingAdvice, scale: tuple[int, str]) -> Section:
    unit = scale[1]
    rows = tuple(
        (
            way.name,
            _size(way.bytes, scale),
            _size(way.average, scale),
            _size(way.largest, scale),
            _percent(way.of_periodic),
            _percent(way.over_oracle),
            _MEANING[way.name],
        )
        for way in found.ways
    )
    columns = ("moments", unit, f"{unit} each", f"{unit} at most", "of periodic", "of oracle", "")
    random = f"random moments take {_spoken(found.expected_random, scale)} each in the long run"
    return Section(f"Bytes in {len(found.periods):,} periods of {found.period_ms / 1000:g} s", columns, rows, random)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _moments(found: TimingAdvice, scale: tuple[int, str]) -> Section:
    unit = scale[1]
    rows: list[tuple[Any, ...]] = [_moment(found, p, scale) for p in found.periods[:_SHOWN]]
    rest = len(found.periods) - len(rows)
    columns = ("from s", "alert s", "because", f"ICRs {unit}/s", "chosen s", unit, "oracle s", f"{unit} ")
    note = "seconds after the first sample" + (f"; and {rest:,} more periods, see --json" if rest > 0 else "")
    return section("Moments", columns, rows, note)


def _moment(found: TimingAdvice, p: PeriodTiming, scale: tuple[int, str]) -> tuple[str, ...]:
    because = "-" if p.alert is None else "the period begins" if p.fell is None else f"{p.fell} fell by half"
    icrs = [f"{report.icr / scale[0]:+,.1f}" for report in p.reports]
    if p.heard > len(icrs) and len(icrs) > 1:
        icrs.insert(-1, "…")
    return (
        _after(found, p.from_ms),
        "-" if p.alert is None else _after(found, p.alert),
        because,
        ", ".join(icrs) or "-",
        "-" if p.time is None else _after(found, p.time) + (" (end)" if p.forced else ""),
        "-" if p.bytes is None else _size(p.bytes, scale),
        _after(found, p.oracle_time),
        _size(p.oracle_bytes, scale),
    )


def _dynamic(found: TimingAdvice, scale: tuple[int, str]) -> Section:
    moving = sorted((s for s in found.subtasks if s.dynamic), key=lambda s: -s.average)
    rows = [
        (
            f"{s.operator}/{s.subtask}",
            _size(s.least, scale),
            _size(s.average, scale),
            f"{s.samples:,}",
            f"{s.turning_points:,}",
        )
        for s in moving[:_SHOWN]
    ]
    columns = ("subtask", f"least {scale[1]}", f"average {scale[1]}", "samples", "turning points")
    rest = len(moving) - len(rows)
    note = f"{len(moving):,} of {len(found.subtasks):,} subtasks: their least size is below half of their average"
    return section("Dynamic HAUs", columns, rows, note + (f"; {rest:,} are not shown" if rest else ""))


def _notes(found: TimingAdvice, scale: tuple[int, str]) -> list[str]:
    if found.s_max is None or found.s_min is None or found.highest is None:
        return []
    profiled = f"{found.profile_periods:,} profiled {'period' if found.profile_periods == 1 else 'periods'}"
    least = f"the {profiled}: least sums from {_spoken(found.s_min, scale)} (s_min) to {_spoken(found.highest, scale)}"
    if found.alpha is None or found.relaxation is None:
        factor = "the relaxation factor is infinite"
    elif found.relaxation > found.alpha:
        factor = f"relaxation factor {found.alpha:.1%}, raised to {found.relaxation:.0%}"
    else:
        factor = f"relaxation factor {found.alpha:.1%}"
    return [f"{least}; {factor}: s_max is {_spoken(found.s_max, scale)}", *_missed(found, scale)]


def _missed(found: TimingAdvice, scale: tuple[int, str]) -> list[str]:
    """Where the oracle found a better moment: the rule takes the first minimum in alert mode, by design."""
    missed = [p for p in found.periods if p.bytes is not None and p.bytes > p.oracle_bytes]
    if not missed:
        return ["the oracle finds no better moment in any period"]
    worst = max(missed, key=lambda p: ((p.bytes or 0) - p.oracle_bytes, -p.period))
    less = _spoken((worst.bytes or 0) - worst.oracle_bytes, scale)
    periods = f"{len(missed):,} {'period' if len(missed) == 1 else 'periods'}"
    return [
        f"the oracle does better in {periods}, most at {_after(found, worst.oracle_time)} s, by {less}: "
        "the first minimum in alert mode is taken, whatever comes after"
    ]


def _figure(found: TimingAdvice, scale: tuple[int, str]) -> str:
    """The dynamic HAUs' sum against seconds since the first sample, with s_max."""
    seconds = [(time - found.from_ms) / 1000 for time, _ in found.curve]
    values = [size / scale[0] for _, size in found.curve]
    if max(values) <= 0:
        return ""
    whose = "dynamic HAUs" if found.s_max is not None else "subtasks"
    limit = None if found.s_max is None else round(found.s_max / scale[0])
    return figure(f"State of the {whose} in {scale[1]}", seconds, values, limit, "s_max")
