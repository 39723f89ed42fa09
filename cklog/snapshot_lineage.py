"""Which jobs go on from which: by the files of others that their snapshots name, and by the names of savepoints.

A restored job gets a new id and a new folder and counts its checkpoints on. What it still needs of the old folder is
written in its snapshots; when it needs nothing any more, nothing tells whose heir it was, and it stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklog.snapshot_verdicts import Judged, Snapshots


@dataclass(frozen=True, slots=True)
class Candidates:
    """The snapshots that a job may restart from, newest first: its own, its forebears', and savepoints of them.

    `job` is its folder; `forebears` the folders that it goes on from. `own` of the candidates are its own or savepoints
    taken of it.
    """

    job: str
    forebears: tuple[str, ...]
    snapshots: tuple[Judged, ...]
    own: frozenset[str]


def owners_of(parser: Snapshots) -> dict[str, str]:
    """The job's or savepoint's folder that each file belongs to."""
    return {file.path: file.owner for file in parser.state_files()}


def forebears_of(parser: Snapshots, judged: Sequence[Judged], owners: Mapping[str, str]) -> dict[str, set[str]]:
    """Folders that each job, or savepoint, goes on from directly."""
    jobs = {j.folder.job: parser.job_id(j.folder.job) for j in judged}
    parents: dict[str, set[str]] = {job: set() for job in jobs}
    for j in judged:
        wanted = {*j.uses, *(path for flaw in j.flaws for path in flaw.found)}
        wanted |= {flaw.path for flaw in j.flaws if not flaw.outside}
        named = {owners[path] for path in wanted if path in owners}
        named |= {_owner_by_folder(flaw.path, jobs) for flaw in j.flaws if not flaw.outside}
        parents[j.folder.job] |= {owner for owner in named if owner in jobs} - {j.folder.job}
        prefix = parser.taken_from(j.folder.job) if j.folder.savepoint else None
        if prefix is not None:
            parents[j.folder.job] |= {job for job, id in jobs.items() if len(id) == 32 and id.startswith(prefix)}
    return _without_cycles(parents, judged)


def _owner_by_folder(path: str, jobs: Mapping[str, str]) -> str:
    """The longest job folder that a path lies in, whether its file is there or not."""
    inside = [job for job in jobs if not job or path.startswith(job + "/")]
    return max(inside, key=len, default="\0")


def _without_cycles(parents: dict[str, set[str]], judged: Sequence[Judged]) -> dict[str, set[str]]:
    """Two folders that name files of each other: the one with the older snapshots came first."""
    first: dict[str, int] = {}
    for j in judged:
        if j.id is not None:
            first[j.folder.job] = min(j.id, first.get(j.folder.job, j.id))
    order = {job: (first.get(job, 1 << 63), job) for job in parents}
    return {
        job: {p for p in mine if job not in parents.get(p, ()) or order[p] < order[job]}
        for job, mine in parents.items()
    }


def candidates(parser: Snapshots, judged: Sequence[Judged], owners: Mapping[str, str]) -> list[Candidates]:
    """What each job that nothing goes on from may restart from; sorted by folder.

    A savepoint stands for itself only if neither the job that it was taken of nor one that goes on from it is there.
    """
    parents = forebears_of(parser, judged, owners)
    savepoints = {j.folder.job for j in judged if j.folder.number is None}
    above = {job: _closure(job, parents) for job in parents}
    jobs = [job for job in parents if job not in savepoints]
    superseded = {old for job in jobs for old in above[job]}
    found = []
    for job in sorted(parents):
        if job in superseded or (job in savepoints and above[job]):
            continue
        taken = {s for s in savepoints if job in parents[s]}
        own = {job} | taken
        fork = min((_number(j) for j in judged if j.folder.job == job), default=1 << 63)
        chosen = [j for j in judged if j.folder.job in own or (j.folder.job in above[job] and _number(j) <= fork)]
        chosen.sort(key=lambda j: (_number(j), j.folder.job in own, j.folder.path), reverse=True)
        found.append(Candidates(job, tuple(sorted(above[job])), tuple(chosen), frozenset(own)))
    return found


def _number(judged: Judged) -> int:
    """A snapshot's number; one without any is older than all."""
    number = judged.folder.number if judged.id is None else judged.id
    return -1 if number is None else number


def _closure(job: str, parents: Mapping[str, set[str]]) -> set[str]:
    """Everything that a folder goes on from, directly or not."""
    found: set[str] = set()
    rest = [job]
    while rest:
        for parent in parents.get(rest.pop(), ()):
            if parent not in found and parent != job:
                found.add(parent)
                rest.append(parent)
    return found
