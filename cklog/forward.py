"""The forward pass over a whole output queue: per window the last record, on either engine.

It reads every record where the search from the end reads the extent, so it serves as a second opinion for logs and
numbers of windows beyond one machine: only windows that are open by it leave the engine. N decides between the two
(`cklog.eventual`); where they differ, a result is missing from the log somewhere before the extent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cklog.engine import Engine, Reduce, Scan
from cklog.eventual import Judgement
from cklog.model import Finding
from cklog.output_log import RESULT, Ints, Queue, kinds_of

COLUMNS = ("type", "window", "pos", "_path", "_offset")
LAST = pa.schema([pa.field("window", pa.string()), pa.field("last", pa.int64())])
"""`last` packs a record's place in the log and its type: file << 44 | offset << 2 | type."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class LastOfWindow:
    """Kernel: per window the last record of a batch. `files` numbers the paths in log order.

    Records of a Kafka queue share the place of their batch, so there the record number is the place.
    """

    files: Mapping[str, int]
    by_pos: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kinds = kinds_of(batch.column("type"))
        windows = batch.column("window")
        encoded = windows if pa.types.is_dictionary(windows.type) else windows.dictionary_encode()
        decides = np.flatnonzero((kinds <= RESULT) & encoded.is_valid().to_numpy(zero_copy_only=False))
        last = np.full(len(encoded.dictionary), -1, np.int64)
        np.maximum.at(
            last, encoded.indices.fill_null(0).to_numpy()[decides], (self._place(batch) << 2 | kinds)[decides]
        )
        seen = np.flatnonzero(last >= 0)
        return pa.record_batch([encoded.dictionary.take(pa.array(seen)), pa.array(last[seen])], schema=LAST)

    def _place(self, batch: pa.RecordBatch) -> Ints:
        if self.by_pos:
            found: Ints = batch.column("pos").to_numpy(zero_copy_only=False).astype(np.int64)
            return found
        paths = batch.column("_path")
        encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
        files = np.array([self.files[path] for path in encoded.dictionary.to_pylist()] or [0], np.int64)
        place: Ints = files[encoded.indices.to_numpy()] << 42 | batch.column("_offset").to_numpy()
        return place


def scan_of(queue: Queue, split_bytes: int) -> Scan:
    """The scan that leaves the windows whose last record is not a result."""
    kernel = LastOfWindow({path: i for i, path in enumerate(queue.paths)}, queue.by_pos)
    reduce = Reduce(("window",), {"last": "max"})
    splits = tuple(queue.splits(split_bytes))
    return Scan(splits, "outputs", COLUMNS, kernel, LAST, reduce, without=("last", 4, RESULT))


def forward_findings(queue: Queue, judged: Judgement, engine: Engine, split_bytes: int) -> list[Finding]:
    """Compare the windows that are open by the whole log with those found from its end."""
    table = engine.run(scan_of(queue, split_bytes)).table
    whole = set(table["window"].to_pylist())
    tail = {judged.log.names[i] for i in judged.log.window[judged.open].tolist()}
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
