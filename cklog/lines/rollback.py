"""How far each subtask falls back to the line, and why: every rollback, the orphan messages that forced it, distances.

Rollbacks are taken in rounds: in a round every subtask that received orphan messages goes back at once. So a round
costs one orphan message on every chain, chains are as short as they can be, and the number of rounds is the domino
depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.history import History
from cklog.history.watermarks import CurrentState
from cklog.lines.fixpoint import forced, sent_limit
from cklog.model.lines import RollbackDistance


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """A rollback of `subtask`, which gives up checkpoints `from_` down to above `to` (indices, as in `History`).

    It is forced by `channel`, which `sender` sends: of its messages, the receiver's checkpoint `from_` had received
    those of [orphans_from, orphans_to), which the checkpoint of the sender had not sent. `round` counts from 1.
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

    In a round every subtask that received orphan messages goes back to where the strictest of its channels sends
    it (ties: the first channel).

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
    >>> from cklog.history.history import history_of
    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> rollback_steps(h)
    [RollbackStep(subtask=1, from_=1, to=0, channel=0, sender=0, orphans_from=2, orphans_to=7, round=1)]
    """
    steps: list[RollbackStep] = []
    rounds = _rollback_rounds(history, history.newest if start is None else start)
    for number, (line, channel, kept) in enumerate(rounds, 1):
        steps += _steps_of_round(history, line, *_strictest_channels(history, channel, kept), number)
    return steps


def domino_depth(steps: Sequence[RollbackStep]) -> int:
    """Return the number of rounds: the most orphan messages on a shortest chain from failure to rollback."""
    return steps[-1].round if steps else 0


def domino_depths(history: History, start: Ints) -> Ints:
    """Return for each subtask the fewest orphan messages on a chain from a failure to where it ends; 0: none.

    Parameters
    ----------
    history : checkpoints of n subtasks
    start : newest allowed checkpoint per subtask, shape (n,)

    Notes
    -----
    O(greatest depth · active channels · log rows): much more than the line alone if a domino is deep.

    Examples
    --------
    >>> from cklog.history.history import history_of
    >>> h = history_of(
    ...     {"a/0": [5], "b/0": [10], "c/0": [15]},
    ...     {"a/0->b/0": [0, 2], "b/0->c/0": [0, 3]},
    ...     {"a/0->b/0": [0, 7], "b/0->c/0": [0, 1]},
    ... )
    >>> domino_depths(h, h.newest).tolist()
    [0, 1, 2]
    """
    depth = np.zeros(len(history.subtasks), np.int64)
    for number, (_, channel, _) in enumerate(_rollback_rounds(history, start), 1):
        depth[history.dst[channel]] = number
    return depth


def is_domino(history: History, start: Ints) -> bool:
    """Return whether a rollback forces another one: one round of rollbacks does not give the line."""
    return len(list(islice(_rollback_rounds(history, start), 2))) == 2


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


def rollback_distances(
    history: History,
    line: Ints,
    failure_time: int | None,
    depth: Ints | None = None,
    last: CurrentState | None = None,
) -> tuple[RollbackDistance, ...]:
    """Return the distance of every subtask from its newest checkpoint, or where it was last, to `line`.

    Parameters
    ----------
    history : checkpoints of n subtasks
    line : checkpoint index per subtask, shape (n,)
    failure_time : ms; None: no time is known
    depth : from `domino_depths`, shape (n,); None: not asked for
    last : what subtasks had sent and received at last; None, or silent of a channel: no more than is stored
    """
    newest, last = history.newest, last or CurrentState()
    stored = newest - history.survivor  # a survivor that keeps a stored checkpoint has lost no stored one
    checkpoints = np.maximum(stored - line, 0)
    kept = history.survivor & (line == newest)
    n = len(history.subtasks)
    reached = _at_least(history.received_of(newest), history.channels, last.received)
    received = _messages_per_subtask(reached - history.received_of(line), history.dst, n)
    reached = _at_least(history.sent_of(newest), history.channels, last.sent)
    sent = _messages_per_subtask(reached - history.sent_of(line), history.src, n)
    time = history.time[history.first[:-1] + line]
    return tuple(
        RollbackDistance(
            operator=operator,
            subtask=subtask,
            checkpoints=int(checkpoints[i]),
            time_ms=_time_since(failure_time, int(time[i]), bool(kept[i])),
            received=int(received[i]),
            sent=int(sent[i]),
            depth=None if depth is None else int(depth[i]),
        )
        for i, (operator, subtask) in enumerate(history.subtasks)
    )


def _rollback_rounds(history: History, start: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield each round of rollbacks: the line before it, shape (n,), and the channels that force it.

    Those are, as `forced` gives them, the channels with orphan messages and the checkpoint to which each sends its
    receiver, shape (m,) both. Only the channels out of subtasks that fell in one round can force another one.
    """
    line, active = start.astype(np.int64), np.arange(len(history.src))
    while True:
        channel, kept = forced(history, line, active)
        if not len(channel):
            return
        yield line, channel, kept
        lower = line.copy()
        np.minimum.at(lower, history.dst[channel], kept)
        active = np.flatnonzero((lower < line)[history.src])
        line = lower


def _strictest_channels(history: History, channel: Ints, kept: Ints) -> tuple[Ints, Ints]:
    """Choose per receiver the channel that sends it furthest back, by receiver; shape (m,) in, (receivers,) out.

    E.g. channels [4, 7] into the same subtask that keep [3, 1] of its checkpoints → channel [7], kept [1].
    """
    order = np.lexsort((channel, kept, history.dst[channel]))  # by receiver, then least kept, then first channel
    _, best = np.unique(history.dst[channel][order], return_index=True)
    return channel[order][best], kept[order][best]


def _steps_of_round(history: History, line: Ints, channel: Ints, kept: Ints, number: int) -> list[RollbackStep]:
    """Make the rows of one round: `channel` forces its receiver from `line`, shape (n,), to `kept`; shape (m,) both."""
    receiver, sender = history.dst[channel], history.src[channel]
    sent = sent_limit(history, line, channel)
    received = history.received[history.received_at[channel] + line[receiver]]
    columns = (receiver, line[receiver], kept, channel, sender, sent, received)
    return [
        RollbackStep(
            subtask=i, from_=before, to=to, channel=k, sender=j, orphans_from=first, orphans_to=end, round=number
        )
        for i, before, to, k, j, first, end in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _at_least(stored: Ints, channels: Sequence[str], last: Mapping[str, int]) -> Ints:
    """Raise the newest stored watermark of each channel, shape (c,), to the last one that is known.

    >>> _at_least(np.array([2, 3]), ["a/0->b/0", "b/0->a/0"], {"b/0->a/0": 7}).tolist()
    [2, 7]
    """
    return np.maximum(stored, np.array([last.get(name, 0) for name in channels], np.int64)) if last else stored


def _messages_per_subtask(undone: Ints, owner: Ints, n: int) -> Ints:
    """Add up messages undone per channel, shape (c,), by the subtask that owns its end, shape (n,).

    A damaged channel, whose watermark is not known (`UNBOUNDED`), adds nothing.

    >>> undone = np.array([2, 3, 4, -5, np.iinfo(np.int64).max - 5])
    >>> _messages_per_subtask(undone, np.array([1, 0, 1, 0, 1]), 2).tolist()
    [3, 6]
    """
    known = np.where((undone >= 0) & (undone < np.iinfo(np.int64).max // 2), undone, 0)
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, known)
    return total


def _time_since(failure_time: int | None, time: int, kept: bool) -> int | None:
    """Return the ms from a checkpoint's `time` (-1: not known) to the failure; 0 for a subtask that is `kept`."""
    if kept:
        return 0
    return None if failure_time is None or time < 0 else failure_time - time
