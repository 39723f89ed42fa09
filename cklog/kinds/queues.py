"""Runs given as records and persisted output queues: continuous eventual checkpointing."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from cklog.inputs.offers import OffersQueues
from cklog.inputs.trouble import hides_any, unseen_below
from cklog.kinds.kind import Opened
from cklog.kinds.records import RecordsKind
from cklog.model.question import InspectQuestion, Question
from cklog.model.verdict import Draft
from cklog.queues.analyses import EventualLog
from cklog.runs.records.reading import RecordReader

if TYPE_CHECKING:
    from cklog.advise.extent.answer import ExtentAdvice
    from cklog.advise.extent.grid import ExtentQuestion
    from cklog.impact.sinks.model import SinkImpact
    from cklog.impact.sinks.sources import BoundLogs
    from cklog.model.eventual import EventualCheckpoint, Extent
    from cklog.model.lines import RecoveryLine
    from cklog.queues.over_time.timeline import ExtentOverTime
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.runs.records.inspection import RecordsInspection


R = TypeVar("R")


class QueuesKind(RecordsKind):
    """Operators that restart from their output queues; beside them some may have checkpoints."""

    def __init__(self, parser: OffersQueues, opened: Opened) -> None:
        super().__init__(parser, opened)
        self._parser = parser

    @cached_property
    def _eventual(self) -> EventualLog:
        hidden = unseen_below(self._opened.root, "outputs")
        return EventualLog(self._parser.queues(), self._parser.manifest, self._opened.reading, hidden)

    def _on_manifest(self, draft: Draft[R]) -> Draft[R]:
        """Add what is wrong with the manifest: without its channels no upstream is found, and no sender."""
        return replace(draft, findings=(*draft.findings, *self._parser.manifest_findings))

    @property
    def checkpoint_records(self) -> RecordReader:
        why = "has output queues: its operators restart without checkpoints, and are in no graph of them"
        self.refuse(why, "cklog recovery-line says where to restart")

    def inspect(self, asked: InspectQuestion) -> Draft[RecordsInspection]:
        from cklog.runs.records.inspection import QueuesInspected, inspect_records

        self._refuse_snapshot_names(asked)
        queues = QueuesInspected(*self._eventual.inspect())
        return self._on_manifest(inspect_records(self._records, queues, asked.validate))

    def _planned_line(self, command: str, question: Question) -> Draft[RecoveryLine]:
        from cklog.runs.records.cascade import Cascade

        if not self._eventual.queues and not self._records.has_checkpoints():
            self._eventual.queue_of("")  # which says what is in the way
        return self._on_manifest(Cascade(self._eventual, self._records).line(command, question))

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        self._refuse_flink_options(policy)
        self._require_read("checkpoints", "outputs")
        from cklog.runs.records.cascade import Cascade
        from cklog.runs.records.queue_retention import queue_retention

        root = self._opened.root
        if not self._eventual.queues and not self._records.has_checkpoints():
            self._eventual.queue_of("")
        hidden = hides_any(root, self._places_of("checkpoints", "outputs"))
        cascade = Cascade(self._eventual, self._records)
        doubtful = bool(self._parser.manifest_findings)
        return self._on_manifest(queue_retention(cascade, root.list("outputs"), policy, hidden, doubtful))

    def _sink_impact(self, question: Question, logs: BoundLogs | None) -> Draft[SinkImpact]:
        from cklog.runs.records.impact import queue_impact

        return queue_impact(self._records, self._planned_line("replay", question), question, logs)

    def extent(self, operator: str, forward: bool, as_of: int | None) -> Draft[Extent]:
        return self._on_manifest(self._eventual.extent(operator, forward, as_of))

    def extent_over_time(self, operator: str, max_extent: int | None, max_replay: int | None) -> Draft[ExtentOverTime]:
        return self._on_manifest(self._eventual.over_time(operator, max_extent, max_replay))

    def eventual_checkpoint(self, operator: str, forward: bool, as_of: int | None) -> Draft[EventualCheckpoint]:
        return self._on_manifest(self._eventual.eventual_checkpoint(operator, forward, as_of))

    def advise_extent(self, operator: str, asked: ExtentQuestion) -> Draft[ExtentAdvice]:
        from cklog.advise.extent.answer import extent_advice

        return self._on_manifest(extent_advice(self._eventual, operator, asked))
