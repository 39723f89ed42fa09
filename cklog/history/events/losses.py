"""From which place on a subtask's raw events may be incomplete.

What a subtask had received by a checkpoint is known only if no event before it is missing: a message in a lost event
may have been any, on a channel that need not deliver in order. So checkpoints behind the first loss are not used; the
line gets older by that, never newer. A lost send only makes a sender look as if it had sent less, which is older too.

Numbers (`lsn`) tell what is missing and where; what is cut off at the end makes no gap and is an earlier crash.
Without numbers, a damaged place may have held an event of any subtask that writes to the same files, directly or
through others that share files with both; in a file without an intact event, of anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes
from cklog.arrays.spans import Spans, joined_spans
from cklog.arrays.types import Ints, Mask
from cklog.engine.scan import DAMAGE_LISTED
from cklog.history.events.batch import place
from cklog.history.events.kernels import check_of
from cklog.history.events.order import UNUSABLE, Order
from cklog.model.findings import Finding
from cklog.model.names import Subtask
from cklog.model.verdict import DAMAGE
from cklog.model.wording import many

NEVER = np.iinfo(np.int64).max
"""A place behind all others: nothing is missing."""

_COUNTED = frozenset({"bad-record", "torn-tail"})
"""Damage that has a place for each event that it took."""

_PLACED = _COUNTED | frozenset(UNUSABLE.values())
"""Damage that has its first place in each file; any other may concern all of the file."""

_LOSSES = DAMAGE - {"bad-manifest"} | _PLACED


Writer = TypeVar("Writer", bound=Hashable)


class Losses(NamedTuple):
    """Where the events of n subtasks may be incomplete.

    Attributes
    ----------
    first : position in the local order of the first event that may be missing, `NEVER` for none, shape (n,)
    doubtful : whether any may be missing, be it at the very end, shape (n,)
    trimmed : whether the log begins later than the subtask did although nothing is damaged (old events were deleted),
        shape (n,)
    damaged : whether any file of events is damaged
    findings : what is missing
    """

    first: Ints
    doubtful: Mask
    trimmed: Mask
    damaged: bool
    findings: tuple[Finding, ...]


def losses(
    order: Order,
    intervals: pa.Table,
    damage: Iterable[Finding],
    numbers: Callable[[frozenset[Subtask]], pa.Table],
) -> Losses:
    """Find where each subtask's events may be incomplete.

    Parameters
    ----------
    order : the checkpoint events
    intervals : `cklog.history.events.kernels.INTERVALS`, of sends and receives
    damage : what is wrong with the files of events
    numbers : reads the runs of local numbers (`cklog.history.events.kernels.LSNS`) of some subtasks
    """
    places = order.places
    damage = [f for f in damage if f.id in _LOSSES]
    first = np.full(len(places.subtasks), NEVER)
    doubtful, trimmed = np.zeros(len(first), np.bool_), np.zeros(len(first), np.bool_)
    for i, at in _damaged_positions(order, damage):
        doubtful[i] = True
        if not places.numbered[i]:
            first[i] = min(first[i], at)
    spans = _numbers_held(order, intervals, numbers)
    base = _first_number(spans, damage)
    findings = []
    for i, runs in spans.items():
        late = runs[0][0] > base
        trimmed[i] = late and not damage
        if late and damage:
            first[i] = -1
        elif len(runs) > 1:
            first[i] = runs[0][1]
        doubtful[i] |= first[i] != NEVER
        findings += _missing_numbers(str(places.subtasks[i]), runs, base if damage else runs[0][0], bool(trimmed[i]))
    return Losses(first=first, doubtful=doubtful, trimmed=trimmed, damaged=bool(damage), findings=tuple(findings))


def in_doubt(writers: Mapping[str, frozenset[Writer]], damage: Iterable[Finding]) -> set[Writer] | None:
    """Return the writers of whom damaged files may have held something; None if that may be anybody.

    `writers` are those with events in a file, by path.
    """
    group = _groups_by_path(writers)
    found: set[Writer] = set()
    for finding in damage:
        if finding.id in _LOSSES:
            for where in finding.where:
                if where.path not in group:
                    return None
                found |= group[where.path]
    return found


def _damaged_positions(order: Order, damage: Iterable[Finding]) -> Iterable[tuple[int, int]]:
    """Yield each subtask of which a damaged place may have held an event, with that place in the order of files."""
    group = _groups_by_path(order.writers)
    everybody = frozenset(range(len(order.places.subtasks)))
    for finding in damage:
        for where in finding.where:
            offset = where.offset if finding.id in _PLACED else 0
            at = place(order.places.rank.get(where.path, 0), offset or 0)
            for i in group.get(where.path, everybody):
                yield i, at


def _groups_by_path(writers: Mapping[str, frozenset[Writer]]) -> dict[str, frozenset[Writer]]:
    """Return for each file those who write to it, or to files that share writers with it, directly or over others.

    >>> sorted(_groups_by_path({"x": frozenset({1, 2}), "y": frozenset({2, 3}), "z": frozenset({4})})["x"])
    [1, 2, 3]
    """
    groups: list[set[Writer]] = []
    for mine in writers.values():
        joined = [g for g in groups if g & mine]
        groups = [g for g in groups if not g & mine] + [set(mine).union(*joined)]
    return {path: frozenset(next(g for g in groups if g & mine)) for path, mine in writers.items()}


def _numbers_held(
    order: Order, intervals: pa.Table, numbers: Callable[[frozenset[Subtask]], pa.Table]
) -> dict[int, Spans]:
    """Return the local numbers of each subtask that has some, as spans.

    They are one span if their count and check sum (`check_of`) are those of one; only other subtasks' numbers are read
    one by one, with `numbers`.
    """
    n = len(order.places.subtasks)
    rows, check = np.zeros(n, np.int64), np.zeros(n, np.int64)  # of the sends and receives of each subtask
    low, high = np.full(n, NEVER), np.full(n, -1)
    owner = _interval_owners(order, intervals)
    columns = {name: intervals[name].to_numpy() for name in ("rows", "place_check", "first", "last")}
    np.add.at(rows, owner, columns["rows"])
    np.add.at(check, owner, columns["place_check"])
    np.minimum.at(low, owner, columns["first"])
    np.maximum.at(high, owner, columns["last"])
    found: dict[int, Spans] = {}
    unclear = []
    for i, taken in order.every.items():
        kept = order.places.position[order.places.start[i] : order.places.start[i + 1]]
        last = max(int(high[i]), int(kept.max(initial=-1)))
        taken = np.unique(taken[taken <= last])
        begin = min(int(low[i]), int(taken.min(initial=NEVER)))
        if last < 0:
            continue
        whole = int(rows[i]) + len(taken) == last + 1 - begin
        total = int(check[i]) + int(check_of(taken, taken + 1).sum())
        expected = int(check_of(np.array([begin]), np.array([last + 1]))[0])
        if whole and (total - expected) & 0xFFFFFFFF == 0:
            found[i] = [(begin, last + 1)]
        else:
            found[i] = [(int(x), int(x) + 1) for x in taken]
            unclear.append(i)
    if unclear:
        index = order.places.index
        table = numbers(frozenset(order.places.subtasks[i] for i in unclear))
        for row in table.to_pylist():
            found[index[Subtask(row["operator"], row["subtask"])]].append((row["from"], row["to"]))
    return {i: joined_spans(spans) for i, spans in sorted(found.items())}


def _interval_owners(order: Order, intervals: pa.Table) -> Ints:
    """Return the subtask of each row of `INTERVALS`: the sender or the receiver of its channel; shape (rows,)."""
    code, names = codes(intervals["channel"])
    ends = np.array([order.places.ends(name) for name in names], np.int64).reshape(-1, 2)
    received = pc.equal(intervals["side"], "receive").to_numpy(zero_copy_only=False)
    found: Ints = ends[code, received.astype(np.int64)]
    return found


def _first_number(spans: dict[int, Spans], damage: Sequence[Finding]) -> int:
    """Return the number that local orders begin with: 0, or 1 if nobody has a 0 and damage cannot have taken all."""
    if not spans or min(runs[0][0] for runs in spans.values()) == 0:
        return 0
    countable = all(f.id in _COUNTED and len(f.where) < DAMAGE_LISTED for f in damage)
    lost = len({where for f in damage for where in f.where})  # each scan tells of the same places
    return 1 if countable and lost < len(spans) else 0


def _missing_numbers(who: str, runs: Spans, base: int, trimmed: bool) -> list[Finding]:
    """Report what is missing of the local numbers of subtask `who`, which should be all from `base` up.

    `runs` are those that it has; `trimmed`: older ones were deleted.
    """
    found = []
    if trimmed:
        message = (
            f"{who}: its events begin with number {runs[0][0]}, older ones are gone: "
            "what it had received by then is taken to have come in order"
        )
        found.append(Finding("trimmed-events", "warning", who, message))
    gaps = [(a, b) for (_, a), (b, _) in zip([(0, base), *runs], runs, strict=False) if b > a]
    if gaps:
        message = (
            f"{who}: {many(sum(b - a for a, b in gaps), 'event', 'are')} missing, from number {gaps[0][0]} on. What it "
            "had received since cannot be told: later checkpoints are not used, except those of a source"
        )
        found.append(Finding("missing-events", "error", who, message, effect="older-line"))
    return found
