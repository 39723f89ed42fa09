"""What stands at a place, and a file of a store, read by ranges: what is asked for, and a little more for few bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Literal, NamedTuple

Fetch = Callable[[int, int], bytes]
"""(first byte, how many) → exactly so many bytes."""

AHEAD_BYTES = 16 << 10
"""At least so many bytes are fetched at once: a request costs more than they do."""


class FileInfo(NamedTuple):
    """What stands at a place: a file with its size in bytes, a folder, or nothing."""

    kind: Literal["file", "folder", "nothing"]
    size: int = 0


class StoreFile(io.RawIOBase):
    """A file of known size that fetches what is read of it, and keeps what it fetched last."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch, self._size = fetch, size
        self._at = 0
        self._start, self._held = 0, b""

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, at most `size`: all of them, unless the file ends before."""
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        inner = self._at - self._start
        if not (inner >= 0 and inner + wanted <= len(self._held)):
            self._refill(wanted)
            inner = self._at - self._start
        data = self._held[inner : inner + wanted]
        self._at += wanted
        return data

    def _refill(self, wanted: int) -> None:
        """Fetch so many bytes from here on, and more if they are few; what is held is not fetched again."""
        size, start = self._size, self._at
        length = min(max(wanted, AHEAD_BYTES), size - start)
        inner = start - self._start
        kept = self._held[inner:] if 0 <= inner < len(self._held) else b""
        if len(kept) >= length:
            length = len(kept)
        data = kept + self._fetch(start + len(kept), length - len(kept)) if length > len(kept) else kept
        self._start, self._held = start, data
