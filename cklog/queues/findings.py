"""What a judged output queue says about itself: damage, holes and the windows in doubt, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cklog.arrays.types import Ints
from cklog.engine import Damage
from cklog.inputs.damage import damage_findings
from cklog.model.findings import Finding, Where
from cklog.model.names import Subtask
from cklog.queues.judge import QueueHole, QueueJudgement, lost_results
from cklog.queues.log import CONTROL, UNKNOWN, QueueLog

_NAMED = 5
_HOLES_TOLD = 20


def findings_of(subtask: Subtask, judged: QueueJudgement) -> tuple[Finding, ...]:
    """Every finding about the part of the queue that was looked at."""
    return (
        *damage_findings(_damage(judged)),
        *_empty(subtask, judged.log),
        *(_hole(subtask, judged.log, hole) for hole in judged.holes[-_HOLES_TOLD:]),
        *_more_holes(subtask, judged.log, judged.holes[:-_HOLES_TOLD]),
        *_doubts(subtask, judged),
        *_ties(subtask, judged),
        *_backwards(subtask, judged),
    )


def _empty(subtask: Subtask, log: QueueLog) -> Iterator[Finding]:
    if not len(log):
        message = f"{subtask}: its queue holds no record: nothing to load, and all input is replayed from its start"
        yield Finding("empty-queue", "warning", str(subtask), message)


def _damage(judged: QueueJudgement) -> list[Damage]:
    """Damage from the first record at or after T on: what lies before it cannot matter."""
    log = judged.log
    return [d for d, at in zip(log.damage, log.damage_at.tolist(), strict=True) if at >= judged.start]


def _hole(subtask: Subtask, log: QueueLog, hole: QueueHole) -> Finding:
    where = (Where(log.paths[log.file[hole.before]], int(log.offset[hole.before])),)
    between = f"between {_named(log, hole.after)} and {_named(log, hole.before)}"
    if hole.kind == "order":
        message = f"{subtask}: {hole.detail} goes on {between} as if a record of it were missing"
        return Finding("window-order", "error", str(subtask), message, where)
    if hole.kind == "count":
        window = log.window_of(hole.before)
        message = (
            f"{subtask}: the number of open windows jumps by {hole.net} {between}, where {window} is written: "
            "records are missing there or N is wrong"
        )
        return Finding("window-count-mismatch", "error", str(subtask), message, where)
    count = "an unknown number of records is" if hole.lost is None else _are(hole.lost)
    most = ""
    if hole.results is not None and hole.opens is not None:
        exact = hole.net is not None and (hole.results, hole.opens) == (max(-hole.net, 0), max(hole.net, 0))
        bound = "" if exact else "at most "
        most = f"; {bound}{hole.results or 'none'} of them closed a window, {bound}{hole.opens or 'none'} opened one"
    return Finding("output-gap", "error", str(subtask), f"{subtask}: {count} missing {between}{most}", where)


def _more_holes(subtask: Subtask, log: QueueLog, holes: Sequence[QueueHole]) -> Iterator[Finding]:
    if holes:
        first = f"the first between {_named(log, holes[0].after)} and {_named(log, holes[0].before)}"
        message = f"{subtask}: {len(holes)} more places where records are missing or N is wrong, {first}"
        yield Finding("output-gap", "error", str(subtask), message)


def _are(count: int) -> str:
    return f"{count} record is" if count == 1 else f"{count} records are"


def _named(log: QueueLog, row: int) -> str:
    """A record by its number, or by its place."""
    if row < 0:
        return "the start of the queue"
    if log.pos[row] != UNKNOWN:
        return f"record {int(log.pos[row])}"
    return f"byte {int(log.offset[row])} of {log.paths[log.file[row]]}"


def _doubts(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    log, subject = judged.log, str(subtask)
    if judged.proof == "lost" and not judged.missing:
        message = (
            f"{subtask}: the queue begins at {_named(log, 0)}, which T's own tuple wrote: what else that tuple wrote, "
            "the result of a window perhaps, lies before it"
        )
        yield Finding("lost-footprint", "error", subject, message)
    elif judged.proof == "lost":
        message = (
            f"{subtask}: N says that {judged.open_windows} windows are open, and the queue, which begins at "
            f"{_named(log, 0)}, holds the footprints of {len(judged.open)}: {judged.missing or 'some'} cannot be "
            "restored from here"
        )
        yield Finding("lost-footprint", "error", subject, message)
    elif judged.proof == "after-replay" and judged.missing:
        message = f"{subtask}: {judged.missing} open windows have no footprint that can be read; the replay opens them"
        yield Finding("missing-window", "warning", subject, message)
    if judged.proof == "after-replay" and len(judged.ghosts):
        names = _names(log, judged.ghosts)
        sure = len(judged.open) - judged.open_windows
        least = f"; at least {sure} of them did" if sure > 0 else ""
        message = f"{subtask}: {names} may have closed where records are missing{least}: the replay closes them again"
        yield Finding("doubtful-window", "warning", subject, message, _places(log, judged.ghosts))
    if judged.contradicts:
        message = (
            f"{subtask}: N says that {judged.open_windows} windows are open and {len(judged.open)} footprints of open "
            f"windows are there: {_names(log, judged.open)}"
        )
        yield Finding("window-count-mismatch", "error", subject, message)
    gone = lost_results(judged)
    if len(gone):
        message = (
            f"{subtask}: results of {_names(log, gone)} are lost from the queue; the windows have opened again since, "
            "so that the replay does not write them a second time"
        )
        yield Finding("lost-result", "error", subject, message, _places(log, gone))


def _names(log: QueueLog, rows: Ints) -> str:
    named = log.windows_of(rows[:_NAMED])
    return ", ".join(named) + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")


def _places(log: QueueLog, rows: Ints) -> tuple[Where, ...]:
    return tuple(Where(log.paths[log.file[r]], int(log.offset[r])) for r in rows[:100].tolist())


def _ties(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Without input numbers, records of one timestamp may come from one tuple or from several."""
    log = judged.log
    if log.channels:
        return
    ts = log.ts[judged.start :][log.type[judged.start :] != CONTROL]
    tied = np.flatnonzero(np.diff(ts) == 0)
    if len(tied):
        times = np.unique(ts[tied])
        message = (
            f"{subtask}: {len(times)} timestamps from T on stand in more than one record, {times[0]} first. Records "
            "without input numbers do not tell whether one tuple wrote them: if several tuples share a timestamp, "
            "the replay filter is not exact"
        )
        yield Finding("ambiguous-tie", "error", str(subtask), message)


def _backwards(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Input numbers, timestamps and record numbers never fall along a queue."""
    log, since = judged.log, judged.start
    for what, column in _rising(log):
        falls = np.flatnonzero(column[since + 1 :] < column[since:-1])  # a difference may not fit 64 bits
        if len(falls):
            row = since + int(falls[0]) + 1
            message = f"{subtask}: {what} falls from {int(column[row - 1])} to {int(column[row])} at {_named(log, row)}"
            where = (Where(log.paths[log.file[row]], int(log.offset[row])),)
            yield Finding("output-order", "error", str(subtask), message, where)


def _rising(log: QueueLog) -> Iterable[tuple[str, Ints]]:
    names: Sequence[str] = log.channels
    columns = [(f"input{' of ' + name if name else ''}", log.input[:, i]) for i, name in enumerate(names)]
    if not (log.pos == UNKNOWN).any():
        columns.append(("pos", log.pos))
    return [("ts", log.ts), *columns]
