"""Which jobs go on from which: by the files of others that their snapshots name, and by the names of savepoints.

A restored job gets a new id and a new folder and counts its checkpoints on. What it still needs of the old folder is
written in its snapshots; when it needs nothing any more, what both hold may show it (`generations`), or it stands for
itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cklog.inputs.offers import OffersSnapshots
from cklog.runs.snapshots.generations import restarts_of, split_by_program
from cklog.runs.snapshots.verdicts import JudgedSnapshot, Survey


class Candidates(NamedTuple):
    """The snapshots that a job may restart from, newest first: its own, its forebears', and savepoints of them.

    `job` is its folder; `forebears` the folders that it goes on from, `restarts` those of them that no file tells of,
    but what they hold. `own` of the candidates are its own or savepoints taken of it.
    """

    job: str
    forebears: tuple[str, ...]
    snapshots: tuple[JudgedSnapshot, ...]
    own: frozenset[str]
    restarts: tuple[str, ...] = ()


def owners_of(parser: OffersSnapshots) -> dict[str, str]:
    """Return the job's or savepoint's folder that each file belongs to."""
    return {file.path: file.owner for file in parser.state_files()}


def forebears_of(
    parser: OffersSnapshots, judged: Sequence[JudgedSnapshot], owners: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return the folders that each job, or savepoint, goes on from directly; copies of one job are no forebears."""
    jobs = {j.folder.job: parser.job_id(j.folder.job) for j in judged}
    parents: dict[str, set[str]] = {job: set() for job in jobs}
    for j in judged:
        missing = {flaw.path for flaw in j.flaws if not flaw.outside}
        named = {owners.get(path, "\0") for path in {*j.uses, *(path for f in j.flaws for path in f.found), *missing}}
        named |= {_owner_by_folder(folder, jobs) for folder in {posixpath.dirname(path) for path in missing}}
        prefix = parser.taken_from(j.folder.job) if j.folder.savepoint else None
        if prefix is not None:
            named |= {job for job, id in jobs.items() if len(id) == 32 and id.startswith(prefix)}
        parents[j.folder.job] |= {one for one in named if one in jobs and jobs[one] != jobs[j.folder.job]}
    return _without_cycles(parents, judged)


def _owner_by_folder(folder: str, jobs: Mapping[str, str]) -> str:
    """The innermost job that a folder is of or lies in, whether it is there or not."""
    parts = folder.split("/")
    above = ("/".join(parts[:count]) for count in range(len(parts), -1, -1))
    return next((one for one in above if one in jobs), "\0")


def _without_cycles(parents: dict[str, set[str]], judged: Sequence[JudgedSnapshot]) -> dict[str, set[str]]:
    """Folders that name files of each other, directly or not: the one with the older snapshots came first."""
    first: dict[str, int] = {}
    for j in judged:
        first[j.folder.job] = min(_number(j), first.get(j.folder.job, 1 << 63))
    order = {job: (first[job], job) for job in parents}
    above = {job: _closure(job, parents) for job in parents}
    return {job: {p for p in mine if job not in above[p] or order[p] < order[job]} for job, mine in parents.items()}


def candidates(
    parser: OffersSnapshots, survey: Survey, owners: Mapping[str, str], inferred: bool = True
) -> list[Candidates]:
    """Say what each job that no other goes on from may restart from; sorted by folder.

    A job that went on by itself after another had gone on from it stands for itself too. A savepoint stands for itself
    only if it belongs to no job here. `inferred`: jobs that are restarts by all that they hold count as such, too, and
    not only those that files or names tell of.
    """
    judged = survey.judged
    parents = forebears_of(parser, judged, owners)
    savepoints = {j.folder.job for j in judged if j.folder.number is None}
    own = {job: {job} | {s for s in savepoints if job in parents[s]} for job in parents if job not in savepoints}
    restarts = _added(restarts_of(survey, own), parents) if inferred else {}
    above = {job: _closure(job, parents) for job in own}
    fork, newest = _ends(judged, own)
    superseded = {old for job in above for old in above[job] if old in own and newest[old] <= fork[job]}
    superseded |= set(restarts.values())  # what it began after its last complete checkpoint was never completed
    found = []
    for job in sorted(set(above) - superseded):
        older = above[job] | {s for s in savepoints if parents[s] & above[job]}
        chosen = [j for j in judged if j.folder.job in own[job] or (j.folder.job in older and _number(j) <= fork[job])]
        told = tuple(sorted({restarts[one] for one in {job, *above[job]} if one in restarts}))
        found.append(_in_order(job, above[job], chosen, own[job])._replace(restarts=told))
    for job in savepoints - {j.folder.path for group in found for j in group.snapshots}:
        found.append(_in_order(job, _closure(job, parents), [j for j in judged if j.folder.job == job], {job}))
    return sorted(found, key=lambda group: group.job)


def programs_apart(survey: Survey, groups: Iterable[Candidates]) -> list[Candidates]:
    """Return jobs with the snapshots of each of their programs, where several have one id, as a job of its own."""
    return [
        group._replace(snapshots=tuple(its))
        for group in groups
        for its in split_by_program(survey, group.snapshots) or [list(group.snapshots)]
    ]


def _added(restarts: Mapping[str, str], parents: dict[str, set[str]]) -> dict[str, str]:
    """Add to the forebears of jobs what they are restarts of; return those that files do not tell of."""
    found: dict[str, str] = {}
    for job, old in restarts.items():
        if old not in _closure(job, parents) and job not in _closure(old, parents):
            parents[job].add(old)
            found[job] = old
    return found


def _ends(judged: Sequence[JudgedSnapshot], own: Mapping[str, set[str]]) -> tuple[dict[str, int], dict[str, int]]:
    """The number of each job's oldest snapshot, and of its newest, torn ones and savepoints taken of it included."""
    oldest: dict[str, int] = {}
    newest: dict[str, int] = {}
    for j in judged:
        oldest[j.folder.job] = min(_number(j), oldest.get(j.folder.job, 1 << 63))
        newest[j.folder.job] = max(_number(j), newest.get(j.folder.job, -1))
    return oldest, {job: max(newest.get(one, -1) for one in folders) for job, folders in own.items()}


def _in_order(job: str, above: set[str], chosen: list[JudgedSnapshot], own: set[str]) -> Candidates:
    chosen.sort(key=lambda j: (_number(j), not j.disputed, j.folder.job in own, j.folder.path), reverse=True)
    return Candidates(job, tuple(sorted(above)), tuple(chosen), frozenset(own))


def lost(parser: OffersSnapshots, judged: Sequence[JudgedSnapshot], owners: Mapping[str, str]) -> set[str]:
    """Return folders of jobs of whose checkpoints none can be restored, nor of a job that goes on from them; and
    savepoints.

    Such a folder stays as it is: what its broken checkpoints name tells which other one it can be restored from.
    """
    parents = forebears_of(parser, judged, owners)
    savepoints = {j.folder.job for j in judged if j.folder.number is None}
    whole = {j.folder.job for j in judged if j.verdict == "restorable"} - savepoints
    saved = whole | {old for job in whole for old in _closure(job, parents)}
    return set(parents) - (saved - savepoints)


def _number(judged: JudgedSnapshot) -> int:
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


def has_lost_metadata(group: Candidates) -> bool:
    """Return whether a job has begun several checkpoints, and none is complete.

    A job keeps the last complete one until the next one is, and removes those that fail: metadata are lost, as by a
    copy that left them out, or none ever was complete.
    """
    return len(group.snapshots) > 1 and all(j.verdict == "no-metadata" for j in group.snapshots)
