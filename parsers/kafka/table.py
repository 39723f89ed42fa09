"""The rows of a table of a run folder that lie in a Kafka topic partition.

    segment = batch*  (`cklog.parsers.kafka.segment`)        record = a row of the table  (`cklog.parsers.kafka.rows`)

Some offsets hold no row: control markers, and what an aborted transaction wrote. In an output queue they become rows
of type control, so that positions stay dense. A transaction ends with the first marker of its producer behind the
batch, maybe in a later segment; without one it was open when the log ended, and nobody reading committed data saw it.
A row is placed at its batch; an event, whose place may be all that tells its order, at a byte of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cklog.engine import Damage, Split
from cklog.model.schemas import TABLES
from cklog.parsers.jsonl import reader as jsonl
from cklog.parsers.kafka.batches import BadBatch, records
from cklog.parsers.kafka.rows import RawBatch, members, own_place, rows_at_once
from cklog.parsers.kafka.segment import BLOCK_BYTES, Segment, walk
from cklog.parsers.kafka.transactions import MarkerFate, SplitTransactions
from cklog.parsers.tables.records import NotARecord, as_record, batch_of_rows

READER = "cklog.parsers.kafka.table:read"

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 1 << 13, 8 << 20
_GROUP_BATCHES, _GROUP_BYTES = 1000, 1 << 20
"""Batches decoded at once, before decompression."""


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield batches of `columns` and damage; a `cklog.engine.Reader`. Fields that nobody asked for are not judged."""
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
    except (OSError, pa.ArrowException) as error:
        yield Damage(split.path, "corrupt-file", None, f"cannot be read on: {error}".splitlines()[0])
    if rows:
        yield batch_of_rows(rows, schema, columns)


_SizedRow = tuple[int, dict[str, Any]]
"""A row, and about how many bytes it holds."""


def _read_rows(split: Split, table: str, shape: jsonl.Shape) -> Iterator[_SizedRow | pa.RecordBatch | Damage]:
    """Yield a row per record of the split's batches, alone or many as an Arrow batch, and the damage."""
    if table == "outputs":
        for found in _batches_with_fates(split):
            if isinstance(found, Damage):
                yield found
            else:
                piece, fate = found
                yield from _rows_of_batch(split.path, piece, fate, table, shape.schema)
        return
    for group in _committed_groups(split):
        if isinstance(group, Damage):
            yield _as_lost_events(group) if table == "events" else group
            continue
        at_once = rows_at_once(group, shape, table == "events")
        if at_once is not None:
            yield from at_once
            continue
        for piece in group:
            yield from _rows_of_batch(split.path, piece, "commit", table, shape.schema)


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
            if fate is None:
                detail = "records of transactions without a marker up to the end of the log"
                yield Damage(path=split.path, id="open-transaction", offset=at, detail=detail, count=head.count)
            yield RawBatch(at, head, segment.bytes(at, head.size)), fate


def _as_lost_events(damage: Damage) -> Damage:
    """Call a jump of the offsets what it is among events, which are a history: some of it may be missing."""
    return replace(damage, id="missing-events") if damage.id == "offset-jump" else damage


def _rows_of_batch(
    path: str, piece: RawBatch, fate: MarkerFate, table: str, schema: pa.Schema
) -> Iterator[_SizedRow | Damage]:
    """Yield a row per record of one batch, decoded one by one."""
    at, head, batch = piece
    done, own = 0, table == "events"
    try:
        for record in records(head, batch):
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
        detail = f"offsets {head.base} to {head.last}, after {done} records: {reason}"
        count = max(head.count - done, 1)
        yield Damage(path=path, id="corrupt-batch", offset=at, detail=detail, count=count)
