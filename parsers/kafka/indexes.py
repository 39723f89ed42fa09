"""The indexes beside a segment of a Kafka log, and where they let the segment be cut.

    NNNNNNNNNNNNNNNNNNNN.index      (offset - base:i32  position:i32)*
    NNNNNNNNNNNNNNNNNNNN.timeindex  (largest timestamp so far:i64  offset - base:i32)*

An index entry names the *last* offset of the batch at `position`. The indexes of the segment in use are
preallocated with zeros, so that the first entry of zeros ends them; they are written behind the log and can be
made anew from it, and are hints here, no more.
"""

from __future__ import annotations

import bisect
import struct

from cklog.parsers.kafka.batches import BadBatch
from cklog.parsers.kafka.segment import PROBE_BYTES, Segment
from cklog.storage import open_file

_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


def index_entries(data: bytes) -> list[tuple[int, int]]:
    """(offset - base, position) of an `.index`, as far as both grow.

    >>> index_entries(bytes.fromhex("00000063 0000112d 00000095 00002200 00000000 00000000"))
    [(99, 4397), (149, 8704)]
    """
    entries: list[tuple[int, int]] = []
    for offset, position in _INDEX_ENTRY.iter_unpack(_used(data, _INDEX_ENTRY.size)):
        if not entries or (offset > entries[-1][0] and position > entries[-1][1]):
            entries.append((offset, position))
    return [entry for entry in entries if entry[0] >= 0 and entry[1] > 0]


def time_entries(data: bytes) -> list[tuple[int, int]]:
    """(largest timestamp so far, offset - base) of a `.timeindex`.

    >>> time_entries(bytes.fromhex("0000018bcfe56800 00000031") + bytes(24))
    [(1700000000000, 49)]
    """
    return list(_TIME_ENTRY.iter_unpack(_used(data, _TIME_ENTRY.size)))


def _used(data: bytes, width: int) -> bytes:
    """The entries before the first one of zeros; an entry 0 of zeros tells nothing and is left out."""
    first = 0 if data[:width].strip(b"\0") else width
    used = next((at for at in range(first, len(data), width) if not data[at : at + width].strip(b"\0")), len(data))
    return data[first : used - (used - first) % width]


def read_index(uri: str) -> bytes:
    """The used part of an index, without the megabytes of zeros behind it."""
    data = b""
    with open_file(uri) as file:
        while block := file.read(PROBE_BYTES):
            data += block
            if not block[-_TIME_ENTRY.size :].strip(b"\0"):
                break
    return data


class Cuts:
    """Where a segment can be cut: batch boundaries, found with as few reads as its index allows."""

    def __init__(self, segment: Segment, index: list[tuple[int, int]]) -> None:
        self._segment = segment
        self._hints = [(at, segment.base + offset) for offset, at in index if at < segment.size]
        self._known = [0]

    def below(self, target: int) -> int:
        """The last boundary at or before `target`, as far as headers lead there."""
        at = self._known[bisect.bisect(self._known, target) - 1]
        at = max(at, self._hint(at, target))
        noted = at
        while (after := self._segment.after(at)) is not None and after <= target:
            at = after
            if at - noted >= PROBE_BYTES:
                bisect.insort(self._known, at)
                noted = at
        return at

    def above(self, start: int) -> int:
        """The next boundary behind `start`, or the end of the file."""
        after = self._segment.after(start)
        while after is None:
            i = bisect.bisect(self._hints, (start, 1 << 63))
            if i == len(self._hints):
                return self._segment.size
            after = self._usable(i)
        return after

    def below_hint(self, target: int) -> int:
        """The last position at or before `target` that the index gives and a header bears out, or 0."""
        return self._hint(0, target)

    def _hint(self, low: int, target: int) -> int:
        """The largest position in (low, target] that the index gives and a header bears out, or 0."""
        while (i := bisect.bisect(self._hints, (target, 1 << 63)) - 1) >= 0 and self._hints[i][0] > low:
            at = self._usable(i)
            if at is not None:
                return at
        return 0

    def _usable(self, i: int) -> int | None:
        """The position of a hint if its batch holds the offset; a wrong hint is forgotten."""
        at, offset = self._hints[i]
        try:
            head = self._segment.header(at)
            if head.base <= offset <= head.last:
                return at
        except BadBatch:
            pass
        del self._hints[i]
        return None
