"""Tables of records, read: one scan with what is wrong with the files, and which they are."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from cklog.engine.reading import Reading
from cklog.engine.scan import Kernel, Reduce, Scan
from cklog.inputs.damage import damage_findings
from cklog.inputs.offers import OffersRecords, RowFilter
from cklog.model.findings import Effect, Finding, InputUsed
from cklog.model.schemas import CHECKPOINTS

WITH_PLACES = pa.schema([*CHECKPOINTS, pa.field("_path", pa.string()), pa.field("_offset", pa.int64())])
"""A checkpoint record and where it was read."""


class TableRead(NamedTuple):
    """A table as a scan folded it, what is wrong with its files, and which they are."""

    table: pa.Table
    findings: list[Finding]
    inputs: list[InputUsed]


def read_table(
    parser: OffersRecords,
    reading: Reading,
    table: str,
    columns: tuple[str, ...],
    kernel: Kernel,
    partial: pa.Schema,
    reduce: Reduce | None = None,
    wanted: RowFilter | None = None,
) -> TableRead:
    """Fold all records of a table by `kernel` and `reduce`; `wanted` may refuse row groups of Parquet files."""
    engine = reading.engine_for(parser.bytes_of(table))
    splits = tuple(parser.splits(table, reading.split_bytes, wanted))
    scan = Scan(splits=splits, table=table, columns=columns, kernel=kernel, partial=partial, reduce=reduce)
    scanned = engine.run(scan)
    effect: Effect = "data-lost" if table == "channels" else "older-line"  # messages choose no line
    findings = [*parser.findings(table), *damage_findings(scanned.damage, effect)]
    return TableRead(scanned.table, findings, list(parser.inputs(table, dict(scanned.records))))


def as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch: the kernel for records that are few, such as metadata, and all go to the driver."""
    return batch
