"""Runs given as tables of records: native run folders, CheckMate's dumps, plug-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cklog.errors import UsageError
from cklog.inputs.offers import OffersRecords
from cklog.inputs.trouble import hides_any, refuse_unread
from cklog.kinds.kind import Kind, Opened
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.records.reading import RecordReader

if TYPE_CHECKING:
    from cklog.advise.delta.answer import DeltaAdvice, DeltaQuestion
    from cklog.advise.timing.answer import TimingAdvice, TimingQuestion
    from cklog.chains.source import ChainSource
    from cklog.impact.annotate import AnnotateQuestion
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.model import Impact
    from cklog.impact.sinks.model import SinkImpact
    from cklog.impact.sinks.sources import BoundLogs
    from cklog.impact.system import SystemLog
    from cklog.latency.model import Latency, LatencyQuestion
    from cklog.model.actions import RunAction
    from cklog.model.audits import Restored, RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.protocols.choice.model import ProtocolAdvice, ProtocolQuestion
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.rounds.answer import RoundsAnswer, RoundsQuestion
    from cklog.rounds.sweep import SweepAnswer, SweepQuestion
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.records.inspection import RecordsInspection


class RecordsKind(Kind):
    """Subtasks that checkpoint one by one, or in rounds; or one system that tells of its life in a log."""

    binds_sources = True

    def __init__(self, parser: OffersRecords, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._tables = parser

    @cached_property
    def _records(self) -> RecordReader:
        return RecordReader(self._tables, self._opened.reading, self._cache)

    @property
    def checkpoint_records(self) -> RecordReader:
        return self._records

    validates = True

    def inspect(self, asked: InspectQuestion) -> Draft[RecordsInspection]:
        from cklog.runs.records.inspection import inspect_records

        self._refuse_snapshot_names(asked)
        return inspect_records(self._records, validate=asked.validate)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        draft = self._planned_line(command, question)
        self._require_read("checkpoints", "outputs")  # without the checkpoints of a subtask it would be too old
        return self._beside_logs(draft, kafka, self._tables.manifest)

    def _require_read(self, *tables: str) -> None:
        """Raise `Unreadable` if any file of these tables could not be read."""
        refuse_unread(self._opened.root, self._places_of(*tables))

    def _places_of(self, *tables: str) -> set[str]:
        """Return the folders, and files, that hold these tables."""
        return {used.path for table in tables for used in self._tables.inputs(table, {})}

    def _planned_line(self, command: str, question: Question) -> Draft[RecoveryLine]:
        from cklog.runs.records.lossless import with_lossless
        from cklog.runs.records.plan import plan_line
        from cklog.runs.records.recovery import records_works

        planned = with_lossless(self._records, plan_line(self._records, question), question)
        draft = planned.draft(command, planned.result)
        return self._timed(draft, records_works(planned), question)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.records.runbook import record_steps

        return record_steps(line, run, again)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        from cklog.runs.records.verify import verify_line

        return verify_line(self._records, line, maximal, question)

    def audit(self, restored: Restored, question: Question) -> Draft[RestoredAudit]:
        from cklog.runs.records.verify import audit_line

        return audit_line(self._records, restored.line, question)

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        self._refuse_flink_options(policy)
        if not (self._tables.has("checkpoints") or self._tables.has("events")):
            return super().retention(policy)
        self._require_read("checkpoints", "events")
        from cklog.retention.files import StoredFiles
        from cklog.runs.records.retention import checkpoint_retention

        hidden = hides_any(self._opened.root, self._places_of("checkpoints", "events"))
        return checkpoint_retention(self._records, StoredFiles(self._opened.root), policy, hidden)

    def chain_source(self) -> ChainSource:
        from cklog.chains.source import ChainSource
        from cklog.runs.records.reading import pieces_of_records

        read = pieces_of_records(self._records)
        return ChainSource(read.table, read.findings, read.inputs, "subtask")

    def _impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[Impact | SinkImpact | None]:
        """Judge by time where a crash is named, or a log tells of the system's life; else sink by sink."""
        log = self._system_log(asked)
        if log is None or not self._tells_times(log, asked):
            self._refuse_times(asked)
            found = self._sink_impact(question, self._bound_logs(kafka, self._tables.manifest))
            return found if log is None else replace(found, findings=(*found.findings, *log.findings))
        if question != Question() or kafka != KafkaLogs():
            raise UsageError(
                "--at, --against, --failed, --as-of and --kafka: this run is judged by its system log",
                "they are about runs that restart from checkpoints",
            )
        return self._impact_by_time(log, asked)

    def annotate(self, asked: ImpactQuestion, to_write: AnnotateQuestion) -> Draft[Impact | None]:
        log = self._system_log(asked)
        if log is None or not self._tells_times(log, asked):
            return super().annotate(asked, to_write)
        from cklog.impact.annotate import annotated_answer

        root, reading = self._opened.root, self._opened.reading
        found = self._impact_by_time(log, asked)
        return annotated_answer(found, to_write, lambda o: root.uri(f"outputs/{o}"), self._opened.results_in, reading)

    def _system_log(self, asked: ImpactQuestion) -> SystemLog | None:
        """The log that may tell of one system's life; None: there is none, and nobody says when it crashed."""
        if asked.crash is None and not self._tables.has("system"):
            return None
        from cklog.impact.system import read_system

        return read_system(self._tables, self._opened.reading)

    def _tells_times(self, log: SystemLog, asked: ImpactQuestion) -> bool:
        """Whether a crash is judged by time, and not by the line that the run restarts from."""
        return asked.crash is not None or bool(log.events) or log.damaged

    def _impact_by_time(self, log: SystemLog, asked: ImpactQuestion) -> Draft[Impact | None]:
        from cklog.impact.answer import impact_answer

        return impact_answer(self._tables, self._opened.reading, log, asked)

    def _sink_impact(self, question: Question, logs: BoundLogs | None) -> Draft[SinkImpact]:
        from cklog.runs.records.impact import checkpoint_impact

        return checkpoint_impact(self._records, question, logs)

    def rounds(self, asked: RoundsQuestion) -> Draft[RoundsAnswer]:
        from cklog.rounds.answer import rounds_answer

        return rounds_answer(self._tables, self._opened.reading, asked)

    def sweep_rounds(self, asked: SweepQuestion) -> Draft[SweepAnswer]:
        from cklog.rounds.sweep import sweep_answer

        return sweep_answer(self._tables, self._opened.reading, asked)

    def advise_delta(self, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
        from cklog.advise.delta.answer import delta_of_records

        return delta_of_records(self._records, asked)

    def advise_timing(self, asked: TimingQuestion) -> Draft[TimingAdvice]:
        from cklog.advise.timing.answer import timing_answer

        return timing_answer(self._tables, self._opened.reading, asked)

    def advise_protocol(self, asked: ProtocolQuestion) -> Draft[ProtocolAdvice]:
        if not (self._tables.has("checkpoints") or self._tables.has("events")):
            return super().advise_protocol(asked)
        self._require_read("checkpoints", "events")
        from cklog.protocols.choice.answer import protocol_answer

        return protocol_answer(self._records, asked)

    def latency(self, asked: LatencyQuestion) -> Draft[Latency]:
        if not (asked.results or self._tables.has("events")):
            return super().latency(asked)
        from cklog.latency.answer import latency_answer
        from cklog.latency.results import results_latency
        from cklog.runs.records.latency import message_latencies, run_marks

        if asked.results:
            results = self._opened.results_in(asked.results)
            return results_latency(results, self._opened.reading, asked, run_marks(self._records))
        return latency_answer(message_latencies(self._records, asked), run_marks(self._records), asked)
