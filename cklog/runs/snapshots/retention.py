"""What may be deleted below a root with many jobs (Flink), and what must stay, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from cklog.engine.reading import Reading
from cklog.errors import UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import StateFile
from cklog.model.verdict import Draft
from cklog.retention.plan import RetentionFate, RetentionPlan, RetentionRow, rules_of, totals_of
from cklog.retention.policy import RetentionPolicy
from cklog.runs.snapshots.findings import (
    dependencies,
    dependency_findings,
    later_state_findings,
    program_findings,
    snapshot_findings,
)
from cklog.runs.snapshots.kept import chosen_snapshots, mendable_snapshots, snapshot_pinned, times_told
from cklog.runs.snapshots.lineage import candidates, lost, programs_apart
from cklog.runs.snapshots.order import survey
from cklog.runs.snapshots.plan import newest_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot

RULES: Mapping[str, str] = {
    "restorable": "a snapshot that can be restored needs it",
    "keep": "one of the newest snapshots of its job that --keep asks for needs it",
    "window": "a snapshot taken within the time that --window asks for needs it",
    "no-time": "a snapshot needs it of which nothing tells when it was taken: it may be within --window",
    "pin": "a snapshot that --pin names needs it",
    "savepoint": "a savepoint, or a snapshot in no job's folder, needs it, and those are deleted by their owners only",
    "unchecked": "a snapshot of which not every file was looked at names it, or a file of its name and size",
    "repairable": "a snapshot that lacks files, all of which are found elsewhere, names it",
    "disputed": "a snapshot needs it whose number is contradicted, by its folder or what it read: it may be the newest",
    "broken": "only snapshots that cannot be restored name it, or would if they were mended",
    "torn": "its checkpoint has no metadata: in progress when the job stopped, or the metadata is lost",
    "older": "only snapshots name it that could be restored but that nothing asks to keep",
    "last": "only snapshots that cannot be restored name it, and nothing else of the job or savepoint can be",
    "unfinished": "no snapshot that stays names it, but a checkpoint in progress may",
    "task-owned": "no snapshot that stays names it, but running tasks may own it",
    "unreadable": "no snapshot that stays names it, but one that cannot be read or restored may",
    "other-jobs": "nothing below PATH needs it, but PATH is one job's folder: another job may",
    "copied-job": "a snapshot names a file of this name at another place; of its job there are several copies",
    "orphan": "no snapshot names it, and none can that is still to come",
}


@dataclass(frozen=True, slots=True)
class FileDoubt:
    """What may still need a file that nothing restorable names.

    `lost`: folders of savepoints, and of jobs of whose checkpoints none can be restored, nor of their heirs; `copied`:
    folders of jobs of which there are several, where files were found by a job's id alone; `mendable`: folders of
    snapshots that would stay if they could be restored; `jobs_stopped`: no job runs, so that nothing is in progress and
    no task owns a file; `drop_broken`: what cannot be restored may go.
    """

    lost: Set[str]
    copied: Set[str]
    mendable: Set[str]
    jobs_stopped: bool
    drop_broken: bool = False

    def gives_up(self, j: JudgedSnapshot) -> bool:
        """Return whether a snapshot that cannot be restored need not be mended: that was asked, and others can be."""
        return self.drop_broken and j.verdict in _BROKEN and j.folder.job not in self.lost


_WHOLE = ("restorable", "unchecked")
_BROKEN = (
    *("missing-state-file", "size-mismatch", "corrupt-state-file", "sink-file-missing", "no-metadata", "corrupt"),
)
"""Verdicts that `--drop-broken` gives up; what has a version that is not known, or was not read, is not broken."""

_ILLEGIBLE = ("corrupt", "unread", "unknown-version")
"""Verdicts of metadata that may name any file."""


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
    standing = {j.folder.path: _standing(j, doubt, chosen) for j in judged}
    named = _named_by(judged, standing)
    holding = _Holding(judged, owners, doubt)
    rows = []
    for file in sorted(files, key=lambda f: f.path):
        rule, by = named.get(file.path) or (holding.in_folder(file), None)
        if _fate(rule, doubt) == "OBSOLETE":
            rule = holding.because(file) or rule
        rows.append(RetentionRow(path=file.path, bytes=file.bytes, fate=_fate(rule, doubt), rule=rule, needed_by=by))
    folders = _folders(rows, judged, owners, standing, doubt)
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


_LET_GO = ("older", "orphan")
_GIVEN_UP = ("broken", "torn")
"""Rules of what stays unless `--drop-broken` asks."""

_ASKED = ("keep", "window", "no-time", "pin", "disputed", "savepoint")
_STRENGTH = ("restorable", "unchecked", *_ASKED, "repairable", "last", "broken", "older")


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
    return {*j.uses, *(path for flaw in j.flaws for path in flaw.found)}


def _standing(j: JudgedSnapshot, doubt: FileDoubt, chosen: Mapping[str, str]) -> str | None:
    """The rule under which a snapshot's files stand; None: its metadata names nothing that can be read."""
    if j.folder.path in chosen:
        return chosen[j.folder.path]
    if j.verdict in _WHOLE:
        return j.verdict
    if j.repairable:
        return "repairable"
    if j.verdict in (*_ILLEGIBLE, "no-metadata"):
        return None
    return "last" if j.folder.job in doubt.lost else "broken"


class _Holding:
    """Why a file stays that nothing restorable names, if there is a reason.

    Metadata has no checksum: what cannot be restored may name a file whose name is damaged in it, as what cannot be
    read may name any. A checkpoint names files of its own folder, files that checkpoints of its job share, and files of
    jobs and savepoints that its job goes on from: those that other checkpoints of the job name, any if none can be
    read. It names no file of another checkpoint's folder of its own job, and a savepoint none but its own.
    """

    def __init__(self, judged: Sequence[JudgedSnapshot], owners: Mapping[str, str], doubt: FileDoubt) -> None:
        self._doubt = doubt
        self._torn = {j.folder.path: j for j in judged if j.verdict == "no-metadata"}
        self._unfinished = _unfinished(judged)
        named: dict[str, set[str]] = {}
        for j in judged:
            if j.uses:
                named.setdefault(j.folder.job, set()).update(owners[path] for path in _names(j) if path in owners)
        broken = [j for j in judged if not j.has_state and not doubt.gives_up(j)]
        wanting = [j for j in broken if j.folder.path in doubt.mendable]
        jobs = {j.folder.job for j in wanting if not j.folder.savepoint}
        self._illegible = any(j.verdict in _ILLEGIBLE for j in broken)
        self._own = {j.folder.path for j in broken}
        self._jobs = {j.folder.job for j in wanting}
        self._others = set().union(*(named.get(job, set()) - {job} for job in jobs))
        self._unknown = {job for job in jobs if job not in named}
        self._sizes = {flaw.needed for j in wanting for flaw in j.flaws if flaw.size is None}

    def in_folder(self, file: StateFile) -> str:
        """Return the rule of a file that no snapshot names: by the folder that it lies in."""
        torn = self._torn.get(_folder_of(file)) if file.area == "exclusive" else None
        if torn is None:
            return "orphan"
        if torn.folder.path in self._unfinished and not self._doubt.jobs_stopped:
            return "unfinished"
        return "last" if torn.folder.job in self._doubt.lost else "torn"

    def because(self, file: StateFile) -> str | None:
        folder = _folder_of(file)
        if not file.owner and not (file.area == "exclusive" and folder in self._torn):
            return "other-jobs"
        if file.owner in self._doubt.copied:
            return "copied-job"
        if not self._doubt.jobs_stopped:
            if file.area in ("task-owned", "changelog"):
                return "task-owned"
            if file.area == "shared" or folder in self._unfinished:
                return "unfinished"
        return "unreadable" if self._may_be_named(file) else None

    def _may_be_named(self, file: StateFile) -> bool:
        """Whether a snapshot that stays, and cannot be restored, may name a file; of metadata that is illegible any."""
        if self._illegible:
            return True
        if file.area == "exclusive" and _folder_of(file) in self._own:
            return True
        if file.owner in self._jobs and file.area != "exclusive":
            return True
        return file.owner in self._others or bool(self._unknown - {file.owner}) or file.bytes in self._sizes


def _folder_of(file: StateFile) -> str:
    return file.path.rpartition("/")[0]


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


def copied_jobs(judged: Sequence[JudgedSnapshot], files: Iterable[StateFile], job_id: Callable[[str], str]) -> set[str]:
    """Return folders of one job id that hold files of the same area, if any file was found by its job's id alone."""
    if not any(j.moved for j in judged):
        return set()
    folders: dict[tuple[str, str], set[str]] = {}
    for file in files:
        folders.setdefault((job_id(file.owner), file.area), set()).add(file.owner)
    return {folder for copies in folders.values() if len(copies) > 1 for folder in copies}


def _fate(rule: str | None, doubt: FileDoubt) -> RetentionFate:
    if rule in _WHOLE:
        return "VALID"
    return "OBSOLETE" if rule in _LET_GO or (doubt.drop_broken and rule in _GIVEN_UP) else "KEEP"


def _folders(
    rows: Sequence[RetentionRow],
    judged: Sequence[JudgedSnapshot],
    owners: Mapping[str, str],
    standing: Mapping[str, str | None],
    doubt: FileDoubt,
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
        rule = standing[j.folder.path]
        if rule is None or _fate(rule, doubt) == "OBSOLETE":
            continue
        for path in _names(j):
            of = owners.get(path)
            if of is not None and of != j.folder.job:
                found[of]["needed_by"].add(j.folder.path or ".")
    return tuple({**total, "needed_by": sorted(total["needed_by"])} for _, total in sorted(found.items()))


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
    pinned = [snapshot_pinned(parser, found.judged, groups, text) for text in policy.pins]
    times = times_told(parser, found.judged, policy)
    apart = programs_apart(found, groups)
    chosen = chosen_snapshots(found.judged, apart, policy, pinned, times)
    doubt = FileDoubt(
        lost=lost(parser, found.judged, owners),
        copied=copied,
        mendable=mendable_snapshots(found.judged, apart, policy, pinned, times),
        jobs_stopped=policy.jobs_stopped,
        drop_broken=policy.drop_broken,
    )
    plan = plan_retention(found.judged, files, owners, doubt, chosen)
    newest = {g.job: newest_of(g) for g in groups}
    findings = [*snapshot_findings(found, newest, groups), *later_state_findings(found, newest.values())]
    findings += program_findings(parser, found, groups, {group.job for group in groups})
    findings += dependency_findings(dependencies(found.judged, owners, parser.job_id))
    return Draft("retention", plan, findings, found.inputs)
