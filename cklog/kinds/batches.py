"""Runs given as a log of micro-batches: Spark Structured Streaming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from cklog.inputs.offers import OffersBatches
from cklog.kinds.kind import Kind, Opened
from cklog.lines.recovery.work import with_counts
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.batches.line import QUERY, BatchLog

if TYPE_CHECKING:
    from cklog.chains.source import ChainSource
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.sinks.model import SinkImpact
    from cklog.inputs.feeds import Feeds
    from cklog.model.actions import RunAction
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.batches.line import BatchesInspection
    from cklog.runs.batches.plan import BatchPlan
    from cklog.runs.batches.source_tables import ReadTable
    from cklog.runs.records.reading import RecordReader
    from cklog.sink_tables.naming import OpenedTables


R = TypeVar("R")


class BatchesKind(Kind):
    """A query that restarts as a whole after its last committed batch."""

    holds_tables = True

    def __init__(self, parser: OffersBatches, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser
        self._log = BatchLog(parser, self._cache, lambda asked: self._sink_tables(asked).tables if asked.sinks else ())

    @property
    def checkpoint_records(self) -> RecordReader:
        hint = "cklog recovery-line says where to restart"
        self.refuse("has no checkpoint graph: the query restarts as a whole", hint)

    def inspect(self, asked: InspectQuestion) -> Draft[BatchesInspection]:
        self._refuse_snapshot_names(asked)
        return self._log.inspect(asked.check_contents)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        draft, works = self._log.line(command, question)
        beside = self._beside_logs(draft, kafka)
        timed = self._timed(beside, with_counts(works, beside.result.runs), question)
        if not question.sinks:
            return timed
        from cklog.runs.batches.sinks import batch_line
        from cklog.runs.batches.source_tables import tables_read
        from cklog.sink_tables.beside import beside_tables, with_line_that_fits

        plan, opened = self._log.plan(question), self._sink_tables(question)
        read = tables_read(plan, opened.tables)
        if read:
            timed, opened = _with_tables_read(timed, read), opened.without([one.table for one in read])
        if not (opened.tables or opened.unread):
            return timed
        asked = batch_line(plan, lambda batch: self._plan_at(batch, question), bool(question.at))
        beside_sinks = with_line_that_fits(
            beside_tables(timed, asked, opened),
            lambda subtask, number: self._line(command, replace(question, at=((subtask, number),)), kafka),
        )
        return self._with_skipped(beside_sinks, plan, opened, question)

    def _with_skipped(self, found: Draft[R], plan: BatchPlan, opened: OpenedTables, question: Question) -> Draft[R]:
        """Add what becomes of a batch in flight that a table has already."""
        from cklog.runs.batches.sinks import skipped_findings

        skipped = skipped_findings(self._parser, plan, opened.tables, question.check_contents)
        return replace(found, findings=[*found.findings, *skipped])

    def _plan_at(self, batch: int, question: Question) -> BatchPlan:
        """Say what going back to a batch does; -1: nothing is gone back from."""
        return self._log.plan(replace(question, at=((f"{QUERY}/0", batch),)) if batch >= 0 else question)

    def feeds(self, question: Question, most: int) -> Sequence[Feeds]:
        from cklog.runs.batches.feeds import batch_feeds

        plan = self._log.plan(question)
        tables = self._written(question, plan).tables if question.sinks else ()
        return [batch_feeds(self._parser, plan, question.at, most, tables)]

    def _written(self, question: Question, plan: BatchPlan) -> OpenedTables:
        """Open the tables that a question names, without those that the query reads."""
        from cklog.runs.batches.source_tables import tables_read

        opened = self._sink_tables(question)
        return opened.without([one.table for one in tables_read(plan, opened.tables)])

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runbook.tables import steps_with_tables
        from cklog.runs.batches.runbook import batch_steps

        return steps_with_tables(line, run, again, batch_steps)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        found = self._log.verify(line, maximal, question)
        if not question.sinks:
            return found
        from cklog.runs.batches.sinks import batch_restart
        from cklog.sink_tables.beside import with_tables_checked

        at = next(iter(line.values()), None)
        plan = self._plan_at(-1 if at is None else at, question)
        opened = self._written(question, plan)
        checked = with_tables_checked(found, batch_restart(plan), opened, "batch")
        return self._with_skipped(checked, plan, opened, question)

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        from cklog.runs.batches.retention import batch_retention

        self._refuse_flink_options(policy)
        return batch_retention(self._parser, self._opened.root, policy)

    def chain_source(self) -> ChainSource:
        from cklog.chains.source import ChainSource
        from cklog.runs.batches.plan import pieces_of

        read = pieces_of(self._parser)
        return ChainSource(read.table, read.findings, read.inputs, together="run", notes=read.notes)

    def _impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[SinkImpact]:
        from cklog.runs.batches.impact import batch_impact

        self._refuse_times(asked)
        logs = self._bound_logs(kafka)
        plan = self._log.plan(question)
        found = batch_impact(self._parser, plan, question, logs)
        if not question.sinks:
            return found
        from cklog.impact.sinks.tables import with_tables
        from cklog.runs.batches.sinks import batch_restart

        opened = self._written(question, plan)
        return self._with_skipped(with_tables(found, batch_restart(plan), "batch", opened), plan, opened, question)


def _with_tables_read(line: Draft[RecoveryLine], read: Sequence[ReadTable]) -> Draft[RecoveryLine]:
    """Return a line with what tables say that the query reads."""
    from cklog.runs.batches.source_tables import cleaned_findings

    compared = [{"of": one.source, "table": one.table.table.id, "version": one.version} for one in read]
    details = line.result.details | {"source_tables": compared}
    return replace(
        line,
        result=replace(line.result, details=details),
        findings=[*line.findings, *cleaned_findings(read), *(f for one in read for f in one.table.table.findings)],
        inputs=[*line.inputs, *(used for one in read for used in one.table.table.inputs)],
    )
