"""Stores whose offset lies where the changelog was compacted since: a deletion may be gone that the store never read.

Compaction removes a deletion (a record without a value) some time after it removed what the key had before. A store
that has the key from before, and reads on after that, keeps the key for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cklog.inputs.partitions import Partition, Range, RangeCount
from cklog.inputs.stores import StoreRestore, StoreTask
from cklog.kafka_logs.logs import PartitionLogs
from cklog.model.findings import Finding, Where
from cklog.model.wording import agreeing, many


def compacted_range(p: Partition, restore: StoreRestore) -> Range | None:
    """Return the offsets that a store still has to read and that may be compacted already; None: there are none.

    Up to where the broker says that it has compacted the log; if no file says so, up to the log's end.
    """
    start, cleaned = restore.restore_from, p.folder.cleaned_to
    if restore.start != "checkpoint" or start is None or start < p.log_start or p.folder.compacted is False or p.damage:
        return None
    end = p.restart_end if cleaned is None or cleaned > p.log_end else min(cleaned, p.restart_end)
    return Range(p.folder.topic, p.folder.partition, start, end) if start < end else None


def compaction_findings(
    logs: PartitionLogs, asked: Sequence[tuple[StoreTask, StoreRestore, Range]]
) -> Iterator[Finding]:
    """Yield an error for each store that has to read offsets of which compaction has removed some."""
    for (task, restore, _), count in zip(asked, logs.counts([each for _, _, each in asked]), strict=True):
        gone = _removed(count)
        if gone:
            message = (
                f"a store of task {task.name} is at offset {count.start}, but the broker has compacted "
                f"{restore.changelog} since: {gone} of the {many(count.end - count.start, 'offset')} up to {count.end} "
                f"{agreeing(gone, 'have')} no record. Deletions older than delete.retention.ms (24 hours by default) "
                "may be among them, and the store would keep keys that were deleted. Delete its folder while the "
                "instance is down: it is restored from the changelog"
            )
            where = (Where(task.folder_of(restore.store)),)
            yield Finding("store-behind-compaction", "error", restore.changelog, message, where, effect="data-lost")


def _removed(count: RangeCount) -> int:
    """Count the offsets of a range without a record; 0 where not all of it was read."""
    return 0 if count.unread or not count.exact else max(count.end - count.start - count.records, 0)
