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

Marks = Mapping[str, tuple[str, str, list[int], list[int]]]
"""Channel → sender "op/sub", receiver "op/sub", watermarks `sent` at each checkpoint of the sender and
`received` at each of the receiver (index 0: initial state; a survivor's last index: its current state)."""

Orphaned = tuple[str, int, int]
"""Channel, and the half-open range of its orphan messages."""


def refute(marks: Marks, line: Mapping[str, int], running: Collection[str] = ()) -> list[Orphaned]:
    """Return the orphan messages of `line`, by channel; none means that it is consistent.

    `running` are the subtasks that `line` leaves in their current state: nothing that they sent is undone.

    >>> refute({"a/0->b/0": ("a/0", "b/0", [0, 2], [0, 7])}, {"a/0": 1, "b/0": 1})
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

    >>> marks = {"a/0->b/0": ("a/0", "b/0", [0, 2], [0, 2])}
    >>> newer_line(marks, {"a/0": 0, "b/0": 0}, {"a/0": 1, "b/0": 1})
    {'a/0': 1, 'b/0': 0}
    >>> newer_line(marks, {"a/0": 1, "b/0": 1}, {"a/0": 1, "b/0": 1}) is None
    True
    """
    into: dict[str, list[str]] = {subtask: [] for subtask in newest}
    for channel, (_, receiver, _, _) in sorted(marks.items()):
        into[receiver].append(channel)
    stuck = {subtask for subtask in newest if line[subtask] >= newest[subtask]}
    for subtask in sorted(set(newest) - stuck):
        closed = _close_upward(subtask, marks, into, line, newest, survivors, stuck)
        if closed is not None:
            return closed
        stuck.add(subtask)
    return None


def _close_upward(
    subtask: str,
    marks: Marks,
    into: Mapping[str, list[str]],
    line: Mapping[str, int],
    newest: Mapping[str, int],
    survivors: Collection[str],
    stuck: Collection[str],
) -> dict[str, int] | None:
    """The lowest consistent line at or above `line` with `subtask` raised by one; None if there is none."""
    raised = {**line, subtask: line[subtask] + 1}
    pending = [subtask]
    while pending:
        receiver = pending.pop()
        for channel in into[receiver]:
            sender, _, sent, received = marks[channel]
            needed = _first_sending(sent, received[raised[receiver]], newest[sender], sender in survivors)
            if needed <= raised[sender]:
                continue
            if sender in stuck or needed > newest[sender]:
                return None
            raised[sender] = needed
            pending.append(sender)
    return raised


def _first_sending(sent: list[int], received: int, newest: int, survives: bool) -> int:
    """The first checkpoint that has sent all of `received`; `newest` + 1 if none has."""
    stored = newest if survives else newest + 1
    return bisect_left(sent, received, 0, stored)
