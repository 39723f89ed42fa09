"""What subtasks that did not fail hold now: their current state counts as their newest (virtual) checkpoint.

The evidence is a record of kind `volatile` in `checkpoints/`, or the subtask's own `events/`, if nothing of them can
be missing: a receive that was lost would let a survivor keep running with an orphan message.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import holds
from cklog.engine.scan import Reduce
from cklog.history.events.losses import in_doubt
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import CurrentState
from cklog.model.findings import Finding
from cklog.model.names import Subtask
from cklog.model.wording import first_few

COLUMNS = ("event", "operator", "subtask", "channel", "seq", "time", "_path")
"""Columns of `cklog.model.schemas.EVENTS` that the scan reads."""

PARTIAL = pa.schema(
    [
        pa.field("operator", pa.string()),
        pa.field("subtask", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("channel", pa.string()),
        pa.field("_path", pa.string()),
        pa.field("next", pa.int64()),
    ]
)
"""A subtask's highest event of a kind on a channel, by file; `next` is one more than its sequence number."""

REDUCE = Reduce(keys=("operator", "subtask", "event", "channel", "_path"), aggregates={"next": "max"})


def highest(batch: pa.RecordBatch, as_of: int | None = None) -> pa.RecordBatch:
    """Fold a batch to rows of `PARTIAL`: the next sequence number by subtask, kind of event, channel and file.

    Events after `as_of` (ms), or without a time then, do not count.
    """
    table = pa.Table.from_batches([batch])
    if as_of is not None:
        table = table.filter(pc.fill_null(pc.less_equal(table["time"], as_of), False))
    table = table.set_column(table.column_names.index("subtask"), "subtask", pc.fill_null(table["subtask"], 0))
    grouped = table.group_by(list(REDUCE.keys), use_threads=False).aggregate([("seq", "max")])
    grouped = grouped.append_column("next", pc.add(grouped["seq_max"], 1)).select(PARTIAL.names)
    return grouped.cast(PARTIAL).combine_chunks().to_batches()[0] if len(grouped) else _empty_partial()


def kernel(as_of: int | None) -> functools.partial[pa.RecordBatch]:
    """Return `highest` as a kernel that a worker can unpickle."""
    return functools.partial(highest, as_of=as_of)


def current_of(
    table: pa.Table, survivors: Iterable[Subtask], findings: Sequence[Finding]
) -> tuple[CurrentState, frozenset[Subtask]]:
    """Return the watermarks of survivors, and the survivors whose events are there and whole.

    Parameters
    ----------
    table : events reduced to rows of `PARTIAL`
    findings : what is wrong with the files of events
    """
    wanted = set(survivors)
    current, seen = CurrentState(), set()
    writers: dict[str, set[Subtask]] = {}
    for row in table.to_pylist():
        subtask = Subtask(row["operator"], row["subtask"])
        writers.setdefault(row["_path"], set()).add(subtask)
        if subtask not in wanted:
            continue
        seen.add(subtask)
        side = {"send": current.sent, "receive": current.received}.get(row["event"])
        if side is not None and row["channel"] is not None and row["next"] is not None:
            side[row["channel"]] = max(row["next"], side.get(row["channel"], 0))
    doubtful = in_doubt({path: frozenset(mine) for path, mine in writers.items()}, findings)
    return current, frozenset() if doubtful is None else frozenset(seen - doubtful)


def volatile_subtasks(records: CheckpointRecords) -> frozenset[Subtask]:
    """Return the subtasks whose newest record is of kind volatile: an older one says nothing about their state now."""
    mask = holds(records.table["kind"], "volatile")
    mask = mask & np.append(np.diff(records.subtask) != 0, True)[: len(mask)]
    return frozenset(records.subtasks[i] for i in np.unique(records.subtask[mask]).tolist())


def no_evidence(bound: tuple[Subtask, ...]) -> list[Finding]:
    """Report survivors (`bound`) of whose current state nothing is known; [] if there are none."""
    if not bound:
        return []
    message = (
        f"nothing tells the current state of {first_few(bound, 5)}: there is no record of kind volatile, and there are "
        "no whole events/. The line shown treats them as failed too: it is safe, and the true one may be newer"
    )
    return [Finding("no-current-state", "error", str(bound[0]), message, effect="unknown")]


def _empty_partial() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in PARTIAL], schema=PARTIAL)
