"""Kafka partitions read back: whole folders as rows and damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from cklog.engine.scan import Damage, Split, reader_of
from cklog.model.schemas import OUTPUTS
from cklog.parsers.kafka.batches import KafkaRecord, header, records, verify
from cklog.parsers.kafka.log import reconcile
from cklog.parsers.kafka.segment import segments
from cklog.parsers.kafka.table import READER
from cklog.storage import Root
from tests.builders.kafka import Log

COLUMNS = (*OUTPUTS.names, "_path", "_offset")
NAME = f"{0:020}.log"


def decoded(data: bytes) -> list[KafkaRecord]:
    head = header(data)
    verify(head, data)
    return list(records(head, data))


def rows_of(found: Iterator[pa.RecordBatch | Damage]) -> tuple[list[dict[str, Any]], list[Damage]]:
    rows, damage = [], []
    for one in found:
        if isinstance(one, Damage):
            damage.append(one)
        else:
            assert one.schema.names == list(COLUMNS)
            rows += one.to_pylist()
    return rows, damage


def scan(folder: Path, made: list[Split] | None = None) -> tuple[list[dict[str, Any]], list[Damage]]:
    """Rows and damage of a partition, by the given splits or one per segment."""
    root = Root(str(folder))
    whole = [Split(root.uri(e.path), e.path, READER, 0, e.size, e.size) for e in segments(root.list())]
    rows, damage = [], []
    for split in whole if made is None else made:
        more, bad = rows_of(reader_of(split)(split, "outputs", COLUMNS))
        rows += more
        damage += bad
    return rows, damage


def written(folder: Path, *batches: bytes, interval: int = 4096) -> Log:
    log = Log(interval=interval)
    for one in batches:
        log.add(one)
    log.write(folder)
    return log


def ids(damage: list[Damage]) -> list[tuple[str, int | None, int]]:
    return [(d.id, d.offset, d.count) for d in damage]


def told(folder: Path) -> list[tuple[str, str, int | None]]:
    root = Root(str(folder))
    return [(f.id, f.severity, f.where[0].offset) for f in reconcile(root.read, root.uri, root.list())]
