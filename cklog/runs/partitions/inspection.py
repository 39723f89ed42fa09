"""What a broker's folder holds, as rows: partitions, groups, transactions, producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cklog.inputs.partitions import GroupCommit, Partition, ProducerTransaction
from cklog.model.wording import many

LISTED = 100
"""Aborted transactions, and producers, that are listed per partition: the newest; all of them are counted."""


def inspection(partitions: Sequence[Partition], commits: Sequence[GroupCommit]) -> dict[str, Any]:
    """The result of `cklog inspect`."""
    records, size = sum(p.records for p in partitions), sum(p.bytes for p in partitions)
    topics = {p.folder.topic for p in partitions}
    stops = {p.folder.clean for p in partitions}
    clean = None if None in stops else stops == {True}
    stop = {True: "; the broker was stopped cleanly", False: "; the broker was killed", None: ""}[clean]
    times = [time for p in partitions for time in (p.first_time, p.last_time) if time is not None]
    return {
        "summary": (
            f"{many(len(partitions), 'partition')} of {many(len(topics), 'topic')}, {many(records, 'record')} in "
            f"{many(size, 'byte')}, {many(len({c.group for c in commits}), 'group')}{stop}."
        ),
        "formats": ["kafka"],
        "clean_stop": clean,
        "partitions": [_partition_row(p) for p in partitions],
        "groups": [_commit_row(commit) for commit in commits],
        "transactions": [row for p in partitions for row in _transaction_rows(p)],
        "producers": [row for p in partitions for row in _producer_rows(p)],
        "time_span": {"from": min(times), "to": max(times)} if times else None,
    }


def _partition_row(p: Partition) -> dict[str, Any]:
    found = p.transactions
    return {
        "partition": p.name,
        "log_start": p.log_start,
        "log_end": p.log_end,
        "restart_end": p.restart_end,
        "high_watermark": p.folder.high_watermark,
        "recovery_point": p.folder.recovery_point,
        "last_stable": p.last_stable,
        "leader_epoch": p.folder.epochs[-1][0] if p.folder.epochs else None,
        "segments": len(p.folder.segments),
        "batches": p.batches,
        "data": p.data,
        "control": p.control,
        "bytes": p.bytes,
        "committed": found.committed,
        "aborted": len(found.aborted),
        "open": len(found.open),
        "damaged": sum(item.count for item in p.damage),
        "first_time": p.first_time,
        "last_time": p.last_time,
    }


def _commit_row(commit: GroupCommit) -> dict[str, Any]:
    return {
        "group": commit.group,
        "partition": commit.name,
        "committed": commit.offset,
        "pending": commit.pending,
        "log": commit.log,
        "at": commit.at,
        "committed_time": commit.time,
    }


def _transaction_rows(p: Partition) -> list[dict[str, Any]]:
    """Open transactions, those in doubt, and the newest aborted ones."""
    found = p.transactions
    some = [*found.aborted[-LISTED:], *found.doubtful, *found.open]
    distinct = sorted(set(some), key=lambda t: (t.first, t.producer, t.fate))
    return [_transaction_row(p, t) for t in distinct]


def _transaction_row(p: Partition, t: ProducerTransaction) -> dict[str, Any]:
    return {
        "partition": p.name,
        "producer": t.producer,
        "fate": t.fate,
        "first": t.first,
        "end": t.end,
        "records": t.records,
        "bytes": t.bytes,
        "in_doubt": t.doubt,
        "first_time": t.time,
    }


def _producer_rows(p: Partition) -> list[dict[str, Any]]:
    """Producers of the newest snapshot, which a broker writes when a segment is full and when it stops."""
    snapshot = p.folder.snapshot
    if snapshot is None:
        return []
    newest = sorted(snapshot.producers, key=lambda each: (each.last_offset, each.producer))[-LISTED:]
    return [
        {
            "partition": p.name,
            "as_of": snapshot.offset,
            "producer": each.producer,
            "epoch": each.epoch,
            "last_sequence": each.last_sequence,
            "last_offset": each.last_offset,
            "open_from": each.open_from,
            "last_time": each.time,
        }
        for each in newest
    ]
