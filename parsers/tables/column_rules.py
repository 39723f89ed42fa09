"""Columns of a table against the rules of its records: the same that `records` has for one record.

Rows that break a rule are told by column; whoever has a few of them looks at each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import map_rows
from cklog.model.schemas import CHOICES
from cklog.parsers.tables.records import (
    BIGGEST,
    FOOTPRINTS,
    NOT_NEGATIVE,
    NotARecord,
    UnknownWord,
    is_another_word,
    is_listed,
)


class Fault(NamedTuple):
    """Which rows of a batch are no records, a boolean array of shape (rows,), why, and the id of the damage."""

    rows: pa.Array
    why: str
    id: str = NotARecord.id


def faults(batch: pa.RecordBatch, schema: pa.Schema, seen: Collection[str] = ()) -> Iterator[Fault]:
    """Yield what is at fault by the rules of `as_record`, on whole columns of the right types.

    Such as the rows [False, True] with "seq is less than 0". Of the columns in `seen` no number is less than 0 or
    beyond 64 bits: whoever read them has looked.
    """
    for name in batch.schema.names:
        yield from _column_faults(name, batch.column(name), schema, name in seen)
    if "type" in batch.schema.names:
        kinds = None
        for name, lacking in (("window", (*FOOTPRINTS, "result")), ("open_windows", FOOTPRINTS)):
            if name in batch.schema.names and batch.column(name).null_count:
                kinds = batch.column("type").cast(pa.string()) if kinds is None else kinds
                needs = pc.is_in(kinds, value_set=pa.array(lacking, pa.string()))
                mask = pc.and_(needs, pc.is_null(batch.column(name)))
                if pc.any(mask).as_py():
                    yield Fault(mask, f"no field {name} in a record of type {' or '.join(lacking)}")


def _column_faults(name: str, array: pa.Array, schema: pa.Schema, seen: bool) -> Iterator[Fault]:
    """Yield what is at fault in one column; `seen`: all its numbers are in range."""
    if array.null_count and name in schema.names and not schema.field(name).nullable:
        yield Fault(pc.is_null(array), f"no field {name}")
    if name in NOT_NEGATIVE and not seen and not are_small(array):
        span = pc.min_max(array).as_py()
        if (span["min"] or 0) < 0:
            yield Fault(pc.fill_null(pc.less(array, 0), False), f"{name} is less than 0")
        if (span["max"] or 0) >= BIGGEST:
            yield Fault(pc.fill_null(pc.greater_equal(array, BIGGEST), False), f"{name} is beyond 64 bits")
    if pa.types.is_floating(array.type):
        fits = pc.less(pc.abs(array), float(BIGGEST))  # false for what is not a number
        if array.null_count < len(array) and not pc.all(fits).as_py():
            yield Fault(pc.fill_null(pc.invert(fits), False), f"{name} is beyond 64 bits")
    if name in schema.names and is_listed(schema.field(name)):
        words = pa.array([*CHOICES[name], None], pa.string())
        if pa.types.is_dictionary(array.type) and pc.all(pc.is_in(array.dictionary, value_set=words)).as_py():
            return
        texts = array.cast(pa.string())
        known = pc.is_in(texts, value_set=words)
        if not pc.all(known).as_py():
            why = f"is not one of {', '.join(CHOICES[name])}"
            odd = pc.unique(pc.filter(texts, pc.invert(known))).cast(pa.binary()).to_pylist()  # may be no UTF-8
            others = [word for word in (one.decode(errors="replace") for one in odd) if is_another_word(name, word)]
            unknown = pc.is_in(texts, value_set=pa.array(others, pa.string()))
            yield Fault(pc.and_not(pc.invert(known), unknown), f"{name} {why}")
            yield Fault(unknown, f"{name} {why}", UnknownWord.id)
    if pa.types.is_map(array.type) and len(array):
        row, inside = map_rows(array)
        negative = pc.fill_null(pc.less(array.items, 0), True).to_numpy(zero_copy_only=False) & inside
        if negative.any():
            bad = np.zeros(len(array), np.bool_)
            bad[row[negative]] = True
            yield Fault(pa.array(bad), f"{name} holds a watermark less than 0")


def are_small(array: pa.Array) -> bool:
    """Say whether no number is less than 0 or beyond 64 bits, if that can be told in one look: negatives are large."""
    if array.null_count or not pa.types.is_int64(array.type):
        return not len(array)
    return not len(array) or bool(array.to_numpy().view(np.uint64).max() < BIGGEST)
