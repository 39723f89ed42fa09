"""How extent and replay went, for people: what held T back, where a target was broken, and the curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cklog.model.verdict import Answer
from cklog.queues.over_time.findings import targets_of
from cklog.queues.over_time.timeline import ExtentOverTime
from cklog.render.curve import figure
from cklog.render.view import Section, View, section

_SHOWN = 10
"""Stretches over a target in a table; JSON has more of them."""


def over_time_view(answer: Answer[ExtentOverTime]) -> View:
    """The curves, then stretches over a target, then the footprints that held T back; as rows, the samples."""
    found = answer.result
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
