"""The questions that a run can be asked, each refused unless a kind answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, cast

from cklog.engine.question_cache import QuestionCache
from cklog.engine.reading import Reading
from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import Parser
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.values import is_integer
from cklog.model.verdict import Draft
from cklog.storage import Root

if TYPE_CHECKING:  # types of questions and answers: only the one that is asked is loaded
    from cklog.advise.delta.answer import DeltaAdvice, DeltaQuestion
    from cklog.advise.extent.answer import ExtentAdvice
    from cklog.advise.extent.grid import ExtentQuestion
    from cklog.advise.timing.answer import TimingAdvice, TimingQuestion
    from cklog.chains.source import ChainSource
    from cklog.graphs.graph import CheckpointGraph
    from cklog.graphs.selection import GraphQuestion
    from cklog.graphs.z_cycles import ZCycleQuestion
    from cklog.impact.annotate import AnnotateQuestion, TimedResults
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.model import Impact
    from cklog.impact.sinks.model import SinkImpact
    from cklog.impact.sinks.sources import BoundLogs
    from cklog.inputs.feeds import Feeds
    from cklog.kafka_logs.logs import PartitionLogs
    from cklog.latency.model import Latency, LatencyQuestion
    from cklog.lines.recovery.work import Works
    from cklog.model.actions import RunAction
    from cklog.model.audits import Restored, RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.eventual import EventualCheckpoint, Extent
    from cklog.model.inspection import Inspection
    from cklog.model.lines import RecoveryLine
    from cklog.model.zigzag import AuditResult, ZCycles
    from cklog.protocols.choice.model import ProtocolAdvice, ProtocolQuestion
    from cklog.protocols.failures_over_time import FailuresOverTime
    from cklog.protocols.metrics import MeasuredInspection
    from cklog.queues.over_time.timeline import ExtentOverTime
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.rounds.answer import RoundsAnswer, RoundsQuestion
    from cklog.rounds.sweep import SweepAnswer, SweepQuestion
    from cklog.runbook.model import Step
    from cklog.runbook.shell import Again
    from cklog.runs.records.reading import RecordReader
    from cklog.sink_tables.naming import OpenedTables


class Opened(NamedTuple):
    """What a façade lends a kind: the folder, how it is read, and the other things that may lie beside it.

    `logs_in` opens a folder of Kafka logs, None: none are there; `results_in` opens files of results.
    """

    root: Root
    reading: Reading
    logs_in: Callable[[str], PartitionLogs | None]
    results_in: Callable[[str], TimedResults]


class Kind:
    """A run of some kind. A method is a question; here all are refused, naming what the folder is and what helps.

    Every question raises `NotFound` where this kind of run has no answer to it.
    """

    takes_positions: ClassVar[bool] = False
    """Whether it can be told where sources begin, and what connectors have written."""

    takes_begins: ClassVar[bool] = False
    """Whether it can be told where sources begin, and nothing else."""

    def __init__(self, parser: Parser, opened: Opened) -> None:
        self._name = parser.name
        self._opened = opened
        self._cache = QuestionCache()

    def asked(self, question: Question) -> Question:
        """Return a question with the tables that the run's manifest names, if it names none itself.

        Raises
        ------
        UsageError : an option is about something that runs of this kind do not have
        """
        path = self._opened.root.path
        if question.source_from and not (self.takes_positions or self.takes_begins):
            raise UsageError("--source-from applies to connectors' offsets and CDC sources", f"{path} holds none")
        if question.taken and not self.takes_positions:
            raise UsageError("--taken applies to connectors' offsets", f"{path} holds none")
        if question.sinks and not self.holds_tables:
            raise UsageError("--sink is about lines of Flink and Spark", f"{path} is a {self._name} folder")
        if question.sinks or not self.holds_tables:
            return question
        from cklog.inputs.job_manifest import declared_sinks

        sinks = declared_sinks(self._opened.root)
        return replace(question, sinks=sinks) if sinks else question

    def _sink_tables(self, question: Question) -> OpenedTables:
        """Read the tables that a question names; those in stores are reached as the run is."""
        from cklog.sink_tables.naming import open_tables

        sinks = question.sinks
        return self._cache.get(("tables", sinks), lambda: open_tables(sinks, self._opened.root.store))

    def refuse(self, why: str, hint: str = "cklog inspect says what it holds") -> NoReturn:
        """Refuse a question in one sentence: "PATH: a FORMAT folder …"."""
        raise NotFound(f"{self._opened.root.path}: a {self._name} folder {why}", hint)

    def reading_once(self) -> AbstractContextManager[None]:
        """Keep what one question reads and plans for the others that are asked meanwhile."""
        return self._cache.opened()

    def inspect(self, asked: InspectQuestion) -> Draft[Inspection]:
        """Say what is here, what is damaged, what is missing."""
        self.refuse("has nothing to be told of", "")

    def recovery_line(self, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        """Return the latest consistent line, held against Kafka logs if any are given."""
        return self._whole_line("recovery-line", question, kafka)

    def replay(self, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        """Return the same line, for the tools that will replay from it."""
        return self._whole_line("replay", question, kafka)

    def _whole_line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        """Return the line as the answer of a command, with what nothing was compared with."""
        with self.reading_once():
            found = self._line(command, question, kafka)
        from cklog.lines.unchecked import with_unchecked

        return with_unchecked(found, question, kafka, not self.judges_sources, self.holds_tables, self.binds_sources)

    def _line(self, command: str, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        """Return the line, for `_whole_line`."""
        self.refuse("does not record the messages between operators, so no line can be found")

    def feeds(self, question: Question, most: int) -> Sequence[Feeds]:
        """Return what the jobs here read of others and write for them, as of at most `most` points; here of one.

        A kind that knows of no older points, or not how they are asked for, offers the line alone.
        """
        from cklog.inputs.feeds import Feeds, Input, Point

        sources = self.recovery_line(question, KafkaLogs()).result.sources
        read = {source.source: source.offset if is_integer(source.offset) else None for source in sources}
        return [Feeds("", tuple(map(Input, read)), (), (Point("the line", question.at, read, {}),))]

    def runbook_steps(self, line: RecoveryLine, run: RunAction, again: Again) -> Sequence[Step]:
        """Return what is done about a run of this kind after it was copied; `again` are options to ask once more."""
        self.refuse("has no runbook: nothing is known of what restarts from it", "cklog chain lists what must be read")

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Draft[Verification]:
        """Say whether a line can be restarted from."""
        self.refuse("says nothing of the messages between operators, so no line can be proved")

    def retention(self, policy: RetentionPolicy) -> Draft[RetentionPlan]:
        """Say what may be deleted below PATH, and what must stay."""
        self._refuse_flink_options(policy)
        hint = "retention reads run folders, Spark and Flink checkpoints, chains"
        self.refuse("holds no checkpoints that could be deleted", hint)

    def chain_source(self) -> ChainSource:
        """Return the chains of base and delta checkpoints."""
        self.refuse("has no chains of checkpoints", "cklog recovery-line says where to restart")

    def impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[Impact | SinkImpact | None]:
        """Say what a crash and its recovery do to results, by time or sink by sink; None: no crash is known of.

        Sink by sink it is the impact of a restart from the line, with the findings and the action of that line.
        """
        from cklog.impact.sinks.line_errors import with_line
        from cklog.impact.sinks.model import SinkImpact

        with self.reading_once():
            found = self._impact(asked, question, kafka)
            if not isinstance(found.result, SinkImpact):
                return found
            line = self.recovery_line(question, kafka)
            fitting = line.result.details.get("sink_line")
            if fitting is not None and fitting.at is not None:  # the line that the tables agree with
                name, _, number = fitting.at.rpartition("=")
                found = self._impact(asked, replace(question, at=((name, int(number)),)), kafka)
            return with_line(cast("Draft[SinkImpact]", found), line)

    def _impact(self, asked: ImpactQuestion, question: Question, kafka: KafkaLogs) -> Draft[Impact | SinkImpact | None]:
        """Return the impact, for `impact`."""
        self._refuse_times(asked)
        self._bound_logs(kafka)
        self.refuse("tells of no sink", "cklog recovery-line says what can be restored")

    def annotate(self, asked: ImpactQuestion, to_write: AnnotateQuestion) -> Draft[Impact | None]:
        """Return the impact by time, and the results with their trust written to a new folder."""
        self._refuse_times(asked)
        raise UsageError("--annotate: trust goes by time, and only a system log (system/) tells of a crash's times")

    @property
    def checkpoint_records(self) -> RecordReader:
        """The records of a run whose subtasks checkpoint one by one: what graphs of checkpoints are made from."""
        self.refuse("says nothing of messages")

    def metrics(self) -> Draft[MeasuredInspection]:
        """Say what is here, with the metrics of the checkpointing protocol."""
        from cklog.protocols.metrics import with_metrics

        return with_metrics(self.checkpoint_records)

    def failures_over_time(self, question: Question, times: Sequence[int] | None) -> Draft[FailuresOverTime]:
        """Say what a failure of everything would have cost at `times` in ms; None: at every checkpoint time."""
        from cklog.protocols.failures_over_time import failures_answer

        return failures_answer(self.checkpoint_records, question, times)

    def graph(self, question: Question, asked: GraphQuestion) -> Draft[CheckpointGraph]:
        """Return the checkpoint graph around the line."""
        from cklog.graphs.graph import graph_answer

        return graph_answer(self.checkpoint_records, question, asked)

    def z_cycles(self, question: Question, asked: ZCycleQuestion) -> Draft[ZCycles]:
        """Return every useless checkpoint, with witnesses."""
        from cklog.graphs.z_cycles import z_cycles_answer

        return z_cycles_answer(self.checkpoint_records, question, asked)

    def audit_cic(self, question: Question, limit: int) -> Draft[AuditResult]:
        """Say whether the logged index of a communication-induced protocol rises; `limit` breaches are listed."""
        from cklog.protocols.index_audit import audit_answer

        return audit_answer(self.checkpoint_records, question, limit)

    def rounds(self, asked: RoundsQuestion) -> Draft[RoundsAnswer]:
        """Return coordinated rounds, and what a restart takes."""
        self.refuse("holds no rounds of checkpoints")

    def sweep_rounds(self, asked: SweepQuestion) -> Draft[SweepAnswer]:
        """Say what is left when every domain fails."""
        self.refuse("holds no rounds of checkpoints")

    def extent(self, operator: str, forward: bool, as_of: int | None) -> Draft[Extent]:
        """Say how far back the eventual checkpoint of an operator reaches, and who makes it long."""
        self._no_queues()

    def extent_over_time(self, operator: str, max_extent: int | None, max_replay: int | None) -> Draft[ExtentOverTime]:
        """Say how extent (records) and replay (tuples) went along the whole queue, and where a target was broken."""
        self._no_queues()

    def eventual_checkpoint(self, operator: str, forward: bool, as_of: int | None) -> Draft[EventualCheckpoint]:
        """Return the eventual checkpoint of an operator, ready to load, with the replay filter."""
        self._no_queues()

    def advise_extent(self, operator: str, asked: ExtentQuestion) -> Draft[ExtentAdvice]:
        """Say what Q, U, CI and CP would have given on a queue."""
        self._no_queues()

    def advise_delta(self, asked: DeltaQuestion) -> Draft[DeltaAdvice]:
        """Say what D, the Delta Checkpoint Number, would have given."""
        hint = "D is advised from the records of checkpoints/, or from a store by key"
        self.refuse("has no records of base and delta checkpoints", hint)

    def advise_timing(self, asked: TimingQuestion) -> Draft[TimingAdvice]:
        """Say when to checkpoint, by the sizes of state."""
        self.refuse("holds no state-size samples", "a run folder has them in state/: operator, subtask, time, bytes")

    def latency(self, asked: LatencyQuestion) -> Draft[Latency]:
        """Say how long records took to the sink, and when that was back to normal after a failure."""
        if not asked.results:
            hint = "name a sink's results with --results PATH --event-time FIELD"
            self.refuse("tells no times of messages into sinks", hint)
        from cklog.latency.model import Marks
        from cklog.latency.results import results_latency

        return results_latency(self._opened.results_in(asked.results), self._opened.reading, asked, Marks())

    def audit(self, restored: Restored, question: Question) -> Draft[RestoredAudit]:
        """Say whether what an engine restored was right."""
        self.refuse("has no lines that an engine chooses", "see cklog recovery-line")

    def restored_in(self, log: str) -> Restored:
        """Return the line that an engine's log says was restored last."""
        self.refuse("is written by an engine whose log is not known", "write the line down, and give --restored FILE")

    def advise_protocol(self, asked: ProtocolQuestion) -> Draft[ProtocolAdvice]:
        """Say which checkpointing protocol the job should use."""
        self.refuse("tells nothing of messages between subtasks", "a run folder has them in events/ or checkpoints/")

    def _no_queues(self) -> NoReturn:
        self.refuse("has no output queues", "see cklog inspect")

    def _refuse_flink_options(self, policy: RetentionPolicy) -> None:
        """Of a run that holds no snapshots: options that are about them."""
        if policy.jobs_stopped or policy.job_log:
            path = self._opened.root.path
            raise UsageError("--jobs-stopped and --job-log are about Flink's snapshots", f"{path} holds none")

    def _refuse_snapshot_names(self, asked: InspectQuestion) -> None:
        """Of a run that holds no snapshots: what only they could tell."""
        if asked.uid or asked.job_log:
            path = self._opened.root.path
            raise UsageError("--uid and --job-log are about Flink's snapshots", f"{path} holds none")

    def _refuse_times(self, asked: ImpactQuestion) -> None:
        """Of a run that restarts from a line: options that are about one system's crash."""
        if asked.recovery or asked.checkpoint is not None or asked.restart is not None:
            raise UsageError(
                "--restart, --recovery and --checkpoint: this run restarts from a line of checkpoints",
                "they are about runs with a system log, or with --crash TIME",
            )

    def _bound_logs(self, kafka: KafkaLogs, manifest: Mapping[str, Any] | None = None) -> BoundLogs | None:
        """The Kafka logs that `--kafka` names, with the partition that each source is; None: none were given."""
        logs = self._logs_of(kafka)
        if logs is None:
            return None
        from cklog.impact.sinks.sources import bound_logs

        return bound_logs(logs, kafka, manifest or {})

    def _beside_logs(
        self,
        line: Draft[RecoveryLine],
        kafka: KafkaLogs,
        manifest: Mapping[str, Any] | None = None,
        written: Mapping[str, int] | None = None,
        logs: PartitionLogs | None = None,
    ) -> Draft[RecoveryLine]:
        """The line with what the Kafka logs hold of its ranges, if they were given.

        `written` is as in `beside_logs`; `logs` are the logs, where they are open already.
        """
        logs = logs or self._logs_of(kafka)
        if logs is None:
            return line
        from cklog.lines.kafka_logs import beside_logs, bindings_of

        return beside_logs(line, logs, bindings_of(kafka, manifest or {}), written or {})

    validates = False
    """Whether `inspect --validate` has something to check: the folder is of cklog's own format."""

    judges_sources = False
    """Whether a line of this kind says itself which positions of sources were compared with what is there."""

    binds_sources = False
    """Whether a source of any name may be a partition of Kafka, as `--channel` says; else it is called as that one."""

    holds_tables = False
    """Whether a line of this kind can be held against the tables that the job writes to."""

    def _timed(self, line: Draft[RecoveryLine], works: Works, question: Question) -> Draft[RecoveryLine]:
        """The line with how long a recovery from it takes."""
        from cklog.lines.recovery.time import with_recovery_time

        return with_recovery_time(line, works, question.rates)

    def _logs_of(self, kafka: KafkaLogs) -> PartitionLogs | None:
        if not kafka.folder:
            if kafka != KafkaLogs():
                raise UsageError("--channel and --group need the logs", "say where they are with --kafka FOLDER")
            return None
        logs = self._cache.get(("logs", kafka.folder), lambda: self._opened.logs_in(kafka.folder))
        if logs is None:
            raise NotFound(f"--kafka {kafka.folder}: no segments of a Kafka log below it")
        return logs
