"""The local order of each subtask's raw events, and where in it the subtask took its checkpoints.

Events are in the order of their `lsn` where every event of the subtask has one; else in that of the log: files by
name (numbers in names by value), then by offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, integers
from cklog.arrays.types import Ints, Mask
from cklog.history.events.batch import Places, place
from cklog.history.events.kernels import FOREIGN, INCOMPLETE
from cklog.model.findings import Finding, Severity, Where, effect_of_error
from cklog.model.names import Subtask
from cklog.model.wording import agreeing, many

_LEAST = np.iinfo(np.int64).min

UNUSABLE = {FOREIGN: "foreign-channel", INCOMPLETE: "incomplete-event"}
"""Finding ids, by what is wrong with events that cannot be used."""


class Order(NamedTuple):
    """The checkpoint events of n subtasks, by subtask and local order, and who wrote events where.

    Attributes
    ----------
    places : where the subtasks took their checkpoints, as kernels need it
    taken : a row for each checkpoint event: operator, subtask, checkpoint, time, path, offset
    owner : subtask of each row, shape (checkpoints,)
    every : of subtasks whose events have local numbers, the positions of all checkpoint events, whenever they were
        taken; by subtask
    writers : subtasks with events in a file, by path
    heard : subtasks with an event by the moment asked for
    counted : number of events by kind
    findings : what is wrong with the order
    """

    places: Places
    taken: pa.Table
    owner: Ints
    every: Mapping[int, Ints]
    writers: Mapping[str, frozenset[int]]
    heard: frozenset[Subtask]
    counted: Mapping[str, int]
    findings: tuple[Finding, ...]


def order_of(survey: pa.Table, findings: Iterable[Finding], as_of: int | None) -> Order:
    """Put the checkpoint events of a survey in their local order.

    Parameters
    ----------
    survey : rows of `cklog.history.events.kernels.SURVEY`
    findings : what is wrong with the files; they may name files in which nothing is intact
    as_of : milliseconds; checkpoints taken later, or at no known time, are left out
    """
    counts, single = survey.filter(pc.is_null(survey["offset"])), survey.filter(pc.is_valid(survey["offset"]))
    subtasks = tuple(sorted(set(_subtasks_of(survey))))
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    writer = np.array([index[s] for s in _subtasks_of(counts)], np.int64)
    events = np.bincount(writer, counts["events"].to_numpy(), len(subtasks))
    numbered = np.bincount(writer, counts["numbered"].to_numpy(), len(subtasks))
    paths = {*survey["path"].to_pylist(), *(where.path for f in findings for where in f.where)}
    rank = {path: i for i, path in enumerate(sorted(paths, key=by_number))}
    whole = single.filter(pc.is_valid(single["checkpoint"]))
    owner = np.array([index[s] for s in _subtasks_of(whole)], np.int64)
    position = _checkpoint_positions(whole, owner, numbered == events, rank)
    taken = _in_local_order(whole, owner, position)
    owner, position, whole = owner[taken], position[taken], whole.take(pa.array(taken))
    every = {i: position[owner == i] for i in np.flatnonzero((numbered == events) & (events > 0)).tolist()}
    if as_of is not None:
        timely = pc.fill_null(pc.less_equal(whole["time"], as_of), False)
        kept = timely.to_numpy(zero_copy_only=False)
        owner, position, whole = owner[kept], position[kept], whole.filter(timely)
    start = np.searchsorted(owner, np.arange(len(subtasks) + 1)).astype(np.int64)
    by_event = counts.group_by("event", use_threads=False).aggregate([("events", "sum")]).to_pylist()
    heard = counts.filter(pc.greater(counts["timely"], 0))
    found = [
        *_partly_numbered(subtasks, events, numbered),
        *_incomplete_checkpoints(single.filter(pc.is_null(single["checkpoint"]))),
        *_running_backwards(subtasks, owner, position, whole),
    ]
    places = Places(
        subtasks=subtasks, start=start, position=position, numbered=numbered == events, rank=rank, as_of=as_of
    )
    return Order(
        places=places,
        taken=whole.select(["operator", "subtask", "checkpoint", "time", "path", "offset"]),
        owner=owner,
        every=every,
        writers=_writers_by_path(counts, writer),
        heard=frozenset(_subtasks_of(heard)),
        counted={row["event"]: row["events_sum"] for row in sorted(by_event, key=lambda row: row["event"])},
        findings=tuple(found),
    )


def by_number(path: str) -> tuple[list[tuple[str, int]], str]:
    """Return a sort key by which `log-10` comes after `log-2`.

    >>> sorted(["log-10", "log-2", "log"], key=by_number)
    ['log', 'log-2', 'log-10']
    """
    parts = re.split(r"([0-9]+)", path)
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)], path


def _subtasks_of(table: pa.Table) -> list[Subtask]:
    pairs = zip(table["operator"].to_pylist(), table["subtask"].to_pylist(), strict=True)
    return [Subtask(operator, number) for operator, number in pairs]


def _checkpoint_positions(whole: pa.Table, owner: Ints, numbered: Mask, rank: Mapping[str, int]) -> Ints:
    """Return the position of each checkpoint event in the local order of its `owner`; shapes (rows,)."""
    code, paths = codes(whole["path"])
    ranks = np.array([rank[path] for path in paths] or [0], np.int64)
    in_files = place(ranks[code], whole["offset"].to_numpy())
    found: Ints = np.where(numbered[owner], integers(whole["lsn"]), in_files)
    return found


def _in_local_order(whole: pa.Table, owner: Ints, position: Ints) -> Ints:
    """Return the rows by subtask and position; of a checkpoint logged twice under one number (`lsn`) only the first."""
    path, _ = codes(whole["path"])
    checkpoint = whole["checkpoint"].to_numpy()
    order = np.lexsort((whole["offset"].to_numpy(), path, checkpoint, position, owner))
    again = np.ones(len(order), np.bool_)
    again[:1] = False
    for column in (owner, position, checkpoint):
        again[1:] &= np.diff(column[order]) == 0
    found: Ints = order[~again]
    return found


def _writers_by_path(counts: pa.Table, writer: Ints) -> dict[str, frozenset[int]]:
    """Return the subtasks with events in each file; `writer` is the subtask of each row."""
    found: dict[str, set[int]] = {}
    for path, i in zip(counts["path"].to_pylist(), writer.tolist(), strict=True):
        found.setdefault(path, set()).add(i)
    return {path: frozenset(found[path]) for path in sorted(found)}


def _partly_numbered(subtasks: tuple[Subtask, ...], events: Ints, numbered: Ints) -> list[Finding]:
    """Report subtasks of whose events some have a local number and some have none; counts of shape (n,)."""
    rows = np.flatnonzero((numbered > 0) & (numbered < events)).tolist()
    return [
        Finding(
            "mixed-local-order",
            "warning",
            str(subtasks[i]),
            f"{subtasks[i]}: {int(events[i] - numbered[i])} of {int(events[i])} events "
            f"{agreeing(int(events[i] - numbered[i]), 'have')} no lsn: all are taken in the order of its log",
        )
        for i in rows
    ]


def _incomplete_checkpoints(rows: pa.Table) -> list[Finding]:
    """Report checkpoint events without a checkpoint number."""
    if not len(rows):
        return []
    places = zip(rows["path"].to_pylist(), rows["offset"].to_pylist(), strict=True)
    return [unusable_events(INCOMPLETE, "events/", len(rows), "checkpoint events without a checkpoint number", places)]


def unusable_events(what: str, subject: str, count: int, fault: str, places: Iterable[tuple[str, int]]) -> Finding:
    """Report events that say too little, or what cannot be.

    Parameters
    ----------
    what : `FOREIGN` or `INCOMPLETE`
    fault : what is wrong with the `count` events, in words
    places : (path, offset) of some of them; the first of each file becomes a place of the finding
    """
    first = dict(sorted(places, reverse=True))
    path, offset = min(first.items())
    unused = "it is not used" if count == 1 else "they are not used"
    message = f"{subject}: {many(count, 'event')} {fault}; {unused}. The first is at byte {offset} of {path}"
    where = tuple(Where(path, first[path]) for path in sorted(first))
    return Finding(UNUSABLE[what], "error", subject, message, where=where, effect="older-line")


def _running_backwards(subtasks: tuple[Subtask, ...], owner: Ints, position: Ints, taken: pa.Table) -> list[Finding]:
    """Report subtasks whose checkpoints are not in the order of their numbers, or of their times, each once.

    `owner` and `position` are those of each checkpoint event, in local order; shape (rows,).
    """
    number = taken["checkpoint"].to_numpy()
    time = integers(taken["time"], _LEAST)
    same = owner[1:] == owner[:-1]  # whether row k + 1 is of the same subtask as row k, as the flags below
    falls = same & ((number[1:] < number[:-1]) | (position[1:] == position[:-1]))
    early = same & ~falls & (time[1:] < time[:-1]) & (time[1:] != _LEAST)
    found = []
    for flags, words in ((falls, "out of order"), (early, "at an earlier time")):
        rows = np.flatnonzero(flags)
        _, first = np.unique(owner[rows], return_index=True)
        for r in rows[first].tolist():
            who = str(subtasks[owner[r]])
            message = f"{who}: checkpoint {number[r + 1]} follows {number[r]} in the local order, {words}"
            places = tuple(Where(taken["path"][k].as_py(), taken["offset"][k].as_py()) for k in (r, r + 1))
            severity: Severity = "error" if flags is falls else "warning"
            effect = effect_of_error(severity, "older-line")
            found.append(Finding("order-backwards", severity, who, message, where=places, effect=effect))
    return found
