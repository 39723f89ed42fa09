"""Findings about an output queue: what its end leaves in doubt, and what its course says about targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cklog.arrays.types import Ints
from cklog.engine.scan import Damage
from cklog.errors import CklogError
from cklog.inputs.damage import damage_findings
from cklog.model.findings import Finding, Where
from cklog.model.names import Subtask
from cklog.model.verdict import error_without_records
from cklog.model.wording import agreeing, many
from cklog.queues.holes import QueueHole
from cklog.queues.judge import QueueJudgement, lost_results
from cklog.queues.log import CONTROL, UNKNOWN, QueueLog

if TYPE_CHECKING:
    from cklog.queues.over_time.timeline import ExtentOverTime, Timeline

_NAMED = 5
_PLACES_LISTED = 100
_HOLES_LISTED = 20


def queue_findings(subtask: Subtask, judged: QueueJudgement) -> tuple[Finding, ...]:
    """Return every finding about the part of a queue that was judged."""
    return (
        *damage_findings(_damage_behind_start(judged)),
        *_empty_queue(subtask, judged.log),
        *(_hole_finding(subtask, judged.log, hole) for hole in judged.holes[-_HOLES_LISTED:]),
        *_more_holes(subtask, judged.log, judged.holes[:-_HOLES_LISTED]),
        *_lost_windows(subtask, judged),
        *_doubtful_windows(subtask, judged),
        *_lost_result_finding(subtask, judged),
        *_tied_timestamps(subtask, judged),
        *_falling_numbers(subtask, judged),
    )


def over_time_findings(subtask: Subtask, timeline: Timeline) -> tuple[Finding, ...]:
    """Return every finding about the course of a whole queue.

    Raises
    ------
    CorruptInput, Unreadable : no record of it can be read
    """
    damage = timeline.damage
    if not timeline.result.records and not {item.id for item in damage} <= {"torn-tail"}:
        raise no_record_of(subtask, damage)
    return (*damage_findings(damage), *_window_count_mismatch(subtask, timeline), *_missed_targets(subtask, timeline))


def no_record_of(subtask: Subtask, damage: Sequence[Damage]) -> CklogError:
    """Return the error that no record of a queue can be read: damaged, refused to be read, or not understood."""
    what = f"no record of the output queue of {subtask} can be read"
    return error_without_records(what, damage_findings(damage), "look for another copy of outputs/")


def targets_of(found: ExtentOverTime) -> str:
    """Say what it is to break the targets; "" without a target.

    Such as "the extent was over 2,500 records or the replay over 100 tuples".
    """
    parts = [] if found.max_extent is None else [f"the extent was over {found.max_extent:,} records"]
    if found.max_replay is not None and found.replay is not None:
        parts.append(f"the replay {'' if parts else 'was '}over {found.max_replay:,} tuples")
    return " or ".join(parts)


def _empty_queue(subtask: Subtask, log: QueueLog) -> Iterator[Finding]:
    if not len(log):
        message = f"{subtask}: its queue holds no record: nothing to load, and all input is replayed from its start"
        yield Finding("empty-queue", "warning", str(subtask), message)


def _damage_behind_start(judged: QueueJudgement) -> list[Damage]:
    """Return the damage from the first record at or after T on: what lies before it cannot matter."""
    log = judged.log
    return [d for d, at in zip(log.damage, log.damage_at.tolist(), strict=True) if at >= judged.start]


def _hole_finding(subtask: Subtask, log: QueueLog, hole: QueueHole) -> Finding:
    where = (_place_of(log, hole.before),)
    between = f"between {_record_name(log, hole.after)} and {_record_name(log, hole.before)}"
    if hole.kind == "order":
        message = f"{subtask}: {hole.detail} goes on {between} as if a record of it were missing"
        return Finding(
            id="window-order", severity="error", subject=str(subtask), message=message, where=where, effect="data-lost"
        )
    if hole.kind == "count":
        window = log.window_of(hole.before)
        message = (
            f"{subtask}: the number of open windows jumps by {hole.net} {between}, where {window} is written: "
            "records are missing there or N is wrong"
        )
        return Finding(
            id="window-count-mismatch",
            severity="error",
            subject=str(subtask),
            message=message,
            where=where,
            effect="data-lost",
        )
    message = f"{subtask}: {_missing_count(hole.lost)} missing {between}{_most_of_kinds(hole)}"
    return Finding(
        id="output-gap", severity="error", subject=str(subtask), message=message, where=where, effect="older-line"
    )


def _missing_count(lost: int | None) -> str:
    if lost is None:
        return "an unknown number of records is"
    return f"{lost} record is" if lost == 1 else f"{lost} records are"


def _most_of_kinds(hole: QueueHole) -> str:
    """Say how many of the missing records closed a window and how many opened one; "" if nothing tells."""
    if hole.results is None or hole.opens is None:
        return ""
    exact = hole.net is not None and (hole.results, hole.opens) == (max(-hole.net, 0), max(hole.net, 0))
    bound = "" if exact else "at most "
    if hole.lost == 1 and exact:
        return "; it closed a window" if hole.results else "; it opened a window" if hole.opens else "; it was a check"
    return f"; {bound}{hole.results or 'none'} of them closed a window, {bound}{hole.opens or 'none'} opened one"


def _more_holes(subtask: Subtask, log: QueueLog, holes: Sequence[QueueHole]) -> Iterator[Finding]:
    if holes:
        first = f"the first between {_record_name(log, holes[0].after)} and {_record_name(log, holes[0].before)}"
        message = f"{subtask}: {many(len(holes), 'more place')} where records are missing or N is wrong, {first}"
        yield Finding("output-gap", "error", str(subtask), message, effect="older-line")


def _lost_windows(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Name windows that cannot be restored, or that only the replay opens."""
    log, subject = judged.log, str(subtask)
    if judged.proof == "lost" and not judged.missing:
        message = (
            f"{subtask}: the queue begins at {_record_name(log, 0)}, which T's own tuple wrote: what else that tuple "
            "wrote, the result of a window perhaps, lies before it"
        )
        yield Finding("lost-footprint", "error", subject, message, effect="data-lost")
    elif judged.proof == "lost":
        message = (
            f"{subtask}: N says that {judged.open_windows} windows are open, and the queue, which begins at "
            f"{_record_name(log, 0)}, holds the footprints of {len(judged.open)}: {judged.missing or 'some'} cannot be "
            "restored from here"
        )
        yield Finding("lost-footprint", "error", subject, message, effect="data-lost")
    elif judged.proof == "after-replay" and judged.missing:
        message = (
            f"{subtask}: {many(judged.missing, 'open window', 'have')} no footprint that can be read; the replay opens "
            f"{'it' if judged.missing == 1 else 'them'}"
        )
        yield Finding("missing-window", "warning", subject, message)


def _doubtful_windows(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Name windows that may have closed in a hole, and an N that fits neither footprints nor holes."""
    log, subject = judged.log, str(subtask)
    if judged.proof == "after-replay" and len(judged.ghosts):
        names = _window_names(log, judged.ghosts)
        sure = len(judged.open) - judged.open_windows
        least = f"; at least {sure} of them did" if sure > 0 else ""
        message = f"{subtask}: {names} may have closed where records are missing{least}: the replay closes them again"
        yield Finding(
            id="doubtful-window",
            severity="warning",
            subject=subject,
            message=message,
            where=_places_of(log, judged.ghosts),
        )
    if judged.contradicts:
        message = (
            f"{subtask}: N says that {many(judged.open_windows, 'window', 'are')} open and "
            f"{many(len(judged.open), 'footprint')} of open windows {agreeing(len(judged.open), 'are')} there: "
            f"{_window_names(log, judged.open)}"
        )
        yield Finding("window-count-mismatch", "error", subject, message, effect="data-lost")


def _lost_result_finding(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Name results that no replay writes again, because their windows have opened again."""
    gone = lost_results(judged)
    if len(gone):
        agreed, opened = ("the result", "the window has opened") if len(gone) == 1 else ("results", "they have opened")
        message = (
            f"{subtask}: {agreed} of {_window_names(judged.log, gone)} {agreeing(len(gone), 'are')} lost from the "
            f"queue, and since then {opened} again: the replay does not write what is lost a second "
            "time. Recompute it if it is needed"
        )
        yield Finding(
            id="lost-result",
            severity="error",
            subject=str(subtask),
            message=message,
            where=_places_of(judged.log, gone),
            effect="data-lost",
        )


def _tied_timestamps(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Say that records of one timestamp may come from several tuples, if no input numbers tell these apart."""
    log = judged.log
    if log.channels:
        return
    ts = log.ts[judged.start :][log.type[judged.start :] != CONTROL]
    tied = np.flatnonzero(np.diff(ts) == 0)
    if len(tied):
        times = np.unique(ts[tied])
        message = (
            f"{subtask}: {many(len(times), 'timestamp')} from T on {agreeing(len(times), 'stand')} in more than one "
            f"record, {times[0]} first. Records "
            "without input numbers do not tell whether one tuple wrote them: if several tuples share a timestamp, "
            "the replay filter is not exact"
        )
        yield Finding("ambiguous-tie", "error", str(subtask), message, effect="data-lost")


def _falling_numbers(subtask: Subtask, judged: QueueJudgement) -> Iterator[Finding]:
    """Say where input numbers, timestamps or record numbers fall, which they never do along an intact queue."""
    log, since = judged.log, judged.start
    for what, column in _rising_columns(log):
        falls = np.flatnonzero(column[since + 1 :] < column[since:-1])  # a difference may not fit 64 bits
        if len(falls):
            row = since + int(falls[0]) + 1
            message = (
                f"{subtask}: {what} falls from {int(column[row - 1])} to {int(column[row])} at {_record_name(log, row)}"
            )
            yield Finding(
                id="output-order",
                severity="error",
                subject=str(subtask),
                message=message,
                where=(_place_of(log, row),),
                effect="data-lost",
            )


def _rising_columns(log: QueueLog) -> Iterable[tuple[str, Ints]]:
    """Return the columns that must not fall, each with its name in messages, shape (rows,)."""
    names: Sequence[str] = log.channels
    columns = [(f"input{' of ' + name if name else ''}", log.input[:, i]) for i, name in enumerate(names)]
    if not (log.pos == UNKNOWN).any():
        columns.append(("pos", log.pos))
    return [("ts", log.ts), *columns]


def _record_name(log: QueueLog, row: int) -> str:
    """Name a record by its number, or by its place."""
    if row < 0:
        return "the start of the queue"
    if log.pos[row] != UNKNOWN:
        return f"record {int(log.pos[row])}"
    return f"byte {int(log.offset[row])} of {log.paths[log.file[row]]}"


def _window_names(log: QueueLog, rows: Ints) -> str:
    named = log.windows_of(rows[:_NAMED])
    return ", ".join(named) + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")


def _place_of(log: QueueLog, row: int) -> Where:
    return Where(log.paths[log.file[row]], int(log.offset[row]))


def _places_of(log: QueueLog, rows: Ints) -> tuple[Where, ...]:
    return tuple(_place_of(log, row) for row in rows[:_PLACES_LISTED].tolist())


def _window_count_mismatch(subtask: Subtask, timeline: Timeline) -> Iterator[Finding]:
    met = timeline.mismatch
    if met is not None:
        message = (
            f"{subtask}: N is not the number of windows that the footprints say are open at {met.records:,} of "
            f"{timeline.result.records:,} records, first at record {met.record}, where N is {met.said} and "
            f"{met.found} are open: extents from there on are too large where a result is missing, too small where "
            "footprints are"
        )
        yield Finding(
            id="window-count-mismatch", severity="warning", subject=str(subtask), message=message, where=(met.place,)
        )


def _missed_targets(subtask: Subtask, timeline: Timeline) -> Iterator[Finding]:
    found = timeline.result
    if timeline.replay_unknown:
        message = f"{subtask}: records carry no input numbers, so that a replay cannot be counted in tuples"
        yield Finding("replay-unknown", "warning", str(subtask), message)
    if found.breaches:
        where = () if timeline.first_breach is None else (timeline.first_breach,)
        yield Finding(
            id="extent-over-target",
            severity="error",
            subject=str(subtask),
            message=f"{subtask}: {_breach_sentence(found)}",
            where=where,
            effect="none",
        )


def _breach_sentence(found: ExtentOverTime) -> str:
    """Say when a target was broken, for how long, and by which window."""
    total, first = found.breached, found.breaches[0]
    times = "once" if total["stretches"] == 1 else f"{total['stretches']:,} times"
    largest = _extent_and_replay(found.extent["max"], None if found.replay is None else found.replay["max"])
    return (
        f"{targets_of(found)} {times}, for {total['ms']:,} ms and {total['records']:,} of {found.records:,} records; "
        f"first at record {first['from_record']} (timestamp {first['from_ts']}) to record {first['to_record']} "
        f"({first['to_ts']}), where {first['oldest']} held T back: "
        f"{_extent_and_replay(first['extent'], first['replay'])}; largest of all: {largest}"
    )


def _extent_and_replay(extent: int, replay: int | None) -> str:
    return f"{extent:,} records" + ("" if replay is None else f", {replay:,} tuples")
