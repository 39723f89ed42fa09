"""A run that is given as event-log tables: its recovery line, and everything that follows from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.engine import Engine, Kernel, Reduce
from cklog.errors import CorruptInput, NotFound
from cklog.history.arrays import History
from cklog.history.deliveries import Deliveries
from cklog.history.events import current_state
from cklog.history.records import CheckpointRecords, records_of, tells_no_watermarks
from cklog.history.state_files import gone_states, is_gone, newer_without_state
from cklog.history.watermarks import CurrentState, build
from cklog.inputs.damage import damage_findings
from cklog.inputs.tables import WITH_PLACES, Tables
from cklog.lines.entries import is_domino, line_entries, protocol_of, rolled_back, steps_of, useless_checkpoints
from cklog.lines.proof import Marks
from cklog.lines.replay_ranges import (
    Ranges,
    StoredRange,
    first_retained,
    impossible_loops,
    joined,
    parted,
    ranges_of,
    receive_without_send,
    shared_sources,
    sources_of,
)
from cklog.lines.rollback_distance import domino_depths, rollback_distances
from cklog.lines.rounds import unknown_subtasks
from cklog.lines.search import Searched, search_line
from cklog.lines.verify import distinct_rows, judge, stored_and_marks, untold
from cklog.model.checks import Check, summary
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import RecoveryLine
from cklog.model.names import Subtask, parse_channel, parse_subtask
from cklog.model.question import Question
from cklog.model.schemas import CHECKPOINTS
from cklog.model.verdict import DAMAGE, Answer, answer
from cklog.runs.records.evidence import CheckpointsRead, Evidence, Fixed, Planned, TableRead
from cklog.runs.records.inspection import inspection

_CHECKPOINT_COLUMNS = (*CHECKPOINTS.names, "_path", "_offset")


class EventLog:
    """The analyses of a run in event-log tables."""

    def __init__(self, tables: Tables, engine: Callable[[int], Engine], split_bytes: int, strict: bool) -> None:
        self.tables = tables
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
        """Prove or refute a given line (`cklog.lines.verify`)."""
        checkpoints = self.checkpoints(question.as_of)
        rows = distinct_rows(checkpoints.table.to_batches(1 << 14), question.as_of)
        evidence = self.evidence(question, checkpoints)
        history, records = evidence.history, evidence.records
        survivors = {str(s) for s, kept in zip(history.subtasks, history.survivor.tolist(), strict=True) if kept}
        current = dict.fromkeys(survivors, (evidence.current.sent, evidence.current.received))
        gone = frozenset(i for i, row in enumerate(rows) if is_gone(self.tables, row["uri"]))
        stored, marks = stored_and_marks(rows, records.subtasks, records.names, current, gone)
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
        parts = {
            k: evidence.deliveries.missing(n, line[marks[n][1]], pairs[k][1])
            for k, n in enumerate(names)
            if n in evidence.deliveries.received and not both[k]
        }
        ranges = parted(Ranges(np.array([a for a, _ in pairs], np.int64), ends, ends), parts)
        logged = self._logged(evidence, names, ranges, as_of)
        stored = self._stored(evidence, line, as_of)
        rows, holes = joined(names, ranges, logged, first_retained(self.tables.manifest), stored)
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
        """What is here (`cklog.runs.records.inspection`), with the rows, findings and inputs of output queues."""
        from cklog.runs.records import channel_logs as log

        table, findings, inputs, raw = self._read_checkpoints(None)
        known, channels = self.named()
        if raw is not None:
            known, channels = [*known, *raw.subtasks], [*channels, *raw.channels]
        records = records_of(table, known, channels)
        logs = None
        if self.tables.has("channels"):
            logs, more, read = self.scan_all("channels", log.columns(None), log.runs, log.RUNS, log.RUNS_REDUCE)
            findings, inputs = findings + more, inputs + read
        built = build(records, (), CurrentState(), any(f.id in DAMAGE for f in findings))
        rows, more, read = queues or ([], [], [])
        findings, inputs = findings + more, inputs + read
        return answer(
            "inspect",
            inspection(records, built.history, logs, inputs, rows, None if raw is None else raw.order.counted),
            [*findings, *built.findings],
            inputs,
            strict=self._strict,
        )

    def evidence_of(self, question: Question) -> Evidence:
        """What there is to answer a question from: the checkpoints, and what survivors hold now."""
        return self.evidence(question, self.checkpoints(question.as_of))

    def answer_from(self, command: str, result: Any, evidence: Evidence) -> Answer:
        """An answer about the history, which rests on no line."""
        return answer(
            command,
            result,
            evidence.findings,
            evidence.inputs,
            strict=self._strict,
            indeterminate=evidence.indeterminate,
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
            indeterminate=planned.evidence.indeterminate,
        )

    def plan(self, question: Question, fixed: Fixed | None = None) -> Planned:
        """Find the line that a question asks for, and what follows from it; `fixed` subtasks stay where they are."""
        evidence = self.evidence(question, self.checkpoints(question.as_of), fixed)
        found = search_line(evidence.records, evidence.built, question)
        evidence.findings += found.findings
        if found.line is None:
            return _refused(evidence, found.start)
        result = self._result(evidence, found, found.line, question)
        if evidence.gone.any():
            evidence.findings += newer_without_state(evidence.records, evidence.gone, _labels(evidence, found.line))
        return Planned(evidence, found.line, result)

    def has_checkpoints(self) -> bool:
        """Whether there are checkpoint files at all."""
        return self.tables.has("checkpoints")

    def subtasks_with_checkpoints(self) -> frozenset[Subtask]:
        """Those that some checkpoint record names."""
        if not self.has_checkpoints():
            return frozenset()
        table = self.checkpoints()[0]
        owners = zip(table["operator"].to_pylist(), table["subtask"].to_pylist(), strict=True)
        return frozenset(Subtask(operator, subtask or 0) for operator, subtask in owners)

    def checkpoints(self, as_of: int | None = None) -> CheckpointsRead:
        """Every checkpoint record, as read, or as made of raw events up to `as_of` (ms)."""
        found = self._read_checkpoints(as_of)
        if found.raw is None or not found.raw.subtasks:
            self._require(found.table, found.findings)
        return found

    def _read_checkpoints(self, as_of: int | None) -> CheckpointsRead:
        table, findings, inputs = self.scan_all("checkpoints", _CHECKPOINT_COLUMNS, _identity, WITH_PLACES, None)
        stored = self.tables.has("checkpoints") or any(f.id == "missing-file" for f in findings)
        if not self.tables.has("events") or (stored and not (len(table) and tells_no_watermarks(table))):
            return CheckpointsRead(table, findings, inputs, None)
        from cklog.history.events.evidence import read_events

        sources = {row["name"] for row in self.tables.manifest.get("operators", []) if row.get("kind") == "source"}
        scan = functools.partial(self.scan_all, "events")
        raw, more, read = read_events(scan, as_of, sources, self.named()[1], table if stored else None)
        return CheckpointsRead(raw.table, findings + more, inputs + read, raw)

    def evidence(self, question: Question, checkpoints: CheckpointsRead, fixed: Fixed | None = None) -> Evidence:
        """Put the checkpoint records in order, and read what the survivors hold now."""
        table, findings, inputs, raw = checkpoints
        table = table if fixed is None else fixed.beside(table)
        damaged = any(f.id in DAMAGE for f in findings)
        known, channels = self.named() if fixed is None else (list(fixed.subtasks), list(fixed.channels))
        if raw is not None:
            known, channels = [*known, *raw.subtasks], [*channels, *raw.channels]
        records = records_of(table, known, channels, question.as_of)
        survivors = self._survivors(records, question)
        current, seen = CurrentState(), frozenset[Subtask]()
        if raw is not None:
            current, seen = raw.current_of(survivors)
        elif survivors and self.tables.has("events"):
            kernel = current_state.kernel(question.as_of)
            events, more, read = self.scan_all(
                "events", current_state.COLUMNS, kernel, current_state.PARTIAL, current_state.REDUCE
            )
            current, seen = current_state.current_of(events, survivors, more)
            names = {*channels, *current.sent, *current.received}
            records = records_of(table, known, names, question.as_of)
            findings, inputs = findings + more, inputs + read
        seen |= current_state.volatile_subtasks(records)
        bound = tuple(s for s in survivors if s not in seen)
        gone, _ = gone_states(records, self.tables)
        built = build(records, [s for s in survivors if s in seen], current, damaged or bool(records.findings), gone)
        if raw is not None:
            known_sent = np.maximum(built.newest_sent, raw.known_sent(built.history.channels))
            built = replace(built, newest_sent=known_sent)
        found = [*findings, *built.findings, *impossible_loops(built.history), *current_state.no_evidence(bound)]
        coordinated = protocol_of(records) == "coordinated"
        unknown = unknown_subtasks(found, self.tables.manifest) if coordinated else []
        deliveries = raw.deliveries if raw else Deliveries()
        return Evidence(records, built, current, bound, [*found, *unknown], inputs, deliveries, gone, bool(unknown))

    def _require(self, table: pa.Table, findings: list[Finding]) -> None:
        if len(table):
            return
        damaged = [f for f in findings if f.id in DAMAGE and f.severity == "error"]
        if damaged:
            message = f"no checkpoint record can be read; {damaged[0].message}"
            raise CorruptInput(message, "look for another copy of checkpoints/")
        known, channels = self.named()
        if not (known or channels):
            message = "there is no checkpoint record here, and no job.json that names operators"
            raise NotFound(message, "PATH is the run folder that holds checkpoints/")

    def named(self) -> tuple[list[Subtask], list[str]]:
        """Subtasks and channels that the manifest names."""
        manifest = self.tables.manifest
        rows = manifest.get("operators", [])
        known = [Subtask(row["name"], i) for row in rows for i in range(row.get("parallelism", 1))]
        names = [row["channel"] for row in manifest.get("channels", [])]
        return known, [name for name in names if parse_channel(name) is not None]

    def _survivors(self, records: CheckpointRecords, question: Question) -> list[Subtask]:
        """Every subtask that `--failed`, or the manifest, does not name; none if nothing is named."""
        names = question.failed or tuple(self.tables.manifest.get("failed", []))
        if not names or question.everything:
            return []
        lost = {subtask for name in names for subtask in subtasks_named(name, records.subtasks)}
        return [subtask for subtask in records.subtasks if subtask not in lost]

    def scan_all(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        wanted: Callable[[dict[str, tuple[Any, Any]]], bool] | None = None,
    ) -> TableRead:
        """Fold all records of a table, with findings on its files; `wanted` as in `cklog.inputs.tables.Tables.scan`."""
        engine = self._engine_for(self.tables.bytes_of(table))
        scan = self.tables.scan(table, columns, kernel, partial, reduce, self._split_bytes, wanted)
        scanned = engine.run(scan)
        findings = [*self.tables.findings(table), *damage_findings(scanned.damage)]
        return scanned.table, findings, list(self.tables.inputs(table, dict(scanned.records)))

    def scan_messages(
        self, columns: tuple[str, ...], kernel: Kernel, partial: pa.Schema, reduce: Reduce
    ) -> TableRead | None:
        """Fold all logged messages; None if there are no channel logs."""
        if not self.tables.has("channels"):
            return None
        return self.scan_all("channels", columns, kernel, partial, reduce)

    def _result(self, evidence: Evidence, found: Searched, line: Ints, question: Question) -> RecoveryLine:
        history = evidence.history
        ranges = ranges_of(history, line, evidence.built.newest_sent, evidence.deliveries)
        entries = line_entries(evidence.records, evidence.built, line)
        chosen = {f"{e.operator}/{e.subtask}": e.checkpoint for e in entries}
        islands = self._logged(evidence, history.channels, ranges, question.as_of)
        stored = self._stored(evidence, chosen, question.as_of)
        channels, holes = joined(history.channels, ranges, islands, first_retained(self.tables.manifest), stored)
        sources = sources_of(evidence.records, history, line)
        evidence.findings += [*holes, *receive_without_send(history, line), *shared_sources(sources)]
        depths = domino_depths(history, found.start) if question.explain else None
        return RecoveryLine(
            consistent=True,
            protocol=protocol_of(evidence.records),
            line=entries,
            channels=tuple(channels),
            sources=tuple(sources),
            rolled_back=rolled_back(history, line),
            useless=useless_checkpoints(history),
            steps=tuple(steps_of(history, found.start)) if question.explain else (),
            domino=is_domino(history, found.start),
            rollback=rollback_distances(history, line, self._failure_time(history, question), depths),
            notes=found.notes,
        )

    def _failure_time(self, history: History, question: Question) -> int | None:
        """When the job failed, in ms: as asked, by the manifest, or no earlier than the newest checkpoint."""
        stated = question.as_of if question.as_of is not None else self.tables.manifest.get("failure_time")
        if isinstance(stated, int) and not isinstance(stated, bool):
            return stated
        newest = int(history.time.max(initial=-1))
        return newest if newest >= 0 else None

    def _stored(
        self, evidence: Evidence, line: Mapping[str, int | None], as_of: int | None
    ) -> dict[str, list[StoredRange]]:
        """The messages that the checkpoints of a line hold themselves."""
        from cklog.runs.records.stored_tuples import stored_tuples

        reading = self._engine_for, self._split_bytes, as_of
        stored, findings, inputs = stored_tuples(self.tables, reading, evidence.records, line)
        evidence.findings += findings
        evidence.inputs += inputs
        return stored

    def _logged(
        self, evidence: Evidence, channels: tuple[str, ...], ranges: Ranges, as_of: int | None
    ) -> pa.Table | None:
        """What the channel logs hold in the replay ranges and after them; None if there are no logs."""
        if not self.tables.has("channels"):
            return None
        from cklog.runs.records import channel_logs as log

        wanted = log.Wanted(channels, ranges.start, ranges.end, as_of, ranges.parts)
        scan = log.columns(as_of), log.in_ranges(wanted), log.RANGED, log.RANGED_REDUCE, wanted.row_group
        table, findings, inputs = self.scan_all("channels", *scan)
        evidence.findings += findings
        evidence.inputs += inputs
        return table


def _labels(evidence: Evidence, line: Ints) -> Ints:
    """The checkpoint number of each subtask in the line, the greatest there is for a current state, shape (n,)."""
    history = evidence.history
    current = history.survivor & (line == history.newest)
    return np.where(current, np.iinfo(np.int64).max, history.label_of(line))


def _identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Checkpoints are metadata: every record goes to the driver."""
    return batch


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


def _refused(evidence: Evidence, start: Ints) -> Planned:
    """The answer where there is no line: the rollbacks that show it; the findings say why."""
    steps = tuple(steps_of(evidence.history, start))
    result = RecoveryLine(False, protocol_of(evidence.records), (), (), (), (), (), steps, False)
    return Planned(evidence, np.zeros(0, np.int64), result)
