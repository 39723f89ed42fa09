"""How extent and replay went, for people: what held T back, where a target was broken, and the curves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from cklog.model import Answer
from cklog.over_time import ExtentOverTime
from cklog.over_time_findings import targets_of
from cklog.view import Section, View, section

_SHOWN = 10
"""Stretches over a target in a table; JSON has more of them."""

_ROWS, _TICKS, _TICK_WIDTH, _LABEL_WIDTH = 12, 6, 10, 10
"""A figure has up to 12 rows and 6 ticks of 10 columns each: with labels it is 80 columns wide."""

_BLANK = "\u2800"
"""The empty cell of a curve, which not every font has."""


def over_time_view(answer: Answer) -> View:
    """The curves, then stretches over a target, then the footprints that held T back; as rows, the samples."""
    found: ExtentOverTime = answer.result
    sections = (_breaches(found), _slow(found))
    names = ("record", "pos", "ts", "extent", "replay", "replay_ms", "open_windows", "oldest")
    samples = Section("Samples", names, tuple(tuple(row[name] for name in names) for row in found.samples))
    return View(_headline(found), tuple(s for s in sections if s.rows), figures=_figures(found), data=samples)


def _headline(found: ExtentOverTime) -> str:
    name = f"{found.operator}/{found.subtask}"
    if not found.records:
        return f"{name}: the queue holds no record."
    parts = [_summary("extent", found.extent, "records"), _summary("replay", *_replay(found))]
    lead = f"{name}, {found.records:,} records in {_span(found):,.3f} s: {'; '.join(parts)}."
    targets = targets_of(found)
    if not targets:
        return lead
    if not found.breached["records"]:
        return f"{lead} At no record {targets}."
    share = found.breached["records"] / found.records
    first = found.breaches[0]["from_ts"] - (found.from_ts or 0)
    count = found.breached["stretches"]
    times = "once" if count == 1 else f"{count:,} times"
    when = f"{times}, at {share:.1%} of the records, first after {first / 1000:,.3f} s"
    return f"{lead} {targets[:1].upper()}{targets[1:]} {when}."


def _replay(found: ExtentOverTime) -> tuple[dict[str, Any], str]:
    return (found.replay_ms, "ms") if found.replay is None else (found.replay, "tuples")


def _summary(what: str, figures: dict[str, Any], unit: str) -> str:
    return (
        f"{what} {figures['mean']:,.0f} {unit} on average, {figures['max']:,} at most, {figures['last']:,} at the end"
    )


def _span(found: ExtentOverTime) -> float:
    """Seconds from the first record to the last."""
    return ((found.to_ts or 0) - (found.from_ts or 0)) / 1000


def _breaches(found: ExtentOverTime) -> Section:
    rows = found.breaches[:_SHOWN]
    since = _seconds(row["from_ts"] - (found.from_ts or 0) for row in rows)
    cells = [
        (
            after,
            row["from_record"],
            row["to_record"] - row["from_record"] + 1,
            row["to_ts"] - row["from_ts"],
            row["extent"],
            "-" if row["replay"] is None else row["replay"],
            row["oldest"] or "-",
        )
        for after, row in zip(since, rows, strict=True)
    ]
    rest = found.breached["stretches"] - len(rows)
    note = f"and {rest:,} more; --json lists the first {len(found.breaches)}" if rest else ""
    columns = ("after s", "record", "records", "ms", "extent", "replay", "held back by")
    return section("Over the target", columns, cells, note)


def _slow(found: ExtentOverTime) -> Section:
    written = _seconds(row["ts"] - (found.from_ts or 0) for row in found.slow)
    cells = [
        (row["window"], after, row["record"], row["held_records"], row["held_ms"], row["extent"])
        for after, row in zip(written, found.slow, strict=True)
    ]
    columns = ("window", "written after s", "record", "held records", "held ms", "extent")
    return section("What held T back for longest", columns, cells)


def _seconds(milliseconds: Iterable[int]) -> list[str]:
    """As seconds, aligned."""
    texts = [f"{ms / 1000:,.3f}" for ms in milliseconds]
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _figures(found: ExtentOverTime) -> tuple[str, ...]:
    """Extent and replay against the seconds since the first record; none where there is no curve to see."""
    seconds = [(row["ts"] - (found.from_ts or 0)) / 1000 for row in found.samples]
    which = "replay_ms" if found.replay is None else "replay"
    unit = _replay(found)[1]
    curves = (
        ("Extent in records", [row["extent"] for row in found.samples], found.max_extent),
        (f"Replay in {unit}", [row[which] for row in found.samples], None if unit == "ms" else found.max_replay),
    )
    return tuple(
        figure(title, seconds, values, target)
        for title, values, target in curves
        if max(seconds, default=0) > 0 and max(values) > 0
    )


def figure(title: str, seconds: list[float], values: list[int], target: int | None) -> str:
    """A curve as text, 80 columns wide at most, with a dashed line at `target` unless that is far above."""
    from plotille import Figure  # here, because only people need it

    top, right = max(values), max(seconds)
    near = target is not None and target <= 2 * top
    if target is not None:
        title += f" (- - target {target:,})" if near else f" (target {target:,})"
    top = max(top, target or 0) if near else top
    row = _step(max(top / _ROWS, 1), (1, 2, 5) if top < 10 * _ROWS else (1, 2, 2.5, 4, 5))  # labels are integers
    tick = _step(right / _TICKS, (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8))
    rows, ticks = max(math.ceil(top / row), 5), math.ceil(right / tick - 1e-9)
    plot = Figure()
    plot.width, plot.height = ticks * _TICK_WIDTH, rows
    plot.with_colors, plot.origin, plot.linesep = False, False, "\n"
    plot.x_label, plot.y_label = "s", ""
    plot.set_x_limits(0, ticks * tick)
    plot.set_y_limits(0, rows * row)
    plot.y_ticks_fkt = lambda value, _: _label(round(value), _LABEL_WIDTH).rjust(_LABEL_WIDTH)
    plot.x_ticks_fkt = lambda value, _: _label(value, _TICK_WIDTH - 1)
    plot.plot(seconds, values)
    lines = plot.show().splitlines()[1:]  # the first is the name of the y axis
    if near:
        at = rows - int((target or 0) // row)
        lines[at] = _dashed(lines[at], plot.width)
    return "\n".join(line.replace(_BLANK, " ").rstrip() for line in (title, *lines))


def _dashed(line: str, width: int) -> str:
    """A row of a figure with dashes where its curve is not."""
    cells = line[_LABEL_WIDTH + 3 :].ljust(width, _BLANK)
    dashes = ("-" if cell == _BLANK and i % 2 == 0 else cell for i, cell in enumerate(cells))
    return line[: _LABEL_WIDTH + 3].ljust(_LABEL_WIDTH + 3) + "".join(dashes)


def _label(value: float, width: int) -> str:
    """A number in at most `width` characters, never cut.

    >>> _label(20_000, 9), _label(0.1 + 0.2, 9), _label(200_000_000, 9), _label(200_000_000_000, 9)
    ('20,000', '0.3', '200000000', '2e+11')
    """
    texts = (f"{value:,.10g}", f"{value:.10g}", f"{value:.3g}")
    return next((text for text in texts if len(text) <= width), texts[-1])


def _step(least: float, bases: Iterable[float]) -> float:
    """The smallest round number that is not below `least`.

    >>> _step(0.13, (1, 2, 5)), _step(290, (1, 2, 5)), _step(0, (1, 2, 5))
    (0.2, 500, 1)
    """
    if least <= 0:
        return 1
    power = math.floor(math.log10(least))
    candidates: list[float] = [
        base * 10**p if p >= 0 else base / 10**-p for p in (power, power + 1) for base in sorted(bases)
    ]
    return next(c for c in candidates if c >= least)
