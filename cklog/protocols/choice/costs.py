"""What the checkpoints of a protocol would have cost along an execution, whenever it had failed.

At every moment the line of a failure of all subtasks is known from one pass (`cklog.protocols.failures_over_time`), or
it is the last complete round. Between two moments at which a checkpoint is there the line stays, and what would be lost
grows with the time: the mean over all moments is that of straight lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints
from cklog.history.history import History
from cklog.protocols.choice.coordinated import Rounds
from cklog.protocols.choice.execution import ReplayedRun
from cklog.protocols.choice.placed import Placed, history_of_placed
from cklog.protocols.failures_over_time import NEVER, kept_since, taken_at
from cklog.zigzag.intervals import useless

MOMENTS = 2_000
"""Stretches between checkpoints that are looked at; of more, evenly chosen ones."""

_CELLS = 20_000_000
"""Numbers per channel or subtask and stretch that are made at the most."""


@dataclass(frozen=True, slots=True)
class FailureCost:
    """What a failure of all subtasks costs, by when it comes: the mean over all moments of the run, and the worst.

    `lost_ms` : how far the subtask that falls farthest goes back in time
    `mean_lost_ms` : how far subtasks go back on average
    `rolled_past` : checkpoints newer than the line
    `kept` : the most checkpoints that must be kept, of all subtasks
    `kept_bytes` : the most that these take, each as much as the recorded ones of its subtask on average; None where no
        record of a subtask tells
    `log_bytes` : of messages that may have to be replayed, None where the sizes of messages are not known
    `log_messages` : their number
    """

    lost_ms: float
    worst_lost_ms: float
    mean_lost_ms: float
    rolled_past: float
    worst_rolled_past: int
    kept: int
    kept_bytes: float | None
    log_messages: int
    log_bytes: float | None


def useless_of(execution: ReplayedRun, checkpoints: Placed) -> int:
    """Count the checkpoints that are on no consistent line ever (Netzer and Xu)."""
    history = history_of_placed(execution, checkpoints, whole=True)
    stored = history.label > 0
    return int(np.count_nonzero(useless(history) & stored))


def rollback_of(execution: ReplayedRun, checkpoints: Placed, rounds: Rounds | None) -> FailureCost:
    """Return what failures cost; of `rounds` the last complete one is the line: no message is in flight across it."""
    history = history_of_placed(execution, checkpoints, whole=False)
    begin, end = execution.span
    n = len(history.subtasks)
    taken = taken_at(history)
    edges = _stretches(taken, begin, end, max(1, min(MOMENTS, _CELLS // max(n, len(history.channels)))))
    lines, newest = np.zeros((2, len(edges) - 1, n), np.int64)
    kept = None if rounds else kept_since(history, taken)
    for i in range(n):
        rows = slice(int(history.first[i]), int(history.first[i + 1]))
        newest[:, i] = np.searchsorted(taken[rows], edges[:-1], "right") - 1
        if kept is not None:
            lines[:, i] = np.searchsorted(np.sort(kept[rows]), edges[:-1], "right")
    if rounds:
        lines[:] = np.searchsorted(rounds.complete, edges[:-1], "right")[:, None]
    moment = np.where(history.time < 0, begin, history.time)
    at = moment[history.first[:-1] + lines]  # when the checkpoints of each line were taken, (stretches, n)
    width = np.diff(edges).astype(np.float64)
    middle = (edges[:-1] + edges[1:]) / 2
    past = (newest - lines).sum(axis=1)
    stored = newest - lines + (lines > 0)  # the initial state is not stored
    size_kept = float((stored * np.where(stored.any(axis=0), execution.state_bytes, 0.0)).sum(axis=1).max())
    needed, size = (0, 0.0) if rounds else _logged(execution, history, lines, edges)
    total = max(width.sum(), 1.0)
    return FailureCost(
        lost_ms=float(((middle - at.min(axis=1)) * width).sum() / total),
        worst_lost_ms=float((edges[1:] - at.min(axis=1)).max()),
        mean_lost_ms=float(((middle - at.mean(axis=1)) * width).sum() / total),
        rolled_past=float((past * width).sum() / total),
        worst_rolled_past=int(past.max()),
        kept=int(stored.sum(axis=1).max()),
        kept_bytes=None if np.isnan(size_kept) else size_kept,
        log_messages=needed,
        log_bytes=None if np.isnan(size) else size,
    )


def _stretches(taken: Ints, begin: int, end: int, most: int) -> Ints:
    """Return the moments between which no checkpoint is taken, from the begin of a run to its end."""
    inside = np.unique(taken[(taken > begin) & (taken < end) & (taken < NEVER)])
    if len(inside) > most:
        inside = inside[np.linspace(0, len(inside) - 1, most).astype(np.int64)]
    return np.unique(np.concatenate([[begin], inside, [end]])).astype(np.int64)


def _logged(execution: ReplayedRun, history: History, lines: Ints, edges: Ints) -> tuple[int, float]:
    """Return the most messages, and bytes, that logs must hold at any moment: sent by then, and not in the line."""
    sends = np.flatnonzero(~execution.receives)
    order = np.lexsort((execution.number[sends], execution.channel[sends]))
    sends = sends[order]
    cut = np.searchsorted(execution.channel[sends], np.arange(len(history.channels) + 1)).tolist()
    messages = np.zeros(len(lines), np.int64)
    size = np.zeros(len(lines))
    for k in range(len(history.channels)):
        times = np.maximum.accumulate(execution.time[sends[cut[k] : cut[k + 1]]])
        received = history.received[history.received_at[k] + lines[:, history.dst[k]]]
        waiting = np.maximum(np.searchsorted(times, edges[1:], "right") - received, 0)
        messages += waiting
        if waiting.any():
            size += waiting * execution.bytes[k]
    return int(messages.max()), float(size.max())
