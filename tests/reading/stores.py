"""State folders, opened and asked."""

from __future__ import annotations

from pathlib import Path

from cklog.kafka_logs.logs import PartitionLogs
from cklog.parsers.kafka.parser import Kafka
from cklog.parsers.kafka.streams import KafkaStreams
from cklog.runs.stores.line import StoreRestores
from cklog.storage import Root
from tests.reading.concluded import READING, Concluded


def logs_of(folder: Path) -> PartitionLogs:
    return PartitionLogs(Kafka(Root(str(folder))), READING)


def opened(folder: Path, logs: Path | None = None, strict: bool = False) -> Concluded:
    return Concluded(StoreRestores(KafkaStreams(Root(str(folder))), None if logs is None else logs_of(logs)), strict)
