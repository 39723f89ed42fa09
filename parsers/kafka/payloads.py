"""Payloads of Kafka batches and messages, decompressed: gzip, snappy (raw, or framed by the Java client), lz4, zstd.

Compressed bytes do not say how much they hold, so that little input may ask for any memory and any time. A payload has
a limit, and all payloads of a split together have a `Budget` that grows with the bytes that were read for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import RECORDS_PER_BYTE, budgets, inflated_of
from cklog.errors import first_line
from cklog.parsers.codecs import snappy_frames
from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.streams import open_stream
from cklog.unknown_formats import UnknownFormat

_BLOCK_BYTES = 1 << 20
_CODECS: dict[int, str] = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
NEWEST_CODEC = 4


class BadBatch(Exception):
    """Why bytes are no record batch; `id` is the one of the damage."""

    id = "corrupt-batch"


class BatchOverBudget(BadBatch):
    """Why a batch was not decoded, though nothing may be wrong with it: it holds too much."""

    id = "over-budget"


class UnknownBatch(BadBatch, UnknownFormat):
    """Why a batch was not decoded, though nothing may be wrong with it: a newer Kafka may have written it."""

    id = UnknownFormat.id


class Budget:
    """What may yet be decompressed and decoded, shared by all that reads one split.

    By default it is what one batch may hold. What was decompressed in vain is spent, too.
    """

    def __init__(self, size: int | None = None, records: int | None = None) -> None:
        self._left = budgets().payload if size is None else size
        self._records = budgets().batch_records if records is None else records

    @classmethod
    def of_split(cls, size: int) -> Budget:
        """Return what may be decompressed of a split of `size` bytes."""
        return cls(inflated_of(size), budgets().records + RECORDS_PER_BYTE * size)

    def payload(self, codec: int, packed: bytes, records: int = 0) -> bytes:
        """Return the payload that `packed` holds, whose header announces so many records.

        Raises
        ------
        BadBatch
            as `decompress_payload`.
        BatchOverBudget
            it holds more than one batch may, or the split's budget is spent.
        """
        self.count(records)
        if codec == 0:
            return packed
        if self._left <= 0:
            raise BatchOverBudget("the batches before it held so much that no more is decompressed")
        parts = []
        for part in _limited_parts(codec, packed, min(budgets().payload, self._left)):
            self._left -= len(part)
            parts.append(part)
        return b"".join(parts)

    def count(self, records: int) -> None:
        """Take records that will be decoded, all of one batch."""
        if records > (most := budgets().batch_records):
            raise BatchOverBudget(f"{records} records, more than {most} of one batch are not decoded")
        self._records -= records
        if self._records < 0:
            raise BatchOverBudget("the batches before it held so many records that no more are decoded")


def decompress_payload(codec: int, packed: bytes, limit: int | None = None) -> bytes:
    """Return the payload that `packed` holds, of `limit` bytes at the most; None: of what a batch may become.

    Raises
    ------
    BadBatch
        an unknown codec, or a stream that is cut short or wrong.
    BatchOverBudget
        more than `limit` bytes in it.
    """
    most = budgets().payload if limit is None else limit
    return packed if codec == 0 else b"".join(_limited_parts(codec, packed, most))


def _limited_parts(codec: int, packed: bytes, limit: int) -> Iterator[bytes]:
    """Yield what a payload holds, part by part, as long as it stays within the limit."""
    if codec not in _CODECS:
        raise UnknownBatch(f"compression codec {codec}, known are 0 to {NEWEST_CODEC}")
    left = limit
    try:
        for part in _snappy_parts(packed, limit) if codec == 2 else _stream_parts(packed, _CODECS[codec], limit):
            left -= len(part)
            if left < 0:
                raise BatchOverBudget(f"more than {limit} bytes when decompressed")
            yield part
    except UnknownFormat as error:
        raise UnknownBatch(str(error)) from None
    except (OSError, *ARROW_ERRORS) as error:
        raise BadBatch(f"{_CODECS[codec]}: {first_line(error)}") from None


def _stream_parts(packed: bytes, codec: str, limit: int) -> Iterator[bytes]:
    with open_stream(pa.BufferReader(packed), codec) as stream:
        while part := stream.read(min(_BLOCK_BYTES, limit + 1)):
            yield part


def _snappy_parts(packed: bytes, limit: int) -> Iterator[bytes]:
    """Decompress a snappy payload by blocks: the Java client frames them (xerial), librdkafka writes one raw block."""
    try:
        if packed.startswith(snappy_frames.MAGIC):
            yield from snappy_frames.unframed(ByteStream([packed]), limit)
        else:
            yield snappy_frames.decompress_block(packed, limit)
    except snappy_frames.BadSnappy as bad:
        raise BadBatch(str(bad)) from None
    except snappy_frames.SnappyOverLimit:
        raise BatchOverBudget(f"more than {limit} bytes when decompressed") from None
