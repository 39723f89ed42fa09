"""The impact on sinks, by the kind of run: micro-batches, snapshots, partitions, or subtasks with checkpoints."""

from __future__ import annotations

from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.impact.sinks.sources import BoundLogs
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.kafka_logs import Bindings, bindings_of
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Answer

_OTHERS = ("plan", "snapshots", "partitions", "stores")
"""What parsers offer whose runs are no run folders."""


def is_distributed(run: Any, asked: Any, question: Question | None, kafka: KafkaLogs, split_bytes: int) -> bool:
    """Whether a run restarts from a line: no system log tells of boots or queries, and nobody says when it crashed.

    Raises
    ------
    UsageError : options of the other kind of run are given
    """
    parser = run.parser
    alone = hasattr(parser, "has") and not any(hasattr(parser, other) for other in _OTHERS)
    by_time = alone and (asked.crash is not None or (parser.has("system") and _booted(run, split_bytes)))
    if by_time and ((question is not None and question != Question()) or kafka != KafkaLogs()):
        raise UsageError(
            "--at, --against, --failed, --as-of and --kafka: this run is judged by its system log",
            "they are about runs that restart from checkpoints",
        )
    if not by_time and (asked.recovery or asked.checkpoint is not None or asked.restart is not None):
        raise UsageError(
            "--restart, --recovery and --checkpoint: this run restarts from a line of checkpoints",
            "they are about runs with a system log, or with --crash TIME",
        )
    return not by_time


def _booted(run: Any, split_bytes: int) -> bool:
    """Whether the system log tells of one system's life, or might: a log of checkpointing tokens does not."""
    from cklog.impact.system import read_system

    log = read_system(run.parser, run.engine_for, split_bytes)
    return bool(log.events) or log.damaged


def sink_impact_answer(run: Any, question: Question, kafka: KafkaLogs, strict: bool, split_bytes: int) -> Answer:
    """What a restart from the line of `run` (a `cklog.run.Run`) does to the results of its sinks.

    Raises
    ------
    NotFound : the run has no line, or `kafka` names what is not there
    UsageError : `kafka` without a folder
    """
    parser, logs = run.parser, _logs(run, kafka)
    if hasattr(parser, "plan"):
        from cklog.runs.batches.impact import batch_impact_answer

        return batch_impact_answer(parser, run.analyses.plan(question), question, logs, strict)
    if hasattr(parser, "snapshots"):
        from cklog.runs.snapshots.impact import snapshot_impact_answer

        return snapshot_impact_answer(run.analyses, question, logs, strict)
    if hasattr(parser, "partitions"):
        from cklog.runs.partitions.impact import partition_impact_answer

        return partition_impact_answer(run.analyses.replay(question), run.analyses.logs.partitions(), strict)
    if not hasattr(parser, "has"):
        raise NotFound(f"a {parser.name} folder tells of no sink", "cklog recovery-line says what can be restored")
    from cklog.runs.records.impact import LineImpact

    return LineImpact(parser, run.engine_for, split_bytes, logs, strict).answer(run.lines, question)


def _logs(run: Any, kafka: KafkaLogs) -> BoundLogs | None:
    """The Kafka logs that `--kafka` names."""
    if not kafka.folder:
        if kafka != KafkaLogs():
            raise UsageError("--channel and --group need the logs", "say where they are with --kafka FOLDER")
        return None
    logs: PartitionLogs = run.logs_in(kafka.folder)
    manifest = run.parser.manifest if hasattr(run.parser, "manifest") else {}
    bindings: Bindings = bindings_of(kafka, manifest)
    known = {folder.name for folder in logs.layout.folders}
    missing = sorted(set(bindings.asked.values()) - known)
    if missing:
        raise NotFound(f"{', '.join(missing)}: no such partition in the Kafka folder", "see cklog inspect on it")
    groups = {commit.group for commit in logs.commits[0]}
    if kafka.group and kafka.group not in groups:
        raise NotFound(f"--group {kafka.group}: it has committed nothing here")
    return BoundLogs(logs, bindings)
