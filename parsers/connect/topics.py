"""Topics as segments of a broker: that of connectors' offsets, read whole, and data topics, read from their ends.

What a transaction of an exactly-once worker has not committed does not count, and neither does what a broker cuts off
when it restarts: who asks says so, record by record (`cklog.inputs.connectors.RecordFates`). Damage of batches is told
by the scan of their headers (`cklog.kafka_logs`), and not once more here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Damage, Split
from cklog.errors import first_line
from cklog.inputs.connectors import RecordFates, TakenRecord
from cklog.inputs.partitions import Folder
from cklog.model.findings import Where
from cklog.model.wording import numbered
from cklog.parsers.connect.entries import NotAnEntry, Written, key_of
from cklog.parsers.connect.records import source_of
from cklog.parsers.kafka import log
from cklog.parsers.kafka.groups import SegmentPart, read_records
from cklog.parsers.kafka.payloads import BadBatch
from cklog.storage import FileEntry, Root

_PROBED = 256 << 10
"""Bytes of a topic of another name that are looked at for keys of connectors."""


def written(root: Root, folder: Folder, fates: RecordFates) -> Iterator[Written | Damage]:
    """Yield the records of a partition of offsets, in its order; markers of transactions are none."""
    for segment in folder.segments:
        if segment.unread or not segment.size:
            continue
        split = log.split(root, FileEntry(segment.path, segment.size), 0, segment.size)
        try:
            for part in read_records(split):
                if isinstance(part, Damage):
                    continue
                yield from _faults(segment.path, part)
                yield from _written(folder, segment.path, part, fates)
        except (OSError, *ARROW_ERRORS) as error:
            yield Damage(segment.path, "unreadable-file", None, first_line(error))


def holds_offsets(root: Root, folder: Folder) -> bool:
    """Return whether the first records of a partition are connectors' offsets, whatever its topic is called."""
    for segment in folder.segments[:1]:
        if segment.unread or not segment.size:
            continue
        split = log.split(root, FileEntry(segment.path, segment.size), 0, min(segment.size, _PROBED))
        try:
            for part in read_records(split):
                if isinstance(part, Damage):
                    return False
                for row in _rows(part):
                    key_of(row["key"] or b"")
                    return True
        except (OSError, *ARROW_ERRORS, NotAnEntry):
            return False
    return False


def taken(root: Root, folder: Folder, entries: list[FileEntry], fates: RecordFates) -> Iterator[TakenRecord]:
    """Yield the records of a partition of a data topic from its end backwards, those that count."""
    names = {segment.path for segment in folder.segments if not segment.unread}
    for split in log.tail_splits(root, [e for e in entries if e.path in names or _is_index(e.path, folder)]):
        yield from reversed(list(_taken(split, folder, fates)))


def _is_index(path: str, folder: Folder) -> bool:
    return path.endswith(".index") and path.rpartition("/")[0] == folder.path


def _taken(split: Split, folder: Folder, fates: RecordFates) -> Iterator[TakenRecord]:
    """The records of one split; what cannot be read is left out, and told by who has read the headers."""
    try:
        for part in read_records(split):
            if isinstance(part, Damage):
                continue
            for row in _rows(part):
                head = part.heads[row["batch"]]
                producer = head.producer if head.transactional else -1
                if row["value"] is None or fates(folder.path, producer, row["offset"]) in ("aborted", "cut"):
                    continue
                yield TakenRecord(folder.name, row["offset"], source_of(row["value"]))
    except (OSError, *ARROW_ERRORS):
        return


def _rows(part: SegmentPart) -> Iterator[dict[str, Any]]:
    """The records of a part that are no markers, as Python's objects a few thousand at a time."""
    passed_over = [head.control or head.magic != 2 for head in part.heads]
    table = part.records.to_table().select(["batch", "offset", "timestamp", "key", "value"])
    for some in table.to_batches(1 << 14):
        yield from (row for row in some.to_pylist() if not passed_over[row["batch"]])


def _written(folder: Folder, path: str, part: SegmentPart, fates: RecordFates) -> Iterator[Written]:
    for row in _rows(part):
        head = part.heads[row["batch"]]
        yield Written(
            part=folder.name,
            number=row["offset"],
            where=Where(path, int(part.at[row["batch"]])),
            key=row["key"] or b"",
            value=row["value"],
            time=row["timestamp"] if row["timestamp"] >= 0 else None,
            fate=fates(folder.path, head.producer if head.transactional else -1, row["offset"]),
        )


def _faults(path: str, part: SegmentPart) -> Iterator[Damage]:
    for fault in part.records.faults:
        head = part.heads[fault.batch]
        detail = f"{numbered('offset', head.base, head.last)}: {fault.reason}"
        kind = "bad-record" if fault.id == BadBatch.id else fault.id
        yield Damage(path, kind, int(part.at[fault.batch]), detail, max(head.count, 1))
