"""One partition, from the rows of its batches and the damage in its segments: where it begins, ends, and will end.

A broker that was killed checks every segment from the one that holds its recovery point on. At the first batch that is
not whole it cuts the segment and deletes all later ones, intact or not; segments before are trusted unread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from cklog.engine import Damage
from cklog.inputs.partitions import Folder, Gap, LogCut, Partition
from cklog.kafka_logs.kernel import BatchRun
from cklog.kafka_logs.transactions import BatchPlace, transactions

CUTTING = frozenset({"torn-tail", "corrupt-batch", "corrupt-file", "unknown-version"})
"""Damage at which a starting broker cuts a log."""

_HIDING = CUTTING | {"bad-record"}
"""Damage that may have held the marker of a transaction."""


def partition_of(folder: Folder, runs: Iterable[BatchRun], damage: Sequence[Damage]) -> Partition:
    """The partition of `folder`; `runs` and `damage` are those of its segments, in any order."""
    number = {segment.path: i for i, segment in enumerate(folder.segments)}
    placed = sorted(((number[run.path], run.start), run) for run in runs)
    broken = sorted(((number[item.path], item.offset or 0), item.id, item.detail) for item in damage if _told(item))
    start = max(folder.log_start or 0, folder.segments[0].base if folder.segments else 0)
    held = _end_of(folder, placed, len(folder.segments))
    end = max(held, start)
    at = _first_cut(folder, broken)
    if held < start:  # a broker that finds this deletes every segment, and begins anew at the log start
        at = (0, 0), f"the log start is noted as {start}, and the log ends at {held}"
    kept = [row for row in placed if at is None or row[0] < at[0]]
    restart_end = end if at is None else max(_end_of(folder, kept, at[0][0] + 1), start)
    cut = None if at is None else _cut(folder, at, [run for place, run in placed if place >= at[0]], restart_end)
    fates = transactions(kept, [place for place, id, _ in broken if id in _HIDING and (at is None or place < at[0])])
    every = [run for _, run in placed]
    return Partition(
        folder=folder,
        log_start=start,
        log_end=end,
        restart_end=restart_end,
        last_stable=min([restart_end, *(found.first for found in fates.open)]),
        batches=sum(run.batches for run in every),
        records=sum(run.records for run in every),
        control=sum(run.records for run in every if run.is_control),
        bytes=sum(run.bytes for run in every),
        first_time=min((run.first_time for run in every if run.first_time is not None), default=None),
        last_time=max((run.last_time for run in every if run.last_time is not None), default=None),
        transactions=fates,
        cut=cut,
        gaps=_gaps(folder, placed, broken),
        damage=(*damage, *_overlaps(folder, placed)),
    )


def _end_of(folder: Folder, placed: Sequence[tuple[BatchPlace, BatchRun]], segments: int) -> int:
    """The offset behind the last batch of the last of the first `segments` segments, its base if it is empty.

    A broker looks there alone: base offsets have no checksum, and a wrong one in another segment moves no end.
    """
    last = segments - 1
    bases = [segment.base for segment in folder.segments[:segments]]
    return max([0, *bases[-1:], *(run.next for (segment, _), run in placed if segment == last)])


def _first_cut(folder: Folder, broken: Sequence[tuple[BatchPlace, str, str]]) -> tuple[BatchPlace, str] | None:
    """The first damage that a starting broker meets, and what it is."""
    found = [(place, detail) for place, id, detail in broken if id in CUTTING and place[0] >= trusted(folder)]
    return found[0] if found else None


def trusted(folder: Folder) -> int:
    """How many segments, from the first on, a starting broker does not look through."""
    if folder.clean:
        return len(folder.segments)
    return sum(segment.base <= (folder.recovery_point or 0) for segment in folder.segments[1:])


def _cut(folder: Folder, at: tuple[BatchPlace, str], behind: Sequence[BatchRun], restart_end: int) -> LogCut:
    (segment, byte), why = at
    return LogCut(
        path=folder.segments[segment].path,
        at=byte,
        why=why,
        batches=sum(run.batches for run in behind),
        records=sum(run.records for run in behind),
        bytes=sum(run.bytes for run in behind),
        end=max((run.next for run in behind), default=restart_end),
    )


def _told(item: Damage) -> bool:
    """Whether it is one place of damage; a last row may only count further ones of its kind."""
    return item.offset is not None or bool(item.detail)


def _overlaps(folder: Folder, placed: Sequence[tuple[BatchPlace, BatchRun]]) -> list[Damage]:
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


def _segment_ends(folder: Folder, placed: Sequence[tuple[BatchPlace, BatchRun]]) -> list[int]:
    """The offset behind the last batch of each segment, its base if it is empty."""
    ends = [segment.base for segment in folder.segments]
    for (segment, _), run in placed:
        ends[segment] = max(ends[segment], run.next)
    return ends


def _gaps(
    folder: Folder, placed: Sequence[tuple[BatchPlace, BatchRun]], broken: Sequence[tuple[BatchPlace, str, str]]
) -> tuple[Gap, ...]:
    """Where a segment begins behind the end of the one before, and no damage there tells why."""
    ends = _segment_ends(folder, placed)
    damaged = {segment for (segment, _), _, _ in broken}
    pairs = enumerate(itertools.pairwise(folder.segments))
    return tuple(
        Gap(ends[i], later.base, later.path) for i, (_, later) in pairs if later.base > ends[i] and i not in damaged
    )
