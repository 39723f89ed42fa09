"""Coordinated checkpoints with aligned markers: what the instances and the coordinator remember of a round.

CheckMate (ICDE 2024), section III.A: sources checkpoint and send markers; a channel whose marker has come is blocked
until the markers of all channels into its instance have, then the instance checkpoints and sends markers on. A round
is complete when the coordinator knows that every instance has. One round at a time.
"""

from __future__ import annotations

from typing import Any

from cklog.simulate.dataflow.layout import InstanceLayout


class RoundInProgress:
    """The round in progress.

    Attributes
    ----------
    begun_us : when it began
    blocked : by instance, the channels whose marker has come, until all have
    """

    def __init__(self, layout: InstanceLayout) -> None:
        self.begun_us = 0
        self.blocked: list[set[int]] = [set() for _ in layout.subtasks]
        self._layout = layout
        self._aside: list[list[Any]] = [[] for _ in layout.subtasks]
        self._since = [0] * len(layout.subtasks)
        self._to_checkpoint = [0] * layout.workers  # instances, by worker
        self._to_report = 0  # workers

    def begin(self, now: int) -> None:
        """Nobody has checkpointed yet."""
        self.begun_us = now
        self._to_checkpoint = [len(self._layout.operators)] * self._layout.workers
        self._to_report = self._layout.workers

    def put_aside(self, instance: int, item: Any) -> None:
        """Something came on a blocked channel."""
        self._aside[instance].append(item)

    def taken_up(self, instance: int) -> list[Any]:
        """What was put aside, in order."""
        items, self._aside[instance] = self._aside[instance], []
        return items

    def marker(self, now: int, instance: int, channel: int) -> int | None:
        """A marker has come (a source's order: channel -1). If it is the last: when the first one came, else None."""
        blocked = self.blocked[instance]
        if not blocked:
            self._since[instance] = now
        blocked.add(channel)
        if len(blocked) < len(self._layout.into[instance]):
            return None
        blocked.clear()
        return self._since[instance]

    def checkpointed(self, instance: int) -> bool:
        """An instance has: whether it is the last of its worker."""
        worker = instance % self._layout.workers
        self._to_checkpoint[worker] -= 1
        return not self._to_checkpoint[worker]

    def reported(self) -> bool:
        """A worker told the coordinator that all of its instances have: whether it is the last."""
        self._to_report -= 1
        return not self._to_report
