"""A Kafka topic partition as files of a table of a run folder: splits, index reconciliation, and where a time begins.

    folder = segments (`cklog.parsers.kafka.segment`), each with .index and .timeindex; other files are passed over

`cklog.parsers.kafka.table` reads the splits.
"""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.inputs.queues import Since
from cklog.model.findings import Finding, Where
from cklog.model.wording import many
from cklog.parsers.kafka.batches import Header, records, verify
from cklog.parsers.kafka.compaction import SWAP, started
from cklog.parsers.kafka.payloads import BadBatch
from cklog.parsers.kafka.segment import PlacedHeader, Segment, segments, walk
from cklog.parsers.kafka.side_files import Cuts, IndexHint, TimeHint, index_entries, read_index, time_entries
from cklog.parsers.kafka.table import READER
from cklog.storage import FileEntry, Root

INDEX_INTERVAL = 4096
"""Bytes of log between two index entries (Kafka's `index.interval.bytes`), and one batch more."""


def splits(root: Root, entries: Iterable[FileEntry], step: int) -> list[Split]:
    """Cut the whole partition, in log order, into splits of about `step` bytes; only larger segments are opened."""
    entries, made = list(entries), []
    for entry in segments(entries):
        made += segment_splits(root, entry, entries, step)
    return made


def segment_splits(root: Root, entry: FileEntry, entries: list[FileEntry], step: int) -> list[Split]:
    """Cut one segment into splits of about `step` bytes; its index, if it is among `entries`, says where."""
    ends = _cut_segment(root.uri, entries, entry, step) if entry.size > step else []
    bounds = [0, *ends, entry.size] if entry.size else []
    return [split(root, entry, start, end) for start, end in pairwise(bounds)]


def split(root: Root, entry: FileEntry, start: int, end: int) -> Split:
    """Return the part [start, end) of a segment as a split; a batch begins at `start`."""
    uri, follow = root.uri(entry.path), root.follow_links
    return Split(uri=uri, path=entry.path, reader=READER, start=start, end=end, size=entry.size, follow_links=follow)


def _cut_segment(uri_of: Callable[[str], str], entries: list[FileEntry], entry: FileEntry, step: int) -> list[int]:
    """Return where to cut a segment into splits of about `step` bytes; nowhere if it cannot be read."""
    made, start = [], 0
    try:
        with _open(uri_of, entry) as segment:
            cuts = Cuts(segment, _hints(uri_of, entries, entry))
            while start + step < entry.size:
                end = cuts.below(start + step)
                start = end if end > start else cuts.above(start)
                made.append(start)
    except (OSError, *ARROW_ERRORS):
        return []  # the reader says what is wrong
    return made if made[-1:] != [entry.size] else made[:-1]


def tail_splits(
    root: Root, entries: Iterable[FileEntry], first_step: int = 256 << 10, biggest: int = 8 << 20
) -> Iterator[Split]:
    """Yield the partition from the log's end backwards, in splits that double from `first_step` to `biggest` bytes.

    Lazy: one read of an index per segment and one of a header per split, if the index is there and right.
    """
    entries, want = list(entries), first_step
    for entry in reversed(segments(entries)):
        if not entry.size:
            continue
        end = entry.size
        try:
            with _open(root.uri, entry) as segment:
                cuts = Cuts(segment, _hints(root.uri, entries, entry))
                while end > 0:
                    start = cuts.below(end - want) if end > want else 0
                    yield split(root, entry, start, end)
                    end, want = start, min(2 * want, biggest)
        except (OSError, *ARROW_ERRORS):
            yield split(root, entry, 0, end)  # the reader says what is wrong


def _open(uri_of: Callable[[str], str], entry: FileEntry) -> Segment:
    return Segment(uri_of(entry.path), entry.path, entry.size)


def beside(segment: FileEntry, suffix: str) -> str:
    """Return the path of a segment's index, which ends in `suffix`, and `.swap` where the segment does.

    >>> beside(FileEntry("t-0/07.log", 9), ".index"), beside(FileEntry("t-0/07.log.swap", 9), ".index")
    ('t-0/07.index', 't-0/07.index.swap')
    """
    bare = segment.path.removesuffix(SWAP)
    return bare.removesuffix(".log") + suffix + segment.path[len(bare) :]


def _hints(uri_of: Callable[[str], str], entries: list[FileEntry], segment: FileEntry) -> list[IndexHint]:
    """Read what the `.index` of a segment says; nothing if it cannot be read."""
    path = beside(segment, ".index")
    if all(entry.path != path for entry in entries):
        return []
    try:
        return index_entries(read_index(uri_of(path)))
    except (OSError, *ARROW_ERRORS):
        return []


def reconcile(
    read: Callable[[str], bytes], uri_of: Callable[[str], str], entries: Iterable[FileEntry]
) -> tuple[Finding, ...]:
    """Report whether the indexes of the newest segment and its log end together: step 1 of the paper's recovery.

    The index is flushed behind the log, never before it: entries beyond the log are of output that was there
    and is gone. A log that goes on behind its index is normal after a crash; what is there counts. Also report
    segments of a compaction that was interrupted: a table of a run folder is read without them.
    """
    entries = list(entries)
    waiting = _find_waiting_segments(entries)
    logs = segments(entries)
    if not logs:
        return waiting
    index = index_entries(_read_beside(read, entries, logs[-1], ".index"))
    times = time_entries(_read_beside(read, entries, logs[-1], ".timeindex"))
    try:
        with _open(uri_of, logs[-1]) as segment:
            if segment.legacy(0):
                return waiting  # no batch of it can be read: there is nothing to compare
            found = (_find_index_beyond_log(segment, index, times), _find_log_beyond_index(segment, index))
    except (OSError, *ARROW_ERRORS):
        return waiting  # the reader says what is wrong
    return (*waiting, *(finding for finding in found if finding))


def _find_waiting_segments(entries: list[FileEntry]) -> tuple[Finding, ...]:
    """Report the segments that a starting broker would take and this reader does not."""
    found = started({posixpath.basename(entry.path): entry for entry in entries}, lambda entry: 0).swapped
    if not found:
        return ()
    message = (
        f"{found[0].path}: a compaction was interrupted, and {many(len(found), 'segment')} of it wait to be renamed: "
        "their records are not read here. Let a broker start on a copy, and read that"
    )
    where = tuple(Where(entry.path) for entry in found)
    return (Finding("interrupted-compaction", "error", found[0].path, message, where, effect="unknown"),)


def unjoined(uri_of: Callable[[str], str], entries: Iterable[FileEntry]) -> list[tuple[Where, str]]:
    """Find the segments that do not begin at the offset at which the one before ends; also say what is wrong."""
    entries = list(entries)
    found = []
    for entry, behind in pairwise(segments(entries)):
        try:
            with _open(uri_of, entry) as segment:
                last = _find_end(segment, _hints(uri_of, entries, entry)).last
        except (OSError, *ARROW_ERRORS):
            continue  # the reader says what is wrong
        follows = int(posixpath.basename(behind.path).removesuffix(".log"))
        if follows != last + 1:
            what = f"begins at offset {follows}, and {entry.path} ends before {last + 1}: segments or batches are gone"
            found.append((Where(behind.path, 0), what))
    return found


def _read_beside(read: Callable[[str], bytes], entries: list[FileEntry], segment: FileEntry, suffix: str) -> bytes:
    """Read an index of a segment; nothing if it is not there or cannot be read, for it can be made from the log."""
    path = beside(segment, suffix)
    try:
        return read(path) if any(entry.path == path for entry in entries) else b""
    except (OSError, *ARROW_ERRORS):
        return b""


class _SegmentEnd(NamedTuple):
    """Where the last whole batch of a segment ends, its last offset, and the newest timestamp of those looked at."""

    at: int
    last: int
    newest: int


def _find_end(segment: Segment, index: list[IndexHint]) -> _SegmentEnd:
    """Find the end of a segment, from the last usable hint on."""
    end, last, newest = 0, segment.base - 1, -1
    for found in walk(segment, Cuts(segment, index).below_hint(segment.size), segment.size, check=False):
        if not isinstance(found, Damage):
            at, head = found
            end, last, newest = at + head.size, head.last, max(newest, head.max_time)
    return _SegmentEnd(end, last, newest)


def _find_index_beyond_log(segment: Segment, index: list[IndexHint], times: list[TimeHint]) -> Finding | None:
    """Report entries of the indexes that lie behind the log's end."""
    end, last, newest = _find_end(segment, index)
    lost = sum(at >= end or segment.base + delta > last for delta, at in index)
    late = [time for time, delta in times if segment.base + delta > last]
    if times and not late:
        latest, _ = times[-1]
        if latest > newest and latest > _find_end(segment, []).newest:
            late = [latest]  # of an offset that is there, but no batch has that timestamp
    if not lost and not late:
        return None
    positions = many(lost, "position") if lost else ""
    timestamps = f"{many(len(late), 'timestamp')} up to {max(late)}" if late else ""
    known = " and ".join(filter(None, (positions, timestamps)))
    holds = f"with offset {last} at byte {end}" if end else "before its first batch"
    return Finding(
        id="index-beyond-log",
        severity="warning",
        subject=segment.path,
        message=f"the indexes know of more than the log holds ({known}): the log ends {holds}",
        where=(Where(segment.path, end),),
    )


def _find_log_beyond_index(segment: Segment, index: list[IndexHint]) -> Finding | None:
    """Report the batches that no index entry leads to, if they are more than a running broker leaves."""
    start = Cuts(segment, index).below_hint(segment.size)
    found = [f for f in walk(segment, start, segment.size, check=False) if not isinstance(f, Damage)]
    if len(found) < 2:
        return None
    first, last = found[1], found[-1]  # the index leads to the one before
    sizes = [batch.head.size for batch in found]
    large = sum(size > INDEX_INTERVAL for size in sizes)
    if last.at - start <= INDEX_INTERVAL + max(sizes) or (not index and large < 2):
        return None
    more = last.at + last.head.size - first.at
    return Finding(
        id="log-beyond-index",
        severity="info",
        subject=segment.path,
        message=f"{len(found) - 1} batches ({more} bytes) follow the last entry of the index; all of them are read",
        where=(Where(segment.path, first.at),),
    )


class RecordPlace(NamedTuple):
    """A record's Kafka offset, its segment, and the byte at which its batch begins."""

    offset: int
    path: str
    at: int


def first_at(
    uri_of: Callable[[str], str], read: Callable[[str], bytes], entries: Iterable[FileEntry], ts: int
) -> RecordPlace | None:
    """Find the first record with a timestamp of at least `ts`, in ms.

    Time indexes say where to begin, headers whether a batch can hold it; one batch is decoded. Markers are no
    records; damaged batches are passed over.
    """
    entries = list(entries)
    for entry in segments(entries):
        index = _hints(uri_of, entries, entry)
        times = time_entries(_read_beside(read, entries, entry, ".timeindex"))
        with _open(uri_of, entry) as segment:
            start = _all_older(segment, index, times, ts)
            for found in walk(segment, start, entry.size, check=False):
                if isinstance(found, Damage) or found.head.control or found.head.max_time < ts:
                    continue
                offset = _first_in_batch(segment, found, ts)
                if offset is not None:
                    return RecordPlace(offset, entry.path, found.at)
    return None


def since(
    uri_of: Callable[[str], str],
    read: Callable[[str], bytes],
    entries: Iterable[FileEntry],
    ts: int | None,
    number: int | None = None,
    stamp: int | None = None,
) -> Since | None:
    """Count what a partition holds from a time on, or from an offset, by its indexes and headers; None: nothing.

    Parameters
    ----------
    ts : milliseconds; None: from the first record
    number, stamp : an offset and its record's timestamp; it is taken if its place among the timestamps agrees
    """
    entries = list(entries)
    at = functools.partial(first_at, uri_of, read, entries)
    head = at(-(1 << 62))
    start = head if ts is None else at(ts)
    if head is None or start is None:
        return None
    by: Literal["input", "time"] = "time"
    if number is not None and stamp is not None:
        same, later = at(stamp), at(stamp + 1)
        if same is not None and same.offset <= number and (later is None or number < later.offset):
            start, by = same._replace(offset=number), "input"
    read_on = list(_batches_from(uri_of, entries, start))
    found = [item for item in read_on if isinstance(item, _LogBatch) and item.head.last >= start.offset]
    if not found:  # the log ends before `number`: its last records were torn
        return since(uri_of, read, entries, ts) if by == "input" else None
    data = [batch.head for batch in found if not batch.head.control]
    return Since(
        offset=start.offset,
        path=found[0].path,
        at=found[0].at,
        end=found[-1].head.last + 1,
        first=head.offset,
        tuples=sum(batch.count - max(start.offset - batch.base, 0) for batch in data),
        bytes=sum(batch.size for batch in data),
        by=by,
        damage=tuple(item for item in read_on if isinstance(item, Damage)),
    )


class _LogBatch(NamedTuple):
    """A batch: its segment, the byte at which it begins, and its header."""

    path: str
    at: int
    head: Header


def _batches_from(
    uri_of: Callable[[str], str], entries: list[FileEntry], start: RecordPlace
) -> Iterator[_LogBatch | Damage]:
    """Yield every intact batch from that of a record on, and what is none."""
    for entry in segments(entries):
        if entry.path < start.path:
            continue
        with _open(uri_of, entry) as segment:
            first = start.at if entry.path == start.path else 0
            for found in walk(segment, first, entry.size):
                yield found if isinstance(found, Damage) else _LogBatch(entry.path, found.at, found.head)


def _all_older(segment: Segment, index: list[IndexHint], times: list[TimeHint], ts: int) -> int:
    """Return a batch boundary before which every timestamp is below `ts`, by the time index; 0 if it does not say."""
    older = [delta for time, delta in times if time < ts]
    if not older:
        return 0
    start = Cuts(segment, [(delta, at) for delta, at in index if delta <= older[-1]]).below_hint(segment.size)
    # the batch there is older too, or the time index is wrong
    return start if start and segment.header(start).max_time < ts else 0


def _first_in_batch(segment: Segment, found: PlacedHeader, ts: int) -> int | None:
    """Return the offset of the first record of a batch that is not older than `ts`; None: none is, or it is corrupt."""
    at, head = found
    batch = segment.bytes(at, head.size)
    try:
        verify(head, batch)
        return next((record.offset for record in records(head, batch) if record.timestamp >= ts), None)
    except BadBatch:
        return None
