"""The façade: `open_run(path)` recognises what lies there, and answers questions about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from cklog.budgets import Budgets, use
from cklog.engine.choosing import Engines, require_one_place
from cklog.engine.reading import Reading
from cklog.engine.scan import Engine
from cklog.errors import CorruptInput, NotFound, Unreadable, UsageError
from cklog.inputs.offers import Parser
from cklog.inputs.trouble import refuse_unread, with_trouble
from cklog.kinds.discovery import several_runs
from cklog.kinds.enclosing import RunPlace, run_place
from cklog.kinds.kind import Kind, Opened
from cklog.kinds.opening import ChosenRun, choose, holds_run, kind_of, logs_below, runs_of
from cklog.local_files import text_name
from cklog.model.options import Options as Options
from cklog.model.question import InspectQuestion, KafkaLogs, Question
from cklog.model.unchecked import Unchecked
from cklog.model.verdict import Answer, Draft, conclude
from cklog.storage import Root
from cklog.stores.store import store_of

if TYPE_CHECKING:  # types of questions and answers: only the one that is asked is loaded
    from cklog.advise.delta.answer import DeltaAdvice, DeltaQuestion
    from cklog.advise.extent.answer import ExtentAdvice
    from cklog.advise.extent.grid import ExtentQuestion
    from cklog.advise.timing.answer import TimingAdvice, TimingQuestion
    from cklog.chains.answer import ChainQuestion
    from cklog.chains.model import ChainAnswer
    from cklog.graphs.graph import CheckpointGraph
    from cklog.graphs.selection import GraphQuestion
    from cklog.graphs.z_cycles import ZCycleQuestion
    from cklog.impact.annotate import AnnotateQuestion, TimedResults
    from cklog.impact.answer import ImpactQuestion
    from cklog.impact.model import Impact
    from cklog.impact.sinks.guarantees import Guarantees
    from cklog.impact.sinks.model import SinkImpact
    from cklog.kafka_logs.logs import PartitionLogs
    from cklog.latency.model import Latency, LatencyQuestion
    from cklog.model.audits import Restored, RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.eventual import EventualCheckpoint, Extent
    from cklog.model.inspection import Inspection
    from cklog.model.lines import RecoveryLine
    from cklog.model.zigzag import AuditResult, ZCycles
    from cklog.protocols.choice.model import ProtocolAdvice, ProtocolQuestion
    from cklog.protocols.failures_over_time import FailuresOverTime
    from cklog.protocols.metrics import RunComparison
    from cklog.queues.over_time.timeline import ExtentOverTime
    from cklog.retention.plan import RetentionPlan
    from cklog.retention.policy import RetentionPolicy
    from cklog.rounds.answer import RoundsAnswer, RoundsQuestion
    from cklog.rounds.sweep import SweepAnswer, SweepQuestion
    from cklog.runbook.model import Runbook
    from cklog.sweep.model import ScanAnswer, ScanQuestion

R = TypeVar("R")


class Run(AbstractContextManager["Run"]):
    """One crashed run: its parser, its kind, and the engine that scans it. Close it to stop a Spark session.

    `spoken` are lines for stderr: which engine was taken, how much of a log was read.
    """

    def __init__(self, root: Root, options: Options, beside: bool = True) -> None:
        self._asked = root
        self._beside = beside
        self._options = options
        self.spoken: list[str] = []
        self._rests_on: tuple[Question, KafkaLogs] | None = None
        self._engines = Engines(options, self.spoken.append)

    @cached_property
    def _place(self) -> RunPlace:
        """Where the run is that PATH names, or is a part of."""
        return run_place(self._asked, self._options.source, bool(self._options.run), self._beside)

    @property
    def _root(self) -> Root:
        return self._place.root

    @cached_property
    def _choice(self) -> ChosenRun:
        choice = choose(self._root, self._options.source, self._options.run)
        self.spoken += [note for note in (*self._place.notes, choice.note) if note]
        return choice

    @property
    def parser(self) -> Parser:
        """The parser of the run; `cklog.kinds.opening.choose` says what it raises."""
        return self._choice.parser

    @property
    def root(self) -> Root:
        """The folder of the run, which may lie below PATH."""
        return self._choice.root

    @property
    def below_path(self) -> str:
        """The folder of the run, relative to PATH: "" is PATH itself."""
        return "" if self._place.around is not None else self._root.inside(self.root.path) or ""

    @cached_property
    def kind(self) -> Kind:
        """What answers for this kind of run."""
        return kind_of(self.parser, Opened(self._choice.root, self._reading, self.logs_in, self._results_in))

    @property
    def _reading(self) -> Reading:
        return Reading(lambda size: self.engine_for(size), self._options.split_bytes, self._options.strict)

    def unchecked(self) -> tuple[Unchecked, ...]:
        """Return what the line that the last answer rests on takes for granted; () if that answer rests on no line."""
        if self._rests_on is None:
            return ()
        question, kafka = self._rests_on
        try:
            line = self.kind.recovery_line(self.kind.asked(question), kafka)
        except NotFound:  # this kind of run has no line
            return ()
        return tuple(row for run in line.result.runs for row in run.unchecked)

    def recovery_line(self, question: Question, kafka: KafkaLogs = KafkaLogs()) -> Answer[RecoveryLine]:
        """Find the latest consistent line; with `kafka`, what the logs hold of its ranges."""
        return self._concluded(self.kind.recovery_line(self.kind.asked(question), kafka))

    def joint_line(
        self, name: str, others: Mapping[str, Run], question: Question, kafka: KafkaLogs = KafkaLogs()
    ) -> Answer[RecoveryLine]:
        """Find the newest line of this run, called `name`, and of others that it feeds or is fed by, as one."""
        from cklog.joint.answer import Member, joint_draft

        alone = Question(check_files=question.check_files, check_contents=question.check_contents)
        asked = {name: (self, question), **{other: (run, alone) for other, run in others.items()}}
        self.reads_with(*others.values())
        members = [Member(called, run.root, run.kind, run.kind.asked(one)) for called, (run, one) in asked.items()]
        return self._concluded(joint_draft(members, self.logs_in(kafka.folder) if kafka.folder else None))

    def replay(self, question: Question, kafka: KafkaLogs = KafkaLogs()) -> Answer[RecoveryLine]:
        """Find offsets and ranges to replay from the latest consistent line."""
        return self._concluded(self.kind.replay(self.kind.asked(question), kafka))

    def runbook(self, question: Question, kafka: KafkaLogs = KafkaLogs()) -> Answer[Runbook]:
        """List what to do, step by step: stop, copy, check, restore, verify, and how each is undone."""
        return self.runbook_after(self.recovery_line(question, kafka), question, kafka)

    def runbook_after(self, line: Answer[RecoveryLine], question: Question, kafka: KafkaLogs) -> Answer[Runbook]:
        """List the same for a line that was found for this question."""
        from cklog.runbook.frame import runbook_answer
        from cklog.runbook.shell import asked_again

        again = asked_again(question, kafka, self._options.chosen_by())
        return runbook_answer(line, self._root.path, again, self.kind.runbook_steps)

    def chosen_by(self) -> tuple[str, ...]:
        """Return the options that chose the run and how it is read, as words of a command line."""
        return tuple(word for pair in self._options.chosen_by() for word in pair if word)

    def audit(self, restored: Restored, question: Question) -> Answer[RestoredAudit]:
        """Say whether the line that an engine restored was right, and what it did to messages."""
        return self._concluded(self.kind.audit(restored, question))

    def restored_in(self, log: str) -> Restored:
        """Return the line that an engine's log says was restored last."""
        return self.kind.restored_in(log)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Answer[Verification]:
        """Prove or refute `line` from the input."""
        self._rests_on = question, KafkaLogs()
        return self._concluded(self.kind.verify(line, maximal, self.kind.asked(question)))

    def inspect(self, asked: InspectQuestion = InspectQuestion()) -> Answer[Inspection]:
        """Say what is here, what is damaged, what is missing; of several runs below PATH, which they are."""
        runs = [] if self._options.run else runs_of(self._root, self._options.source)
        if len(runs) > 1 and asked.validate:
            raise UsageError(f"--validate: {len(runs)} runs lie here", "choose one with --run NAME, or make it PATH")
        if len(runs) > 1:
            return self._concluded(several_runs(runs))
        if asked.validate and (asked.metrics or not self.kind.validates):
            raise UsageError("--validate checks a run folder of cklog's own format, without --metrics")
        return self._concluded(self.kind.metrics()) if asked.metrics else self._concluded(self.kind.inspect(asked))

    def failures_over_time(self, question: Question, times: Sequence[int] | None) -> Answer[FailuresOverTime]:
        """Say what a failure of everything would have cost at `times` in ms; None: at every checkpoint time."""
        return self._concluded(self.kind.failures_over_time(question, times))

    def retention(self, policy: RetentionPolicy) -> Answer[RetentionPlan]:
        """Plan what may be deleted below PATH, and what must stay.

        Raises
        ------
        UsageError : PATH is only a part of a run, so that more would be planned for than was named
        """
        named = self._place.named
        if named is not self._asked:
            hint = f"cklog retention {shlex.quote(named.path)}"
            raise UsageError(f"{self._asked.path} is only a part of the run {named.path}: name that", hint)
        if self._place.around is not None:  # of what lies beside PATH nothing is planned to be deleted
            alone = Run(self._asked, self._options, beside=False)
            alone._engines, alone.spoken = self._engines, self.spoken
            return alone.retention(policy)
        from cklog.retention.linked import with_linked
        from cklog.retention.unknown import with_unknown

        self._rests_on = Question(), KafkaLogs()
        return self._concluded(with_unknown(with_linked(self.kind.retention(policy), self.root)))

    def graph(self, question: Question, asked: GraphQuestion) -> Answer[CheckpointGraph]:
        """Draw the checkpoint graph around the line."""
        return self._concluded(self.kind.graph(question, asked))

    def z_cycles(self, question: Question, asked: ZCycleQuestion) -> Answer[ZCycles]:
        """Find every useless checkpoint, with witnesses."""
        return self._concluded(self.kind.z_cycles(question, asked))

    def audit_cic(self, question: Question, limit: int) -> Answer[AuditResult]:
        """Check that the logged index of a communication-induced protocol rises; `limit` breaches are listed."""
        return self._concluded(self.kind.audit_cic(question, limit))

    def extent(self, operator: str, forward: bool = False, as_of: int | None = None) -> Answer[Extent]:
        """Measure how far back the eventual checkpoint of an operator reaches, and who makes it long."""
        return self._concluded(self.kind.extent(operator, forward or self._options.engine == "spark", as_of))

    def extent_over_time(
        self, operator: str, max_extent: int | None = None, max_replay: int | None = None
    ) -> Answer[ExtentOverTime]:
        """Follow extent (records) and replay (tuples) along the whole log, and where a target was broken."""
        return self._concluded(self.kind.extent_over_time(operator, max_extent, max_replay))

    def eventual_checkpoint(
        self, operator: str, forward: bool = False, as_of: int | None = None
    ) -> Answer[EventualCheckpoint]:
        """Reconstruct the eventual checkpoint of an operator, ready to load, with the replay filter."""
        whole = forward or self._options.engine == "spark"
        return self._concluded(self.kind.eventual_checkpoint(operator, whole, as_of))

    def advise_extent(self, operator: str, asked: ExtentQuestion) -> Answer[ExtentAdvice]:
        """Say what Q, U, CI and CP would have given on this log."""
        return self._concluded(self.kind.advise_extent(operator, asked))

    def advise_delta(self, asked: DeltaQuestion) -> Answer[DeltaAdvice]:
        """Say what D, the Delta Checkpoint Number, would have given."""
        return self._concluded(self.kind.advise_delta(asked))

    def advise_timing(self, asked: TimingQuestion) -> Answer[TimingAdvice]:
        """Say when to checkpoint, by the sizes of state."""
        return self._concluded(self.kind.advise_timing(asked))

    def advise_protocol(self, asked: ProtocolQuestion) -> Answer[ProtocolAdvice]:
        """Say which checkpointing protocol the job should use."""
        return self._concluded(self.kind.advise_protocol(asked))

    def rounds(self, asked: RoundsQuestion) -> Answer[RoundsAnswer]:
        """List coordinated rounds, and what a restart takes."""
        return self._concluded(self.kind.rounds(asked))

    def sweep_rounds(self, asked: SweepQuestion) -> Answer[SweepAnswer]:
        """Say what is left when every node, rack or pair of nodes fails."""
        return self._concluded(self.kind.sweep_rounds(asked))

    def chain(self, asked: ChainQuestion) -> Answer[ChainAnswer]:
        """Say what of base and delta checkpoints can be restored, and what must be read for it."""
        from cklog.chains.answer import chain_answer

        return self._concluded(chain_answer(self.kind.chain_source(), asked))

    def impact(
        self, asked: ImpactQuestion, question: Question = Question(), kafka: KafkaLogs = KafkaLogs()
    ) -> Answer[Impact | SinkImpact | None]:
        """Say what a crash and its recovery do to results: by a system log, or sink by sink of a distributed run."""
        self._rests_on = question, kafka
        return self._concluded(self.kind.impact(asked, self.kind.asked(question), kafka))

    def guarantees(
        self, asked: ImpactQuestion, question: Question = Question(), kafka: KafkaLogs = KafkaLogs()
    ) -> Answer[Guarantees]:
        """Say the same of guarantees alone: what can be kept, and what the next one would need."""
        from cklog.impact.sinks.guarantees import guarantees_only

        self._rests_on = question, kafka
        return self._concluded(guarantees_only(self.kind.impact(asked, self.kind.asked(question), kafka)))

    def annotate(self, asked: ImpactQuestion, to_write: AnnotateQuestion) -> Answer[Impact | None]:
        """Find the impact by a system log, and write the results with their trust to a new folder."""
        self._rests_on = Question(), KafkaLogs()
        return self._concluded(self.kind.annotate(asked, to_write))

    def latency(self, asked: LatencyQuestion) -> Answer[Latency]:
        """Say how long records took to the sink, and when that was back to normal after a failure.

        Results that the question names are answered for without a run at PATH, too.
        """
        if not asked.results or holds_run(self._root, self._options.source, self._options.run):
            return self._concluded(self.kind.latency(asked))
        from cklog.latency.model import Marks
        from cklog.latency.results import results_latency

        self.spoken.append(f"{self._root.path}: no run is here; the results are answered for alone")
        return self._concluded(results_latency(self._results_in(asked.results), self._reading, asked, Marks()))

    def compare(self, name: str, others: Mapping[str, Run]) -> Answer[RunComparison]:
        """Put the metrics of this run, called `name`, and of others side by side."""
        from cklog.protocols.metrics import compared

        self.reads_with(*others.values())
        runs = {name: self, **others}
        return self._concluded(compared({name: run.kind.checkpoint_records for name, run in runs.items()}))

    def scan(self, asked: ScanQuestion, others: Sequence[Run] = ()) -> Answer[ScanAnswer]:
        """Say of every run below this folder, and below those of others, what to do.

        Raises
        ------
        UsageError : one of several runs was chosen
        """
        from cklog.sweep.answer import scan_answer
        from cklog.sweep.asking import HowToAsk
        from cklog.sweep.tasks import read_runs

        o = self._options
        if o.run:
            raise UsageError("--run chooses one run, and scan tells of all", f"cklog recovery-line --run {o.run}")
        how = HowToAsk(o.split_bytes, o.strict, o.max_memory, asked.seconds, o.io_threads)
        roots = [run._asked if run._place.named is not run._asked else run._root for run in (self, *others)]
        return scan_answer(roots, asked, lambda jobs: read_runs(jobs, how, self._engines), o.source)

    def reads_with(self, *others: Run) -> None:
        """Note that the next answer reads other runs, too: an engine that they use counts as used."""
        self._engines.others = [run._engines for run in others]

    def notes(self) -> list[str]:
        """Return the lines for stderr: `spoken`, and whether `--engine spark` had no effect."""
        return [*self.spoken, *self._engines.unused()]

    def logs_in(self, folder: str) -> PartitionLogs | None:
        """Open the partitions of a folder of Kafka logs; None: it holds none."""
        root = self._folder(folder)
        root.require()
        return logs_below(root, self._reading)

    def _results_in(self, path: str) -> TimedResults:
        """The parser of result files."""
        from importlib import import_module

        if self._root.leads_out(path) and self._root.inside(path) is not None:
            raise Unreadable(f"{path}: it is a link that is not followed", "--follow-links, if it belongs to the run")
        found: TimedResults = import_module("cklog.parsers.results.files").ResultFiles(self._folder(path, maps=()))
        return found

    def _folder(self, path: str, **other: Any) -> Root:
        """Return a folder as a root; what was listed with PATH is not listed again, whatever is written meanwhile."""
        inside = self._root.inside(path)
        if not inside:
            return replace(self._root, path=path, **other) if inside is None or other else self._root
        return self._root.below(inside, path=path, **other)

    def _concluded(self, draft: Draft[R]) -> Answer[R]:
        """Conclude from what a kind found, once, and keep what there is to say on stderr."""
        self.spoken += draft.spoken
        return conclude(with_trouble(draft, self._root), self._options.strict)

    def engine_for(self, size: int) -> Engine:
        """Return the engine for a scan of `size` bytes, as they were listed."""
        return self._engines.for_bytes(size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engines.close()  # a question after this one starts another
        if isinstance(error, (CorruptInput, NotFound, OSError)):
            refuse_unread(self._root)  # whatever it looked like: nothing is known of what was not read


def open_run(path: str, options: Options | None = None) -> Run:
    """Open a run by folder or URI; nothing is read before the first question.

    >>> open_run("no/such/folder").parser
    Traceback (most recent call last):
        ...
    cklog.errors.NotFound: no/such/folder: no such folder
    """
    options = options or Options()
    require_one_place(options)
    use(Budgets(options.max_memory))
    store = store_of(options.store, (path, *(new for _, new in options.maps)))
    return Run(Root(text_name(path), options.maps, follow_links=options.follow_links, store=store), options)
