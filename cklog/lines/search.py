"""Which line a question asks for: the latest one, the latest or earliest through a choice, or the last round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cklog.arrays.types import Ints
from cklog.errors import NotFound, SelfCheckFailed, UsageError
from cklog.history.arrays import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import BuiltHistory
from cklog.lines.entries import message_words, protocol_of, sentence, step_of, zigzag_message
from cklog.lines.fixpoint import NoConsistentLine, forced, recovery_line
from cklog.lines.rounds import round_line, rounds_of
from cklog.lines.through_checkpoints import earliest_with, forbidding
from cklog.model.findings import Finding
from cklog.model.names import parse_subtask
from cklog.model.question import Question


@dataclass(frozen=True, slots=True)
class Searched:
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
    start, chosen = _start(history, question.at)
    if question.earliest and not chosen:
        raise UsageError("--earliest: through which checkpoint?", "add --at OP/SUB=CKPT")
    try:
        if question.earliest:
            return _earliest(history, start, chosen)
        if not chosen and not history.survivor.any() and protocol_of(records) == "coordinated":
            line, findings, notes = round_line(history, rounds_of(records, built))
            return Searched(line, line, tuple(findings), notes)
        line = _search(question.algorithm)(history, start)
    except NoConsistentLine as error:
        return Searched(start, None, (_inconsistent_initial(history, error.channel),))
    if np.any(line[list(chosen)] < start[list(chosen)]):
        return Searched(start, None, (unreachable(history, start, line, chosen),))
    _check(history, line)
    return Searched(start, line)


def _search(algorithm: str) -> Callable[[History, Ints], Ints]:
    if algorithm == "rollback-propagation":
        from cklog.lines.propagation import rollback_propagation

        return rollback_propagation
    if algorithm != "watermark-fixpoint":
        raise UsageError(f"--algorithm {algorithm}: watermark-fixpoint or rollback-propagation")
    return recovery_line


def _start(history: History, at: tuple[tuple[str, int], ...]) -> tuple[Ints, dict[int, int]]:
    """The newest checkpoints, lowered to what `--at` asks for; and the subtasks that it names."""
    start = history.newest.copy()
    chosen: dict[int, int] = {}
    for name, number in at:
        row = row_named(history, "--at", name, number)
        i = int(np.searchsorted(history.first, row, "right")) - 1
        start[i] = chosen[i] = row - int(history.first[i])
    return start, chosen


def row_named(history: History, option: str, name: str, number: int) -> int:
    """The row of the checkpoint that `option` names as OP/SUB=CKPT.

    Raises
    ------
    NotFound : there is no such subtask or checkpoint; tells what there is
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


def _earliest(history: History, start: Ints, chosen: dict[int, int]) -> Searched:
    line = earliest_with(history, chosen)
    if np.any(line[list(chosen)] > start[list(chosen)]) or np.any(line > history.newest):
        latest = recovery_line(history, start)
        return Searched(start, None, (unreachable(history, start, latest, chosen),))
    _check(history, line)
    return Searched(line, line)


def _check(history: History, line: Ints) -> None:
    """The line has no orphan message; anything else is a bug here."""
    channel, _ = forced(history, line, np.arange(len(history.src)))
    if len(channel):
        raise SelfCheckFailed(f"the line found has orphan messages on {history.channels[channel[0]]}")


def no_initial_line(history: History) -> list[Finding]:
    """That initial states contradict each other, if they do: then not all can go back to them."""
    initial = np.zeros(len(history.subtasks), np.int64)
    channel = np.flatnonzero(history.received_of(initial) > history.sent_of(initial))
    return [_inconsistent_initial(history, int(k)) for k in channel[:1]]


def _inconsistent_initial(history: History, channel: int) -> Finding:
    name = history.channels[channel]
    message = (
        f"{name}: the records of checkpoint 0 say that {history.subtasks[history.dst[channel]]} had received more "
        f"than {history.subtasks[history.src[channel]]} had sent: no line is consistent"
    )
    return Finding("no-consistent-line", "error", name, message)


def unreachable(history: History, start: Ints, line: Ints, chosen: dict[int, int]) -> Finding:
    """Why no consistent line holds `chosen`: a zigzag path among them, or orphan messages of what was lost."""
    from cklog.lines.rollback_steps import forcing_chain, rollback_steps

    def name(i: int) -> str:
        return f"{history.subtasks[i]}={history.label[history.first[i] + chosen[i]]}"

    asked = ", ".join(name(i) for i in sorted(chosen))
    forbidden = forbidding(history, chosen)
    if forbidden is not None:
        first, last, hops = forbidden
        told = "; ".join(message_words(zigzag_message(history, hop)) for hop in hops)
        what = (
            f"{name(first)} is on a Z-cycle" if first == last else f"a Z-path leads from {name(first)} to {name(last)}"
        )
        text = f"no consistent line holds {asked}, now or ever: {what}: {told}"
        return Finding("checkpoint-unreachable", "error", asked, text)
    i = next(i for i in sorted(chosen) if line[i] < start[i])
    told = "; ".join(sentence(step_of(history, s)) for s in forcing_chain(rollback_steps(history, start), i))
    text = f"no consistent line of stored checkpoints holds {asked}, because of what the failure undid: {told}"
    return Finding("checkpoint-unreachable", "error", asked, text)
