"""Bytes that come in pieces of any size, read as one stream."""

from __future__ import annotations

from collections.abc import Iterable


class ByteStream:
    """Pieces of bytes as one stream; `at` is the offset of the next byte.

    >>> stream = ByteStream([b"ab", b"c"])
    >>> stream.take(3), stream.take(1), stream.at
    (b'abc', b'', 3)
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = bytearray()
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes, fewer at the end."""
        while len(self._held) < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._held += chunk
        found = bytes(self._held[:count])
        del self._held[:count]
        self.at += len(found)
        return found
