"""What a restore of a job's snapshot does to the results of its sinks.

Sources resume at the snapshot's offsets, so everything after them that the crashed job had already processed comes
again. How far it had come is in no snapshot: newer ones, committed offsets and the logs' ends give bounds. A sink with
transactions keeps readers of committed records from seeing it: a restore commits those that the snapshot holds as
pending and aborts the later ones. But what a newer checkpoint has committed is visible, and comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.model import (
    PENDING,
    Again,
    GuaranteeEvidence,
    OutputInterval,
    ResultFate,
    SinkGuarantee,
    SinkImpact,
    SinkTransaction,
)
from cklog.impact.sinks.sources import BoundLogs, input_piece, offset_of, reach_notes, read_again
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.partitions import Partition, ProducerTransaction
from cklog.kafka_logs.ended import Ended, EndedTransaction, how_ended, parse_producer
from cklog.model.lines import SourceOffset
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.runs.snapshots.beside.shown import add_shown, shown_since
from cklog.runs.snapshots.beside.transactions import look_up_transactions
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import SnapshotPlan, newer_than, snapshot_named
from cklog.runs.snapshots.state import source_offsets
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.runs.snapshots.waiting import FILES, Waiting, sink_names, unread_sinks, waiting_in, waiting_told

UNNAMED = "any sink"
COMMITTED, EVERYTHING = "of committed records", "of all records"
_WRITER, _COMMITTER = ": Writer", ": Committer"
"""How Flink names the two operators of a sink, from metadata version 5 on."""


@dataclass(frozen=True, slots=True)
class _Restored:
    """A job with what it restarts from, the newer snapshots of it that can be read, and what waits for the restore."""

    group: Candidates
    judged: JudgedSnapshot
    newer: tuple[JudgedSnapshot, ...]
    waiting: tuple[Waiting, ...]
    shown: Mapping[str, Sequence[str]]


def snapshot_impact(
    parser: OffersSnapshots, plan: SnapshotPlan, question: Question, logs: BoundLogs | None
) -> Draft[SinkImpact]:
    """Say what restoring each job does to results, without the findings, which are those of its line.

    Parameters
    ----------
    plan : what each job restarts from
    question : `against` names a snapshot up to which the job had come at least
    """
    jobs = [_restored(parser, plan, group, question.check_files) for group in plan.groups]
    restored = [job for job in jobs if job is not None]
    against = [snapshot_named(plan.survey, question.against)] if question.against else []
    if logs is not None:
        look_up_transactions(plan, (one for job in restored for one in (job.judged, *job.newer)), logs.logs)
    found = [_impact(plan, job, against, logs, len(plan.groups) > 1) for job in restored]
    result = SinkImpact(
        system="flink",
        line=tuple({"operator": job.group.job or ".", "subtask": 0, "checkpoint": job.judged.id} for job in restored),
        intervals=tuple(row for one in found for row in one.intervals),
        guarantees=tuple(row for one in found for row in one.guarantees),
        again=tuple(row for one in found for row in one.again),
        transactions=tuple(row for one in found for row in one.transactions),
        notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
    )
    return Draft("impact-sinks", result, (), plan.survey.inputs)


def _restored(parser: OffersSnapshots, plan: SnapshotPlan, group: Candidates, check: bool) -> _Restored | None:
    judged = plan.chosen[group.job]
    if judged is None:
        return None
    folder, table = judged.folder.path, plan.survey.tables[judged.folder.path]
    return _Restored(
        group,
        judged,
        tuple(j for j in newer_than(group, plan.chosen[group.job]) if j.folder.path in plan.survey.tables),
        tuple(waiting_in(parser, folder, table, check)),
        shown_since(parser, folder, table) if check else {},
    )


def _impact(
    plan: SnapshotPlan, job: _Restored, against: Sequence[JudgedSnapshot], logs: BoundLogs | None, several: bool
) -> SinkImpact:
    """Of one job; with several, its sinks carry the beginning of its folder's name."""
    tables = plan.survey.tables
    table = tables[job.judged.folder.path]
    again = [_read_again(plan, job, source, against, logs) for source in source_offsets(table)]
    lead = f"{job.group.job[:8]}:" if several else ""
    sinks = _sinks(table)
    newer = [tables[j.folder.path] for j in job.newer]
    told = _transactions(table, newer)
    told = {sink: list(_located(rows, logs)) for sink, rows in told.items()}
    pending: list[tuple[Fate, Waiting]] = [("unknown" if one.doubtful else "committed", one) for one in job.waiting]
    pending += [("visible", one) for newer_table in newer for one in waiting_told(newer_table)]
    forms = {one.pending.sink: one.form for _, one in pending if one.form and one.pending.sink not in told}
    for sink, made in _pending(pending).items():
        told.setdefault(sink, []).extend(made)
    add_shown(told, job.shown)
    unread = unread_sinks(table)
    names = sorted({*sinks, *told, *forms, *unread}) or [UNNAMED]
    later = bool(newer)
    intervals = [
        row for name in names for row in _intervals(lead + name, told.get(name, []), again, forms.get(name, ""), later)
    ]
    intervals += [_unread(lead + name) for name in unread]
    pieces = [
        input_piece(again),
        GuaranteeEvidence("state", job.judged.verdict == "restorable" or None, "snapshot-whole"),
    ]
    guarantees = [
        found
        for name in names
        for found in _guarantees(
            lead + name,
            told.get(name, []),
            sinks.get(name),
            [*pieces, *_not_there(name, job.waiting), *_not_committed(told.get(name, [])), *_not_read(name, unread)],
            forms.get(name, ""),
            later,
        )
    ]
    rows = tuple(replace(row, sink=lead + row.sink) for name in names for row in told.get(name, []))
    note = "sinks-not-named" if names == [UNNAMED] else "sinks-by-name"
    bound = reach_notes(again, not against and len(tables) > 1, logs)
    return SinkImpact(
        system="flink",
        line=(),
        intervals=tuple(intervals),
        guarantees=tuple(guarantees),
        again=tuple(again),
        transactions=rows,
        notes=(note, *bound),
    )


def _sinks(table: Any) -> dict[str, bool]:
    """Sinks by the names of their operators; whether each has a committer."""
    found: dict[str, bool] = {}
    for row in rows_of(table, "operator"):
        base, colon, role = (row["name"] or "").rpartition(": ")
        if colon and f": {role}" in (_WRITER, _COMMITTER):
            found[base] = found.get(base, False) or f": {role}" == _COMMITTER
    return found


Fate = Literal["committed", "visible", "unknown"]
_TABLES = ("iceberg", "iceberg-dynamic", "iceberg-files", "paimon")
"""Forms of what is pending for tables: what they have taken is theirs to tell."""

_FATES: Mapping[str, Any] = {"pending": "committed", "open": "aborted", "failed": "aborted"}
_OF_NEWER: Mapping[str, Any] = {"pending": "visible", "committed": "visible"}


def _transactions(table: Any, newer: Sequence[Any]) -> dict[str, list[SinkTransaction]]:
    """Transactions of every sink in the snapshot, and those that newer snapshots were to commit; by sink."""
    found: dict[str, list[SinkTransaction]] = {}
    known: set[tuple[str, str, str | None]] = set()
    for one, fates in [(table, _FATES), *((t, _OF_NEWER) for t in newer)]:
        sink_of = sink_names(one)
        for row in rows_of(one, "transaction"):
            sink, fate = sink_of.get(row["operator"], row["operator"]), fates.get(row["kind"])
            key = (sink, row["name"], row["detail"])  # a pool of ids is used again, with another epoch
            if fate is not None and key not in known:
                known.add(key)
                transaction = SinkTransaction(
                    sink=sink,
                    transaction=row["name"],
                    producer=row["detail"],
                    checkpoint=row["checkpoint"],
                    fate=fate,
                )
                found.setdefault(sink, []).append(transaction)
    return {sink: sorted(rows, key=lambda t: (t.fate, t.transaction)) for sink, rows in found.items()}


def _pending(those: Iterable[tuple[Fate, Waiting]]) -> dict[str, list[SinkTransaction]]:
    """What is no transaction, and waits for a restore or was to be committed by a newer snapshot; by sink."""
    found: dict[tuple[str, str], SinkTransaction] = {}
    for fate, one in those:
        if one.commits and one.form:
            sink, number = one.pending.sink, one.pending.number
            called = many(len(one.pending.files), "file") if number is None else f"checkpoint {number}"
            made = SinkTransaction(sink=sink, transaction=called, producer=None, checkpoint=number, fate=fate)
            found.setdefault((sink, called), made)
    by_sink: dict[str, list[SinkTransaction]] = {}
    for row in sorted(found.values(), key=lambda t: (t.fate, t.checkpoint or 0)):
        by_sink.setdefault(row.sink, []).append(row)
    return by_sink


def _not_there(sink: str, waiting: Iterable[Waiting]) -> list[GuaranteeEvidence]:
    """What of a sink's pending commits is gone, or was not looked for: a restore cannot keep what it lacks."""
    its = [one for one in waiting if one.pending.sink == sink]
    gone = tuple(file for one in its for file in one.pending.missing or ())
    if gone:
        certain = any(one.pending.missing and one.form not in _TABLES for one in its)
        return [GuaranteeEvidence("state", False if certain else None, "pending-gone", gone)]
    return [] if all(one.looked_at for one in its) else [GuaranteeEvidence("state", None, "pending-unseen")]


def _unread(sink: str) -> OutputInterval:
    """Return the results that a sink has pending in state that is not read."""
    return OutputInterval(
        sink=sink,
        readers="",
        fate="may-be-missing",
        of=PENDING,
        from_=None,
        to=None,
        most=None,
        count=None,
        why="pending-unread",
    )


def _not_read(sink: str, unread: Collection[str]) -> list[GuaranteeEvidence]:
    return [GuaranteeEvidence("state", None, "pending-unread")] if sink in unread else []


def _not_committed(told: Iterable[SinkTransaction]) -> list[GuaranteeEvidence]:
    """What Kafka has aborted of a sink's pending transactions, or nothing shows: no restore can keep that."""
    kafka = [row for row in told if row.producer is not None]
    lost = tuple(sorted({row.transaction for row in kafka if row.fate == "lost"}))
    if lost:
        return [GuaranteeEvidence("state", False, "transactions-lost", lost)]
    unknown = any(row.fate == "unknown" for row in kafka)
    return [GuaranteeEvidence("state", None, "transactions-unknown")] if unknown else []


def _located(rows: Sequence[SinkTransaction], logs: BoundLogs | None) -> Iterable[SinkTransaction]:
    """The same as the logs show them: one row for each partition that holds records, and how pending ones ended."""
    if logs is None:
        yield from rows
        return
    pending = {row.producer: parse_producer(row.producer) for row in rows if row.fate in _BY_HOW}
    found = logs.logs.ended(one for one in pending.values() if one is not None)
    partitions = logs.logs.partitions()
    running = _open_by_producer(partitions.values())
    for row in rows:
        known = pending.get(row.producer) if row.fate in _BY_HOW else None
        if known is None:
            number = (row.producer or "").split(" ")[1:2]
            held = running.get(number[0], ()) if number else ()
            parts = [replace(row, log=p.name, from_=t.first, to=p.restart_end, records=t.records) for p, t in held]
            yield from parts or [row]
            continue
        fate = _BY_HOW[row.fate][how_ended(found[known])]
        parts = [
            replace(
                row, fate=fate, log=one.partition, from_=one.first, to=_end_of(one, partitions), records=one.records
            )
            for one in found[known]
        ]
        yield from parts or [replace(row, fate=fate)]


def _end_of(one: EndedTransaction, partitions: Mapping[str, Partition]) -> int:
    """Return where a transaction ends in its partition: an open one ends with the log."""
    return partitions[one.partition].restart_end if one.end is None else one.end


_BY_HOW: Mapping[str, Mapping[Ended, Any]] = {
    "committed": {"committed": "done", "aborted": "lost", "open": "committed", "unknown": "unknown"},
    "visible": {"committed": "visible", "aborted": "aborted", "open": "aborted", "unknown": "visible"},
}
"""What becomes of a transaction that the restored checkpoint, or a newer one, has pending, by how it ended."""


def _open_by_producer(partitions: Iterable[Partition]) -> dict[str, list[tuple[Partition, ProducerTransaction]]]:
    """Return the open transactions outside of the broker's own topics, by the id of their producer."""
    found: dict[str, list[tuple[Partition, ProducerTransaction]]] = {}
    for p in partitions:
        for one in p.transactions.open if not p.folder.internal else ():
            found.setdefault(str(one.producer), []).append((p, one))
    return found


def _read_again(
    plan: SnapshotPlan,
    job: _Restored,
    source: SourceOffset,
    against: Sequence[JudgedSnapshot],
    logs: BoundLogs | None,
) -> Again:
    """A source up to where newer snapshots of the job stand, and the one that `--against` names."""
    reached = [_offset_in(plan, j, source) for j in [*job.newer, *against]]
    found = read_again(source, reached, logs)
    # a split of a generator is made again from its number
    return replace(found, kept=True) if found.most is None and source.source.isdecimal() else found


def _offset_in(plan: SnapshotPlan, judged: JudgedSnapshot, source: SourceOffset) -> int | None:
    """Where a source stands in another snapshot of the job."""
    others = source_offsets(plan.survey.tables[judged.folder.path])
    same = [o.offset for o in others if (o.source, o.operator) == (source.source, source.operator)]
    return max((offset for offset in map(offset_of, same) if offset is not None), default=None)


def _intervals(
    sink: str, told: Sequence[SinkTransaction], again: Sequence[Again], form: str, later: bool
) -> Iterable[OutputInterval]:
    """What comes again to a sink, source by source; for one that commits, what its readers see of it.

    Parameters
    ----------
    form : of what is pending for it; "" for transactions, whose records can be read before they are committed
    later : whether there are newer snapshots, by which a file may have been shown that is in none of them
    """
    every = EVERYTHING if told and not form else ""
    hidden = form == FILES and (not later or any(t.fate == "visible" for t in told))
    for row in again if not hidden else ():
        if row.most is not None and row.most == row.from_:  # the source has nothing behind the position
            continue
        known = isinstance(row.to, int) and isinstance(row.from_, int) and not form
        fate: ResultFate = "doubled" if known else "may-be-doubled"
        count = row.to - row.from_ if isinstance(row.to, int) and isinstance(row.from_, int) else None
        yield OutputInterval(
            sink=sink,
            readers=every,
            fate=fate,
            of=row.source,
            from_=row.from_,
            to=row.to,
            most=row.most,
            count=count,
            why="read-again",
        )
    if not told:
        return
    visible = tuple(sorted({t.transaction for t in told if t.fate == "visible"}))
    readers = "" if form else COMMITTED
    interval = partial(OutputInterval, sink=sink, readers=readers, of="transaction", to=None, most=None)
    if visible:
        count = len(visible)
        yield interval(fate="may-be-doubled", from_=visible[0], count=count, why="committed-later", names=visible)
    for of, fate, why in _PENDING:
        names = tuple(sorted({t.transaction for t in told if t.fate == of}))
        if names:
            yield interval(fate=fate, from_=names[0], count=len(names), why=why, names=names)


_PENDING: Sequence[tuple[str, ResultFate, str]] = (
    ("committed", "once", "committed-by-restore"),
    ("done", "visible", "committed-before"),
    ("lost", "missing", "aborted-before"),
    ("unknown", "may-be-missing", "commit-unknown"),
)
"""What readers see of pending transactions, by their fate, and why."""


def _guarantees(
    sink: str,
    told: Sequence[SinkTransaction],
    committer: bool | None,
    pieces: Sequence[GuaranteeEvidence],
    form: str,
    later: bool,
) -> Iterable[SinkGuarantee]:
    """By what is known of the sink: transactions, other pending commits, a committer that is not read, or neither."""
    if not told and not form:
        why = {None: "unknown-sink", True: "unread-committer", False: "no-committer"}[committer]
        yield guarantee_of(
            sink, "", [*pieces, GuaranteeEvidence("output", False if why == "no-committer" else None, why)]
        )
        return
    visible = tuple(sorted({t.transaction for t in told if t.fate == "visible"}))
    because = "committed-since" if visible else "pending-files" if form else "transactions"
    unseen = form == FILES and later and not visible
    held = GuaranteeEvidence("output", None if unseen else not visible, because, visible)
    if form in _TABLES:
        held = GuaranteeEvidence("output", None, "table-not-asked")
    yield guarantee_of(sink, "" if form else COMMITTED, [*pieces, held])
    if not form:
        yield guarantee_of(sink, EVERYTHING, [*pieces, GuaranteeEvidence("output", False, "uncommitted-seen")])
