"""The checkpoints of a run as arrays: the input of every graph analysis.

`History` is what the algorithms see: no files, no Arrow. `cklog.history.watermarks` builds it from checkpoint records.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints, Mask, Small
from cklog.model.names import Subtask


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Usable checkpoints of n subtasks with watermarks on c channels.

    Subtask i has checkpoints 0 … newest[i] (0 = initial state); checkpoint x of it is row `first[i] + x` of
    `label` and `time`. Channel k runs from subtask `src[k]` to `dst[k]`; the watermark that checkpoint x of its
    sender holds is `sent[sent_at[k] + x]`, of its receiver `received[received_at[k] + x]`. Watermarks are
    exclusive (next sequence number) and do not decrease along x.

    `survivor[i]`: the last row of subtask i is not a stored checkpoint but its current state, a virtual checkpoint
    behind the stored ones: subtask i did not fail, so its state was not lost and counts as its newest checkpoint.

    Attributes
    ----------
    subtasks : n names, sorted
    channels : c names, sorted
    src, dst : subtask index, shape (c,)
    first : shape (n + 1,)
    label : checkpoint number of each row; -1 for the current state, shape (first[n],)
    time : milliseconds, -1 if not known, shape (first[n],)
    sent_at, received_at : shape (c + 1,)
    sent, received : next sequence numbers, shapes (sent_at[c],) and (received_at[c],); see `narrowed`
    survivor : shape (n,), bool
    """

    subtasks: tuple[Subtask, ...]
    channels: tuple[str, ...]
    src: Ints
    dst: Ints
    first: Ints
    label: Ints
    time: Ints
    sent_at: Ints
    received_at: Ints
    sent: Ints | Small
    received: Ints | Small
    survivor: Mask

    @property
    def newest(self) -> Ints:
        """Index of the newest checkpoint per subtask (the current state for survivors), shape (n,)."""
        newest: Ints = np.diff(self.first) - 1
        return newest

    def sent_of(self, line: Ints) -> Ints:
        """Return the watermark of every channel's sender at `line` (checkpoint index per subtask), shape (c,)."""
        found: Ints = self.sent[self.sent_at[:-1] + line[self.src]].astype(np.int64)
        return found

    def received_of(self, line: Ints) -> Ints:
        """Return the watermark of every channel's receiver at `line`, shape (c,)."""
        found: Ints = self.received[self.received_at[:-1] + line[self.dst]].astype(np.int64)
        return found

    def label_of(self, line: Ints) -> Ints:
        """Return the checkpoint numbers of `line`, shape (n,)."""
        found: Ints = self.label[self.first[:-1] + line]
        return found


def narrowed(values: Ints) -> Ints | Small:
    """Return numbers in half the bytes where all, and the sum of any two, fit: watermarks are most of a history.

    >>> [narrowed(np.array([most])).itemsize for most in (2**30 - 1, 2**30)]
    [4, 8]
    """
    fit = values.min(initial=0) > -(1 << 30) and values.max(initial=0) < 1 << 30
    return values.astype(np.int32) if fit else values


def history_of(
    checkpoints: dict[str, list[int]],
    sent: dict[str, list[int]],
    received: dict[str, list[int]],
    survivors: frozenset[str] = frozenset(),
) -> History:
    """Make a small history that is written by hand, for examples and tests.

    `checkpoints` maps "op/sub" to the labels of its stored checkpoints (initial state not listed); `sent` and
    `received` map "a/0->b/0" to the watermark at the initial state, at each stored checkpoint and, for a
    survivor, at its current state.

    >>> h = history_of({"a/0": [5], "b/0": [10]}, {"a/0->b/0": [0, 2]}, {"a/0->b/0": [0, 7]})
    >>> h.newest.tolist(), h.sent_of(h.newest).tolist(), h.received_of(h.newest).tolist()
    ([1, 1], [2], [7])
    """
    names = sorted(checkpoints, key=_subtask_named)
    index = {name: i for i, name in enumerate(names)}
    labels = [[0, *checkpoints[n], *([-1] if n in survivors else [])] for n in names]
    channels = sorted(sent)
    ends = [c.partition("#")[0].split("->") for c in channels]
    return History(
        subtasks=tuple(_subtask_named(n) for n in names),
        channels=tuple(channels),
        src=np.array([index[a] for a, _ in ends], np.int64),
        dst=np.array([index[b] for _, b in ends], np.int64),
        first=_starts_of([len(row) for row in labels]),
        label=_flat(labels),
        time=np.full(sum(map(len, labels)), -1, np.int64),
        sent_at=_starts_of([len(sent[c]) for c in channels]),
        received_at=_starts_of([len(received[c]) for c in channels]),
        sent=narrowed(_flat([sent[c] for c in channels])),
        received=narrowed(_flat([received[c] for c in channels])),
        survivor=np.array([n in survivors for n in names], np.bool_),
    )


def _subtask_named(name: str) -> Subtask:
    operator, _, number = name.rpartition("/")
    return Subtask(operator, int(number))


def _flat(rows: list[list[int]]) -> Ints:
    return np.array(list(itertools.chain.from_iterable(rows)), np.int64)


def _starts_of(lengths: list[int]) -> Ints:
    """Return where rows of these lengths begin in a flat array, and where the last one ends: [2, 3] → [0, 2, 5]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
