"""Runs given as state stores that are rebuilt from changelogs: Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cklog.errors import UsageError
from cklog.inputs.offers import OffersStores
from cklog.kinds.kind import Kind, Opened
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.runs.stores.line import StoreRestores

if TYPE_CHECKING:
    from cklog.model.actions import RunAction
    from cklog.model.checks import Verification
    from cklog.model.lines import RecoveryLine
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.stores.line import StoresInspection


class StoresKind(Kind):
    """Tasks whose stores apply the rest of their changelogs again; the changelogs may lie below PATH, too."""

    def __init__(self, parser: OffersStores, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser

    def inspect(self, asked: InspectQuestion) -> Draft[StoresInspection]:
        self._refuse_snapshot_names(asked)
        return self._restores().inspect()

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        return self._restores(kafka).line(command, question)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.stores.runbook import store_steps

        return store_steps(line, run, again)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        return self._restores().verify(line, maximal, question)

    def _restores(self, kafka: KafkaLogs = KafkaLogs()) -> StoreRestores:
        """The stores, with the changelogs that `--kafka` or PATH itself holds."""
        if kafka.channels or kafka.group:
            raise UsageError("--channel and --group: a store is restored from the changelog that its entry names")
        logs = self._logs_of(kafka) if kafka.folder else self._opened.logs_in(self._opened.root.path)
        return StoreRestores(self._parser, logs)
