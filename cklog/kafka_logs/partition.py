"""One partition, from the rows of its batches and the damage in its segments: where it begins, ends, and will end.

A broker that was killed checks every segment from the one that holds its recovery point on. At the first batch that is
not whole it cuts the segment and deletes all later ones, intact or not; segments before are trusted unread. Of those it
goes through the ones whose index is gone, to make it anew: it cuts them, too, and lets later segments be.

A transaction ends at the first marker of its producer behind its data: a producer has one at a time in a partition.
The epoch is no part of the match, for newer brokers raise it when a transaction ends. A transaction without a marker
is open, and a reader of committed data stops before it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cklog.engine.scan import Damage
from cklog.inputs.partitions import (
    UNREAD,
    Folder,
    Gap,
    LogCut,
    Partition,
    PartitionTransactions,
    ProducerTransaction,
    TransactionFate,
)
from cklog.kafka_logs.batch_runs import BatchRun

CUTTING = frozenset({"torn-tail", "corrupt-batch", "corrupt-file"})
"""Damage at which a starting broker cuts a log."""

_HIDING = CUTTING | UNREAD | {"bad-record"}
"""Damage that may have held the marker of a transaction."""


class LogPlace(NamedTuple):
    """A place in a partition's log: places ascend as the log does."""

    segment: int  # its number in the log, from 0
    byte: int


class PlacedRun(NamedTuple):
    """A row of batches and where it begins."""

    place: LogPlace
    run: BatchRun


class PlacedDamage(NamedTuple):
    """Damage and where it is; `id` and `detail` as in `Damage`."""

    place: LogPlace
    id: str
    detail: str


def partition_of(folder: Folder, runs: Iterable[BatchRun], damage: Sequence[Damage]) -> Partition:
    """Return the partition of `folder`; `runs` and `damage` are those of its segments, in any order."""
    number = {segment.path: i for i, segment in enumerate(folder.segments)}
    placed = sorted(PlacedRun(LogPlace(number[run.path], run.start), run) for run in runs)
    broken = sorted(
        PlacedDamage(LogPlace(number[item.path], _byte_of(item)), item.id, item.detail)
        for item in damage
        if _is_one_place(item)
    )
    start = max(folder.log_start or 0, folder.segments[0].base if folder.segments else 0)
    held = _end_of_log(folder, placed, len(folder.segments))
    end = max(held, start)
    first = _first_cutting(folder, broken)
    unread = any(item.id in UNREAD for item in damage)
    if held < start and not unread:  # a broker that finds this deletes every segment, and begins anew at the log start
        why = f"the log start is noted as {start}, and the log ends at {held}"
        first = PlacedDamage(LogPlace(0, 0), "", why)
    if first is None:
        kept, hiding, restart_end, cut = placed, broken, end, None
    else:
        kept = [row for row in placed if row.place < first.place]
        hiding = [item for item in broken if item.place < first.place]
        restart_end = max(_end_of_log(folder, kept, first.place.segment + 1), start)
        cut = _cut_at(folder, first, [row.run for row in placed if row.place >= first.place], restart_end)
    unread_at = next((d.place for d in broken if d.id in UNREAD and d.place.segment >= trusted(folder)), None)
    sure_end = restart_end
    if unread_at is not None:  # whatever lies there, a starting broker may cut the log at it
        before = [row for row in placed if row.place < unread_at]
        sure_end = min(restart_end, max(_end_of_log(folder, before, unread_at.segment + 1), start))
    found = transactions(kept, [item.place for item in hiding if item.id in _HIDING])
    every = [row.run for row in placed]
    return Partition(
        folder=folder,
        log_start=start,
        log_end=end,
        restart_end=restart_end,
        sure_end=sure_end,
        last_stable=min([restart_end, *(running.first for running in found.open)]),
        batches=sum(run.batches for run in every),
        records=sum(run.records for run in every),
        control=sum(run.records for run in every if run.is_control),
        bytes=sum(run.bytes for run in every),
        first_offset=min((run.first for run in every), default=None),
        first_time=min((run.first_time for run in every if run.first_time is not None), default=None),
        last_time=max((run.last_time for run in every if run.last_time is not None), default=None),
        transactions=found,
        cut=cut,
        gaps=_gaps_between(folder, placed, broken),
        damage=(*damage, *_overlap_damage(folder, placed)),
    )


def _end_of_log(folder: Folder, placed: Sequence[PlacedRun], segments: int) -> int:
    """The offset behind the last batch of the last of the first `segments` segments, its base if it is empty.

    A broker looks there alone: base offsets have no checksum, and a wrong one in another segment moves no end.
    """
    last = segments - 1
    bases = [segment.base for segment in folder.segments[:segments]]
    return max([0, *bases[-1:], *(row.run.next for row in placed if row.place.segment == last)])


def _first_cutting(folder: Folder, broken: Sequence[PlacedDamage]) -> PlacedDamage | None:
    """The first damage that a starting broker meets and cuts the log at."""
    unread = trusted(folder)
    return next((item for item in broken if item.id in CUTTING and item.place.segment >= unread), None)


def trusted(folder: Folder) -> int:
    """Return how many segments, from the first on, a starting broker trusts; the last one, only with its index."""
    if folder.clean:
        return len(folder.segments) - (not all(segment.indexed for segment in folder.segments[-1:]))
    return sum(segment.base <= (folder.recovery_point or 0) for segment in folder.segments[1:])


def cut_alone(p: Partition) -> tuple[Damage, ...]:
    """Return where a starting broker cuts segments that it trusts and whose index it makes anew: one place of each."""
    names = {segment.path for segment in p.folder.segments[: trusted(p.folder)] if not segment.indexed}
    found: dict[str, Damage] = {}
    for item in sorted((d for d in p.damage if d.path in names and d.id in CUTTING and _is_one_place(d)), key=_byte_of):
        found.setdefault(item.path, item)
    return tuple(found[path] for path in sorted(found))


def _cut_at(folder: Folder, first: PlacedDamage, behind: Sequence[BatchRun], restart_end: int) -> LogCut:
    return LogCut(
        path=folder.segments[first.place.segment].path,
        at=first.place.byte,
        why=first.detail,
        batches=sum(run.batches for run in behind),
        records=sum(run.records for run in behind),
        bytes=sum(run.bytes for run in behind),
        end=max((run.next for run in behind), default=restart_end),
    )


def _is_one_place(item: Damage) -> bool:
    """Whether it is one place of damage; a last row may only count further ones of its kind."""
    return item.offset is not None or bool(item.detail)


def _byte_of(item: Damage) -> int:
    """Where damage counts in its segment: what could not be read lies behind all that could."""
    if item.offset is None:
        return sys.maxsize if item.id in UNREAD else 0
    return item.offset


def _overlap_damage(folder: Folder, placed: Sequence[PlacedRun]) -> list[Damage]:
    """Segments that go on behind the beginning of the next one: not both are of this log."""
    ends = _segment_ends(folder, placed)
    return [
        Damage(
            later.path,
            "offset-backwards",
            0,
            f"the segment before ends at offset {end}, this one begins at {later.base}",
        )
        for end, later in zip(ends, folder.segments[1:], strict=False)
        if end > later.base
    ]


def _segment_ends(folder: Folder, placed: Sequence[PlacedRun]) -> list[int]:
    """The offset behind the last batch of each segment, its base if it is empty."""
    ends = [segment.base for segment in folder.segments]
    for (segment, _), run in placed:
        ends[segment] = max(ends[segment], run.next)
    return ends


def _gaps_between(folder: Folder, placed: Sequence[PlacedRun], broken: Sequence[PlacedDamage]) -> tuple[Gap, ...]:
    """Where a segment begins behind the end of the one before, and no damage there explains it."""
    ends = _segment_ends(folder, placed)
    damaged = {item.place.segment for item in broken}
    pairs = enumerate(itertools.pairwise(folder.segments))
    return tuple(
        Gap(ends[i], later.base, later.path) for i, (_, later) in pairs if later.base > ends[i] and i not in damaged
    )


# --- transactions


@dataclass(slots=True)
class _OpenTransaction:
    """A transaction that has not ended yet."""

    first: int
    time: int | None
    records: int = 0
    bytes: int = 0
    doubt: bool = False

    def ended(self, producer: int, end: int | None, fate: TransactionFate) -> ProducerTransaction:
        return ProducerTransaction(
            producer=producer,
            first=self.first,
            end=end,
            fate=fate,
            records=self.records,
            bytes=self.bytes,
            time=self.time,
            doubt=self.doubt,
        )


@dataclass
class _TransactionFates:
    """The transactions of a log, run by run."""

    running: dict[int, _OpenTransaction] = field(default_factory=dict)
    committed: int = 0
    aborted: list[ProducerTransaction] = field(default_factory=list)
    doubtful: list[ProducerTransaction] = field(default_factory=list)

    def add_data(self, run: BatchRun) -> None:
        """Add data of a transaction, which may be the first of one."""
        found = self.running.get(run.producer)
        if found is None:
            found = self.running[run.producer] = _OpenTransaction(run.first, run.first_time)
        found.first = min(found.first, run.first)
        found.records += run.records
        found.bytes += run.bytes
        if found.time is None or (run.first_time is not None and run.first_time < found.time):
            found.time = run.first_time

    def end_by(self, run: BatchRun, fate: TransactionFate) -> None:
        """End the transaction of a marker; one without data in this log, or whose data is gone, is none."""
        found = self.running.pop(run.producer, None)
        if found is None:
            return
        ended = found.ended(run.producer, run.next, fate)
        if fate == "commit":
            self.committed += 1
        else:
            self.aborted.append(ended)
        if found.doubt:
            self.doubtful.append(ended)

    def doubt_all(self) -> None:
        """Note that bytes cannot be read, which may have held a marker of any producer."""
        for found in self.running.values():
            found.doubt = True


def transactions(runs: Sequence[PlacedRun], damage: Iterable[LogPlace]) -> PartitionTransactions:
    """Return the transactions of a log, and how each ended.

    Parameters
    ----------
    damage : places of bytes that cannot be read

    Notes
    -----
    A run of data may reach over the markers of other producers, never over one of its own: so the place where a run
    begins decides its order. It may not reach over damage either.
    """
    fates = _TransactionFates()
    events: list[tuple[LogPlace, int, BatchRun | None]] = [(place, 1, run) for place, run in runs]
    events += [(place, 0, None) for place in damage]
    for _, _, run in sorted(events, key=lambda event: event[:2]):
        if run is None:
            fates.doubt_all()
        elif run.is_data:
            fates.add_data(run)
        elif run.ends is not None:
            fates.end_by(run, run.ends)
    running = [found.ended(producer, None, "open") for producer, found in fates.running.items()]
    running.sort(key=_first_offset)
    doubtful = [*fates.doubtful, *(found for found in running if found.doubt)]
    aborted = sorted(fates.aborted, key=_first_offset)
    return PartitionTransactions(fates.committed, tuple(aborted), tuple(running), tuple(doubtful))


def _first_offset(found: ProducerTransaction) -> tuple[int, int]:
    return found.first, found.producer
