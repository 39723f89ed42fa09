"""Scans of a whole output queue on either engine: a census by type of record, and the windows that are left open.

The census is for `inspect`. The forward scan keeps the last record of each window; it reads every record where the
search from the end (`cklog.queues.judge`) reads the extent, so it serves as a second opinion for logs and numbers of
windows beyond one machine: only windows that are open by it leave the engine. N decides between the two; where they
differ, a result is missing from the log somewhere before the extent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.engine.scan import Engine, Reduce, Scan
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding, InputUsed
from cklog.model.wording import first_few
from cklog.queues.judge import QueueJudgement
from cklog.queues.log import CHECK, OPEN, RESULT, kinds_of

_CENSUS_COLUMNS = ("type", "ts", "pos")
_CENSUS = pa.schema(
    [
        pa.field("type", pa.string()),
        pa.field("records", pa.int64()),
        pa.field("first_ts", pa.int64()),
        pa.field("last_ts", pa.int64()),
        pa.field("first_pos", pa.int64()),
        pa.field("last_pos", pa.int64()),
    ]
)
_CENSUS_REDUCE = Reduce(
    ("type",), {"records": "sum", "first_ts": "min", "last_ts": "max", "first_pos": "min", "last_pos": "max"}
)

_BY_PLACE = ("type", "window", "_path", "_offset")
_BY_POS = ("type", "window", "pos")
_LAST = pa.schema([pa.field("window", pa.string()), pa.field("first", pa.int64()), pa.field("last", pa.int64())])
"""A window's first and last record, each its place in the log and its type: file << 44 | offset << 2 | type."""

_NAMED = 5
_SPLITS = 16
_LARGEST_SPLIT_BYTES = 512 << 20


class QueueRow(TypedDict):
    """The records of an output queue by type, and their first and last timestamp (ms) and record number."""

    operator: str
    subtask: int
    open: int
    check: int
    result: int
    emit: int
    first_ts: int | None
    last_ts: int | None
    first_pos: int | None
    last_pos: int | None


def census(
    queue: Queue, engine: Engine, split_bytes: int
) -> tuple[QueueRow, tuple[Finding, ...], tuple[InputUsed, ...]]:
    """Count the records of one queue: a row for `inspect`, what is damaged, and the files with their records."""
    scan = Scan(
        splits=tuple(queue.splits(split_bytes)),
        table="outputs",
        columns=_CENSUS_COLUMNS,
        kernel=count_types,
        partial=_CENSUS,
        reduce=_CENSUS_REDUCE,
    )
    scanned = engine.run(scan)
    rows = {row["type"]: row for row in scanned.table.to_pylist()}
    known = {name: [r[name] for r in rows.values() if r[name] is not None] for name in _CENSUS.names[2:]}
    count = {name: row["records"] for name, row in rows.items()}
    row: QueueRow = {
        "operator": queue.subtask.operator,
        "subtask": queue.subtask.subtask,
        "open": count.get("open", 0),
        "check": count.get("check", 0),
        "result": count.get("result", 0),
        "emit": count.get("emit", 0),
        "first_ts": min(known["first_ts"], default=None),
        "last_ts": max(known["last_ts"], default=None),
        "first_pos": min(known["first_pos"], default=None),
        "last_pos": max(known["last_pos"], default=None),
    }
    records = sum(scanned.records.values())
    used = queue.inputs()
    inputs = (replace(used[0], records=records), *used[1:]) if len(used) == 1 else used
    return row, (*queue.findings(), *damage_findings(scanned.damage)), inputs


def count_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row per type of record in a batch: the kernel of the census."""
    kinds = batch.column("type").cast(pa.string())
    table = pa.table([kinds, batch.column("ts"), batch.column("pos")], ["type", "ts", "pos"])
    asked = [("type", "count"), ("ts", "min"), ("ts", "max"), ("pos", "min"), ("pos", "max")]
    found = table.group_by("type", use_threads=False).aggregate(asked)
    columns = [found[name] for name in ("type", "type_count", "ts_min", "ts_max", "pos_min", "pos_max")]
    return pa.table(columns, names=_CENSUS.names).cast(_CENSUS).combine_chunks().to_batches()[0]


@dataclass(frozen=True, slots=True)
class DecidingRecords:
    """Kernel: every record that decides about its window. `files` numbers the paths in log order.

    Records of a Kafka queue share the place of their batch, so there the record number is the place (`by_pos`). A check
    says nothing that the open record before it has not said; `unchecked` scans leave checks out.
    """

    files: Mapping[str, int]
    by_pos: bool
    unchecked: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a row of `window`, `first`, `last` for each deciding record; `first` and `last` are both its place."""
        kinds = kinds_of(batch.column("type"))
        decides = kinds == OPEN if self.unchecked else kinds <= CHECK
        decides |= kinds == RESULT
        windows = batch.column("window").filter(pa.array(decides))
        place = pa.array((self._record_places(batch) << 2 | kinds)[decides])
        return pa.record_batch([windows.cast(pa.string()), place, place], schema=_LAST)

    def _record_places(self, batch: pa.RecordBatch) -> Ints:
        """Return a number for each row that rises along the log; shape (rows,)."""
        if self.by_pos:
            found: Ints = batch.column("pos").to_numpy(zero_copy_only=False).astype(np.int64)
            return found
        paths = batch.column("_path")
        encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
        files = np.array([self.files[path] for path in encoded.dictionary.to_pylist()] or [0], np.int64)
        place: Ints = files[encoded.indices.to_numpy()] << 42 | batch.column("_offset").to_numpy()
        return place


@dataclass(frozen=True, slots=True)
class RecordsOfWindows:
    """Kernel: the same for the windows `names` only."""

    deciding: DecidingRecords
    names: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of `deciding` that are of the named windows."""
        rows = self.deciding(batch)
        return rows.filter(pc.is_in(rows.column("window"), value_set=pa.array(self.names, pa.string())))


def unsettled(table: pa.Table) -> pa.Table:
    """Return the windows of one split that another split may decide: all but those that opened and closed in it.

    By the grammar (open check* result)* such a window was closed before. Where a record is missing from the log that
    is not so, and the window may look open or closed: `forward_findings` asks again about windows in doubt.
    """
    first, last = table["first"].to_numpy() & 3, table["last"].to_numpy() & 3
    return table.filter(pa.array((first != OPEN) | (last != RESULT)))


def forward_scan(queue: Queue, split_bytes: int, names: Iterable[str] | None = None) -> Scan:
    """Return the scan that leaves the windows whose last record is not a result; of all windows, or of `names`.

    A split leaves the windows that are open at one of its ends, however large it is: few large ones are best, whatever
    smaller size `split_bytes` asks for.
    """
    deciding = DecidingRecords(
        files={path: i for i, path in enumerate(queue.paths)}, by_pos=queue.by_pos, unchecked=names is None
    )
    kernel = deciding if names is None else RecordsOfWindows(deciding, tuple(sorted(names)))
    size = max(split_bytes, min(queue.bytes // _SPLITS, _LARGEST_SPLIT_BYTES))
    return Scan(
        splits=tuple(queue.splits(size)),
        table="outputs",
        columns=_BY_POS if queue.by_pos else _BY_PLACE,
        kernel=kernel,
        partial=_LAST,
        reduce=Reduce(("window",), {"first": "min", "last": "max"}),
        trim=unsettled if names is None else None,
        without=("last", 4, RESULT),
    )


def forward_findings(queue: Queue, judged: QueueJudgement, engine: Engine, split_bytes: int) -> list[Finding]:
    """Compare the windows that are open by the whole log with those found from its end; and tell its damage."""
    scanned = engine.run(forward_scan(queue, split_bytes))
    damage = damage_findings(scanned.damage)
    whole = set(scanned.table["window"].to_pylist())
    tail = set(judged.log.windows_of(judged.open))
    doubtful = whole ^ tail
    if doubtful:
        scanned = engine.run(forward_scan(queue, split_bytes, doubtful))
        damage += damage_findings(scanned.damage)
        whole = (whole & tail) | set(scanned.table["window"].to_pylist())
    if whole == tail:
        return damage
    subject = str(queue.subtask)
    more, fewer = sorted(whole - tail), sorted(tail - whole)
    parts = []
    if more:
        parts.append(f"{first_few(more, _NAMED)} would be open by the whole log: there is no result in it")
    if fewer:
        parts.append(f"{first_few(fewer, _NAMED)} would be closed by the whole log")
    message = f"{subject}: forward and backward disagree, and N says {judged.open_windows}: {'; '.join(parts)}"
    return [*damage, Finding("forward-mismatch", "error", subject, message, effect="none")]
