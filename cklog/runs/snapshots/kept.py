"""Which snapshots of jobs (Flink) are kept where not all that can be restored are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.local_files import plain_reason
from cklog.retention.policy import RetentionPolicy
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import job_named
from cklog.runs.snapshots.verdicts import JudgedSnapshot

Times = Mapping[tuple[str, int], int]
"""When a job's checkpoint was triggered, in ms: by the job's folder and the checkpoint's number."""


def chosen_snapshots(
    judged: Sequence[JudgedSnapshot],
    groups: Sequence[Candidates],
    policy: RetentionPolicy,
    pinned: Iterable[JudgedSnapshot],
    times: Times,
) -> dict[str, str]:
    """Return the rule of each snapshot, by its folder, that a policy speaks of; nothing if all restorable ones are
    kept.

    What each job restarts from is "restorable" as ever. Of the others "keep", "window" (or "no-time") and "pin" say
    why one stays, "savepoint" that only its owner deletes it, and "older" that nothing asks for it. One whose number is
    not known for sure ("disputed") stays, and is not counted. So does one that lacks files of a sink ("broken"),
    unless it is older than what the job restarts from.
    """
    found = {j.folder.path: "pin" for j in pinned if j.verdict != "restorable" or policy.limits}
    if not policy.limits:
        return found
    for j in judged:
        if j.verdict == "restorable" and j.folder.path not in found:
            found[j.folder.path] = "savepoint" if j.folder.number is None else "disputed" if j.disputed else "older"
    for snapshots in _by_job(judged, groups):
        whole = [j for j in snapshots if j.verdict == "restorable" and not j.disputed]
        found.update({j.folder.path: "restorable" for j in whole[:1]})
        below = snapshots[snapshots.index(whole[0]) + 1 :] if whole else ()
        lacking = (j for j in below if j.verdict == "sink-file-missing" and j.folder.number is not None)
        for j in lacking:
            found.setdefault(j.folder.path, "disputed" if j.disputed else "older")
        numbered = [j for j in whole if j.folder.number is not None]
        for rank, j in enumerate(numbered):
            rule = _asked(policy, rank, times.get((j.folder.job, j.folder.number or 0)))
            if rule is not None and found[j.folder.path] == "older":
                found[j.folder.path] = rule
    return found


def mendable_snapshots(
    judged: Sequence[JudgedSnapshot],
    groups: Sequence[Candidates],
    policy: RetentionPolicy,
    pinned: Iterable[JudgedSnapshot],
    times: Times,
) -> set[str]:
    """Return the folders of snapshots that would stay if they could be restored, of those that cannot.

    With limits those are the newer ones than the last that is counted, and those that may be within the window.
    """
    broken = {j.folder.path: j for j in judged if not j.has_state}
    if not policy.limits:
        return {*broken}
    found = {j.folder.path for j in pinned}
    found |= {path for path, j in broken.items() if j.folder.number is None or j.disputed}
    for snapshots in _by_job(judged, groups):
        whole = [j for j in snapshots if j.verdict == "restorable" and not j.disputed]
        counted = whole if policy.keep is None else [j for j in whole if j.folder.number is not None]
        last = (policy.keep or 1) - 1
        newer = snapshots[: snapshots.index(counted[last])] if last < len(counted) else snapshots
        found |= {j.folder.path for j in newer}
    if policy.since is not None:
        told = {path: times.get((j.folder.job, j.folder.number or 0)) for path, j in broken.items()}
        found |= {path for path, time in told.items() if time is None or time >= policy.since}
    return found & {*broken}


def _by_job(judged: Sequence[JudgedSnapshot], groups: Sequence[Candidates]) -> list[Sequence[JudgedSnapshot]]:
    """The snapshots of each job, newest first; those that no job here restarts from, by folder.

    So are those of a job of which one has two numbers: which job it comes before or after may not be known then.
    """
    unsure = {j.folder.job for j in judged if j.disputed}
    told = {j.folder.path for group in groups for j in group.snapshots if j.folder.job not in unsure}
    rest: dict[str, list[JudgedSnapshot]] = {}
    for j in sorted(judged, key=lambda j: (j.id or -1, j.folder.path), reverse=True):
        if j.folder.path not in told:
            rest.setdefault(j.folder.job, []).append(j)
    return [*(group.snapshots for group in groups), *rest.values()]


def _asked(policy: RetentionPolicy, rank: int, time: int | None) -> str | None:
    """Why one stays that is the `rank`-th newest of its job and was taken at `time`."""
    if policy.keep is not None and rank < policy.keep:
        return "keep"
    if policy.since is None:
        return None
    if time is None:
        return "no-time"
    return "window" if time >= policy.since else None


def times_told(
    parser: OffersSnapshots, judged: Sequence[JudgedSnapshot], policy: RetentionPolicy
) -> dict[tuple[str, int], int]:
    """Say when checkpoints were triggered, by the job manager's log, which alone knows: Flink's metadata holds no time.

    Raises
    ------
    UsageError : a window without such a log, or such a log without a window
    NotFound : there is no such log
    """
    if policy.since is None:
        if policy.job_log:
            raise UsageError("--job-log without --window", "it tells when checkpoints were taken")
        return {}
    if not policy.job_log:
        hint = "--job-log FILE, the job manager's log, tells when each checkpoint was triggered"
        raise UsageError("--window: Flink's snapshots hold no time", hint)
    try:
        rows = parser.job_log(policy.job_log)
    except OSError as error:
        raise NotFound(f"--job-log {policy.job_log}: {plain_reason(error)}") from None
    jobs = sorted({j.folder.job for j in judged if j.folder.number is not None})
    told = {(row["job"], row["checkpoint"]): row["trigger_time"] for row in rows if row["trigger_time"] is not None}
    alone = {number: time for (job, number), time in told.items() if job is None} if len(jobs) == 1 else {}
    found = {(job, number): time for job in jobs for (id, number), time in told.items() if id == parser.job_id(job)}
    return found | {(jobs[0], number): time for number, time in alone.items()}


def snapshot_pinned(
    parser: OffersSnapshots, judged: Sequence[JudgedSnapshot], groups: Sequence[Candidates], text: str
) -> JudgedSnapshot:
    """Return the snapshot that `--pin` names: by its folder, the end of it, or as JOB/0=CKPT.

    Raises
    ------
    NotFound : there is none, there are several, or it has no metadata
    """
    name, equals, number = text.rpartition("=")
    if equals and number.isdecimal() and len(number) < 19:
        found = [j for j in job_named(parser, groups, name).snapshots if int(number) in j.numbers]
    else:
        wanted = text.rstrip("/")
        found = [j for j in judged if j.folder.path == wanted or j.folder.path.endswith("/" + wanted)]
    if len(found) != 1:
        why = "no" if not found else "more than one"
        raise NotFound(f"--pin {text}: {why} snapshot of that name", "name its folder, or JOB/0=CKPT")
    if found[0].verdict == "no-metadata":
        raise NotFound(f"--pin {text}: it has no metadata, so nothing tells what it needs")
    return found[0]
