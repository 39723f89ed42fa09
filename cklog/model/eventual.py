"""Eventual checkpoints and their extents as values (continuous eventual checkpointing)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class UpstreamOffset:
    """Where an upstream output queue is read again from: its record `pos` (to before `end`), at `offset` of `path`.

    `by` input: the record that the operator's own input number names; time: the first record at or after T.
    `tuples` and `bytes` of data records from there to the queue's end; `distinct_ts`: no two of them share a
    timestamp, None: nobody looked.
    """

    operator: str
    subtask: int
    channel: str
    pos: int | None
    end: int | None
    path: str
    offset: int
    by: Literal["input", "time"]
    tuples: int
    bytes: int | None
    distinct_ts: bool | None = None


@dataclass(frozen=True, slots=True)
class EventualReplay:
    """What the upstream must send again, from T *inclusive*; None: not known, or from the start of the input.

    `from_input` and the tuples up to the tail's are by the operator's own input numbers (several inputs: one
    number per channel).
    """

    from_ts: int | None
    from_input: int | dict[str, int] | None
    tuples: int | None
    bytes: int | None
    upstream: tuple[UpstreamOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of an eventual checkpoint: the records from the oldest footprint of an open window to the end.

    `records` counts those that are missing there too, where records are numbered; `by_type` those that are
    here. `from_` and `to` are record numbers (`pos`), inclusive, None if the records have none; `T`, `t_c` and
    the times of `oldest` are timestamps of input tuples.
    """

    operator: str
    subtask: int
    open_windows: int
    records: int
    bytes: int | None
    from_: int | None
    to: int | None
    T: int | None
    t_c: int | None
    by_type: dict[str, int]
    replay: EventualReplay
    oldest: tuple[dict[str, Any], ...]
    proof: Literal["proven", "after-replay", "lost"]


@dataclass(frozen=True, slots=True)
class EventualCheckpoint:
    """An eventual checkpoint, ready to load (docs/json.md).

    `emitted` counts the records of type emit at or after T: they are in the queue already and are not to be
    written again.
    """

    operator: str
    subtask: int
    t_c: int | None
    T: int | None
    T_input: int | dict[str, int] | None
    open_windows: int
    windows: tuple[dict[str, Any], ...]
    closed: tuple[dict[str, Any], ...]
    proof: Literal["proven", "after-replay", "lost"]
    replay: EventualReplay
    emitted: int
