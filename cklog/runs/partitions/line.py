"""A broker's data folder as a run: where each log will end after a restart, and where each group goes on.

A partition is the unit of recovery: the line has one entry per partition of a topic (topics of the broker's own are
inspected, and speak up when they are damaged), its checkpoint the offset at which a restarted broker's log ends. The
sources are the offsets that groups have committed, moved to the nearest offset that the restarted log has.

What a broker's folder holds, as rows: partitions, groups, transactions, producers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.inputs.connectors import is_offsets_topic
from cklog.inputs.damage import damage_findings
from cklog.inputs.partitions import UNREAD, Folder, GroupCommit, Partition, Range, RangeCount
from cklog.kafka_logs.deleted import deleted_findings, deleted_rows
from cklog.kafka_logs.findings import OFFSETS_DELETED, commit_findings, late_start_findings, partition_findings
from cklog.kafka_logs.identity import is_another_log, resume_offset
from cklog.kafka_logs.logs import CommittedOffsets, PartitionLogs
from cklog.kafka_logs.partition import cut_alone
from cklog.lines.recovery.time import with_recovery_time
from cklog.lines.recovery.work import Work, Works
from cklog.model.actions import RunAction, action_of
from cklog.model.checks import Check, Verification, refutations, unless_hidden, verification
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import LineEntry, RecoveryLine, SourceOffset
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import first_few, many


class PartitionLog:
    """The analyses of partitions and groups; `group`: of this group alone."""

    def __init__(self, logs: PartitionLogs, group: str = "") -> None:
        self.logs = logs
        self._group = group

    def recovery_line(self, question: Question) -> Draft[RecoveryLine]:
        """Say where logs will end and groups go on."""
        _refuse(question)
        return self._timed(self._draft("recovery-line", self._line()), question)

    def replay(self, question: Question) -> Draft[RecoveryLine]:
        """Return the same, with what each group has to read from its committed offset on (`details["ranges"]`)."""
        _refuse(question)
        line = self._line()
        rows = [_range_row(commit, count) for commit, count in self._ahead]
        return self._timed(self._draft("replay", replace(line, details=line.details | {"ranges": rows})), question)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Say whether readers can resume at given offsets of partitions, as `topic/0`, once the broker is back."""
        _refuse(question)
        known = self.findings()
        unread = any(f.id in ("corrupt-file", "unreadable-file") for f in known)  # damage inside a log ends it
        checks = unless_hidden(_checks(self._asked(line), maximal), unread)
        findings = [
            *known,
            *refutations(checks, "line"),
        ]
        result = verification(checks)
        return Draft("verify", result, findings, self.inputs(), indeterminate=result.undecided or self.unread)

    @property
    def partitions(self) -> dict[str, Partition]:
        """The partitions, by name."""
        return self.logs.partitions()

    @property
    def commits(self) -> tuple[GroupCommit, ...]:
        """What groups have committed."""
        return self._committed.found

    @cached_property
    def _committed(self) -> CommittedOffsets:
        return self.logs.commits.of_group(self._group) if self._group else self.logs.commits

    @cached_property
    def _ahead(self) -> list[tuple[GroupCommit, RangeCount]]:
        """What each group has to read from where it goes on."""
        here = [commit for commit in self.commits if commit.name in self.partitions]
        ranges = [Range(c.topic, c.partition, resume_offset(self.partitions[c.name], c)) for c in here]
        return list(zip(here, self.logs.counts(ranges), strict=True))

    @property
    def unread(self) -> bool:
        """Whether some segment could not be read, so that ends of logs and committed offsets are bounds."""
        return any(p.unread for p in self.partitions.values()) or any(
            item.id in UNREAD for item in self.logs.commits.damage
        )

    def _timed(self, draft: Draft[RecoveryLine], question: Question) -> Draft[RecoveryLine]:
        return with_recovery_time(draft, partition_works(self.partitions.values()), question.rates)

    def _draft(self, command: str, line: RecoveryLine) -> Draft[RecoveryLine]:
        return Draft(command, line, self.findings(), self.inputs(), indeterminate=self.unread)

    def _line(self) -> RecoveryLine:
        listed = [p for p in self.partitions.values() if not p.folder.internal]
        commits = [(commit, self.partitions.get(commit.name)) for commit in self.commits]
        return RecoveryLine(
            consistent=True,
            protocol="uncoordinated",
            line=tuple(_entry(p) for p in listed),
            channels=(),
            sources=tuple(_source(commit, p) for commit, p in commits),
            rolled_back=(),
            useless=(),
            steps=(),
            domino=False,
            notes=_notes(self.partitions.values()),
            runs=(self._run_action(listed),),
            details={
                "headline": _headline(self.partitions.values(), self.commits),
                "partitions": [_row(p) for p in listed],
                "groups": [_group_row(commit, p) for commit, p in commits],
                "deleted_groups": deleted_rows(self._committed.deleted, self.partitions),
                "committed_offsets": [
                    {"group": c.group, "topic": c.topic, "partition": c.partition, "offset": c.offset}
                    for c, _ in commits
                ],
                "cuts": [
                    {"partition": p.name, "offset": p.restart_end, **asdict(p.cut)}
                    for p in self.partitions.values()
                    if p.cut is not None
                ],
            },
        )

    def _run_action(self, listed: list[Partition]) -> RunAction:
        """What to do about the broker: what it will cut is gone for good, unless its folder was copied before."""
        cut = sum(p.cut.records for p in self.partitions.values() if p.cut is not None)
        unclear = any(cuts_damage(p) for p in self.partitions.values())
        blocked = [f for f in self.findings() if f.blocks and f.effect != "unknown"]
        last = max((p.last_time for p in listed if p.last_time is not None), default=None)
        return RunAction(
            run="",
            action=action_of(self.unread, salvage=cut > 0 or unclear, repair=bool(blocked)),
            newest=first_few([f"{p.name}={p.log_end}" for p in listed], 3),
            newest_time=last,
            chosen=first_few([f"{p.name}={p.sure_end}" for p in listed], 3),
            note=None if self.unread else _note(cut > 0 or unclear, bool(blocked)),
            read_again=sum(count.data for _, count in self._ahead),
            read_again_bytes=sum(count.data_bytes for _, count in self._ahead),
            lost=None if self.unread or unclear else cut,
            doubled=None,
        )

    def findings(self) -> list[Finding]:
        partitions = self.partitions
        commits, damage, deleted = self._committed
        every = [*(item for p in partitions.values() for item in p.damage), *damage]
        return [
            *self.logs.layout.findings,
            *damage_findings(dict.fromkeys(every), "data-lost"),
            *partition_findings(partitions.values(), self.logs.layout.folders),
            *late_start_findings(
                (partitions[folder.name] for folder in self.logs.layout.commit_folders),
                "Groups whose commits were all deleted have no offset: auto.offset.reset decides where they start",
            ),
            *late_start_findings((p for p in partitions.values() if _has_connectors(p)), OFFSETS_DELETED),
            *commit_findings(commits, partitions),
            *deleted_findings(deleted),
        ]

    def inputs(self) -> tuple[InputUsed, ...]:
        records: dict[str, int] = {}
        for p in self.partitions.values():
            records[p.folder.data_folder] = records.get(p.folder.data_folder, 0) + p.records
        return tuple(replace(used, records=records.get(used.path, 0)) for used in self.logs.layout.inputs)

    def _asked(self, line: Mapping[str, int | None]) -> list[tuple[Partition, int]]:
        found = []
        for name, offset in line.items():
            topic, _, number = name.rpartition("/")
            p = self.partitions.get(name) or self.partitions.get(f"{topic}-{number}")
            if p is None:
                raise NotFound(f"{name}: no such partition", f"as in {', '.join(list(_names(self.partitions))[:3])}")
            if offset is None:
                raise UsageError(f"{name}: a log has no current state, only offsets")
            found.append((p, offset))
        return found


def partition_works(partitions: Iterable[Partition]) -> Works:
    """Return what a broker reads before it is up: of each log the segments from its recovery point on.

    So many threads as the broker is told to have check logs side by side; no file says how many.
    """
    parts = [Work(name=p.name, bytes=unchecked_bytes(p.folder)) for p in partitions]
    why = {"read": "no file of a broker holds times of reading; --read-rate says it"}
    return Works(parts, why=why, in_turn=True, input_matters=False)


def unchecked_bytes(folder: Folder) -> int:
    """Count the bytes of the segments that a restarting broker checks: none if it was stopped cleanly.

    The first is the one that holds the recovery point; all, where no file tells that.
    """
    if folder.clean:
        return 0
    point = folder.recovery_point
    held = max((s.base for s in folder.segments if point is not None and s.base <= point), default=None)
    return sum(s.size for s in folder.segments if held is None or s.base >= held)


def _names(partitions: Mapping[str, Partition]) -> Iterable[str]:
    return (f"{p.folder.topic}/{p.folder.partition}" for p in partitions.values())


def cuts_damage(p: Partition) -> bool:
    """Tell whether a restarting broker cuts bytes that were damaged, not only never written to their end.

    Segments behind the cut go with it: their names sort by the offsets that they begin with.
    """
    cut = p.cut
    if any(item.id in _DAMAGED for item in cut_alone(p)):
        return True
    return cut is not None and any(item.path >= cut.path and item.id in _DAMAGED for item in p.damage)


_DAMAGED = frozenset({"corrupt-file", "corrupt-batch"})


def _note(salvage: bool, repair: bool) -> str:
    """What to do by hand: nothing but a start, in the best of cases.

    >>> _note(False, False), _note(True, False)
    ('start the broker as usual', 'copy the folder; then start the broker as usual')
    >>> _note(False, True)
    'do what the errors below say; then start the broker as usual'
    """
    copy = "copy the folder; " if salvage else ""
    mend = "do what the errors below say; " if repair else ""
    return f"{copy}{mend}then start the broker as usual" if copy or mend else "start the broker as usual"


def _refuse(question: Question) -> None:
    """The questions that a log cannot be asked."""
    if question.failed or question.at or question.as_of is not None or question.earliest or question.against:
        raise UsageError(
            "--failed, --at, --as-of, --earliest and --against: a broker's logs have no checkpoints to choose from",
            "leave them out; cklog verify tells whether an offset can be read",
        )


def _entry(p: Partition) -> LineEntry:
    cut = p.restart_end < p.log_end
    return LineEntry(
        operator=p.folder.topic,
        subtask=p.folder.partition,
        checkpoint=p.sure_end,
        time=p.last_time,
        uri=p.folder.path or ".",
        rolled_back=cut,
        state="stored",
    )


def _source(commit: GroupCommit, p: Partition | None) -> SourceOffset:
    if p is None:
        return SourceOffset(commit.name, commit.offset, commit.group, 0)
    return SourceOffset(
        source=commit.name, offset=resume_offset(p, commit), operator=commit.group, subtask=0, replay_to=p.sure_end
    )


def _row(p: Partition) -> dict[str, Any]:
    return {
        "partition": p.name,
        "log_start": p.log_start,
        "last_stable": p.last_stable,
        "restart_end": p.restart_end,
        "log_end": p.log_end,
        "high_watermark": p.folder.high_watermark,
        "recovery_point": p.folder.recovery_point,
    }


def _group_row(commit: GroupCommit, p: Partition | None) -> dict[str, Any]:
    """A committed offset; `lag` in offsets, markers and aborted records among them."""
    resume = commit.offset if p is None else resume_offset(p, commit)
    return {
        "group": commit.group,
        "partition": commit.name,
        "committed": commit.offset,
        "resume": resume,
        "restart_end": None if p is None else p.restart_end,
        "lag": None if p is None else p.restart_end - resume,
        "pending": commit.pending,
        **({"recreated": True} if p is not None and is_another_log(p, commit) else {}),
        "committed_time": commit.time,
    }


def _range_row(commit: GroupCommit, count: RangeCount) -> dict[str, Any]:
    """What a group reads from where it goes on: records by kind, and the bytes of the batches that hold them."""
    return {
        "group": commit.group,
        "log": commit.name,
        "from": count.start,
        "to": count.end,
        "records": count.records,
        "data": count.data,
        "control": count.control,
        "aborted": count.aborted,
        "open": count.open,
        "bytes": count.bytes,
        "exact": count.exact,
        "cut": count.cut,
    }


def _headline(partitions: Iterable[Partition], commits: Iterable[GroupCommit]) -> str:
    """What a restart does, in two sentences."""
    every = list(partitions)
    cut = [p for p in every if p.cut is not None]
    lost = [p for p in cut if p.cut is not None and p.cut.records]
    unread = [p for p in every if p.unread]
    if lost:
        records = sum(p.cut.records for p in lost if p.cut is not None)
        lead = (
            f"Copy the folder first: a restarting broker cuts {_of(lost, every)}, and "
            f"{many(records, 'intact record')} with {'it' if len(every) == 1 else 'them'}."
        )
    elif damaged := [p for p in every if cuts_damage(p)]:
        which = _of(damaged, every)
        lead = f"Copy the folder first: a restarting broker truncates {which} where it is damaged."
    elif cut:
        lead = f"A restarting broker cuts a torn end off {_of(cut, every)}; no whole batch is lost."
    elif unread:
        lead = f"What a restarting broker keeps of {_of(unread, every)} is not known: not all of it could be read."
    elif len(every) == 1:
        lead = "A restarting broker keeps the log as it is."
    else:
        lead = f"A restarting broker keeps all {len(every)} logs as they are."
    groups = {commit.group for commit in commits}
    if not groups:
        return f"{lead} No group's committed offsets are here."
    return f"{lead} {len(groups)} {'group goes' if len(groups) == 1 else 'groups go'} on at committed offsets."


def _of(some: list[Partition], every: list[Partition]) -> str:
    return "the log" if len(every) == 1 else f"{len(some)} of {len(every)} logs"


def _has_connectors(p: Partition) -> bool:
    return is_offsets_topic(p.folder.topic)


def _notes(partitions: Iterable[Partition]) -> tuple[str, ...]:
    """Return what the answer assumes, and which question answers for connectors whose offsets are here."""
    every = list(partitions)
    topics = sorted({p.folder.topic for p in every if _has_connectors(p)})
    where = [f"{first_few(topics, 3)}: --from connect says where the connectors resume."] if topics else []
    return (*_assumed(every), *where)


def _assumed(every: list[Partition]) -> tuple[str, ...]:
    if all(p.folder.clean for p in every):
        made = any(not segment.indexed for p in every for segment in p.folder.segments)
        but = ", except the segments whose index is not here" if made else ""
        return (f"The broker was stopped cleanly: it will not check its logs when it starts{but}.",)
    notes = ["The broker was not stopped cleanly: it checks each log from its recovery point on when it starts."]
    if any(p.folder.clean is None for p in every):
        notes = ["No file here tells how the broker stopped: it is taken to have been killed, and to check its logs."]
    unknown = sum(p.folder.recovery_point is None and not p.folder.internal for p in every)
    if unknown:
        them = "it is" if unknown == 1 else "they are"
        notes.append(
            f"Of {many(unknown, 'partition')} the recovery point is not known: {them} taken to be checked whole."
        )
    return tuple(notes)


def _checks(asked: list[tuple[Partition, int]], maximal: bool) -> list[Check]:
    below = [f"{p.name} begins at {p.log_start}, not {offset}" for p, offset in asked if offset < p.log_start]
    above = [f"{p.name} will end at {p.restart_end}, before {offset}" for p, offset in asked if offset > p.restart_end]
    checks = [
        Check("restorable", not below, "; ".join(below) or "every offset is at or after the log start offset"),
        Check("consistent", not above, "; ".join(above) or "no offset is beyond the end of its log after a restart"),
    ]
    if maximal:
        older = [
            f"{p.name} will end at {p.restart_end}, after {offset}" for p, offset in asked if offset < p.restart_end
        ]
        checks.append(Check("maximal", not older, "; ".join(older) or "every offset is the end of its log"))
    return checks
