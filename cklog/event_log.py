"""A run that is given as event-log tables: its recovery line, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog import current as current_state
from cklog.conclude import DAMAGE, answer, damage_findings
from cklog.engine import Engine, Kernel, Reduce
from cklog.errors import CorruptInput, NotFound, SelfCheckFailed, UsageError
from cklog.evidence import WITH_PLACES, Evidence, Fixed, Planned, Scanned, Tables
from cklog.history import History, Ints
from cklog.inspection import inspection
from cklog.line import (
    is_domino,
    line_entries,
    protocol_of,
    rolled_back,
    steps_of,
    unreachable,
    useless_checkpoints,
)
from cklog.model import CHECKPOINTS, Answer, Finding, InputUsed, RecoveryLine, Subtask
from cklog.question import Question
from cklog.recovery_line import NoConsistentLine, forced, recovery_line
from cklog.replay import Ranges, impossible_loops, joined, ranges_of, receive_without_send, shared_sources, sources_of
from cklog.tables import Records, parse_channel, parse_subtask, records_of
from cklog.verification import Marks
from cklog.verify import Check, distinct_rows, judge, stored_and_marks, summary, untold
from cklog.watermarks import Current, build

_CHECKPOINT_COLUMNS = (*CHECKPOINTS.names, "_path", "_offset")


class EventLog:
    """The analyses of a run in event-log tables."""

    def __init__(self, tables: Tables, engine: Callable[[int], Engine], split_bytes: int, strict: bool) -> None:
        self._tables = tables
        self._engine_for = engine
        self._split_bytes = split_bytes
        self._strict = strict

    def recovery_line(self, question: Question) -> Answer:
        """The latest consistent line (design section 5)."""
        planned = self.plan(question)
        return self.answer("recovery-line", planned.result, planned)

    def replay(self, question: Question) -> Answer:
        """The same line, for the tools that will replay from it."""
        planned = self.plan(question)
        return self.answer("replay", planned.result, planned)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Answer:
        """Prove or refute a given line (`cklog.verify`)."""
        scanned = self._checkpoints()
        rows = distinct_rows(scanned[0].to_batches(1 << 14), question.as_of)
        evidence = self.evidence(question, scanned)
        history, records = evidence.history, evidence.records
        survivors = {str(s) for s, kept in zip(history.subtasks, history.survivor.tolist(), strict=True) if kept}
        current = dict.fromkeys(survivors, (evidence.current.sent, evidence.current.received))
        stored, marks = stored_and_marks(rows, records.subtasks, records.names, current)
        checks, findings, index = judge(line, stored, marks, survivors, maximal)
        if all(check.holds is not None for check in checks):
            checks.append(self._replayable(evidence, marks, index, line, question.as_of))
        if evidence.bound or (maximal and any(f.id in DAMAGE for f in evidence.findings)):
            checks = [untold(check, bool(evidence.bound)) for check in checks]
        evidence.findings += findings
        result = {"summary": summary(checks), "checks": checks}
        unknown = any(check.holds is None for check in checks)
        refuted = any(check.holds is False for check in checks)
        return answer(
            "verify",
            result,
            evidence.findings,
            evidence.inputs,
            strict=self._strict,
            indeterminate=unknown and not refuted,
        )

    def _replayable(
        self,
        evidence: Evidence,
        marks: Marks,
        index: Mapping[str, int],
        line: Mapping[str, int | None],
        as_of: int | None,
    ) -> Check:
        """Whether the logs hold every message in flight across the line."""
        names = tuple(marks)
        start = [marks[n][3][index[marks[n][1]]] for n in names]
        end = [marks[n][2][index[marks[n][0]]] for n in names]
        both = [line[marks[n][0]] is None and line[marks[n][1]] is None for n in names]
        pairs = [
            (max(a, b), max(a, b)) if kept else (min(a, b), b) for a, b, kept in zip(start, end, both, strict=True)
        ]
        ends = np.array([b for _, b in pairs], np.int64)
        ranges = Ranges(np.array([a for a, _ in pairs], np.int64), ends, ends)
        rows, holes = joined(names, ranges, self._logged(evidence, names, ranges, as_of), self._first_retained())
        evidence.findings += holes
        lost = [row for row in rows if row.retained is False]
        unknown = [row for row in rows if row.retained is None]
        count = sum(row.replay_to - row.replay_from for row in rows)
        if lost:
            told = f"{len(lost)} channels have lost messages that are in flight, {lost[0].channel} among them"
            return Check("replayable", False, told)
        if unknown:
            return Check(
                "replayable",
                None,
                f"no log is here for {len(unknown)} channels, {unknown[0].channel} among them",
            )
        return Check("replayable", True, f"{count} messages in flight, all of them in the logs")

    def inspect(self, queues: tuple[list[dict[str, Any]], list[Finding], list[InputUsed]] | None = None) -> Answer:
        """What is here (`cklog.inspection`), with the rows, findings and inputs of output queues."""
        from cklog import message_log as log

        table, findings, inputs = self._scan_all("checkpoints", _CHECKPOINT_COLUMNS, _identity, WITH_PLACES, None)
        known, channels = self._named()
        records = records_of(table, known, channels)
        logs = None
        if self._tables.has("channels"):
            logs, more, read = self._scan_all("channels", log.columns(None), log.runs, log.RUNS, log.RUNS_REDUCE)
            findings, inputs = findings + more, inputs + read
        built = build(records, (), Current(), any(f.id in DAMAGE for f in findings))
        rows, more, read = queues or ([], [], [])
        findings, inputs = findings + more, inputs + read
        return answer(
            "inspect",
            inspection(records, built.history, logs, inputs, rows),
            [*findings, *built.findings],
            inputs,
            strict=self._strict,
        )

    def answer(self, command: str, result: Any, planned: Planned) -> Answer:
        """An answer that rests on a planned line."""
        line = planned.result
        nothing = all(entry.state == "initial" for entry in line.line)
        return answer(
            command,
            result,
            planned.evidence.findings,
            planned.evidence.inputs,
            strict=self._strict,
            unrecoverable=nothing or not line.consistent,
            indeterminate=bool(planned.evidence.bound),
        )

    def plan(self, question: Question, fixed: Fixed | None = None) -> Planned:
        """Find the line that a question asks for, and what follows from it; `fixed` subtasks stay where they are."""
        evidence = self.evidence(question, self._checkpoints(), fixed)
        history = evidence.history
        start, at = _start(history, question.at, evidence.records)
        try:
            line = _search(question.algorithm)(history, start)
        except NoConsistentLine as error:
            return _refused(evidence, start, _inconsistent_initial(history, error.channel))
        if np.any(line[list(at)] < start[list(at)]):
            return _refused(evidence, start, unreachable(history, start, line, at))
        _check(history, line)
        result = self._result(evidence, start, line, question)
        return Planned(evidence, line, result)

    def has_checkpoints(self) -> bool:
        """Whether there are checkpoint files at all."""
        return self._tables.has("checkpoints")

    def subtasks_with_checkpoints(self) -> frozenset[Subtask]:
        """Those that some checkpoint record names."""
        if not self.has_checkpoints():
            return frozenset()
        table = self._checkpoints()[0]
        owners = zip(table["operator"].to_pylist(), table["subtask"].to_pylist(), strict=True)
        return frozenset(Subtask(operator, subtask or 0) for operator, subtask in owners)

    def _checkpoints(self) -> Scanned:
        """Every checkpoint record, as read."""
        table, findings, inputs = self._scan_all("checkpoints", _CHECKPOINT_COLUMNS, _identity, WITH_PLACES, None)
        self._require(table, findings)
        return table, findings, inputs

    def evidence(self, question: Question, scanned: Scanned, fixed: Fixed | None = None) -> Evidence:
        """Put the checkpoint records in order, and read what the survivors hold now."""
        table, findings, inputs = scanned
        table = table if fixed is None else fixed.beside(table)
        damaged = any(f.id in DAMAGE for f in findings)
        known, channels = self._named() if fixed is None else (list(fixed.subtasks), list(fixed.channels))
        records = records_of(table, known, channels, question.as_of)
        survivors = self._survivors(records, question.failed)
        current, seen = Current(), frozenset[Subtask]()
        if survivors and self._tables.has("events"):
            kernel = current_state.kernel(question.as_of)
            events, more, read = self._scan_all(
                "events", current_state.COLUMNS, kernel, current_state.PARTIAL, current_state.REDUCE
            )
            current, seen = current_state.current_of(events, survivors)
            names = {*channels, *current.sent, *current.received}
            records = records_of(table, known, names, question.as_of)
            findings, inputs = findings + more, inputs + read
        seen |= volatile_subtasks(records)
        bound = tuple(s for s in survivors if s not in seen)
        built = build(records, [s for s in survivors if s in seen], current, damaged or bool(records.findings))
        found = [*findings, *built.findings, *impossible_loops(built.history), *_no_evidence(bound)]
        return Evidence(records, built, current, bound, found, inputs)

    def _require(self, table: pa.Table, findings: list[Finding]) -> None:
        if len(table):
            return
        damaged = [f for f in findings if f.id in DAMAGE and f.severity == "error"]
        if damaged:
            message = f"no checkpoint record can be read; {damaged[0].message}"
            raise CorruptInput(message, "look for another copy of checkpoints/")
        known, channels = self._named()
        if not (known or channels):
            message = "there is no checkpoint record here, and no job.json that names operators"
            raise NotFound(message, "PATH is the run folder that holds checkpoints/")

    def _named(self) -> tuple[list[Subtask], list[str]]:
        """Subtasks and channels that the manifest names."""
        manifest = self._tables.manifest
        rows = manifest.get("operators", [])
        known = [Subtask(row["name"], i) for row in rows for i in range(row.get("parallelism", 1))]
        names = [row["channel"] for row in manifest.get("channels", [])]
        return known, [name for name in names if parse_channel(name) is not None]

    def _survivors(self, records: Records, failed: Sequence[str]) -> list[Subtask]:
        """Every subtask that `--failed`, or the manifest, does not name; none if nothing is named."""
        names = failed or tuple(self._tables.manifest.get("failed", []))
        if not names:
            return []
        lost = {subtask for name in names for subtask in subtasks_named(name, records.subtasks)}
        return [subtask for subtask in records.subtasks if subtask not in lost]

    def _scan_all(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        wanted: Callable[[dict[str, tuple[Any, Any]]], bool] | None = None,
    ) -> Scanned:
        engine = self._engine_for(self._tables.bytes_of(table))
        scan = self._tables.scan(table, columns, kernel, partial, reduce, self._split_bytes, wanted)
        scanned = engine.run(scan)
        findings = [*self._tables.findings(table), *damage_findings(scanned.damage)]
        return scanned.table, findings, list(self._tables.inputs(table, dict(scanned.records)))

    def _result(self, evidence: Evidence, start: Ints, line: Ints, question: Question) -> RecoveryLine:
        history = evidence.history
        ranges = ranges_of(history, line, evidence.built.newest_sent)
        islands = self._logged(evidence, history.channels, ranges, question.as_of)
        channels, holes = joined(history.channels, ranges, islands, self._first_retained())
        sources = sources_of(evidence.records, history, line)
        evidence.findings += [*holes, *receive_without_send(history, line), *shared_sources(sources)]
        return RecoveryLine(
            consistent=True,
            protocol=protocol_of(evidence.records),
            line=line_entries(evidence.records, evidence.built, line),
            channels=tuple(channels),
            sources=tuple(sources),
            rolled_back=rolled_back(history, line),
            useless=useless_checkpoints(history),
            steps=tuple(steps_of(history, start)) if question.explain else (),
            domino=is_domino(history, start),
        )

    def _first_retained(self) -> dict[str, int]:
        """Sequence number per channel below which, the manifest says, nothing is kept."""
        rows = self._tables.manifest.get("channels", [])
        return {row["channel"]: row["first_retained"] for row in rows if row.get("first_retained") is not None}

    def _logged(
        self, evidence: Evidence, channels: tuple[str, ...], ranges: Ranges, as_of: int | None
    ) -> pa.Table | None:
        """What the channel logs hold in the replay ranges and after them; None if there are no logs."""
        if not self._tables.has("channels"):
            return None
        from cklog import message_log as log

        wanted = log.Wanted(channels, ranges.start, ranges.end, as_of)
        table, findings, inputs = self._scan_all(
            "channels",
            log.columns(as_of),
            log.in_ranges(wanted),
            log.RANGED,
            log.RANGED_REDUCE,
            wanted.row_group,
        )
        evidence.findings += findings
        evidence.inputs += inputs
        return table


def _identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Checkpoints are metadata: every record goes to the driver."""
    return batch


def _search(algorithm: str) -> Callable[[History, Ints], Ints]:
    if algorithm == "rollback-propagation":
        from cklog.rollback_propagation import rollback_propagation

        return rollback_propagation
    if algorithm != "watermark-fixpoint":
        raise UsageError(f"--algorithm {algorithm}: watermark-fixpoint or rollback-propagation")
    return recovery_line


def subtasks_named(name: str, subtasks: Sequence[Subtask]) -> list[Subtask]:
    """The subtasks that OP or OP/SUB names.

    Raises
    ------
    NotFound : there is no such operator or subtask
    """
    one = parse_subtask(name)
    found = [s for s in subtasks if s == one or s.operator == name]
    if not found:
        operators = ", ".join(sorted({s.operator for s in subtasks}))
        raise NotFound(f"no operator or subtask {name}", f"operators here: {operators}")
    return found


def volatile_subtasks(records: Records) -> frozenset[Subtask]:
    """Subtasks with a record of kind volatile."""
    kinds = records.table["kind"]
    if pa.types.is_dictionary(kinds.type):
        kinds = kinds.cast(pa.string())
    mask = pc.fill_null(pc.equal(kinds, "volatile"), False).to_numpy(zero_copy_only=False)
    return frozenset(records.subtasks[i] for i in np.unique(records.subtask[mask]).tolist())


def _no_evidence(bound: tuple[Subtask, ...]) -> list[Finding]:
    if not bound:
        return []
    names = ", ".join(map(str, bound[:5])) + (f" and {len(bound) - 5} more" if len(bound) > 5 else "")
    message = (
        f"nothing tells what {names} hold now: no record of kind volatile and no events/ of theirs. "
        "The line shown treats them as failed too; it is safe, and the true one may be newer"
    )
    return [Finding("no-current-state", "error", str(bound[0]), message)]


def _start(history: History, at: tuple[tuple[str, int], ...], records: Records) -> tuple[Ints, dict[int, int]]:
    """The newest checkpoints, lowered to what `--at` asks for; and the subtasks that it names."""
    start = history.newest.copy()
    chosen: dict[int, int] = {}
    for name, number in at:
        subtask = parse_subtask(name)
        if subtask not in history.subtasks:
            known = ", ".join(str(s) for s in history.subtasks[:8])
            raise NotFound(f"--at {name}={number}: no subtask {name}", f"subtasks here: {known}")
        i = history.subtasks.index(subtask)
        labels = history.label[history.first[i] : history.first[i + 1]]
        rows = np.flatnonzero(labels == number)
        if number < 0 or not len(rows):
            there = ", ".join(str(x) for x in labels[labels >= 0][-8:].tolist())
            raise NotFound(f"--at {name}={number}: no usable checkpoint {number}", f"the last ones are {there}")
        start[i] = chosen[i] = int(rows[0])
    return start, chosen


def _check(history: History, line: Ints) -> None:
    """The line has no orphan message; anything else is a bug here."""
    channel, _ = forced(history, line, np.arange(len(history.src)))
    if len(channel):
        raise SelfCheckFailed(f"the line found has orphan messages on {history.channels[channel[0]]}")


def _inconsistent_initial(history: History, channel: int) -> Finding:
    name = history.channels[channel]
    message = (
        f"{name}: the records of checkpoint 0 say that {history.subtasks[history.dst[channel]]} had received more "
        f"than {history.subtasks[history.src[channel]]} had sent: no line is consistent"
    )
    return Finding("no-consistent-line", "error", name, message)


def _refused(evidence: Evidence, start: Ints, finding: Finding) -> Planned:
    """The answer where there is no line: why, and the rollbacks that show it."""
    evidence.findings.append(finding)
    steps = tuple(steps_of(evidence.history, start))
    result = RecoveryLine(False, protocol_of(evidence.records), (), (), (), (), (), steps, False)
    return Planned(evidence, np.zeros(0, np.int64), result)
