"""Records of Kafka batches as lines of JSON, decoded all at once: what `kafka_rows` reads one by one.

The values of many batches are put one behind the other, a line each, and read as a file of JSON lines is. Batches that
do not decode, and values that could be no line of their own, are left to the careful way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.engine import Damage
from cklog.parsers.jsonl import reader as jsonl
from cklog.parsers.kafka.batches import Header
from cklog.parsers.kafka.decode import Decoded, decode


class RawBatch(NamedTuple):
    """A batch: where it begins, its header, and all of its bytes."""

    at: int
    head: Header
    data: bytes


def rows_at_once(
    path: str, pieces: Sequence[RawBatch], shape: jsonl.Shape, events: bool
) -> Iterator[pa.RecordBatch | Damage] | None:
    """Batches of the shape's columns, and damage; None: read them one by one.

    Parameters
    ----------
    events : each is placed at a byte of its own in its batch (`kafka_rows.own_place`), and else at the batch
    """
    found = decode([(piece.head, piece.data) for piece in pieces])
    at = np.array([piece.at for piece in pieces], np.int64)[found.batch]
    if events:
        nth = np.arange(len(at)) - np.searchsorted(found.batch, found.batch)
        if (nth >= np.array([piece.head.size for piece in pieces])[found.batch]).any():
            return None
        at = at + nth
    if found.faults or not len(at) or (found.value_length < 1).any():
        return None
    values = [found.data[a:b] for a, b in zip(found.value, found.value + found.value_length, strict=True)]
    block = b"\n".join([*values, b""])
    if block.count(b"\n") > len(values) or any(value[0] != 0x7B for value in values):
        return None
    begin = np.cumsum(found.value_length + 1) - found.value_length - 1
    return _placed(path, jsonl.rows_of(shape, 0, block), begin, at, found)


def _placed(
    path: str, rows: Iterator[pa.RecordBatch | Damage], begin: Ints, at: Ints, found: Decoded
) -> Iterator[pa.RecordBatch | Damage]:
    """The same with the places of batches in the segment, in place of those of lines in the block."""
    for item in rows:
        if isinstance(item, Damage):
            nth = int(np.searchsorted(begin, item.offset or 0))
            detail = f"Kafka offset {found.offset[nth]}: {item.detail}"
            yield replace(item, offset=int(at[nth]), detail=detail)
            continue
        if "_offset" in item.schema.names:
            places = pa.array(at[np.searchsorted(begin, item["_offset"].to_numpy())])
            item = item.set_column(item.schema.get_field_index("_offset"), "_offset", places)
        yield item
