"""What protocols put on the wire, and the state of a coordinated round.

Coordinated, with aligned markers (CheckMate, ICDE 2024, section III.A): sources checkpoint and send markers; a channel
whose marker has come is blocked until the markers of all channels into its instance have, then the instance checkpoints
and sends markers on. A round is complete when the coordinator knows that every instance has. One round at a time
(`RoundInProgress`). The rules of protocols without a coordinator are in `cklog.policies.induced`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cklog.simulate.dataflow.setting import DataflowSetting, InstanceLayout, Item
from cklog.simulate.dataflow.wire import hmnr_bytes

BCS_BYTES = 8
"""Of a BCS message: its index."""


def carried_bytes(protocol: str, operators: Sequence[str], workers: int) -> int:
    """Return how many bytes the protocol adds to every message between instances of these operators.

    >>> names = ("bidsSource", "count", "sink")
    >>> [carried_bytes(protocol, names, 50) for protocol in ("cic-hmnr", "cic-bcs", "unc")]
    [2517, 8, 0]
    """
    if protocol == "cic-hmnr":
        return hmnr_bytes(operators, workers)
    return BCS_BYTES if protocol == "cic-bcs" else 0


def bytes_carried(setting: DataflowSetting) -> int:
    """Return what the protocol of a run adds to every one of its messages."""
    names = [operator.called for operator in setting.query.operators]
    return carried_bytes(setting.protocol, names, setting.workers)


class RoundInProgress:
    """What the instances and the coordinator remember of a coordinated round.

    Attributes
    ----------
    begun_us : when it began, in simulated microseconds
    blocked : by instance, the channels whose marker has come, until all have
    """

    def __init__(self, layout: InstanceLayout) -> None:
        self.begun_us = 0
        self.blocked: list[set[int]] = [set() for _ in layout.subtasks]
        self._layout = layout
        self._aside: list[list[Item]] = [[] for _ in layout.subtasks]
        self._since = [0] * len(layout.subtasks)
        self._to_checkpoint = [0] * layout.workers  # instances, by worker
        self._to_report = 0  # workers

    def begin(self, now: int) -> None:
        """Begin a round at `now`: nobody has checkpointed yet."""
        self.begun_us = now
        self._to_checkpoint = [len(self._layout.operators)] * self._layout.workers
        self._to_report = self._layout.workers

    def put_aside(self, instance: int, item: Item) -> None:
        """Keep what came on a blocked channel for later."""
        self._aside[instance].append(item)

    def take_up(self, instance: int) -> list[Item]:
        """Return what was put aside, in order, and keep it no longer."""
        items, self._aside[instance] = self._aside[instance], []
        return items

    def take_marker(self, now: int, instance: int, channel: int) -> int | None:
        """Note that a marker has come (channel -1: a source's order), and block its channel.

        Returns when the first marker came if this is the last one, else None.
        """
        blocked = self.blocked[instance]
        if not blocked:
            self._since[instance] = now
        blocked.add(channel)
        if len(blocked) < len(self._layout.into[instance]):
            return None
        blocked.clear()
        return self._since[instance]

    def ends_worker(self, instance: int) -> bool:
        """Note that an instance has checkpointed; return whether it is the last of its worker."""
        worker = instance % self._layout.workers
        self._to_checkpoint[worker] -= 1
        return not self._to_checkpoint[worker]

    def ends_round(self) -> bool:
        """Note that a worker reported to the coordinator; return whether it is the last one."""
        self._to_report -= 1
        return not self._to_report
