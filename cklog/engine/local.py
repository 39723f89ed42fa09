"""The local engine: the kernels over the splits in threads of this process, with no JVM."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from cklog.budgets import budgets, too_much_kept
from cklog.engine.damage import DamageTally, over_budget, refuse_over_budget
from cklog.engine.merge import merge
from cklog.engine.scan import (
    DAMAGE_LISTED,
    Damage,
    Folded,
    Scan,
    Scanned,
    Split,
    folding_reader_of,
    gatherer_of,
    scan_stage,
)
from cklog.errors import OverBudget
from cklog.local_files import is_local, os_name, why_unreadable
from cklog.progress import Stage, working_on

_FOLD_ROWS = 1 << 18
"""Partial rows that may pile up, beyond twice those that the last merge left, before they are merged: what keeps memory
flat, and merges no row more often than the logarithm of their number."""

_TASK_BYTES, _TASK_SPLITS = 1 << 20, 512
"""Small splits go to one task up to this size and number: handing over a task costs as much as reading a small file."""

_FEW_ROWS = 1 << 10
"""Batches of fewer rows are put together before the kernel sees them: it costs as much for one row as for 1,000."""


_FEW_BYTES = 64 << 10


class LocalEngine:
    """Threads over splits; numpy and pyarrow release the interpreter lock where the time goes."""

    name = "local"

    def __init__(self, io_threads: int = 1) -> None:
        self._io_threads = io_threads

    def run(self, scan: Scan) -> Scanned:
        """Read every split, apply the kernel, and reduce what it gives."""
        fold = _Fold(scan)
        tally = DamageTally(DAMAGE_LISTED)
        read, size = 0, sum(split.cost() for split in scan.splits)
        with (
            scan_stage(scan, self.name) as told,
            closing(_done(scan, told, self._io_threads)) as done,
        ):
            for splits, (parts, found) in done:
                read += sum(split.cost() for split in splits)
                fold.add(parts, read / max(size, 1))
                tally.update(found)
        refuse_over_budget(tally.damage())
        return Scanned(_without_unwanted(fold.table(), scan), tally.damage(), tally.records)

    def close(self) -> None:
        """Do nothing: nothing is held."""


_Done = tuple[tuple[Split, ...], tuple[list[pa.RecordBatch], DamageTally]]
"""The splits of a task, and what came of them."""


def _done(scan: Scan, told: Stage, io_threads: int) -> Generator[_Done]:
    """Yield what comes of each task, in order; a single one is done here, as starting threads costs more than most.

    What is read of a store waits for its answers: there more threads than cores read at a time.
    """
    elsewhere = any(not is_local(split.uri) for split in scan.splits)
    threads_used = max(os.cpu_count() or 1, io_threads) if elsewhere else os.cpu_count() or 1
    most = max(len(scan.splits) // (4 * threads_used), 1) if elsewhere else _TASK_SPLITS
    tasks = [*(tasks_of(scan.splits, most) if elsewhere else tasks_of(scan.splits))]
    if len(tasks) < 2:
        yield from ((splits, run_splits(scan, splits)) for splits in tasks)
        return

    def run(splits: tuple[Split, ...]) -> tuple[list[pa.RecordBatch], DamageTally]:
        with working_on(told):
            return run_splits(scan, splits)

    from concurrent.futures import ThreadPoolExecutor  # slow to import, and little work needs no threads

    with ThreadPoolExecutor(threads_used) as threads:
        try:
            yield from zip(tasks, threads.map(run, tasks), strict=True)
        except BaseException:  # also where nobody asks on: of all the splits that wait, none is needed any more
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def tasks_of(splits: Sequence[Split], most: int = _TASK_SPLITS) -> Iterator[tuple[Split, ...]]:
    """Put neighbouring small splits together, at most so many, in their order; a large one stays alone.

    >>> small, large = Split("f", "f", "", 0, 1, 1), Split("g", "g", "", 0, 1, 1 << 30)
    >>> [len(task) for task in tasks_of([small, small, large, small])]
    [2, 1, 1]
    """
    task: list[Split] = []
    size = 0
    for split in splits:
        if task and (size + split.size > _TASK_BYTES or len(task) == min(most, _TASK_SPLITS)):
            yield tuple(task)
            task, size = [], 0
        task.append(split)
        size += split.size
    if task:
        yield tuple(task)


def run_splits(scan: Scan, splits: Sequence[Split]) -> tuple[list[pa.RecordBatch], DamageTally]:
    """Return the partial rows of some splits, merged, with their damage and counts; both engines run this."""
    tally = DamageTally(DAMAGE_LISTED)
    if scan.trim is not None:  # it is told of one split at a time
        return [
            part for split in splits for part in scan.trim(_fold_of(scan, [split], tally).table()).to_batches()
        ], tally
    return _fold_of(scan, splits, tally).batches(), tally


def _fold_of(scan: Scan, splits: Sequence[Split], tally: DamageTally) -> _Fold:
    """Fold the partial rows of some splits; damage and counts go to `tally`."""
    fold = _Fold(scan)
    try:
        for part in _partial_rows(scan, splits, tally):
            fold.add([part])
    except OverBudget as error:  # no answer will be given: what else there is to read does not matter
        tally.add(over_budget(error, splits[0].path))
    return fold


def _without_unwanted(table: pa.Table, scan: Scan) -> pa.Table:
    """Drop the reduced rows that `Scan.without` names."""
    if scan.without is None:
        return table
    name, modulus, rest = scan.without
    return table.filter(pa.array(table[name].to_numpy() % modulus != rest))


def _partial_rows(scan: Scan, splits: Sequence[Split], tally: DamageTally) -> Iterator[pa.RecordBatch]:
    """Yield the partial rows of each batch; damage and counts go to `tally`."""
    for item in _batches(scan, splits, tally):
        part = item.part if isinstance(item, Folded) else scan.kernel(item)
        if part.num_rows:
            yield part


def _batches(scan: Scan, splits: Sequence[Split], tally: DamageTally) -> Iterator[pa.RecordBatch | Folded]:
    """Yield what is read, small batches put together; a kernel that asks for places gets them as they were read."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for split, item, counts in _items(scan, splits):
        if isinstance(item, Damage):
            tally.add(_as_refused(item, split))
            continue
        for path, count in counts.items():
            tally.count(path, count)
        if isinstance(item, Folded):
            yield item
            continue
        if item.num_rows >= _FEW_ROWS or "_path" in scan.columns or scan.reduce is None:
            yield item
            continue
        waiting.append(item)
        rows += item.num_rows
        if rows >= _FEW_ROWS:
            yield from _put_together(waiting)
            waiting, rows = [], 0
    yield from _put_together(waiting)


_Item = tuple[Split, pa.RecordBatch | Folded | Damage, Mapping[str, int]]
"""What was read, by which split it came, and how many rows are of which file."""


def _items(scan: Scan, splits: Sequence[Split]) -> Iterator[_Item]:
    """Yield what is read of some splits: of small files that can be, of many at once."""
    for name, alike in itertools.groupby(splits, key=lambda split: split.together):
        group = list(alike)
        if not name or len(group) == 1:
            for split in group:
                yield from _items_of(scan, split)
            continue
        for found in gatherer_of(name)(group, scan.table, scan.columns):
            if isinstance(found, Split):
                yield from _items_of(scan, found)
            else:
                yield group[0], found.batch, found.rows


def _items_of(scan: Scan, split: Split) -> Iterator[_Item]:
    """Yield what the reader of a split yields; where that is over a budget, this is the last thing that comes."""
    try:
        for item in folding_reader_of(split, scan.kernel)(split, scan.table, scan.columns):
            yield split, item, {} if isinstance(item, Damage) else {split.path: item.num_rows}
    except OverBudget as error:
        yield split, over_budget(error, split.path), {}


def _put_together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches as one batch of each run of equal schemas."""
    for _, alike in itertools.groupby(batches, key=lambda batch: batch.schema):
        table = pa.Table.from_batches(list(alike)).unify_dictionaries().combine_chunks()
        yield from table.to_batches()


def _as_refused(damage: Damage, split: Split) -> Damage:
    """Return damage of a whole file as what it is, where the file could not be opened: unread, and not damaged."""
    if damage.offset is not None or not is_local(split.uri):
        return damage
    place = split.uri if damage.path == split.path else os.path.join(split.uri, damage.path)
    why = why_unreadable(place) if damage.path == split.path or os.path.lexists(os_name(place)) else ""
    return Damage(damage.path, "unreadable-file", None, why) if why else damage


def _bytes_of(part: pa.RecordBatch) -> int:
    """Return what partial rows take; of small ones no less than that, for to know exactly takes longer than to read."""
    most: int = part.get_total_buffer_size()
    return most if most < _FEW_BYTES else int(part.nbytes)


class _Fold:
    """The partial rows of a scan, merged whenever many have piled up."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._merged = 0  # rows that were left by the last merge

    def add(self, parts: list[pa.RecordBatch], share: float = 0.0) -> None:
        """Add partial rows; `share` of what is read has given these and those before them, if that is known."""
        self._parts += parts
        self._rows += sum(part.num_rows for part in parts)
        self._bytes += sum(map(_bytes_of, parts))
        if self._scan.reduce is not None and self._rows > _FOLD_ROWS + 2 * self._merged:
            self._parts = self.batches()
            self._merged = self._rows = sum(part.num_rows for part in self._parts)
            self._bytes = sum(map(_bytes_of, self._parts))
        if self._bytes > budgets().held:
            self._bytes = sum(part.nbytes for part in self._parts)
        if self._bytes > budgets().held:
            raise too_much_kept(self._scan.table, self._bytes, share)

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
