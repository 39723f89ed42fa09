"""Zstandard frames, walked without decompressing: whether each ends in a checksum of what it holds (RFC 8878, 3.1).

    file      = frame*
    frame     = 0xFD2FB528:u32  descriptor:u8  window:u8?  dictionary:0-4  size:0-8  block+  checksum:u32?
    block     = last:1  type:2  size:21  then `size` bytes, of type 1 (repeated) one byte          little-endian
    skippable = 0x184D2A50 to 0x184D2A5F:u32  size:u32  size bytes

The descriptor's bits: 0-1 bytes of the dictionary's id, 2 a checksum follows, 5 a single segment (no window), 6-7 bytes
of the size. A frame without a checksum decompresses to anything if a byte of it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cklog.unknown_formats import UnknownFormat

_MAGIC, _SKIPPABLE = 0xFD2FB528, 0x184D2A50
_VERSIONS, _FIRST, _SECOND = 0xFF, 0x1E, 0x22
"""The bits of the magic number that differ by version, and what they are in versions 0.1 and 0.2."""

_CHECKSUM, _SINGLE_SEGMENT = 1 << 2, 1 << 5
_MOST_BLOCKS = 1 << 20
"""Blocks that are walked, at 128 KiB each 128 GiB; behind them nothing is known."""

_READ_BYTES = 1 << 20


def has_checksums(file: Any) -> bool:
    """Return whether every frame that can be walked has a checksum, up to one of another version."""
    return all(summed for magic, summed in _frames(file) if magic == _MAGIC)


def require_known_frames(file: Any) -> None:
    """Raise `UnknownFormat` where a frame is of a version that is not read; `file` stands at its beginning."""
    for magic, _ in _frames(file):
        if unknown_magic(magic):
            raise UnknownFormat(f"zstd: a frame with the magic number {magic:08x}")


def _frames(file: Any) -> Iterator[tuple[int, bool]]:
    """Yield the magic number of each frame that can be walked, and whether it has a checksum.

    It has none, too, where more frames follow than are walked. Behind another magic number no frame can be walked.
    """
    stream, blocks = _Ahead(file), 0
    while head := stream.take(4):
        magic = int.from_bytes(head, "little")
        if magic & ~0xF == _SKIPPABLE:
            stream.skip(int.from_bytes(stream.take(4), "little"))
            continue
        descriptor = int.from_bytes(stream.take(1), "little")
        summed = bool(descriptor & _CHECKSUM)
        yield magic, summed
        if magic != _MAGIC:
            return  # no frame: the decompressor says what is wrong
        single = bool(descriptor & _SINGLE_SEGMENT)
        stream.skip((0, 1, 2, 4)[descriptor & 3] + (int(single), 2, 4, 8)[descriptor >> 6] + (not single))
        last = False
        while not last:
            block = stream.take(3)
            blocks += 1
            if len(block) < 3 or blocks > _MOST_BLOCKS:
                yield magic, len(block) < 3  # cut short: the decompressor says so
                return
            word = int.from_bytes(block, "little")
            last = bool(word & 1)
            stream.skip(1 if word >> 1 & 3 == 1 else word >> 3)
        stream.skip(4 * summed)


def unknown_magic(magic: int) -> bool:
    """Return whether a magic number is that of an early version of Zstandard (0.1 to 0.7), or of a later one.

    >>> [unknown_magic(magic) for magic in (0xFD2FB528, 0xFD2FB529, 0xFD2FB527, 0xFD2FB51F, 0xFD2FB628)]
    [False, True, True, False, False]
    """
    version = magic & _VERSIONS
    return magic - version == _MAGIC & ~_VERSIONS and (
        version == _FIRST or (_SECOND <= version <= _VERSIONS and version != _MAGIC & _VERSIONS)
    )


class _Ahead:
    """A file's bytes one after the other, read a megabyte at a time."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._held, self._at = b"", 0

    def take(self, count: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        found = self._held[self._at : self._at + count]
        self._at += len(found)
        if len(found) < count:
            self._held, self._at = self._file.read(_READ_BYTES), count - len(found)
            found += self._held[: self._at]
        return found

    def skip(self, count: int) -> None:
        """Pass over the next bytes."""
        self._at += count
        while self._at > len(self._held):
            self._at -= len(self._held)
            self._held = self._file.read(_READ_BYTES)
            if not self._held:
                self._at = 0
