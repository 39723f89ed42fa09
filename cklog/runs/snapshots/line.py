"""A run that is given as snapshots of whole jobs (Flink): the newest that can really be restored, for every job.

Each complete snapshot is a consistent line by itself, so nothing is searched. What is decided: which folder is whole,
which job goes on from which, where its sources resume and what was in flight.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cklog.errors import NotFound
from cklog.inputs.offers import OffersSnapshots
from cklog.lines.recovery.work import Work, Works, who_tells
from cklog.model.actions import RunAction, action_of
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry, RecoveryLine, SourceOffset
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.unchecked import Unchecked
from cklog.model.verdict import Draft
from cklog.model.wording import first_few, many, none_of
from cklog.runs.snapshots.beside.pending import with_pending
from cklog.runs.snapshots.findings import claim_findings, must_be_claimed, name_of
from cklog.runs.snapshots.heads import inlined_bytes
from cklog.runs.snapshots.lineage import Candidates, has_lost_metadata
from cklog.runs.snapshots.plan import (
    SnapshotPlan,
    is_unsure,
    newer_than,
    newest_with_metadata,
    snapshot_named,
)
from cklog.runs.snapshots.state import (
    in_flight,
    in_flight_sums,
    read_again,
    source_findings,
    source_offsets,
    transactions,
)
from cklog.runs.snapshots.verdicts import NOT_READ, JudgedSnapshot
from cklog.runs.snapshots.waiting import unread_sinks


class SnapshotLine:
    """The line of a plan, in the words of the jobs' folders."""

    def __init__(self, parser: OffersSnapshots) -> None:
        self._parser = parser

    def draft(
        self, command: str, plan: SnapshotPlan, question: Question, logged: bool
    ) -> tuple[Draft[RecoveryLine], Works]:
        """Make the whole answer of `recovery-line` or `replay`, before its verdict; and what a recovery reads.

        `logged` : whether logs of the sources were given
        """
        sizes = {self._parser.job_id(g.job): _bytes_to_read(g, plan.chosen[g.job]) for g in plan.groups}
        draft = with_pending(
            self._draft(command, plan, question), self._parser, plan, question.check_files, bool(question.sinks)
        )
        return draft, snapshot_works(sizes, logged)

    def _draft(self, command: str, plan: SnapshotPlan, question: Question) -> Draft[RecoveryLine]:
        picks = [(g, plan.chosen[g.job]) for g in plan.groups]
        restored = [(g, j) for g, j in picks if j is not None]
        sources: list[SourceOffset] = []
        findings = [*plan.findings, *claim_findings(plan.survey, [j for _, j in restored])]
        for group, judged in restored:
            table = plan.survey.tables[judged.folder.path]
            sources += source_offsets(table, self._parser.job_id(group.job))
            findings += source_findings(judged.folder.path, table)
        for group, pick in picks:
            if pick is None and restored:
                told = none_of(len(group.snapshots), "snapshot", "can be restored", "cannot be restored")
                message = f"{self._label(group)}: {told[0].lower()}{told[1:]}"
                findings.append(
                    Finding("no-restorable-snapshot", "error", self._label(group), message, effect="restart-fails")
                )
        line = RecoveryLine(
            consistent=True,
            protocol="coordinated",
            line=tuple(self._entry(group, judged) for group, judged in picks),
            channels=(),
            sources=tuple(sources),
            rolled_back=tuple(c for group, judged in picks for c in self._past(group, judged)),
            useless=(),
            steps=(),
            domino=False,
            notes=tuple(self._notes(plan, restored)),
            details=self._details(plan, restored, question),
            runs=tuple(self._run_action(plan, group, judged, question) for group, judged in picks),
        )
        unsure = any(self._is_unsure(group, judged, question) for group, judged in picks)
        return Draft(
            command,
            line,
            findings,
            plan.survey.inputs,
            unrecoverable=not restored and not unsure,
            indeterminate=unsure,
        )

    def _where(self, judged: JudgedSnapshot) -> str:
        """What to restore from: the folder as it was named when it was written, else as PATH and maps name it."""
        folder = judged.folder
        known = f"/{self._parser.job_id(folder.job)}/chk-{folder.number}"
        written_there = judged.uri is not None and judged.uri.endswith(known)
        return judged.uri if written_there and judged.uri else self._parser.original(folder.path)

    def _command(self, plan: SnapshotPlan, judged: JudgedSnapshot) -> str:
        """What to type; the job's own jar and options follow it."""
        claim = " -claimMode CLAIM" if must_be_claimed(plan.survey, judged) else ""
        return f"flink run -s {shlex.quote(self._where(judged))}{claim}"

    def _run_action(
        self, plan: SnapshotPlan, group: Candidates, judged: JudgedSnapshot | None, question: Question
    ) -> RunAction:
        """What to do about one job."""
        newest = newest_with_metadata(group)
        unsure = group.job in plan.mixed or self._is_unsure(group, judged, question)
        lacking = _missing_sink_files(group)
        mendable = judged is None and (bool(lacking) or any(j.repairable for j in group.snapshots))
        older = judged is not newest and not question.at
        refused = judged is None and group.job in plan.asked
        note = None if unsure else "no snapshot can be restored"
        if has_lost_metadata(group):
            note = "look for files called _metadata"
        if lacking:
            note = f"put these files of sinks back first: {first_few(lacking, 3)}"
        if refused:
            note = "what --at names cannot be restored: ask without it for the newest that can"
        found = RunAction(
            run=self._parser.job_id(group.job),
            action=action_of(
                unsure, nothing=judged is None and not mendable and not refused, repair=mendable or refused, older=older
            ),
            path=group.job or ".",
            newest=None if newest is None else name_of(newest).rpartition("/")[2],
            note=note,
        )
        if judged is None:
            return found
        return replace(
            found,
            chosen=name_of(judged).rpartition("/")[2],
            command=self._command(plan, judged),
            note=self._doubt(plan, judged),
            reads_more=bool(source_offsets(plan.survey.tables[judged.folder.path])),
            unchecked=tuple(_unchecked(plan.survey.tables[judged.folder.path])),
        )

    def _is_unsure(self, group: Candidates, judged: JudgedSnapshot | None, question: Question) -> bool:
        """Return whether another snapshot may be the one to restore: of PATH that is one, nobody looked at others."""
        lone = judged is None and self._parser.only is not None and not question.at
        return lone or is_unsure(group, judged, question.check_files)

    def _doubt(self, plan: SnapshotPlan, judged: JudgedSnapshot) -> str | None:
        """What to mind about the command, None: nothing."""
        where = self._where(judged)
        doubts = []
        if "://" not in where and not where.startswith(("/", "file:")):
            doubts.append("the path is relative, and Flink takes it from where it is started: give it whole")
        elif where != judged.uri:
            doubts.append("the path is that of this copy: restore from where the cluster sees it (--map OLD=NEW)")
        if judged.moved:
            doubts.append("cklog assumes that PATH is a copy: a checkpoint that was moved fails in its tasks")
        if must_be_claimed(plan.survey, judged):
            doubts.append("the new job owns the old one's files: copy first what is to stay")
        return "; ".join(doubts) or None

    def _called(self, judged: JudgedSnapshot) -> str:
        """A snapshot's folder below PATH, by its own name where it is PATH."""
        return judged.folder.path or self._parser.job_id("")

    def _label(self, group: Candidates) -> str:
        return group.job or self._parser.job_id(group.job)

    def _entry(self, group: Candidates, judged: JudgedSnapshot | None) -> LineEntry:
        initial = LineEntry(
            operator=self._label(group),
            subtask=0,
            checkpoint=None,
            time=None,
            uri=None,
            rolled_back=True,
            state="initial",
            job=self._parser.job_id(group.job),
        )
        if judged is None:
            return initial
        back = judged is not newest_with_metadata(group)
        return replace(initial, checkpoint=judged.id, uri=self._where(judged), rolled_back=back, state="stored")

    def _past(self, group: Candidates, judged: JudgedSnapshot | None) -> list[CheckpointId]:
        """Snapshots with metadata that are newer than what is restored."""
        newer = [j for j in newer_than(group, judged) if j.folder.metadata is not None]
        return [CheckpointId(self._label(group), 0, j.id) for j in newer if j.id is not None]

    def _notes(self, plan: SnapshotPlan, restored: Sequence[tuple[Candidates, JudgedSnapshot]]) -> list[str]:
        notes = [f"{self._label(g)} goes on from {', '.join(g.forebears)}." for g in plan.groups if g.forebears]
        flying = sum(r["bytes"] for _, j in restored for r in in_flight(plan.survey.tables[j.folder.path]))
        if flying:
            notes.append(
                f"{flying} bytes in flight are in the snapshots and are restored with them: nothing to replay."
            )
        notes.append(
            "Flink's metadata holds neither times nor checksums: whole means that every file is there with its size."
        )
        return notes

    def _details(
        self,
        plan: SnapshotPlan,
        restored: Sequence[tuple[Candidates, JudgedSnapshot]],
        question: Question,
    ) -> dict[str, Any]:
        tables = plan.survey.tables
        flying = [{"snapshot": name_of(j), **row} for _, j in restored for row in in_flight(tables[j.folder.path])]
        details = {
            "headline": self._headline(plan, restored),
            "restore": [{"job": self._label(g), "command": self._command(plan, j)} for g, j in restored],
            "snapshots": [_row(j) for j in plan.survey.judged],
            "needs": plan.rows,
            "in_flight": in_flight_sums(flying),
            "in_flight_channels": flying,
            "transactions": [
                {"snapshot": name_of(j), **row} for _, j in restored for row in transactions(tables[j.folder.path])
            ],
        }
        if question.against:
            other = snapshot_named(plan.survey, question.against)
            mine = [s for j in _to_compare(restored, other) for s in source_offsets(tables[j.folder.path])]
            details["against_snapshot"] = name_of(other)
            details["against"] = read_again(mine, source_offsets(tables[other.folder.path]))
        return details

    def _headline(self, plan: SnapshotPlan, restored: Sequence[tuple[Candidates, JudgedSnapshot]]) -> str:
        total = len(plan.groups)
        if not total:
            return "No snapshot is here that a job could restart from."
        if not restored:
            return self._nothing(plan)
        back = sum(j is not newest_with_metadata(g) for g, j in restored)
        if total == 1:
            group, judged = restored[0]
            first = newest_with_metadata(group)
            older = "" if first is None or judged is first else f", not {self._called(first)} ({first.verdict})"
            if first is not None and first.verdict in NOT_READ:
                return f"{self._called(judged)} can be restored; {self._called(first)}, which is newer, was not read."
            return f"Restore {self._called(judged)}{older}."
        past = f"; {back} of them not from their newest one" if back else ""
        return f"{len(restored)} of {total} jobs can be restored{past}."

    def _nothing(self, plan: SnapshotPlan) -> str:
        """Why no job can be restored, for all that is known."""
        if plan.refused:
            return f"What was asked for cannot be restored: {'; '.join(plan.refused)}."
        lost = [self._label(group) for group in plan.groups if has_lost_metadata(group)]
        if lost:
            they = f"{first_few(lost, 3)} {'has' if len(lost) == 1 else 'have each'}"
            return f"Indeterminate: {they} started several checkpoints, and none of them has metadata."
        unsure = [j for group in plan.groups for j in group.snapshots if j.verdict in ("unchecked", *NOT_READ)]
        if unsure:
            also = f", and {len(unsure) - 1} more," if len(unsure) > 1 else ""
            outside = "some of its files are outside PATH and were not checked"
            why = outside if unsure[0].verdict == "unchecked" else "was not read"
            return f"Indeterminate: {self._called(unsure[0])}{also} may be complete, but {why}."
        for group in plan.groups:
            if lacking := _missing_sink_files(group):
                return (
                    f"{self._label(group)} can be restored once sinks have their files again: {first_few(lacking, 3)}."
                )
        if self._parser.only is not None:
            why = f"{self._parser.only} is one checkpoint of a job, and it cannot be restored"
            return f"Indeterminate: {why}. Give the folder above it: the job may have other checkpoints there."
        none = none_of(len(plan.survey.judged), "snapshot", "can be restored", "cannot be restored")
        return f"{none}: there is no recovery point but the initial state."


def _unchecked(table: pa.Table) -> Iterator[Unchecked]:
    """Yield what is taken for granted: of sinks whose state is not read, and of bytes that no checksum covers."""
    for sink in unread_sinks(table):
        claim = f"a restore commits all that is pending for sink {sink}, in state that cklog cannot read"
        yield Unchecked("sink", sink, claim)
    size = inlined_bytes(table)
    if size:
        claim = f"the state inside _metadata is intact ({many(size, 'byte', grouped=True)} without a checksum)"
        yield Unchecked("state", "_metadata", claim)


def _missing_sink_files(group: Candidates) -> list[str]:
    """Return the sink files whose absence alone keeps the newest such snapshot from being restored."""
    found = next((j for j in group.snapshots if j.verdict == "sink-file-missing"), None)
    return [] if found is None else [flaw.path for flaw in found.flaws if flaw.sink]


def _bytes_to_read(group: Candidates, judged: JudgedSnapshot | None) -> int | None:
    """Count the bytes of state that a job restores; None: whether it restores any is not known."""
    if judged is not None:
        return judged.bytes
    return None if is_unsure(group, judged) else 0


def snapshot_works(sizes: Mapping[str, int | None], logged: bool) -> Works:
    """Return what each job, by its id, restores: the bytes that its snapshot names, whatever times they take."""
    parts = [Work(name=job, bytes=size, logged=None) for job, size in sizes.items()]
    why = {
        "bytes": "no snapshot can be chosen for sure",
        "read": "Flink's metadata holds no times; --read-rate says it",
        "messages": who_tells("the sources' logs", "--kafka", logged),
        "replay": "Flink's metadata holds no times; --replay-rate says it",
        "input": "Flink's metadata holds no times; --input-rate says it",
    }
    return Works(parts, why=why)


def _to_compare(restored: Sequence[tuple[Candidates, JudgedSnapshot]], other: JudgedSnapshot) -> list[JudgedSnapshot]:
    """What is restored of the job that a snapshot is of; if there is but one job, of that."""
    found = [j for g, j in restored if len(restored) == 1 or any(one is other for one in g.snapshots)]
    if restored and not found:
        raise NotFound(f"--against {name_of(other)}: of no job that can be restored", "give the folder of one job")
    return found


def _row(j: JudgedSnapshot) -> dict[str, Any]:
    return {
        "snapshot": name_of(j),
        "id": j.id,
        "kind": j.kind,
        "verdict": j.verdict,
        "files": j.files,
        "flawed": len(j.flaws),
        "state_bytes": j.bytes,
        "reasons": [_reason(f) for f in j.flaws],
    }


def _reason(flaw: Any) -> dict[str, Any]:
    found = {"found": list(flaw.found)} if flaw.found else {}
    if why := flaw.why or flaw.unread or flaw.unknown:
        found |= {"why": why, "offset": flaw.at}
    return {"file": flaw.path, "needed_bytes": flaw.needed, "bytes": flaw.size, **found}
