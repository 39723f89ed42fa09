"""Which messages a receiver had got by a checkpoint, where its channel delivered out of order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cklog.arrays.spans import Spans, joined_spans, without
from cklog.arrays.types import Ints


class ReceivedRuns(NamedTuple):
    """Runs of sequence numbers: [low, high) were received in `interval` of the receiver; shape (runs,), by interval."""

    interval: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The messages that receivers got of channels that delivered out of order, by channel.

    Attributes
    ----------
    received : the runs of sequence numbers that were received
    floor : all numbers below it count as received before the log begins
    intervals : how many intervals of the receiver lie before each of its checkpoints, by checkpoint number
    """

    received: dict[str, ReceivedRuns] = field(default_factory=dict)
    floor: dict[str, int] = field(default_factory=dict)
    intervals: dict[str, dict[int, int]] = field(default_factory=dict)

    def missing(self, channel: str, checkpoint: int | None, end: int) -> Spans:
        """Return the messages below `end` that the receiver had not got by a checkpoint (None: by now)."""
        runs = self.received[channel]
        before = None if checkpoint is None else self.intervals[channel].get(checkpoint, 0)
        count = len(runs.interval) if before is None else int(np.searchsorted(runs.interval, before))
        held = [] if before == 0 else [(0, self.floor[channel])]
        held += zip(runs.low[:count].tolist(), runs.high[:count].tolist(), strict=True)
        return without(0, end, joined_spans(held))
