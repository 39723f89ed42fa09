"""Runs given as snapshots of whole jobs: Flink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.kinds.kind import Kind, Opened
from cklog.lines.recovery.work import with_counts
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.snapshots.beside.positions import with_positions
from cklog.runs.snapshots.beside.transactions import with_transactions, without_lost_results
from cklog.runs.snapshots.line import SnapshotLine
from cklog.runs.snapshots.plan import SnapshotPlan, plan_snapshots
from cklog.runs.snapshots.proof import audit_snapshots, restored_in, verify_snapshots

if TYPE_CHECKING:
    from cklog.chains.source import ChainSource
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.sinks.model import SinkImpact
    from cklog.inputs.feeds import Feeds
    from cklog.kafka_logs.logs import PartitionLogs
    from cklog.model.actions import RunAction
    from cklog.model.audits import Restored, RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.snapshots.inspection import SnapshotsInspection
    from cklog.sink_tables.naming import OpenedTables
    from cklog.storage import Root


class SnapshotsKind(Kind):
    """Jobs of which every complete snapshot is a consistent line by itself."""

    holds_tables = True
    takes_begins = True

    def __init__(self, parser: OffersSnapshots, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser

    def inspect(self, asked: InspectQuestion) -> Draft[SnapshotsInspection]:
        from cklog.runs.snapshots.inspection import inspect_snapshots

        return inspect_snapshots(self._parser, self._opened.reading, asked)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        parser, opened = self._beside_sinks(question)
        logs = self._logs_of(kafka)
        plan = self._plan_beside(question, parser, logs)
        draft, works = SnapshotLine(parser).draft(command, plan, question, logs is not None)
        draft = with_positions(draft, parser, plan, question.source_from)
        draft = with_transactions(draft, plan, logs)
        beside = self._beside_logs(draft, kafka, written=plan.written(parser.job_id), logs=logs)
        known = {source.job for source in beside.result.sources}  # of a job without any nothing tells what it reads
        counted = [run for run in beside.result.runs if run.run in known]
        timed = self._timed(beside, with_counts(works, counted), question)
        if opened is None:
            return timed
        from cklog.runs.snapshots.beside.sinks import snapshot_line
        from cklog.sink_tables.beside import beside_tables, with_line_that_fits

        asked = snapshot_line(parser, plan, opened.tables, bool(question.at), question.check_files)
        return with_line_that_fits(
            beside_tables(timed, asked, opened),
            lambda subtask, number: self._line(command, replace(question, at=((subtask, number),)), kafka),
        )

    def _plan(self, question: Question, parser: OffersSnapshots | None = None) -> SnapshotPlan:
        """Say what each job restarts from."""
        of = parser or self._parser
        return self._cache.get(("plan", question, of), lambda: plan_snapshots(of, self._opened.reading, question))

    def _plan_beside(self, question: Question, parser: OffersSnapshots, logs: PartitionLogs | None) -> SnapshotPlan:
        """Say what each job restarts from, given how its transactions ended in Kafka's logs."""
        plan = self._plan(question, parser)
        return plan if logs is None or question.at else without_lost_results(plan, logs)

    def _whole_line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        with self.reading_once():
            return super()._whole_line(command, self._with_tables(question), kafka)

    def _with_tables(self, question: Question) -> Question:
        """Return a question without tables with those from which pending manifests are gone, if they can be read."""
        if question.sinks or not question.check_files:
            return question
        from cklog.runs.snapshots.beside.pending import pending_tables

        plan = self._plan(replace(question, at=()))
        sinks = self._cache.get("pending", lambda: pending_tables(self._parser, self._opened.root, plan))
        found = replace(question, sinks=sinks)
        try:
            return found if sinks and self._sink_tables(found).tables else question
        except (NotFound, UsageError):  # no table, or nothing that reads it: the answer asks for --sink
            return question

    def _beside_sinks(self, question: Question) -> tuple[OffersSnapshots, OpenedTables | None]:
        """Return the tables of a question, and a parser that finds the files that the job has for them there."""
        question = self._with_tables(question)
        if not question.sinks:
            return self._parser, None
        from cklog.sink_tables.naming import table_maps

        opened = self._sink_tables(question)
        maps = table_maps(opened, question.sinks)
        if not maps:
            return self._parser, opened
        made: Callable[[Root], OffersSnapshots] = type(self._parser)
        return self._cache.get(("parser", question.sinks), lambda: made(self._opened.root.with_maps(maps))), opened

    def feeds(self, question: Question, most: int) -> Sequence[Feeds]:
        from cklog.runs.snapshots.feeds import snapshot_feeds

        tables = self._sink_tables(question).tables if question.sinks else ()
        return snapshot_feeds(self._parser, self._plan(question), most, tables)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runbook.tables import steps_with_tables
        from cklog.runs.snapshots.runbook import snapshot_steps

        return steps_with_tables(line, run, again, snapshot_steps)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        parser, opened = self._beside_sinks(question)
        found = verify_snapshots(parser, self._opened.reading, line, maximal, question)
        if opened is None:
            return found
        from cklog.runs.snapshots.beside.sinks import snapshot_restart
        from cklog.sink_tables.beside import with_tables_checked

        plan = self._plan(question, parser)
        restart = snapshot_restart(parser, plan, opened.tables, line, question.check_files)
        return with_tables_checked(found, restart, opened, "checkpoint")

    def audit(self, restored: Restored, question: Question) -> Draft[RestoredAudit]:
        return audit_snapshots(self._parser, self._opened.reading, restored, question)

    def restored_in(self, log: str) -> Restored:
        return restored_in(self._parser, log)

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        from cklog.runs.snapshots.retention import snapshot_retention

        return snapshot_retention(self._parser, self._opened.reading, policy)

    def chain_source(self) -> ChainSource:
        from cklog.runs.snapshots.chains import snapshot_source

        return snapshot_source(self._parser, self._opened.reading)

    def _impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[SinkImpact]:
        from cklog.runs.snapshots.impact import snapshot_impact

        self._refuse_times(asked)
        parser, opened = self._beside_sinks(question)
        logs = self._bound_logs(kafka)
        plan = self._plan_beside(question, parser, None if logs is None else logs.logs)
        found = snapshot_impact(parser, plan, question, logs)
        if opened is None:
            return found
        from cklog.impact.sinks.tables import with_tables
        from cklog.runs.snapshots.beside.sinks import snapshot_line

        held = snapshot_line(parser, plan, opened.tables, bool(question.at), question.check_files)
        return with_tables(found, held.restart, "checkpoint", opened)
