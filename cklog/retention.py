"""What may be deleted below a root with many jobs, and what must stay: a plan, file by file. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from cklog.snapshot_verdicts import Judged
from cklog.snapshots import StateFile

Fate = Literal["VALID", "KEEP", "OBSOLETE"]

RULES: Mapping[str, str] = {
    "restorable": "a snapshot that can be restored needs it",
    "unchecked": "a snapshot of which not every file was looked at names it, or a file of its name and size",
    "repairable": "a snapshot that lacks files, all of which are found elsewhere, names it",
    "broken": "only snapshots that cannot be restored name it",
    "last": "only snapshots that cannot be restored name it, and nothing else of the job or savepoint can be",
    "unfinished": "no snapshot that can be restored names it, but a checkpoint in progress may",
    "task-owned": "no snapshot that can be restored names it, but running tasks may own it",
    "unreadable": "no snapshot that can be restored names it, but one whose metadata cannot be read may",
    "other-jobs": "nothing below PATH needs it, but PATH is one job's folder: another job may",
    "copied-job": "a snapshot names a file of this name at another place; of its job there are several copies",
    "orphan": "no snapshot names it, and none can that is still to come",
}


@dataclass(frozen=True, slots=True)
class RetentionRow:
    """The fate of one file: `rule` says why (`RULES`), `needed_by` which snapshot, if one does."""

    path: str
    bytes: int
    fate: Fate
    rule: str
    needed_by: str | None


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Every file of the jobs and snapshots below PATH, sorted by path, and what they add up to.

    `folders`: of each job, or savepoint, how many files and bytes stay and how many may go, and which others need it.
    """

    rows: tuple[RetentionRow, ...]
    totals: dict[str, dict[str, int]]
    folders: tuple[dict[str, Any], ...]
    rules: dict[str, str]
    jobs_stopped: bool


@dataclass(frozen=True, slots=True)
class Doubt:
    """What may still need a file that nothing restorable names.

    `lost`: folders of savepoints, and of jobs of whose checkpoints none can be restored, nor of their heirs; `copied`:
    folders of jobs of which there are several, where files were found by a job's id alone; `jobs_stopped`: no job runs,
    so that nothing is in progress and no task owns a file.
    """

    lost: Set[str]
    copied: Set[str]
    jobs_stopped: bool


def plan_retention(
    judged: Sequence[Judged], files: Iterable[StateFile], owners: Mapping[str, str], doubt: Doubt
) -> RetentionPlan:
    """The fate of every file, over all jobs at once: a file of one job may be what another one needs.

    `owners` gives the job's or savepoint's folder of each file.
    """
    named = _named_by(judged, doubt.lost)
    torn = {j.folder.path for j in judged if j.verdict == "no-metadata"}
    unfinished = _unfinished(judged)
    unreadable = any(j.verdict in ("corrupt", "unknown-version") for j in judged)
    rows = []
    for file in sorted(files, key=lambda f: f.path):
        rule, by = named.get(file.path, ("orphan", None))
        if rule in _LET_GO:
            rule = "unreadable" if unreadable else _doubted(file, torn, unfinished, doubt) or rule
        rows.append(RetentionRow(file.path, file.bytes, _fate(rule), rule, by))
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        total = totals.setdefault(row.fate, {"files": 0, "bytes": 0})
        total["files"] += 1
        total["bytes"] += row.bytes
    used = sorted({row.rule for row in rows})
    return RetentionPlan(
        tuple(rows),
        dict(sorted(totals.items())),
        _folders(rows, judged, owners, doubt.lost),
        {r: RULES[r] for r in used},
        doubt.jobs_stopped,
    )


_LET_GO = ("broken", "orphan")
_STRENGTH = ("restorable", "unchecked", "repairable", "last", "broken")


def _named_by(judged: Sequence[Judged], lost: Set[str]) -> dict[str, tuple[str, str | None]]:
    """The strongest rule for each file that a readable snapshot names, and the newest snapshot that it comes from."""
    found: dict[str, tuple[str, str | None]] = {}
    for rule in reversed(_STRENGTH):
        for j in sorted((j for j in judged if _standing(j, lost) == rule), key=lambda j: (j.id or 0, j.folder.path)):
            found.update(dict.fromkeys(_names(j), (rule, j.folder.path or ".")))
    return found


def _names(j: Judged) -> set[str]:
    """Files that a snapshot names, and those that may be what it names."""
    return {*j.uses, *(path for flaw in j.flaws for path in flaw.found if j.wanted)}


def _standing(j: Judged, lost: Set[str]) -> str | None:
    """The rule under which a snapshot's files stand; None: its metadata names nothing that can be read."""
    if j.verdict in ("restorable", "unchecked"):
        return j.verdict
    if j.repairable:
        return "repairable"
    if j.verdict not in ("missing-state-file", "size-mismatch"):
        return None
    return "last" if j.folder.job in lost else "broken"


def _unfinished(judged: Sequence[Judged]) -> set[str]:
    """Folders without metadata that may still be completed: those that no complete checkpoint of the job is behind."""
    newest: dict[str, int] = {}
    for j in judged:
        if j.folder.metadata is not None and j.folder.number is not None:
            newest[j.folder.job] = max(j.folder.number, newest.get(j.folder.job, -1))
    return {
        j.folder.path
        for j in judged
        if j.verdict == "no-metadata" and (j.folder.number or 0) > newest.get(j.folder.job, -1)
    }


def _doubted(file: StateFile, torn: set[str], unfinished: set[str], doubt: Doubt) -> str | None:
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


def copied_jobs(judged: Sequence[Judged], files: Iterable[StateFile], job_id: Callable[[str], str]) -> set[str]:
    """Folders of one job id that hold files of the same area, if any file was found by its job's id alone."""
    if not any(j.moved for j in judged):
        return set()
    folders: dict[tuple[str, str], set[str]] = {}
    for file in files:
        folders.setdefault((job_id(file.owner), file.area), set()).add(file.owner)
    return {folder for copies in folders.values() if len(copies) > 1 for folder in copies}


def _fate(rule: str) -> Fate:
    if rule in ("restorable", "unchecked"):
        return "VALID"
    return "OBSOLETE" if rule in _LET_GO else "KEEP"


def _folders(
    rows: Sequence[RetentionRow], judged: Sequence[Judged], owners: Mapping[str, str], lost: Set[str]
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
        total["bytes"] += row.bytes
        if row.fate == "OBSOLETE":
            total["obsolete_files"] += 1
            total["obsolete_bytes"] += row.bytes
    for j in judged:
        if _standing(j, lost) in (None, "broken"):
            continue
        for path in _names(j):
            of = owners.get(path)
            if of is not None and of != j.folder.job:
                found[of]["needed_by"].add(j.folder.path or ".")
    return tuple({**total, "needed_by": sorted(total["needed_by"])} for _, total in sorted(found.items()))
