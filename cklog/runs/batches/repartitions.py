"""Offline repartition of a query's state (Spark 4.2 on): a batch of its own, which reads nothing.

Read in Spark's source: its plan repeats that of the newest committed batch, with another number of partitions; by that
difference Spark itself recognises it. Batches between the two were not done, whatever their commits say: what they read
is read again. While the new batch has no commit, no query starts.
"""

from __future__ import annotations

from typing import NamedTuple

from cklog.inputs.batches import MetadataLogs


class Repartition(NamedTuple):
    """From how many partitions to how many a batch takes the state."""

    before: int
    after: int


def repartition_of(logs: MetadataLogs, batch: int) -> Repartition | None:
    """Return what a batch does to the number of partitions, None where it is no repartition, or cannot be told."""
    before, after = logs.partitions(batch - 1), logs.partitions(batch)
    return None if before is None or after is None or before == after else Repartition(before, after)


def unfinished(logs: MetadataLogs) -> Repartition | None:
    """Return the repartition that the newest plan begins and no commit ends; None if there is none."""
    newest = max(logs.commits, default=-1)
    return repartition_of(logs, logs.planned) if logs.planned > newest else None


def was_skipped(logs: MetadataLogs, batch: int) -> bool:
    """Return whether a repartition passed over a batch that was not done: it repeats the plan of one before."""
    if repartition_of(logs, batch + 1) is None:
        return False
    own, repeated = logs.ends(batch), logs.ends(batch + 1)
    return own is not None and repeated is not None and own != repeated


def unfinished_message(logs: MetadataLogs) -> str:
    """Say what an unfinished repartition does to a restart, and what to do about it; "" if there is none."""
    found, o = unfinished(logs), logs.planned
    if found is None:
        return ""
    path = logs.offsets[o].path
    return (
        f"{path} repartitions the state from {found.before} to {found.after} partitions and has no commit: the "
        f"repartition did not finish. The restart fails. Run the repartition again, with {found.after} partitions. Or, "
        f"on a copy of the checkpoint, remove {path}, its .crc and the state files of version {o + 1}: the query then "
        f"resumes after batch {o - 1} with {found.before} partitions."
    )


def skipped_reason(batch: int) -> str:
    """Say why there is no way back to a batch that a repartition passed over."""
    return (
        f"it has a commit but was not finished: batch {batch + 1} repartitions the state of an older batch, and the "
        f"input of batch {batch} is read again"
    )
