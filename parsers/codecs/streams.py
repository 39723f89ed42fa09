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

import pyarrow as pa

_PACKED_BYTES = 256 << 10
"""Compressed bytes read at a time."""

ZERO_TAIL = "zeros at the end"
"""Why a file ends where all that follows is zeros."""


def open_stream(file: Any, codec: str) -> Any:
    """Open a compressed file (gzip, lz4, zstd) to read what it holds.

    Reading raises OSError where the stream is incomplete or damaged.
    """
    return pa.CompressedInputStream(file, codec)


class Gunzip:
    """A gzip file, decompressed no further than asked: what comes before a fault can be had to the last byte.

    Each of its members ends in a CRC-32 and a size; `proven` counts the bytes of those that were held against both.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._member = zlib.decompressobj(wbits=31)
        self._ahead = b""
        self._done = 0
        self.proven = 0

    def __enter__(self) -> Gunzip:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file below."""
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none only at the end; OSError where the stream is cut short or corrupt."""
        while True:
            if self._member.eof and not self._next_member():
                return b""
            packed = self._ahead or self._file.read(_PACKED_BYTES)
            if not packed and not self._member.unconsumed_tail:
                raise OSError("Truncated compressed stream")
            try:
                data = self._member.decompress(packed, size)
            except zlib.error as error:
                raise OSError(str(error)) from None
            self._ahead = self._member.unconsumed_tail
            self._done += len(data)
            if self._member.eof:
                self.proven = self._done
            if data:
                return data

    def _next_member(self) -> bool:
        """Go on with the member behind this one; False at the end. Zeros may be padding, or a member that is gone."""
        rest = self._member.unused_data or self._file.read(_PACKED_BYTES)
        if not rest.startswith(b"\0"):
            self._member, self._ahead = zlib.decompressobj(wbits=31), rest
            return bool(rest)
        while rest and not rest.strip(b"\0"):
            rest = self._file.read(_PACKED_BYTES)
        raise OSError("zeros between two members" if rest else ZERO_TAIL)
