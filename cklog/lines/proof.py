"""Proof of a recovery line from the watermarks alone, by code that shares nothing with the search.

`refute` looks for orphan messages. `newer_line` looks for a consistent line that is newer anywhere:

A line is consistent if on every channel the receiver's `received` <= the sender's `sent`. If lines L and M
are consistent, so is their componentwise maximum: both watermarks rise along a subtask's checkpoints, so
the larger of the two `received` is at most the larger of the two `sent`. Let L be consistent and M a
consistent line newer than L for some subtask i. Then max(L, M) is consistent, at or above L everywhere and
above it for i. *Closing upward* from L with i raised by one (as long as a receiver holds more than its
sender has sent, raise the sender to its first checkpoint that has) makes only moves that every consistent
line at or above that start has made as well; so it ends, at or below max(L, M). If on the other hand it
ends at all, it ends in a consistent line newer than L. Hence L is the latest consistent line exactly if,
for every i below its newest, closing upward runs out of checkpoints.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from typing import NamedTuple


class ChannelMarks(NamedTuple):
    """The watermarks of one channel, from subtask `sender` to subtask `receiver` ("op/sub" both).

    `sent[x]` is that of the sender's checkpoint x, `received[x]` that of the receiver's; 0 is the initial state, the
    last one of a survivor its current state.
    """

    sender: str
    receiver: str
    sent: list[int]
    received: list[int]


Marks = Mapping[str, ChannelMarks]
"""The watermarks of every channel, by its name."""

Orphaned = tuple[str, int, int]
"""Channel, and the half-open range of its orphan messages."""


def refute(marks: Marks, line: Mapping[str, int], running: Collection[str] = ()) -> list[Orphaned]:
    """Return the orphan messages of `line`, by channel; none means that it is consistent.

    `running` are the subtasks that `line` leaves in their current state: nothing that they sent is undone.

    >>> refute({"a/0->b/0": ChannelMarks("a/0", "b/0", [0, 2], [0, 7])}, {"a/0": 1, "b/0": 1})
    [('a/0->b/0', 2, 7)]
    """
    found = []
    for channel, (sender, receiver, sent, received) in sorted(marks.items()):
        has, needs = sent[line[sender]], received[line[receiver]]
        if needs > has and sender not in running:
            found.append((channel, has, needs))
    return found


def newer_line(
    marks: Marks, line: Mapping[str, int], newest: Mapping[str, int], survivors: Collection[str] = ()
) -> dict[str, int] | None:
    """Return a consistent line that is newer than the consistent `line`, or None: `line` is maximal.

    Parameters
    ----------
    marks : watermarks of every channel
    line : checkpoint index per subtask; consistent (`refute` finds nothing)
    newest : highest index allowed per subtask
    survivors : subtasks whose `newest` is their current state, from which nothing that they sent is undone

    Notes
    -----
    One closure per subtask, each O(channels · log checkpoints). A closure that needs a subtask already known
    to be at its highest fails at once: it would contain that subtask's failed closure.

    >>> marks = {"a/0->b/0": ChannelMarks("a/0", "b/0", [0, 2], [0, 2])}
    >>> newer_line(marks, {"a/0": 0, "b/0": 0}, {"a/0": 1, "b/0": 1})
    {'a/0': 1, 'b/0': 0}
    >>> newer_line(marks, {"a/0": 1, "b/0": 1}, {"a/0": 1, "b/0": 1}) is None
    True
    """
    closing = _UpwardClosing(marks, line, newest, survivors)
    for subtask in sorted(newest):
        if line[subtask] < newest[subtask]:
            closed = closing.closed_from(subtask)
            if closed is not None:
                return closed
    return None


class _UpwardClosing:
    """Raises subtasks of a consistent line to newer checkpoints until it is consistent again.

    It learns which subtasks are `_stuck`, so that they cannot be raised at all.
    """

    def __init__(
        self, marks: Marks, line: Mapping[str, int], newest: Mapping[str, int], survivors: Collection[str]
    ) -> None:
        self._marks, self._line, self._newest, self._survivors = marks, line, newest, survivors
        self._into: dict[str, list[str]] = {subtask: [] for subtask in newest}
        for channel, (_, receiver, _, _) in sorted(marks.items()):
            self._into[receiver].append(channel)
        self._stuck = {subtask for subtask in newest if line[subtask] >= newest[subtask]}

    def closed_from(self, subtask: str) -> dict[str, int] | None:
        """Return the lowest consistent line at or above the line with `subtask` raised by one; None if none is."""
        raised = {**self._line, subtask: self._line[subtask] + 1}
        pending = [subtask]
        while pending:
            receiver = pending.pop()
            for channel in self._into[receiver]:
                sender, _, sent, received = self._marks[channel]
                needed = self._first_sending(sender, sent, received[raised[receiver]])
                if needed <= raised[sender]:
                    continue
                if sender in self._stuck or needed > self._newest[sender]:
                    self._stuck.add(subtask)
                    return None
                raised[sender] = needed
                pending.append(sender)
        return raised

    def _first_sending(self, sender: str, sent: list[int], received: int) -> int:
        """Return the sender's first checkpoint that has sent all of `received`; one above its newest if none has."""
        newest = self._newest[sender]
        return bisect_left(sent, received, 0, newest if sender in self._survivors else newest + 1)
