"""What a restart of consumers from committed offsets does: group by group, partition by partition.

A group resumes at its committed offset. Records after it were processed without a commit, or never processed: no log
tells which. What lies before the log's start or after its end, once the broker has restarted, is lost to the group.
Readers of committed records get neither aborted ones nor those of open transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.model import (
    Again,
    GuaranteeEvidence,
    OutputInterval,
    ResultFate,
    SinkGuarantee,
    SinkImpact,
    SinkTransaction,
)
from cklog.inputs.partitions import Partition
from cklog.kafka_logs.partition import CUTTING, trusted
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft


def partition_impact(replayed: Draft[RecoveryLine], partitions: Mapping[str, Partition]) -> Draft[SinkImpact]:
    """Return the whole answer of `cklog impact` for a broker's logs.

    Parameters
    ----------
    replayed : what `replay` answers of them
    partitions : by name
    """
    line = replayed.result
    ranges = {(row["group"], row["log"]): row for row in line.details["ranges"]}
    groups: list[dict[str, Any]] = line.details["groups"]
    deleted: list[dict[str, Any]] = line.details["deleted_groups"]
    intervals = [row for group in groups for row in _intervals(group, ranges, partitions)]
    intervals += [row for one in deleted for row in _without_offset(one, partitions.get(one["partition"]))]
    result = SinkImpact(
        system="kafka",
        line=tuple({"operator": e.operator, "subtask": e.subtask, "checkpoint": e.checkpoint} for e in line.line),
        intervals=tuple(intervals),
        guarantees=tuple(_guarantees(groups, intervals, partitions)),
        again=tuple(_again(groups, partitions)),
        transactions=tuple(_transactions(partitions)),
        notes=() if groups or deleted else ("no-groups",),
    )
    return Draft("impact-sinks", result, replayed.findings, replayed.inputs, indeterminate=replayed.indeterminate)


def _again(groups: Iterable[Mapping[str, Any]], partitions: Mapping[str, Partition]) -> Iterable[Again]:
    for row in groups:
        kept = _kept(row["committed"], partitions.get(row["partition"]))
        yield Again(
            source=row["partition"],
            reader=row["group"],
            from_=row["resume"],
            to=None,
            most=row["restart_end"],
            kept=kept,
        )


def _kept(committed: int, log: Partition | None) -> bool | None:
    """Whether a group finds all records from its committed offset on; None: it is not known.

    Nothing is known of segments that were not read, of damage where a starting broker does not look, nor of offsets in
    no segment where compaction may have taken them.
    """
    if log is None:
        return None
    if committed < log.log_start or (committed > log.restart_end and not log.unread):
        return False
    if any(gap.end > committed for gap in log.gaps) and log.folder.compacted is not True:
        return None if log.folder.compacted is None else False
    names = {segment.path for segment in log.folder.segments[: trusted(log.folder)]}
    hidden = any(item.id in CUTTING and item.path in names for item in log.damage)
    return None if log.unread or hidden else True


def _intervals(
    group: Mapping[str, Any], ranges: Mapping[tuple[str, str], Mapping[str, Any]], partitions: Mapping[str, Partition]
) -> Iterable[OutputInterval]:
    """Of one group and partition."""
    name, log = group["partition"], partitions.get(group["partition"])
    if log is None:
        return
    committed, resume, end = group["committed"], group["resume"], group["restart_end"]
    interval = partial(OutputInterval, sink=group["group"], readers="", of=name)
    if group.get("recreated") and resume < (skipped := min(committed, end)):
        never = skipped - resume
        fate: ResultFate = "missing" if committed <= end else "may-be-missing"
        yield interval(fate=fate, from_=resume, to=skipped, most=skipped, count=never, why="another-log")
        resume = skipped
    if committed < resume:
        lost = resume - committed
        yield interval(fate="missing", from_=committed, to=resume, most=resume, count=lost, why="below-log-start")
    if resume < end:
        data = None if group.get("recreated") else ranges[group["group"], name]["data"]
        yield interval(fate="may-be-doubled", from_=resume, to=None, most=end, count=data, why="behind-commit")
        if waiting := ranges[group["group"], name]["open"]:
            first = max(resume, log.last_stable)
            yield interval(fate="unknown", from_=first, to=None, most=end, count=waiting, why="open-transaction")
    first = max(committed, end)
    if first < log.log_end:
        cut = ranges[group["group"], name]["cut"] if first == end else None  # it counts all that the cut deletes
        yield interval(fate="missing", from_=first, to=log.log_end, most=log.log_end, count=cut, why="cut-off")
    if committed > end and not log.unread:
        back = committed - end
        yield interval(
            fate="may-be-missing", from_=end, to=committed, most=committed, count=back, why="offsets-used-again"
        )


def _without_offset(deleted: Mapping[str, Any], log: Partition | None) -> Iterable[OutputInterval]:
    """Of a group whose offset was deleted: auto.offset.reset decides, and no file here has it.

    What lies before the last value comes again from `earliest` on; from `latest` on, what lies after it never comes.
    """
    if log is None:
        return
    start, last, end = log.log_start, deleted["resume"], log.restart_end
    interval = partial(OutputInterval, sink=deleted["group"], readers="", of=deleted["partition"], to=None, count=None)
    until = end if last is None else last  # the last value is not known: nothing is known of what was read
    if start < until:
        yield interval(fate="may-be-doubled", from_=start, most=until, why="offset-deleted")
    since = start if last is None else last
    if since < end:
        yield interval(fate="may-be-missing", from_=since, most=end, why="offset-deleted")


def _guarantees(
    groups: Iterable[Mapping[str, Any]], intervals: Iterable[OutputInterval], partitions: Mapping[str, Partition]
) -> Iterable[SinkGuarantee]:
    names: dict[str, list[Mapping[str, Any]]] = {}
    for row in groups:
        names.setdefault(row["group"], []).append(row)
    rows = list(intervals)
    for group, mine in sorted(names.items()):
        gone = tuple(r.of for r in rows if r.sink == group and r.fate in ("missing", "may-be-missing"))
        held = {row["partition"]: _kept(row["committed"], partitions.get(row["partition"])) for row in mine}
        gone = gone or tuple(name for name, kept in held.items() if kept is False)
        unseen = tuple(name for name, kept in held.items() if kept is None)
        kept = False if gone else None if unseen else True
        why = "input-gone" if gone else "input-unknown" if unseen else "input-kept"
        yield guarantee_of(
            group,
            "",
            [
                GuaranteeEvidence("input", kept, why, tuple(dict.fromkeys(gone or unseen))),
                GuaranteeEvidence("state", True, "committed-offsets"),
                GuaranteeEvidence("output", None, "unknown-consumer"),
            ],
        )


def _transactions(partitions: Mapping[str, Partition]) -> Iterable[SinkTransaction]:
    """Open transactions: nothing shows whether a producer will commit them, or a coordinator abort them."""
    for log in partitions.values():
        for one in log.transactions.open:
            if not log.folder.internal:
                name = f"producer {one.producer}"
                yield SinkTransaction(
                    sink=log.name,
                    transaction=name,
                    producer=name,
                    checkpoint=None,
                    fate="unknown",
                    log=log.name,
                    from_=one.first,
                    to=log.restart_end,
                    records=one.records,
                )
