"""A table of a run folder that lies in a Kafka topic partition: its records as rows, one by one or many at once.

    segment = batch*        (`cklog.parsers.kafka.segment`)
    record  = the JSON object of a row (`docs/run-folder.md`) as value,
              or, in an output queue, headers cec.type cec.window cec.ts cec.open_windows cec.input in UTF-8, and the
              state as value

A state that is no JSON becomes {"base64": "..."}. In an output queue `pos` is the record's own, else its Kafka offset;
`bytes` its own, else its size in the batch before compression. A row is placed at its batch; an event, whose place may
be all that tells its order, at a byte of it.

Some offsets hold no row: control markers, and what an aborted transaction wrote. In an output queue they become rows
of type control, so that positions stay dense. A transaction without a marker was open when the log ended, and nobody
who reads committed data saw it (`cklog.parsers.kafka.transactions`).

Many at once: the values of many batches are put one behind the other, a line each, and read as a file of JSON lines
is. Batches that do not decode, and values that could be no line of their own, are left to the way one by one.
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
from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import check_json
from cklog.engine.scan import Damage, Split
from cklog.errors import first_line
from cklog.model.schemas import TABLES
from cklog.model.wording import numbered
from cklog.parsers.jsonl import reader as jsonl
from cklog.parsers.kafka.batches import Header, KafkaRecord, records
from cklog.parsers.kafka.decode import Decoded, decode_parts
from cklog.parsers.kafka.payloads import BadBatch, Budget
from cklog.parsers.kafka.segment import BLOCK_BYTES, Segment, walk
from cklog.parsers.kafka.transactions import MarkerFate, SplitTransactions
from cklog.parsers.tables.records import NotARecord, as_record, batch_of_rows, strict_json

READER = "cklog.parsers.kafka.table:read"

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 1 << 13, 8 << 20
_GROUP_BATCHES, _GROUP_BYTES = 1000, 1 << 20
"""Batches decoded at once, before decompression."""


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage (a `Reader` of scans). Fields that nobody asked for are not judged."""
    full = TABLES[table]
    schema = pa.schema([f for f in full if f.name in columns or not f.nullable])
    flat = jsonl.flat_fields(schema, columns)
    lines = jsonl.Shape(path=split.path, schema=schema, columns=columns, flat=flat, trusted=True)
    rows: list[dict[str, Any]] = []
    held = 0
    try:
        for found in _read_rows(split, table, lines):
            if not isinstance(found, tuple):
                yield found
                continue
            size, row = found
            rows.append(row)
            held += size
            if len(rows) >= _ROWS_AT_ONCE or held >= _BYTES_AT_ONCE:
                yield batch_of_rows(rows, schema, columns)
                rows, held = [], 0
    except (OSError, *ARROW_ERRORS) as error:
        yield Damage(split.path, "unreadable-file", None, first_line(error))
    if rows:
        yield batch_of_rows(rows, schema, columns)


_SizedRow = tuple[int, dict[str, Any]]
"""A row, and about how many bytes it holds."""


def _read_rows(split: Split, table: str, shape: jsonl.Shape) -> Iterator[_SizedRow | pa.RecordBatch | Damage]:
    """Yield a row per record of the split's batches, alone or many as an Arrow batch, and the damage."""
    budget = Budget.of_split(split.end - split.start)
    if table == "outputs":
        for found in _batches_with_fates(split):
            if isinstance(found, Damage):
                yield found
            else:
                piece, fate = found
                yield from _rows_of_batch(split.path, piece, fate, table, shape.schema, budget)
        return
    for group in _committed_groups(split):
        if isinstance(group, Damage):
            yield _as_lost_events(group) if table == "events" else group
            continue
        for start, end, decoded in decode_parts([(piece.head, piece.data) for piece in group], budget):
            pieces = group[start:end]
            at_once = rows_at_once(pieces, decoded, shape, table == "events")
            if at_once is not None:
                yield from at_once
                continue
            for piece in pieces:
                yield from _rows_of_batch(split.path, piece, "commit", table, shape.schema, budget)


def _committed_groups(split: Split) -> Iterator[list[RawBatch] | Damage]:
    """Yield what was committed or in no transaction, some batches at once, and the damage."""
    group: list[RawBatch] = []
    held = 0
    for found in _batches_with_fates(split):
        if isinstance(found, Damage):
            yield found
            continue
        piece, fate = found
        if fate == "commit" and not piece.head.control:
            group.append(piece)
            held += len(piece.data)
        if held >= _GROUP_BYTES or len(group) >= _GROUP_BATCHES:
            yield group
            group, held = [], 0
    if group:
        yield group


def _batches_with_fates(split: Split) -> Iterator[tuple[RawBatch, MarkerFate] | Damage]:
    """Yield the split's batches, each with the fate of its transaction ("commit" if it is in none), and the damage."""
    transactions = SplitTransactions(split)
    with Segment(split.uri, split.path, split.size, BLOCK_BYTES) as segment:
        segment.limit = min(split.end, split.size)
        for found in walk(segment, split.start, segment.limit):
            if isinstance(found, Damage):
                yield found
                continue
            at, head = found
            data = head.transactional and not head.control
            fate = transactions.fate(head.producer, at) if data else "commit"
            if fate is None and head.count:  # compaction may have left a batch of none
                detail = "records of transactions without a marker up to the end of the log"
                yield Damage(path=split.path, id="open-transaction", offset=at, detail=detail, count=head.count)
            yield RawBatch(at, head, segment.bytes(at, head.size)), fate


def _as_lost_events(damage: Damage) -> Damage:
    """Call a jump of the offsets what it is among events, which are a history: some of it may be missing."""
    return replace(damage, id="missing-events") if damage.id == "offset-jump" else damage


def _rows_of_batch(
    path: str, piece: RawBatch, fate: MarkerFate, table: str, schema: pa.Schema, budget: Budget
) -> Iterator[_SizedRow | Damage]:
    """Yield a row per record of one batch, decoded one by one."""
    at, head, batch = piece
    done, own = 0, table == "events"
    try:
        for record in records(head, batch, budget):
            nth, done = done, done + 1
            if head.control or fate != "commit":
                row = {"type": "control", "ts": head.max_time, "pos": record.offset}
                yield 0, row | {"_path": path, "_offset": at}
                continue
            try:
                found = members(record, table)
                place = at + own_place(found, head, nth) if own else at
                yield record.size, as_record(found, schema) | {"_path": path, "_offset": place}
            except (NotARecord, RecursionError) as reason:  # a state may be nested deeper than json writes it
                place = at + min(nth, head.size - 1) if own else at
                yield Damage(path, "bad-record", place, f"Kafka offset {record.offset}: {reason}")
    except BadBatch as reason:
        detail = f"{numbered('offset', head.base, head.last)}, after {done} records: {reason}"
        count = max(head.count - done, 1)
        yield Damage(path=path, id=reason.id, offset=at, detail=detail, count=count)


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
    check_json(value)
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
    pieces: Sequence[RawBatch], found: Decoded, shape: jsonl.Shape, events: bool
) -> Iterator[pa.RecordBatch | Damage] | None:
    """Yield batches of the shape's columns, and damage; None: read the rows one by one.

    Parameters
    ----------
    pieces : batches that follow each other, none of them a control batch
    found : their records
    events : each is placed at a byte of its own in its batch (`own_place`), and else at the batch
    """
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
