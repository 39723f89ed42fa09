"""State stores that are rebuilt from changelogs (Kafka Streams): what each must read again after a crash.

A task is the unit of recovery. What its stores hold on disk is known by the offsets that were written beside them: the
rest of each changelog partition, [restore_from, log end), is applied again. The line has an entry for each task, whose
checkpoint is the lowest of its stores' next offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import TypedDict

from cklog.errors import NotFound, UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import OffersStores
from cklog.inputs.partitions import Partition, Range
from cklog.inputs.stores import StoreLayout, StoreOffset, StoreRestore, StoreTask
from cklog.kafka_logs.deleted import deleted_findings
from cklog.kafka_logs.findings import late_start_findings, partition_findings
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.recovery.time import with_recovery_time
from cklog.model.actions import RunAction
from cklog.model.checks import Check, Verification, hides_newer, refutations, unless_hidden, verification
from cklog.model.findings import Finding, InputUsed
from cklog.model.inspection import Inspection
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange, SourceOffset
from cklog.model.question import Question
from cklog.model.verdict import NOT_JUDGED, Draft
from cklog.model.wording import many
from cklog.runs.stores.action import is_unsure, run_action
from cklog.runs.stores.compaction import compacted_range, compaction_findings
from cklog.runs.stores.ranges import begins_late, emptied, fitted, no_log, no_task, notes, of_task, unread_stores
from cklog.runs.stores.recovery import store_works


class TaskRow(TypedDict):
    """A task: its stores, their bytes, and the offsets that it has of them; None: no file has any."""

    task: str
    application: str
    stores: int
    store_bytes: int
    entries: int | None


class StoresInspection(Inspection):
    """What is here of tasks with state stores, and what each store reads again."""

    tasks: list[TaskRow]
    stores: list[StoreRestore]


class StoreRestores:
    """The analyses of state folders; `logs` are the brokers' logs, if they are at hand."""

    def __init__(self, parser: OffersStores, logs: PartitionLogs | None) -> None:
        self._parser = parser
        self._logs = logs

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Say whether every named task can go on from an offset, as those of its stores do that have one.

        Stores without one are restored from the beginning of their changelogs; the offset of a task that has no
        other stores is None.

        Raises
        ------
        NotFound : no such task
        UsageError : None for a task that has a store with an offset
        """
        _refuse(question)
        restores, findings = self._read
        checks: list[Check] = []
        for name, offset in line.items():
            mine = [r for r in restores if r.task == name]
            if offset is None and any(r.start == "checkpoint" for r in mine):
                raise UsageError(f"{name}: a task that failed has no current state", "give an offset of its stores")
            checks += _checks(name, offset, mine, maximal, self._tasks)
        found = [
            *findings,
            *refutations(checks, "line"),
        ]
        result = verification(unless_hidden(checks, hides_newer(findings)))
        unsure = result.undecided or is_unsure(findings)
        return Draft("verify", result, found, self._inputs(), indeterminate=unsure)

    def inspect(self) -> Draft[StoresInspection]:
        """Return tasks and stores."""
        restores, findings = self._read
        tasks: list[TaskRow] = [
            {
                "task": t.name,
                "application": t.application,
                "stores": len(t.stores),
                "store_bytes": sum(size for _, size in t.stores),
                "entries": None if t.entries is None else len(t.entries),
            }
            for t in self._layout.tasks
        ]
        result: StoresInspection = {
            "summary": _tasks_sentence(self._layout.tasks)
            + (f" {_headline(restores, True)}" if self._logs is not None else ""),
            "formats": [self._parser.name],
            "tasks": tasks,
            "stores": restores,
        }
        return Draft("inspect", result, findings, self._inputs(), indeterminate=is_unsure(findings))

    @cached_property
    def _layout(self) -> StoreLayout:
        return self._parser.stores()

    @property
    def _tasks(self) -> set[str]:
        return {task.name for task in self._layout.tasks}

    def line(self, command: str, question: Question) -> Draft[RecoveryLine]:
        _refuse(question)
        restores, findings = self._read
        by_task: dict[str, list[StoreRestore]] = {}
        for restore in restores:
            by_task.setdefault(restore.task, []).append(restore)
        line = tuple(_line_entry(task, by_task.get(task.name, ())) for task in self._layout.tasks)
        result = RecoveryLine(
            consistent=_reached(restores) is not False,
            protocol="uncoordinated",
            line=line,
            channels=tuple(_channel(r) for r in restores if r.records is not None),
            sources=tuple(self._sources()),
            rolled_back=(),
            useless=(),
            steps=(),
            domino=False,
            notes=notes(self._logs is not None),
            details={
                "headline": _headline(restores, self._logs is not None),
                "stores": [asdict(r) for r in restores],
            },
        )
        nothing = bool(line) and all(e.state == "initial" for e in line)
        applications = sorted({task.application for task in self._layout.tasks})
        result = replace(result, runs=tuple(self._run_action(name) for name in applications))
        draft = Draft(
            command, result, findings, self._inputs(), unrecoverable=nothing, indeterminate=is_unsure(findings)
        )
        return with_recovery_time(draft, store_works(line, restores, self._logs is not None), question.rates)

    def _run_action(self, application: str) -> RunAction:
        restores, findings = self._read
        return run_action(application, self._layout.tasks, restores, findings, self._sound)

    @cached_property
    def _sound(self) -> set[str] | None:
        """The changelogs that were read and lack nothing that they ever held; None: there are no logs.

        One that begins later than at 0 may lack it: retention took windows that ended, or a person deleted records.
        """
        if self._logs is None:
            return None
        known = {folder.name for folder in self._logs.layout.folders}
        read = self._logs.partitions({r.changelog for r in self._read[0]} & known)
        return {p.name for p in read.values() if not p.log_start and _lacks_nothing(p)}

    @cached_property
    def _read(self) -> tuple[list[StoreRestore], list[Finding]]:
        """What every store reads again, and what is wrong."""
        if not self._layout.tasks:
            raise NotFound(
                "no task's folder with stores is here", "PATH is state.dir, or the application's folder in it"
            )
        findings = [*self._layout.findings, *unread_stores(self._layout.tasks)]
        restores: list[tuple[StoreTask, StoreRestore, StoreOffset | None]] = []
        damaged = {f.subject.rpartition("/")[0] for f in findings}
        unjudged = {f.subject.rpartition("/")[0] for f in findings if f.id in NOT_JUDGED}
        for task in self._layout.tasks:
            path = task.path.removeprefix(".")
            found, told = of_task(task, path in damaged, path in unjudged)
            restores += [(task, restore, entry) for restore, entry in found]
            findings += told
        if self._logs is None:
            return [restore for _, restore, _ in restores], findings
        counted, more = self._counted(self._logs, restores)
        return counted, [*findings, *more]

    def _counted(
        self, logs: PartitionLogs, restores: list[tuple[StoreTask, StoreRestore, StoreOffset | None]]
    ) -> tuple[list[StoreRestore], list[Finding]]:
        """The same with what the logs hold of each range."""
        known = {folder.name for folder in logs.layout.folders}
        partitions = logs.partitions({r.changelog for _, r, _ in restores if r.changelog in known})
        findings = [
            *logs.layout.findings,
            *damage_findings((item for p in partitions.values() for item in p.damage), "data-lost"),
        ]
        findings += partition_findings(partitions.values(), logs.layout.folders)
        findings += no_task({r.changelog for _, r, _ in restores}, known)
        applications = {task.application for task in self._layout.tasks}
        live = {c.group for c in logs.commits.found}
        deleted = [c for c in logs.commits.deleted if c.group in applications]
        again = [c for c in deleted if c.group not in live or c.name in known]  # else of a topic that it reads no more
        findings += deleted_findings(deleted, {c.group for c in again})
        whole = {r.changelog for _, r, _ in restores if r.start == "beginning"}
        findings += late_start_findings((p for p in partitions.values() if p.name in whole), _NOT_RESTORED, "unknown")
        rows: list[StoreRestore] = []
        ranges: dict[int, Range] = {}
        compacted: list[tuple[StoreTask, StoreRestore, Range]] = []
        for task, restore, entry in restores:
            p = partitions.get(restore.changelog)
            if p is None:
                findings += no_log(task, restore)
                rows.append(restore)
                continue
            if restore.start == "unknown":
                rows.append(replace(restore, restore_to=p.restart_end))
                continue
            row, told = fitted(task, restore, entry, p.log_start, p.restart_end)
            if row.start == "unknown":
                findings += told
                rows.append(row)
                continue
            if not p.unread:  # else nothing is known of where the changelog ends
                findings += told if p.records else [*told, *emptied(task, restore)]
            start = row.restore_from or 0
            ranges[len(rows)] = Range(p.folder.topic, p.folder.partition, start, max(start, p.restart_end))
            if (cleaned := compacted_range(p, row)) is not None:
                compacted.append((task, row, cleaned))
            rows.append(row)
        findings += compaction_findings(logs, compacted)
        for i, count in zip(ranges, logs.counts(list(ranges.values())), strict=True):
            rows[i] = replace(rows[i], records=count.data, bytes=count.data_bytes)
        return rows, findings

    def _sources(self) -> Iterator[SourceOffset]:
        """Where the application reads on: its group's committed offsets."""
        if self._logs is None:
            return
        for commit in self._logs.commits.found:
            if commit.group in {task.application for task in self._layout.tasks}:
                yield SourceOffset(commit.name, commit.offset, commit.group, 0, job=commit.group)

    def _inputs(self) -> tuple[InputUsed, ...]:
        return (*self._layout.inputs, *(self._logs.layout.inputs if self._logs is not None else ()))


def _lacks_nothing(p: Partition) -> bool:
    found = partition_findings([p], [])
    lacks = any(f.severity == "error" or f.id in ("empty-file", "missing-segment", "log-ends-early") for f in found)
    return bool(p.records) and not p.damage and not p.unread and not lacks


_NOT_RESTORED = (
    "A windowed store lacks only windows past their retention; any other store is restored without the deleted records"
)


def _refuse(question: Question) -> None:
    """The questions that a state folder cannot be asked."""
    if question.failed or question.at or question.as_of is not None or question.earliest or question.against:
        options = "--failed, --at, --as-of, --earliest and --against"
        raise UsageError(f"{options}: a state folder holds one state of each store", "leave them out")


def _line_entry(task: StoreTask, restores: Iterable[StoreRestore]) -> LineEntry:
    """At the lowest next offset of the stores that have one; initial if there is none, and none if one is not known."""
    rows = list(restores)
    unknown = any(r.start == "unknown" for r in rows)
    starts = [r.restore_from for r in rows if r.start == "checkpoint" and r.restore_from is not None]
    if unknown or not starts:
        return LineEntry(
            operator=task.operator,
            subtask=task.partition,
            checkpoint=None,
            time=None,
            uri=task.path,
            rolled_back=False,
            job=task.application,
            state="stored" if unknown else "initial",
        )
    return LineEntry(
        operator=task.operator,
        subtask=task.partition,
        checkpoint=min(starts),
        time=None,
        uri=task.path,
        rolled_back=False,
        state="stored",
        job=task.application,
    )


def _channel(restore: StoreRestore) -> ReplayRange:
    start = restore.restore_from or 0
    end = max(start, restore.restore_to or 0)
    return ReplayRange(
        channel=restore.changelog,
        replay_from=start,
        replay_to=end,
        messages=restore.records,
        bytes=restore.bytes,
        retained=restore.records is not None,
    )


def _checks(name: str, offset: int | None, restores: list[StoreRestore], maximal: bool, tasks: set[str]) -> list[Check]:
    """Checks of one task's line."""
    if name not in tasks:
        raise NotFound(f"{name}: no such task", f"there are {', '.join(sorted(tasks))}")
    known = [r.restore_from for r in restores if r.start == "checkpoint" and r.restore_from is not None]
    fresh = [r for r in restores if r.start == "beginning"]
    lowest = f", the lowest is {min(known)}" if known else ""
    anew = f"; {many(len(fresh), 'store')} from the beginning of the changelog" if fresh else ""
    told = f"{name} has {many(len(known), 'store')} with an offset{lowest}{anew}"
    held = min(known, default=None)
    lower = held is not None and offset is not None and held < offset
    unread = any(r.start == "unknown" for r in restores) and not lower  # its offset may be any: below, or beyond
    checks = [
        Check("restorable", None if unread else offset is None or (held is not None and held >= offset), told),
        Check("consistent", _reached(restores), f"{name}: whether every changelog reaches as far as its store"),
    ]
    if maximal:
        newest = offset is None or (held is not None and held <= offset)
        checks.append(Check("maximal", None if unread else newest, told))
    return checks


def _reached(restores: Iterable[StoreRestore]) -> bool | None:
    """Return whether the logs hold all that stores need; None if there are none to tell."""
    ranges = [(r.restore_from, r.restore_to, r.records) for r in restores]
    if any(start is not None and end is not None and start > end for start, end, _ in ranges):
        return False
    return None if any(end is None or count is None for _, end, count in ranges) else True


def _tasks_sentence(tasks: Iterable[StoreTask]) -> str:
    listed = list(tasks)
    stores = sum(len(t.stores) for t in listed)
    names = ", ".join(sorted({task.application for task in listed}))
    return f"State of {names}: {many(len(listed), 'task')} with {many(stores, 'store')}."


def _headline(restores: list[StoreRestore], logged: bool) -> str:
    judged = [r for r in restores if not logged or r.records is not None]  # else its changelog was not found
    whole, kept = (sum(r.start == start for r in judged) for start in ("beginning", "checkpoint"))
    unknown = len(restores) - whole - kept
    lead = f"{kept} of {many(len(restores), 'store')} {_go(kept)} on from {_its(kept)} checkpoint"
    rest = f", {whole} from the beginning of {_its(whole)} changelog" if whole else ""
    rest += f", for {unknown} the offset is not known" if unknown else ""
    wiped = _wiped(judged)
    if wiped:
        rest += f"; with exactly-once {wiped} of these {_is(wiped)} wiped and restored from the beginning"
    late = sum(begins_late(r) for r in judged)
    if late:
        rest += f" (of {late} the changelog begins late: what was written only before is lost)"
    if not logged:
        return f"{lead}{rest}. How much that is, the changelogs would say: --kafka FOLDER."
    if not whole + kept:
        return f"{lead}{rest}."
    records, size = sum(r.records or 0 for r in judged), sum(r.bytes or 0 for r in judged)
    applied = f"{many(records, 'record')} {_is(records)} applied again"
    return f"{lead}{rest}: {applied}, in {many(size, 'byte')} of batches."


def _wiped(restores: list[StoreRestore]) -> int:
    """How many stores go on from a checkpoint, unless exactly-once wipes their task."""
    tasks = {r.task for r in restores if r.unclean}
    return sum(r.task in tasks and r.start == "checkpoint" for r in restores)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"
