"""What to do about an application with state stores: they restore themselves, but for those that would go wrong."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from cklog.inputs.partitions import UNREAD
from cklog.inputs.stores import StoreRestore, StoreTask
from cklog.model.about import Beginnings
from cklog.model.actions import RunAction, action_of
from cklog.model.findings import Finding
from cklog.model.unchecked import Unchecked
from cklog.model.wording import agreeing, first_few, many
from cklog.runs.stores.ranges import begins_late, unchecked_stores


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
    sound: Collection[str] | None,
) -> RunAction:
    """Return what to do about one application: its stores resume by themselves, unless one would go wrong.

    A store that would is deleted, so that it is restored from its changelog; only if that is `sound`, one of the
    changelogs that were read and lack nothing. None: no logs are at hand.
    """
    tasks = {task.name: task for task in every_task if task.application == application}
    mine = [r for r in restores if r.task in tasks]
    changelogs = {r.changelog for r in mine}
    paths = _Folders(task.path for task in tasks.values())
    about = [f for f in findings if f.subject in changelogs or paths.of(f)]
    wrong = _wrong_folders(tasks, mine, about)
    kept = sorted(folder for folder, its in wrong.items() if not its or not its <= set(sound or ()))
    removed = sorted(wrong.keys() - {*kept})
    unsure = is_unsure(about) or (len(tasks) == len(every_task) and is_unsure(findings))
    nothing = bool(mine) and all(r.start == "beginning" for r in mine)
    late = [r for r in mine if begins_late(r)]
    restored = {r.changelog for r in mine if r.start == "beginning"} <= set(sound or ())
    unchecked = unchecked_stores(application, mine)
    if mine and sound is None:
        claim = f"the changelogs hold all that {many(len(mine), 'store')} {agreeing(len(mine), 'restore')} from them"
        unchecked.append(Unchecked("log", application, claim, "--kafka FOLDER"))
    return RunAction(
        run=application,
        action=action_of(unsure, nothing=nothing and not wrong, repair=bool(wrong), older=bool(late)),
        path=posixpath.commonpath([posixpath.dirname(task.path) for task in tasks.values()]) or ".",
        newest=f"{many(len(mine), 'store')} of {many(len(tasks), 'task')}",
        chosen=None if nothing else f"{sum(r.start == 'checkpoint' for r in mine)} of {many(len(mine), 'store')}",
        command=_removal(removed),
        note=None if unsure else _note(bool(removed), kept, sound is None) + _late_note(late),
        read_again=sum(r.records or 0 for r in mine),
        read_again_bytes=sum(r.bytes or 0 for r in mine),
        reads_more=any(r.records is None for r in mine),
        lost=0 if restored and not unsure and not unchecked and sound is not None else None,
        unchecked=tuple(unchecked),
    )


def _wrong_folders(
    tasks: Mapping[str, StoreTask], restores: Iterable[StoreRestore], about: Iterable[Finding]
) -> dict[str, set[str]]:
    """Return the folders that errors call for deleting, and the changelogs that each is restored from.

    No changelog: it is not known of each store in the folder which one that is.
    """
    named: dict[str, set[str]] = {}
    stores: dict[str, int] = {}
    for task in tasks.values():
        for store, _ in task.stores:
            folder = task.folder_of(store)
            stores[folder] = stores.get(folder, 0) + 1
        if task.system == "kafka-streams":
            stores.setdefault(task.path, 0)
    for r in restores:
        named.setdefault(tasks[r.task].folder_of(r.store), set()).add(r.changelog)
    folders = _Folders(stores.keys() | named.keys())
    errors = [f for f in about if f.blocks and f.effect != "unknown"]
    wrong = {folder for f in errors for folder in folders.of(f)}
    return {folder: its if len(its := named.get(folder, set())) >= stores.get(folder, 0) else set() for folder in wrong}


class _Folders:
    """Folders, and which of them findings speak of by the files that they name."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = {*folders}
        self._beginnings = Beginnings(self._folders, "/")

    def of(self, finding: Finding) -> set[str]:
        """Return the folders in which a place of a finding lies; a subject may be text that a file holds."""
        places = [place.path for place in finding.where] or [finding.subject]
        found = {folder for place in places for folder in self._beginnings.of(place)}
        inside = any(place == _CHECKPOINT or place.startswith("rocksdb/") for place in places)
        return found | {"."} if inside and "." in self._folders else found


_CHECKPOINT = ".checkpoint"


def _late_note(late: Sequence[StoreRestore]) -> str:
    """Name the stores that cannot be restored as a whole, and since which offset their changelogs have records."""
    if not late:
        return ""
    named = first_few([f"{r.store or r.changelog} of {r.task} (before offset {r.restore_from})" for r in late], 3)
    return f". What only the deleted records of changelogs had cannot be restored: {named}"


def _removal(folders: Sequence[str]) -> str | None:
    if "." in folders:  # names, which do no harm in a wrong working directory
        return f"rm -rf -- ./{_CHECKPOINT} ./rocksdb"
    return f"rm -r -- {' '.join(shlex.quote('./' + folder) for folder in folders)}" if folders else None


def _note(removes: bool, kept: Sequence[str], unseen: bool) -> str:
    if not removes and not kept:
        return "start the instance again: it restores its stores by itself"
    why = "its changelog was not looked at (--kafka FOLDER)" if unseen else "its changelog may not restore it"
    keep = f"keep {first_few(kept, 3)}: {why}"
    if not removes:
        return keep
    restored = "below PATH, while the instance is down; it restores what was deleted from the changelogs"
    return f"{restored}. But {keep}" if kept else restored
