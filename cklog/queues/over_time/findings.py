"""What a whole output queue says about itself and about the targets for its extent, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from cklog.errors import CorruptInput
from cklog.inputs.damage import damage_findings
from cklog.model.findings import Finding
from cklog.model.names import Subtask
from cklog.queues.over_time.timeline import ExtentOverTime, Timeline


def over_time_findings(subtask: Subtask, timeline: Timeline) -> tuple[Finding, ...]:
    """Every finding about the queue.

    Raises
    ------
    CorruptInput : no record of it can be read
    """
    damage = timeline.damage
    if not timeline.result.records and not {item.id for item in damage} <= {"torn-tail"}:
        why = f"{damage[0].path}: {damage[0].detail}"
        raise CorruptInput(
            f"no record of the output queue of {subtask} can be read: {why}", "look for another copy of outputs/"
        )
    return (*damage_findings(damage), *_mismatch(subtask, timeline), *_targets(subtask, timeline))


def _mismatch(subtask: Subtask, timeline: Timeline) -> Iterator[Finding]:
    met = timeline.mismatch
    if met is not None:
        message = (
            f"{subtask}: N is not the number of windows that the footprints say are open at {met.records:,} of "
            f"{timeline.result.records:,} records, first at record {met.record}, where N is {met.said} and "
            f"{met.found} are open: extents from there on are too large where a result is missing, too small where "
            "footprints are"
        )
        yield Finding("window-count-mismatch", "warning", str(subtask), message, (met.place,))


def _targets(subtask: Subtask, timeline: Timeline) -> Iterator[Finding]:
    found = timeline.result
    if timeline.replay_unknown:
        message = f"{subtask}: records carry no input numbers, so that a replay cannot be counted in tuples"
        yield Finding("replay-unknown", "warning", str(subtask), message)
    if found.breaches:
        where = () if timeline.first_breach is None else (timeline.first_breach,)
        yield Finding("extent-over-target", "error", str(subtask), f"{subtask}: {_broken(found)}", where)


def _broken(found: ExtentOverTime) -> str:
    """When a target was broken, for how long, and by which window."""
    total, first = found.breached, found.breaches[0]
    times = "once" if total["stretches"] == 1 else f"{total['stretches']:,} times"
    largest = _sizes(found.extent["max"], None if found.replay is None else found.replay["max"])
    return (
        f"{targets_of(found)} {times}, for {total['ms']:,} ms and {total['records']:,} of {found.records:,} records; "
        f"first at record {first['from_record']} (timestamp {first['from_ts']}) to record {first['to_record']} "
        f"({first['to_ts']}), where {first['oldest']} held T back: {_sizes(first['extent'], first['replay'])}; "
        f"largest of all: {largest}"
    )


def _sizes(extent: int, replay: int | None) -> str:
    return f"{extent:,} records" + ("" if replay is None else f", {replay:,} tuples")


def targets_of(found: ExtentOverTime) -> str:
    """What it is to break the targets.

    Such as "the extent was over 2,500 records or the replay over 100 tuples"; empty without a target.
    """
    parts = [] if found.max_extent is None else [f"the extent was over {found.max_extent:,} records"]
    if found.max_replay is not None and found.replay is not None:
        parts.append(f"the replay {'' if parts else 'was '}over {found.max_replay:,} tuples")
    return " or ".join(parts)
