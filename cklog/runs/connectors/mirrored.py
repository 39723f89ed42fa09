"""Connectors that copy from Kafka (MirrorMaker 2), held against the logs that they copy from."""

from __future__ import annotations

from collections.abc import Iterable

from cklog.errors import UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.partitions import Partition
from cklog.kafka_logs.absent import absent_partitions, missing_topic, partitions_elsewhere
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.findings import Finding
from cklog.runs.connectors.judged import Judged
from cklog.source_positions.positions import kafka_next, kafka_partition
from cklog.source_positions.retained import Retained, in_log


def beside_sources(judged: Iterable[Judged], logs: PartitionLogs | None) -> tuple[list[Judged], list[Finding]]:
    """Hold positions in partitions of Kafka against the logs of the cluster that they are of, if these were given.

    Raises
    ------
    UsageError : no connector copies from Kafka, or they copy from several clusters
    """
    judged = list(judged)
    if logs is None:
        return judged, []
    mirrored = [one for one in judged if one.system == "kafka" and one.offset is not None]
    clusters = sorted({str(one.offset["cluster"]) for one in mirrored if one.offset is not None})
    if len(clusters) != 1:
        several = f"connectors copy from several clusters ({', '.join(clusters)}); a folder has the logs of one"
        hint = "give the start of each source's log with --source-from NAME=POSITION"
        raise UsageError(f"--kafka: {several if clusters else 'no connector here copies from Kafka'}", hint)
    names = {one.name: kafka_partition(one.offset) for one in mirrored if one.offset is not None}
    known = {folder.name for folder in logs.layout.folders}
    partitions = logs.partitions(known & set(names.values()))
    held = [_held(one, partitions.get(names.get(one.name, ""))) for one in judged]
    findings = [*logs.layout.findings, *damage_findings(item for p in partitions.values() for item in p.damage)]
    absent = absent_partitions((name for name in names.values() if name is not None), known)
    findings += [missing_topic(topic, its) for topic, its in absent.topics.items()]
    return held, [*findings, *partitions_elsewhere(absent.elsewhere)]


def _held(one: Judged, p: Partition | None) -> Judged:
    """One position beside the log that it is in; the log adds nothing where `--source-from` already refutes it."""
    if p is None or one.offset is None or (one.retained is not None and not one.retained.held):
        return one
    following = kafka_next(one.offset) or 0
    if p.unread and following > p.sure_end:
        return one._replace(retained=Retained(None, f"a segment of {p.name} could not be read"))
    return one._replace(retained=in_log(one.offset, p.log_start, p.restart_end))
