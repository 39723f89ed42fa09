"""Parquet, with each codec, against Arrow's own reader."""

from __future__ import annotations

import functools
import pickle
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cklog.arrow_errors import ARROW_ERRORS
from cklog.errors import OverBudget
from cklog.parsers.tables.parquet_batches import ParquetRows, check_rows
from tests.differential.mutations import Damage
from tests.differential.parquet_files import CODECS, compressed, take_apart, with_right_sums
from tests.differential.thrift import numbers_in
from tests.differential.verdicts import Decoder, Outcome

_UNREADABLE = (OSError, *ARROW_ERRORS, ValueError)
"""What a reader of Parquet files takes for damage of a file."""

_KINDS = ("int64", "int64", "string", "string", "int32", "double", "bool", "binary", "map", "list", "struct")
_NUMBERS = (0, 1, 2, 7, 200, 70_000, 1 << 40, (1 << 63) - 1, -1, -(1 << 63))
_TEXTS = ("", "a", "a/0->b/0", "naïve", "x" * 40)


def _column(
    chance: random.Random, kind: str, rows: int, nulls: bool, numbers: Sequence[int]
) -> tuple[pa.DataType, list[Any]]:
    """Return the type and the values of a column."""

    def value() -> Any:
        if nulls and chance.random() < 0.2:
            return None
        number, text = chance.choice(numbers[: chance.choice((2, 10))]), chance.choice(_TEXTS)
        return {
            "int64": number,
            "int32": number % 1000,
            "double": number / 3,
            "bool": bool(number & 1),
            "string": text,
            "binary": text.encode(),
            "map": [(text, number)] * chance.randrange(3),
            "list": [number] * chance.randrange(3),
            "struct": {"a": number, "b": text},
        }[kind]

    types = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "map": pa.map_(pa.string(), pa.int64()),
        "list": pa.list_(pa.int64()),
        "struct": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    }
    return types[kind], [value() for _ in range(rows)]


def _written(chance: random.Random, folded: bool) -> bytes:
    rows = chance.choice((0, 1, 2, 9, 30, 70))
    fields, arrays = [], []
    rarely = 0.05 if folded else 0.3  # what loops leave to Arrow
    usual = folded or chance.random() < 0.6
    numbers = _NUMBERS[:7] if folded and chance.random() < 0.8 else _NUMBERS
    for number in range(chance.choice((1, 2, 3))):
        nulls = chance.random() < rarely
        kind, values = _column(chance, chance.choice(_KINDS[:4] if usual else _KINDS), rows, nulls, numbers)
        fields.append(pa.field(f"c{number}", kind, nullable=nulls or chance.random() < 0.7))
        arrays.append(pa.array(values, kind))
    encodings = {}
    dictionary = chance.random() < (0.9 if folded else 0.6)
    if not dictionary and chance.random() < 0.5:
        choices = {
            pa.int64(): ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
            pa.string(): ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"),
        }
        encodings = {f.name: chance.choice(choices[f.type]) for f in fields if f.type in choices}
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(arrays, schema=pa.schema(fields)),
        sink,
        row_group_size=chance.choice((7, 100)),
        compression="none",
        use_dictionary=dictionary,
        column_encoding=encodings or None,
        data_page_version="2.0" if chance.random() < rarely else "1.0",
        data_page_size=chance.choice((1, 64, 1 << 20)),
        write_batch_size=chance.choice((1, 8, 1024)),
        dictionary_pagesize_limit=16 if chance.random() < (0.1 if folded else 0.5) else 1 << 20,
        write_page_checksum=chance.random() < rarely,
        write_statistics=chance.random() < 0.5,
        store_schema=chance.random() < 0.3,
    )
    return bytes(sink.getvalue())


_FILES = 1024
"""Files that damage is done to: writing one takes longer than reading it."""


@functools.cache
def _parts(folded: bool, number: int) -> bytes:
    """Return the parts of an uncompressed file, pickled; `folded`: mostly one that loops decode and fold."""
    return pickle.dumps(take_apart(_written(random.Random(f"parquet/{folded}/{number}"), folded)))


@functools.cache
def _intact(folded: bool, number: int, codec: int) -> bytes:
    return compressed(pickle.loads(_parts(folded, number)), codec, _same, _same, lambda fields: None)


def _same(piece: bytes) -> bytes:
    return piece


def made(codec: int, folded: bool, damage: Damage) -> bytes:
    """Return a file, damaged inside if it is to be; `folded`: mostly one that loops decode and fold."""
    chance = damage.chance
    number = chance.randrange(_FILES)
    if damage.kind != "inside":
        return _intact(folded, number, codec)
    part = chance.choice(("plain", "packed", "tree"))
    turn = iter(range(chance.randrange(6), -99, -1))

    def change(of: str, piece: bytes) -> bytes:
        return damage.inside(piece, 1.0) if of == part and next(turn, 0) <= 0 else piece

    def change_tree(fields: list[Any]) -> None:
        numbers = numbers_in(fields)
        if part == "tree" and damage.kind == "inside" and not damage.done and numbers and next(turn, 0) <= 0:
            damage.done = True
            field = chance.choice(numbers)
            field[2] = field[2] + chance.choice((-8, -1, 1, 8)) if chance.random() < 0.6 else chance.choice(_NUMBERS)

    return compressed(
        pickle.loads(_parts(folded, number)), codec, partial(change, "plain"), partial(change, "packed"), change_tree
    )


def rows_of(batches: Any) -> list[Any]:
    plain = (_with_numbers(batch) for batch in batches)
    return [tuple(row.values()) for batch in plain for row in batch.to_pylist(maps_as_pydicts=None)]


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with times as the integers that they are stored as: Python has no times as large."""
    columns = [
        column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        if pa.types.is_temporal(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


RowsOfGroup = Callable[[ParquetRows, int], list[Any]]


def read_groups(rows_of_group: RowsOfGroup, data: bytes) -> Outcome:
    """Read all row groups as readers of cklog do; of each its rows, or None where it is damaged."""
    handle = pa.BufferReader(data)
    found: list[Any] = []
    try:
        metadata = pq.read_metadata(handle)
        check_rows("f", metadata.num_rows, handle.size())
        file = ParquetRows(handle, metadata, "f")
    except _UNREADABLE as error:
        return Outcome("refused", why=_why(error))
    except OverBudget as error:
        return Outcome("limit", why=error.what)
    why = "no rows"
    for group in range(metadata.num_row_groups):
        rows: list[Any] | None = None
        try:
            rows = rows_of_group(file, group)
            if len(rows) != metadata.row_group(group).num_rows:
                rows, why = None, "fewer rows than its footer says"
        except _UNREADABLE as error:
            why = _why(error)
        except OverBudget as error:
            return Outcome("limit", why=error.what)
        found.append(rows)
    if found and all(rows is None for rows in found):
        return Outcome("refused", why=why)
    return Outcome("value", found)


def _read(data: bytes) -> Outcome:
    return read_groups(lambda file, group: rows_of(file.batches(group, 1 << 20)), data)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def refer(data: bytes) -> Outcome:
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        groups = file.metadata.num_row_groups
        file.schema_arrow  # noqa: B018
    except _UNREADABLE as error:
        return Outcome("refused", why=_why(error))
    found: list[Any] = []
    why = ""
    for group in range(groups):
        rows: list[Any] | None = None
        try:
            table = file.read_row_group(group, use_threads=False)
            table.validate(full=True)
            rows = rows_of(table.to_batches())
        except (*_UNREADABLE, MemoryError) as error:  # Arrow allocates for what headers claim
            why = _why(error)
        found.append(rows)
    if found and all(rows is None for rows in found):
        return Outcome("refused", why=why)
    return Outcome("value", found)


def equal(ours: Any, theirs: Any) -> bool:
    """Return whether each row group that cklog reads is the same in Arrow's reader."""
    return len(ours) == len(theirs) and all(a is None or repr(a) == repr(b) for a, b in zip(ours, theirs, strict=True))


def decoder_of(name: str, codec: str, read: Callable[[bytes], Outcome], folded: bool = False) -> Decoder:
    """Return what compares `read` of cklog with Arrow's reader, by files of a codec."""
    return Decoder(
        name=f"{name}-{codec}",
        reference="pyarrow",
        make=partial(made, CODECS[codec], folded),
        read=read,
        refer=refer,
        repair=with_right_sums,
        equal=equal,
        compiled=True,
    )


DECODERS = tuple(decoder_of("parquet", codec, _read) for codec in CODECS)
