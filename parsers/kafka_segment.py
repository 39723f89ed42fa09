"""One segment of a Kafka log and the indexes beside it: where its batches begin, and what lies between them.

    NNNNNNNNNNNNNNNNNNNN.log        batch*                         the name is the base offset, 20 digits
    NNNNNNNNNNNNNNNNNNNN.index      (offset - base:i32  position:i32)*
    NNNNNNNNNNNNNNNNNNNN.timeindex  (largest timestamp so far:i64  offset - base:i32)*

An index entry names the *last* offset of the batch at `position`. The indexes of the segment in use are
preallocated with zeros, so that the first entry of zeros ends them; they are written behind the log and can be
made anew from it, and are hints here, no more.

A writer that crashed leaves a cut batch or zeros at the end of the newest segment. A batch whose bytes are wrong
inside the log is passed over: by its length if that leads to the batch with the next offset, else to the next
place where a whole batch with the right CRC begins. So every split of a segment finds the same batches.
Neither base offset nor length is under the CRC; a jump of the offsets is reported, whatever made it.
"""

from __future__ import annotations

import bisect
import posixpath
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cklog.engine import Damage
from cklog.parsers.kafka_batches import BATCH_LIMIT, HEADER, BadBatch, Header, header, verify
from cklog.storage import Entry, open_file

BLOCK_BYTES = 1 << 20
"""Read at a time where batches are read whole."""

PROBE_BYTES = 64 << 10
"""Read at a time where only headers are."""

_NAME = re.compile(r"(?:^|/)[0-9]{20}\.log$")

_SEARCH_BYTES = 1 << 30
"""Bytes whose CRC is computed in search of one batch: false candidates must not cost hours."""

_LEGACY = struct.Struct(
    ">q"  # offset
    "i"  # size: bytes behind it
    "I"  # crc32 of what follows
    "b"  # magic
)
_AFTER_SIZE, _AFTER_CRC, _LEGACY_SMALLEST = 12, 16, 14
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


def segments(entries: Iterable[Entry]) -> list[Entry]:
    """The `.log` segments among the files of one partition folder, in log order.

    >>> [e.path for e in segments([Entry(f"q-0/{n:020}.log{s}", 9) for n, s in ((7, ""), (0, ""), (3, ".deleted"))])]
    ['q-0/00000000000000000000.log', 'q-0/00000000000000000007.log']
    """
    found = [entry for entry in entries if _NAME.search(entry.path)]
    return sorted(found, key=lambda entry: posixpath.basename(entry.path))


class Segment:
    """A segment open for reading, in blocks and never behind `size`: what the writer adds meanwhile is not seen."""

    def __init__(self, uri: str, path: str, size: int, block: int = PROBE_BYTES) -> None:
        self.uri, self.path, self.size = uri, path, size
        self.base = int(posixpath.basename(path)[:20])
        self.limit = size
        """No block is read ahead beyond this byte."""
        self._block = block
        self._start, self._data = 0, b""

    def __enter__(self) -> Segment:
        self._file: Any = open_file(self.uri)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def bytes(self, at: int, length: int) -> bytes:
        """At most `length` bytes from `at`."""
        length = min(length, self.size - at)
        inside = at - self._start
        if inside < 0 or inside + length > len(self._data):
            self._file.seek(at)
            self._data = self._file.read(max(length, min(self._block, self.limit - at)))
            self._start, inside = at, 0
        return self._data[inside : inside + length]

    def header(self, at: int) -> Header:
        """The header at `at`; `BadBatch` if no batch can begin there."""
        return header(self.bytes(at, HEADER.size))

    def after(self, at: int) -> int | None:
        """Where the batch at `at` ends by its length field; None if it has none that can be right."""
        try:
            end = at + self.header(at).size
        except BadBatch:
            end = at + (self.legacy(at) or self.size + 1)
        return end if end <= self.size else None

    def legacy(self, at: int) -> int | None:
        """The size of the message of format 0 or 1 that begins at `at`, if one does."""
        front = self.bytes(at, _LEGACY.size)
        if len(front) < _LEGACY.size:
            return None
        _, size, crc, magic = _LEGACY.unpack(front)
        whole = _AFTER_SIZE + size
        if magic not in (0, 1) or size < _LEGACY_SMALLEST or whole > min(self.size - at, BATCH_LIMIT):
            return None
        return whole if zlib.crc32(self.bytes(at, whole)[_AFTER_CRC:]) == crc else None

    def only_zeros(self, at: int) -> bool:
        """Whether nothing but zeros follows."""
        while at < self.size:
            block = self.bytes(at, BLOCK_BYTES)
            if not block or block.strip(b"\0"):
                return False
            at += len(block)
        return True

    def search(self, start: int, end: int, below: int = 1 << 62) -> int | None:
        """The first place in [start, end) where a whole batch with the right CRC begins, its offsets `below`."""
        budget = _SEARCH_BYTES
        for at in self._candidates(start, end):
            try:
                head = self.header(at)
                if self.base <= head.base <= head.last < below and at + head.size <= self.size:
                    budget -= head.size
                    if budget < 0:
                        return None
                    verify(head, self.bytes(at, head.size))
                    return at
            except BadBatch:
                continue
        return None

    def _candidates(self, start: int, end: int) -> Iterator[int]:
        """Places where the bytes of a header that hardly vary have their values."""
        for at in range(start, end, BLOCK_BYTES):
            block = np.frombuffer(self.bytes(at, BLOCK_BYTES + HEADER.size - 1), np.uint8)
            places = len(block) - HEADER.size + 1
            if places <= 0:
                return
            # magic is 2; the first byte of an offset, of a length below 256 MiB and of the attributes is 0 (or 16)
            good = (block[16:][:places] == 2) & (block[:places] == 0)
            good &= (block[21:][:places] == 0) & (block[8:][:places] <= BATCH_LIMIT >> 24)
            yield from (at + int(i) for i in np.flatnonzero(good) if at + i < end)


def walk(segment: Segment, start: int, end: int, check: bool = True) -> Iterator[tuple[int, Header] | Damage]:
    """The batches that begin in [start, end), and what lies there that is none; `start` is where one begins.

    With `check` the CRC of each is verified and the order of the offsets looked at; else only headers are read.
    """
    at = start
    while at < end:
        try:
            head = segment.header(at)
            if at + head.size > segment.size:
                raise BadBatch(f"the batch needs {head.size} bytes, the file has {segment.size - at} more")
            if check:
                verify(head, segment.bytes(at, head.size))
        except BadBatch as reason:
            damage, at = _passed(segment, at, str(reason))
            yield damage
            continue
        yield at, head
        if check:
            yield from _jumps(segment, at, head)
        at += head.size


def _jumps(segment: Segment, at: int, head: Header) -> Iterator[Damage]:
    """Offsets that do not go on where the segment's name or the batch before ends."""
    if at == 0 and head.base != segment.base:
        yield _jump(segment, 0, "the segment begins", segment.base, head.base)
    try:
        follows = segment.header(at + head.size)
    except BadBatch:
        return  # the end, or damage that is reported at its own place
    if follows.base != head.last + 1:
        yield _jump(segment, at + head.size, "the batch before ends", head.last + 1, follows.base)


def _jump(segment: Segment, at: int, before: str, expected: int, found: int) -> Damage:
    why = "compacted, or a wrong base offset, which no CRC covers"
    detail = f"{before} at offset {expected}, this batch begins at {found}: {why}"
    return Damage(segment.path, "offset-jump", at, detail, max(found - expected, 1))


def _passed(segment: Segment, at: int, reason: str) -> tuple[Damage, int]:
    """What is wrong at `at`, and where to go on (the file's size: nowhere)."""
    size, rest = segment.size, segment.size - at
    if segment.only_zeros(at):
        return Damage(segment.path, "torn-tail", at, f"{rest} bytes of zeros at the end"), size
    old = segment.legacy(at)
    if old:
        return Damage(
            segment.path, "unknown-version", at, "a message of format 0 or 1; only format 2 is read"
        ), at + old
    try:
        head = segment.header(at)
    except BadBatch:
        head = None
    if head and head.size <= rest:
        detail = f"offsets {head.base} to {head.last}: {reason}"
        return Damage(segment.path, "corrupt-batch", at, detail, head.last_delta + 1), _after_corrupt(segment, at, head)
    found = segment.search(at + 1, size)
    if found is not None:
        return Damage(segment.path, "corrupt-file", at, f"no batch up to byte {found}: {reason}"), found
    length = int.from_bytes(segment.bytes(at + 8, 4), "big", signed=True)
    if rest < HEADER.size or length + _AFTER_SIZE > rest:
        return Damage(segment.path, "torn-tail", at, f"the last batch is cut short ({rest} bytes): {reason}"), size
    return Damage(segment.path, "corrupt-file", at, f"no batch up to the end, {rest} bytes: {reason}"), size


def _after_corrupt(segment: Segment, at: int, head: Header) -> int:
    """Where the batch after a corrupt one begins: its length may be what is wrong, and hide intact batches."""
    end = at + head.size
    try:
        follows = segment.header(end)
    except BadBatch:
        return segment.search(at + 1, end) or end
    if follows.base == head.last + 1:
        return end
    return segment.search(at + 1, end, below=follows.base) or end


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
