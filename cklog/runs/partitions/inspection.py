"""What the partitions of a broker hold: their records, transactions and producers, and what groups have committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from cklog.inputs.partitions import GroupCommit, Partition, ProducerTransaction
from cklog.model.inspection import Inspection, TimeSpan
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.runs.partitions.line import PartitionLog

LISTED = 100
"""Aborted transactions, and producers, that are listed per partition: the newest; all of them are counted."""


class PartitionRow(TypedDict):
    """A partition: its offsets, and its segments, batches and records by what they are; times in ms.

    `restart_end` is where the log ends once the broker is back; `committed`, `aborted` and `open` count transactions.
    """

    partition: str
    log_start: int
    log_end: int
    restart_end: int
    high_watermark: int | None
    recovery_point: int | None
    last_stable: int
    leader_epoch: int | None
    segments: int
    batches: int
    data: int
    control: int
    bytes: int
    committed: int
    aborted: int
    open: int
    damaged: int
    first_time: int | None
    last_time: int | None


class CommitRow(TypedDict):
    """What a group has committed of a partition, and where that is written: byte `at` of `log`."""

    group: str
    partition: str
    committed: int
    pending: int | None
    log: str
    at: int
    committed_time: int | None


class TransactionRow(TypedDict):
    """A transaction: the offsets [first, end) that it spans, and how it ended; `in_doubt`: damage may hide its end."""

    partition: str
    producer: int
    fate: str
    first: int
    end: int | None
    records: int
    bytes: int
    in_doubt: bool
    first_time: int | None


class ProducerRow(TypedDict):
    """A producer in the newest snapshot, which is as of an offset; `open_from`: its open transaction's first one."""

    partition: str
    as_of: int
    producer: int
    epoch: int
    last_sequence: int
    last_offset: int
    open_from: int | None
    last_time: int


class PartitionsInspection(Inspection):
    """What is here of a broker's data folder; `clean_stop`: whether the broker stopped in good order; None: unknown."""

    clean_stop: bool | None
    partitions: list[PartitionRow]
    groups: list[CommitRow]
    transactions: list[TransactionRow]
    producers: list[ProducerRow]
    time_span: TimeSpan | None


def inspect_partitions(log: PartitionLog) -> Draft[PartitionsInspection]:
    """Say which partitions, groups, transactions and producers are here."""
    found = inspection(list(log.partitions.values()), log.commits)
    return Draft("inspect", found, log.findings(), log.inputs(), indeterminate=log.unread)


def inspection(partitions: Sequence[Partition], commits: Sequence[GroupCommit]) -> PartitionsInspection:
    """Return the result of `inspect` for partitions and the offsets that groups have committed."""
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


def _partition_row(p: Partition) -> PartitionRow:
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


def _commit_row(commit: GroupCommit) -> CommitRow:
    return {
        "group": commit.group,
        "partition": commit.name,
        "committed": commit.offset,
        "pending": commit.pending,
        "log": commit.log,
        "at": commit.at,
        "committed_time": commit.time,
    }


def _transaction_rows(p: Partition) -> list[TransactionRow]:
    """Open transactions, those in doubt, and the newest aborted ones."""
    found = p.transactions
    some = [*found.aborted[-LISTED:], *found.doubtful, *found.open]
    distinct = sorted(set(some), key=lambda t: (t.first, t.producer, t.fate))
    return [_transaction_row(p, t) for t in distinct]


def _transaction_row(p: Partition, t: ProducerTransaction) -> TransactionRow:
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


def _producer_rows(p: Partition) -> list[ProducerRow]:
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
