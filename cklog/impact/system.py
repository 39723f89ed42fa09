"""The rare events of a system log: boots and shutdowns, queries, connections, window starts; the last elements sent.

    boot, shutdown                         time
    source-connected, source-disconnected  operator   (sink-… likewise)
    query-installed, query-removed         query
    query-state                            query, state
    window-start                           operator, ts: a time that its windows align with
    element-sent                           operator (the output), ts, equal: so many equal elements went before it

The paper's system log (section 3.2) with the watermark of precise recovery (section 5) in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine.reading import Reading
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.verdict import FLAWS

RARE = (
    "boot",
    "shutdown",
    "source-connected",
    "source-disconnected",
    "sink-connected",
    "sink-disconnected",
    "query-installed",
    "query-removed",
    "query-state",
    "window-start",
)
SENT = "element-sent"

_COLUMNS = ("event", "operator", "query", "state", "ts", "equal", "seq", "time", "_path", "_offset")
_KEPT = pa.schema(
    [
        pa.field("event", pa.string()),
        pa.field("operator", pa.string()),
        pa.field("query", pa.string()),
        pa.field("state", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("equal", pa.int64()),
        pa.field("seq", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("_path", pa.string()),
        pa.field("_offset", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a system log.

    `name` : what it is about: an operator or a query
    `time` : when it was logged, in ms
    `ts`, `equal`, `state` : see the module
    """

    event: str
    name: str
    time: int | None
    where: Where
    state: str = ""
    ts: int | None = None
    equal: int | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class SystemLog:
    """The rare events in the order in which they were logged; `damaged`: some may be missing."""

    events: tuple[Event, ...]
    damaged: bool
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


def read_system(tables: OffersRecords, reading: Reading) -> SystemLog:
    """Scan the system log for its rare events."""
    if not tables.has("system"):
        return SystemLog((), False, tables.findings("system"), ())
    table, findings, inputs = read_table(tables, reading, "system", _COLUMNS, _rare_events, _KEPT)
    damaged = any(f.id in FLAWS and f.severity == "error" for f in findings)
    events, misplaced = _in_log_order([_event_of(row) for row in table.to_pylist()])
    return SystemLog(events, damaged, (*findings, *misplaced), tuple(inputs))


def _rare_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rare events, and of elements sent between two of them only each operator's last.

    E.g. boot, a sent, b sent, a sent, shutdown, a sent → boot, b sent, a sent, shutdown, a sent.
    """
    columns = {name: _plain_strings(batch[name]) for name in _COLUMNS}
    rare = pc.is_in(columns["event"], value_set=pa.array(RARE)).to_numpy(zero_copy_only=False)
    sent = pc.fill_null(pc.equal(columns["event"], SENT), False).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(sent)
    kept = np.flatnonzero(rare)
    if len(rows):
        names = pc.fill_null(columns["operator"], "").dictionary_encode().indices.to_numpy(zero_copy_only=False)
        # one key for each operator (`names`) and stretch between rare events (`cumsum`), shape (rows,)
        key = np.cumsum(rare)[rows] * (int(names.max()) + 1) + names[rows]
        _, last = np.unique(key[::-1], return_index=True)  # `unique` finds the first: of reversed keys, the last
        kept = np.sort(np.r_[kept, rows[::-1][last]])
    return pa.RecordBatch.from_arrays([columns[name].take(pa.array(kept)) for name in _COLUMNS], schema=_KEPT)


def _plain_strings(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _event_of(row: dict[str, object]) -> Event:
    about_query = str(row["event"]).startswith("query-")
    name = row["query"] if about_query else row["operator"]
    return Event(
        event=str(row["event"]),
        name=str(name or ""),
        time=_integer_or_none(row["time"]),
        where=Where(str(row["_path"]), _integer_or_none(row["_offset"])),
        state=str(row["state"] or ""),
        ts=_integer_or_none(row["ts"]),
        equal=_integer_or_none(row["equal"]),
        seq=_integer_or_none(row["seq"]),
    )


def _integer_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _in_log_order(events: Sequence[Event]) -> tuple[tuple[Event, ...], list[Finding]]:
    """Events as they were logged: of one file as they stand there; of several by time, where each has one."""
    by_place = sorted(events, key=lambda e: (e.where.path, e.where.offset or 0))
    findings = [*_clocks_backwards(by_place), *_boots_without_times(by_place)]
    files = {e.where.path for e in events}
    if len(files) > 1 and all(e.time is not None for e in events):
        by_place.sort(key=lambda e: e.time or 0)  # stable: the order within a file stays where times are equal
    return tuple(by_place), findings


def _clocks_backwards(events: Sequence[Event]) -> list[Finding]:
    """Findings about clocks that run backwards within a file."""
    found: list[Finding] = []
    latest: dict[str, Event] = {}
    for event in events:
        before = latest.get(event.where.path)
        if event.time is None:
            continue
        if before is not None and before.time is not None and event.time < before.time:
            message = (
                f"the clock runs backwards: {event.event} at {event.time} ms is logged after {before.event} at "
                f"{before.time} ms; times of crash and restart cannot be taken from here"
            )
            found.append(
                Finding("clock-backwards", "error", event.where.path, message, where=(event.where,), effect="none")
            )
        latest[event.where.path] = event
    return found


def _boots_without_times(events: Sequence[Event]) -> list[Finding]:
    """A finding about boots and shutdowns that nobody can place in time."""
    untimed = [e for e in events if e.event in ("boot", "shutdown") and e.time is None]
    if not untimed:
        return []
    message = f"{len(untimed)} boots or shutdowns have no time; crash and restart cannot be placed by them"
    if len(untimed) == 1:
        message = f"a {untimed[0].event} has no time; crash and restart cannot be placed by it"
    return [
        Finding(
            "no-times", "error", untimed[0].where.path, message, where=tuple(e.where for e in untimed), effect="none"
        )
    ]


@dataclass(frozen=True, slots=True)
class Logbook:
    """What the run that crashed had logged last.

    `connected` : ("source" or "sink", name) of those that were
    `queries` : installed ones with their states
    `removed` : queries that were removed, and are not to come back
    `starts` : a time (ms) that the windows of an operator align with
    `sent` : the last element that each output sent
    """

    connected: tuple[tuple[str, str], ...]
    queries: Mapping[str, str]
    removed: frozenset[str]
    starts: Mapping[str, int]
    sent: Mapping[str, Event]


def logbook(events: Iterable[Event]) -> Logbook:
    """Read the events of a run in their order; a later one overrules an earlier one."""
    connected: dict[tuple[str, str], None] = {}
    queries: dict[str, str] = {}
    removed: set[str] = set()
    starts: dict[str, int] = {}
    sent: dict[str, Event] = {}
    for event in events:
        what, _, verb = event.event.partition("-")
        if verb == "connected":
            connected[what, event.name] = None
        elif verb == "disconnected":
            connected.pop((what, event.name), None)
        elif verb == "installed":
            queries[event.name] = ""
            removed.discard(event.name)
        elif verb == "removed":
            queries.pop(event.name, None)
            removed.add(event.name)
        elif event.event == "query-state" and event.name in queries:
            queries[event.name] = event.state
        elif event.event == "window-start" and event.ts is not None:
            starts[event.name] = event.ts
        elif event.event == "element-sent" and event.ts is not None:
            sent[event.name] = event
    return Logbook(connected=tuple(connected), queries=queries, removed=frozenset(removed), starts=starts, sent=sent)
