"""What an output queue holds: how many records of each type, from when to when, in one pass on either engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from cklog.engine import Engine, Reduce, Scan
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding, InputUsed
from cklog.queues.log import EMIT, TYPES

COLUMNS = ("type", "ts", "pos")
COUNTED = pa.schema(
    [
        pa.field("type", pa.string()),
        pa.field("records", pa.int64()),
        pa.field("first_ts", pa.int64()),
        pa.field("last_ts", pa.int64()),
        pa.field("first_pos", pa.int64()),
        pa.field("last_pos", pa.int64()),
    ]
)
REDUCE = Reduce(
    ("type",), {"records": "sum", "first_ts": "min", "last_ts": "max", "first_pos": "min", "last_pos": "max"}
)


def count(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One row per type of record in a batch."""
    kinds = batch.column("type").cast(pa.string())
    table = pa.table([kinds, batch.column("ts"), batch.column("pos")], ["type", "ts", "pos"])
    asked = [("type", "count"), ("ts", "min"), ("ts", "max"), ("pos", "min"), ("pos", "max")]
    found = table.group_by("type", use_threads=False).aggregate(asked)
    columns = [found[name] for name in ("type", "type_count", "ts_min", "ts_max", "pos_min", "pos_max")]
    return pa.table(columns, names=COUNTED.names).cast(COUNTED).combine_chunks().to_batches()[0]


def census(
    queue: Queue, engine: Engine, split_bytes: int
) -> tuple[dict[str, Any], tuple[Finding, ...], tuple[InputUsed, ...]]:
    """A row about one queue, what is damaged in it, and its files with the records read."""
    scan = Scan(tuple(queue.splits(split_bytes)), "outputs", COLUMNS, count, COUNTED, REDUCE)
    scanned = engine.run(scan)
    rows = {row["type"]: row for row in scanned.table.to_pylist()}
    known = {name: [r[name] for r in rows.values() if r[name] is not None] for name in COUNTED.names[2:]}
    row = {
        "operator": queue.subtask.operator,
        "subtask": queue.subtask.subtask,
        **{name: rows[name]["records"] if name in rows else 0 for name in TYPES[: EMIT + 1]},
        "first_ts": min(known["first_ts"], default=None),
        "last_ts": max(known["last_ts"], default=None),
        "first_pos": min(known["first_pos"], default=None),
        "last_pos": max(known["last_pos"], default=None),
    }
    records = sum(scanned.records.values())
    used = queue.inputs()
    inputs = (replace(used[0], records=records), *used[1:]) if len(used) == 1 else used
    return row, (*queue.findings(), *damage_findings(scanned.damage)), inputs
