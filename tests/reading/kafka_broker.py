"""A broker's data folder, opened."""

from __future__ import annotations

from pathlib import Path

from cklog.engine.local import LocalEngine
from cklog.engine.reading import Reading
from cklog.engine.scan import Engine
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.verdict import Answer, conclude
from cklog.parsers.kafka.parser import Kafka
from cklog.runs.partitions.inspection import PartitionsInspection, inspect_partitions
from cklog.runs.partitions.line import PartitionLog
from cklog.storage import Root
from tests.reading.concluded import Concluded


def logs_of(folder: Path, split_bytes: int = 1 << 20, engine: Engine | None = None) -> PartitionLogs:
    chosen = engine or LocalEngine()
    return PartitionLogs(Kafka(Root(str(folder))), Reading(lambda _: chosen, split_bytes))


def log_of(folder: Path, strict: bool = False) -> Concluded:
    return Concluded(PartitionLog(logs_of(folder)), strict)


def inspected(log: Concluded) -> Answer[PartitionsInspection]:
    """What is here, by the log's own reading."""
    return conclude(inspect_partitions(log.analyses))
