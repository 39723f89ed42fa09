"""The elements of a source as a logged channel lists them, read by scans that bring back a few rows.

A question about a moment that no scan has looked at is answered by a bound and remembered; after the next scan, which
looks at all moments asked for so far, the answer is the log's. `settled` repeats that until nothing new is asked for:
once more than windows stand in a row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine.merge import merge
from cklog.engine.reading import Reading
from cklog.engine.scan import Reduce
from cklog.impact.elements import Elements
from cklog.impact.model import Count
from cklog.inputs.offers import OffersRecords
from cklog.inputs.tables import read_table
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import parse_channel

_COLUMNS = ("channel", "seq", "time")
_PARTIAL = pa.schema(
    [
        pa.field("channel", pa.string()),
        pa.field("part", pa.int64()),
        pa.field("elements", pa.int64()),
        pa.field("first_time", pa.int64()),
        pa.field("last_time", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("untimed", pa.int64()),
    ]
)
_REDUCE = Reduce(
    ("channel", "part"),
    {
        "elements": "sum",
        "first_time": "min",
        "last_time": "max",
        "first": "min",
        "last": "max",
        "untimed": "sum",
    },
)
"""Part i ≥ 0: the elements between two moments; part -1 - i: element number i of those asked for."""

_ROUNDS = 64
"""Scans at the most; more than windows stand in a row."""

_FURTHEST = 1 << 62
"""Moments and numbers beyond that are taken for it: they fit 64 bits whatever a damaged log says."""

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True)
class LogPart:
    """How many elements are logged between two moments; times (ms) and numbers (`seq`) of the first and the last."""

    elements: int
    first_time: int
    last_time: int
    first: int
    last: int


@dataclass(slots=True)
class AskedElements:
    """Moments (ms) and numbers of elements that somebody asked for: what the next scan looks at."""

    moments: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.moments) + len(self.numbers)


@dataclass(frozen=True, slots=True)
class LoggedElements(Elements):
    """Elements of a logged channel (`cklog.impact.elements.Elements`), as far as scans have looked.

    `moments` : that scans have looked at, rising
    `parts` : part i lies before moment i, the last one behind all moments; None: nothing is logged there
    `times` : of elements by number
    `asked` : takes what scans have not looked at
    `beside` : answers what the log cannot
    `taken` : (moment, number) pairs: the elements below `number` came before `moment`, as a checkpoint says; the log
        need not have them
    """

    moments: tuple[int, ...]
    parts: tuple[LogPart | None, ...]
    times: dict[int, int]
    asked: AskedElements
    beside: Elements
    taken: tuple[tuple[int, int], ...] = ()

    def span(self) -> LogPart | None:
        """Return all of the log as one part; None: it is empty."""
        found = _logged_parts(self.parts)
        if not found:
            return None
        return LogPart(
            elements=sum(p.elements for p in found),
            first_time=min(p.first_time for p in found),
            last_time=max(p.last_time for p in found),
            first=min(p.first for p in found),
            last=max(p.last for p in found),
        )

    def _part_behind(self, moment: int) -> int | None:
        """Index of the part behind a moment, None if no scan has looked there."""
        moment = _within_range(moment)
        self.asked.moments.add(moment)
        at = int(np.searchsorted(np.array(self.moments, np.int64), moment))
        return at + 1 if at < len(self.moments) and self.moments[at] == moment else None

    def count(self, start: int, end: int | None) -> Count:
        if end is not None and end <= start:
            return Count(0, 0)
        other = self.beside.count(start, end)
        low, high = self._part_behind(start), len(self.parts) if end is None else self._part_behind(end)
        if low is None or high is None:
            return other
        before, here, behind = (_logged_parts(p) for p in (self.parts[:low], self.parts[low:high], self.parts[high:]))
        found = sum(part.elements for part in here)
        if not behind:
            return _narrower_count(Count(found, None), other)
        wanted = behind[0].first - self._next_number(before, here or behind, start)  # dense numbers: holes count too
        return _narrower_count(Count(min(found, wanted), max(found, wanted)), other)

    def last_before(self, moment: int) -> int | None:
        before, behind = self._parts_around(moment)
        if behind and self._is_gapless(before, behind, moment) and (before or behind[0].first == 0):
            return before[-1].last_time if before else None
        return self.beside.last_before(moment)

    def first_from(self, moment: int) -> int | None:
        before, behind = self._parts_around(moment)
        known = behind and self._is_gapless(before, behind, moment)
        return behind[0].first_time if known else self.beside.first_from(moment)

    def number(self, moment: int) -> int | None:
        before, behind = self._parts_around(moment)
        return behind[0].first if behind and self._is_gapless(before, behind, moment) else self.beside.number(moment)

    def _next_number(self, before: list[LogPart], behind: list[LogPart], moment: int) -> int:
        """The number of the first element from a moment on, a bound from below where the log lacks it.

        What a log no longer keeps came before its first element.
        """
        if before:
            return before[-1].last + 1
        if behind[0].first_time <= moment:
            return behind[0].first
        return max((number for time, number in self.taken if moment >= time), default=0)

    def _is_gapless(self, before: list[LogPart], behind: list[LogPart], moment: int) -> bool:
        """Whether no element is missing between the two."""
        return behind[0].first == self._next_number(before, behind, moment)

    def _parts_around(self, moment: int) -> tuple[list[LogPart], list[LogPart]]:
        """What is logged before a moment and from it on; nothing, if no scan has looked there."""
        at = self._part_behind(moment)
        return ([], []) if at is None else (_logged_parts(self.parts[:at]), _logged_parts(self.parts[at:]))

    def time_of(self, number: int) -> int | None:
        number = _within_range(number)
        self.asked.numbers.add(number)
        return self.times[number] if number in self.times else self.beside.time_of(number)


def _within_range(number: int) -> int:
    """A moment or number within `_FURTHEST`."""
    return min(max(number, -_FURTHEST), _FURTHEST)


def _logged_parts(parts: Iterable[LogPart | None]) -> list[LogPart]:
    return [part for part in parts if part is not None]


def _narrower_count(one: Count, other: Count) -> Count:
    """What two bounds leave; where they contradict each other, the first.

    >>> _narrower_count(Count(3, None), Count(0, 5)), _narrower_count(Count(3, 4), Count(5, 9))
    (Count(least=3, most=5), Count(least=3, most=4))
    """
    most = min((bound for bound in (one.most, other.most) if bound is not None), default=None)
    least = max(one.least, other.least)
    return one if most is not None and least > most else Count(least, most)


class _LookedAt(NamedTuple):
    """What a scan looked at: moments and numbers, rising, of those that were asked for."""

    moments: tuple[int, ...]
    numbers: tuple[int, ...]
    asked: AskedElements


@dataclass(slots=True)
class ChannelLogs:
    """The logs of sources' channels: each scan looks at more moments than the one before.

    `taken` : by source, what checkpoints have of it (see `LoggedElements`)
    `findings`, `inputs` : of the newest scan
    """

    tables: OffersRecords
    reading: Reading
    taken: Mapping[str, tuple[tuple[int, int], ...]]
    findings: list[Finding] = field(default_factory=list)
    inputs: list[InputUsed] = field(default_factory=list)

    def read(self, asked: AskedElements, periods: Mapping[str, Elements]) -> dict[str, Elements]:
        """Scan the logs for what is asked, and return the elements of each source: as logged, else as `periods` say."""
        if not self.tables.has("channels"):
            self.findings = list(self.tables.findings("channels"))
            return dict(periods)
        moments, numbers = tuple(sorted(asked.moments)), tuple(sorted(asked.numbers))
        kernel = functools.partial(_elements_by_part, moments, numbers)
        read = read_table(self.tables, self.reading, "channels", _COLUMNS, kernel, _PARTIAL, _REDUCE)
        self.findings, self.inputs = list(read.findings), list(read.inputs)
        rows = sorted(read.table.to_pylist(), key=lambda r: (r["channel"], r["part"]))
        looked = _LookedAt(moments, numbers, asked)
        return {name: self._elements_of(name, rows, looked, beside) for name, beside in periods.items()}

    def _elements_of(self, source: str, rows: list[dict[str, Any]], looked: _LookedAt, beside: Elements) -> Elements:
        """From the channel to the first operator, by name, that has logged anything of a source."""
        mine = [row for row in rows if _channel_ends(row["channel"])[0] == source]
        if not mine:
            return beside
        _, receiver = first = _channel_ends(mine[0]["channel"])
        mine = [row for row in mine if _channel_ends(row["channel"]) == first]
        channels = len({row["channel"] for row in mine})
        if channels > 1:
            message = f"{source} sends to {receiver} on {channels} channels; the logs of parallel channels are not used"
            self.findings.append(Finding("parallel-source", "warning", source, message))
            return beside
        untimed = sum(row["untimed"] for row in mine)
        parts = {row["part"]: row for row in mine}
        timed = tuple(_log_part(parts.get(i)) for i in range(len(looked.moments) + 1))
        if untimed or not _numbers_rise(timed):
            why = f"{untimed} have no time" if untimed else "their times do not rise with their numbers"
            message = f"{mine[0]['channel']}: the logged elements are not used: {why}"
            self.findings.append(Finding("unordered-elements", "error", source, message, effect="none"))
            return beside
        return LoggedElements(
            moments=looked.moments,
            parts=timed,
            times={n: parts[-1 - i]["first_time"] for i, n in enumerate(looked.numbers) if -1 - i in parts},
            asked=looked.asked,
            beside=beside,
            taken=self.taken.get(source, ()),
        )


def settled(
    logs: ChannelLogs,
    asked: AskedElements,
    periods: Mapping[str, Elements],
    find: Callable[[dict[str, Elements]], FoundT],
) -> FoundT:
    """Return what `find` makes of the sources' elements, once the logs have answered all that it asks of them.

    Parameters
    ----------
    asked : what to look for at first
    periods : what the manifest says of each source's elements
    """
    for _ in range(_ROUNDS):
        known = len(asked)
        found = find(logs.read(asked, periods))
        if len(asked) == known or not logs.tables.has("channels"):
            break
    return found


def _channel_ends(channel: str) -> tuple[str, str]:
    """The operators at the ends of a channel, empty if it has no such name.

    >>> _channel_ends("a/0->b/1"), _channel_ends("a")
    (('a', 'b'), ('', ''))
    """
    found = parse_channel(channel)
    return ("", "") if found is None else (found.sender.operator, found.receiver.operator)


def _log_part(row: dict[str, Any] | None) -> LogPart | None:
    if row is None or not row["elements"]:
        return None
    return LogPart(**{field.name: row[field.name] for field in fields(LogPart)})


def _numbers_rise(parts: Iterable[LogPart | None]) -> bool:
    """Whether no element behind a moment has a lower number than one before it."""
    found = _logged_parts(parts)
    return all(a.last < b.first for a, b in pairwise(found))


def _elements_by_part(moments: tuple[int, ...], numbers: tuple[int, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count a batch's elements between moments, and find those of given numbers, as rows of `_PARTIAL`.

    E.g. elements 7, 8, 9 at times 10, 20, 30 with the moment 20 and the number 9: part 0 is element 7, part 1 are 8
    and 9, and part -1 (the first number asked for) is 9 once more.
    """
    time = pc.fill_null(batch["time"], 0).to_numpy(zero_copy_only=False)
    timed = pc.is_valid(batch["time"]).to_numpy(zero_copy_only=False)
    seq = batch["seq"].to_numpy(zero_copy_only=False)
    part = np.searchsorted(np.array(moments, np.int64), time, side="right")
    rows = np.arange(len(seq))
    if numbers:
        wanted = np.append(np.array(numbers, np.int64), -1)  # -1: for elements behind the last number, equal to none
        place = np.searchsorted(wanted[:-1], seq)
        named = np.flatnonzero(wanted[place] == seq)
        rows, part = np.r_[rows, named], np.r_[part, -1 - place[named]]
    column = batch["channel"]
    table = pa.table(
        {
            "channel": (column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column).take(rows),
            "part": part.astype(np.int64),
            "elements": timed[rows].astype(np.int64),
            "first_time": pa.array(time[rows], mask=~timed[rows]),
            "last_time": pa.array(time[rows], mask=~timed[rows]),
            "first": seq[rows],
            "last": seq[rows],
            "untimed": (~timed[rows]).astype(np.int64),
        },
        schema=_PARTIAL,
    )
    found = merge([table], _REDUCE)
    return pa.RecordBatch.from_arrays([_one_array(found[name]) for name in _PARTIAL.names], schema=_PARTIAL)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
