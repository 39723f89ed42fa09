"""Rows of Parquet files, batch by batch, within the budgets: every reader of Parquet reads through here.

A page may be a thousand times as large as what is stored of it, one text of a dictionary may stand in every row, and
one row may hold a list of a billion values. So before a row group is read the headers of its pages are; they say how
many rows are safe to take at once. Texts that the file has in a dictionary are read as one, and are weighed before
anybody writes them out.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cklog.arrays.buffers import pooled
from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import ROWS_PER_BYTE, budgets, over
from cklog.engine.scan import BlockKernel, Folded
from cklog.parsers.tables.footers import Footer, read_footer
from cklog.parsers.tables.parquet_columns import (
    LoopColumn,
    NotHere,
    StoredChunk,
    batches_of,
    stored_pages,
    totals_of_stored,
)
from cklog.parsers.tables.parquet_loops import DECODE
from cklog.parsers.tables.parquet_pages import pages, totals_of
from cklog.parsers.tables.parquet_versions import require_known_columns, require_known_footer

_CHUNK_BYTES, _CHUNK_PAGES = 64 << 20, 1 << 12
"""Column chunks up to this size and number of pages are decoded by loops."""

_FEW_PAGES, _PAGE_BYTES = 1_000, 8
"""A page takes more bytes than that, with its header: a file with more pages has several in one place."""


class ColumnCost(NamedTuple):
    """What a column chunk becomes: bytes of its dictionary, of its largest page and of all pages, and its values.

    `width`: bytes of a value, if all have the same. `shared`: texts may repeat what stands before them. `twice`: it is
    read a second time, with its texts written out.
    """

    path: str
    dictionary: int
    page: int
    bytes: int
    values: int
    nested: bool
    width: int
    shared: bool
    twice: bool


def check_rows(path: str, rows: int, size: int) -> None:
    """Raise `OverBudget` where a file of `size` bytes claims more rows than there may be."""
    most = budgets().rows + ROWS_PER_BYTE * size
    if rows > most:
        raise over(f"the number of rows, {rows} in {size} bytes,", most, path)


def read_metadata(handle: Any) -> Any:
    """Read the metadata of an open file.

    Raises
    ------
    UnknownFormat : they are of a version that cklog does not know
    OSError, one of `ARROW_ERRORS` : it has none that can be read
    """
    require_known_footer(handle)
    handle.seek(0)
    return pq.read_metadata(handle)


class ParquetRows:
    """A Parquet file that is open, with the columns that are read of it.

    `columns` are names of the file's own; None: all. Texts are read as dictionaries if the file has them so; `encoded`
    are paths in its schema of those that are in any case.

    `in_range` are columns of the batch yielded last in which no number is less than 0 or beyond 64 bits, where that is
    known.
    """

    def __init__(
        self,
        handle: Any,
        metadata: Any,
        path: str,
        columns: Sequence[str] | None = None,
        encoded: Sequence[str] = (),
    ) -> None:
        self._handle, self._metadata, self._path = handle, metadata, path
        self._columns = columns
        self.in_range: set[str] = set()
        self._stored = metadata.schema
        _require_single_names(metadata, columns)
        self._chunks, self._about = _footer_of(handle, metadata)
        self._pages_left = _FEW_PAGES + handle.size() // _PAGE_BYTES
        self._encoded = {*encoded, *self._texts_in_dictionaries()}
        self.file = self._open(self._encoded)

    def _open(self, encoded: Collection[str]) -> Any:
        """Open the file for Arrow's reader, which keeps texts at the paths `encoded` in dictionaries."""
        self._handle.seek(0)
        return pq.ParquetFile(
            self._handle, metadata=self._metadata, read_dictionary=sorted(encoded), page_checksum_verification=True
        )

    @functools.cached_property
    def _leaves(self) -> list[int]:
        """The numbers of the columns, in the sense of Parquet, that are read."""
        wanted = None if self._columns is None else set(self._columns)
        names = [self._stored.column(k).path.split(".")[0] for k in range(len(self._stored))]
        return [k for k, name in enumerate(names) if wanted is None or name in wanted]

    def _texts_in_dictionaries(self) -> set[str]:
        """Return the paths of texts that some row group has in a dictionary."""
        found = set()
        for k in self._leaves:
            column = self._stored.column(k)
            if column.physical_type == "BYTE_ARRAY" and any(row[k].dictionary for row in self._chunks):
                found.add(column.path)
        return found

    def batches(self, group: int, most: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, `most` at once, or fewer where that is needed; errors as `folded` has them."""
        return self.folded(group, most, None)

    def folded(self, group: int, most: int, kernel: BlockKernel | None) -> Iterator[Any]:
        """Yield the same, or what a kernel makes of as many rows while they are decoded (`Folded`).

        Raises
        ------
        OverBudget : the row group cannot be read within the budgets
        OSError, one of `ARROW_ERRORS` : it cannot be read at all
        UnknownFormat : it is stored in a way that cklog does not know
        """
        require_known_columns(self._chunks[group][k] for k in self._leaves)
        chunks = self._stored_pages(group)
        costs = [self._cost(group, k, chunks.get(k)) for k in self._leaves]
        count = self._metadata.row_group(group).num_rows
        rows = self._rows_at_once(costs, count, most)
        room = budgets().batch + sum(cost.bytes for cost in costs)
        done = 0
        for way in (kernel, None) if kernel else (None,):
            try:
                loops = self._loop_columns(group, chunks)
                self.in_range = {column.name for column in loops if column.in_range}
                weighed = sum(column.longest for column in loops) * rows <= room
                left = done
                for item in batches_of(loops, count, rows, way if weighed else None):
                    if not weighed:
                        self._check_texts(item, room)
                    if left < item.num_rows:
                        yield item if isinstance(item, Folded) else item.slice(left)
                        done += item.num_rows - left
                    left = max(0, left - item.num_rows)
            except NotHere:
                continue
            return
        chunks.clear()
        self.in_range = set()
        written_out = self._read_written_out(group, rows, [cost.path for cost in costs if cost.twice])
        for batch in self.file.iter_batches(rows, [group], self._columns, use_threads=False):
            _require_sound(batch)
            self._check_texts(batch, room)
            if (plain := next(written_out, None)) is not None:
                _require_equal_texts(batch, plain)
            if done < batch.num_rows:
                yield batch.slice(done)
            done = max(0, done - batch.num_rows)

    def _read_written_out(self, group: int, rows: int, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of a row group whose texts are not kept in dictionaries, `rows` at once.

        Arrow's reader appends the texts of plain pages to the dictionary that it keeps, and keeps of equal texts one.
        So an index beyond the dictionary page, or behind a text that the page has twice, is taken for a text of a plain
        page. Where the reader writes texts out it refuses the former and reads the latter as it should.
        """
        if paths:
            columns = sorted({path.split(".")[0] for path in paths})
            yield from self._plain_file.iter_batches(rows, [group], columns, use_threads=False)

    @functools.cached_property
    def _plain_file(self) -> Any:
        """The file for Arrow's reader, which keeps no texts in dictionaries."""
        return self._open(())

    def _check_texts(self, batch: pa.RecordBatch, room: int) -> None:
        """Raise `OverBudget` where texts that stand in dictionaries take more than `room` when written out."""
        for weigh in (_at_most, _exactly):  # which of them each row has is asked only where it matters
            if sum(_written_out(column, weigh) for column in batch.columns) <= room:
                return
        raise over("what the texts of a batch of rows take when written out", room, self._path)

    def _stored_pages(self, group: int) -> dict[int, StoredChunk]:
        """Return the bytes and pages of the columns of a row group that loops may decode; none where few rows are."""
        rows = self._metadata.row_group(group).num_rows
        if rows <= 0 or not DECODE.is_worth(rows):
            return {}
        found = {}
        for k in self._leaves:
            chunk = self._chunks[group][k]
            if chunk.size > _CHUNK_BYTES or chunk.values != rows:
                return {}
            self._handle.seek(chunk.start)
            data = pooled(chunk.size, np.uint8)
            data = data[: self._handle.readinto(data)]
            stored = stored_pages(data, min(self._pages_left, _CHUNK_PAGES))
            if stored is None or (totals := totals_of_stored(stored)).values != rows:
                return {}
            found[k] = StoredChunk(data, stored, totals)
        return found

    def _loop_columns(self, group: int, chunks: dict[int, StoredChunk]) -> list[LoopColumn]:
        """Return the columns of a row group as loops decode them; raise `NotHere` where one is none for them."""
        if not chunks:
            raise NotHere
        self._ask_arrow(group)
        columns = []
        for k, (data, stored, _) in chunks.items():
            column, codec = self._stored.column(k), self._chunks[group][k].codec
            if self._kinds.get_field_index(column.path) < 0:
                raise NotHere
            columns.append(LoopColumn(data, stored, codec, column, self._kinds.field(column.path).type))
        return columns

    @functools.cached_property
    def _kinds(self) -> pa.Schema:
        """The columns of the file as Arrow has them."""
        return self._stored.to_arrow_schema()

    def _ask_arrow(self, group: int) -> None:
        """Raise `NotHere` where Arrow refuses a row group's footer; ask once for all that say the same of columns."""
        chunks = [self._chunks[group][k] for k in self._leaves]
        said = (
            self._about,
            *((c.path, c.type, c.codec, c.encodings, c.how, c.dictionary) for c in chunks),
        )
        if said not in _ACCEPTED:
            try:
                first = next(self.file.iter_batches(1, [group], self._columns, use_threads=False), None)
            except (OSError, *ARROW_ERRORS):
                first = None
            if first is None:  # no rows, or none that can be read: Arrow says why when it is asked for all of them
                raise NotHere
            if len(_ACCEPTED) >= _MOST_ACCEPTED:
                _ACCEPTED.clear()
            _ACCEPTED.add(said)

    def _cost(self, group: int, number: int, known: StoredChunk | None) -> ColumnCost:
        """Read what a column chunk becomes from the headers of its pages."""
        chunk, column = self._chunks[group][number], self._stored.column(number)
        found = known.totals if known else totals_of(pages(self._handle, chunk.start, chunk.size), self._pages_left)
        self._pages_left -= found.pages
        if self._pages_left < 0:
            raise over("the number of pages", _FEW_PAGES + self._handle.size() // _PAGE_BYTES, self._path)
        if chunk.values not in (-1, found.values):  # pages that changed places: some of them are another column's
            raise pa.ArrowInvalid(
                f"the pages of column {column.path} have {found.values} values, its footer says {chunk.values}"
            )
        return ColumnCost(
            path=column.path,
            dictionary=found.dictionary,
            page=found.page,
            bytes=found.bytes,
            values=found.values,
            nested=column.max_repetition_level > 0,
            width=max(column.length, 8) if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 8,
            shared=found.shared,
            twice=found.mixed and column.path in self._encoded,
        )

    def _rows_at_once(self, costs: Sequence[ColumnCost], rows: int, most: int) -> int:
        """Return how many rows may be read at once."""
        at_once = sum((cost.dictionary + cost.page) * (1 + cost.twice) for cost in costs)
        if at_once > budgets().pages:
            raise over("what the pages of a row group become", budgets().pages, self._path)
        for cost in costs:
            if cost.nested and cost.values > budgets().nested:
                raise over(f"the number of values in column {cost.path}", budgets().nested, self._path)
        found = most
        for cost in costs:
            each = cost.width * max(cost.values, 1) if cost.nested else cost.width * max(rows, 1)
            whole = max(each, cost.bytes, rows * cost.page if cost.shared else 0)  # of all rows of the group
            found = min(found, max(1, budgets().batch * max(rows, 1) // whole))
        return found


def _footer_of(handle: Any, metadata: Any) -> Footer:
    """Return the footer; ArrowInvalid where it does not say where the columns of each row group lie."""
    found, columns, size = read_footer(handle), len(metadata.schema), handle.size()
    if found is None or [len(row) for row in found.chunks] != [columns] * metadata.num_row_groups:
        raise pa.ArrowInvalid("its footer contradicts itself")
    if any(c.start < 0 or c.size < 0 or c.start + c.size > size for row in found.chunks for c in row):
        raise pa.ArrowInvalid("its footer names bytes that the file does not have")
    return found


def _require_single_names(metadata: Any, columns: Sequence[str] | None) -> None:
    """Raise `ArrowInvalid` where one of the columns (None: all) is there twice: which one is meant nobody can tell."""
    counts = Counter(metadata.schema.to_arrow_schema().names)
    for name in counts if columns is None else columns:
        if counts[name] > 1:
            raise pa.ArrowInvalid(f"it has {counts[name]} columns with the name {name}")


_ACCEPTED: set[object] = set()
"""What footers said of row groups that Arrow has read of, in this process."""

_MOST_ACCEPTED = 1 << 10


def _require_sound(batch: pa.RecordBatch) -> None:
    """Raise `ArrowInvalid` where numbers in a page lead nowhere: the library follows them without a look.

    Those are indices into a dictionary, and where the cells of maps begin. Members of a struct that is null are no
    values, though where they may not be null themselves they have an index, into a dictionary that may be empty.
    """
    for column in batch.columns:
        _require_sound_column(column)


def _require_sound_column(column: pa.Array) -> None:
    if pa.types.is_struct(column.type):
        for member in column.flatten():
            _require_sound_column(member)
    elif pa.types.is_dictionary(column.type) or pa.types.is_nested(column.type):
        column.validate(full=True)


def _require_equal_texts(batch: pa.RecordBatch, plain: pa.RecordBatch) -> None:
    """Raise `ArrowInvalid` where texts that were read by a dictionary are not those that were read without one."""
    for name in plain.schema.names:
        for found, expected in zip(_texts_of(batch[name]), _texts_of(plain[name]), strict=True):
            if not found.cast(expected.type).equals(expected):
                raise pa.ArrowInvalid(f"the dictionary page of column {name} has a text twice")


def _texts_of(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the texts in a column, in dictionaries or not; of a nested one those in its members."""
    kind = column.type
    if pa.types.is_struct(kind):
        for member in column.flatten():
            yield from _texts_of(member)
    elif pa.types.is_map(kind):
        first, beyond = column.offsets[0].as_py(), column.offsets[-1].as_py()
        for member in (column.keys, column.items):
            yield from _texts_of(member.slice(first, beyond - first))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts_of(column.flatten())
    elif pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield column


def _written_out(column: pa.Array, weigh: Callable[[pa.Array, pa.Array], int]) -> int:
    """Return the bytes of the texts of a column when each is written out; 0 where they are not in a dictionary.

    `weigh` adds up texts, of which it is given the lengths of those that differ, and for each the number of its length.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        texts = column.dictionary
        if not (pa.types.is_string(texts.type) or pa.types.is_binary(texts.type)) or not len(texts):
            return 0
        return weigh(pc.binary_length(texts), column.indices)
    if pa.types.is_map(kind):
        return _written_out(column.keys, weigh) + _written_out(column.items, weigh)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _written_out(column.values, weigh)
    if pa.types.is_struct(kind):
        return sum(_written_out(column.field(k), weigh) for k in range(kind.num_fields))
    return 0


def _at_most(lengths: pa.Array, numbers: pa.Array) -> int:
    return (pc.max(lengths).as_py() or 0) * len(numbers)


def _exactly(lengths: pa.Array, numbers: pa.Array) -> int:
    return pc.sum(lengths.cast(pa.int64()).take(numbers)).as_py() or 0
