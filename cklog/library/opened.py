"""A run that questions are put to with keywords: `cklog.open(path).recovery_line(failed="join/0")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import fspath
from typing import TYPE_CHECKING, Literal

from cklog.library.advice import Advice
from cklog.library.results import GraphResult, Result
from cklog.library.values import (
    Moment,
    Names,
    Place,
    checkpoint_named,
    kafka_of,
    line_of,
    ms_of,
    names_of,
    question_of,
)
from cklog.model.question import InspectQuestion

if TYPE_CHECKING:
    from cklog.chains.model import ChainAnswer
    from cklog.graphs.selection import GraphKind
    from cklog.impact.model import Impact
    from cklog.impact.sinks.guarantees import Guarantees
    from cklog.impact.sinks.model import SinkImpact
    from cklog.latency.model import Latency
    from cklog.library.documents import ReportResult
    from cklog.model.audits import RestoredAudit
    from cklog.model.checks import Verification
    from cklog.model.inspection import Inspection
    from cklog.model.lines import RecoveryLine
    from cklog.model.recovery_time import RecoveryRates
    from cklog.model.verdict import Answer
    from cklog.model.zigzag import AuditResult, ZCycles
    from cklog.protocols.failures_over_time import FailuresOverTime
    from cklog.protocols.metrics import RunComparison
    from cklog.retention.plan import RetentionPlan
    from cklog.runbook.model import Runbook


class CrashedRun(Advice):
    """Answer questions about one crashed run, as the commands of the same names do; nothing is read before the first.

    Times are datetimes, ISO 8601 or ms since the epoch; `failed` names operators (OP) or subtasks (OP/SUB), "" all or
    what the run itself says. Use it in a `with` statement, or `close` it, where Spark may read.
    """

    @property
    def format(self) -> str:
        """Name the format that was recognised, as `--from` takes it."""
        return self._run.parser.name

    # --- the line

    def recovery_line(
        self,
        *,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        earliest: bool = False,
        explain: bool = False,
        algorithm: Literal["watermark-fixpoint", "rollback-propagation"] = "watermark-fixpoint",
        check_files: bool = True,
        check_contents: bool = False,
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        rates: RecoveryRates | None = None,
        sinks: Mapping[str, str] | None = None,
        source_from: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
    ) -> Result[RecoveryLine]:
        """Find the latest consistent line: where every subtask can restart, and what to replay.

        `at` are checkpoints that it must hold ({"join/0": 3}), `earliest` asks for the earliest such line. `kafka` is
        a folder of a broker's logs, `channels` says which partition a channel is, `group` whose offsets count.
        `rates` tell how long a recovery takes. `sinks` are tables that the job writes to ({"orders": "s3://lake/orders"});
        of connectors `source_from` says where the log of a source begins, `taken` what one has written.
        """
        checked, beside = (check_files, check_contents, rates), (sinks, source_from, taken)
        asked = question_of(failed, as_of, at, earliest, explain, algorithm, "", *checked, *beside)
        return self._told(self._run.recovery_line(asked, kafka_of(kafka, channels, group)))

    def replay(
        self,
        *,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        against: str = "",
        check_files: bool = True,
        check_contents: bool = False,
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        rates: RecoveryRates | None = None,
        sinks: Mapping[str, str] | None = None,
        source_from: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
    ) -> Result[RecoveryLine]:
        """Find the offsets that sources resume at and the ranges to replay; `against` is another snapshot of Flink."""
        checked = (check_files, check_contents)
        beside = (sinks, source_from, taken)
        asked = question_of(failed, as_of, at, False, False, "watermark-fixpoint", against, *checked, rates, *beside)
        return self._told(self._run.replay(asked, kafka_of(kafka, channels, group)))

    def runbook(
        self,
        *,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        check_files: bool = True,
        check_contents: bool = False,
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        sinks: Mapping[str, str] | None = None,
        source_from: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
    ) -> Result[Runbook]:
        """List what to do about the run, step by step: commands, how to see that they worked, how to undo them."""
        checked, beside = (check_files, check_contents, None), (sinks, source_from, taken)
        asked = question_of(failed, as_of, at, False, False, "watermark-fixpoint", "", *checked, *beside)
        return self._told(self._run.runbook(asked, kafka_of(kafka, channels, group)))

    def report(
        self,
        *,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        check_files: bool = True,
        check_contents: bool = False,
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        rates: RecoveryRates | None = None,
        sinks: Mapping[str, str] | None = None,
        source_from: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
    ) -> ReportResult:
        """Put all of this into the one document of an incident: `to_markdown()`, `to_html()`, or `to_dict()`."""
        from cklog.library.documents import report_of

        checked, beside = (check_files, check_contents, rates), (sinks, source_from, taken)
        asked = question_of(failed, as_of, at, False, False, "watermark-fixpoint", "", *checked, *beside)
        return report_of(self._run, self.path, asked, kafka_of(kafka, channels, group), self._spoken)

    def verify(
        self,
        line: Mapping[str, int | None] | Answer[RecoveryLine],
        *,
        maximal: bool = False,
        failed: Names = "",
        as_of: Moment = None,
        check_contents: bool = False,
        sinks: Mapping[str, str] | None = None,
        source_from: Mapping[str, str] | None = None,
    ) -> Result[Verification]:
        """Prove or refute that `line` is consistent and restorable; `maximal`: that none is newer.

        It is an answer of `recovery_line`, or a map ({"join/0": 3}).
        """
        asked = question_of(failed, as_of, check_contents=check_contents, sinks=sinks, source_from=source_from)
        return self._told(self._run.verify(line_of(line), maximal, asked))

    def verify_restored(
        self,
        line: Mapping[str, int | None] | Answer[RecoveryLine] | None = None,
        *,
        from_log: Place = "",
        failed: Names = "",
        as_of: Moment = None,
    ) -> Result[RestoredAudit]:
        """Say whether the line that an engine restored was right; without `line`, the one in Flink's `from_log`."""
        from cklog.model.audits import Restored

        restored = self._run.restored_in(fspath(from_log)) if line is None else Restored(line_of(line))
        return self._told(self._run.audit(restored, question_of(failed, as_of)))

    def failures_over_time(
        self, times: Iterable[Moment] | None = None, *, as_of: Moment = None
    ) -> Result[FailuresOverTime]:
        """Say what a failure of everything would have cost at `times`; None: at every checkpoint's time."""
        chosen = None if times is None else tuple(ms for ms in map(ms_of, times) if ms is not None)
        return self._told(self._run.failures_over_time(question_of(as_of=as_of), chosen))

    # --- what is there

    def inspect(
        self,
        *,
        metrics: bool = False,
        uid: str = "",
        job_log: Place = "",
        check_contents: bool = False,
        validate: bool = False,
    ) -> Result[Inspection]:
        """Say what is here, what is damaged, what is missing; of several runs, which they are."""
        asked = InspectQuestion(metrics, uid, fspath(job_log), check_contents, validate)
        return self._told(self._run.inspect(asked))

    def retention(
        self,
        *,
        keep: int | None = None,
        window_ms: int | None = None,
        now: Moment = None,
        pins: Names = (),
        marked: Names = (),
        jobs_stopped: bool = False,
        job_log: Place = "",
        drop_broken: bool = False,
    ) -> Result[RetentionPlan]:
        """Plan what may be deleted and what must stay; nothing is deleted.

        `keep` so many of the newest, and those taken in `window_ms` before `now`; `pins` are checkpoints to keep.
        """
        from cklog.retention.policy import RetentionPolicy

        policy = RetentionPolicy(
            keep=keep,
            window=window_ms,
            now=ms_of(now),
            pins=names_of(pins),
            marked=names_of(marked),
            jobs_stopped=jobs_stopped,
            job_log=fspath(job_log),
            drop_broken=drop_broken,
        )
        return self._told(self._run.retention(policy))

    def chain(
        self,
        *,
        operator: str = "",
        store: str | None = None,
        checkpoint: int | None = None,
        read_rate: float | None = None,
    ) -> Result[ChainAnswer]:
        """Say which chains of base and delta checkpoints are whole, and what must be read to restore one."""
        from cklog.chains.answer import ChainQuestion

        return self._told(self._run.chain(ChainQuestion(operator, store, checkpoint, read_rate)))

    # --- graphs

    def graph(
        self,
        *,
        kind: GraphKind = "checkpoint",
        last: int | None = None,
        around: str = "",
        steps: int = 1,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
    ) -> GraphResult:
        """Make the checkpoint graph, or the rollback-dependency graph, with the line through it.

        `last` takes so many checkpoints of every subtask, `around` ("join/0=3") what is within `steps` of one.
        """
        from cklog.graphs.selection import GraphQuestion

        near = checkpoint_named(around) if around else None
        asked, line = GraphQuestion(kind, last, near, steps), question_of(failed, as_of, at)
        found = self._run.graph(line, asked)
        parts = (found.command, found.verdict, found.exit_code, found.inputs, found.findings, found.result)
        return GraphResult(*parts, self._spoken(), asked=asked, again=lambda other: self._run.graph(line, other))

    def z_cycles(
        self, *, limit: int = 100, only: str = "", failed: Names = "", as_of: Moment = None
    ) -> Result[ZCycles]:
        """Find every useless checkpoint; the first `limit` (0: all), or `only` one ("join/0=3"), with a witness."""
        from cklog.graphs.z_cycles import ZCycleQuestion

        asked = ZCycleQuestion(limit, checkpoint_named(only) if only else None)
        return self._told(self._run.z_cycles(question_of(failed, as_of), asked))

    def audit_cic(self, *, limit: int = 100, as_of: Moment = None) -> Result[AuditResult]:
        """Check that the logged index of a communication-induced protocol rises; `limit` breaches are listed."""
        return self._told(self._run.audit_cic(question_of(as_of=as_of), limit))

    def compare(self, *others: CrashedRun) -> Result[RunComparison]:
        """Put the metrics of this run and of `others` side by side."""
        return self._told(self._run.compare(self.path, {other.path: other._run for other in others}))

    # --- what a crash does

    def impact(
        self,
        *,
        crash: Moment = None,
        restart: Moment = None,
        recovery: str = "",
        checkpoint: Moment = None,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        against: str = "",
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        sinks: Mapping[str, str] | None = None,
    ) -> Result[Impact | SinkImpact | None]:
        """Say which results a crash and its recovery leave missing, wrong, doubled or in doubt.

        By time, with a system log or `crash`; else by the line that the run restarts from, sink by sink.
        """
        from cklog.impact.answer import UNKNOWN_CHECKPOINT, ImpactQuestion

        known = UNKNOWN_CHECKPOINT if checkpoint == UNKNOWN_CHECKPOINT else ms_of(checkpoint)
        asked = ImpactQuestion(ms_of(crash), ms_of(restart), recovery, known)
        line, logs = question_of(failed, as_of, at, against=against, sinks=sinks), kafka_of(kafka, channels, group)
        return self._told(self._run.impact(asked, line, logs))

    def guarantees(
        self,
        *,
        failed: Names = "",
        as_of: Moment = None,
        at: Mapping[str, int] | None = None,
        against: str = "",
        kafka: Place = "",
        channels: Mapping[str, str] | None = None,
        group: str = "",
        sinks: Mapping[str, str] | None = None,
    ) -> Result[Guarantees]:
        """Say which guarantee each sink can keep, and what the next one would need."""
        from cklog.impact.answer import ImpactQuestion

        line, logs = question_of(failed, as_of, at, against=against, sinks=sinks), kafka_of(kafka, channels, group)
        return self._told(self._run.guarantees(ImpactQuestion(), line, logs))

    def annotate(
        self,
        target: Place,
        *,
        crash: Moment = None,
        restart: Moment = None,
        recovery: str = "",
        results: Place = "",
        column: str = "",
        output: str = "",
    ) -> Result[Impact | None]:
        """Find the impact by a system log, and write the results with their trust to the new folder `target`."""
        from cklog.impact.annotate import AnnotateQuestion
        from cklog.impact.answer import ImpactQuestion

        asked = ImpactQuestion(ms_of(crash), ms_of(restart), recovery)
        return self._told(self._run.annotate(asked, AnnotateQuestion(fspath(target), fspath(results), column, output)))

    def latency(
        self,
        *,
        results: Place = "",
        event_time: str = "",
        time: str = "",
        operator: str = "",
        step_ms: int = 1000,
        failed_at: Moment = None,
        factor: float = 1.5,
        steps: int = 3,
    ) -> Result[Latency]:
        """Say how long records took to the sink, and when that was back to normal after a failure."""
        from cklog.latency.model import LatencyQuestion

        at = ms_of(failed_at)
        asked = LatencyQuestion(fspath(results), event_time, time, operator, step_ms, at, factor, steps)
        return self._told(self._run.latency(asked))
