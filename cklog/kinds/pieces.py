"""Folders of base and delta checkpoints and nothing else: stores by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cklog.inputs.offers import OffersPieces
from cklog.kinds.kind import Kind, Opened
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.verdict import Draft

if TYPE_CHECKING:
    from cklog.advise.delta.answer import DeltaAdvice, DeltaQuestion
    from cklog.chains.source import ChainSource
    from cklog.model.actions import RunAction
    from cklog.model.lines import RecoveryLine
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.pieces.analyses import PiecesInspection


class PiecesKind(Kind):
    """Chains of each operator by itself: nothing here says which checkpoints of different operators go together."""

    def __init__(self, parser: OffersPieces, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser

    def inspect(self, asked: InspectQuestion) -> Draft[PiecesInspection]:
        from cklog.runs.pieces.analyses import inspect_pieces

        self._refuse_snapshot_names(asked)
        return inspect_pieces(self._parser)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        from cklog.runs.pieces.line import pieces_line

        return self._beside_logs(pieces_line(command, self._parser, question), kafka)

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        from cklog.runs.pieces.runbook import piece_steps

        return piece_steps(line, run, again)

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        from cklog.runs.pieces.analyses import version_retention

        self._refuse_flink_options(policy)
        return version_retention(self._parser, policy)

    def chain_source(self) -> ChainSource:
        from cklog.chains.source import source_of_pieces

        return source_of_pieces(self._parser)

    def advise_delta(self, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
        from cklog.advise.delta.answer import delta_of_pieces

        return delta_of_pieces(self._parser.pieces(), asked)
