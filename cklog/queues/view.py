"""Views of extents, of eventual checkpoints, and of how extent and replay went over time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cklog.model.eventual import EventualCheckpoint, EventualReplay, Extent
from cklog.model.verdict import Answer
from cklog.model.wording import agreeing, many
from cklog.queues.findings import targets_of
from cklog.queues.over_time.timeline import ExtentOverTime
from cklog.render.curve import figure
from cklog.render.view import Section, View, section

_PROOF = {
    "proven": "Proven by the queue itself.",
    "after-replay": "Records are missing: the state is exact only after the replay.",
    "lost": "NOT restorable from here: part of the state is lost.",
}

_BREACHES_SHOWN = 10
"""Stretches over a target in a table; JSON has more of them."""


def extent_view(answer: Answer[Extent]) -> View:
    """Show how long the extent is, what it is made of, and which windows hold T back."""
    found = answer.result
    size = f" ({found.bytes:,} bytes)" if found.bytes is not None else ""
    where = f", records {found.from_} to {found.to}" if found.from_ is not None else ""
    lead = (
        f"{_subtask_name(found)}: {many(found.open_windows, 'open window', grouped=True)}; the extent is "
        f"{many(found.records, 'record', grouped=True)}{size}"
        f"{where}. {_PROOF[found.proof]}"
    )
    made = section("Made of", ("type", "records"), [(name, count) for name, count in found.by_type.items() if count])
    slow = section(
        "Oldest footprints",
        ("window", "t", "behind"),
        [(o["window"], o["t"], (found.t_c or 0) - o["t"]) for o in found.oldest],
    )
    times = section("Times", ("T", "t_c"), [(_time_or_start(found.T), _json_cell(found.t_c))])
    sections = (times, made, slow, _upstream(found.replay))
    return View(lead, tuple(s for s in sections if s.rows), (_replay_note(found.replay),))


def eventual_checkpoint_view(answer: Answer[EventualCheckpoint]) -> View:
    """Show what to load, what to replay, and what the replay ignores."""
    found = answer.result
    lead = (
        f"{_subtask_name(found)} as of t_c = {_json_cell(found.t_c)}: load "
        f"{many(len(found.windows), 'window', grouped=True)}, then replay from "
        f"T = {_time_or_start(found.T)} inclusive. {_PROOF[found.proof]}"
    )
    windows = [tuple(map(_json_cell, window.values())) for window in found.windows]
    closed = [tuple(map(_json_cell, window.values())) for window in found.closed]
    sections = (
        section("Load", ("window", "type", "t", "input", "state"), windows),
        section("Closed since T: ignore too", ("window", "t", "input"), closed),
        _upstream(found.replay),
    )
    notes = [_replay_note(found.replay)]
    if found.windows or found.closed:
        by = "t" if found.T_input is None else "input"
        notes.append(f"during the replay each window listed ignores tuples up to and including its own {by}")
    if found.emitted:
        there = f"{many(found.emitted, 'record')} of type emit since T {agreeing(found.emitted, 'are')} in the queue"
        notes.append(f"{there} already: do not write {'it' if found.emitted == 1 else 'them'} again")
    return View(lead, tuple(s for s in sections if s.rows), tuple(notes))


def over_time_view(answer: Answer[ExtentOverTime]) -> View:
    """Show the curves, then stretches over a target, then the footprints that held T back; as rows, the samples."""
    found = answer.result
    sections = (_breaches(found), _slow_footprints(found))
    names = ("record", "pos", "ts", "extent", "replay", "replay_ms", "open_windows", "oldest")
    samples = Section("Samples", names, tuple(tuple(row[name] for name in names) for row in found.samples))
    return View(_over_time_headline(found), tuple(s for s in sections if s.rows), figures=_curves(found), data=samples)


def _subtask_name(found: Extent | EventualCheckpoint | ExtentOverTime) -> str:
    return f"{found.operator}/{found.subtask}"


def _time_or_start(ts: int | None) -> int | str:
    return "the start of the input" if ts is None else ts


def _json_cell(value: Any) -> int | str:
    """Return a JSON value as a cell: numbers and strings as they are, others as JSON, none as "-"."""
    if value is None:
        return "-"
    return value if isinstance(value, int | str) else json.dumps(value, ensure_ascii=False)


def _upstream(replay: EventualReplay) -> Section:
    rows = [(u.channel, _json_cell(u.pos), u.tuples, _json_cell(u.bytes), u.by) for u in replay.upstream]
    starts = (f"{u.operator}/{u.subtask}: from {_offset_unit(u.path)} {u.offset} of {u.path}" for u in replay.upstream)
    title, columns = "Replay from the upstream queue", ("channel", "from", "tuples", "bytes", "found by")
    return section(title, columns, rows, "; ".join(starts))


def _offset_unit(path: str) -> str:
    return "row" if path.endswith(".parquet") else "byte"


def _replay_note(replay: EventualReplay) -> str:
    """Say from where to replay and how much, e.g. "replay from input 7 (timestamp 70) inclusive: 3 tuples …"."""
    if replay.from_ts is None:
        since = "the start of the input"
    elif replay.from_input is None:
        since = f"timestamp {replay.from_ts} inclusive"
    elif isinstance(replay.from_input, int):
        since = f"input {replay.from_input} (timestamp {replay.from_ts}) inclusive"
    else:
        since = ", ".join(f"input {n} of {name}" for name, n in replay.from_input.items()) + " inclusive"
    plural = "" if replay.tuples == 1 else "s"
    count = "" if replay.tuples is None else f": {replay.tuples:,} tuple{plural} up to the tail"
    size = "" if replay.bytes is None else f", {replay.bytes:,} bytes"
    return f"replay from {since}{count}{size}"


def _over_time_headline(found: ExtentOverTime) -> str:
    name = _subtask_name(found)
    if not found.records:
        return f"{name}: the queue holds no record."
    parts = [_figures_sentence("extent", found.extent, "records"), _figures_sentence("replay", *_replay_figures(found))]
    lead = f"{name}, {found.records:,} records in {_span_s(found):,.3f} s: {'; '.join(parts)}."
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


def _replay_figures(found: ExtentOverTime) -> tuple[dict[str, Any], str]:
    """Return the mean, largest and last replay, and their unit: tuples if these can be counted, else ms."""
    return (found.replay_ms, "ms") if found.replay is None else (found.replay, "tuples")


def _figures_sentence(what: str, figures: dict[str, Any], unit: str) -> str:
    return (
        f"{what} {figures['mean']:,.0f} {unit} on average, {figures['max']:,} at most, {figures['last']:,} at the end"
    )


def _span_s(found: ExtentOverTime) -> float:
    """Return the seconds from the first record to the last."""
    return ((found.to_ts or 0) - (found.from_ts or 0)) / 1000


def _breaches(found: ExtentOverTime) -> Section:
    rows = found.breaches[:_BREACHES_SHOWN]
    since = _aligned_seconds(row["from_ts"] - (found.from_ts or 0) for row in rows)
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


def _slow_footprints(found: ExtentOverTime) -> Section:
    written = _aligned_seconds(row["ts"] - (found.from_ts or 0) for row in found.slow)
    cells = [
        (row["window"], after, row["record"], row["held_records"], row["held_ms"], row["extent"])
        for after, row in zip(written, found.slow, strict=True)
    ]
    columns = ("window", "written after s", "record", "held records", "held ms", "extent")
    return section("What held T back for longest", columns, cells)


def _aligned_seconds(milliseconds: Iterable[int]) -> list[str]:
    """Return times in ms as seconds, all texts of one width."""
    texts = [f"{ms / 1000:,.3f}" for ms in milliseconds]
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _curves(found: ExtentOverTime) -> tuple[str, ...]:
    """Draw extent and replay against the seconds since the first record; nothing where there is no curve to see."""
    seconds = [(row["ts"] - (found.from_ts or 0)) / 1000 for row in found.samples]
    which = "replay_ms" if found.replay is None else "replay"
    unit = _replay_figures(found)[1]
    curves = (
        ("Extent in records", [row["extent"] for row in found.samples], found.max_extent),
        (f"Replay in {unit}", [row[which] for row in found.samples], None if unit == "ms" else found.max_replay),
    )
    return tuple(
        figure(title, seconds, values, target)
        for title, values, target in curves
        if max(seconds, default=0) > 0 and max(values) > 0
    )
