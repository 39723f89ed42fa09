"""Every send and receive of an execution as arrays, in the local order of the subtasks.

What else is made of raw events folds them to a few rows for each interval between checkpoints. Where checkpoints that
were never taken are to be placed (`cklog.protocols.choice`), there are no such intervals yet, and every event counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, integers
from cklog.arrays.types import Ints, Mask
from cklog.engine.scan import Kernel, Reduce
from cklog.history.events import kernels
from cklog.history.events.batch import SIDES, EventBatch, Places
from cklog.history.events.order import Order, order_of
from cklog.history.events.raw_events import ScanEvents
from cklog.model.findings import Finding, InputUsed

STEPS = pa.schema(
    [
        pa.field("channel", pa.string()),
        pa.field("side", pa.string()),
        *[pa.field(name, pa.int64()) for name in ("seq", "position", "time", "bytes")],
    ]
)
"""A send or receive of message `seq`: its place in the local order of its subtask, its time in ms, and its size."""

STEPS_REDUCE = Reduce(("channel", "side", "seq"), {"position": "min", "time": "min", "bytes": "max"})
"""Of what was logged twice, the first."""

UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class EventSteps:
    """Sends and receives, one row each.

    Attributes
    ----------
    channels : names, sorted
    channel, seq : of each row, `channel` as an index into `channels`; shape (rows,)
    receives : whether it is a receive, shape (rows,)
    position : the place in the local order of the subtask that did it, shape (rows,)
    time, bytes : ms and size, -1 if not known; shape (rows,)
    order : where the subtasks took their checkpoints
    """

    channels: tuple[str, ...]
    channel: Ints
    seq: Ints
    receives: Mask
    position: Ints
    time: Ints
    bytes: Ints
    order: Order


def read_steps(
    scan: ScanEvents, as_of: int | None, refuse: Callable[[int], None]
) -> tuple[EventSteps, list[Finding], list[InputUsed]]:
    """Read every event; return them with what is wrong with them, and the files that were read.

    Parameters
    ----------
    scan : reads `events/`
    as_of : milliseconds; what happened later does not count
    refuse : is told how many events there are before they are read
    """
    survey, findings, inputs = scan(
        kernels.SURVEY_COLUMNS, kernels.survey_kernel(as_of), kernels.SURVEY, kernels.SURVEY_REDUCE
    )
    order = order_of(survey, findings, as_of)
    refuse(sum(order.counted.values()))
    columns = tuple(dict.fromkeys((*order.places.columns(), "time", "bytes")))
    table, more, _ = scan(columns, step_kernel(order.places), STEPS, STEPS_REDUCE)
    return _steps_of(table, order), _different([*findings, *more, *order.findings]), inputs


def step_kernel(places: Places) -> Kernel:
    """Return the kernel that makes rows of `STEPS`."""
    return functools.partial(_step_rows, places)


def _step_rows(places: Places, batch: pa.RecordBatch) -> pa.RecordBatch:
    events = EventBatch.of(places, batch)
    rows = np.flatnonzero(events.key < events.passed)
    key, at = events.key[rows].astype(np.int64), pa.array(rows)
    columns = [
        events.names.take(pa.array(key >> 1)).cast(pa.string()),
        pa.array(SIDES).take(pa.array(key & 1)),
        pa.array(events.seq[rows]),
        pa.array(events.position[rows]),
        batch["time"].take(at),
        batch["bytes"].take(at),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=STEPS)


def _steps_of(table: pa.Table, order: Order) -> EventSteps:
    code, names = codes(table["channel"])
    return EventSteps(
        channels=tuple(names),
        channel=code,
        seq=integers(table["seq"]),
        receives=pc.equal(table["side"], SIDES[1]).to_numpy(),
        position=integers(table["position"]),
        time=integers(table["time"], UNKNOWN),
        bytes=integers(table["bytes"], UNKNOWN),
        order=order,
    )


def _different(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what both scans have found."""
    return list(dict.fromkeys(findings))
