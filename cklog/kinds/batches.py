"""Runs given as a log of micro-batches: Spark Structured Streaming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cklog.inputs.offers import OffersBatches
from cklog.kinds.kind import Kind, Opened
from cklog.lines.recovery.work import with_counts
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.batches.line import BatchLog

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
    from cklog.runs.records.reading import RecordReader


class BatchesKind(Kind):
    """A query that restarts as a whole after its last committed batch."""

    def __init__(self, parser: OffersBatches, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser
        self._log = BatchLog(parser)

    @property
    def checkpoint_records(self) -> RecordReader:
        hint = "cklog recovery-line says where to restart"
        self.refuse("has no checkpoint graph: the query restarts as a whole", hint)

    def inspect(self, asked: InspectQuestion) -> Draft[BatchesInspection]:
        self._refuse_snapshot_names(asked)
        return self._log.inspect(asked.check_contents)

    def recovery_line(self, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        return self._whole_line("recovery-line", question, kafka)

    def replay(self, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        return self._whole_line("replay", question, kafka)

    def _whole_line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        draft, works = self._log.line(command, question)
        beside = self._beside_logs(draft, kafka)
        return self._timed(beside, with_counts(works, beside.result.runs), question)

    def feeds(self, question: Question, most: int) -> Sequence[Feeds]:
        from cklog.runs.batches.feeds import batch_feeds

        return [batch_feeds(self._parser, self._log.plan(question), question.at, most)]

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.batches.runbook import batch_steps

        return batch_steps(line, run, again)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        return self._log.verify(line, maximal, question)

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        from cklog.runs.batches.retention import batch_retention

        self._refuse_flink_options(policy)
        return batch_retention(self._parser, self._opened.root, policy)

    def chain_source(self) -> ChainSource:
        from cklog.chains.source import ChainSource
        from cklog.runs.batches.plan import pieces_of

        read = pieces_of(self._parser)
        return ChainSource(read.table, read.findings, read.inputs, together="run", notes=read.notes)

    def impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[SinkImpact]:
        from cklog.runs.batches.impact import batch_impact

        self._refuse_times(asked)
        logs = self._bound_logs(kafka)
        return batch_impact(self._parser, self._log.plan(question), question, logs)
