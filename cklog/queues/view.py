"""Extents and eventual checkpoints as sentences and rows."""

from __future__ import annotations

import json
from typing import Any

from cklog.model.eventual import EventualCheckpoint, EventualReplay, Extent
from cklog.model.verdict import Answer
from cklog.render.view import Section, View, section

_PROOF = {
    "proven": "Proven by the queue itself.",
    "after-replay": "Records are missing: the state is exact only after the replay.",
    "lost": "NOT restorable from here: part of the state is lost.",
}


def extent_view(answer: Answer[Extent]) -> View:
    """How long the extent is, what it is made of, and which windows hold T back."""
    found = answer.result
    size = f" ({found.bytes:,} bytes)" if found.bytes is not None else ""
    where = f", records {found.from_} to {found.to}" if found.from_ is not None else ""
    lead = (
        f"{_name(found)}: {found.open_windows:,} open windows; the extent is {found.records:,} records{size}{where}. "
        f"{_PROOF[found.proof]}"
    )
    made = section("Made of", ("type", "records"), [(name, count) for name, count in found.by_type.items() if count])
    slow = section(
        "Oldest footprints",
        ("window", "t", "behind"),
        [(o["window"], o["t"], (found.t_c or 0) - o["t"]) for o in found.oldest],
    )
    times = section("Times", ("T", "t_c"), [(_or_start(found.T), _cell(found.t_c))])
    return View(
        lead, tuple(s for s in (times, made, slow, _upstream(found.replay)) if s.rows), (_replay(found.replay),)
    )


def eventual_checkpoint_view(answer: Answer[EventualCheckpoint]) -> View:
    """What to load, what to replay, what to ignore."""
    found = answer.result
    lead = (
        f"{_name(found)} as of t_c = {_cell(found.t_c)}: load {len(found.windows):,} windows, then replay from "
        f"T = {_or_start(found.T)} inclusive. {_PROOF[found.proof]}"
    )
    windows = section(
        "Load", ("window", "type", "t", "input", "state"), [tuple(map(_cell, w.values())) for w in found.windows]
    )
    closed = section(
        "Closed since T: ignore too", ("window", "t", "input"), [tuple(map(_cell, w.values())) for w in found.closed]
    )
    notes = [_replay(found.replay)]
    if found.windows or found.closed:
        by = "t" if found.T_input is None else "input"
        notes.append(f"during the replay each window listed ignores tuples up to and including its own {by}")
    if found.emitted:
        notes.append(f"{found.emitted} records of type emit since T are in the queue already: do not write them again")
    sections = (windows, closed, _upstream(found.replay))
    return View(lead, tuple(s for s in sections if s.rows), tuple(notes))


def _name(found: Extent | EventualCheckpoint) -> str:
    return f"{found.operator}/{found.subtask}"


def _or_start(ts: int | None) -> Any:
    return "the start of the input" if ts is None else ts


def _cell(value: Any) -> Any:
    if value is None:
        return "-"
    return value if isinstance(value, int | str) else json.dumps(value, ensure_ascii=False)


def _upstream(replay: EventualReplay) -> Section:
    rows = [(u.channel, _cell(u.pos), u.tuples, _cell(u.bytes), u.by) for u in replay.upstream]
    starts = (f"{u.operator}/{u.subtask}: from {_unit(u.path)} {u.offset} of {u.path}" for u in replay.upstream)
    title, columns = "Replay from the upstream queue", ("channel", "from", "tuples", "bytes", "found by")
    return section(title, columns, rows, "; ".join(starts))


def _unit(path: str) -> str:
    return "row" if path.endswith(".parquet") else "byte"


def _replay(replay: EventualReplay) -> str:
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
