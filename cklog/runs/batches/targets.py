"""Batches that a query can go back to, and what of its logs is left when it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cklog.errors import NotFound
from cklog.inputs.batches import MetadataLogs
from cklog.model.verdict import NOT_JUDGED
from cklog.runs.batches.facts import Fact, file_finding
from cklog.runs.batches.repartitions import repartition_of, skipped_reason, unfinished, was_skipped

_STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def cut(logs: MetadataLogs, as_of: int) -> tuple[MetadataLogs, list[Fact]]:
    """Leave out the batches planned after `as_of` (ms); return what cannot be told because of damage, too.

    A batch whose time is unknown is left out if none known follows it.
    """
    times = {n: read.value.time for n, read in logs.offsets.items() if read.value is not None}
    later = min((n for n, time in times.items() if time is not None and time > as_of), default=None)
    early = [n for n, time in times.items() if time is not None and time <= as_of]
    last = max((n for n in early if later is None or n < later), default=-1)
    facts = []
    commits = logs.commit_log.folder
    unproved = last not in logs.commits and last > logs.shown_done
    if last >= 0 and unproved and max(*logs.commits, logs.planned, -1) > last:
        message = f"{commits}/{last} is missing, though later batches were planned: batch {last} was done."
        facts.append(Fact(file_finding("missing-batch-file", "error", f"{commits}/{last}", message)))
    for n in sorted({*logs.offsets, *logs.commits, *logs.offset_log.orphans}):
        if n > last and (later is None or n < later):
            path = f"{logs.offset_log.folder}/{n}"
            message = f"{path} does not say when batch {n} was planned, so it is left out; the line may be too old."
            facts.append(Fact(file_finding("unknown-time", "error", path, message)))
    return up_to(logs, last), facts


def judge_target(logs: MetadataLogs, at: int) -> list[Fact]:
    """Judge whether the query can go back to batch `at`.

    Raises
    ------
    NotFound : there is no such batch
    """
    names = logs.offsets.keys() | logs.commits.keys()
    if at not in names:
        there = f"batches {min(names)} to {max(names)}" if names else "no batch"
        raise NotFound(f"no batch {at} in the checkpoint, which has {there}")
    plan, commit = logs.offsets.get(at), logs.commits.get(at)
    lacking = [f"{logs.offset_log.folder}/{at}"] if plan is None or plan.flaw is not None else []
    lacking += [f"{logs.commit_log.folder}/{at}"] if commit is None or commit.flaw is not None else []
    why = f"{' and '.join(lacking)} cannot be read"
    if not lacking and way_back(logs, at) is not None:
        return []
    if not lacking and was_skipped(logs, at):
        lacking, why = [f"{logs.commit_log.folder}/{at}"], skipped_reason(at)
    elif not lacking:
        lacking = [f"{logs.offset_log.folder}/{logs.before(at)}"]
        why = f"a restart reads {lacking[0]} or, where that is kept, offsets/{at + 1}, and neither can be used"
    message = f"No way back to batch {at}: {why}. The newest whole one before is taken."
    return [Fact(file_finding("unreachable-batch", "error", lacking[0], message))]


def first_without_commit(logs: MetadataLogs) -> int:
    """Return the first batch after the newest commit; without any commit, the first that is still planned."""
    return max(logs.committed + 1, min(logs.offsets, default=0)) if logs.committed < 0 else logs.committed + 1


def has_state_ids(logs: MetadataLogs) -> bool:
    """Return whether commits name the states that batches leave (state checkpoint format 2)."""
    plan = logs.newest_plan
    set_so = plan is not None and str(plan.conf.get(_STATE_FORMAT, "")) == "2"
    return set_so or needs_state_ids(logs)


def needs_state_ids(logs: MetadataLogs) -> bool:
    """Return whether the state that is here is only found by the ids that commits give."""
    return logs.state_has_ids or names_states(logs)


def names_states(logs: MetadataLogs) -> bool:
    """Return whether a commit names the states that its batch left, so that the query keeps some."""
    return any(read.value is not None and read.value.ids for read in logs.commits.values())


def can_plan_afresh(logs: MetadataLogs) -> bool:
    """Return whether a restart can do without the newest plan, which is damaged: its batch is planned again then."""
    read = logs.offsets.get(logs.planned)
    if read is None or read.flaw is None or read.flaw.passed or read.flaw.id in NOT_JUDGED:
        return False
    line = logs.committed
    return line >= 0 and line == logs.before(logs.planned) and way_back(logs, line) == "afresh"


def any_named(logs: MetadataLogs, *batches: int) -> bool:
    """Return whether one of these plans names its sources, so that a restart finds them by their names."""
    plans = (logs.offsets[batch].value for batch in batches)
    return any(plan is not None and plan.is_named for plan in plans)


def continued(logs: MetadataLogs) -> MetadataLogs:
    """Leave out plans after the newest commit where a continuous trigger wrote them: a restart removes these."""
    return up_to(logs, max(logs.commits, default=-1)) if logs.continuous else logs


def way_back(logs: MetadataLogs, batch: int) -> Literal["afresh", "again"] | None:
    """Return how a query that goes back to `batch` goes on, None if it cannot go back there.

    Its own plan and commit must be whole. "afresh": all later plans are removed, and a restart reads the plan before.
    "again": that one is purged, but the plan after it is kept, which a restart runs again, unless it repartitions.
    """
    read = logs.commits.get(batch)
    if read is None or read.flaw is not None or logs.ends(batch) is None or was_skipped(logs, batch):
        return None
    if batch == 0 or logs.ends(logs.before(batch)) is not None:
        return "afresh"
    return "again" if logs.ends(batch + 1) is not None and repartition_of(logs, batch + 1) is None else None


def or_go_back(logs: MetadataLogs) -> str:
    """Name the newest batch that plans and commits allow to go back to, "" if there is none."""
    back = max((n for n in logs.commits if way_back(logs, n) is not None), default=None)
    return "" if back is None else f", or go back (--at query/0={back})"


def back_to(logs: MetadataLogs, at: int) -> MetadataLogs:
    """Leave out what goes when the query goes back to batch `at`, or to the newest before it to which it can.

    The plan after that batch stays where a restart has to run it again.
    """
    last = max((n for n in logs.commits if n <= at and way_back(logs, n) is not None), default=-1)
    again = last >= 0 and way_back(logs, last) == "again"
    return up_to(logs, last, last + 1 if again else last)


def without_repartition(logs: MetadataLogs) -> MetadataLogs:
    """Leave out the newest plan where it is that of a repartition which was not finished: no restart runs it."""
    return logs if unfinished(logs) is None else up_to(logs, max(logs.commits, default=-1))


def up_to(logs: MetadataLogs, last: int, planned: int | None = None) -> MetadataLogs:
    """Leave out all batches after batch `last`, but for plans up to batch `planned`."""
    newest = last if planned is None else planned
    shown = min(logs.shown_done, last) if last > replace(logs, shown_done=-1).committed else -1
    return replace(
        logs,
        offsets={n: read for n, read in logs.offsets.items() if n <= newest},
        commits={n: read for n, read in logs.commits.items() if n <= last},
        offset_log=replace(logs.offset_log, orphans=tuple(n for n in logs.offset_log.orphans if n <= newest)),
        commit_log=replace(logs.commit_log, orphans=tuple(n for n in logs.commit_log.orphans if n <= last)),
        shown_done=shown,
    )
