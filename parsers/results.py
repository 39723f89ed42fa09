"""Results of a query as files: Parquet, or JSON lines, plain or compressed; read and written with their trust.

    PATH    one file, or a folder of them; in the order of their names, digits compared as numbers
    part    Parquet in, Parquet out: every column as it is, and the trust
            lines in, lines out: every byte of a line as it is, and the member "trust" at its end
            else: the columns of Parquet as members, or members as the columns that the first line has

A line may end with a crc32c of its own, which is verified and made anew. What is no record is left out and told.
"""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cklog.annotate import COLUMN, Job, annotate, codes_of, milliseconds
from cklog.annotate_files import part
from cklog.engine import Damage, Split
from cklog.errors import NotFound, UsageError
from cklog.impact_model import TRUSTS
from cklog.parsers.columns import decode
from cklog.parsers.jsonl import Stream, whole_lines
from cklog.parsers.output_queues import natural, suffix_of
from cklog.parsers.parquet import footer, row_groups
from cklog.parsers.records import NotARecord, strict_json
from cklog.storage import Entry, Root, open_file

_BATCH_ROWS = 1 << 17
_BLOCK_BYTES = 1 << 20
_END = b"}\n"
_ESCAPED = r'["\\\x00-\x1f]'
"""What a JSON string holds in another form only."""


class Results:
    """Files of results of one form."""

    def __init__(self, path: str) -> None:
        """Raises
        ------
        NotFound : there is no such file or folder, or nothing in it
        UsageError : files of both forms
        """
        self._root, self._files = _listed(path)
        forms = {"parquet" if entry.path.endswith(".parquet") else "jsonl" for entry in self._files}
        if len(forms) != 1:
            known = ".parquet, .jsonl, .jsonl.gz, .jsonl.zst"
            if forms:
                raise UsageError(f"{path}: Parquet and JSON lines side by side", "name one of the files")
            raise NotFound(f"{path}: no results in it", f"results are files named {known}")
        self.form = forms.pop()
        self.bytes = sum(entry.size for entry in self._files)

    def splits(self, step: int) -> list[Split]:
        """Splits of about `step` bytes, in the order of the log."""
        found: list[Split] = []
        for entry in self._files:
            uri = self._root.uri(entry.path)
            if entry.path.endswith(".parquet"):
                found += _groups(uri, entry, step)
                continue
            size = step if entry.path.endswith(".jsonl") else max(entry.size, 1)
            found += [
                Split(uri, entry.path, "", start, min(start + size, entry.size), entry.size)
                for start in range(0, entry.size, size)
            ]
        return found

    def time_column(self) -> str:
        """`time` or `ts`, whichever the results have.

        Raises
        ------
        UsageError : they have neither, or both
        """
        names = self._names()
        found = [name for name in ("time", "ts") if name in names]
        if len(found) != 1:
            raise UsageError(f"{'several columns' if found else 'no column'} of times", "say which with --time COLUMN")
        return found[0]

    def _names(self) -> list[str]:
        for split in self.splits(_BLOCK_BYTES):
            if self.form == "parquet":
                with open_file(split.uri) as file:
                    return list(pq.read_schema(file).names)
            for _, line in _lines(split):
                return list(line)
        return []


def _listed(path: str) -> tuple[Root, list[Entry]]:
    """The folder, and the files of results in it or the one that PATH is."""
    if suffix_of(path):
        root, name = Root(path).parent()
        found = [entry for entry in root.list() if entry.path == name]
        if found:
            return root, found
    root = Root(path)
    root.require()
    hidden = (".", "_")
    files = [e for e in root.list() if suffix_of(e.path) and not any(p.startswith(hidden) for p in e.path.split("/"))]
    return root, sorted(files, key=lambda entry: natural(entry.path))


def _groups(uri: str, entry: Entry, step: int) -> Iterable[Split]:
    try:
        return list(row_groups(uri, entry.path, step, None))
    except (OSError, pa.ArrowException):
        return [Split(uri, entry.path, "", 0, 0, entry.size)]  # its task tells why it cannot be read


def times(job: Job, place: dict[str, Any]) -> Iterator[pa.Array]:
    """The times of a place's results in ms, batch by batch; of lines that are no records none."""
    split = Split(place["uri"], place["path"], "", place["start"], place["end"], place["end"])
    try:
        if place["path"].endswith(".parquet"):
            yield from (milliseconds(batch.column(0)) for batch in _batches(split, [job.column]))
        else:
            for block, _ in _blocks(_whole(split)):
                if isinstance(block, bytes):
                    yield _times_of(block, job.column)[0]
    except (OSError, pa.ArrowException, ValueError):
        return  # told when the part is written


def write_part(job: Job, place: dict[str, Any]) -> list[dict[str, Any]]:
    """Write a place's results with their trust; rows of `cklog.annotate.COUNTS`.

    Raises
    ------
    OutputError : the part cannot be written
    """
    split = Split(place["uri"], place["path"], "", place["start"], place["end"], place["end"])
    key = (split.path, split.start)
    tally = _Tally(split.path)
    before = job.before.get(key, 0)
    before = np.iinfo(np.int64).max if before < 0 else before
    with part(job.target, job.parts[key]) as file:
        if split.path.endswith(".parquet"):
            _from_parquet(job, split, before, file, tally)
        else:
            _from_lines(job, _whole(split), before, file, tally)
    return tally.rows()


class _Tally:
    """Rows by trust, and damage."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._trust = np.zeros(len(TRUSTS), np.int64)
        self._damage: list[dict[str, Any]] = []

    def add(self, codes: Any) -> None:
        self._trust += np.bincount(codes, minlength=len(TRUSTS))

    def harm(self, damage: Damage) -> None:
        row = {"path": self._path, "what": damage.id, "offset": damage.offset, "detail": damage.detail}
        self._damage.append(row | {"rows": damage.count})

    def rows(self) -> list[dict[str, Any]]:
        counted = zip(TRUSTS, self._trust.tolist(), strict=True)
        none = {"path": self._path, "offset": None, "detail": ""}
        return [none | {"what": name, "rows": count} for name, count in counted] + self._damage


def _batches(split: Split, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    with open_file(split.uri) as handle:
        file = pq.ParquetFile(handle, page_checksum_verification=True)
        groups = list(range(split.start, split.end))
        yield from file.iter_batches(_BATCH_ROWS, groups, columns, use_threads=False)


def _from_parquet(job: Job, split: Split, before: int, file: Any, tally: _Tally) -> None:
    writer: Any = None
    at = 0
    try:
        if split.end == split.start:
            footer(split.uri)
        for batch in _batches(split, None):
            if job.column not in batch.schema.names:
                raise pa.ArrowInvalid(f"no column {job.column}")
            made = annotate(batch, job.column, job.steps, max(before - at, 0))
            tally.add(made.column(made.num_columns - 1).indices.to_numpy())
            if job.form == "jsonl":
                file.write(_as_lines(made))
            else:
                writer = writer or pq.ParquetWriter(file, made.schema, compression="snappy")
                writer.write_batch(made)
            at += batch.num_rows
    except (pa.ArrowException, ValueError) as error:
        tally.harm(Damage(split.path, "corrupt-file", None, f"from row {at} on: {str(error).splitlines()[0]}"))
    if writer is None and job.form == "parquet":
        writer = pq.ParquetWriter(file, pa.schema([pa.field(COLUMN, pa.string())]))
    if writer is not None:
        writer.close()


def _as_lines(batch: pa.RecordBatch) -> bytes:
    """A JSON object for each row: the texts of columns, joined."""
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    parts: list[Any] = []
    for lead, name, column in zip(["{", *"," * (len(names) - 1)], names, batch.columns, strict=True):
        parts += [f"{lead}{name}:", _texts(column)]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    return "".join(lines.to_pylist()).encode("utf-8", "replace")


def _texts(column: pa.Array) -> pa.Array:
    """The JSON text of each value, shape (n,)."""
    if pa.types.is_dictionary(column.type):
        return pc.fill_null(_texts(column.dictionary).take(column.indices), "null")
    if pa.types.is_timestamp(column.type):
        column = milliseconds(column)
    if pa.types.is_integer(column.type):
        return pc.fill_null(column.cast(pa.string()), "null")
    if pa.types.is_string(column.type) and not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        return pc.fill_null(pc.binary_join_element_wise('"', column, '"', ""), "null")
    texts = (json.dumps(v, ensure_ascii=False, separators=(",", ":"), default=_plain) for v in column.to_pylist())
    return pa.array(texts, pa.string())


def _plain(value: Any) -> Any:
    """What JSON has no form of: times in ms since the epoch, bytes as hexadecimal, the rest as text."""
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return round(aware.timestamp() * 1000)
    return value.hex() if isinstance(value, bytes) else str(value)


def _whole(split: Split) -> Split:
    """A split with its file's own size, which tells where the last line ends."""
    with open_file(split.uri) as file:
        return Split(split.uri, split.path, "", split.start, split.end, file.size())


def _blocks(split: Split) -> Iterator[tuple[bytes | Damage, int]]:
    """Blocks of whole lines that begin in the split, of about a megabyte, and their offsets; damage in between."""
    with Stream(split) as file:
        for start, block in whole_lines(file, split):
            if isinstance(block, Damage):
                yield block, start
                continue
            at = 0
            while at < len(block):
                end = block.find(b"\n", min(at + _BLOCK_BYTES, len(block) - 1)) + 1
                yield block[at:end], start + at
                at = end
        if file.fault is not None:
            yield file.fault, 0


def _lines(split: Split) -> Iterator[tuple[bytes, dict[str, Any]]]:
    for block, _ in _blocks(split):
        for line in block.split(b"\n")[:-1] if isinstance(block, bytes) else ():
            if line.strip():
                try:
                    yield line, strict_json(line)
                except NotARecord:
                    continue


def _times_of(block: bytes, column: str) -> tuple[pa.Array, Any]:
    """The times of a block's records, and where each begins; (…, None) unless all lines have one shape."""
    found = decode(block, ((column, "int64"), ("_offset", "int64"))) if b'"' + COLUMN.encode() not in block else None
    if found is not None and block.count(_END) == found.num_rows and b'"crc32c"' not in block:
        return milliseconds(found.column(0)), found.column(1).to_numpy()
    values = []
    for line in block.split(b"\n")[:-1]:
        try:
            value = strict_json(line).get(column) if line.strip() else None
        except NotARecord:
            continue
        if line.strip():
            values.append(value if isinstance(value, int) and not isinstance(value, bool) else None)
    return pa.array(values, pa.int64()), None


def _from_lines(job: Job, split: Split, before: int, file: Any, tally: _Tally) -> None:
    at, schema, writer = 0, None, None
    for block, start in _blocks(split):
        if isinstance(block, Damage):
            tally.harm(block)
            continue
        values, offsets = _times_of(block, job.column)
        codes = codes_of(values, job.steps, max(before - at, 0))
        tally.add(codes)
        at += len(codes)
        lines = _extended(block, offsets, codes) if offsets is not None else _rewritten(block, start, codes, tally)
        if job.form == "jsonl":
            file.write(lines)
            continue
        try:
            table = _as_table(lines, schema)
        except pa.ArrowException as error:
            why = f"its lines have several shapes, which Parquet cannot hold: {str(error).splitlines()[0]}"
            tally.harm(Damage(split.path, "corrupt-file", start, why))
            break
        schema = table.schema
        writer = writer or pq.ParquetWriter(file, schema, compression="snappy")
        writer.write_table(table)
    if job.form == "parquet":
        (writer or pq.ParquetWriter(file, pa.schema([pa.field(COLUMN, pa.string())]))).close()


def _extended(block: bytes, offsets: Any, codes: Any) -> bytes:
    """Every line with its trust: runs of equal trust are long, and the end of a line is found at its newline alone."""
    made = []
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    ends = [*offsets.tolist(), len(block)]
    for first, last in pairwise(starts):
        if first < last:
            member = f',"{COLUMN}":"{TRUSTS[codes[first]]}"'.encode()
            made.append(block[ends[first] : ends[last]].replace(_END, member + _END))
    return b"".join(made)


def _rewritten(block: bytes, start: int, codes: Any, tally: _Tally) -> bytes:
    """The same line by line, of lines of any shape; a checksum at the end of a line is made anew."""
    made, row, at = [], 0, start
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            try:
                made.append(_with_trust(line, strict_json(line), TRUSTS[codes[row]]))
                row += 1
            except NotARecord as reason:
                tally.harm(Damage("", "bad-record", at, str(reason)))
        at += len(line) + 1
    return b"".join(made)


def _with_trust(line: bytes, found: dict[str, Any], trust: str) -> bytes:
    member = f'"{COLUMN}":"{trust}"'.encode()
    summed = b',"crc32c":"' in line[-24:]
    if COLUMN in found:
        text = json.dumps(found | {COLUMN: trust}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    else:
        text = line.rstrip()
        text = text[: text.rindex(b',"crc32c"')] if summed else text[:-1].rstrip()
        text += (b"," if found else b"") + member + b"}"
    if not summed:
        return text + b"\n"
    return text[:-1] + f',"crc32c":"{crc32c.crc32c(text[:-1]):08x}"}}\n'.encode()


def _as_table(lines: bytes, schema: pa.Schema | None) -> pa.Table:
    """Lines as columns: those of the first block, which all others must have."""
    from pyarrow import json as pajson

    options = pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if schema else "infer")
    found = pajson.read_json(io.BytesIO(lines), pajson.ReadOptions(use_threads=False), options)
    return found if schema is None or found.schema == schema else found.cast(schema)
