"""What may be deleted below a root with many jobs (Flink), and what must stay, file by file.

Which snapshots of jobs (Flink) are kept where not all that can be restored are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from cklog.engine.reading import Reading
from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import StateFile
from cklog.model.verdict import Draft
from cklog.retention.plan import RetentionFate, RetentionPlan, RetentionRow, rules_of, totals_of
from cklog.retention.policy import RetentionPolicy
from cklog.runs.snapshots.findings import (
    dependencies,
    dependency_findings,
    snapshot_findings,
)
from cklog.runs.snapshots.lineage import Candidates, candidates, lost
from cklog.runs.snapshots.plan import job_named, newest_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot, survey

RULES: Mapping[str, str] = {
    "restorable": "a snapshot that can be restored needs it",
    "keep": "one of the newest snapshots of its job that --keep asks for needs it",
    "window": "a snapshot taken within the time that --window asks for needs it",
    "no-time": "a snapshot needs it of which nothing tells when it was taken: it may be within --window",
    "pin": "a snapshot that --pin names needs it",
    "savepoint": "a savepoint, or a snapshot in no job's folder, needs it, and those are deleted by their owners only",
    "unchecked": "a snapshot of which not every file was looked at names it, or a file of its name and size",
    "repairable": "a snapshot that lacks files, all of which are found elsewhere, names it",
    "disputed": "a snapshot needs it whose folder's name and metadata give different numbers: it may be the newest",
    "damaged": "a snapshot with damaged state files, of which another copy would mend it, names it",
    "older": "only snapshots name it that could be restored but that nothing asks to keep",
    "broken": "only snapshots that cannot be restored name it",
    "last": "only snapshots that cannot be restored name it, and nothing else of the job or savepoint can be",
    "unfinished": "no snapshot that stays names it, but a checkpoint in progress may",
    "task-owned": "no snapshot that stays names it, but running tasks may own it",
    "unreadable": "no snapshot that stays names it, but one whose metadata cannot be read may",
    "other-jobs": "nothing below PATH needs it, but PATH is one job's folder: another job may",
    "copied-job": "a snapshot names a file of this name at another place; of its job there are several copies",
    "orphan": "no snapshot names it, and none can that is still to come",
}


@dataclass(frozen=True, slots=True)
class FileDoubt:
    """What may still need a file that nothing restorable names.

    `lost`: folders of savepoints, and of jobs of whose checkpoints none can be restored, nor of their heirs; `copied`:
    folders of jobs of which there are several, where files were found by a job's id alone; `jobs_stopped`: no job runs,
    so that nothing is in progress and no task owns a file.
    """

    lost: Set[str]
    copied: Set[str]
    jobs_stopped: bool


def plan_retention(
    judged: Sequence[JudgedSnapshot],
    files: Iterable[StateFile],
    owners: Mapping[str, str],
    doubt: FileDoubt,
    chosen: Mapping[str, str],
) -> RetentionPlan:
    """Return the fate of every file, over all jobs at once: a file of one job may be what another one needs.

    `owners` gives the job's or savepoint's folder of each file, `chosen` the rule of each snapshot, by its folder, that
    is not to be judged by its verdict alone (`chosen_snapshots`).
    """
    standing = {j.folder.path: _standing(j, doubt.lost, chosen) for j in judged}
    named = _named_by(judged, standing)
    torn = {j.folder.path for j in judged if j.verdict == "no-metadata"}
    unfinished = _unfinished(judged)
    unreadable = any(j.verdict in ("corrupt", "unknown-version") for j in judged)
    rows = []
    for file in sorted(files, key=lambda f: f.path):
        rule, by = named.get(file.path, ("orphan", None))
        if rule in _LET_GO:
            rule = "unreadable" if unreadable else _doubted(file, torn, unfinished, doubt) or rule
        rows.append(RetentionRow(path=file.path, bytes=file.bytes, fate=_fate(rule), rule=rule, needed_by=by))
    folders = _folders(rows, judged, owners, standing)
    totals = totals_of(rows, "files")
    rules = rules_of(rows, RULES)
    return RetentionPlan(
        kind="snapshots",
        unit="files",
        rows=tuple(rows),
        totals=totals,
        folders=folders,
        rules=rules,
        jobs_stopped=doubt.jobs_stopped,
    )


_LET_GO = ("older", "broken", "orphan")
_ASKED = ("keep", "window", "no-time", "pin", "savepoint", "disputed")
_STRENGTH = ("restorable", "unchecked", *_ASKED, "repairable", "damaged", "last", "older", "broken")


def _named_by(
    judged: Sequence[JudgedSnapshot], standing: Mapping[str, str | None]
) -> dict[str, tuple[str, str | None]]:
    """The strongest rule for each file that a readable snapshot names, and the newest snapshot that it comes from."""
    found: dict[str, tuple[str, str | None]] = {}
    for rule in reversed(_STRENGTH):
        mine = (j for j in judged if standing[j.folder.path] == rule)
        for j in sorted(mine, key=lambda j: (j.id or 0, j.folder.path)):
            found.update(dict.fromkeys(_names(j), (rule, j.folder.path or ".")))
    return found


def _names(j: JudgedSnapshot) -> set[str]:
    """Files that a snapshot names, and those that may be what it names."""
    return {*j.uses, *(path for flaw in j.flaws for path in flaw.found if j.wanted)}


def _standing(j: JudgedSnapshot, lost: Set[str], chosen: Mapping[str, str]) -> str | None:
    """The rule under which a snapshot's files stand; None: its metadata names nothing that can be read."""
    if j.folder.path in chosen:
        return chosen[j.folder.path]
    if j.verdict in ("restorable", "unchecked"):
        return j.verdict
    if j.repairable:
        return "repairable"
    if j.verdict == "corrupt-state-file":
        return "damaged"
    if j.verdict not in ("missing-state-file", "size-mismatch"):
        return None
    return "last" if j.folder.job in lost else "broken"


def _unfinished(judged: Sequence[JudgedSnapshot]) -> set[str]:
    """Folders without metadata that may still be completed: those that no complete checkpoint of the job is behind."""
    newest: dict[str, int] = {}
    for j in judged:
        if j.folder.metadata is not None and j.folder.number is not None:
            newest[j.folder.job] = max(j.id or 0, newest.get(j.folder.job, -1))
    return {
        j.folder.path
        for j in judged
        if j.verdict == "no-metadata" and (j.folder.number or 0) > newest.get(j.folder.job, -1)
    }


def _doubted(file: StateFile, torn: set[str], unfinished: set[str], doubt: FileDoubt) -> str | None:
    """Why a file stays that nothing restorable names, if there is a reason."""
    folder = file.path.rpartition("/")[0]
    if not file.owner and not (file.area == "exclusive" and folder in torn):
        return "other-jobs"
    if file.owner in doubt.copied:
        return "copied-job"
    if doubt.jobs_stopped:
        return None
    if file.area in ("task-owned", "changelog"):
        return "task-owned"
    return "unfinished" if file.area == "shared" or folder in unfinished else None


def copied_jobs(judged: Sequence[JudgedSnapshot], files: Iterable[StateFile], job_id: Callable[[str], str]) -> set[str]:
    """Return folders of one job id that hold files of the same area, if any file was found by its job's id alone."""
    if not any(j.moved for j in judged):
        return set()
    folders: dict[tuple[str, str], set[str]] = {}
    for file in files:
        folders.setdefault((job_id(file.owner), file.area), set()).add(file.owner)
    return {folder for copies in folders.values() if len(copies) > 1 for folder in copies}


def _fate(rule: str) -> RetentionFate:
    if rule in ("restorable", "unchecked"):
        return "VALID"
    return "OBSOLETE" if rule in _LET_GO else "KEEP"


def _folders(
    rows: Sequence[RetentionRow],
    judged: Sequence[JudgedSnapshot],
    owners: Mapping[str, str],
    standing: Mapping[str, str | None],
) -> tuple[dict[str, Any], ...]:
    """Per job or savepoint: what stays, what may go, and whose snapshots outside it need it."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        owner = owners[row.path]
        empty = {
            "folder": owner or ".",
            "files": 0,
            "bytes": 0,
            "obsolete_files": 0,
            "obsolete_bytes": 0,
            "needed_by": set(),
        }
        total = found.setdefault(owner, empty)
        total["files"] += 1
        total["bytes"] += row.bytes or 0
        if row.fate == "OBSOLETE":
            total["obsolete_files"] += 1
            total["obsolete_bytes"] += row.bytes or 0
    for j in judged:
        if standing[j.folder.path] in (None, "older", "broken"):
            continue
        for path in _names(j):
            of = owners.get(path)
            if of is not None and of != j.folder.job:
                found[of]["needed_by"].add(j.folder.path or ".")
    return tuple({**total, "needed_by": sorted(total["needed_by"])} for _, total in sorted(found.items()))


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
    why one stays, "savepoint" that only its owner deletes it, "disputed" that it may be newer than it counts for, and
    "older" that nothing asks for it.
    """
    found = {j.folder.path: "pin" for j in pinned if j.verdict != "restorable" or policy.limits}
    if not policy.limits:
        return found
    for j in judged:
        if j.verdict == "restorable" and j.folder.path not in found:
            kept = "savepoint" if j.folder.number is None else "disputed" if j.disputed else None
            found[j.folder.path] = kept or "older"
    for snapshots in _by_job(judged, groups):
        whole = [j for j in snapshots if j.verdict == "restorable"]
        found.update({j.folder.path: "restorable" for j in whole[:1]})
        numbered = [j for j in whole if j.folder.number is not None and not j.disputed]
        for rank, j in enumerate(numbered):
            rule = _asked(policy, rank, times.get((j.folder.job, j.folder.number or 0)))
            if rule is not None and found[j.folder.path] == "older":
                found[j.folder.path] = rule
    return found


def _by_job(judged: Sequence[JudgedSnapshot], groups: Sequence[Candidates]) -> list[Sequence[JudgedSnapshot]]:
    """The snapshots of each job, newest first; those that no job here restarts from, by folder."""
    told = {j.folder.path for group in groups for j in group.snapshots}
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
        raise NotFound(f"--job-log {policy.job_log}: {error.strerror or error}") from None
    jobs = sorted({j.folder.job for j in judged if j.folder.number is not None})
    told = {(row["job"], row["checkpoint"]): row["trigger_time"] for row in rows if row["trigger_time"] is not None}
    alone = {number: time for (job, number), time in told.items() if job is None} if len(jobs) == 1 else {}
    found = {(job, number): time for job in jobs for (id, number), time in told.items() if id == parser.job_id(job)}
    return found | {(jobs[0], number): time for number, time in alone.items()}


def snapshot_retention(parser: OffersSnapshots, reading: Reading, policy: RetentionPolicy) -> Draft[RetentionPlan]:
    """Plan which files nothing needs, over all jobs below PATH.

    Raises
    ------
    UsageError : PATH is one checkpoint; a window, and nothing tells when checkpoints were taken; marks
    NotFound : there is no such snapshot as pinned
    """
    if parser.only is not None:
        raise UsageError(f"{parser.only} is one checkpoint of a job", "PATH is the root of all jobs")
    if policy.marked:
        raise UsageError("--marked: Flink marks nothing as deleted", "it deletes a file with its last user")
    found = survey(parser, reading)
    files = parser.state_files()
    owners = {file.path: file.owner for file in files}
    groups = candidates(parser, found, owners, inferred=False)  # nothing is let go of by inference
    copied = copied_jobs(found.judged, files, parser.job_id)
    doubt = FileDoubt(lost(parser, found.judged, owners), copied, policy.jobs_stopped)
    pinned = [_pinned(parser, found.judged, groups, text) for text in policy.pins]
    times = times_told(parser, found.judged, policy)
    chosen = chosen_snapshots(found.judged, groups, policy, pinned, times)
    plan = plan_retention(found.judged, files, owners, doubt, chosen)
    findings = snapshot_findings(found, {g.job: newest_of(g) for g in groups}, groups)
    findings += dependency_findings(dependencies(found.judged, owners, parser.job_id))
    return Draft("retention", plan, findings, found.inputs)


def _pinned(
    parser: OffersSnapshots, judged: Sequence[JudgedSnapshot], groups: Sequence[Candidates], text: str
) -> JudgedSnapshot:
    """The snapshot that `--pin` names: by its folder, the end of it, or as JOB/0=CKPT."""
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
