"""Which messages had been received by a checkpoint where a channel delivered out of order; sets of numbers as spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from cklog.history import Ints

Spans = list[tuple[int, int]]
"""Half-open ranges [from, to), in order and apart where they stand for a set of numbers."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What receivers had got of channels that delivered out of order.

    `received[channel]` is (interval, from, to) of every run, by interval; what lies below `floor` of it counts as
    received before the log begins. `intervals[channel]` maps a checkpoint of its receiver to the number of intervals
    before it.
    """

    received: dict[str, tuple[Ints, Ints, Ints]] = field(default_factory=dict)
    floor: dict[str, int] = field(default_factory=dict)
    intervals: dict[str, dict[int, int]] = field(default_factory=dict)

    def missing(self, channel: str, checkpoint: int | None, end: int) -> Spans:
        """Messages below `end` that the receiver had not got by a checkpoint (None: by now)."""
        interval, low, high = self.received[channel]
        before = None if checkpoint is None else self.intervals[channel].get(checkpoint, 0)
        count = len(interval) if before is None else int(np.searchsorted(interval, before))
        held = [] if before == 0 else [(0, self.floor[channel])]
        held += zip(low[:count].tolist(), high[:count].tolist(), strict=True)
        return without(0, end, joined_spans(held))


def without(low: int, high: int, held: Spans) -> Spans:
    """What of [low, high) is not in spans that are in order and apart.

    >>> without(0, 9, [(0, 2), (3, 4), (8, 12)])
    [(2, 3), (4, 8)]
    """
    found = []
    for a, b in held:
        if low < min(a, high):
            found.append((low, min(a, high)))
        low = max(low, b)
    return [*found, (low, high)] if low < high else found


def joined_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans in order, those that overlap or touch made one."""
    found: Spans = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
