"""A persisted output queue as arrays, read from its end only as far as a question needs.

Records are numbered in log order within what has been read: 0 is the first record read, the last one is the tail.
Reading further back puts records in front, so places are given as (file, offset) where they must last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import codes, entries, integers, plain_strings
from cklog.arrays.types import Ints, Mask
from cklog.engine.scan import Damage, Split, reader_of
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding, Where
from cklog.model.schemas import OUTPUTS
from cklog.progress import Stage, stage

OPEN, CHECK, RESULT, EMIT, CONTROL = range(5)
"""Types of records as numbers. A control record takes a place in a Kafka log and holds nothing."""

TYPES = ("open", "check", "result", "emit", "control")
DELTA = np.array([1, 0, -1, 0, 0])
"""What a record of each type does to the number of open windows."""

COLUMNS = ("type", "window", "ts", "open_windows", "input", "inputs", "pos", "bytes", "_path", "_offset")
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class QueueLog:
    """Records in log order, as arrays of shape (rows,) unless said otherwise; -1 (`UNKNOWN`) where a record is silent.

    Attributes
    ----------
    type : `OPEN` to `CONTROL`
    window : of each record, as an index into `names`
    ts : timestamp of the tuple that wrote the record, ms
    open_windows : N, the number of open windows after the record
    input : number of the last tuple taken from each channel of `channels`, -1 before the first; (rows, channels)
    pos : number of the record in its queue
    bytes : size of a data record
    file, offset : place, `file` as an index into `paths`
    names : names of windows
    channels : ("",) for one input without a name, () if the records carry no input numbers
    damage : what could not be read, in log order
    damage_at : how many of the records lie before each damage, shape (damage,)
    from_head : whether the first record of the log is here, or at least what is left where it was
    state : the windows' states, if they were read
    """

    type: Ints
    window: Ints
    ts: Ints
    open_windows: Ints
    input: Ints
    pos: Ints
    bytes: Ints
    file: Ints
    offset: Ints
    names: pa.StringArray
    channels: tuple[str, ...]
    paths: tuple[str, ...]
    damage: tuple[Damage, ...]
    damage_at: Ints
    from_head: bool
    state: pa.ChunkedArray | None = None

    def __len__(self) -> int:
        return len(self.type)

    def window_of(self, row: int) -> str:
        """Return the name of the window that a record belongs to."""
        return str(self.names[int(self.window[row])].as_py())

    def windows_of(self, rows: Ints) -> list[str]:
        """Return the names of the windows of many records."""
        found: list[str] = self.names.take(pa.array(self.window[rows])).to_pylist()
        return found

    def rows(self, keep: NDArray[np.integer] | Mask) -> QueueLog:
        """Return some of the records, in order; damage stays before the same record."""
        chosen = _as_mask(keep, len(self))
        before = np.r_[0, np.cumsum(chosen)]  # of the first k rows, how many are kept; shape (rows + 1,)
        return replace(
            self,
            **{name: getattr(self, name)[keep] for name in _ROWS},
            state=None if self.state is None else self.state.take(pa.array(np.flatnonzero(chosen))),
            damage_at=before[self.damage_at],
        )


_ROWS = ("type", "window", "ts", "open_windows", "input", "pos", "bytes", "file", "offset")


def _as_mask(keep: NDArray[np.integer] | Mask, size: int) -> Mask:
    """Return chosen rows, given as a mask or as their numbers, as a mask of shape (size,)."""
    if keep.dtype == np.bool_:
        return keep  # type: ignore[return-value]
    mask = np.zeros(size, np.bool_)
    mask[keep] = True
    return mask


@dataclass(slots=True)
class TailReader:
    """Reads a queue from its end, split by split, and knows which windows it has met open.

    With `below` the queue ends before the first record that has taken a tuple of that number or higher from a channel
    ("" for an input without a name), with `as_of` before the first that has a later timestamp (ms): as if the crash had
    come there.

    Attributes
    ----------
    open_seen : number of windows whose newest record so far is a footprint
    open_tail : N at the tail; None until a record has given it
    first_ts, first_pos : timestamp and number of the first record read, None: nothing read, or no number
    tail : the file and the number of the last record, None: nothing read, or no number
    bytes_read : size of the splits read
    exhausted : whether the head of the log was reached
    """

    queue: Queue
    with_state: bool = False
    below: Mapping[str, int] = field(default_factory=dict)
    as_of: int | None = None
    open_seen: int = 0
    open_tail: int | None = None
    first_ts: int | None = None
    first_pos: int | None = None
    tail: tuple[str, int] | None = None
    bytes_read: int = 0
    exhausted: bool = False
    _pieces: list[list[pa.RecordBatch | Damage]] = field(default_factory=list)
    _windows_seen: set[str] = field(default_factory=set)
    _results_behind: int = 0
    _disordered: bool = False
    _lowest_of_last_file: int = 0
    _passed_last_file: bool = False
    _untold: list[Damage] = field(default_factory=list)
    _splits: Iterator[Split] | None = None

    def more(self) -> bool:
        """Read one split further back; False at the head of the log."""
        if self._splits is None:
            self._splits = self.queue.tail()
        split = next(self._splits, None)
        if split is None:
            self.exhausted = True
            return False
        columns = (*COLUMNS, "state") if self.with_state else COLUMNS
        piece = list(reader_of(split)(split, "outputs", columns))
        if (self.below or self.as_of is not None) and (self.open_tail is None or self._disordered):
            piece = list(self._before_cut(piece))
        self._pieces.append(piece)
        self.bytes_read += split.cost()
        for item in reversed(piece):
            if isinstance(item, pa.RecordBatch) and item.num_rows:
                self._note_batch(item)
        return True

    def read_all_if_disordered(self) -> None:
        """Read the whole queue if its last file does not hold its last record, such as beside a copy of an older one.

        The end of the file before tells, by the numbers of records. What is in order is read from its end alone. Where
        the end before is damaged, the whole last file is read, to know its lowest number; and of a file that tells no
        number at all, that it lies in between is only believed if numbers are missing there.
        """
        before, unread, damaged = self._end_before_last_file()
        if damaged:
            while not self._passed_last_file and self.more():
                pass
        self._disordered = self.tail is not None and before + unread >= self._lowest_of_last_file
        while self._disordered and self.more():
            pass

    def _end_before_last_file(self) -> tuple[int, bool, bool]:
        """Find the highest number at the end before the last file (-1: none), if a file there has none, if damage is.

        A file whose end tells no number is passed over, for the one before it.
        """
        unread = damaged = False
        path = "" if self.tail is None else self.tail[0]
        while path and (split := self.queue.older(path)) is not None:
            items = list(reader_of(split)(split, "outputs", ("pos",)))
            self.bytes_read += split.cost()
            damaged |= any(isinstance(item, Damage) and item.id != "torn-tail" for item in items)
            numbers = [pc.max(item.column("pos")).as_py() for item in items if isinstance(item, pa.RecordBatch)]
            known = [number for number in numbers if number is not None]
            if known or not damaged:
                return max(known, default=-1), unread, damaged
            unread, path = True, split.path
            self._untold += [item for item in items if isinstance(item, Damage)]
        return -1, unread, damaged

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with the order of the files, once `read_all_if_disordered` has looked."""
        if not self._disordered or self.tail is None:
            return ()
        last = self.tail[0]
        why = f"{last} is the last file by name, and the one before ends after its first record: one of them is a copy"
        if self._untold:
            why = f"{self._untold[0].path} tells no number of a record, and none is missing before {last}: it repeats "
            why += f"what is here, or {last} is a copy and newer records were in it"
        message = f"{why}. Records were taken by their numbers, each once; move the copy away"
        repeated = Finding("repeated-records", "warning", last, message, (Where(last),))
        return (repeated, *damage_findings(self._untold))

    def _before_cut(self, piece: list[pa.RecordBatch | Damage]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield what lies before the cut; behind it there is neither record nor damage."""
        for item in piece:
            if isinstance(item, Damage):
                yield item
                continue
            end = self._rows_before_cut(item)
            if end:
                yield item.slice(0, end)
            if end < item.num_rows:
                return

    def _rows_before_cut(self, batch: pa.RecordBatch) -> int:
        """Count the rows of a batch before the first one that is behind the cut."""
        names, matrix = _input_matrix(pa.Table.from_batches([batch]))
        latest = np.iinfo(np.int64).max if self.as_of is None else self.as_of
        behind = batch.column("ts").to_numpy() > latest
        for column, name in enumerate(names):
            behind |= matrix[:, column] >= self.below.get(name, np.iinfo(np.int64).max)
        return int(np.argmax(behind)) if behind.any() else len(behind)

    def log(self) -> QueueLog:
        """Return everything read so far."""
        items = [item for piece in reversed(self._pieces) for item in piece]
        found = log_of(items, self.queue.paths, self.with_state)
        return replace(found, from_head=self.exhausted)

    def _note_batch(self, batch: pa.RecordBatch) -> None:
        """Note which windows a batch, which lies before everything seen, shows open."""
        self.first_ts, self.first_pos = batch.column("ts")[0].as_py(), batch.column("pos")[0].as_py()
        if self.tail is None and batch.column("pos")[-1].is_valid:
            self.tail = str(batch.column("_path")[-1].as_py()), int(batch.column("pos")[-1].as_py())
            self._lowest_of_last_file = self.tail[1]
        self._note_last_file(batch)
        kinds = kinds_of(batch.column("type"))
        if self.open_tail is None:
            self.open_tail = self._tail_count(batch, kinds)
        windows = batch.column("window")
        encoded = windows if pa.types.is_dictionary(windows.type) else windows.dictionary_encode()
        decides = np.flatnonzero((kinds <= RESULT) & encoded.is_valid().to_numpy(zero_copy_only=False))
        newest = np.full(len(encoded.dictionary), -1)
        newest[encoded.indices.fill_null(0).to_numpy()[decides]] = decides  # of one window's rows the last one stays
        for name, row in zip(encoded.dictionary.to_pylist(), newest.tolist(), strict=True):
            if row >= 0 and name not in self._windows_seen:
                self._windows_seen.add(name)
                self.open_seen += bool(kinds[row] < RESULT)

    def _note_last_file(self, batch: pa.RecordBatch) -> None:
        """Note the lowest number of a record in the file that holds the last one."""
        if self.tail is None or self._passed_last_file:
            return
        self._passed_last_file = str(batch.column("_path")[0].as_py()) != self.tail[0]
        if not self._passed_last_file:
            lowest = pc.min(batch.column("pos")).as_py()
            self._lowest_of_last_file = min(self._lowest_of_last_file, self.tail[1] if lowest is None else lowest)

    def _tail_count(self, batch: pa.RecordBatch, kinds: Ints) -> int | None:
        """Return N after the last record: that of the last one to give it, and what the records since did to it."""
        known = np.flatnonzero(batch.column("open_windows").is_valid().to_numpy(zero_copy_only=False))
        last = int(known[-1]) if len(known) else -1
        behind = int(DELTA[kinds[last + 1 :]].sum()) + self._results_behind
        if last < 0:
            self._results_behind = behind
            return None
        return int(batch.column("open_windows")[last].as_py()) + behind


def reading_back(queue: Queue) -> AbstractContextManager[Stage]:
    """Read a queue from its end, inside, as a stage of its own: seldom all of its bytes."""
    return stage(f"reading back the queue of {queue.subtask}", "bytes", queue.bytes)


def reading_through(queue: Queue) -> AbstractContextManager[Stage]:
    """Read a whole queue forward, inside, as a stage of its own."""
    return stage(f"reading the queue of {queue.subtask}", "bytes", queue.bytes, size=queue.bytes)


def log_of(items: list[pa.RecordBatch | Damage], paths: tuple[str, ...], with_state: bool = False) -> QueueLog:
    """Turn batches of `COLUMNS` and damage, in log order, into arrays.

    Of a log without a record the arrays are empty.
    """
    batches = [item for item in items if isinstance(item, pa.RecordBatch)]
    damage, at, count = [], [], 0
    for item in items:
        if isinstance(item, Damage):
            damage.append(item)
            at.append(count)
        else:
            count += item.num_rows
    table = _table_of(batches, with_state)
    order = {path: i for i, path in enumerate(paths)}
    file, files = codes(table["_path"])
    channels, numbers = _input_matrix(table)
    windows = pc.fill_null(table["window"], "").dictionary_encode().combine_chunks()
    if isinstance(windows, pa.ChunkedArray):  # of no chunk at all
        windows = pa.array([], pa.string()).dictionary_encode()
    log = QueueLog(
        type=kinds_of(table["type"]),
        window=windows.indices.to_numpy().astype(np.int64),
        ts=table["ts"].to_numpy().astype(np.int64),
        open_windows=integers(table["open_windows"], UNKNOWN),
        input=numbers,
        pos=integers(table["pos"], UNKNOWN),
        bytes=integers(table["bytes"], UNKNOWN),
        file=np.array([order[path] for path in files] or [0], np.int64)[file],
        offset=table["_offset"].to_numpy().astype(np.int64),
        names=windows.dictionary,
        channels=channels,
        paths=paths,
        damage=tuple(damage),
        damage_at=np.array(at, np.int64),
        from_head=False,
        state=table["state"] if with_state else None,
    )
    return _with_damage_placed(log)


def _with_damage_placed(log: QueueLog) -> QueueLog:
    """Put each damage where its offset says: a reader may tell of it a batch too early or too late."""
    order = {path: i for i, path in enumerate(log.paths)}
    at = log.damage_at.copy()
    for k, item in enumerate(log.damage):
        if item.offset is not None and item.path in order:
            low, high = np.searchsorted(log.file, [order[item.path], order[item.path] + 1])
            at[k] = low + np.searchsorted(log.offset[low:high], item.offset)
    by_place = np.argsort(at, kind="stable")
    return replace(log, damage=tuple(log.damage[k] for k in by_place), damage_at=at[by_place])


def _table_of(batches: list[pa.RecordBatch], with_state: bool) -> pa.Table:
    """Return all rows as one table; strings that repeat are dictionary-encoded, whatever a reader gave."""
    names = (*COLUMNS, "state") if with_state else COLUMNS
    columns = []
    for name in names:
        kind = _KINDS[name]
        columns.append(pa.chunked_array([_cast_to(batch.column(name), kind) for batch in batches], kind))
    return pa.table(columns, names=list(names))


_TEXT = pa.dictionary(pa.int32(), pa.string())
_KINDS = {field.name: field.type for field in OUTPUTS} | {
    "type": _TEXT,
    "_path": _TEXT,
    "_offset": pa.int64(),
}


def _cast_to(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    return array if array.type == kind else array.cast(kind)


def kinds_of(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Return the `type` column as numbers, `OPEN` to `CONTROL`; shape (rows,)."""
    if isinstance(column, pa.DictionaryArray):
        codes = pc.index_in(column.dictionary, value_set=pa.array(TYPES)).to_numpy(zero_copy_only=False)
        return codes[column.indices.to_numpy()].astype(np.int64)  # type: ignore[no-any-return]
    found: Ints = pc.index_in(plain_strings(column), value_set=pa.array(TYPES)).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)


def _input_matrix(table: pa.Table) -> tuple[tuple[str, ...], Ints]:
    """Return the channels and the input numbers, (rows, channels); none unless every record of a tuple has them.

    Control records, which are of no tuple, repeat the numbers of the record before.
    """
    rows = len(table)
    needs = kinds_of(table["type"]) != CONTROL
    names: list[str] = [""]
    matrix = integers(table["input"], UNKNOWN)[:, None]
    given = matrix[:, 0] >= 0
    if not given.any():
        row, code, names, value = entries(table["inputs"])
        matrix = np.full((rows, len(names)), UNKNOWN, np.int64)
        matrix[row, code] = value
        given = np.zeros(rows, np.bool_)
        given[row] = True
    if not names or not given[needs].all():
        return (), np.zeros((rows, 0), np.int64)
    before = np.maximum.accumulate(np.where(given, np.arange(rows), 0))  # the newest row with numbers, up to each row
    return tuple(names), matrix[before]
