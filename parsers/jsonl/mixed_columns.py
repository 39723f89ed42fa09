"""Blocks of JSON lines of a few shapes, such as sends and checkpoints in one log: each shape decoded on its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Bytes, Ints, Mask
from cklog.parsers.jsonl.columns import Fields, decode

_SHAPES = 8
"""A block of more shapes is not decoded here; a record has few members that may be absent."""


def decode_mixed(block: bytes, fields: Fields) -> pa.RecordBatch | None:
    """Read columns as `cklog.parsers.jsonl.columns.decode` does, of lines of up to eight shapes; None: it cannot.

    Lines with equally many quotes are taken to be of one shape; if they are not, those whose second member begins
    with one letter. `decode` sees whether they are.

    Examples
    --------
    >>> block = b'{"channel":"a","seq":7}\\n{"checkpoint":1}\\n{"channel":"b","seq":8}\\n'
    >>> decode_mixed(block, (("seq", "int64"), ("_offset", "int64"))).to_pydict()
    {'seq': [7, None, 8], '_offset': [0, 24, 41]}
    """
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == ord("\n")) + 1
    if not len(ends) or ends[-1] != len(raw):
        return None
    starts = np.append(0, ends[:-1])
    quotes = np.add.reduceat(raw == ord('"'), starts).astype(np.int64)
    found = _decode_kinds(raw, starts, ends, quotes, fields)
    if found is None:
        found = _decode_kinds(raw, starts, ends, _quotes_and_letter(raw, quotes), fields)
    return found


def _quotes_and_letter(raw: Bytes, quotes: Ints) -> Ints:
    """Return each line's number of quotes, times 256, plus the byte behind its fifth quote; shapes (lines,).

    In an event log the fifth quote begins the name of the second member: {"ts":"1","seq":7} → 256 * 6 + ord("s").
    Lines of fewer quotes have 0 for the byte.
    """
    behind = np.append(np.flatnonzero(raw == ord('"')) + 1, 0)  # of every quote of the block; the last is no quote's
    fifth = np.where(quotes > 4, np.cumsum(quotes) - quotes + 4, len(behind) - 1)
    return 256 * quotes + np.where(quotes > 4, raw[behind[fifth]], 0)


def _decode_kinds(raw: Bytes, starts: Ints, ends: Ints, kind_of: Ints, fields: Fields) -> pa.RecordBatch | None:
    """Decode each kind of lines on its own and put them together; None unless all of them can be."""
    kinds, count = np.unique(kind_of, return_counts=True)
    if not 1 < len(kinds) <= _SHAPES:
        return None
    parts, lines = [], []
    for kind in kinds[np.argsort(count, kind="stable")].tolist():  # a damaged line is in a small group
        chosen = np.flatnonzero(kind_of == kind)
        part = decode(_chosen_lines(raw, starts, ends, kind_of == kind), fields)
        if part is None or part.num_rows != len(chosen):
            return None
        parts.append(_with_places(part, starts[chosen]))
        lines.append(chosen)
    table = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
    found: pa.RecordBatch = table.take(np.argsort(np.concatenate(lines))).combine_chunks().to_batches()[0]
    return found


def _chosen_lines(raw: Bytes, starts: Ints, ends: Ints, wanted: Mask) -> bytes:
    """Return the lines that are `wanted`, one behind the other."""
    return raw[np.repeat(wanted, ends - starts)].tobytes()


def _with_places(part: pa.RecordBatch, starts: Ints) -> pa.RecordBatch:
    """Return a part with its lines' offsets in the whole block; strings become dictionaries, so that parts fit."""
    arrays = []
    for name, column in zip(part.schema.names, part.columns, strict=True):
        if name == "_offset":
            column = pa.array(starts)
        elif pa.types.is_string(column.type):
            column = column.dictionary_encode()
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, part.schema.names)
