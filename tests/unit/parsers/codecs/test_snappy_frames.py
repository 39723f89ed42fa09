"""Snappy streams as snappy-java frames them: how much of a stream is read for one block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.snappy_frames import MAGIC, BadSnappy, SnappyOverLimit, unframed

_LIMIT, _CHUNK = 100_000, 10_000
_HEAD = MAGIC + bytes(8)


def _stream_of_a_long_block(chunks: int, read: list[int]) -> Iterator[bytes]:
    """A block that claims 2 GiB of packed bytes; `read` gets a row for each chunk that was taken."""
    yield _HEAD + (1 << 31).to_bytes(4, "big")
    for i in range(chunks):
        read.append(i)
        yield bytes(_CHUNK)


def test_unframed_block_beyond_the_limit_stops_reading() -> None:
    read: list[int] = []
    with pytest.raises(SnappyOverLimit):
        list(unframed(ByteStream(_stream_of_a_long_block(10_000, read)), _LIMIT))
    assert len(read) <= 2 * _LIMIT // _CHUNK


def test_unframed_block_longer_than_its_stream_is_damaged() -> None:
    with pytest.raises(BadSnappy, match="a snappy block of 2147483648 bytes where 20000 are left"):
        list(unframed(ByteStream(_stream_of_a_long_block(2, [])), _LIMIT))
