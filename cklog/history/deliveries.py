"""Which messages had been received by a checkpoint where a channel delivered out of order; sets of numbers as spans."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cklog.arrays.spans import Spans, joined_spans, without
from cklog.arrays.types import Ints


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
