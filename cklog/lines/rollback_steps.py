"""Why the line is where it is: every single rollback, and the orphan messages that forced it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.arrays import History
from cklog.lines.fixpoint import forced, sent_limit


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """Subtask `subtask` gives up checkpoints `from_` down to above `to` (indices, as in `History`).

    Because `channel`, which `sender` sends: at that moment it held messages that the receiver's checkpoint
    `from_` had received and the sender's had not sent. `round` counts from 1.
    """

    subtask: int
    from_: int
    to: int
    channel: int
    sender: int
    orphans_from: int
    orphans_to: int
    round: int


def rollback_steps(history: History, start: Ints | None = None) -> list[RollbackStep]:
    """Return the rollbacks that lead from `start` to the recovery line, in rounds.

    In a round every subtask that received orphan messages goes back at once, to where the strictest of its
    channels sends it (ties: the first channel). So a round costs one orphan message on every chain, the
    chains are as short as they can be, and the number of rounds is the domino depth.

    Parameters
    ----------
    history : checkpoints of n subtasks
    start : newest allowed checkpoint per subtask, shape (n,); default `history.newest`

    Returns
    -------
    list of RollbackStep : by round, then by subtask; empty if `start` is consistent

    Notes
    -----
    Always in rounds, so a domino of depth d costs O(d · active channels): `recovery_line` is the one to call
    where only the line is wanted. Checkpoint 0 stays even if it received orphans (see `NoConsistentLine`).

    Examples
    --------
    >>> from cklog.history.arrays import history_of
    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> rollback_steps(h)
    [RollbackStep(subtask=1, from_=1, to=0, channel=0, sender=0, orphans_from=2, orphans_to=7, round=1)]
    """
    line = (history.newest if start is None else start).astype(np.int64)
    active = np.arange(len(history.src))
    steps: list[RollbackStep] = []
    while True:
        channel, kept = _strictest(history, *forced(history, line, active))
        if not len(channel):
            return steps
        steps += _round(history, line, channel, kept, domino_depth(steps) + 1)
        lower = line.copy()
        lower[history.dst[channel]] = kept
        active = np.flatnonzero((lower < line)[history.src])
        line = lower


def domino_depth(steps: Sequence[RollbackStep]) -> int:
    """Return the number of rounds: the most orphan messages on a shortest chain from failure to rollback."""
    return steps[-1].round if steps else 0


def forcing_chain(steps: Sequence[RollbackStep], subtask: int) -> list[RollbackStep]:
    """Return the steps that lead from a failure to the last rollback of `subtask`; empty if it has none.

    The first one's sender is where it began: it had lost what it did after its newest checkpoint. Every other
    one's sender is the subtask of the step before.
    """
    at = {(step.round, step.subtask): step for step in steps}
    last = max((step.round for step in steps if step.subtask == subtask), default=0)
    chain = []
    step = at.get((last, subtask))
    while step is not None:
        chain.append(step)
        step = at.get((step.round - 1, step.sender))  # a channel is forced only right after its sender moved
    return chain[::-1]


def _strictest(history: History, channel: Ints, kept: Ints) -> tuple[Ints, Ints]:
    """The channel that sends each receiver furthest back, one per receiver, by receiver."""
    order = np.lexsort((channel, kept, history.dst[channel]))
    _, best = np.unique(history.dst[channel][order], return_index=True)
    return channel[order][best], kept[order][best]


def _round(history: History, line: Ints, channel: Ints, kept: Ints, number: int) -> list[RollbackStep]:
    receiver, sender = history.dst[channel], history.src[channel]
    sent = sent_limit(history, line, channel)
    received = history.received[history.received_at[channel] + line[receiver]]
    numbers = np.full(len(channel), number)
    columns = (receiver, line[receiver], kept, channel, sender, sent, received, numbers)
    return [RollbackStep(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]
