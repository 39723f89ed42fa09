"""Which job is a restart of which, where no name and no file says so: what the last and the first snapshot hold does.

A job that is restored with NO_CLAIM names no file of the old one after its first checkpoint. It has the same operators,
counts its checkpoints on, and its sources go on where they were. Any one of these alone proves nothing: jobs of one
program that run side by side have the same operators. So all are asked for, in one folder of jobs; and where keyed
state has kept its parallelism, the backends' uuids, which a restore keeps and a new start does not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import holds, true_rows
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot, Survey

_Split = tuple[str, str, str]
"""Operator, name and cluster of a source's split."""


class _Held(NamedTuple):
    """What a snapshot holds: `operators` with their parallelism, of each split the lowest and the highest offset that
    a reader has and whether it has an end, of each subtask with keyed state the backends' uuids.
    """

    operators: Mapping[str, int]
    splits: Mapping[_Split, tuple[int, int, bool]]
    backends: Mapping[tuple[str, int], AbstractSet[str]]


class _Generation(NamedTuple):
    """A job: the smallest and the largest number of its snapshots that were completed, and what those hold."""

    job: str
    first: int
    last: int
    begins: _Held
    ends: _Held


def restarts_of(survey: Survey, own: Mapping[str, AbstractSet[str]]) -> dict[str, str]:
    """Return for each job the one that it was restarted from, where that can be shown; `own` are the folders of each.

    Of several the one with the newest snapshots is told.
    """
    found: dict[str, str] = {}
    if len(own) < 2:
        return found
    for jobs in _alike(_generation(survey, job, folders) for job, folders in own.items()):
        jobs.sort(key=lambda one: (-one.last, one.job))
        for heir in jobs:
            old = next((one for one in jobs if one.last < heir.first and _goes_on(one.ends, heir.begins)), None)
            if old is not None:
                found[heir.job] = old.job
    return found


def programs(survey: Survey, chosen: Iterable[JudgedSnapshot]) -> list[list[JudgedSnapshot]]:
    """Return snapshots of different jobs that have the same operators, program by program; not those that are alone."""
    found: dict[frozenset[str], list[JudgedSnapshot]] = {}
    for j in chosen:
        operators = frozenset(row["operator"] for row in rows_of(survey.tables[j.folder.path], "operator"))
        found.setdefault(operators, []).append(j)
    return [jobs for operators, jobs in found.items() if operators and len(jobs) > 1]


def split_by_program(survey: Survey, snapshots: Sequence[JudgedSnapshot]) -> list[list[JudgedSnapshot]]:
    """Return snapshots of one job's id program by program: those of one have operators in common, and read one topic.

    In application mode with high availability every job has the same id, so that several programs may write to one
    folder. What could not be read is of any of them.
    """
    held = _programs_held(survey, snapshots)
    found: list[tuple[set[str], set[str], set[str]]] = []  # operators, topics and folders of each program
    for folder, (operators, topics) in held.items():
        mine = [one for one in found if operators & one[0] and (topics & one[1] or not (topics and one[1]))]
        if not mine:
            found.append((operators, topics, {folder}))
            continue
        found = [one for one in found if not any(one is other for other in mine[1:])]
        for all_of, more in zip(mine[0], (operators, topics, {folder}), strict=True):
            all_of |= more
        for other in mine[1:]:
            for all_of, more in zip(mine[0], other, strict=True):
                all_of |= more
    return [[j for j in snapshots if j.folder.path in folders or j.folder.path not in held] for _, _, folders in found]


def _programs_held(survey: Survey, snapshots: Iterable[JudgedSnapshot]) -> dict[str, tuple[set[str], set[str]]]:
    """Return the operators of each snapshot that can be read, and the topics of Kafka that it reads, by its folder."""
    columns = ["_path", "entry", "operator", "name", "kind"]
    tables = [survey.tables[j.folder.path].select(columns) for j in snapshots if j.folder.path in survey.tables]
    found: dict[str, tuple[set[str], set[str]]] = {}
    if len(tables) < 2:
        return found
    table = pa.concat_tables(tables)
    wanted = pc.or_kleene(pc.equal(table["entry"], "operator"), pc.equal(table["kind"], "kafka"))
    for path, entry, operator, name, _ in zip(*(table.filter(wanted)[c].to_pylist() for c in columns), strict=True):
        operators, topics = found.setdefault(posixpath.dirname(path), (set(), set()))
        if entry == "operator":
            operators.add(operator)
        elif entry == "source":
            topics.add(_topic(name))
    return {folder: its for folder, its in found.items() if its[0]}


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


def _alike(jobs: Iterable[_Generation | None]) -> list[list[_Generation]]:
    """Jobs by the folder that they lie in and their operators."""
    found: dict[tuple[str, frozenset[str]], list[_Generation]] = {}
    for job in jobs:
        if job is not None and job.ends.operators:
            found.setdefault((posixpath.dirname(job.job), frozenset(job.ends.operators)), []).append(job)
    return list(found.values())


def _generation(survey: Survey, job: str, folders: AbstractSet[str]) -> _Generation | None:
    """A job as it began and ended; None if nothing of it can be read.

    Numbers are of all that was completed, readable or not, and savepoints; where folder and metadata disagree, both.
    """
    completed = [j for j in survey.judged if j.folder.job in folders and j.folder.metadata is not None and j.numbers]
    readable = sorted(
        (j for j in completed if j.folder.job == job and j.folder.path in survey.tables), key=lambda j: j.id or 0
    )
    if not readable:
        return None
    begins = _held(survey, readable[0])
    return _Generation(
        job=job,
        first=min(min(j.numbers) for j in completed),
        last=max(max(j.numbers) for j in completed),
        begins=begins,
        ends=begins if len(readable) == 1 else _held(survey, readable[-1]),
    )


def _held(survey: Survey, judged: JudgedSnapshot) -> _Held:
    table = survey.tables[judged.folder.path]
    splits: dict[_Split, tuple[int, int, bool]] = {}
    for row in rows_of(table, "source"):
        if row["offset"] is None:
            continue
        key = (row["operator"], row["name"], row["detail"] or "")
        low, high, _ = splits.get(key, (row["offset"], row["offset"], False))
        splits[key] = (min(low, row["offset"]), max(high, row["offset"]), row["stop"] is not None)
    backends: dict[tuple[str, int], set[str]] = {}
    rows = np.flatnonzero(holds(table["entry"], "handle") & true_rows(pc.is_valid(table["uid"])))
    held = (table[name].take(pa.array(rows)).to_pylist() for name in ("operator", "subtask", "uid"))
    for operator, subtask, uid in set(zip(*held, strict=True)):
        backends.setdefault((operator, subtask), set()).add(uid)
    operators = {row["operator"]: row["parallelism"] for row in rows_of(table, "operator")}
    return _Held(operators, splits, backends)


def _goes_on(old: _Held, new: _Held) -> bool:
    """Whether what one snapshot holds can have come of another one, and some source shows it."""
    return old.operators.keys() == new.operators.keys() and _offsets_go_on(old, new) and _backends_go_on(old, new)


def _offsets_go_on(old: _Held, new: _Held) -> bool:
    """Whether no split went back or is lost, and at least one is known; a split with an end may be done."""
    shown = False
    for key, (_, high, ends) in old.splits.items():
        if high < 0:  # a marker: nothing was read of it yet
            continue
        if key not in new.splits:
            if not ends:
                return False
            continue
        if new.splits[key][0] < high:
            return False
        shown = True
    return shown


def _backends_go_on(old: _Held, new: _Held) -> bool:
    """Whether subtasks of operators with an unchanged parallelism have kept their backends' uuids."""
    same = {operator for operator, count in old.operators.items() if new.operators[operator] == count}
    both = [key for key in old.backends.keys() & new.backends.keys() if key[0] in same]
    return all(old.backends[key] & new.backends[key] for key in both)
