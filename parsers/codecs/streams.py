"""Compressed streams, whose size nothing states: every stream is opened here, and returns no more than it produced.

    gzip      read by `Gunzip`, where one has to know which bytes a checksum proved
    others    read by Arrow, which returns the bytes that were produced, and says where a stream is incomplete

    gzip file = member*        member = header, deflated bytes, CRC-32 of what they hold: u32, its size: u32

Deflated bytes prove nothing by themselves: zeros in their middle inflate to something, often to the file's end
(RFC 1952).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.arrays.buffers import unfilled
from cklog.parsers.codecs.decompression import why_zlib_refuses
from cklog.parsers.codecs.stream_heads import HEAD_BYTES, require_known_head
from cklog.parsers.codecs.zstd_frames import require_known_frames

_PACKED_BYTES = 256 << 10
"""Compressed bytes read at a time."""

_FIRST_STEP = 4 << 10
"""Compressed bytes given to a new member of a gzip file first: what it leaves of them is copied."""

ZERO_TAIL = "zeros at the end"
"""Why a file ends where all that follows is zeros."""


def open_stream(file: Any, codec: str) -> Stream:
    """Open a compressed file (gzip, lz4, zstd) to read what it holds.

    Reading raises OSError where the stream is incomplete or damaged, `UnknownFormat` where it is of another version.
    """
    return Stream(file, codec)


class Stream:
    """A compressed file that Arrow decompresses into one buffer, which lasts as long as the stream.

    Arrow's `read` allocates as many bytes as it may return, and never frees them where the stream turns out damaged.
    """

    def __init__(self, file: Any, codec: str) -> None:
        self._file, self._codec = file, codec
        self._stream = pa.CompressedInputStream(file, codec)
        self._buffer = unfilled(0, np.uint8)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stream and the file below."""
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none only at the end."""
        if len(self._buffer) < size:
            self._buffer = unfilled(size, np.uint8)
        try:
            count = self._stream.readinto(self._buffer[:size])
        except OSError as error:
            if error.errno is None:
                self._require_known()
            raise
        return self._buffer[:count].tobytes()

    def _require_known(self) -> None:
        """Raise `UnknownFormat` if that is why the stream cannot be read on."""
        if self._file.seekable():
            self._file.seek(0)
            require_known_head(self._codec, self._file.read(HEAD_BYTES))
            if self._codec == "zstd":
                self._file.seek(0)
                require_known_frames(self._file)


class Gunzip:
    """A gzip file, decompressed no further than asked: what comes before a fault can be had to the last byte.

    Each of its members ends in a CRC-32 and a size; `proven` counts the bytes of those that were held against both.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._member = zlib.decompressobj(wbits=31)
        self._packed = memoryview(b"")
        self._at = 0
        self._step = _FIRST_STEP
        self._done = 0
        self._head = b""  # of the member
        self.proven = 0

    def __enter__(self) -> Gunzip:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file below."""
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none only at the end; OSError where the stream is cut short or corrupt.

        Raises
        ------
        UnknownFormat : a member is compressed by another method
        """
        while True:
            if self._member.eof and not self._next_member():
                return b""
            packed = self._member.unconsumed_tail or self._next_bytes()
            if not packed:
                raise OSError("Truncated compressed stream")
            if len(self._head) < HEAD_BYTES:
                self._head += bytes(packed[: HEAD_BYTES - len(self._head)])
            try:
                data = self._member.decompress(packed, size)
            except zlib.error as error:
                require_known_head("gzip", self._head)
                raise OSError(why_zlib_refuses(error)) from None
            self._done += len(data)
            if self._member.eof:
                self._at -= len(self._member.unused_data)
                self.proven = self._done
            if data:
                return data

    def _next_bytes(self) -> memoryview:
        """Return compressed bytes that were not decompressed yet, few of a member's first; none at the end."""
        if self._at == len(self._packed):
            self._fill()
        found = self._packed[self._at : self._at + self._step]
        self._at += len(found)
        self._step = min(2 * self._step, _PACKED_BYTES)
        return found

    def _fill(self) -> None:
        self._packed, self._at = memoryview(self._file.read(_PACKED_BYTES)), 0

    def _next_member(self) -> bool:
        """Go on with the member behind this one; False at the end. Zeros may be padding, or a member that is gone."""
        if self._at == len(self._packed):
            self._fill()
        if bytes(self._packed[self._at : self._at + 1]) != b"\0":
            self._member, self._step, self._head = zlib.decompressobj(wbits=31), _FIRST_STEP, b""
            return len(self._packed) > 0
        while len(self._packed) and not self._packed[self._at :].tobytes().strip(b"\0"):
            self._fill()
        raise OSError("zeros between two members" if len(self._packed) else ZERO_TAIL)
