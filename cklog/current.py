"""What subtasks that did not fail hold now: their current state counts as their newest (virtual) checkpoint.

The evidence is a record of kind `volatile` in `checkpoints/`, or the subtask's own `events/`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine import Reduce
from cklog.model import Subtask
from cklog.watermarks import Current

COLUMNS = ("event", "operator", "subtask", "channel", "seq", "time")
PARTIAL = pa.schema(
    [
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("channel", pa.string()),
        pa.field("next", pa.int64()),
    ]
)
REDUCE = Reduce(keys=("operator", "subtask", "event", "channel"), aggregates={"next": "max"})


def highest(batch: pa.RecordBatch, as_of: int | None = None) -> pa.RecordBatch:
    """Next sequence number per subtask, kind of event and channel; events after `as_of` (ms) do not count."""
    table = pa.Table.from_batches([batch])
    if as_of is not None:
        table = table.filter(pc.fill_null(pc.less_equal(table["time"], as_of), False))
    table = table.set_column(table.column_names.index("subtask"), "subtask", pc.fill_null(table["subtask"], 0))
    grouped = table.group_by(list(REDUCE.keys), use_threads=False).aggregate([("seq", "max")])
    grouped = grouped.append_column("next", pc.add(grouped["seq_max"], 1)).select(PARTIAL.names)
    return grouped.cast(PARTIAL).combine_chunks().to_batches()[0] if len(grouped) else _empty()


def kernel(as_of: int | None) -> functools.partial[pa.RecordBatch]:
    """`highest` as a kernel that a worker can unpickle."""
    return functools.partial(highest, as_of=as_of)


def current_of(table: pa.Table, survivors: Iterable[Subtask]) -> tuple[Current, frozenset[Subtask]]:
    """Watermarks of survivors out of reduced events, and the survivors that have any event at all."""
    wanted = set(survivors)
    current, seen = Current(), set()
    for row in table.to_pylist():
        subtask = Subtask(row["operator"], row["subtask"])
        if subtask not in wanted:
            continue
        seen.add(subtask)
        side = {"send": current.sent, "receive": current.received}.get(row["event"])
        if side is not None and row["channel"] is not None and row["next"] is not None:
            side[row["channel"]] = row["next"]
    return current, frozenset(seen)


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in PARTIAL], schema=PARTIAL)
