"""Which line a question asks for: the latest one, the latest or earliest through a choice, or the last round.

Where no line holds the checkpoints that are asked for, a finding says why: a set of checkpoints is on a common line
exactly if no zigzag path leads from one of them to another or to itself [1]_.

.. [1] R. Netzer, J. Xu, "Necessary and sufficient conditions for consistent global snapshots", IEEE Trans. Parallel
   and Distributed Systems 6(2), 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cklog.arrays.types import Ints
from cklog.errors import NotFound, SelfCheckFailed, UsageError
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory
from cklog.lines.entries import protocol_of, step_of, zigzag_message
from cklog.lines.fixpoint import NoConsistentLine, earliest_with, forced, recovery_line
from cklog.lines.rollback import forcing_chain, rollback_steps
from cklog.lines.rounds import round_line, rounds_of
from cklog.lines.sentences import message_words, rollback_sentence
from cklog.model.findings import Finding
from cklog.model.names import parse_subtask
from cklog.model.question import Question
from cklog.zigzag.paths import Hop, Zigzags


class Searched(NamedTuple):
    """The line found below `start` (both shape (n,)); None where there is none, and `findings` say why."""

    start: Ints
    line: Ints | None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def search_line(records: CheckpointRecords, built: BuiltHistory, question: Question) -> Searched:
    """Find the line that a question asks for.

    A coordinated job without survivors restarts from its last complete round, whatever is newer.

    Raises
    ------
    NotFound : `--at` names what is not there
    UsageError : an algorithm that does not exist, or the earliest line through nothing
    """
    history = built.history
    start, chosen = _start_and_chosen(history, question.at)
    if question.earliest and not chosen:
        raise UsageError("--earliest: through which checkpoint?", "add --at OP/SUB=CKPT")
    try:
        if question.earliest:
            return _earliest_line(history, start, chosen)
        if not chosen and not history.survivor.any() and protocol_of(records) == "coordinated":
            line, findings, notes = round_line(history, rounds_of(records, built))
            return Searched(line, line, tuple(findings), notes)
        line = _search_algorithm(question.algorithm)(history, start)
    except NoConsistentLine as error:
        return Searched(start, None, (_inconsistent_initial(history, error.channel),))
    if np.any(line[list(chosen)] < start[list(chosen)]):
        return Searched(start, None, (unreachable(history, start, line, chosen),))
    _check_consistent(history, line)
    return Searched(start, line)


def _search_algorithm(name: str) -> Callable[[History, Ints], Ints]:
    """Choose how to search for the latest line, by the name that `--algorithm` gives."""
    if name == "rollback-propagation":
        from cklog.lines.propagation import rollback_propagation

        return rollback_propagation
    if name != "watermark-fixpoint":
        raise UsageError(f"--algorithm {name}: watermark-fixpoint or rollback-propagation")
    return recovery_line


def _start_and_chosen(history: History, at: tuple[tuple[str, int], ...]) -> tuple[Ints, dict[int, int]]:
    """Lower the newest checkpoints to what `--at` asks for, shape (n,); and list its checkpoints by subtask."""
    start = history.newest.copy()
    chosen: dict[int, int] = {}
    for name, number in at:
        row = row_named(history, "--at", name, number)
        i = int(np.searchsorted(history.first, row, "right")) - 1
        start[i] = chosen[i] = row - int(history.first[i])
    return start, chosen


def row_named(history: History, option: str, name: str, number: int) -> int:
    """Return the row of the checkpoint that `option` names as OP/SUB=CKPT.

    Raises
    ------
    NotFound : there is no such subtask or checkpoint; names what there is
    """
    subtask = parse_subtask(name)
    if subtask not in history.subtasks:
        known = ", ".join(str(s) for s in history.subtasks[:8])
        raise NotFound(f"{option} {name}={number}: no subtask {name}", f"subtasks here: {known}")
    i = history.subtasks.index(subtask)
    low, high = history.first[i : i + 2].tolist()
    labels = history.label[low:high]
    rows = np.flatnonzero(labels == number)
    if number < 0 or not len(rows):
        there = ", ".join(str(x) for x in labels[labels >= 0][-8:].tolist())
        raise NotFound(f"{option} {name}={number}: no usable checkpoint {number}", f"the last ones are {there}")
    return int(low + rows[0])


def _earliest_line(history: History, start: Ints, chosen: dict[int, int]) -> Searched:
    """Find the earliest line through `chosen` (subtask → checkpoint, by indices)."""
    line = earliest_with(history, chosen)
    if np.any(line[list(chosen)] > start[list(chosen)]) or np.any(line > history.newest):
        latest = recovery_line(history, start)
        return Searched(start, None, (unreachable(history, start, latest, chosen),))
    _check_consistent(history, line)
    return Searched(line, line)


def _check_consistent(history: History, line: Ints) -> None:
    """Raise if the line has an orphan message: that would be a bug here."""
    channel, _ = forced(history, line, np.arange(len(history.src)))
    if len(channel):
        raise SelfCheckFailed(f"the line found has orphan messages on {history.channels[channel[0]]}")


def no_initial_line(history: History) -> list[Finding]:
    """Report if initial states contradict each other: then not all subtasks can go back to them."""
    initial = np.zeros(len(history.subtasks), np.int64)
    channel = np.flatnonzero(history.received_of(initial) > history.sent_of(initial))
    return [_inconsistent_initial(history, int(k)) for k in channel[:1]]


def _inconsistent_initial(history: History, channel: int) -> Finding:
    name = history.channels[channel]
    message = (
        f"{name}: the records of checkpoint 0 say that {history.subtasks[history.dst[channel]]} had received more "
        f"than {history.subtasks[history.src[channel]]} had sent: no line is consistent"
    )
    return Finding("no-consistent-line", "error", name, message, effect="restart-fails")


def unreachable(history: History, start: Ints, line: Ints, chosen: dict[int, int]) -> Finding:
    """Report why no consistent line holds `chosen`: a zigzag path among them, or orphan messages of what was lost.

    Parameters
    ----------
    start : newest allowed checkpoint per subtask, `chosen` among them, shape (n,)
    line : the latest consistent line below it, shape (n,)
    chosen : subtask → checkpoint, by indices
    """

    def checkpoint_name(i: int) -> str:
        return f"{history.subtasks[i]}={history.label[history.first[i] + chosen[i]]}"

    asked = ", ".join(checkpoint_name(i) for i in sorted(chosen))
    forbidden = forbidding(history, chosen)
    if forbidden is not None:
        first, last, hops = forbidden
        why = "; ".join(message_words(zigzag_message(history, hop)) for hop in hops)
        what = f"a Z-path leads from {checkpoint_name(first)} to {checkpoint_name(last)}"
        if first == last:
            what = f"{checkpoint_name(first)} is on a Z-cycle"
        text = f"no consistent line holds {asked}, now or ever: {what}: {why}"
        return Finding("checkpoint-unreachable", "error", asked, text, effect="restart-fails")
    i = next(i for i in sorted(chosen) if line[i] < start[i])
    chain = forcing_chain(rollback_steps(history, start), i)
    why = "; ".join(rollback_sentence(step_of(history, step)) for step in chain)
    text = f"no consistent line of stored checkpoints holds {asked}, because of what the failure undid: {why}"
    return Finding("checkpoint-unreachable", "error", asked, text, effect="restart-fails")


def forbidding(history: History, chosen: Mapping[int, int]) -> tuple[int, int, list[Hop]] | None:
    """Return a shortest zigzag path from one of `chosen` (subtask → checkpoint) to another or itself; None: none.

    Returns
    -------
    subtask where it begins, subtask where it ends, its messages : of paths of equal length the first pair's
    """
    search = Zigzags(history)
    pairs = [(i, j) for i in sorted(chosen) for j in sorted(chosen)]
    paths = [(i, j, search.path((i, chosen[i]), (j, chosen[j]))) for i, j in pairs]
    found = [(i, j, path) for i, j, path in paths if path is not None]
    return min(found, key=lambda path: len(path[2]), default=None)
