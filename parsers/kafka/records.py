"""The records of a Kafka segment in parts: headers by `kafka_headers`, what the batches hold by `kafka_decode`.

    segment = batch*        a part is some batches that follow each other, and the arrays of their records

A split is a segment, or a part of one that begins at a batch; it owns the batches that begin in it. What a crash
left is reported as `kafka_headers` does; a batch that is intact and does not decode is a corrupt batch besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cklog.arrays.types import Ints
from cklog.engine import Damage, Split
from cklog.parsers.kafka.batches import Header
from cklog.parsers.kafka.decode import Decoded, decode
from cklog.parsers.kafka.headers import Heads, heads
from cklog.parsers.kafka.segment import BLOCK_BYTES, Segment

_PART_BATCHES, _PART_BYTES = 1000, 16 << 20
"""Decoded at once from a segment, before decompression."""


class SegmentPart(NamedTuple):
    """Some batches of a segment: their byte positions, their headers, and their records."""

    at: Ints
    heads: list[Header]
    records: Decoded


def read_records(split: Split, check: bool = True) -> Iterator[SegmentPart | Damage]:
    """The records of a split's batches, part by part, and the damage; with `check` every CRC is verified."""
    with Segment(split.uri, split.path, split.size, BLOCK_BYTES, mapped=True) as segment:
        for found in heads(split, check):
            if isinstance(found, Damage):
                yield found
                continue
            for at, some in _measured(found):
                batches = [(head, segment.data(i, head.size)) for i, head in zip(at.tolist(), some, strict=True)]
                part = SegmentPart(at, some, decode(batches))
                yield part
                for i, reason in part.records.faults:
                    detail = f"offsets {some[i].base} to {some[i].last}: {reason}"
                    yield Damage(split.path, "corrupt-batch", int(at[i]), detail, some[i].count)


def _measured(found: Heads) -> Iterator[tuple[Ints, list[Header]]]:
    """The same in parts of `_PART_BATCHES` and about `_PART_BYTES` at the most."""
    every = found.headers()
    end = np.cumsum([head.size for head in every])
    start = 0
    while start < len(every):
        before = int(end[start - 1]) if start else 0
        stop = min(max(int(np.searchsorted(end, before + _PART_BYTES)), start + 1), start + _PART_BATCHES)
        yield found.at[start:stop], every[start:stop]
        start = stop
