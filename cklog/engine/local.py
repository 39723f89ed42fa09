"""The local engine: the kernels over the splits in threads of this process, with no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from cklog.engine.damage import DamageTally
from cklog.engine.merge import merge
from cklog.engine.scan import DAMAGE_LISTED, Damage, Scan, Scanned, Split, reader_of
from cklog.local_files import is_local, os_name, why_unreadable

_FOLD_ROWS = 1 << 21
"""Partial rows that may pile up before they are merged: what keeps memory flat."""


class LocalEngine:
    """Threads over splits; numpy and pyarrow release the interpreter lock where the time goes."""

    name = "local"

    def run(self, scan: Scan) -> Scanned:
        """Read every split, apply the kernel, and reduce what it gives."""
        fold = _Fold(scan)
        tally = DamageTally(DAMAGE_LISTED)
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            for parts, found in threads.map(lambda split: run_split(scan, split), scan.splits):
                fold.add(parts)
                tally.update(found)
        return Scanned(_without_unwanted(fold.table(), scan), tally.damage(), tally.records)

    def close(self) -> None:
        """Do nothing: nothing is held."""


def run_split(scan: Scan, split: Split) -> tuple[list[pa.RecordBatch], DamageTally]:
    """Return the partial rows of one split, merged, with its damage and counts; both engines run this."""
    fold = _Fold(scan)
    tally = DamageTally(DAMAGE_LISTED)
    for part in _partial_rows(scan, split, tally):
        fold.add([part])
    if scan.trim is not None:
        return scan.trim(fold.table()).to_batches(), tally
    return fold.batches(), tally


def _without_unwanted(table: pa.Table, scan: Scan) -> pa.Table:
    """Drop the reduced rows that `Scan.without` names."""
    if scan.without is None:
        return table
    name, modulus, rest = scan.without
    return table.filter(pa.array(table[name].to_numpy() % modulus != rest))


def _partial_rows(scan: Scan, split: Split, tally: DamageTally) -> Iterator[pa.RecordBatch]:
    """Yield the partial rows of each batch; damage and counts go to `tally`."""
    for item in reader_of(split)(split, scan.table, scan.columns):
        if isinstance(item, Damage):
            tally.add(_as_refused(item, split))
            continue
        tally.count(split.path, item.num_rows)
        part = scan.kernel(item)
        if part.num_rows:
            yield part


def _as_refused(damage: Damage, split: Split) -> Damage:
    """Return damage of a whole file as what it is, where the file could not be opened: unread, and not damaged."""
    if damage.offset is not None or not is_local(split.uri):
        return damage
    place = split.uri if damage.path == split.path else os.path.join(split.uri, damage.path)
    why = why_unreadable(place) if damage.path == split.path or os.path.lexists(os_name(place)) else ""
    return Damage(damage.path, "unreadable-file", None, why) if why else damage


class _Fold:
    """The partial rows of a scan, merged whenever many have piled up."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._merged = 0  # rows that were left by the last merge

    def add(self, parts: list[pa.RecordBatch]) -> None:
        """Add partial rows."""
        self._parts += parts
        self._rows += sum(part.num_rows for part in parts)
        if self._scan.reduce is not None and self._rows > _FOLD_ROWS + 2 * self._merged:
            self._parts = self.batches()
            self._merged = self._rows = sum(part.num_rows for part in self._parts)

    def batches(self) -> list[pa.RecordBatch]:
        """Return the rows so far, merged if they are of several batches."""
        if self._scan.reduce is None or len(self._parts) < 2:
            return self._parts
        return self.table().to_batches()  # type: ignore[no-any-return]

    def table(self) -> pa.Table:
        """Return the rows so far as one table, merged if the scan is reduced."""
        if self._scan.reduce is None:
            return _concatenated(self._parts, self._scan.partial)
        tables = [pa.Table.from_batches([part], schema=self._scan.partial) for part in self._parts]
        return merge(tables or [self._scan.partial.empty_table()], self._scan.reduce)


def _concatenated(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return all rows as a table, of the declared schema only if parts differ: columns may stay dictionary-encoded."""
    if not parts:
        return schema.empty_table()
    tables = [pa.Table.from_batches([part]) for part in parts]
    if any(part.schema != parts[0].schema for part in parts):
        tables = [table.cast(schema) for table in tables]
    return pa.concat_tables(tables)
