"""Compressed streams: what they return, where they end, and what reading many or damaged ones costs."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cklog.parsers.codecs import streams
from cklog.parsers.codecs.streams import Gunzip, open_stream

TEXT = b"orders" * 50_000


def _read_all(stream: Any, size: int) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
@pytest.mark.parametrize("size", [1 << 10, 1 << 20])
def test_a_stream_returns_what_was_compressed(codec: str, size: int) -> None:
    with open_stream(pa.BufferReader(pa.Codec(codec).compress(TEXT)), codec) as stream:
        assert _read_all(stream, size) == TEXT


def test_bytes_that_were_read_stay_as_they_are() -> None:
    """The buffer that the stream is decompressed into is used again."""
    data = bytes(range(256)) * 64
    with open_stream(pa.BufferReader(pa.Codec("zstd").compress(data)), "zstd") as stream:
        parts = [stream.read(1000), stream.read(10), stream.read(3000), stream.read(1 << 20), stream.read(5)]
    assert b"".join(parts) == data


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_damaged_streams_leave_no_memory_behind() -> None:
    """`read` of pyarrow never frees what it allocates for a stream that is damaged: here 2 MB each."""
    size = 2 << 20
    packed = pa.Codec("zstd").compress(b"x" * size, asbytes=True)[:-4]

    def read() -> None:
        with open_stream(pa.BufferReader(packed), "zstd") as stream, pytest.raises(OSError, match="Truncated"):
            stream.read(2 * size)

    read()
    before = _resident()
    for _ in range(50):
        read()
    assert _resident() - before < 20 * size


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_gunzip_reads_members_one_after_the_other(size: int) -> None:
    members = [b"", b"a", b"", TEXT[:5000], b"last"]
    with Gunzip(io.BytesIO(b"".join(map(gzip.compress, members)))) as stream:
        assert _read_all(stream, size) == b"".join(members)
        assert stream.proven == sum(map(len, members))


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (bytes(300_000), streams.ZERO_TAIL),
        (bytes(300_000) + gzip.compress(b"more"), "zeros between two members"),
        (gzip.compress(TEXT)[:-1], "Truncated"),
        (b"no gzip", "incorrect header"),
    ],
)
def test_gunzip_returns_what_precedes_a_fault(tail: bytes, why: str) -> None:
    with Gunzip(io.BytesIO(gzip.compress(b"first") + tail)) as stream:
        assert stream.read(1000) == b"first"
        with pytest.raises(OSError, match=why):
            _read_all(stream, 1000)
        assert stream.proven == 5


class _Counted:
    """A decompressor that adds up the bytes it is given."""

    given = 0

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits=wbits)

    def decompress(self, packed: Any, size: int) -> bytes:
        _Counted.given += len(packed)
        return self._inner.decompress(packed, size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_gunzip_of_empty_members_copies_few_bytes_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a member leaves unused is a copy: of all that was read of the file, it would be 256 KB for 20 bytes."""
    members = 20_000
    data = gzip.compress(b"", mtime=0) * members
    monkeypatch.setattr(streams, "zlib", SimpleNamespace(decompressobj=_Counted, error=zlib.error))
    monkeypatch.setattr(_Counted, "given", 0)
    with Gunzip(io.BytesIO(data)) as stream:
        assert stream.read(1) == b""
    assert _Counted.given < members * (8 << 10)
