"""Runs given as a broker's partitions: Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cklog.inputs.offers import OffersPartitions
from cklog.kafka_logs.logs import PartitionLogs
from cklog.kinds.kind import Kind, Opened
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.partitions.line import PartitionLog

if TYPE_CHECKING:
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.sinks.model import SinkImpact
    from cklog.model.actions import RunAction
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.partitions.inspection import PartitionsInspection


class PartitionsKind(Kind):
    """A broker that cuts its logs when it restarts, and groups that go on at what they committed."""

    def __init__(self, parser: OffersPartitions, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._log = PartitionLog(PartitionLogs(parser, opened.reading))

    def inspect(self, asked: InspectQuestion) -> Draft[PartitionsInspection]:
        from cklog.runs.partitions.inspection import inspect_partitions

        self._refuse_snapshot_names(asked)
        return inspect_partitions(self._log)

    judges_sources = True

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        log, beside = self._of_group(kafka)
        ask = log.replay if command == "replay" else log.recovery_line
        return self._beside_logs(ask(question), beside)

    def _of_group(self, kafka: KafkaLogs) -> tuple[PartitionLog, KafkaLogs]:
        """Return the logs of PATH, of one group if `--group` names it, and what is meant for other logs."""
        if kafka.folder or not kafka.group:
            return self._log, kafka
        return PartitionLog(self._log.logs, kafka.group), replace(kafka, group="")

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.partitions.runbook import partition_steps

        return partition_steps(line, run, again)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        return self._log.verify(line, maximal, question)

    def _impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[SinkImpact]:
        from cklog.runs.partitions.impact import partition_impact

        self._refuse_times(asked)
        log, beside = self._of_group(kafka)
        self._bound_logs(beside)
        return partition_impact(log.replay(question), log.logs.partitions())
