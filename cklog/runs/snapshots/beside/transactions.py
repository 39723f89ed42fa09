"""Pending Kafka transactions of a snapshot, beside the logs that they were written to.

A restore commits them. One that Kafka has committed already is visible; one that it has aborted is gone, for good: its
results are made again only from an older snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cklog.kafka_logs.ended import Ended, EndedTransaction, ProducerEpoch, how_ended, parse_producer
from cklog.model.findings import Finding, Where
from cklog.model.lines import RecoveryLine
from cklog.model.unchecked import Unchecked
from cklog.model.verdict import Draft
from cklog.model.wording import first_few, many
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.plan import SnapshotPlan, older_than
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.runs.snapshots.waiting import sink_names

if TYPE_CHECKING:  # without --kafka nothing of it is loaded
    from cklog.kafka_logs.logs import PartitionLogs

_LAST_EPOCH = 32766
"""With this epoch a producer id is used up, and the broker goes on with another id."""


class PendingTransaction(NamedTuple):
    """A transaction that a restore commits: its sink, its id and its producer; how it ended, by its parts in logs."""

    sink: str
    name: str
    producer: ProducerEpoch | None
    parts: tuple[EndedTransaction, ...] = ()

    @property
    def how(self) -> Ended:
        """How it ended, as far as the logs show."""
        return how_ended(self.parts)

    @property
    def records(self) -> int:
        """Records of it in the logs."""
        return sum(one.records for one in self.parts)


def pending_transactions(table: pa.Table, logs: PartitionLogs | None = None) -> list[PendingTransaction]:
    """Return the transactions that a restore of a snapshot commits, looked up in logs if there are some."""
    names = sink_names(table)
    rows = [row for row in rows_of(table, "transaction") if row["kind"] == "pending"]
    made = [
        PendingTransaction(names.get(row["operator"], row["operator"]), row["name"], parse_producer(row["detail"]))
        for row in rows
    ]
    if logs is None:
        return made
    found = logs.ended(one.producer for one in made if one.producer is not None)
    return [one if one.producer is None else one._replace(parts=tuple(found[one.producer])) for one in made]


def look_up_transactions(plan: SnapshotPlan, snapshots: Iterable[JudgedSnapshot | None], logs: PartitionLogs) -> None:
    """Search the logs once for the pending transactions of several snapshots."""
    tables = [plan.survey.tables[judged.folder.path] for judged in snapshots if judged is not None]
    made = [one.producer for table in tables for one in pending_transactions(table)]
    logs.ended(one for one in made if one is not None)


def without_lost_results(plan: SnapshotPlan, logs: PartitionLogs) -> SnapshotPlan:
    """Return a plan in which no job restarts from a snapshot of which a transaction was aborted, if it has another one.

    The newest older snapshot of which none was aborted makes these results again. Findings tell which are passed over.
    """
    chosen, findings = dict(plan.chosen), list(plan.findings)
    look_up_transactions(plan, chosen.values(), logs)
    for group in plan.groups:
        judged = chosen[group.job]
        passed: list[Finding] = []
        while judged is not None and (lost := _lost(plan, judged, logs)):
            if not passed:
                look_up_transactions(plan, older_than(group, judged), logs)
            passed += lost
            judged = next(older_than(group, judged), None)
        if judged is not None:
            chosen[group.job] = judged
            findings += [replace(one, effect="older-line") for one in passed]
    return plan._replace(chosen=chosen, findings=findings)


def _lost(plan: SnapshotPlan, judged: JudgedSnapshot, logs: PartitionLogs) -> list[Finding]:
    found = pending_transactions(plan.survey.tables[judged.folder.path], logs)
    return [one for one in transaction_findings(judged, found) if one.id == "transaction-aborted"]


def with_transactions(
    draft: Draft[RecoveryLine], plan: SnapshotPlan, logs: PartitionLogs | None
) -> Draft[RecoveryLine]:
    """Add to a line how its pending transactions ended, and of which of them nothing shows it."""
    line, findings, runs = draft.result, list(draft.findings), []
    told: dict[tuple[str, str], Ended] = {}
    for run, group in zip(line.runs, plan.groups, strict=True):
        judged = plan.chosen[group.job]
        found = [] if judged is None else pending_transactions(plan.survey.tables[judged.folder.path], logs)
        runs.append(replace(run, unchecked=(*run.unchecked, *_unchecked(found, logs is not None))))
        if judged is not None and logs is not None:
            told |= {(name_of(judged), one.name): one.how for one in found}
            findings += transaction_findings(judged, found)
    rows = [
        {**row, "ended": told[key]} if (key := (row["snapshot"], row["transaction"])) in told else row
        for row in line.details["transactions"]
    ]
    result = replace(line, runs=tuple(runs), details=line.details | {"transactions": rows})
    return replace(draft, result=result, findings=findings)


def _unchecked(found: Iterable[PendingTransaction], looked: bool) -> Iterator[Unchecked]:
    """Yield what nothing shows of pending transactions: whether Kafka can still commit them; `looked`: in logs."""
    names = [one.sink for one in found if not looked or one.how == "unknown"]
    for sink in dict.fromkeys(names):
        claim = f"Kafka can still commit {many(names.count(sink), 'pending transaction')} of sink {sink}"
        yield Unchecked("sink", sink, claim, "--kafka FOLDER")


def transaction_findings(judged: JudgedSnapshot, found: Iterable[PendingTransaction]) -> list[Finding]:
    """Say by sink which transactions were aborted, and which were committed already."""
    by_sink: dict[tuple[str, Ended], list[PendingTransaction]] = {}
    for one in found:
        by_sink.setdefault((one.sink, one.how), []).append(one)
    said = []
    for (sink, how), mine in sorted(by_sink.items()):
        if how == "aborted":
            said.append(_finding(judged, sink, mine, "transaction-aborted"))
        elif how == "committed":
            said.append(_finding(judged, sink, mine, "transaction-committed"))
    return said


def _finding(judged: JudgedSnapshot, sink: str, mine: Sequence[PendingTransaction], id: str) -> Finding:
    records = sum(one.records for one in mine)
    names = first_few([one.name for one in mine], 3)
    partitions = tuple(dict.fromkeys(part.partition for one in mine for part in one.parts))
    verb = "aborted" if id == "transaction-aborted" else "already committed"
    lead = f"{name_of(judged)}: Kafka has {verb} {many(len(mine), 'pending transaction')} of sink {sink} ({names})"
    where = tuple(Where(name) for name in partitions)
    if id == "transaction-aborted":
        message = (
            f"{lead} with {many(records, 'record')}. A restore cannot commit {'it' if len(mine) == 1 else 'them'}, and "
            "the sources resume after the input of these records, so the records are lost. Restore an older "
            "checkpoint: the job then produces them again"
        )
        return Finding(id, "error", sink, message, where, effect="data-lost")
    used_up = any(one.producer is not None and one.producer.epoch >= _LAST_EPOCH for one in mine)
    message = (
        f"{lead} with {many(records, 'record')}. Consumers see these records once: the restore commits them again, "
        "which has no effect"
    )
    if used_up:
        message += (
            f". {_LAST_EPOCH} is the last epoch of a producer id: the broker has moved on to a new id and may reject "
            "this commit. If it does, no data is lost, and nothing has to be repaired in Kafka"
        )
    return Finding(id, "warning" if used_up else "info", sink, message, where)
