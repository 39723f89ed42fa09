"""Subtasks, channels and checkpoints by name: `op/3`, `src/0->join/1#port`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Subtask(NamedTuple):
    """One parallel instance of an operator; written `operator/subtask`."""

    operator: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.operator}/{self.subtask}"


class Channel(NamedTuple):
    """One sender subtask → one receiver subtask, `#port` where two run between the same pair."""

    sender: Subtask
    receiver: Subtask
    port: str = ""

    def __str__(self) -> str:
        return f"{self.sender}->{self.receiver}" + (f"#{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class CheckpointId:
    """A checkpoint by its label."""

    operator: str
    subtask: int
    checkpoint: int


def parse_channel(name: str) -> Channel | None:
    """Return `src/0->join/1#port` as a channel, None if the name has another form.

    >>> parse_channel("src/0->join/1")
    Channel(sender=Subtask(operator='src', subtask=0), receiver=Subtask(operator='join', subtask=1), port='')
    >>> parse_channel("src->join") is None
    True
    """
    ends, _, port = name.partition("#")
    sender, arrow, receiver = ends.partition("->")
    pair = parse_subtask(sender), parse_subtask(receiver)
    if not arrow or pair[0] is None or pair[1] is None:
        return None
    return Channel(pair[0], pair[1], port)


def parse_subtask(name: str) -> Subtask | None:
    """Return `op/3` as a subtask; None if the name has another form."""
    operator, slash, number = name.rpartition("/")
    if not (slash and operator and number.isascii() and number.isdigit() and len(number) < 10):
        return None
    return Subtask(operator, int(number))
