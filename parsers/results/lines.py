"""JSON lines of results, each with its trust at its end: read in blocks, its other bytes left as they are."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cklog.arrays.types import Ints
from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split, damage_of
from cklog.errors import first_line
from cklog.inputs.annotate import COLUMN, NOTHING, UNTIMED, Codes, Job, codes_of, milliseconds
from cklog.model.trust import TRUSTS
from cklog.model.values import is_integer
from cklog.parsers.jsonl.columns import decode
from cklog.parsers.jsonl.stream import ByteStream, whole_lines
from cklog.parsers.tables.records import NotARecord, strict_json

_BLOCK_BYTES = 1 << 20
_END = b"}\n"
_ESCAPED = r'["\\\x00-\x1f]'
"""Characters that a JSON string holds in another form only."""


class UnreadableResults(Exception):
    """Raised where results cannot be read, or not on; says why."""


class TrustTally:
    """Counts of the rows of one part by their trust, and its damage."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._trust = np.zeros(len(TRUSTS), np.int64)
        self._untimed = 0
        self._damage: list[dict[str, Any]] = []

    def add(self, codes: Codes, untimed: int) -> None:
        """Count results that were written: the trust of each, shape (n,); of `untimed` ones no time is known."""
        self._trust += np.bincount(codes, minlength=len(TRUSTS))
        self._untimed += untimed

    def harm(self, damage: Damage) -> None:
        """Note what cannot be read and is left out."""
        row = {"path": self._path, "what": damage.id, "offset": damage.offset, "detail": damage.detail}
        self._damage.append(row | {"rows": damage.count})

    def rows(self) -> list[dict[str, Any]]:
        """Return the counts as rows of `cklog.inputs.annotate.COUNTS`."""
        counted = zip((*TRUSTS, UNTIMED), [*self._trust.tolist(), self._untimed], strict=True)
        none = {"path": self._path, "offset": None, "detail": ""}
        return [none | {"what": name, "rows": count} for name, count in counted] + self._damage


def blocks(split: Split) -> Iterator[tuple[bytes | Damage, int]]:
    """Read blocks of whole lines that begin in the split, of about a megabyte, and their offsets; damage in between."""
    try:
        with ByteStream(split) as file:
            for start, block, believed in whole_lines(file, split):
                if isinstance(block, Damage):
                    yield block, start
                    continue
                if not believed:
                    yield from _sealed_lines(split.path, block, start)
                    continue
                at = 0
                while at < len(block):
                    end = block.find(b"\n", min(at + _BLOCK_BYTES, len(block) - 1)) + 1
                    yield block[at:end], start + at
                    at = end
    except (OSError, *ARROW_ERRORS) as error:
        yield damage_of(split.path, error), 0


def _sealed_lines(path: str, block: bytes, start: int) -> Iterator[tuple[bytes | Damage, int]]:
    """Read lines that are not to be believed: those with a checksum of their own, and the others as damage."""
    for line in block.split(b"\n")[:-1]:
        try:
            if line.strip():
                strict_json(line, required=True)
                yield line + b"\n", start
        except NotARecord as why:
            yield Damage(path, "bad-record", start, str(why)), start
        start += len(line) + 1


def lines(split: Split) -> Iterator[dict[str, Any]]:
    """Read the records of a split, one by one; what is no record is passed over."""
    for block, _ in blocks(split):
        for line in block.split(b"\n")[:-1] if isinstance(block, bytes) else ():
            if line.strip():
                try:
                    yield strict_json(line)
                except NotARecord:
                    continue


def times_of(block: bytes, column: str) -> tuple[pa.Array, Ints | None]:
    """Read the times (ms, null if unknown) of a block's records, and the byte at which each begins, both of shape (n,).

    The bytes are None unless all lines have one shape: no blank ones, no checksums, no trust yet.
    """
    found = decode(block, ((column, "int64"), ("_offset", "int64"))) if b'"' + COLUMN.encode() not in block else None
    if found is not None and block.count(_END) == found.num_rows and b'"crc32c"' not in block:
        return milliseconds(found.column(0)), found.column(1).to_numpy()
    values = []
    for line in block.split(b"\n")[:-1]:
        try:
            value = _integer(strict_json(line).get(column)) if line.strip() else None
        except NotARecord:
            continue
        if line.strip():
            values.append(value)
    return pa.array(values, pa.int64()), None


def _integer(value: object) -> int | None:
    """Return an integer that a column can hold, None for any other value."""
    return value if is_integer(value) and -(1 << 63) <= value < 1 << 63 else None


def columns_of(block: bytes, start: int, path: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read integers from a block's records, null where there is none; what is no record is damage.

    `start` is the block's offset in its file.
    """
    fast = "_offset" not in columns  # which `decode` takes for the place of the line
    found = decode(block, tuple((column, "int64") for column in columns)) if fast else None
    if found is not None:
        yield pa.RecordBatch.from_arrays([milliseconds(column) for column in found.columns], list(columns))
        return
    rows: list[list[int | None]] = [[] for _ in columns]
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            try:
                record = strict_json(line)
                for values, column in zip(rows, columns, strict=True):
                    values.append(_integer(record.get(column)))
            except NotARecord as reason:
                yield Damage(path, "bad-record", start, str(reason))
        start += len(line) + 1
    yield pa.RecordBatch.from_arrays([pa.array(values, pa.int64()) for values in rows], list(columns))


def from_lines(job: Job, split: Split, before: int, file: Any, tally: TrustTally) -> None:
    """Write the records of a split with their trust; the first `before` came before the restart."""
    at, schema, writer = 0, None, None
    for block, start in blocks(split):
        if isinstance(block, Damage):
            tally.harm(block)
            continue
        values, offsets = times_of(block, job.column)
        codes = codes_of(values, job.steps, max(before - at, 0))
        at += len(codes)
        if offsets is not None:
            made = _append_trust(block, offsets, codes)
        else:
            made = _rewrite_lines(block, start, codes, tally)
        if job.form == "jsonl":
            file.write(made)
        else:
            try:
                table = _as_table(made, schema)
            except ARROW_ERRORS as error:
                why = f"from here on left out, for Parquet cannot hold its lines: {first_line(error)}"
                tally.harm(Damage(split.path, "corrupt-file", start, why))
                break
            schema = table.schema
            writer = writer or pq.ParquetWriter(file, schema, compression="snappy")
            writer.write_table(table)
        tally.add(codes, values.null_count)
    if job.form == "parquet":
        (writer or pq.ParquetWriter(file, NOTHING)).close()


def _append_trust(block: bytes, offsets: Ints, codes: Codes) -> bytes:
    """Append to each line its trust; line i begins at byte `offsets[i]` and has the trust `codes[i]`.

    Runs of equal trust are long, and each is rewritten at once, e.g. codes [0, 0, 1] → lines [0, 2) and [2, 3).
    """
    made = []
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]  # where runs begin; the end
    ends = [*offsets.tolist(), len(block)]
    for first, last in pairwise(starts):
        if first < last:
            member = f',"{COLUMN}":"{TRUSTS[codes[first]]}"'.encode()
            made.append(block[ends[first] : ends[last]].replace(_END, member + _END))
    return b"".join(made)


def _rewrite_lines(block: bytes, start: int, codes: Codes, tally: TrustTally) -> bytes:
    """Append to each record its trust, in lines of any shape; a checksum at the end of a line is made anew.

    `start` is the block's offset in its file, `codes` the trust of each record in it, shape (n,).
    """
    made, row, at = [], 0, start
    for line in block.split(b"\n")[:-1]:
        if line.strip():
            try:
                made.append(_line_with_trust(line, strict_json(line), TRUSTS[codes[row]]))
                row += 1
            except NotARecord as reason:
                tally.harm(Damage("", "bad-record", at, str(reason)))
        at += len(line) + 1
    return b"".join(made)


def _line_with_trust(line: bytes, found: dict[str, Any], trust: str) -> bytes:
    """Return the line of a record with its trust, and a checksum if it has one; `found` is the record."""
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
    """Turn lines into columns; `schema` is that of the first block, which all others must have."""
    from pyarrow import json as pajson

    options = pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if schema else "infer")
    found = pajson.read_json(io.BytesIO(lines), pajson.ReadOptions(use_threads=False), options)
    return found if schema is None or found.schema == schema else found.cast(schema)


def as_lines(batch: pa.RecordBatch) -> bytes:
    """Write a JSON object for each row, a line each: the texts of columns, joined."""
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    parts: list[Any] = []
    for lead, name, column in zip(["{", *"," * (len(names) - 1)], names, batch.columns, strict=True):
        parts += [f"{lead}{name}:", _json_texts(column)]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    return "".join(lines.to_pylist()).encode("utf-8", "replace")


def _json_texts(column: pa.Array) -> pa.Array:
    """Write each value as JSON, shape (n,)."""
    if pa.types.is_dictionary(column.type):
        return pc.fill_null(_json_texts(column.dictionary).take(column.indices), "null")
    if pa.types.is_timestamp(column.type):
        column = milliseconds(column)
    if pa.types.is_integer(column.type):
        return pc.fill_null(column.cast(pa.string()), "null")
    if pa.types.is_string(column.type) and not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        return pc.fill_null(pc.binary_join_element_wise('"', column, '"', ""), "null")
    texts = (
        json.dumps(v, ensure_ascii=False, separators=(",", ":"), default=_json_default) for v in column.to_pylist()
    )
    return pa.array(texts, pa.string())


def _json_default(value: Any) -> Any:
    """Turn what JSON has no form of: times into ms since the epoch, bytes into hexadecimal, the rest into text."""
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return round(aware.timestamp() * 1000)
    return value.hex() if isinstance(value, bytes) else str(value)
