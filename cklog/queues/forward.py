"""The forward pass over a whole output queue: per window the last record, on either engine.

It reads every record where the search from the end reads the extent, so it serves as a second opinion for logs and
numbers of windows beyond one machine: only windows that are open by it leave the engine. N decides between the two
(`cklog.queues.judge`); where they differ, a result is missing from the log somewhere before the extent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.engine import Engine, Reduce, Scan
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding
from cklog.queues.judge import QueueJudgement
from cklog.queues.log import CHECK, OPEN, RESULT, kinds_of

BY_PLACE = ("type", "window", "_path", "_offset")
BY_POS = ("type", "window", "pos")
LAST = pa.schema([pa.field("window", pa.string()), pa.field("first", pa.int64()), pa.field("last", pa.int64())])
"""A window's first and last record, each its place in the log and its type: file << 44 | offset << 2 | type."""

_NAMED = 5
_SPLITS = 16
_LARGEST_SPLIT_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Deciding:
    """Kernel: every record that decides about its window. `files` numbers the paths in log order.

    Records of a Kafka queue share the place of their batch, so there the record number is the place. A check says
    nothing that the open record before it has not said; `unchecked` scans leave checks out.
    """

    files: Mapping[str, int]
    by_pos: bool
    unchecked: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kinds = kinds_of(batch.column("type"))
        decides = kinds == OPEN if self.unchecked else kinds <= CHECK
        decides |= kinds == RESULT
        windows = batch.column("window").filter(pa.array(decides))
        place = pa.array((self._place(batch) << 2 | kinds)[decides])
        return pa.record_batch([windows.cast(pa.string()), place, place], schema=LAST)

    def _place(self, batch: pa.RecordBatch) -> Ints:
        if self.by_pos:
            found: Ints = batch.column("pos").to_numpy(zero_copy_only=False).astype(np.int64)
            return found
        paths = batch.column("_path")
        encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
        files = np.array([self.files[path] for path in encoded.dictionary.to_pylist()] or [0], np.int64)
        place: Ints = files[encoded.indices.to_numpy()] << 42 | batch.column("_offset").to_numpy()
        return place


def unsettled(table: pa.Table) -> pa.Table:
    """Windows of one split that another split may decide: all but those that opened and closed in it.

    By the grammar (open check* result)* such a window was closed before. Where a record is missing from the log that
    is not so, and the window may look open or closed: `forward_findings` asks again about windows in doubt.
    """
    first, last = table["first"].to_numpy() & 3, table["last"].to_numpy() & 3
    return table.filter(pa.array((first != OPEN) | (last != RESULT)))


@dataclass(frozen=True, slots=True)
class Named:
    """Kernel: the same for some windows only."""

    deciding: Deciding
    names: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = self.deciding(batch)
        return rows.filter(pc.is_in(rows.column("window"), value_set=pa.array(self.names, pa.string())))


def scan_of(queue: Queue, split_bytes: int, names: Iterable[str] | None = None) -> Scan:
    """The scan that leaves the windows whose last record is not a result; of all windows, or of `names`.

    A split leaves the windows that are open at one of its ends, however large it is: few large ones are best.
    """
    deciding = Deciding({path: i for i, path in enumerate(queue.paths)}, queue.by_pos, names is None)
    kernel = deciding if names is None else Named(deciding, tuple(sorted(names)))
    reduce = Reduce(("window",), {"first": "min", "last": "max"})
    size = max(split_bytes, min(queue.bytes // _SPLITS, _LARGEST_SPLIT_BYTES))
    splits = tuple(queue.splits(size))
    trim = unsettled if names is None else None
    columns = BY_POS if queue.by_pos else BY_PLACE
    return Scan(splits, "outputs", columns, kernel, LAST, reduce, trim, ("last", 4, RESULT))


def forward_findings(queue: Queue, judged: QueueJudgement, engine: Engine, split_bytes: int) -> list[Finding]:
    """Compare the windows that are open by the whole log with those found from its end."""
    whole = set(engine.run(scan_of(queue, split_bytes)).table["window"].to_pylist())
    tail = set(judged.log.windows_of(judged.open))
    doubtful = whole ^ tail
    if doubtful:
        again = engine.run(scan_of(queue, split_bytes, doubtful)).table["window"].to_pylist()
        whole = (whole & tail) | set(again)
    if whole == tail:
        return []
    subject = str(queue.subtask)
    more, fewer = sorted(whole - tail), sorted(tail - whole)
    parts = []
    if more:
        parts.append(f"{_some(more)} would be open by the whole log: their results are missing from it")
    if fewer:
        parts.append(f"{_some(fewer)} would be closed by the whole log")
    message = f"{subject}: forward and backward disagree, and N says {judged.open_windows}: {'; '.join(parts)}"
    return [Finding("forward-mismatch", "error", subject, message)]


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
