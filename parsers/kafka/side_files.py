"""The small files that a Kafka broker keeps beside its segments: texts of a data folder, binary ones of a partition.

    offset checkpoint        version 0, then the number of entries, then an entry `topic partition offset` a line
    leader-epoch-checkpoint  the same in a partition's folder, an entry being `epoch start-offset`
    partition.metadata       `version: 0` and `topic_id: ...`          meta.properties   Java properties

A broker writes each to a temporary name and renames it, so that a crash leaves the old file or the new one: a count
that does not match its lines is damage. They tell of offsets as of some seconds before the crash, never of the log's
end: high watermarks are written every 5 s, recovery points and log starts every 60 s.

    NNNNNNNNNNNNNNNNNNNN.snapshot   version:i16 = 1  crc32c:u32  count:i32  entry*       as of offset N (exclusive)
        entry = producerId:i64  epoch:i16  lastSequence:i32  lastOffset:i64  offsetDelta:i32  timestamp:i64
                coordinatorEpoch:i32  currentTxnFirstOffset:i64 (-1 none); the CRC covers all behind it, and no version
    NNNNNNNNNNNNNNNNNNNN.txnindex   entry*, one per aborted transaction whose marker lies in segment N
        entry = version:i16 = 0  producerId:i64  firstOffset:i64  lastOffset:i64 (of its marker)  lastStableOffset:i64

All integers of these two are big-endian. Both can be made anew from the log: a broker does so after a crash. A crash
may leave a cut entry at the end of an index; a snapshot is written whole or, its CRC wrong, not used.

The indexes beside a segment of a Kafka log, and where they let the segment be cut.

    NNNNNNNNNNNNNNNNNNNN.index      (offset - base:i32  position:i32)*
    NNNNNNNNNNNNNNNNNNNN.timeindex  (largest timestamp so far:i64  offset - base:i32)*

An index entry names the *last* offset of the batch at `position`. The indexes of the segment in use are
preallocated with zeros, so that the first entry of zeros ends them; they are written behind the log and can be
made anew from it, and are hints here, no more.
"""

from __future__ import annotations

import bisect
import re
import struct

import crc32c

from cklog.errors import Picklable
from cklog.inputs.partitions import AbortedSpan, ProducerState
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import PROBE_BYTES, Segment
from cklog.storage import open_file
from cklog.unknown_formats import UnknownFormat

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
CLEAN_STOP = ".kafka_cleanshutdown"

_LINE_ENDS, _BLANKS = re.compile("\r\n|\r|\n"), re.compile("[ \t\v\f]+")
"""What ends lines and words for a broker; Python knows more such characters, which damage may leave."""

_PROPERTIES_VERSION, _NEWEST_PROPERTIES = re.compile(rb"^version[ \t]*[=:][ \t]*([0-9]{1,9})\s*$", re.MULTILINE), 1
_NUMBER = re.compile(r"[0-9]{1,19}")
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_CHECKED_FROM = 6
"""Where the bytes of a snapshot begin that its CRC covers."""

_PRODUCER = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")


class BadCheckpoint(Picklable, Exception):
    """Why a file is no checkpoint; `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


class BadSnapshot(Exception):
    """Why bytes are no snapshot, or no index."""


class UnknownVersion(UnknownFormat):
    """Why a file was not decoded, though nothing may be wrong with it."""


def check_properties(data: bytes) -> None:
    """Raise `UnknownVersion` for a `meta.properties` that only a later broker reads; 0 and 1 are known.

    >>> check_properties(b"version=1\\nnode.id=1\\n")
    >>> check_properties(b"version=2\\n")
    Traceback (most recent call last):
    cklog.parsers.kafka.side_files.UnknownVersion: version 2; the newest one known is 1
    """
    found = _PROPERTIES_VERSION.search(data)
    if found and int(found[1]) > _NEWEST_PROPERTIES:
        raise UnknownVersion(f"version {int(found[1])}; the newest one known is {_NEWEST_PROPERTIES}")


def offsets(data: bytes) -> dict[tuple[str, int], int]:
    """Decode an offset checkpoint to an offset per (topic, partition); of two entries for one, the last counts.

    >>> offsets(b"0\\n2\\nck-none 0 1500\\nck-txn 0 55\\n")
    {('ck-none', 0): 1500, ('ck-txn', 0): 55}

    Raises
    ------
    UnknownVersion : another version
    BadCheckpoint : a line that is no entry, or more or fewer entries than it says
    """
    return {
        (topic, _offset_of(line, partition)): _offset_of(line, offset)
        for line, (topic, partition, offset) in _checkpoint_entries(data, 3)
    }


def epochs(data: bytes) -> tuple[tuple[int, int], ...]:
    """Decode a `leader-epoch-checkpoint` to (leader epoch, its first offset), ascending.

    >>> epochs(b"0\\n2\\n0 50\\n3 120\\n")
    ((0, 50), (3, 120))
    """
    entries = _checkpoint_entries(data, 2)
    return tuple(sorted((_offset_of(line, epoch), _offset_of(line, start)) for line, (epoch, start) in entries))


def _checkpoint_entries(data: bytes, width: int) -> list[tuple[int, list[str]]]:
    """Return (line number, `width` words) of each entry of a checkpoint file."""
    try:
        lines = _LINE_ENDS.split(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadCheckpoint(1, "not UTF-8") from None
    if _NUMBER.fullmatch(lines[0].strip()) and lines[0].strip() != "0":
        raise UnknownVersion(f"version {lines[0].strip()[:20]}, known is 0")
    if lines[0].strip() != "0":
        raise BadCheckpoint(1, f"{lines[0].strip()[:20]!r} is no version" if data else "the file is empty")
    count = _offset_of(2, lines[1].strip()) if len(lines) > 1 else -1
    found = [(i, _BLANKS.split(line.rstrip(" \t\v\f"))) for i, line in enumerate(lines[2:], 3) if line.strip()]
    if len(found) != count:
        raise BadCheckpoint(2, f"it announces {count} entries and holds {len(found)}")
    wrong = next((i for i, words in found if len(words) != width), None)
    if wrong is not None:
        raise BadCheckpoint(wrong, f"{width} words are expected")
    return found


def _offset_of(line: int, text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) >= 1 << 63:
        raise BadCheckpoint(line, f"{text[:20]!r} is no offset")
    return int(text)


def producers(data: bytes) -> tuple[ProducerState, ...]:
    """Decode the producers of a snapshot, by id.

    Raises
    ------
    UnknownVersion : another version
    BadSnapshot : cut short, a wrong CRC, or more or fewer entries than it says
    """
    if len(data) < _SNAPSHOT_HEAD.size:
        raise BadSnapshot(f"{len(data)} bytes, a snapshot has {_SNAPSHOT_HEAD.size} at least")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    computed = crc32c.crc32c(memoryview(data)[_CHECKED_FROM:])
    if version > 1:
        raise UnknownVersion(f"version {version}, known is 1")
    if version != 1:
        raise BadSnapshot(f"{version} is no version")
    if computed != crc:
        raise BadSnapshot(f"crc is {crc:08x}, the bytes give {computed:08x}")
    if len(data) != _SNAPSHOT_HEAD.size + count * _PRODUCER.size:
        raise BadSnapshot(f"{count} producers are announced, there are {len(data) - _SNAPSHOT_HEAD.size} bytes of them")
    found = _PRODUCER.iter_unpack(data[_SNAPSHOT_HEAD.size :])
    return tuple(
        sorted(
            ProducerState(
                producer=producer,
                epoch=epoch,
                last_sequence=sequence,
                last_offset=last,
                time=time,
                open_from=None if first < 0 else first,
            )
            for producer, epoch, sequence, last, _, time, _, first in found
        )
    )


def aborted(data: bytes) -> tuple[AbortedSpan, ...]:
    """Decode the whole entries of an index of aborted transactions, in its order, up to one that is damaged.

    >>> aborted(_ABORTED.pack(0, 3, 2, 16, 1) + bytes(5))
    (AbortedSpan(producer=3, first=2, last=16, stable=1),)

    Raises
    ------
    UnknownVersion : an entry of another version
    """
    whole = len(data) - len(data) % _ABORTED.size
    found = []
    for version, *rest in _ABORTED.iter_unpack(data[:whole]):
        if version > 0:
            raise UnknownVersion(f"version {version}, known is 0")
        if version < 0:
            break
        found.append(AbortedSpan(*rest))
    return tuple(found)


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
