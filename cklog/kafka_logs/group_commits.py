"""Committed offsets of consumer groups: the last commit of each group and partition that counts.

A commit made inside a transaction counts when that transaction is committed, in the log of commits itself. While it is
open the commit is pending: it is named beside the one that holds until then.
"""

from __future__ import annotations

import bisect
import functools
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine.scan import Kernel
from cklog.inputs.connectors import RecordFate, RecordFates
from cklog.inputs.partitions import COMMITS, DeletedCommit, GroupCommit, Partition

COLUMNS = (*COMMITS.names, "_path")

LAST = pa.schema(
    [
        pa.field("pending", pa.bool_()),
        pa.field("deleted", pa.bool_()),
        *(f.with_nullable(True) for f in COMMITS),
        pa.field("_path", pa.string()),
    ]
)
"""The last commit per key of those that count, of those that are pending, and the last deletion of each."""

_KEYS = ["_path", "group", "topic", "partition", "pending", "deleted"]


class OffsetSpan(NamedTuple):
    """A transaction in the log of commits, in offsets [first, end); one that is not `pending` counts for nothing."""

    first: int
    end: int
    pending: bool


def last_commit_kernel(logs: Iterable[Partition]) -> Kernel:
    """Return a kernel for `COMMITS` that keeps the last commit of each key; aborted ones are dropped."""
    cuts, spans = _cuts_and_spans(logs)
    return functools.partial(_last_commits, cuts, spans)


def record_fates(logs: Iterable[Partition]) -> RecordFates:
    """Return what says of a record of these logs whether it counts, as it does for a commit; of other logs all do."""
    return functools.partial(_record_fate, *_cuts_and_spans(logs))


def _record_fate(
    cuts: Mapping[str, int],
    spans: Mapping[tuple[str, int], list[OffsetSpan]],
    folder: str,
    producer: int,
    at: int,
) -> RecordFate:
    if folder in cuts and at >= cuts[folder]:
        return "cut"
    return "counts" if producer < 0 else _commit_fate(spans.get((folder, producer), ()), at)


def _cuts_and_spans(
    logs: Iterable[Partition],
) -> tuple[dict[str, int], dict[tuple[str, int], list[OffsetSpan]]]:
    """Where each log will end, by folder; transactions that are not committed, by folder and producer."""
    spans: dict[tuple[str, int], list[OffsetSpan]] = {}
    cuts: dict[str, int] = {}
    for log in logs:
        cuts[log.folder.path] = log.restart_end
        for found in (*log.transactions.aborted, *log.transactions.open):
            end = log.restart_end if found.end is None else found.end
            span = OffsetSpan(found.first, end, found.fate == "open")
            spans.setdefault((log.folder.path, found.producer), []).append(span)
    return cuts, spans


def _last_commits(
    cuts: Mapping[str, int], spans: Mapping[tuple[str, int], list[OffsetSpan]], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """The last commit per key of one batch.

    `cuts` : where each log will end, by folder
    `spans` : transactions that are not committed, by folder and producer
    """
    if not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=LAST)
    folder = posixpath.dirname(batch["_path"][0].as_py())
    table = pa.Table.from_batches([batch.select(list(COLUMNS))])
    fates: list[RecordFate] = ["counts"] * table.num_rows
    if pc.any(table["transactional"]).as_py():
        fates = _commit_fates(table, spans, folder)
    columns = [pa.array([fate == "pending" for fate in fates], pa.bool_()), pc.is_null(table["offset"]), *table.columns]
    counted = pa.array([fate != "aborted" for fate in fates])
    kept = pc.and_(counted, pc.less(table["at"], cuts[folder]))
    return _newest_by_key(pa.table(columns, schema=LAST).filter(kept))


def _commit_fates(table: pa.Table, spans: Mapping[tuple[str, int], list[OffsetSpan]], folder: str) -> list[RecordFate]:
    """The fate of each commit: counts, pending or aborted; n of them."""
    columns = (table[name].to_pylist() for name in ("at", "producer", "transactional"))
    return [
        _commit_fate(spans.get((folder, producer), ()), at) if transactional else "counts"
        for at, producer, transactional in zip(*columns, strict=True)
    ]


def _commit_fate(spans: Sequence[OffsetSpan], at: int) -> RecordFate:
    """The fate of a commit at offset `at` that was made in a transaction; the `spans` of its producer ascend.

    >>> spans = [OffsetSpan(0, 5, False), OffsetSpan(7, 9, True)]
    >>> [_commit_fate(spans, at) for at in (4, 5, 7)]
    ['aborted', 'counts', 'pending']
    """
    before = bisect.bisect_right(spans, at, key=lambda span: span.first) - 1
    if before < 0 or at >= spans[before].end:
        return "counts"
    return "pending" if spans[before].pending else "aborted"


def trimmed(table: pa.Table) -> pa.Table:
    """Return the last commit per key of what one split holds."""
    return pa.Table.from_batches([_newest_by_key(table)])


def _newest_by_key(table: pa.Table) -> pa.RecordBatch:
    """The row with the largest `at` per key."""
    ordered = table.sort_by("at")
    numbered = ordered.append_column("row", pa.array(range(len(ordered)), pa.int64()))
    last = numbered.group_by(_KEYS, use_threads=False).aggregate([("row", "max")])["row_max"]
    kept = ordered.take(last.sort()).combine_chunks()
    return kept.to_batches()[0] if kept.num_rows else pa.RecordBatch.from_pylist([], schema=LAST)


def committed(
    table: pa.Table, logs: Iterable[Partition], coordinator: Callable[[str, int], int]
) -> tuple[tuple[GroupCommit, ...], tuple[DeletedCommit, ...]]:
    """Return the committed offsets, and those that were deleted, by group, topic and partition.

    Of two logs that hold one, that of the group's own coordinator wins: `coordinator` gives the number of the partition
    that a group's commits belong in, of so many.
    """
    by_path = {log.folder.path: log for log in logs}
    numbers = [log.folder.partition for log in by_path.values()]
    whole = sorted(numbers) == list(range(len(numbers)))  # else other brokers have the rest, and nothing can be said
    found: dict[tuple[str, str, int], list[_FoundCommit]] = {}
    for row in table.to_pylist():
        log = by_path[posixpath.dirname(row["_path"])].folder
        home = not whole or coordinator(row["group"], len(numbers)) == log.partition
        key = row["group"], row["topic"], row["partition"]
        found.setdefault(key, []).append(
            _FoundCommit(
                home=home,
                at=row["at"],
                pending=row["pending"],
                log=log.name,
                offset=row["offset"],
                time=row["time"],
                epoch=row["leader_epoch"],
            )
        )
    commits = [_group_commit(key, rows) for key, rows in sorted(found.items())]
    kept = tuple(commit for commit in commits if isinstance(commit, GroupCommit))
    return kept, tuple(commit for commit in commits if isinstance(commit, DeletedCommit))


class _FoundCommit(NamedTuple):
    """A commit of one key in a log, in an order in which the newest one of the right log is the last.

    `home` : whether that log is the group's own
    `offset` : None: it deletes the commit
    """

    home: bool
    at: int
    pending: bool
    log: str
    offset: int | None
    time: int | None
    epoch: int | None


def _group_commit(key: tuple[str, str, int], found: list[_FoundCommit]) -> GroupCommit | DeletedCommit | None:
    """The newest commit that counts, with a pending one behind it; None if nothing counts."""
    ordered = sorted(found, key=lambda commit: commit[:4])
    counting = [commit for commit in ordered if not commit.pending]
    pending = [commit for commit in ordered if commit.pending and commit.offset is not None]
    newest = counting[-1] if counting else None
    if newest is None:
        return None
    group, topic, partition = key
    if newest.offset is None:
        last = next((commit for commit in reversed(counting) if commit.offset is not None), None)
        value, time = (None, None) if last is None else (last.offset, last.time)
        return DeletedCommit(group, topic, partition, value, time, newest.log, newest.at)
    waits = pending[-1].offset if pending and pending[-1][:2] > newest[:2] else None
    return GroupCommit(
        group=group,
        topic=topic,
        partition=partition,
        offset=newest.offset,
        time=newest.time,
        log=newest.log,
        at=newest.at,
        pending=waits,
        misplaced=not newest.home,
        leader_epoch=newest.epoch,
    )
