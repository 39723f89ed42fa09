"""Checkpointing protocols without a coordinator, as the rules that instances follow.

Uncoordinated: every instance checkpoints when its timer says so. Communication-induced (`Bcs`, `Hmnr`): messages carry
what lets their receiver see that it must checkpoint before it takes them. An instance is numbered 0, 1, … of
`instances`. It tells its rules what it is about to do, in this order: `forces` before a message is taken, then
`checkpoint` if that is so, then `receive`; `send` for every message, which carries what `send` returns; `checkpoint`
without a message when its timer says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from cklog.arrays.types import Mask, Small


class Rules(Protocol):
    """What one instance keeps for a protocol.

    `index` is the logical clock, None without one. `carried` is what a message brought with it from `send`; an
    instance may skip `forces` and `receive` for a message that carries the same object as the last one of its
    channel, for neither does anything the second time.
    """

    index: int | None

    def checkpoint(self, carried: Any = None) -> None:
        """Note a checkpoint, forced by a message that carries `carried`, or by a timer."""

    def send(self, receiver: int) -> Any:
        """Return what a message to instance `receiver` carries."""

    def forces(self, carried: Any) -> bool:
        """Return whether a checkpoint must be taken before a message is."""

    def receive(self, carried: Any) -> None:
        """Note that a message is taken."""


class Independent:
    """Nothing is carried and nothing forced: uncoordinated checkpoints, and instances under a coordinator."""

    index: int | None = None

    def checkpoint(self, carried: Any = None) -> None:
        """Keep nothing."""

    def send(self, receiver: int) -> Any:
        """Return nothing to carry."""
        return None

    def forces(self, carried: Any) -> bool:
        """Return False: no message forces a checkpoint."""
        return False

    def receive(self, carried: Any) -> None:
        """Learn nothing."""


class Bcs:
    """Briatico, Ciuffoletti and Simoncini (SRDS 1984): checkpoints with an index, messages carry the sender's.

    A message with a higher index forces a checkpoint of that index first. So a message's index is at most that of
    the interval which receives it, and a zigzag path never leads back to before the checkpoint it began at.
    """

    def __init__(self) -> None:
        self.index: int | None = 0
        self._clock = 0

    def checkpoint(self, carried: Any = None) -> None:
        """Move on to the next index, or to that of the message."""
        self._clock = self._clock + 1 if carried is None else carried
        self.index = self._clock

    def send(self, receiver: int) -> int:
        """Return the index."""
        return self._clock

    def forces(self, carried: int) -> bool:
        """Return whether the message comes from a later index."""
        return carried > self._clock

    def receive(self, carried: int) -> None:
        """Learn nothing: the index is no less than the message's."""


class Carried(NamedTuple):
    """What an HMNR message carries, as of its sending: arrays of shape (instances,)."""

    clock: int
    greater: Mask
    taken: Mask
    checkpoints: Small


class Hmnr:
    """Hélary, Mostéfaoui, Netzer and Raynal (Distributed Computing 13(1), 2000), as CheckMate describes it.

    Instance i keeps, of shape (instances,):

    sent_to : whether i sent to k since its last checkpoint
    greater : whether i's clock is greater than what i knows of k's
    taken : whether a causal zigzag path leads from k's last checkpoint that i knows of to i's next one, with a
        checkpoint on the way
    checkpoints : how many k has taken, as far as i knows, with the initial state as the first

    A message is delayed by a checkpoint if otherwise the clock would have to fall along a zigzag path (the sender's
    clock is greater, and i sent to an instance whose clock is smaller than the sender's), or if it would close a
    zigzag cycle (the path comes back to i's present interval, with a checkpoint on the way).
    """

    def __init__(self, instance: int, instances: int) -> None:
        self.index: int | None = 0
        self._me = instance
        self._clock = 0
        self._sent_to = np.zeros(instances, np.bool_)
        self._greater = np.zeros(instances, np.bool_)
        self._taken = np.zeros(instances, np.bool_)
        self._checkpoints = np.zeros(instances, np.int32)
        self._carried: Carried | None = None
        self._begin_interval()

    def _begin_interval(self) -> None:
        self._sent_to[:] = False
        self._taken[:] = True
        self._taken[self._me] = False
        self._greater[:] = True
        self._greater[self._me] = False
        self._checkpoints[self._me] += 1
        self._carried = None

    def checkpoint(self, carried: Any = None) -> None:
        """Move on to the next clock, whatever asked for the checkpoint."""
        self._clock += 1
        self.index = self._clock
        self._begin_interval()

    def send(self, receiver: int) -> Carried:
        """Return everything but `sent_to`; the same object until something in it changes."""
        self._sent_to[receiver] = True
        if self._carried is None:
            self._carried = Carried(self._clock, self._greater.copy(), self._taken.copy(), self._checkpoints.copy())
        return self._carried

    def forces(self, carried: Carried) -> bool:
        """Return whether one of the two conditions of the class's description holds."""
        me = self._me
        if carried.checkpoints[me] == self._checkpoints[me] and carried.taken[me]:
            return True
        return carried.clock > self._clock and bool((self._sent_to & carried.greater).any())

    def receive(self, carried: Carried) -> None:
        """Learn the clocks that are greater, and the checkpoints that are newer."""
        me = self._me
        if carried.clock > self._clock:
            self._clock = carried.clock
            self._greater[:] = carried.greater
            self._greater[me] = False
        elif carried.clock == self._clock:
            self._greater &= carried.greater
        newer = carried.checkpoints > self._checkpoints
        same = carried.checkpoints == self._checkpoints
        newer[me] = same[me] = False
        self._taken = np.where(newer, carried.taken, self._taken | (same & carried.taken))
        np.maximum(self._checkpoints, carried.checkpoints, out=self._checkpoints)
        self._carried = None


def rules_of(protocol: str, instances: int) -> list[Rules]:
    """Return the rules of every instance under `unc`, `cic-hmnr`, `cic-bcs` or `coor`."""
    if protocol == "cic-hmnr":
        return [Hmnr(i, instances) for i in range(instances)]
    if protocol == "cic-bcs":
        return [Bcs() for _ in range(instances)]
    return [Independent() for _ in range(instances)]


_CLOCK_BYTES, _COUNT_BYTES, _BITS = 8, 4, 2


def least_bytes(protocol: str, instances: int) -> float:
    """Return the bytes that a protocol adds to every message, coded as tightly as its numbers allow.

    BCS: a clock. HMNR: a clock, and for every instance a count of checkpoints and two bits. What a system really sends
    can be several times that: CheckMate's testbed pickles dictionaries.

    >>> least_bytes("cic-bcs", 30), least_bytes("cic-hmnr", 30), least_bytes("unc", 30)
    (8, 135.5, 0)
    """
    if protocol == "cic-hmnr":
        return _CLOCK_BYTES + instances * (_COUNT_BYTES + _BITS / 8)
    return _CLOCK_BYTES if protocol == "cic-bcs" else 0
