"""Committed offsets of consumer groups: the last commit of each group and partition that counts.

A commit made inside a transaction counts when that transaction is committed, in the log of commits itself; one that is
open is told beside the commit that holds until then.
"""

from __future__ import annotations

import bisect
import functools
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine import Kernel
from cklog.inputs.partitions import COMMITS, GroupCommit, Partition

COLUMNS = (*COMMITS.names, "_path")

LAST = pa.schema(
    [pa.field("pending", pa.bool_()), *(f.with_nullable(True) for f in COMMITS), pa.field("_path", pa.string())]
)
"""The last commit per key of those that count, and of those that are pending."""

_KEYS = ["_path", "group", "topic", "partition", "pending"]

OffsetSpan = tuple[int, int, int]
"""(first offset, end, 1 if it is pending and 0 if it counts for nothing) of a transaction in the log of commits."""


def last_by_key(logs: Iterable[Partition]) -> Kernel:
    """Kernel for `COMMITS` that keeps the last commit of each key; aborted ones are dropped."""
    spans: dict[tuple[str, int], list[OffsetSpan]] = {}
    cuts: dict[str, int] = {}
    for log in logs:
        cuts[log.folder.path] = log.restart_end
        for found in (*log.transactions.aborted, *log.transactions.open):
            end = log.restart_end if found.end is None else found.end
            span = (found.first, end, int(found.fate == "open"))
            spans.setdefault((log.folder.path, found.producer), []).append(span)
    return functools.partial(_last_by_key, cuts, spans)


def _last_by_key(
    cuts: Mapping[str, int], spans: Mapping[tuple[str, int], list[OffsetSpan]], batch: pa.RecordBatch
) -> pa.RecordBatch:
    if not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=LAST)
    folder = posixpath.dirname(batch["_path"][0].as_py())
    table = pa.Table.from_batches([batch.select(list(COLUMNS))])
    fates = _fates(table, spans, folder) if pc.any(table["transactional"]).as_py() else [0] * table.num_rows
    columns = [pa.array([fate == 1 for fate in fates]), *table.columns]
    counted = pa.array([fate is not None for fate in fates])
    kept = pc.and_(counted, pc.less(table["at"], cuts[folder]))
    return _newest(pa.table(columns, schema=LAST).filter(kept))


def _fates(table: pa.Table, spans: Mapping[tuple[str, int], list[OffsetSpan]], folder: str) -> list[int | None]:
    """The fate of each commit, shape (n,)."""
    columns = (table[name].to_pylist() for name in ("at", "producer", "transactional"))
    return [
        _fate(spans.get((folder, producer), ()), at) if transactional else 0
        for at, producer, transactional in zip(*columns, strict=True)
    ]


def _fate(spans: Sequence[OffsetSpan], at: int) -> int | None:
    """0: the commit at `at` counts, 1: it is pending, None: it counts for nothing; `spans` of its producer ascend."""
    before = bisect.bisect_left(spans, (at + 1, 0, 0)) - 1
    if before < 0 or at >= spans[before][1]:
        return 0
    return 1 if spans[before][2] else None


def trimmed(table: pa.Table) -> pa.Table:
    """The last commit per key of what one split holds."""
    return pa.Table.from_batches([_newest(table)])


def _newest(table: pa.Table) -> pa.RecordBatch:
    """The row with the largest `at` per key."""
    ordered = table.sort_by("at")
    numbered = ordered.append_column("row", pa.array(range(len(ordered)), pa.int64()))
    last = numbered.group_by(_KEYS, use_threads=False).aggregate([("row", "max")])["row_max"]
    kept = ordered.take(last.sort()).combine_chunks()
    return kept.to_batches()[0] if kept.num_rows else pa.RecordBatch.from_pylist([], schema=LAST)


def committed(
    table: pa.Table, logs: Iterable[Partition], coordinator: Callable[[str, int], int]
) -> tuple[GroupCommit, ...]:
    """The committed offsets, by group, topic and partition; of two logs that hold one, its own coordinator's wins."""
    by_path = {log.folder.path: log for log in logs}
    numbers = [log.folder.partition for log in by_path.values()]
    whole = sorted(numbers) == list(range(len(numbers)))  # else other brokers have the rest, and nothing can be said
    found: dict[tuple[str, str, int], list[tuple[bool, int, bool, dict[str, Any]]]] = {}
    for row in table.to_pylist():
        log = by_path[posixpath.dirname(row["_path"])].folder
        home = not whole or coordinator(row["group"], len(numbers)) == log.partition
        key = row["group"], row["topic"], row["partition"]
        found.setdefault(key, []).append((home, row["at"], row["pending"], row | {"log": log.name}))
    commits = (_commit(key, rows) for key, rows in sorted(found.items()))
    return tuple(commit for commit in commits if commit is not None)


def _commit(key: tuple[str, str, int], rows: list[tuple[bool, int, bool, dict[str, Any]]]) -> GroupCommit | None:
    """The newest row that counts, with a pending one behind it; None if it is deleted, or nothing counts."""
    ordered = sorted(rows, key=lambda row: (*row[:3], row[3]["log"]))
    counting = [row for row in ordered if not row[2]]
    pending = [row for row in ordered if row[2] and row[3]["offset"] is not None]
    waits = pending[-1][3]["offset"] if pending and (not counting or pending[-1][:2] > counting[-1][:2]) else None
    if not counting or counting[-1][3]["offset"] is None:
        return None
    home, at, _, row = counting[-1]
    return GroupCommit(*key, row["offset"], row["time"], row["log"], at, waits, not home)
