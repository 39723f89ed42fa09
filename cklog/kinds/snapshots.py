"""Runs given as snapshots of whole jobs: Flink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cklog.inputs.offers import OffersSnapshots
from cklog.kinds.kind import Kind, Opened
from cklog.lines.recovery.work import with_counts
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.snapshots.line import SnapshotLine, audit_snapshots, restored_in, verify_snapshots
from cklog.runs.snapshots.plan import SnapshotPlan, plan_snapshots

if TYPE_CHECKING:
    from cklog.chains.source import ChainSource
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.sinks.model import SinkImpact
    from cklog.inputs.feeds import Feeds
    from cklog.model.actions import RunAction
    from cklog.model.audits import Restored, RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.snapshots.inspection import SnapshotsInspection


class SnapshotsKind(Kind):
    """Jobs of which every complete snapshot is a consistent line by itself."""

    holds_tables = True

    def __init__(self, parser: OffersSnapshots, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser
        self._snapshot_line = SnapshotLine(parser, opened.reading)

    def inspect(self, asked: InspectQuestion) -> Draft[SnapshotsInspection]:
        from cklog.runs.snapshots.inspection import inspect_snapshots

        return inspect_snapshots(self._parser, self._opened.reading, asked)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        draft, works = self._snapshot_line.draft(command, question)
        beside = self._beside_logs(draft, kafka)
        known = {source.job for source in beside.result.sources}  # of a job without any nothing tells what it reads
        counted = [run for run in beside.result.runs if run.run in known]
        timed = self._timed(beside, with_counts(works, counted), question)
        if not question.sinks:
            return timed
        from cklog.runs.snapshots.sinks import snapshot_line
        from cklog.sink_tables.beside import beside_tables

        opened = self._sink_tables(question)
        asked = snapshot_line(
            self._parser, self._plan(question), opened.tables, bool(question.at), question.check_files
        )
        return beside_tables(timed, asked, opened)

    def _plan(self, question: Question) -> SnapshotPlan:
        """Say what each job restarts from."""
        return plan_snapshots(self._parser, self._opened.reading, question)

    def feeds(self, question: Question, most: int) -> Sequence[Feeds]:
        from cklog.runs.snapshots.feeds import snapshot_feeds

        tables = self._sink_tables(question).tables if question.sinks else ()
        return snapshot_feeds(self._parser, self._plan(question), most, tables)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runbook.tables import steps_with_tables
        from cklog.runs.snapshots.runbook import snapshot_steps

        return steps_with_tables(line, run, again, snapshot_steps)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        found = verify_snapshots(self._parser, self._opened.reading, line, maximal, question)
        if not question.sinks:
            return found
        from cklog.runs.snapshots.sinks import snapshot_restart
        from cklog.sink_tables.beside import with_tables_checked

        opened = self._sink_tables(question)
        plan = self._plan(question)
        restart = snapshot_restart(self._parser, plan, opened.tables, line, question.check_files)
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

    def impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[SinkImpact]:
        from cklog.runs.snapshots.impact import snapshot_impact

        self._refuse_times(asked)
        found = snapshot_impact(self._parser, self._opened.reading, question, self._bound_logs(kafka))
        if not question.sinks:
            return found
        from cklog.impact.sinks.tables import with_tables
        from cklog.runs.snapshots.sinks import snapshot_line

        opened = self._sink_tables(question)
        plan = self._plan(question)
        held = snapshot_line(self._parser, plan, opened.tables, bool(question.at), question.check_files)
        return with_tables(found, held.restart, "checkpoint", opened)
