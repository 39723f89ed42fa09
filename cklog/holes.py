"""Sparse files: how much of a file that claims more than it holds is read."""

from __future__ import annotations

import os

_BLOCK = 512
"""Bytes of a block as `stat` counts them, whatever those of the file system are."""

MOST_HOLES = 1 << 31
"""Bytes of holes that are read in a file. Logs that are allocated in advance have fewer: Kafka ends a segment
at 2 GiB."""

_ZEROS_KEPT = 4096
"""Bytes that are read of the hole at which reading ends: enough for each format to see that zeros follow."""


def size_before_holes(path: str, about: os.stat_result) -> tuple[int, str]:
    """Return how many bytes of a sparse file to read, and why not all of them if there is data after these.

    Holes take no space, so that a file may claim any size; reading them takes as long as reading data. A file ends
    where its holes have become more than `MOST_HOLES`. If only zeros follow they are like those before them.
    """
    size = about.st_size
    if size <= MOST_HOLES or size - _BLOCK * about.st_blocks <= MOST_HOLES or not hasattr(os, "SEEK_DATA"):
        return size, ""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # whoever reads it says so
        return size, ""
    try:
        at = holes = 0
        while at < size:
            data = _seek(handle, at, os.SEEK_DATA, size)
            holes += data - at
            if holes > MOST_HOLES:
                rest = f"{holes} bytes of holes before byte {data}, and is read up to byte {at}: copy it without them"
                return at + min(_ZEROS_KEPT, data - at), f"it has {rest}" if data < size else ""
            at = _seek(handle, data, os.SEEK_HOLE, size) if data < size else size
    finally:
        os.close(handle)
    return size, ""


def _seek(handle: int, at: int, what: int, size: int) -> int:
    """Return where data, or a hole, begins from a byte on; the file's size if none does."""
    try:
        return min(os.lseek(handle, at, what), size)
    except OSError:  # no data from there on, or a file system that does not know
        return size
