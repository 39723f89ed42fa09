"""Committed offsets that were deleted or have expired: their last values, and how a group gets them back."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from cklog.inputs.partitions import DeletedCommit, Partition
from cklog.model.findings import Finding
from cklog.model.wording import first_few, many, utc


def deleted_rows(deleted: Iterable[DeletedCommit], partitions: Mapping[str, Partition]) -> list[dict[str, Any]]:
    """Return the last value of each deleted offset, and where the group would resume with it; None: not known."""
    return [
        {
            "group": one.group,
            "partition": one.name,
            "last_committed": one.offset,
            "resume": _resume(one, partitions.get(one.name)),
            "committed_time": one.time,
        }
        for one in deleted
    ]


def _resume(one: DeletedCommit, p: Partition | None) -> int | None:
    """Where the group would resume: at the last value, or at the nearest offset that the restarted log has."""
    if p is None or one.offset is None:
        return one.offset
    return min(max(one.offset, p.log_start), p.sure_end)


def deleted_findings(
    deleted: Iterable[DeletedCommit], rereads: Container[str] = (), beside: bool = False
) -> Iterator[Finding]:
    """Yield for each group what was deleted, and the command that writes it for a reset.

    `beside` : the logs are those of `--kafka`, and not PATH
    `rereads` : groups of which PATH holds the state, so that to read their input again is an error
    """
    groups: dict[str, list[DeletedCommit]] = {}
    for one in deleted:
        groups.setdefault(one.group, []).append(one)
    for group, its in groups.items():
        message = (
            f"group {group}: the committed {_offsets(its)} deleted, or expired (offsets.retention.minutes): "
            f"{first_few([_last(one) for one in its], 3)}. A group that starts without an offset reads from where "
            "auto.offset.reset says: it reads records again, or skips them"
        )
        place = "FOLDER" if beside or group in rereads else "PATH"
        if any(one.offset is not None for one in its):
            message += (
                f". To set the offsets again: cklog replay {place} --group {shlex.quote(group)} --format kafka-csv, "
                "then kafka-consumer-groups.sh --reset-offsets --from-file"
            )
            if place == "FOLDER":
                message += " (FOLDER is that of --kafka)"
        if group in rereads:
            message += ". Its stores go on from later: records would count in them twice"
            yield Finding("deleted-commit", "error", f"group {group}", message, effect="data-duplicated")
        else:
            yield Finding("deleted-commit", "warning", f"group {group}", message, effect="none")


def _offsets(its: Sequence[DeletedCommit]) -> str:
    return "offset of 1 partition was" if len(its) == 1 else f"offsets of {many(len(its), 'partition')} were"


def _last(one: DeletedCommit) -> str:
    if one.offset is None:
        return f"{one.name} at an offset that the log no longer has"
    return f"{one.name} at {one.offset}" + ("" if one.time is None else f" (committed {utc(one.time)})")
