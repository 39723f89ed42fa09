"""Whether a log is the one that an offset was stored of, or that of a topic which was made again under the same name.

A topic that is deleted and created again keeps its name and begins anew at offset 0. An offset that was stored before
then lies in a log of other records, which nobody has read. Two things show it: every record of the log is younger than
the offset, though the records below the offset were read before it was stored; and the offset is of a leader epoch that
the log does not know.
"""

from __future__ import annotations

from cklog.inputs.partitions import GroupCommit, Partition
from cklog.model.findings import Finding, Where
from cklog.model.wording import agreeing, many, utc


def recreated_findings(
    subject: str, p: Partition, offset: int, stored: int | None, epoch: int | None = None
) -> list[Finding]:
    """Return an error if an offset was stored of another topic of the same name.

    Parameters
    ----------
    subject : the source or the group that resumes at `offset`
    stored : when the offset was stored, or a later time; None: not known
    epoch : the leader epoch of the record before the offset; None: not known
    """
    why = why_another_log(p, offset, stored, epoch)
    if not why or offset > p.restart_end:
        return []
    count = offset - p.log_start
    message = (
        f"{subject} resumes {p.name} at offset {offset}, but {why}: the topic was deleted and created again, or the "
        f"log is from another cluster. A restart skips {many(count, 'offset')} from {p.log_start} on that "
        f"{agreeing(count, 'were')} never read. Start at offset {p.log_start} of this log instead"
    )
    return [
        Finding("topic-recreated", "error", subject, message, where=(Where(p.folder.path or "."),), effect="data-lost")
    ]


def why_another_log(p: Partition, offset: int, stored: int | None, epoch: int | None = None) -> str:
    """Say what shows that an offset was stored of another topic of the same name; "" for nothing."""
    return (_younger(p, stored) or _unknown_epoch(p, offset, epoch)) if _has_before(p, offset) else ""


def is_another_log(p: Partition, commit: GroupCommit) -> bool:
    """Return whether a group's offset was stored of another topic of the same name."""
    return bool(why_another_log(p, commit.offset, commit.time, commit.leader_epoch))


def resume_offset(p: Partition, commit: GroupCommit) -> int:
    """Return where a group can resume without a gap: at its committed offset, or at the nearest that the log will have.

    Of a log that is not the one that the group has read, that is its start.
    """
    return p.log_start if is_another_log(p, commit) else min(max(commit.offset, p.log_start), p.sure_end)


def _has_before(p: Partition, offset: int) -> bool:
    """Whether the log has a record before an offset: else it shows nothing of what was read."""
    return p.first_offset is not None and max(p.first_offset, p.log_start) < offset


def _younger(p: Partition, stored: int | None) -> str:
    """Say that even the oldest record is younger than the offset; "" if it is not."""
    if stored is None or p.first_time is None or p.first_time <= stored:
        return ""
    return (
        f"the oldest record of the log was written at {utc(p.first_time)}, after this offset was stored ({utc(stored)})"
    )


def _unknown_epoch(p: Partition, offset: int, epoch: int | None) -> str:
    """Say that no leader of the log had the epoch of the record before an offset; "" if one may have had it."""
    if epoch is None or epoch < 0 or not p.folder.epochs or offset >= p.log_end:
        return ""
    known = max((leader for leader, start in p.folder.epochs if start <= offset), default=None)
    if known is None or epoch <= known:
        return ""
    return f"this offset was stored with leader epoch {epoch}, and the log has leader epoch {known} there"
