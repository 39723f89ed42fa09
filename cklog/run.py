"""The façade: `cklog.open(path)` recognises what lies there and answers questions about it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any

from cklog.engine import Engine
from cklog.errors import NotFound, UsageError
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Answer
from cklog.storage import Root

PARSERS: Mapping[str, str] = {
    "native": "cklog.parsers.native.parser:Native",
    "spark-checkpoint": "cklog.parsers.spark.parser:SparkCheckpoint",
    "flink": "cklog.parsers.flink.parser:Flink",
    "kafka-streams": "cklog.parsers.kafka.streams:KafkaStreams",
    "checkmate": "cklog.parsers.checkmate.parser:CheckMate",
    "kafka": "cklog.parsers.kafka.parser:Kafka",
    "patent-store": "cklog.parsers.patent.parser:PatentStore",
}
"""The parsers of this distribution, known without looking at installed packages; others register theirs in the
entry-point group `cklog.parsers`."""

SPARK_ABOVE = 512 << 20
SPLIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """How to read: what every command takes.

    `spark_above` and `split_bytes` in bytes; `maps` as (old prefix, new prefix); `source` forces a format.
    """

    engine: str = "auto"
    spark_above: int = SPARK_ABOVE
    master: str = ""
    remote: str = ""
    spark_conf: tuple[tuple[str, str], ...] = ()
    split_bytes: int = SPLIT_BYTES
    maps: tuple[tuple[str, str], ...] = ()
    source: str = ""
    strict: bool = False
    verbose: bool = False


class Run(AbstractContextManager["Run"]):
    """One crashed run: its parser, and the engine that scans it. Close it to stop a Spark session."""

    def __init__(self, root: Root, options: Options) -> None:
        self._root = root
        self._options = options
        self._engines: dict[str, Engine] = {}
        self.spoken: list[str] = []

    @cached_property
    def parser(self) -> Any:
        """The parser that recognises the folder, or the one that `--from` names."""
        self._root.require()
        known = {**_registered(), **PARSERS} if self._options.source not in PARSERS else dict(PARSERS)
        if self._options.source:
            if self._options.source not in known:
                raise UsageError(f"--from {self._options.source}: not one of {', '.join(sorted(known))}")
            return _load(known[self._options.source])(self._root)
        for name in [*PARSERS, *sorted(set(known) - set(PARSERS))]:
            parser = _load(known[name])
            if parser.recognises(self._root):
                return parser(self._root)
        raise NotFound(
            f"{self._root.path}: nothing here that cklog knows",
            "a run folder holds checkpoints/, a Spark checkpoint offsets/ and commits/, a Flink one chk-<n>/_metadata, "
            "a Kafka log segments of 20 digits",
        )

    @cached_property
    def analyses(self) -> Any:
        """The analyses for this kind of run: by what its parser offers, an `EventLog` if nothing else."""
        if hasattr(self.parser, "plan"):
            from cklog.runs.batches.analyses import BatchLog

            return BatchLog(self.parser, self._options.strict)
        if hasattr(self.parser, "snapshots"):
            from cklog.runs.snapshots.analyses import SnapshotLog

            return SnapshotLog(self.parser, self.engine_for, self._options.strict)
        if hasattr(self.parser, "partitions"):
            from cklog.runs.partitions.analyses import PartitionLog

            return PartitionLog(self.parser, self.engine_for, self._options.split_bytes, self._options.strict)
        if hasattr(self.parser, "stores"):
            return self._restores(KafkaLogs())
        if not hasattr(self.parser, "bytes_of"):
            from cklog.runs.pieces.analyses import PieceLog

            return PieceLog(self.parser, self._options.strict)
        from cklog.runs.records.analyses import EventLog

        return EventLog(self.parser, self.engine_for, self._options.split_bytes, self._options.strict)

    @cached_property
    def lines(self) -> Any:
        """The analyses of recovery lines: with output queues, a `Cascade` over both kinds of evidence."""
        if not (hasattr(self.parser, "queues") and self.parser.has("outputs")):
            return self.analyses
        from cklog.runs.records.cascade import Cascade

        return Cascade(self.eventual, self.analyses, self.parser.manifest, self._options.strict)

    def recovery_line(self, question: Any, kafka: KafkaLogs = KafkaLogs()) -> Answer:
        """The latest consistent line; `question` is a `cklog.model.question.Question`."""
        if hasattr(self.parser, "stores"):
            answer: Answer = self._restores(kafka).recovery_line(question)
            return answer
        return self._beside_logs(self.lines.recovery_line(question), kafka)

    def failures_over_time(self, question: Any, times: Any) -> Answer:
        """What a failure of everything would have cost at `times` in ms; None: at every checkpoint time."""
        from cklog.protocols.failures_over_time import failures_answer

        return failures_answer(self.checkpointed, question, times)

    def replay(self, question: Any, kafka: KafkaLogs = KafkaLogs()) -> Answer:
        """Offsets and ranges to replay from the latest consistent line."""
        if hasattr(self.parser, "stores"):
            answer: Answer = self._restores(kafka).replay(question)
            return answer
        return self._beside_logs(self.lines.replay(question), kafka)

    def _restores(self, kafka: KafkaLogs) -> Any:
        """The analyses of state folders, with the changelogs that `--kafka` or PATH itself holds."""
        from cklog.runs.stores.analyses import StoreRestores

        if kafka.channels or kafka.group:
            raise UsageError("--channel and --group: a store is restored from the changelog that its entry names")
        here = _load(PARSERS["kafka"]).recognises(self._root)
        logs = self.logs_in(kafka.folder or self._root.path) if kafka.folder or here else None
        return StoreRestores(self.parser, logs, self._options.strict)

    def _beside_logs(self, answer: Answer, kafka: KafkaLogs) -> Answer:
        """The answer with what the Kafka logs hold of its ranges, if they were given."""
        if not kafka.folder:
            if kafka != KafkaLogs():
                raise UsageError("--channel and --group need the logs", "say where they are with --kafka FOLDER")
            return answer
        from cklog.lines.kafka_logs import beside_logs, bindings_of

        manifest = self.parser.manifest if hasattr(self.parser, "manifest") else {}
        return beside_logs(answer, self.logs_in(kafka.folder), bindings_of(kafka, manifest), self._options.strict)

    def logs_in(self, folder: str) -> Any:
        """The partitions of a folder of Kafka logs: a `cklog.kafka_logs.logs.PartitionLogs`."""
        from cklog.kafka_logs.logs import PartitionLogs

        root = Root(folder, self._options.maps)
        root.require()
        parser = _load(PARSERS["kafka"])
        if not parser.recognises(root):
            raise NotFound(f"--kafka {folder}: no segments of a Kafka log below it")
        return PartitionLogs(parser(root), self.engine_for, self._options.split_bytes)

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Any) -> Answer:
        """Prove or refute `line` from the input."""
        answer: Answer = self.analyses.verify(line, maximal, question)
        return answer

    def inspect(self, metrics: bool = False, uid: str = "", job_log: str = "") -> Answer:
        """What is here, what is damaged, what is missing; with the metrics of the checkpointing protocol, if asked.

        Of Flink's snapshots: which operator has a `uid`, and what a job manager's log says of the checkpoints.
        """
        if hasattr(self.parser, "snapshots"):
            answer: Answer = self.analyses.inspect({"uid": uid, "job_log": job_log})
            return answer
        if uid or job_log:
            raise UsageError("--uid and --job-log are about Flink's snapshots", f"{self._root.path} holds none")
        if metrics:
            from cklog.protocols.metrics import with_metrics

            return with_metrics(self.checkpointed, self.checkpointed.inspect())
        with_queues = hasattr(self.parser, "queues") and self.parser.has("outputs")
        answer = self.analyses.inspect(self.eventual.inspect()) if with_queues else self.analyses.inspect()
        return answer

    def retention(self, policy: Any = None) -> Answer:
        """What may be deleted below PATH, and what must stay."""
        from cklog.retention.policy import RetentionPolicy
        from cklog.runs.retention import retention_answer

        return retention_answer(
            self.parser, self._root, lambda: self.analyses, policy or RetentionPolicy(), self._options.strict
        )

    @property
    def checkpointed(self) -> Any:
        """The `EventLog` of a run whose subtasks checkpoint one by one: what graphs of checkpoints are made from.

        Raises
        ------
        NotFound : a micro-batch query restarts as a whole; operators with output queues have no checkpoints
        """
        hint = "cklog recovery-line says where to restart"
        if hasattr(self.parser, "plan"):
            message = f"a {self.parser.name} folder has no checkpoint graph: the query restarts as a whole"
            raise NotFound(f"{self._root.path}: {message}", hint)
        if not hasattr(self.parser, "has"):
            told = f"{self._root.path}: a {self.parser.name} folder says nothing of messages"
            raise NotFound(told, "cklog inspect says what it holds")
        if self.parser.has("outputs"):
            message = "operators with output queues restart without checkpoints, and are in no graph of them"
            raise NotFound(f"{self._root.path}: {message}", hint)
        return self.analyses

    def graph(self, question: Any, asked: Any) -> Answer:
        """The checkpoint graph around the line; `asked` is a `cklog.graphs.selection.GraphQuestion`."""
        from cklog.graphs.graph import graph_answer

        return graph_answer(self.checkpointed, question, asked)

    def z_cycles(self, question: Any, asked: Any) -> Answer:
        """Every useless checkpoint, with witnesses; `asked` is a `cklog.graphs.z_cycles.ZCycleQuestion`."""
        from cklog.graphs.z_cycles import z_cycles_answer

        return z_cycles_answer(self.checkpointed, question, asked)

    def audit_cic(self, question: Any, limit: int) -> Answer:
        """Whether the logged index of a communication-induced protocol rises as it must; `limit` breaches told."""
        from cklog.protocols.index_audit import audit_answer

        return audit_answer(self.checkpointed, question, limit)

    @cached_property
    def eventual(self) -> Any:
        """The analyses of output queues: `cklog.queues.analyses.EventualLog`."""
        from cklog.queues.analyses import EventualLog

        if not hasattr(self.parser, "queues"):
            raise NotFound(f"{self._root.path}: a {self.parser.name} folder has no output queues", "see cklog inspect")
        o = self._options
        return EventualLog(self.parser.queues(), self.parser.manifest, self.engine_for, o.split_bytes, o.strict)

    def extent(self, operator: str, forward: bool = False, as_of: int | None = None) -> Answer:
        """How far back the eventual checkpoint of an operator reaches, and who makes it long."""
        return self._of_queues(self.eventual.extent(operator, forward or self._options.engine == "spark", as_of))

    def extent_over_time(self, operator: str, max_extent: int | None = None, max_replay: int | None = None) -> Answer:
        """How extent (records) and replay (tuples) went along the whole log, and where a target was broken."""
        if self._options.engine == "spark":
            self.spoken.append("extents over time go from record to record: read in this process, not on Spark")
        return self._of_queues(self.eventual.over_time(operator, max_extent, max_replay))

    def eventual_checkpoint(self, operator: str, forward: bool = False, as_of: int | None = None) -> Answer:
        """The eventual checkpoint of an operator, ready to load, with the replay filter."""
        whole = forward or self._options.engine == "spark"
        return self._of_queues(self.eventual.eventual_checkpoint(operator, whole, as_of))

    def advise_extent(self, operator: str, asked: Any) -> Answer:
        """What Q, U, CI and CP would have given on this log; `asked` is a `cklog.advise.extent.grid.ExtentQuestion`."""
        from cklog.advise.extent.answer import extent_advice

        return self._of_queues(extent_advice(self.eventual, operator, asked))

    def advise_delta(self, asked: Any) -> Answer:
        """What D, the Delta Checkpoint Number, would have given; `asked`: `cklog.advise.delta.answer.DeltaQuestion`."""
        from cklog.advise.delta.answer import delta_answer

        return delta_answer(self.analyses, self.parser, asked, self._options.strict)

    def advise_timing(self, asked: Any) -> Answer:
        """When to checkpoint, by the state sizes; `asked` is a `cklog.advise.timing.answer.TimingQuestion`."""
        from cklog.advise.timing.answer import timing_answer

        if not hasattr(self.parser, "has"):
            raise NotFound(f"{self._root.path}: a {self.parser.name} folder holds no state-size samples")
        return timing_answer(self.parser, self.engine_for, self._options.split_bytes, self._options.strict, asked)

    def rounds(self, asked: Any) -> Answer:
        """Coordinated rounds, and what a restart takes; `asked` is a `cklog.rounds.answer.RoundsQuestion`."""
        from cklog.rounds.answer import rounds_answer

        others = ("plan", "snapshots", "partitions", "stores")
        if not hasattr(self.parser, "has") or any(hasattr(self.parser, other) for other in others):
            raise NotFound(f"{self._root.path}: a {self.parser.name} folder holds no rounds of checkpoints")
        return rounds_answer(self.parser, self.engine_for, self._options.split_bytes, self._options.strict, asked)

    def chain(self, asked: Any) -> Answer:
        """What of base and delta checkpoints can be restored; `asked` is a `cklog.chains.answer.ChainQuestion`."""
        from cklog.chains.answer import chain_answer
        from cklog.runs.chains import chain_source

        source = chain_source(self.parser, self.analyses, self.engine_for)
        return chain_answer(source, asked, self._options.strict)

    def impact(self, asked: Any, question: Any = None, kafka: KafkaLogs = KafkaLogs()) -> Answer:
        """What a crash and its recovery do to the results: by a system log, or of the sinks of a distributed run.

        `asked` is a `cklog.impact.answer.ImpactQuestion`, `question` a `cklog.model.question.Question`.
        """
        from cklog.runs.impact import is_distributed, sink_impact_answer

        o = self._options
        if is_distributed(self, asked, question, kafka, o.split_bytes):
            return sink_impact_answer(self, question or Question(), kafka, o.strict, o.split_bytes)
        from cklog.impact.answer import impact_answer

        return impact_answer(self.parser, self.engine_for, o.split_bytes, o.strict, asked)

    def annotate(self, asked: Any, to_write: Any) -> Answer:
        """The same by a system log, and the results with their trust, written to a new folder.

        `to_write` is a `cklog.impact.annotate.AnnotateQuestion`.
        """
        from cklog.impact.annotate import annotated_answer

        o, own = self._options, lambda output: self._root.uri(f"outputs/{output}")
        found = self.impact(asked)
        if found.command != "impact":
            raise UsageError("--annotate: trust goes by time, and only a system log (system/) tells of a crash's times")
        read = _load("cklog.parsers.results.files:ResultFiles")
        return annotated_answer(found, to_write, own, read, self.engine_for, o.split_bytes, o.strict)

    def _of_queues(self, answer: Answer) -> Answer:
        self.spoken += self.eventual.spoken
        return answer

    def engine_for(self, size: int) -> Engine:
        """The engine for a scan of `size` bytes: as asked, or by size."""
        name = self._options.engine
        if name == "auto":
            name = "spark" if size > self._options.spark_above else "local"
            if name not in self._engines and (name == "spark" or self._options.verbose):
                self.spoken.append(f"engine: {name} ({size >> 20} MiB to read)")
        if name not in self._engines:
            self._engines[name] = self._engine(name)
        return self._engines[name]

    def _engine(self, name: str) -> Engine:
        if name == "local":
            from cklog.engine.local import LocalEngine

            return LocalEngine()
        if name == "spark":
            from cklog.engine.spark import SparkEngine, SparkOptions

            o = self._options
            return SparkEngine(SparkOptions(o.master, o.remote, o.spark_conf, o.verbose))
        raise UsageError(f"--engine {name}: auto, local or spark")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for engine in self._engines.values():
            engine.close()


def open_run(path: str, options: Options | None = None) -> Run:
    """Open a run by folder or URI; nothing is read before the first question.

    >>> open_run("no/such/folder").parser
    Traceback (most recent call last):
        ...
    cklog.errors.NotFound: no/such/folder: no such folder
    """
    options = options or Options()
    return Run(Root(path, options.maps), options)


def _registered() -> dict[str, str]:
    """Parsers of other distributions."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group="cklog.parsers")}


def _load(value: str) -> Any:
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)
