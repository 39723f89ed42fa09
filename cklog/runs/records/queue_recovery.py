"""What operators with output queues have to do in a recovery: load their extents, and replay from T."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cklog.lines.recovery.work import Work, Works, exactly
from cklog.model.eventual import EventualReplay
from cklog.model.names import Subtask
from cklog.model.recovery_time import Span
from cklog.policies.load_time import PUBLISHED, published
from cklog.queues.analyses import Reconstruction, extent_of
from cklog.queues.log import CONTROL
from cklog.runs.records.recovery import pace_of, records_works

if TYPE_CHECKING:
    from cklog.runs.records.evidence import Planned

_OF_QUEUES = {
    "read": "the load times of Sebepou and Magoutis 2011, section IV.B, on their machine",
    "replay": "at least the most in a whole second of the extent, or its mean if it has none",
    "input": "the mean over the extent",
}
_WHY_OF_QUEUES = {
    "messages": "the records do not number their input",
    "replay": "the extent is too short to tell it; --replay-rate says it",
    "input": "the extent is too short to tell it; --input-rate says it",
}
_FASTEST_LOAD = min(point.seconds / point.records for point in PUBLISHED)


def queue_works(restarts: Mapping[Subtask, tuple[Reconstruction, EventualReplay]], planned: Planned | None) -> Works:
    """Return the work of operators that load eventual checkpoints, and of those with checkpoints beside them."""
    others = records_works(planned) if planned is not None else Works(())
    names = {str(subtask) for subtask in restarts}
    parts = [_queue_work(subtask, *found) for subtask, found in restarts.items()]
    beside = [part for part in others.parts if part.name not in names]
    if not beside:
        return Works(parts, _OF_QUEUES, _WHY_OF_QUEUES, {"read": "published"})
    by, why = _merged(_OF_QUEUES, others.by), _merged(_WHY_OF_QUEUES, others.why)
    return Works([*parts, *beside], by, why, {"read": "published"})


def _merged(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Put together what both say of each rate."""
    return {
        key: "; ".join(dict.fromkeys(filter(None, (one.get(key), other.get(key))))) for key in sorted({*one, *other})
    }


def _queue_work(subtask: Subtask, found: Reconstruction, replay: EventualReplay) -> Work:
    extent = extent_of(found, replay)
    slowest = 1000 * float(published().seconds(extent.records))
    rate, arrives = _extent_pace(found)
    return Work(
        name=str(subtask),
        bytes=extent.bytes,
        logged=None if replay.tuples is None else exactly(replay.tuples),
        restore_ms=Span(min(1000 * _FASTEST_LOAD * extent.records, slowest), slowest),
        replay_rate=rate,
        input_rate=arrives,
    )


def _extent_pace(found: Reconstruction) -> tuple[Span | None, float | None]:
    """The rates that the records of the extent show, by whole seconds from its first: however much more was read."""
    judged, log = found.judged, found.judged.log
    if not len(judged.open) or not log.channels:
        return None, None
    rows = np.arange(int(judged.open[0]), len(log))
    rows = rows[(log.type[rows] != CONTROL) & (log.ts[rows] >= 0)]
    if len(rows) < 2:
        return None, None
    ms = np.maximum.accumulate(log.ts[rows] - log.ts[rows[0]])
    taken = np.maximum.accumulate(log.input[rows].sum(1))
    second = ms // 1000
    ends = np.flatnonzero(np.diff(second))  # the last record of each second that is over
    fastest = pace_of(1000 * second[ends], taken[ends])[0]
    mean = pace_of(ms[[0, -1]], taken[[0, -1]])[1]
    return fastest or (Span(mean, None) if mean else None), mean
