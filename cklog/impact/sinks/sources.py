"""What sources are read again after a restart, and whether it is still there, by the Kafka logs if they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cklog.errors import NotFound
from cklog.impact.sinks.guarantees import all_hold
from cklog.impact.sinks.model import Again, GuaranteeEvidence
from cklog.inputs.partitions import Partition, Range
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.kafka_logs import Bindings, bindings_of
from cklog.model.lines import SourceOffset
from cklog.model.question import KafkaLogs
from cklog.model.values import is_integer


def bound_logs(logs: PartitionLogs, kafka: KafkaLogs, manifest: Mapping[str, Any]) -> BoundLogs:
    """Bind the sources of a run to the partitions of Kafka logs.

    Raises
    ------
    NotFound : a partition that `--channel` names, or the group, is not there
    """
    bindings = bindings_of(kafka, manifest)
    missing = sorted(set(bindings.asked.values()) - {folder.name for folder in logs.layout.folders})
    if missing:
        raise NotFound(f"{', '.join(missing)}: no such partition in the Kafka folder", "see cklog inspect on it")
    if kafka.group:
        logs.commits.of_group(kafka.group)
    return BoundLogs(logs, bindings)


@dataclass(frozen=True, slots=True)
class BoundLogs:
    """Kafka logs beside a run, and which partition each source is; the group of `bindings` is the job's own."""

    logs: PartitionLogs
    bindings: Bindings

    def partition(self, source: str) -> Partition | None:
        """Return the log of a source, None if it is not here."""
        name = self.bindings.source(source)
        known = any(folder.name == name for folder in self.logs.layout.folders)
        return self.logs.partitions([name])[name] if known else None

    def committed(self, source: str) -> int | None:
        """Return the offset that the job's group has committed of a source, None if it has committed none."""
        name, group = self.bindings.source(source), self.bindings.group
        found = [c.offset for c in self.logs.commits.found if group and c.group == group and c.name == name]
        return found[0] if found else None

    def holds(self, log: Partition, start: int) -> bool:
        """Return whether a log has everything from an offset on, after its broker's restart too."""
        count = self.logs.counts([Range(log.folder.topic, log.folder.partition, start)])[0]
        return not (count.missing or count.beyond or count.cut or log.gaps)


def read_again(source: SourceOffset, reached: Iterable[Any], logs: BoundLogs | None) -> Again:
    """Return what of a source is read again: from where it resumes to where the crashed job had come.

    Parameters
    ----------
    reached : offsets to which it is known to have come; those that are no offsets do not count
    """
    start = offset_of(0 if source.offset is None else source.offset)
    log = None if logs is None else logs.partition(source.source)
    found = [offset_of(value) for value in (*reached, None if logs is None else logs.committed(source.source))]
    known = max((value for value in found if value is not None and (start is None or value > start)), default=None)
    most = None if log is None else max(log.log_end, known or 0, start or 0)
    kept = None if logs is None or log is None or start is None else logs.holds(log, start)
    return Again(
        source.source, f"{source.operator}/{source.subtask}", from_=source.offset, to=known, most=most, kept=kept
    )


def offset_of(value: Any) -> int | None:
    """Return `value` if it is an offset that counts records, else None."""
    return value if is_integer(value) and value >= 0 else None


def input_piece(again: Sequence[Again]) -> GuaranteeEvidence:
    """Return the evidence whether all sources still hold what is read again; it names those that do not."""
    if not again:
        return GuaranteeEvidence("input", None, "no-source-offsets")
    holds = all_hold(row.kept for row in again)
    if holds:
        return GuaranteeEvidence("input", True, "input-kept")
    names = tuple(dict.fromkeys(row.source for row in again if row.kept is holds))
    return GuaranteeEvidence("input", holds, "input-unknown" if holds is None else "input-gone", names)


def reach_notes(again: Sequence[Again], snapshots: bool, logs: BoundLogs | None) -> tuple[str, ...]:
    """Return notes where nothing shows how far a job had come, and what else can show it.

    `snapshots` : whether others than those that were compared are here
    """
    if any(row.to is not None for row in again):
        return ()
    partitions = any(re.fullmatch(".+-[0-9]+", row.source) for row in again)
    asked = logs is not None and bool(logs.bindings.group)
    by_logs = "reach-by-kafka" if logs is None else "reach-by-group"
    by = (*(("reach-by-snapshot",) if snapshots else ()), *((by_logs,) if partitions and not asked else ()))
    return ("reach-unknown", *by)
