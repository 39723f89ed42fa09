"""State stores that are rebuilt from changelogs (Kafka Streams): what each must read again after a crash.

A task is the unit of recovery. What its stores hold on disk is known by the offsets that were written beside them: the
rest of each changelog partition, [restore_from, log end), is applied again. The line has an entry for each task, whose
checkpoint is the lowest of its stores' next offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from cklog.conclude import answer, damage_findings
from cklog.errors import NotFound, UsageError
from cklog.model import (
    Answer,
    Finding,
    InputUsed,
    LineEntry,
    RecoveryLine,
    ReplayRange,
    SourceOffset,
    Where,
)
from cklog.partition_logs import PartitionLogs
from cklog.partitions import Range, RangeCount
from cklog.question import Question
from cklog.verify import Check, summary

GLOBAL = "global"
_CHANGELOG = "-changelog"

Start = Literal["checkpoint", "beginning"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An offset as it was written, None if it was not known then; `at` is its byte in the file."""

    topic: str
    partition: int
    offset: int | None
    at: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Task:
    """A task's folder: `stores` with their bytes, `folders` by name, `entries` None if no list of them can be read.

    `group` is the subtopology, or "global", which has no partition.
    """

    application: str
    topology: str
    group: str
    partition: int
    path: str
    stores: tuple[tuple[str, int], ...]
    folders: frozenset[str]
    entries: tuple[Entry, ...] | None

    @property
    def operator(self) -> str:
        """The subtopology, with its topology if that has a name."""
        return f"{self.topology}__{self.group}" if self.topology else self.group

    @property
    def name(self) -> str:
        return f"{self.operator}/{self.partition}"

    @property
    def order(self) -> tuple[str, str, bool, int, int, str]:
        number = int(self.group) if self.group != GLOBAL else 0
        return self.application, self.topology, self.group == GLOBAL, number, self.partition, self.path


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The tasks below PATH, what is wrong with their files, and those files."""

    tasks: tuple[Task, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


class Stores(Protocol):
    """A parser of state folders."""

    name: str

    def stores(self) -> StoreLayout: ...


@dataclass(frozen=True, slots=True)
class Restore:
    """What one store reads again: offsets [restore_from, restore_to) of a changelog partition; None: not known.

    `start`: from its checkpoint, or from the changelog's beginning. `store` None: the entry names no store that is here
    (a source topic that serves as changelog). `records` and `bytes` are those of the range, if the logs are there.
    """

    task: str
    store: str | None
    changelog: str
    start: Start
    restore_from: int | None
    restore_to: int | None
    records: int | None
    bytes: int | None
    store_bytes: int | None


class StoreRestores:
    """The analyses of state folders; `logs` are the brokers' logs, if they are at hand."""

    def __init__(self, parser: Stores, logs: PartitionLogs | None, strict: bool) -> None:
        self._parser = parser
        self._logs = logs
        self._strict = strict

    def recovery_line(self, question: Question) -> Answer:
        """Where each task's stores go on."""
        return self._answer("recovery-line", question)

    def replay(self, question: Question) -> Answer:
        """The same: the ranges that are applied again."""
        return self._answer("replay", question)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Answer:
        """Whether every named task can go on from an offset: all its stores hold what is before it."""
        _refuse(question)
        restores, findings = self._read
        checks: list[Check] = []
        for name, offset in line.items():
            if offset is None:
                raise UsageError(f"{name}: a task that failed has no current state")
            checks += _checks(name, offset, [r for r in restores if r.task == name], maximal, self._tasks)
        found = [
            *findings,
            *(Finding(_REFUTED[c.check], "error", "line", c.because) for c in checks if c.holds is False),
        ]
        result = {"summary": summary(checks), "checks": checks}
        unknown = any(c.holds is None for c in checks) and all(c.holds is not False for c in checks)
        return answer("verify", result, found, self._inputs(), strict=self._strict, indeterminate=unknown)

    def inspect(self) -> Answer:
        """Tasks and stores."""
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
        return answer("inspect", result, findings, self._inputs(), strict=self._strict)

    @cached_property
    def _layout(self) -> StoreLayout:
        return self._parser.stores()

    @property
    def _tasks(self) -> set[str]:
        return {task.name for task in self._layout.tasks}

    def _answer(self, command: str, question: Question) -> Answer:
        _refuse(question)
        restores, findings = self._read
        line = tuple(_line_entry(task, [r for r in restores if r.task == task.name]) for task in self._layout.tasks)
        result = RecoveryLine(
            consistent=True,
            protocol="uncoordinated",
            line=line,
            channels=tuple(_channel(r) for r in restores if r.restore_to is not None and r.restore_from is not None),
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
        return answer(command, result, findings, self._inputs(), strict=self._strict, unrecoverable=nothing)

    @cached_property
    def _read(self) -> tuple[list[Restore], list[Finding]]:
        """What every store reads again, and what is wrong."""
        if not self._layout.tasks:
            raise NotFound(
                "no task's folder with stores is here", "PATH is state.dir, or the application's folder in it"
            )
        findings = [*self._layout.findings]
        restores: list[tuple[Task, Restore, Entry | None]] = []
        for task in self._layout.tasks:
            damaged = any(f.subject.rpartition("/")[0] == task.path.removeprefix(".") for f in findings)
            found, told = _of_task(task, damaged)
            restores += [(task, restore, entry) for restore, entry in found]
            findings += told
        if self._logs is None:
            return [restore for _, restore, _ in restores], findings
        counted, told = self._counted(self._logs, restores)
        return counted, [*findings, *told]

    def _counted(
        self, logs: PartitionLogs, restores: list[tuple[Task, Restore, Entry | None]]
    ) -> tuple[list[Restore], list[Finding]]:
        """The same with what the logs hold of each range."""
        known = {folder.name for folder in logs.layout.folders}
        wanted = sorted({r.changelog for _, r, _ in restores if r.changelog in known})
        partitions = logs.partitions(wanted)
        findings = [*damage_findings(item for p in partitions.values() for item in p.damage)]
        ranges, kept = [], []
        rows: list[Restore] = []
        for task, restore, entry in restores:
            if restore.changelog not in partitions:
                findings += _no_log(task, restore)
                rows.append(restore)
                continue
            p = partitions[restore.changelog]
            fitted, told = _fitted(task, restore, entry, p.log_start, p.restart_end)
            findings += told
            kept.append(len(rows))
            rows.append(fitted)
            assert fitted.restore_from is not None
            ranges.append(Range(p.folder.topic, p.folder.partition, fitted.restore_from, fitted.restore_to))
        for i, count in zip(kept, logs.counts(ranges), strict=True):
            rows[i] = _with_count(rows[i], count)
        return rows, findings

    def _sources(self) -> Iterator[SourceOffset]:
        """Where the application reads on: its group's committed offsets."""
        if self._logs is None:
            return
        for commit in self._logs.commits[0]:
            if commit.group in {task.application for task in self._layout.tasks}:
                yield SourceOffset(commit.name, commit.offset, commit.group, 0)

    def _inputs(self) -> tuple[InputUsed, ...]:
        return (*self._layout.inputs, *(self._logs.layout.inputs if self._logs is not None else ()))


_REFUTED = {"restorable": "not-restorable", "consistent": "not-restorable", "maximal": "not-maximal"}


def _refuse(question: Question) -> None:
    """The questions that a state folder cannot be asked."""
    if question.failed or question.at or question.as_of is not None:
        raise UsageError("--failed, --at and --as-of: a state folder holds one state of each store", "leave them out")


def _of_task(task: Task, damaged: bool) -> tuple[list[tuple[Restore, Entry | None]], list[Finding]]:
    """What the stores of a task read again, by the task's own files, and what does not fit there."""
    sizes = dict(task.stores)
    if task.entries is None:
        missing = [] if damaged or not sizes else [_no_checkpoint(task)]
        return [(_whole(task, store, size), None) for store, size in task.stores], missing
    found: list[tuple[Restore, Entry | None]] = []
    findings: list[Finding] = []
    named: set[str] = set()
    for entry in task.entries:
        store = _store_of(task, entry)
        named |= {store} if store else set()
        found.append((_restore(task, entry, store, sizes.get(store or "")), entry))
    unnamed = [store for store in sizes if store not in named]
    for entry in task.entries:
        store = _store_of(task, entry)
        if store is None and entry.offset is not None and not (unnamed and not entry.topic.endswith(_CHANGELOG)):
            findings.append(_no_store(task, entry))
    sourced = sum(not e.topic.endswith(_CHANGELOG) for e in task.entries)
    if task.group != GLOBAL and len(unnamed) > sourced:
        findings += [_no_entry(task, store) for store in unnamed]
        found += [(_whole(task, store, sizes[store]), None) for store in unnamed]
    return found, findings


def _store_of(task: Task, entry: Entry) -> str | None:
    """The store that a changelog's name ends with: the longest name there is."""
    if not entry.topic.endswith(_CHANGELOG):
        return None
    names = {*dict(task.stores), *task.folders}
    fitting = [name for name in names if entry.topic.endswith(f"-{name}{_CHANGELOG}")]
    return max(fitting, key=len, default=None)


def _restore(task: Task, entry: Entry, store: str | None, size: int | None) -> Restore:
    """From behind the last applied record; the offset of a global store is the next one already."""
    if entry.offset is None:
        return Restore(task.name, store, entry.name, "beginning", None, None, None, None, size)
    start = entry.offset if task.group == GLOBAL else entry.offset + 1
    return Restore(task.name, store, entry.name, "checkpoint", start, None, None, None, size)


def _whole(task: Task, store: str, size: int) -> Restore:
    """A store that begins anew; its changelog is named by the rule, unless a source topic serves as such."""
    lead = f"{task.application}-{task.topology}-" if task.topology else f"{task.application}-"
    name = "?" if task.group == GLOBAL else f"{lead}{store}{_CHANGELOG}-{task.partition}"
    return Restore(task.name, store, name, "beginning", None, None, None, None, size)


def _fitted(
    task: Task, restore: Restore, entry: Entry | None, log_start: int, log_end: int
) -> tuple[Restore, list[Finding]]:
    """The range inside the log, which may have lost its beginning (retention) or its end (a broker's restart)."""
    start = restore.restore_from
    where = (Where(_file(task), entry.at),) if entry is not None else ()
    if start is None:
        return replace(restore, restore_from=log_start, restore_to=log_end), []
    if start < log_start:
        told = (
            f"{restore.changelog} begins at offset {log_start}, task {task.name} goes on at {start}: out of range; "
            "its stores are wiped and restored from the changelog's beginning"
        )
        moved = replace(restore, start="beginning", restore_from=log_start, restore_to=log_end)
        return moved, [Finding("store-below-log", "warning", restore.changelog, told, where)]
    if start > log_end:
        told = (
            f"{restore.changelog} ends at offset {log_end}, the store of task {task.name} holds it to {start}: the log "
            "was cut behind it. An active task takes its store for restored, with what the log no longer has; a standby "
            "is wiped. Delete the task's folder, so that all copies are restored from the log"
        )
        return replace(restore, restore_from=start, restore_to=start), [
            Finding("store-beyond-log", "error", restore.changelog, told, where)
        ]
    return replace(restore, restore_to=log_end), []


def _with_count(restore: Restore, count: RangeCount) -> Restore:
    return replace(restore, records=count.records, bytes=count.bytes)


def _file(task: Task) -> str:
    return f"{task.path}/.checkpoint" if task.path != "." else ".checkpoint"


def _no_checkpoint(task: Task) -> Finding:
    told = (
        f"task {task.name} has stores and no {_file(task)}: they are restored from the beginning of their changelogs, "
        "and wiped first under exactly-once (which leaves no file in a crash); stores of Kafka Streams 4.3 and later "
        "keep their offset inside and may need less"
    )
    return Finding("no-store-checkpoint", "warning", task.path, told, (Where(_file(task)),))


def _no_entry(task: Task, store: str) -> Finding:
    told = (
        f"store {store} of task {task.name} has no entry in {_file(task)}: it is not logged, or restored from the "
        "beginning of its changelog (under exactly-once all stores of the task are wiped then)"
    )
    return Finding("store-without-entry", "warning", f"{task.path}/rocksdb/{store}", told, (Where(_file(task)),))


def _no_store(task: Task, entry: Entry) -> Finding:
    told = (
        f"{_file(task)} has {entry.name} at offset {entry.offset}, and no store of that name is here: its store begins "
        "empty and is restored from that offset on only, without what came before. Delete the file before a restart"
    )
    return Finding("entry-without-store", "error", entry.name, told, (Where(_file(task), entry.at),))


def _no_log(task: Task, restore: Restore) -> list[Finding]:
    if restore.changelog == "?":
        return []
    told = f"{restore.changelog}, which task {task.name} is restored from, is not among the logs"
    return [Finding("missing-changelog", "warning", restore.changelog, told)]


def _line_entry(task: Task, restores: Iterable[Restore]) -> LineEntry:
    """At the lowest next offset of the stores that have one; initial if there is none."""
    starts = [r.restore_from for r in restores if r.start == "checkpoint" and r.restore_from is not None]
    if not starts:
        return LineEntry(task.operator, task.partition, None, None, task.path, False, "initial")
    return LineEntry(task.operator, task.partition, min(starts), None, task.path, False, "stored")


def _channel(restore: Restore) -> ReplayRange:
    start, end = restore.restore_from or 0, restore.restore_to or 0
    return ReplayRange(restore.changelog, start, end, restore.records, restore.bytes, restore.records is not None)


def _checks(name: str, offset: int, restores: list[Restore], maximal: bool, tasks: set[str]) -> list[Check]:
    """Checks of one task's line."""
    if name not in tasks:
        raise NotFound(f"{name}: no such task", f"there are {', '.join(sorted(tasks))}")
    known = [r.restore_from for r in restores if r.start == "checkpoint" and r.restore_from is not None]
    fresh = [r for r in restores if r.start == "beginning"]
    told = f"{name} has {len(known)} stores with an offset, the lowest is {min(known, default=None)}"
    checks = [
        Check("restorable", bool(known) and min(known) >= offset and not fresh, told),
        Check("consistent", _reached(restores), f"{name}: whether every changelog reaches as far as its store"),
    ]
    if maximal:
        checks.append(Check("maximal", bool(known) and min(known) <= offset, told))
    return checks


def _reached(restores: Iterable[Restore]) -> bool | None:
    """Whether the logs hold all that stores need; None if there are none to tell."""
    ranges = [(r.restore_from, r.restore_to, r.records) for r in restores]
    if any(end is None or count is None for _, end, count in ranges):
        return None
    return True


def _told(tasks: Iterable[Task]) -> str:
    listed = list(tasks)
    names = ", ".join(sorted({task.application for task in listed}))
    return f"State of {names}: {len(listed)} tasks with {sum(len(t.stores) for t in listed)} stores."


def _headline(restores: list[Restore], logged: bool) -> str:
    whole = sum(r.start == "beginning" for r in restores)
    lead = f"{len(restores) - whole} of {len(restores)} stores go on from their checkpoint"
    rest = f", {whole} from the beginning of their changelog" if whole else ""
    if not logged:
        return f"{lead}{rest}. How much that is, the changelogs would say: --kafka FOLDER."
    counted = [r for r in restores if r.records is not None]
    records, size = sum(r.records or 0 for r in counted), sum(r.bytes or 0 for r in counted)
    return f"{lead}{rest}: {records} records are applied again, in {size} bytes of batches."


def _notes(logged: bool) -> tuple[str, ...]:
    note = "a task's checkpoint is the lowest next offset of its stores; stores are mostly ahead of it"
    return (note,) if logged else (note, "no changelogs are here: where they end is not known")
