"""State stores that are rebuilt from changelogs (Kafka Streams): what each must read again after a crash.

A task is the unit of recovery. What its stores hold on disk is known by the offsets that were written beside them: the
rest of each changelog partition, [restore_from, log end), is applied again. The line has an entry for each task, whose
checkpoint is the lowest of its stores' next offsets. Ranges come first from the task's own files, then from changelogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import OffersStores
from cklog.inputs.partitions import Range
from cklog.inputs.stores import GLOBAL, StoreLayout, StoreOffset, StoreRestore, StoreTask
from cklog.kafka_logs.findings import partition_findings
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.checks import Check, Verification, verification
from cklog.model.findings import Finding, InputUsed, Severity, Where
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange, SourceOffset
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import many


class StoreRestores:
    """The analyses of state folders; `logs` are the brokers' logs, if they are at hand."""

    def __init__(self, parser: OffersStores, logs: PartitionLogs | None) -> None:
        self._parser = parser
        self._logs = logs

    def recovery_line(self, question: Question) -> Draft[RecoveryLine]:
        """Say where each task's stores go on."""
        return self._draft("recovery-line", question)

    def replay(self, question: Question) -> Draft[RecoveryLine]:
        """Return the same: the ranges that are applied again."""
        return self._draft("replay", question)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Whether every named task can go on from an offset, as those of its stores do that have one.

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
            *(Finding(_REFUTED[c.check], "error", "line", c.because) for c in checks if c.holds is False),
        ]
        result = verification(checks)
        return Draft("verify", result, found, self._inputs(), indeterminate=result.undecided)

    def inspect(self) -> Draft[dict[str, Any]]:
        """Return tasks and stores."""
        restores, findings = self._read
        tasks = [
            {
                "task": t.name,
                "application": t.application,
                "stores": len(t.stores),
                "store_bytes": sum(size for _, size in t.stores),
                "entries": None if t.entries is None else len(t.entries),
            }
            for t in self._layout.tasks
        ]
        result = {
            "summary": f"{_told(self._layout.tasks)} {_headline(restores, self._logs is not None)}",
            "formats": [self._parser.name],
            "tasks": tasks,
            "stores": [asdict(r) for r in restores],
        }
        return Draft("inspect", result, findings, self._inputs())

    @cached_property
    def _layout(self) -> StoreLayout:
        return self._parser.stores()

    @property
    def _tasks(self) -> set[str]:
        return {task.name for task in self._layout.tasks}

    def _draft(self, command: str, question: Question) -> Draft[RecoveryLine]:
        _refuse(question)
        restores, findings = self._read
        line = tuple(_line_entry(task, [r for r in restores if r.task == task.name]) for task in self._layout.tasks)
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
            notes=_notes(self._logs is not None),
            details={
                "headline": _headline(restores, self._logs is not None),
                "stores": [asdict(r) for r in restores],
            },
        )
        nothing = bool(line) and all(e.state == "initial" for e in line)
        return Draft(command, result, findings, self._inputs(), unrecoverable=nothing)

    @cached_property
    def _read(self) -> tuple[list[StoreRestore], list[Finding]]:
        """What every store reads again, and what is wrong."""
        if not self._layout.tasks:
            raise NotFound(
                "no task's folder with stores is here", "PATH is state.dir, or the application's folder in it"
            )
        findings = [*self._layout.findings]
        restores: list[tuple[StoreTask, StoreRestore, StoreOffset | None]] = []
        for task in self._layout.tasks:
            damaged = any(f.subject.rpartition("/")[0] == task.path.removeprefix(".") for f in findings)
            found, told = of_task(task, damaged)
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
        findings = [*logs.layout.findings, *damage_findings(item for p in partitions.values() for item in p.damage)]
        findings += partition_findings(partitions.values())
        rows: list[StoreRestore] = []
        ranges: dict[int, Range] = {}
        for task, restore, entry in restores:
            p = partitions.get(restore.changelog)
            if p is None:
                findings += no_log(task, restore)
                rows.append(restore)
                continue
            row, told = fitted(task, restore, entry, p.log_start, p.restart_end)
            findings += told if p.records else [*told, *emptied(task, restore)]
            start = row.restore_from or 0
            ranges[len(rows)] = Range(p.folder.topic, p.folder.partition, start, max(start, p.restart_end))
            rows.append(row)
        for i, count in zip(ranges, logs.counts(list(ranges.values())), strict=True):
            rows[i] = replace(rows[i], records=count.records, bytes=count.bytes)
        return rows, findings

    def _sources(self) -> Iterator[SourceOffset]:
        """Where the application reads on: its group's committed offsets."""
        if self._logs is None:
            return
        for commit in self._logs.commits.found:
            if commit.group in {task.application for task in self._layout.tasks}:
                yield SourceOffset(commit.name, commit.offset, commit.group, 0)

    def _inputs(self) -> tuple[InputUsed, ...]:
        return (*self._layout.inputs, *(self._logs.layout.inputs if self._logs is not None else ()))


_REFUTED = {"restorable": "not-restorable", "consistent": "not-restorable", "maximal": "not-maximal"}


def _refuse(question: Question) -> None:
    """The questions that a state folder cannot be asked."""
    if question.failed or question.at or question.as_of is not None or question.earliest or question.against:
        options = "--failed, --at, --as-of, --earliest and --against"
        raise UsageError(f"{options}: a state folder holds one state of each store", "leave them out")


def _line_entry(task: StoreTask, restores: Iterable[StoreRestore]) -> LineEntry:
    """At the lowest next offset of the stores that have one; initial if there is none."""
    starts = [r.restore_from for r in restores if r.start == "checkpoint" and r.restore_from is not None]
    if not starts:
        return LineEntry(task.operator, task.partition, None, None, task.path, False, "initial")
    return LineEntry(task.operator, task.partition, min(starts), None, task.path, False, "stored")


def _channel(restore: StoreRestore) -> ReplayRange:
    start = restore.restore_from or 0
    end = max(start, restore.restore_to or 0)
    return ReplayRange(restore.changelog, start, end, restore.records, restore.bytes, restore.records is not None)


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
    checks = [
        Check("restorable", offset is None or (held is not None and held >= offset), told),
        Check("consistent", _reached(restores), f"{name}: whether every changelog reaches as far as its store"),
    ]
    if maximal:
        checks.append(Check("maximal", offset is None or (held is not None and held <= offset), told))
    return checks


def _reached(restores: Iterable[StoreRestore]) -> bool | None:
    """Whether the logs hold all that stores need; None if there are none to tell."""
    ranges = [(r.restore_from, r.restore_to, r.records) for r in restores]
    if any(start is not None and end is not None and start > end for start, end, _ in ranges):
        return False
    return None if any(end is None or count is None for _, end, count in ranges) else True


def _told(tasks: Iterable[StoreTask]) -> str:
    listed = list(tasks)
    stores = sum(len(t.stores) for t in listed)
    names = ", ".join(sorted({task.application for task in listed}))
    return f"State of {names}: {many(len(listed), 'task')} with {many(stores, 'store')}."


def _headline(restores: list[StoreRestore], logged: bool) -> str:
    whole = sum(r.start == "beginning" for r in restores)
    kept = len(restores) - whole
    lead = f"{kept} of {many(len(restores), 'store')} {_go(kept)} on from {_its(kept)} checkpoint"
    rest = f", {whole} from the beginning of {_its(whole)} changelog" if whole else ""
    if not logged:
        return f"{lead}{rest}. How much that is, the changelogs would say: --kafka FOLDER."
    counted = [r for r in restores if r.records is not None]
    records, size = sum(r.records or 0 for r in counted), sum(r.bytes or 0 for r in counted)
    applied = f"{many(records, 'record')} {'is' if records == 1 else 'are'} applied again"
    return f"{lead}{rest}: {applied}, in {many(size, 'byte')} of batches."


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def _notes(logged: bool) -> tuple[str, ...]:
    note = "a task's checkpoint is the lowest next offset of its stores; stores are mostly ahead of it"
    return (note,) if logged else (note, "no changelogs are here: where they end is not known")


_CHANGELOG = "-changelog"


def of_task(task: StoreTask, damaged: bool) -> tuple[list[tuple[StoreRestore, StoreOffset | None]], list[Finding]]:
    """Say what the stores of a task read again, by the task's own files, and what does not fit there."""
    sizes = dict(task.stores)
    if task.entries is None:
        missing = [] if damaged or not sizes else [_no_checkpoint(task)]
        return [(_whole(task, store, size), None) for store, size in task.stores], missing
    found: list[tuple[StoreRestore, StoreOffset | None]] = []
    findings: list[Finding] = []
    named: set[str] = set()
    mine = [entry for entry in task.entries if task.group == GLOBAL or entry.partition == task.partition]
    findings += [_foreign(task, entry) for entry in task.entries if entry not in mine]
    for entry in mine:
        store = _store_of(task, entry)
        named |= {store} if store else set()
        found.append((_restore(task, entry, store, sizes.get(store or "")), entry))
    unnamed = [store for store in sizes if store not in named]
    for entry in mine:
        store = _store_of(task, entry)
        if store is None and entry.offset is not None and not (unnamed and not entry.topic.endswith(_CHANGELOG)):
            findings.append(_no_store(task, entry, "no store of that name is here"))
        elif store in task.empty and entry.offset is not None:
            findings.append(_no_store(task, entry, f"the folder of store {store} holds no database"))
    sourced = sum(not e.topic.endswith(_CHANGELOG) for e in mine)
    if task.group != GLOBAL and len(unnamed) > sourced:
        findings += [_no_entry(task, store) for store in unnamed]
        found += [(_whole(task, store, sizes[store]), None) for store in unnamed]
    return found, findings


def _store_of(task: StoreTask, entry: StoreOffset) -> str | None:
    """The store that a changelog's name ends with: the longest name there is."""
    if not entry.topic.endswith(_CHANGELOG):
        return None
    names = {*dict(task.stores), *task.folders}
    fitting = [name for name in names if entry.topic.endswith(f"-{name}{_CHANGELOG}")]
    return max(fitting, key=len, default=None)


def _restore(task: StoreTask, entry: StoreOffset, store: str | None, size: int | None) -> StoreRestore:
    """From behind the last applied record; the offset of a global store is the next one already."""
    if entry.offset is None:
        return StoreRestore(task.name, store, entry.name, "beginning", None, None, None, None, size)
    start = entry.offset if task.group == GLOBAL else entry.offset + 1
    return StoreRestore(task.name, store, entry.name, "checkpoint", start, None, None, None, size)


def _whole(task: StoreTask, store: str, size: int) -> StoreRestore:
    """A store that begins anew; its changelog is named by the rule, unless a source topic serves as such."""
    lead = f"{task.application}-{task.topology}-" if task.topology else f"{task.application}-"
    name = "?" if task.group == GLOBAL else f"{lead}{store}{_CHANGELOG}-{task.partition}"
    return StoreRestore(task.name, store, name, "beginning", None, None, None, None, size)


def fitted(
    task: StoreTask, restore: StoreRestore, entry: StoreOffset | None, log_start: int, log_end: int
) -> tuple[StoreRestore, list[Finding]]:
    """Fit the range into the log, which may have lost its beginning (retention) or its end (a restart)."""
    start = restore.restore_from
    where = (Where(task.file, entry.at),) if entry is not None else ()
    if start is None:
        return replace(restore, restore_from=log_start, restore_to=log_end), []
    if start < log_start:
        told = (
            f"{restore.changelog} begins at offset {log_start}, task {task.name} goes on at {start}: out of range; "
            "the store is restored from the changelog's beginning (under exactly-once the whole task is)"
        )
        moved = replace(restore, start="beginning", restore_from=log_start, restore_to=log_end)
        return moved, [Finding("store-below-log", "warning", restore.changelog, told, where)]
    if start > log_end:
        told = (
            f"{restore.changelog} ends at offset {log_end}, a store of task {task.name} holds it to {start}: the log "
            "was cut. An active task takes its store for restored, with what the log no longer has; a standby "
            "begins anew. Delete the task's folder, so that all copies are restored from the log"
        )
        found = Finding("store-beyond-log", "error", restore.changelog, told, where)
        return replace(restore, restore_to=log_end), [found]
    return replace(restore, restore_to=log_end), []


def _no_checkpoint(task: StoreTask) -> Finding:
    told = (
        f"task {task.name} has stores and no {task.file}: they are restored from the beginning of their changelogs, "
        "and wiped first under exactly-once (which leaves no file in a crash); stores of Kafka Streams 4.3 and later "
        "keep their offset inside and may need less"
    )
    return Finding("no-store-checkpoint", "warning", task.path, told, (Where(task.file),))


def _no_entry(task: StoreTask, store: str) -> Finding:
    told = (
        f"store {store} of task {task.name} has no entry in {task.file}: it is not logged, or restored from the "
        "beginning of its changelog (under exactly-once all stores of the task are wiped then)"
    )
    return Finding("store-without-entry", "warning", f"{task.path}/rocksdb/{store}", told, (Where(task.file),))


def _foreign(task: StoreTask, entry: StoreOffset) -> Finding:
    told = (
        f"{task.file} has {entry.name}, which is no partition of task {task.name}: the entry is ignored. Was the file "
        "copied from another task?"
    )
    return Finding("corrupt-file", "error", task.file, told, (Where(task.file, entry.at),))


def _no_store(task: StoreTask, entry: StoreOffset, why: str) -> Finding:
    told = (
        f"{task.file} has {entry.name} at offset {entry.offset}, and {why}: its store begins empty and is restored "
        "from that offset on only, without what came before. Delete the file before a restart"
    )
    return Finding("entry-without-store", "error", entry.name, told, (Where(task.file, entry.at),))


def no_log(task: StoreTask, restore: StoreRestore) -> list[Finding]:
    """Report a changelog that is not there: whether it reaches as far as a store needs is not known then."""
    if restore.changelog == "?":
        return []
    told = f"{restore.changelog}, which task {task.name} is restored from, is not among the logs"
    severity: Severity = "error" if restore.start == "checkpoint" else "warning"
    return [Finding("missing-changelog", severity, restore.changelog, told)]


def emptied(task: StoreTask, restore: StoreRestore) -> list[Finding]:
    """Report a changelog without a record, though a store has some; `restore` as it was before it was `fitted`."""
    if restore.start == "checkpoint":
        why = f"a store of task {task.name} holds it to offset {restore.restore_from}"
    elif restore.store_bytes:
        why = f"store {restore.store} of task {task.name} has {restore.store_bytes} bytes on disk"
    else:
        return []
    told = (
        f"{restore.changelog} holds no record, and {why}: if it was emptied or made anew, what is restored from it is "
        "empty. Compare with its other replicas before a restart"
    )
    severity: Severity = "error" if restore.start == "checkpoint" else "warning"
    return [Finding("missing-changelog", severity, restore.changelog, told)]
