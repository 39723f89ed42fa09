"""Payloads of many Kafka batches, decompressed and put one behind the other, so that records can be read at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cklog.arrays.buffers import unfilled
from cklog.arrays.types import Ints
from cklog.budgets import PART_BYTES, PART_RECORDS
from cklog.parsers.kafka import legacy
from cklog.parsers.kafka.batches import HEADER, Header, KafkaRecord, check_empty
from cklog.parsers.kafka.payloads import BadBatch, Budget

HeaderAndBytes = tuple[Header, "bytes | memoryview"]
"""A header and the bytes of the whole batch."""

_PADDING = 64
"""Bytes behind the last payload: the numbers of one record may be read so far beyond its end before it is judged."""


class Fault(NamedTuple):
    """A batch that is not decoded, by its place in the input, and why; none of its records is given.

    `id` is the one of the damage: nothing may be wrong with a batch that is "over-budget", or of an "unknown-version".
    """

    batch: int
    reason: str
    id: str = BadBatch.id


ARRAYS = (
    "batch",
    "offset",
    "timestamp",
    "key",
    "key_length",
    "value",
    "value_length",
    "headers",
    "headers_at",
    "size",
)
"""The arrays of `Decoded`, in the order in which they are the rows of one array of shape (10, n) here."""


class JoinedPayloads(NamedTuple):
    """Payloads one behind the other, with padding: batch i takes [start[i], start[i + 1]) and has counts[i] records.

    Shapes: `start` (batches + 1,), `counts` (batches,). A batch of format 0 or 1 has no count: its messages are decoded
    already and lie in `old`, an array of shape (10, n) for each such batch, its rows as in `ARRAYS`.
    """

    data: bytes
    start: Ints
    counts: Ints
    old: list[Ints]
    faults: list[Fault]


def join_payloads(batches: Sequence[HeaderAndBytes], budget: Budget | None) -> JoinedPayloads:
    """Decompress payloads and join them; empty where that cannot be, and where no record is left.

    With a budget it stops behind the batch with which a part gets too large.
    """
    parts: list[bytes | memoryview] = []
    count, start = [], [0]
    old: list[Ints] = []
    faults: list[Fault] = []
    held = 0
    for i, (head, data) in enumerate(batches):
        if budget and (start[-1] >= PART_BYTES or held >= PART_RECORDS):
            break
        part: bytes | memoryview = b""
        whole = 0
        try:
            if head.magic < 2:
                rows = list(legacy.records(head, bytes(data), budget))
                part = b"".join((row.key or b"") + (row.value or b"") for row in rows)
                old.append(_legacy_arrays(i, rows, start[-1]))
                held += len(rows)
            elif head.count:
                part = _payload(head, data, budget or Budget())
                whole = head.count
            else:
                check_empty(head)
        except BadBatch as reason:
            faults.append(Fault(i, str(reason), reason.id))
        parts.append(part)
        count.append(whole)
        held += whole
        start.append(start[-1] + len(part))
    joined = b"".join([*parts, bytes(_PADDING)])
    counts = np.array(count, np.int64)
    return JoinedPayloads(data=joined, start=np.array(start, np.int64), counts=counts, old=old, faults=faults)


def _payload(head: Header, data: bytes | memoryview, budget: Budget) -> bytes | memoryview:
    """Return the decompressed payload of a batch; one that is not compressed as it lies there."""
    packed = data[HEADER.size : head.size]
    if head.codec:
        return budget.payload(head.codec, bytes(packed), head.count)
    budget.count(head.count)
    return packed


def _legacy_arrays(i: int, rows: list[KafkaRecord], at: int) -> Ints:
    """Return the arrays of old messages, whose keys and values lie one behind the other from `at`; shape (10, n)."""
    found = unfilled((len(ARRAYS), len(rows)), np.int64)
    for k, row in enumerate(rows):
        lengths = [-1 if held is None else len(held) for held in (row.key, row.value)]
        value = at + max(lengths[0], 0)
        end = value + max(lengths[1], 0)
        found[:, k] = (i, row.offset, row.timestamp, at, lengths[0], value, lengths[1], 0, end, row.size)
        at = end
    return found
