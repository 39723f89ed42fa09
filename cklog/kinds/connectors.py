"""Runs given as the offsets of source connectors: Kafka Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cklog.errors import UsageError
from cklog.inputs.offers import OffersConnectors
from cklog.kinds.kind import Kind, Opened
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.connectors.line import ConnectorOffsets

if TYPE_CHECKING:
    from cklog.model.actions import RunAction
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.connectors.line import ConnectorsInspection


class ConnectorsKind(Kind):
    """Connectors that resume at what they stored; the topics that they write to may lie below PATH, too."""

    takes_positions = True

    def __init__(self, parser: OffersConnectors, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser

    def inspect(self, asked: InspectQuestion) -> Draft[ConnectorsInspection]:
        self._refuse_snapshot_names(asked)
        return self._offsets().inspect()

    judges_sources = True

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        return self._offsets(kafka).line(command, question)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.connectors.runbook import connector_steps

        return connector_steps(line, run, again)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        return self._offsets().verify(line, maximal, question)

    def _offsets(self, kafka: KafkaLogs = KafkaLogs()) -> ConnectorOffsets:
        if kafka.channels or kafka.group:
            hint = "copy the topics beside the offsets, or name them with --taken"
            raise UsageError("--channel and --group: connectors resume at offsets of their own", hint)
        return ConnectorOffsets(self._parser, self._opened.logs_in(self._opened.root.path), self._logs_of(kafka))
