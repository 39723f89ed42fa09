"""What to do about an application with state stores: they restore themselves, but for those that would go wrong."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from cklog.inputs.partitions import UNREAD
from cklog.inputs.stores import StoreRestore, StoreTask
from cklog.model.actions import RunAction, action_of
from cklog.model.findings import Finding
from cklog.model.unchecked import Unchecked
from cklog.model.wording import first_few, many
from cklog.runs.stores.ranges import unchecked_stores

_BESIDE_LOGS = frozenset({"deleted-commit"})
"""Errors about an application that no store can mend."""


def is_unsure(findings: Iterable[Finding]) -> bool:
    """Return whether it is not known at which offset a store is, or what its changelog holds from there on."""
    return any(
        finding.id in UNREAD | {"unread-store"} or (finding.id == "missing-changelog" and finding.severity == "error")
        for finding in findings
    )


def run_action(
    application: str,
    every_task: Sequence[StoreTask],
    restores: Iterable[StoreRestore],
    findings: Sequence[Finding],
    doubtful: Collection[str] | None,
) -> RunAction:
    """Return what to do about one application: its stores resume by themselves, unless one would go wrong.

    A store that would is deleted, so that it is restored from its changelog; not if that is `doubtful`, one of the
    changelogs that are damaged, not read or not there. None: no logs are at hand.
    """
    tasks = {task.name: task for task in every_task if task.application == application}
    mine = [r for r in restores if r.task in tasks]
    changelogs = {r.changelog for r in mine}
    paths = {task.path for task in tasks.values()}
    about = [f for f in findings if f.subject in changelogs or any(_lies_in(f, path) for path in paths)]
    wrong = _wrong_folders(tasks, mine, about)
    kept = {folder for folder, its in wrong.items() if its & set(doubtful or ())}
    unsure = is_unsure(about) or (len(tasks) == len(every_task) and is_unsure(findings))
    nothing = bool(mine) and all(r.start == "beginning" for r in mine)
    lost = any(f.id == "store-below-log" for f in about)
    unchecked = unchecked_stores(application, mine)
    if wrong and doubtful is None:
        claim = "the changelogs hold all that the deleted stores held"
        unchecked.append(Unchecked("log", application, claim, "--kafka FOLDER"))
    return RunAction(
        run=application,
        action=action_of(unsure, nothing=nothing and not wrong, repair=bool(wrong)),
        path=posixpath.commonpath([posixpath.dirname(path) for path in paths]) or ".",
        newest=f"{many(len(mine), 'store')} of {many(len(tasks), 'task')}",
        chosen=None if nothing else f"{sum(r.start == 'checkpoint' for r in mine)} of {many(len(mine), 'store')}",
        command=_removal(sorted(wrong.keys() - kept)),
        note=_note(bool(wrong.keys() - kept), sorted(kept)),
        read_again=sum(r.records or 0 for r in mine),
        read_again_bytes=sum(r.bytes or 0 for r in mine),
        reads_more=any(r.records is None for r in mine),
        lost=None if lost or unsure or doubtful is None else 0,
        unchecked=tuple(unchecked),
    )


def _wrong_folders(
    tasks: Mapping[str, StoreTask], restores: Iterable[StoreRestore], about: Iterable[Finding]
) -> dict[str, set[str]]:
    """Return the folders that errors call for deleting, and the changelogs that each is restored from."""
    errors = [f for f in about if f.blocks and f.effect != "unknown" and f.id not in _BESIDE_LOGS]
    folders: dict[str, set[str]] = {}
    for r in restores:
        folders.setdefault(tasks[r.task].folder_of(r.store), set()).add(r.changelog)
    for task in tasks.values():
        if task.system == "kafka-streams":
            folders.setdefault(task.path, set())
    return {folder: its for folder, its in folders.items() if any(_lies_in(f, folder) for f in errors)}


def _lies_in(finding: Finding, folder: str) -> bool:
    """Return whether a finding speaks of a folder, or of a file in it."""
    places = (finding.subject, *(place.path for place in finding.where))
    begins = (f"{folder}/",) if folder != "." else ("./", ".checkpoint/", "rocksdb/")
    return any(f"{place}/".startswith(begins) for place in places)


def _removal(folders: Sequence[str]) -> str | None:
    if "." in folders:
        return "find . -mindepth 1 -delete"
    return f"rm -r -- {' '.join(shlex.quote('./' + folder) for folder in folders)}" if folders else None


def _note(removes: bool, kept: Sequence[str]) -> str:
    keep = f"keep {first_few(kept, 3)}: the changelog is damaged or was not read, and may not restore it"
    if not removes:
        return keep if kept else "start the instance again: it restores its stores by itself"
    restored = "below PATH, while the instance is down; it restores what was deleted from the changelogs"
    return f"{restored}. But {keep}" if kept else restored
