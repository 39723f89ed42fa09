"""Results of a query as files: Parquet, or JSON lines, plain or compressed; read and written with their trust.

    PATH    one file, or a folder of them; in the order of their names, digits compared as numbers
    part    Parquet in, Parquet out: every column as it is, and the trust
            lines in, lines out: every byte of a line as it is, and the member "trust" at its end
            else: the columns of Parquet as members, or members as the columns that the first line has

A line may end with a crc32c of its own, which is verified and made anew. What is no record is left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split, damage_of
from cklog.errors import NotFound, UsageError, first_line
from cklog.inputs.annotate import NOTHING, Job, annotate, milliseconds
from cklog.inputs.annotate_files import part
from cklog.model.findings import InputUsed
from cklog.parsers.native.output_queues import natural, suffix_of
from cklog.parsers.results.lines import (
    TrustTally,
    UnreadableResults,
    as_lines,
    blocks,
    columns_of,
    from_lines,
    lines,
    times_of,
)
from cklog.parsers.tables.parquet import UNREADABLE, row_groups
from cklog.parsers.tables.parquet_batches import ParquetRows, check_rows, read_metadata
from cklog.storage import FileEntry, Root, open_file

_BATCH_ROWS = 1 << 18
"""Read at a time, and a row group of what is written."""

READER = "cklog.parsers.results.files:read_times"
"""What reads times of a split (`cklog.engine.scan.Reader`)."""

_HEAD_BYTES = 1 << 20
"""Of lines, to learn their members' names."""


class ResultFiles:
    """The files of results at a path, all of one form: "parquet" or "jsonl"."""

    def __init__(self, root: Root) -> None:
        """List the files.

        Raises
        ------
        NotFound : there is no such file or folder, or nothing in it
        UsageError : files of both forms
        """
        self._root, self._files = _list_files(root)
        forms = {"parquet" if entry.path.endswith(".parquet") else "jsonl" for entry in self._files}
        if len(forms) != 1:
            known = ".parquet, .jsonl, .jsonl.gz, .jsonl.zst"
            if forms:
                raise UsageError(f"{root.path}: Parquet and JSON lines side by side", "name one of the files")
            raise NotFound(f"{root.path}: no results in it", f"results are files named {known}")
        self.form = forms.pop()
        self.bytes = sum(entry.size for entry in self._files)

    def splits(self, step: int) -> list[Split]:
        """Cut the files into splits of about `step` bytes, in the order of their names; compressed ones stay whole."""
        found: list[Split] = []
        for entry in self._files:
            uri = self._root.uri(entry.path)
            if entry.path.endswith(".parquet"):
                found += _split_row_groups(uri, entry, step)
                continue
            length = step if entry.path.endswith(".jsonl") else max(entry.size, 1)
            for start in range(0, entry.size, length):
                end = min(start + length, entry.size)
                found.append(Split(uri=uri, path=entry.path, reader=READER, start=start, end=end, size=entry.size))
        return found

    def inputs(self, records: Mapping[str, int]) -> tuple[InputUsed, ...]:
        """Return the files as inputs of an answer; `records` are the intact records, by file."""
        return tuple(InputUsed(e.path, self.form, e.size, records.get(e.path)) for e in self._files)

    def time_column(self) -> str:
        """Return `time` or `ts`, whichever the results have.

        Raises
        ------
        UsageError : they have neither, or both
        """
        names = self._member_names()
        found = [name for name in ("time", "ts") if name in names]
        if len(found) != 1:
            raise UsageError(f"{'several columns' if found else 'no column'} of times", "say which with --time COLUMN")
        return found[0]

    def _member_names(self) -> list[str]:
        """Read the columns, or the members of the first line, of the first file that can be read."""
        for split in self.splits(_HEAD_BYTES):
            if self.form == "parquet":
                try:
                    with open_file(split.uri, split.bytes_listed) as file:
                        return list(pq.read_schema(file).names)
                except UNREADABLE:
                    continue  # reported when its part is written
            for line in lines(split):
                return list(line)
        return []


def _list_files(root: Root) -> tuple[Root, list[FileEntry]]:
    """List the files of results in the folder that a root is, or the one file that it is; return the folder, too."""
    if suffix_of(root.path):
        above, name = root.parent()
        found = [entry for entry in above.list() if entry.path == name]
        if found:
            return above, found
    root.require()
    hidden = (".", "_")
    files = [e for e in root.list() if suffix_of(e.path) and not any(p.startswith(hidden) for p in e.path.split("/"))]
    return root, sorted(files, key=lambda entry: natural(entry.path))


def _split_row_groups(uri: str, entry: FileEntry, step: int) -> Iterable[Split]:
    """Cut a Parquet file into splits of row groups; one that cannot be read gets a split without any."""
    try:
        return [
            replace(split, reader=READER, folding="") for split in row_groups(uri, entry.path, entry.size, step, None)
        ]
    except UNREADABLE:
        empty = Split(uri=uri, path=entry.path, reader=READER, start=0, end=0, size=entry.size, listed=entry.size)
        return [empty]  # its task reports why it cannot be read


def times(job: Job, place: dict[str, Any]) -> Iterator[pa.Array]:
    """Read the times of a place's results in ms, batch by batch; of lines that are no records none.

    `place` is a row of `cklog.inputs.annotate.PLACES`. What cannot be read ends the times.
    """
    split = _split_of(place)
    try:
        if split.path.endswith(".parquet"):
            yield from (milliseconds(batch.column(0)) for batch in _read_batches(split, [job.column]))
        else:
            for block, _ in blocks(split):
                if isinstance(block, bytes):
                    yield times_of(block, job.column)[0]
    except (UnreadableResults, *ARROW_ERRORS):
        return  # reported when the part is written


def read_times(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read columns of times in ms, null where a result has none; a `cklog.engine.scan.Reader`."""
    if not split.path.endswith(".parquet"):
        for block, start in blocks(split):
            if isinstance(block, Damage):
                yield block
            else:
                yield from columns_of(block, start, split.path, columns)
        return
    try:
        for batch in _read_batches(split, list(columns)):
            yield pa.RecordBatch.from_arrays([_times_in(batch, name) for name in columns], list(columns))
    except UnreadableResults as error:
        yield damage_of(split.path, error, "")


def _times_in(batch: pa.RecordBatch, column: str) -> pa.Array:
    """Return a column of times in ms; nulls if there is none of that name, or it holds something else."""
    try:
        return milliseconds(batch.column(column))
    except (KeyError, pa.ArrowInvalid):
        return pa.nulls(batch.num_rows, pa.int64())


def write_part(job: Job, place: dict[str, Any]) -> list[dict[str, Any]]:
    """Write a place's results with their trust; return rows of `cklog.inputs.annotate.COUNTS`.

    `place` is a row of `cklog.inputs.annotate.PLACES`.

    Raises
    ------
    OutputError : the part cannot be written
    """
    split = _split_of(place)
    key = (split.path, split.start)
    tally = TrustTally(split.path)
    before = job.before.get(key, 0)
    before = np.iinfo(np.int64).max if before < 0 else before  # -1: all of it came before the restart
    with part(job.target, job.parts[key]) as file:
        if split.path.endswith(".parquet"):
            _write_from_parquet(job, split, before, file, tally)
        else:
            from_lines(job, split, before, file, tally)
    return tally.rows()


def _split_of(place: dict[str, Any]) -> Split:
    """Return the split that a place stands for, but for its size."""
    start, end, listed = place["start"], place["end"], place["listed"]
    return Split(uri=place["uri"], path=place["path"], reader="", start=start, end=end, size=listed, listed=listed)


def _read_batches(split: Split, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Read the columns (None: all) of a split's row groups.

    Raises
    ------
    UnreadableResults : the file cannot be read, or not on
    """
    try:
        with open_file(split.uri, split.listed) as handle:
            metadata = read_metadata(handle)
            check_rows(split.path, metadata.num_rows, handle.size())
            own = metadata.schema.to_arrow_schema()
            file = ParquetRows(handle, metadata, split.path, columns)
            for group in range(split.start, split.end):
                for batch in file.batches(group, _BATCH_ROWS):
                    yield batch.cast(pa.schema([own.field(name) for name in batch.schema.names]))
    except UNREADABLE as error:
        raise UnreadableResults(first_line(error)) from error


def _write_from_parquet(job: Job, split: Split, before: int, file: Any, tally: TrustTally) -> None:
    """Write the rows of a split's row groups with their trust; the first `before` came before the restart.

    A split without row groups is a file whose footer cannot be read.
    """
    writer: Any = None
    at = 0
    try:
        for batch in _read_batches(split, None):
            if job.column not in batch.schema.names:
                raise UnreadableResults(f"no column {job.column}")
            made = annotate(batch, job.column, job.steps, max(before - at, 0))
            at += batch.num_rows
            if job.form == "jsonl":
                file.write(as_lines(made))
            else:
                writer = writer or pq.ParquetWriter(file, made.schema, compression="snappy")
                writer.write_batch(made)
            untimed = batch.column(job.column).null_count
            tally.add(made.column(made.num_columns - 1).indices.to_numpy(), untimed)
    except (UnreadableResults, pa.ArrowInvalid) as error:
        tally.harm(damage_of(split.path, error, f"from row {at} on: "))
    if job.form == "parquet":
        (writer or pq.ParquetWriter(file, NOTHING)).close()
