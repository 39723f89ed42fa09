"""Records of a Kafka partition as rows of a table of a run folder (`docs/run-folder.md`): one by one, or many at once.

    record = the JSON object of the row as value,
             or, in an output queue, headers cec.type cec.window cec.ts cec.open_windows cec.input in UTF-8, and the
             state as value

A state that is no JSON becomes {"base64": "..."}. In an output queue `pos` is the record's own, else its Kafka offset;
`bytes` its own, else its size in the batch before compression.

At once: the values of many batches are put one behind the other, a line each, and read as a file of JSON lines is.
Batches that do not decode, and values that could be no line of their own, are left to the way one by one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints
from cklog.engine import Damage
from cklog.parsers.jsonl import reader as jsonl
from cklog.parsers.kafka.batches import Header, KafkaRecord
from cklog.parsers.kafka.decode import Decoded, decode
from cklog.parsers.tables.records import NotARecord, strict_json

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBERS = ("cec.ts", "cec.open_windows")


def members(record: KafkaRecord, table: str) -> dict[str, Any]:
    """Return the members of a record's row, however they are encoded.

    Raises
    ------
    NotARecord : there is no object in the record
    """
    return _members_of_output(record) if table == "outputs" else _members_of_value(record)


def own_place(found: dict[str, Any], head: Header, nth: int) -> int:
    """Return the place of the `nth` event of a batch, in bytes behind the batch's beginning.

    The order of events without a number of their own is that of their places. A batch is one place; so its events are
    given its bytes, one after the other, which come before those of the next batch.

    Raises
    ------
    NotARecord : the batch has fewer bytes than events, and only its place tells the order of this one
    """
    if nth >= head.size and found.get("lsn") is None:
        raise NotARecord(f"no lsn, and no place for it in the {head.size} bytes of its batch")
    return min(nth, head.size - 1)


def _members_of_value(record: KafkaRecord) -> dict[str, Any]:
    if record.value is None:
        raise NotARecord("a null value")
    return strict_json(record.value)


def _members_of_output(record: KafkaRecord) -> dict[str, Any]:
    """Return the members of a record of an output queue: from its headers and state, or from its value alone."""
    headers = dict(record.headers)
    if "cec.type" in headers:
        found = _members_of_headers(headers) | {"state": _json_or_base64(record.value)}
    elif record.value is None:
        raise NotARecord("a null value and no header cec.type")
    else:
        found = strict_json(record.value)
    for name, default in (("pos", record.offset), ("bytes", record.size)):
        if found.get(name) is None:
            found[name] = default
    return found


def _members_of_headers(headers: dict[str, bytes | None]) -> dict[str, Any]:
    """Return the members that headers `cec.…` hold, e.g. {"cec.type": b"open", "cec.ts": b"5"} → type "open", ts 5."""
    found: dict[str, Any] = {}
    for name, raw in headers.items():
        if not name.startswith("cec.") or raw is None:
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise NotARecord(f"header {name} is not UTF-8") from None
        if name == "cec.input" and text.startswith("{"):
            found["input"] = strict_json(raw)
        elif name == "cec.input" or name in _NUMBERS:
            if not _INTEGER.fullmatch(text):
                raise NotARecord(f"header {name} is {text[:40]!r}, not an integer")
            found[name[4:]] = int(text)
        elif name in ("cec.type", "cec.window"):
            found[name[4:]] = text
    return found


def _json_or_base64(value: bytes | None) -> Any:
    """Return the JSON value that bytes hold, or the bytes themselves as {"base64": ...}."""
    if value is None:
        return None
    try:
        return json.loads(value.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {"base64": base64.b64encode(value).decode("ascii")}


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


class RawBatch(NamedTuple):
    """A batch: where it begins, its header, and all of its bytes."""

    at: int
    head: Header
    data: bytes


def rows_at_once(
    pieces: Sequence[RawBatch], shape: jsonl.Shape, events: bool
) -> Iterator[pa.RecordBatch | Damage] | None:
    """Yield batches of the shape's columns, and damage; None: read the rows one by one.

    Parameters
    ----------
    pieces : batches that follow each other, none of them a control batch
    events : each is placed at a byte of its own in its batch (`own_place`), and else at the batch
    """
    found = decode([(piece.head, piece.data) for piece in pieces])
    at = np.array([piece.at for piece in pieces], np.int64)[found.batch]
    if events:
        nth = np.arange(len(at)) - np.searchsorted(found.batch, found.batch)  # of its batch, from 0
        if (nth >= np.array([piece.head.size for piece in pieces])[found.batch]).any():
            return None
        at = at + nth
    if found.faults or not len(at) or (found.value_length < 1).any():
        return None
    values = [found.data[a:b] for a, b in zip(found.value, found.value + found.value_length, strict=True)]
    block = b"\n".join([*values, b""])
    if block.count(b"\n") > len(values) or any(value[0] != 0x7B for value in values):
        return None
    begin = np.cumsum(found.value_length + 1) - found.value_length - 1  # of each line in the block
    return _with_kafka_places(jsonl.rows_of(shape, 0, block), begin, at, found)


def _with_kafka_places(
    rows: Iterator[pa.RecordBatch | Damage], begin: Ints, at: Ints, found: Decoded
) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the rows with their places in the segment, instead of those of lines in the block.

    Line i begins at begin[i] in the block and came from byte at[i] of the segment: with begin [0, 20] and at [61, 61],
    a row at 20 is placed at 61.
    """
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
