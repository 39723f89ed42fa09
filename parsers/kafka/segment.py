"""One segment of a Kafka log: where its batches begin, and what lies between them.

    NNNNNNNNNNNNNNNNNNNN.log        batch*                         the name is the base offset, 20 digits

A writer that crashed leaves a cut batch or zeros at the end of the newest segment. A batch whose bytes are wrong
inside the log is passed over: by its length if that leads to the batch with the next offset, else to the next
place where a whole batch with the right CRC begins. So every split of a segment finds the same batches.
Neither base offset nor length is under the CRC; a jump of the offsets is reported, whatever made it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import crc32c
import numpy as np

from cklog.arrays.types import Bytes, Ints
from cklog.budgets import BATCH_BYTES, SEARCHED_BYTES
from cklog.engine.scan import Damage
from cklog.errors import Picklable
from cklog.model.wording import numbered
from cklog.parsers.kafka import legacy
from cklog.parsers.kafka.batches import BEFORE_LENGTH, CHECKED_FROM, HEADER, Header, header, near, verify
from cklog.parsers.kafka.payloads import NEWEST_CODEC, BadBatch, BatchOverBudget, Budget, UnknownBatch
from cklog.progress import count_bytes
from cklog.storage import FileEntry, open_file
from cklog.unknown_formats import proves_damaged_bit

BLOCK_BYTES = 1 << 20
"""Read at a time where batches are read whole."""

PROBE_BYTES = 64 << 10
"""Read at a time where only headers are."""

_KNOWN_ATTRIBUTES = frozenset(one for one in range(1 << 7) if one & 7 <= NEWEST_CODEC)

_NAME = re.compile(r"(?:^|/)[0-9]{20}\.log$")
_DIGITS = re.compile("[0-9]{20}")

MAGIC_AT, OLD = 16, (b"\0", b"\1")
"""Where the magic of a batch of any format lies, and the magic of formats 0 and 1."""


def segments(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """Return the `.log` segments among the files of one partition folder, in log order.

    >>> names = [f"q-0/{n:020}.log{s}" for n, s in ((7, ""), (0, ""), (3, ".deleted"))]
    >>> [e.path for e in segments([FileEntry(name, 9) for name in names])]
    ['q-0/00000000000000000000.log', 'q-0/00000000000000000007.log']
    """
    found = [entry for entry in entries if _NAME.search(entry.path)]
    return sorted(found, key=lambda entry: posixpath.basename(entry.path))


class FileShrunk(Picklable, OSError):
    """A file that ends at byte `end` now and had `size` bytes when it was listed: somebody cuts it."""

    def __init__(self, end: int, size: int) -> None:
        super().__init__(f"it ends at byte {end} and had {size} bytes when it was listed: ask again, or of a copy")
        self.end = end


class PlacedHeader(NamedTuple):
    """A batch: the byte at which it begins, and its header."""

    at: int
    head: Header


class Segment:
    """A segment open for reading, in blocks and never behind `size`: what the writer adds meanwhile is not seen.

    Blocks are read into a buffer and not mapped: a file that is cut while it is mapped ends the process, and brokers
    cut segments when they recover. Here that is a `FileShrunk`.
    """

    def __init__(self, uri: str, path: str, size: int, block: int = PROBE_BYTES) -> None:
        self.uri, self.path, self.size = uri, path, size
        named = _DIGITS.match(posixpath.basename(path))
        self.base = int(named[0]) if named else 0
        self.limit = size
        """No block is read ahead beyond this byte."""
        self.budget = Budget.of_split(size)
        self._block = block
        self._buffer = bytearray()
        self._start = self._end = 0
        """The bytes of the file that lie at the buffer's beginning."""

    def __enter__(self) -> Segment:
        self._file: Any = open_file(self.uri)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._buffer = bytearray()

    def bytes(self, at: int, length: int) -> bytes:
        """Return at most `length` bytes from `at`."""
        length = min(length, self.size - at)
        if length <= 0:
            return b""
        self._hold(at, length)
        return bytes(memoryview(self._buffer)[at - self._start : at - self._start + length])

    def window(self, at: int) -> memoryview:
        """Return what is read from `at` on, the whole batch that begins there if one does; good until the next read."""
        self._hold(at, min(HEADER.size, self.size - at))
        front = self._buffer[at - self._start : at - self._start + BEFORE_LENGTH]
        claimed = BEFORE_LENGTH + int.from_bytes(front[8:], "big", signed=True)
        if HEADER.size <= claimed <= min(BATCH_BYTES, self.size - at):
            self._hold(at, claimed)
        return memoryview(self._buffer)[at - self._start : self._end - self._start]

    def gather(self, at: Ints, width: int) -> Bytes:
        """Return `width` bytes from each place, all of them inside the file; shapes (n,) → (n, width)."""
        if not len(at):
            return np.zeros((0, width), np.uint8)
        if self._start <= int(at.min()) and int(at.max()) + width <= self._end:
            places = self._end - self._start - width + 1
            every = np.ndarray((places,), f"V{width}", self._buffer, strides=(1,))  # as many bytes, at each place
            return every[at - self._start].view(np.uint8).reshape(-1, width)
        found = b"".join(self.bytes(place, width) for place in at.tolist())
        return np.frombuffer(found, np.uint8).reshape(-1, width)

    def _hold(self, at: int, length: int) -> None:
        """Have the bytes [at, at + length) of the file in the buffer."""
        if self._start <= at and at + length <= self._end:
            return
        length = max(length, min(self._block, self.limit - at))
        if length > len(self._buffer):
            self._buffer = bytearray(length)
        self._start = self._end = at
        self._file.seek(at)
        room = memoryview(self._buffer)[:length]
        while self._end < at + length:
            read = self._file.readinto(room[self._end - at :])
            if not read:
                raise FileShrunk(self._end, self.size)
            self._end += read
        count_bytes(self._end - at)

    def header(self, at: int) -> Header:
        """Decode the header at `at`; raise `BadBatch` if no batch can begin there."""
        return header(self.bytes(at, HEADER.size))

    def after(self, at: int) -> int | None:
        """Return where the batch at `at` ends by its length field; None if it has none that can be right."""
        try:
            end = at + self.header(at).size
        except BadBatch:
            end = at + (self.legacy(at) or self.size + 1)
        return end if end <= self.size else None

    def legacy(self, at: int) -> int | None:
        """Return the size of the message of format 0 or 1 that begins at `at`, if one does."""
        try:
            return len(whole_message(self, at))
        except BadBatch:
            return None

    def first(self, at: int, ordinary: bool = False) -> int | None:
        """Return the first offset of the batch at `at`, of a message of format 0 or 1 its only one; None: no header."""
        front = self.bytes(at, HEADER.size)
        try:
            if ordinary and front[MAGIC_AT : MAGIC_AT + 1] in OLD:
                return legacy.size(front) and int.from_bytes(front[:8], "big")
            return header(front).base
        except BadBatch:
            return None

    def only_zeros(self, at: int) -> bool:
        """Return whether nothing but zeros follows."""
        step = HEADER.size
        while at < self.size:
            block = self.bytes(at, step)
            if not block or block.strip(b"\0"):
                return False
            at += len(block)
            step = BLOCK_BYTES
        return True

    def search(self, start: int, end: int, below: int = 1 << 62, ordinary: bool = False) -> int | None:
        """Find the first place in [start, end) where a whole batch with the right CRC begins, its offsets `below`."""
        budget = SEARCHED_BYTES
        for at in self._candidates(start, end, ordinary):
            try:
                head = self.header(at) if self.bytes(at + MAGIC_AT, 1) not in OLD else None
                size = head.size if head else legacy.size(self.bytes(at, legacy.FRONT.size))
                if at + size > self.size:
                    continue
                budget -= size
                if budget < 0:
                    return None
                head = whole_header(self, at, check=True, ordinary=ordinary)
                if self.base <= head.base <= head.last < below:
                    return at
            except BadBatch:
                continue
        return None

    def _candidates(self, start: int, end: int, ordinary: bool) -> Iterator[int]:
        """Yield the places in [start, end) where the bytes of a header that hardly vary have their values."""
        for at in range(start, end, BLOCK_BYTES):
            block = np.frombuffer(self.bytes(at, BLOCK_BYTES + HEADER.size - 1), np.uint8)
            places = max(len(block) - HEADER.size + 1, 0)
            # magic is 2; the first byte of an offset, of a length below 256 MiB and of the attributes is 0 (or 16)
            good = (block[16:][:places] == 2) & (block[:places] == 0)
            good &= (block[21:][:places] == 0) & (block[8:][:places] <= BATCH_BYTES >> 24)
            found = np.flatnonzero(good)
            if ordinary:
                old = legacy.places(block)
                found = np.union1d(found, old[old < BLOCK_BYTES])  # what begins behind is the next block's
            yield from (at + int(i) for i in found if at + i < end)


def walk(
    segment: Segment, start: int, end: int, check: bool = True, ordinary: bool = False
) -> Iterator[PlacedHeader | Damage]:
    """Yield the batches that begin in [start, end), and what lies there that is none; `start` is where one begins.

    With `check` the CRC of each is verified and the order of the offsets looked at; else only headers are read.
    Offsets of an output queue are dense. Those of an `ordinary` topic have gaps, and may lie in messages of
    formats 0 and 1.
    """
    at = start
    while at < end:
        found, after = step(segment, at, check, ordinary)
        if isinstance(found, Damage):
            yield found
        else:
            yield PlacedHeader(at, found)
            if check or ordinary:
                yield from jumps(segment, at, found, ordinary)
        at = after


def step(segment: Segment, at: int, check: bool, ordinary: bool) -> tuple[Header | Damage, int]:
    """Return the batch that begins at `at`, or what lies there that is none, and where to go on."""
    try:
        head = whole_header(segment, at, check, ordinary)
    except BatchOverBudget as reason:  # of a message of format 0 or 1, which is whole
        damage = Damage(segment.path, "over-budget", at, f"not decompressed: {reason}")
        return damage, at + legacy.size(segment.bytes(at, legacy.FRONT.size))
    except UnknownBatch as reason:
        return Damage(segment.path, reason.id, at, str(reason)), segment.after(at) or segment.size
    except BadBatch as reason:
        return _pass_damage(segment, at, str(reason), ordinary)
    return head, at + head.size


def whole_header(segment: Segment, at: int, check: bool, ordinary: bool) -> Header:
    """Return the header of the whole batch at `at`, its CRC verified with `check`; `BadBatch` if there is none."""
    if ordinary and segment.bytes(at + MAGIC_AT, 1) in OLD:
        return near(legacy.header(whole_message(segment, at, check), segment.budget), segment.base)
    head = near(segment.header(at), segment.base) if ordinary else segment.header(at)
    if at + head.size > segment.size:
        raise BadBatch(f"the batch needs {head.size} bytes, the file has {segment.size - at} more")
    if (unknown := head.attributes & 0xFFFF not in _KNOWN_ATTRIBUTES) or check:
        batch = segment.bytes(at, head.size)
        if unknown:
            _require_damaged_attributes(head, batch)
        verify(head, batch)
    return head


def _require_damaged_attributes(head: Header, batch: bytes) -> None:
    """Raise `UnknownBatch` for attributes that are not known, unless the CRC proves that one bit of them is damaged."""
    rest, attributes = batch[CHECKED_FROM + 2 :], head.attributes & 0xFFFF
    if proves_damaged_bit(
        attributes, _KNOWN_ATTRIBUTES, lambda one: crc32c.crc32c(one.to_bytes(2, "big") + rest) == head.crc
    ):
        return
    if head.codec > NEWEST_CODEC:
        raise UnknownBatch(f"compression codec {head.codec}, known are 0 to {NEWEST_CODEC}")
    raise UnknownBatch(f"attributes {attributes:016b}, of which only 7 bits are known")


def whole_message(segment: Segment, at: int, check: bool = True) -> bytes:
    """Return the whole message of format 0 or 1 at `at`, by default with the right CRC; `BadBatch` if there is none."""
    size = legacy.size(segment.bytes(at, legacy.FRONT.size))
    data = segment.bytes(at, size)
    if len(data) < size:
        raise BadBatch(f"the message needs {size} bytes, the file has {segment.size - at} more")
    if check:
        legacy.verify(data)
    return data


def jumps(segment: Segment, at: int, head: Header, ordinary: bool) -> Iterator[Damage]:
    """Report offsets that do not go on where the segment's name or the batch at `at` ends.

    In an `ordinary` topic only those that go backwards are damage.
    """
    if at == 0 and (head.base < segment.base if ordinary else head.base != segment.base):
        yield _jump_damage(segment, 0, "the segment begins", segment.base, head.base, ordinary)
    follows = segment.first(at + head.size, ordinary)
    if follows is None:
        return  # the end, or damage that is reported at its own place
    if follows <= head.last if ordinary else follows != head.last + 1:
        yield _jump_damage(segment, at + head.size, "the batch before ends", head.last + 1, follows, ordinary)


def _jump_damage(segment: Segment, at: int, before: str, expected: int, found: int, ordinary: bool) -> Damage:
    name, why = ("offset-backwards", "offsets taken twice") if ordinary else ("offset-jump", "compacted")
    detail = f"{before} at offset {expected}, this batch begins at {found}: {why}, or a wrong base offset"
    count = expected - found if ordinary else max(found - expected, 1)
    detail += ", which no CRC covers"
    return Damage(path=segment.path, id=name, offset=at, detail=detail, count=count)


def _pass_damage(segment: Segment, at: int, reason: str, ordinary: bool) -> tuple[Damage, int]:
    """Return what is wrong at `at`, and where to go on (the file's size: nowhere)."""
    size, rest = segment.size, segment.size - at
    if segment.only_zeros(at):
        return Damage(segment.path, "torn-tail", at, f"{rest} bytes of zeros at the end"), size
    old = None if ordinary else segment.legacy(at)
    if old:
        detail = "a message of format 0 or 1; only format 2 is read"
        return Damage(segment.path, "unknown-version", at, detail), at + old
    if (end := _end_of_newer(segment, at, ordinary)) is not None:
        magic = segment.bytes(at + MAGIC_AT, 1)[0]
        return Damage(segment.path, "unknown-version", at, f"a batch of format {magic}, known are 0 to 2"), end
    extent = _claimed_extent(segment, at, ordinary)
    if extent and extent.size <= rest:
        known = numbered("offset", extent.base, extent.last) if extent.magic == 2 else f"offset {extent.last}"
        detail, count = f"{known}: {reason}", extent.last_delta + 1
        damage = Damage(path=segment.path, id="corrupt-batch", offset=at, detail=detail, count=count)
        return damage, _after_corrupt(segment, at, extent, ordinary)
    found = segment.search(at + 1, size, ordinary=ordinary)
    if found is not None:
        return Damage(segment.path, "corrupt-file", at, f"no batch up to byte {found}: {reason}"), found
    length = int.from_bytes(segment.bytes(at + 8, 4), "big", signed=True)
    if rest < HEADER.size or length + BEFORE_LENGTH > rest:
        return Damage(segment.path, "torn-tail", at, f"the last batch is cut short ({rest} bytes): {reason}"), size
    return Damage(segment.path, "corrupt-file", at, f"no batch up to the end, {rest} bytes: {reason}"), size


def _end_of_newer(segment: Segment, at: int, ordinary: bool) -> int | None:
    """Return where a batch of a format newer than 2 ends; None: none begins here.

    Formats agree on where they say their length, and another batch, or the end, must follow there. The CRC of formats 0
    and 1 covers the format, and that of format 2 does not.
    """
    front = segment.bytes(at, legacy.FRONT.size)
    if not _is_newer(front):
        return None
    size = BEFORE_LENGTH + int.from_bytes(front[8:BEFORE_LENGTH], "big", signed=True)
    if not legacy.FRONT.size <= size <= min(BATCH_BYTES, segment.size - at):
        return None
    if legacy.is_damaged_magic(segment.bytes(at, size)):
        return None
    follows = segment.bytes(at + size, legacy.FRONT.size)
    whole = not follows or _is_newer(follows) or segment.first(at + size, ordinary) is not None
    return at + size if whole else None


def _is_newer(front: bytes) -> bool:
    """Return whether what may be the front of a batch has a format that is newer than 2."""
    return len(front) == legacy.FRONT.size and 2 < front[MAGIC_AT] < 1 << 7


def _claimed_extent(segment: Segment, at: int, ordinary: bool) -> Header | None:
    """Return what the front of a batch says of its size and offsets, whatever is wrong with the rest, if it has one."""
    try:
        if not (ordinary and segment.bytes(at + MAGIC_AT, 1) in OLD):
            return segment.header(at)
        front = segment.bytes(at, legacy.FRONT.size)
        size, offset = legacy.size(front), int.from_bytes(front[:8], "big")
        return Header(
            base=offset,
            length=size - BEFORE_LENGTH,
            crc=0,
            attributes=0,
            last_delta=0,
            base_time=-1,
            max_time=-1,
            producer=-1,
            count=1,
            magic=front[MAGIC_AT],
        )
    except BadBatch:
        return None


def _after_corrupt(segment: Segment, at: int, head: Header, ordinary: bool) -> int:
    """Return where the batch after a corrupt one begins: its length may be what is wrong, and hide intact batches."""
    end = at + head.size
    follows = segment.first(end, ordinary)
    if follows == head.last + 1:
        return end
    return segment.search(at + 1, end, 1 << 62 if follows is None else follows, ordinary) or end
