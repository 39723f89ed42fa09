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


IndexHint = tuple[int, int]
"""(offset - base, position): the batch at that byte position ends with that offset. There are many, so no class."""

TimeHint = tuple[int, int]
"""(time, offset - base): no record up to that offset is newer than that time, in ms."""


def index_entries(data: bytes) -> list[IndexHint]:
    """Decode an `.index`, as far as both offsets and positions grow.

    >>> index_entries(bytes.fromhex("00000063 0000112d 00000095 00002200 00000000 00000000"))
    [(99, 4397), (149, 8704)]
    """
    entries: list[IndexHint] = []
    last_delta = last_at = -(1 << 32)
    for delta, at in _INDEX_ENTRY.iter_unpack(_used_part(data, _INDEX_ENTRY.size)):
        if delta > last_delta and at > last_at:
            entries.append((delta, at))
            last_delta, last_at = delta, at
    return [(delta, at) for delta, at in entries if delta >= 0 and at > 0]


def time_entries(data: bytes) -> list[TimeHint]:
    """Decode a `.timeindex`.

    >>> time_entries(bytes.fromhex("0000018bcfe56800 00000031") + bytes(24))
    [(1700000000000, 49)]
    """
    return list(_TIME_ENTRY.iter_unpack(_used_part(data, _TIME_ENTRY.size)))


def _used_part(data: bytes, width: int) -> bytes:
    """Return the entries before the first one of zeros; an entry 0 of zeros says nothing and is left out."""
    first = 0 if data[:width].strip(b"\0") else width
    used = next((at for at in range(first, len(data), width) if not data[at : at + width].strip(b"\0")), len(data))
    return data[first : used - (used - first) % width]


def read_index(uri: str) -> bytes:
    """Read the used part of an index, without the megabytes of zeros behind it."""
    data = b""
    with open_file(uri) as file:
        while block := file.read(PROBE_BYTES):
            data += block
            if not block[-_TIME_ENTRY.size :].strip(b"\0"):
                break
    return data


class Cuts:
    """Where a segment can be cut: batch boundaries, found with as few reads as its index allows."""

    def __init__(self, segment: Segment, index: list[IndexHint]) -> None:
        self._segment = segment
        self._hints = [(at, segment.base + delta) for delta, at in index if at < segment.size]
        """(position, last offset of its batch), ascending."""
        self._known = [0]
        """Boundaries that have been found, ascending."""

    def below(self, target: int) -> int:
        """Return the last boundary at or before `target`, as far as headers lead there."""
        at = self._known[bisect.bisect(self._known, target) - 1]
        at = max(at, self._last_hint(at, target))
        noted = at
        while (after := self._segment.after(at)) is not None and after <= target:
            at = after
            if at - noted >= PROBE_BYTES:
                bisect.insort(self._known, at)
                noted = at
        return at

    def above(self, start: int) -> int:
        """Return the next boundary behind `start`, or the end of the file."""
        after = self._segment.after(start)
        while after is None:  # no batch begins at `start`: the index says where the next one may
            i = bisect.bisect(self._hints, (start, 1 << 63))
            if i == len(self._hints):
                return self._segment.size
            after = self._usable(i)
        return after

    def below_hint(self, target: int) -> int:
        """Return the last position at or before `target` that the index gives and a header bears out, or 0."""
        return self._last_hint(0, target)

    def _last_hint(self, low: int, target: int) -> int:
        """Return the largest position in (low, target] that the index gives and a header bears out, or 0."""
        while (i := bisect.bisect(self._hints, (target, 1 << 63)) - 1) >= 0 and self._hints[i][0] > low:
            at = self._usable(i)
            if at is not None:
                return at
        return 0

    def _usable(self, i: int) -> int | None:
        """Return the position of hint `i` if its batch holds the offset; a wrong hint is forgotten."""
        at, offset = self._hints[i]
        try:
            head = self._segment.header(at)
            if head.base <= offset <= head.last:
                return at
        except BadBatch:
            pass
        del self._hints[i]
        return None
