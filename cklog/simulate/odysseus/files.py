"""A run that crashed and recovered as a native run folder, and the answer of `cklog simulate odysseus`.

What is kept depends on the recovery class: the input log from the last checkpoint on, checkpoints, the image of the
operator states, the last element sent. `outputs/` holds what the outputs sent, before the crash and after.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cklog.errors import OutputError
from cklog.impact.model import Operator, Window
from cklog.model.schemas import CHECKPOINTS, MESSAGES, OUTPUTS, SYSTEM
from cklog.model.verdict import Answer
from cklog.simulate.files import PART_BYTES, RunTable, refuse_encoding, require_empty, written_files
from cklog.simulate.odysseus.crash import Crashed, over_time, tally
from cklog.simulate.odysseus.query import OdysseusQuery, Result

_MOST_MOMENTS = 480
"""A curve over time has at most so many points."""


def write(
    folder: str | os.PathLike[str], crashed: Crashed, period: int | None, interval: int, encoding: str = "jsonl"
) -> None:
    """Write the run to a new folder; `period` of the sources (None: none) and `interval` of the checkpoints in ms.

    Raises
    ------
    UsageError : the folder is not empty
    OutputError : something cannot be written
    """
    refuse_encoding(encoding, PART_BYTES)
    place = Path(folder)
    try:
        require_empty(place)
        place.mkdir(parents=True, exist_ok=True)
        job = _job_manifest(crashed, period, interval)
        (place / "job.json").write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")
        _write_table(place / "system", SYSTEM, encoding, _system_events(crashed))
        if crashed.how.recovery != "gap":
            _write_table(place / "channels", MESSAGES, encoding, _logged_elements(crashed))
            _write_table(place / "checkpoints", CHECKPOINTS, encoding, _checkpoint_records(crashed, interval))
        for output in crashed.query.outputs:
            _write_table(place / "outputs" / output, OUTPUTS, encoding, _sent_records(crashed, output, encoding))
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror or error}") from None


def _write_table(place: Path, schema: Any, encoding: str, rows: Iterable[dict[str, Any]]) -> None:
    with RunTable(place, schema, encoding, PART_BYTES) as table:
        for row in rows:
            table.add(row)


def _job_manifest(crashed: Crashed, period: int | None, interval: int) -> dict[str, Any]:
    query = crashed.query
    edges = [(name, o.name) for o in query.operators for name in o.inputs]
    return {
        "job": "simulated-odysseus",
        "failure_time": crashed.how.crash,
        "checkpoint_interval_ms": interval,
        "operators": [_operator_row(o, query, period) for o in query.operators],
        "channels": [{"channel": f"{a}/0->{b}/0"} for a, b in edges],
        "simulation": asdict(crashed.how),
    }


def _operator_row(operator: Operator, query: OdysseusQuery, period: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": operator.name, "parallelism": 1, "kind": operator.kind}
    if not operator.inputs:
        return row | ({} if period is None else {"period_ms": period, "start_ms": 0})
    if operator.joins:
        row["windows"] = [_window_spec(window) for window in operator.windows]
    elif operator.windows:
        row["window"] = _window_spec(operator.windows[0])
    return row | {"query": operator.query or operator.name}


def _window_spec(window: Window) -> dict[str, Any]:
    if window.kind == "count":
        return {"tuples": window.size, "slide": window.slide}
    start = {} if window.start is None else {"start": window.start}
    return {"ms": window.size, "slide_ms": window.slide, **start}


def _system_events(crashed: Crashed) -> Iterable[dict[str, Any]]:
    """The system log: two boots, and no shutdown between them."""
    how, query = crashed.how, crashed.query
    last = max(how.restart, *(e.time for e in crashed.elements[-1:]))
    yield {"event": "boot", "time": 0}
    yield from sorted(_events_before_crash(crashed), key=lambda event: event["time"])
    yield {"event": "boot", "time": how.restart}
    yield from ({"event": "source-connected", "operator": name, "time": how.restart} for name in query.sources)
    yield from _installation_events(query, how.restart)
    yield {"event": "shutdown", "time": last}


def _events_before_crash(crashed: Crashed) -> Iterable[dict[str, Any]]:
    """Events from the first boot to the crash."""
    how, query = crashed.how, crashed.query
    yield from ({"event": "source-connected", "operator": name, "time": 0} for name in query.sources)
    yield from _installation_events(query, 0)
    starts = crashed.starts.items() if how.aligned else ()
    yield from ({"event": "window-start", "operator": n, "ts": t, "time": 0} for n, t in starts)
    for name, sent in crashed.sent.items() if how.recovery == "precise" else ():
        yield {"event": "element-sent", "operator": name, "ts": sent.time, "equal": sent.equal, "time": sent.time}


def _installation_events(query: OdysseusQuery, time: int) -> Iterable[dict[str, Any]]:
    names = {o.name: o.query or o.name for o in query.operators}
    for output in query.outputs:
        yield {"event": "sink-connected", "operator": output, "time": time}
        yield {"event": "query-installed", "query": names[output], "time": time}
        yield {"event": "query-state", "query": names[output], "state": "running", "time": time}


def _logged_elements(crashed: Crashed) -> Iterable[dict[str, Any]]:
    """The input log: what came after the checkpoint, on the first channel of each source."""
    readers = {name: o.name for o in reversed(crashed.query.operators) for name in o.inputs}
    for element in crashed.elements:
        if element.time >= crashed.how.checkpoint and element.source in readers:
            channel = f"{element.source}/0->{readers[element.source]}/0"
            yield {"channel": channel, "seq": element.number, "time": element.time}


def _checkpoint_records(crashed: Crashed, interval: int) -> Iterable[dict[str, Any]]:
    """A record of each source with the first element that is not in the checkpoint, and of each operator's state."""
    how, query = crashed.how, crashed.query
    times = range(how.checkpoint % interval or interval, how.checkpoint + 1, interval)
    with_states = how.recovery in ("rollback", "precise")
    for number, time in enumerate(times, 1):
        shared = {"subtask": 0, "checkpoint": number, "round": number, "time": time, "kind": "coordinated"}
        for name in query.sources:
            position = sum(1 for e in crashed.elements if e.source == name and e.time < time)
            yield {"operator": name, **shared, "sources": {f"{name}-0": position}}
        for operator in query.operators:
            if operator.inputs and operator.stateful and with_states:
                yield {"operator": operator.name, **shared, "uri": f"images/{number}/{operator.name}"}


def _sent_records(crashed: Crashed, output: str, encoding: str) -> Iterable[dict[str, Any]]:
    """What an output sent: before the crash, and again after the restart."""
    packed = encoding == "parquet"  # whose state is JSON text
    results: list[Result] = [r for r in (*crashed.before, *crashed.after) if r.output == output]
    for pos, result in enumerate(results):
        state = json.dumps(result.value) if packed else result.value
        yield {"type": "emit", "ts": result.time, "state": state, "input": result.number, "pos": pos}


def odysseus_answer(folder: str, query: str, crashed: Crashed) -> Answer[dict[str, Any]]:
    """Make the answer about a run: what its outputs suffered, counted, and the files."""
    result = {
        "folder": folder or None,
        "query": query,
        **asdict(crashed.how),
        "elements": len(crashed.elements),
        "outputs": [asdict(found) | {"over_time": _moments_of(crashed, found.output)} for found in tally(crashed)],
        "files": written_files(folder),
    }
    return Answer("simulate-odysseus", verdict="ok", exit_code=0, inputs=(), findings=(), result=result)


def _moments_of(crashed: Crashed, output: str) -> list[dict[str, Any]]:
    return [asdict(moment) for moment in over_time(crashed, output, _MOST_MOMENTS)]
