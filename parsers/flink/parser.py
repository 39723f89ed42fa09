"""Checkpoints and savepoints of Flink (1.3 to 2.3) on disk: folders, and where the files that they name are now.

    <root>/…/<job id, 32 hex>/chk-<n>/_metadata      and files of that checkpoint alone, named relative to it
    <root>/…/<job id>/shared/…                       files of incremental backends, named by absolute URI
    <root>/…/<job id>/taskowned/…                    files that the task managers own (changelog, merged files)
    <root>/…/<job id>/dstl/…                         segments of the changelog, often below another root
    <root>/…/savepoint-<6 hex>-<12 hex>/_metadata    and its files, all of them named relative to it

`_metadata` is written last: a chk-<n> without one is in progress or was left by a crash. PATH is one chk-<n>, a job's
folder, or a root with many. A stored absolute path is looked for where `--map` says, below PATH, and, since copies are
what people look at, in the folder below PATH that has the same job id.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, NamedTuple

from cklog.engine.scan import Split
from cklog.inputs.offers import Format, KindName
from cklog.inputs.snapshots import (
    SNAPSHOTS,
    Area,
    ContentCheck,
    FilePlace,
    LoggedCheckpoint,
    SnapshotFolder,
    StateFile,
    StateStretch,
)
from cklog.local_files import is_local
from cklog.model.findings import Finding, InputUsed
from cklog.parsers.flink.derived import operator_id
from cklog.parsers.flink.job_log import job_log, last_restore
from cklog.parsers.flink.metadata import LINKED, READER, TOGETHER
from cklog.storage import Root

MAGIC = bytes.fromhex("4960672d")
_METADATA = "_metadata"
_CHECKPOINT = re.compile(r"chk-([0-9]{1,18})")
_SAVEPOINT = re.compile(r"savepoint-([0-9a-f]{6})-[0-9a-f]{12}")
_JOB = re.compile(r"[0-9a-f]{32}")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_AREAS: dict[str, Area] = {"shared": "shared", "taskowned": "task-owned", "dstl": "changelog"}
_IN_JOB = re.compile(r"shared|taskowned|chk-[0-9]+")

_MOST_OF_A_NAME = 100
"""Files of one name that are looked at: the names are random, and two of one name are copies."""


class _StoredFolder(NamedTuple):
    """Where the files of a stored folder are now, with the sizes of the files there by path.

    `outside`: nobody knows where. `moved`: it was found by its job's id.
    """

    path: str
    sizes: dict[str, int]
    outside: bool
    moved: bool


class Flink(Format):
    """The snapshots below a folder, listed once; `places` finds the files that they name.

    `only` is the name of the one checkpoint that PATH is; the folder of its job is what is listed then.
    """

    name = "flink"
    kind: KindName = "snapshots"
    tables: ClassVar = {"snapshots": SNAPSHOTS}
    gathers = True

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether there is a `_metadata` of Flink's, or a job's folder with a chk-<n>."""
        entries, folders = root.tree()
        name = root.parent()[1]
        if any(_CHECKPOINT.fullmatch(posixpath.basename(f)) and _JOB.fullmatch(_name_above(f, name)) for f in folders):
            return True
        if _is_single_checkpoint(root):
            return True
        found = [e.path for e in entries if posixpath.basename(e.path) == _METADATA]
        return any(root.read(path, len(MAGIC)) == MAGIC for path in found[:8])

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold folders of jobs, or savepoints; where PATH is one of those, PATH itself."""
        if _is_single_checkpoint(root):
            return [""]
        entries, folders = root.tree()
        name = root.parent()[1]
        begun = [
            f for f in folders if _CHECKPOINT.fullmatch(posixpath.basename(f)) and _JOB.fullmatch(_name_above(f, name))
        ]
        jobs = {posixpath.dirname(posixpath.dirname(f)) for f in begun}
        known = set(begun)
        whole = [e.path for e in entries if posixpath.basename(e.path) == _METADATA]
        alone = [path for path in whole if posixpath.dirname(path) not in known]
        read = [path for path in alone if root.read(path, len(MAGIC)) == MAGIC]
        return sorted(jobs | {posixpath.dirname(posixpath.dirname(path)) for path in read})

    def __init__(self, root: Root) -> None:
        self.only: str | None = None
        if _is_single_checkpoint(root):
            root, self.only = root.parent()  # one checkpoint of a job: its shared files lie beside it
        self._root = root
        self._name = root.parent()[1]
        entries, self._folders = root.tree()
        self._sizes = {entry.path: entry.size for entry in entries}
        self._known = frozenset(self._folders)
        self._linked = {path for path in root.unfollowed() if posixpath.basename(path) == _METADATA}
        self._resolved: dict[tuple[str, str], _StoredFolder] = {}
        self._placed: dict[str, dict[str, FilePlace]] = {}
        self._mapped: dict[str, dict[str, int]] = {}

    @cached_property
    def snapshots(self) -> tuple[SnapshotFolder, ...]:
        """Every snapshot folder, with its metadata or without, sorted by path; `only` alone if PATH is that one."""
        found = [*(path for path in self._sizes if posixpath.basename(path) == _METADATA), *self._linked]
        complete = {posixpath.dirname(path) for path in found}
        begun = {f for f in self._folders if _CHECKPOINT.fullmatch(posixpath.basename(f))}
        begun = {f for f in begun if _JOB.fullmatch(_name_above(f, self._name))}
        held: dict[str, list[int]] = {}
        for path, size in self._sizes.items():
            held.setdefault(posixpath.dirname(path), []).append(size)
        return tuple(
            self._snapshot(path, path in complete, held.get(path, []))
            for path in sorted(complete | begun)
            if self.only in (None, path)
        )

    def _snapshot(self, path: str, complete: bool, sizes: list[int]) -> SnapshotFolder:
        """Describe the snapshot in folder `path`; `complete`: it has its metadata; `sizes` are those of its files."""
        name = posixpath.basename(path) or self._name
        number = _CHECKPOINT.fullmatch(name) if path else None
        metadata = posixpath.join(path, _METADATA) if complete else None
        return SnapshotFolder(
            path=path,
            job=posixpath.dirname(path) if number else path,
            number=int(number[1]) if number else None,
            savepoint=bool(_SAVEPOINT.fullmatch(name)),
            metadata=metadata,
            files=len(sizes),
            bytes=sum(sizes),
            written=None if metadata is None else self._root.written(metadata),
        )

    def job_id(self, job: str) -> str:
        """Return the name of a job's folder (its id), or of a savepoint's."""
        return posixpath.basename(job) or self._name

    def taken_from(self, folder: str) -> str | None:
        """Return the first six digits of the id of the job that a savepoint was taken of, by its name.

        None if the folder's name is no savepoint's.
        """
        found = _SAVEPOINT.fullmatch(self.job_id(folder))
        return found[1] if found else None

    def original(self, path: str) -> str:
        """Return what a folder below PATH is called where the job runs: by the maps, else by PATH as it was given."""
        root = self._root.path.partition("?")[0] if "://" in self._root.path else self._root.path
        here = posixpath.join(root, path) if path else root
        return self._root.original(here) or here

    def id_of_uid(self, uid: str) -> str:
        """Return the operator id that Flink makes of a uid."""
        return operator_id(uid)

    def job_log(self, path: str) -> list[LoggedCheckpoint]:
        """Read what a job manager's log says of checkpoints, as rows of `cklog.parsers.flink.job_log`."""
        return job_log(path)

    def last_restore(self, path: str) -> tuple[str, int, int | None] | None:
        """Read the last restore that a job manager's log tells of, and the newest checkpoint by then."""
        return last_restore(path)

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return nothing: no file is wrong as a whole before it is read."""
        return ()

    def bytes_of(self, table: str) -> int:
        """Return the size of all metadata files."""
        return sum(self._sizes.get(s.metadata, 0) for s in self.snapshots if s.metadata is not None)

    def splits(self, table: str, split_bytes: int) -> Iterator[Split]:
        """Yield one split per metadata file: they are small, and none can be read from its middle."""
        maps = self._root.maps_anywhere()
        for snapshot in self.snapshots:
            if snapshot.metadata is not None:
                path, size = snapshot.metadata, self._sizes.get(snapshot.metadata, 0)
                if path in self._linked:
                    yield Split(uri=self._root.uri(""), path=path, reader=LINKED, start=0, end=0, size=0)
                    continue
                uri = self._root.uri(path)
                follow = self._root.follow_links
                yield Split(
                    uri, path, READER, start=0, end=size, size=size, maps=maps, follow_links=follow, together=TOGETHER
                )

    def inputs(self, rows: int) -> tuple[InputUsed, ...]:
        """Return the metadata files as one row of the answer's inputs; `rows` is what they held together."""
        count = sum(s.metadata is not None for s in self.snapshots)
        return (InputUsed(f"{count} _metadata", self.name, self.bytes_of("snapshots"), rows),)

    def places(self, snapshot: str, stored: Sequence[str]) -> list[FilePlace]:
        """Find where the files are that the snapshot in folder `snapshot` names, in the order of `stored`."""
        known = self._placed.setdefault(posixpath.dirname(snapshot), {})  # checkpoints of one job name the same files
        return [known.get(file) or self._find_stored(snapshot, file, known) for file in stored]

    def beside(self, snapshot: str, stored: str) -> list[str]:
        """List the folder of a file with an absolute name that the snapshot in folder `snapshot` names."""
        if not _ABSOLUTE.match(stored):
            return []
        folder = self._folder_of(stored.rpartition("/")[0], posixpath.dirname(snapshot))
        inside = (path for path in folder.sizes if posixpath.dirname(path) == folder.path)
        return [] if folder.outside else [posixpath.basename(path) for path in inside]

    def _folder_of(self, above: str, job: str) -> _StoredFolder:
        key = (above, job)
        if key not in self._resolved:
            self._resolved[key] = self._find_folder(*key)
        return self._resolved[key]

    def _find_stored(self, snapshot: str, stored: str, known: dict[str, FilePlace]) -> FilePlace:
        """Find where a stored file is; remember one with an absolute name in `known`."""
        if not _ABSOLUTE.match(stored):
            path = posixpath.normpath(posixpath.join(snapshot, stored))
            if path == ".." or path.startswith("../"):
                return FilePlace(stored, None, outside=True)
            return FilePlace(path, self._sizes.get(path))
        above, _, name = stored.rpartition("/")
        folder = self._folder_of(above, posixpath.dirname(snapshot))
        path = posixpath.join(folder.path, name)
        place = FilePlace(path, folder.sizes.get(path), moved=folder.moved)
        known[stored] = FilePlace(stored, None, outside=True) if folder.outside else place
        return known[stored]

    def _find_folder(self, stored: str, job: str) -> _StoredFolder:
        """Find a stored folder by the maps, then below PATH, then in the folder of the same job.

        `job` is the folder of the snapshot's own job.
        """
        found = self._root.resolve(stored)
        if found is not None and "?" in stored and not is_local(found):
            found = None  # what follows would be options of a store, by a name that the input chose
        if found is not None:
            inside = self._root.inside(found)
            if inside is not None:
                return _StoredFolder(inside, self._sizes, outside=False, moved=False)
            return _StoredFolder(found, self._list_outside(found), outside=False, moved=False)
        moved = self._find_in_job(stored, job)
        if moved is None:
            return _StoredFolder(stored, self._sizes, outside=True, moved=True)
        return _StoredFolder(moved, self._sizes, outside=False, moved=True)

    def _list_outside(self, folder: str) -> dict[str, int]:
        """List the files of a folder outside PATH that a map leads to, with their sizes."""
        if folder not in self._mapped:
            entries = replace(self._root, path=folder, maps=()).list()
            self._mapped[folder] = {posixpath.join(folder, entry.path): entry.size for entry in entries}
        return self._mapped[folder]

    def _find_in_job(self, stored: str, own: str) -> str | None:
        """Find the folder below PATH that stands for a stored one: same job id, same way on from there.

        Of several copies of a job the snapshot's own (`own`) is taken. What is by layout in a job's folder is there or
        is missing; anything else (the changelog has a root of its own) may as well be where nobody looked: None.
        """
        parts = stored.split("/")
        at = next((i for i in range(len(parts) - 1, -1, -1) if _JOB.fullmatch(parts[i])), None)
        if at is None or any(part in ("", ".", "..") for part in parts[at:]):
            return None
        inner = "/".join(parts[at + 1 :])
        jobs = self._jobs.get(parts[at], [])
        there = [job for job in jobs if not inner or posixpath.join(job, inner) in self._known]
        if not there and at + 1 < len(parts) and _IN_JOB.fullmatch(parts[at + 1]):
            there = jobs
        if not there:
            return None
        best = max(there, key=lambda job: (job == own, _count_common_end(job.split("/")[:-1], parts[:at])))
        return posixpath.join(best, inner) if inner else best

    @cached_property
    def _jobs(self) -> dict[str, list[str]]:
        """The folders of each job id, sorted."""
        found: dict[str, list[str]] = {}
        for folder in ["", *self._folders]:
            name = posixpath.basename(folder) if folder else self._name
            if _JOB.fullmatch(name):
                found.setdefault(name, []).append(folder)
        return found

    def contents(self, stretches: Sequence[StateStretch], thorough: bool) -> list[ContentCheck]:
        """Look into stretches of files, several at once, in their order; `thorough`: at all that can be checked."""
        from cklog.parsers.flink.state_bytes import check_states  # of those who look at no file nothing need be loaded

        outside = {path for files in self._mapped.values() for path in files}
        return check_states([self._uri(one.path, outside) for one in stretches], stretches, thorough)

    def _uri(self, path: str, outside: set[str]) -> str:
        """Return the path or URI by which a file opens; `outside` are the paths that maps lead to."""
        return path if path in outside else self._root.uri(path)

    def named(self, name: str) -> list[FilePlace]:
        """List the files below PATH with this name, sorted by path; the first hundred."""
        return [FilePlace(path, self._sizes[path]) for path in self._by_name.get(name, [])[:_MOST_OF_A_NAME]]

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._sizes:
            found.setdefault(posixpath.basename(path), []).append(path)
        return found

    def state_files(self) -> list[StateFile]:
        """List every file that belongs to a job or a snapshot, sorted by path; other files are not Flink's."""
        owners = {s.path: s.job for s in self.snapshots}
        found = (self._state_file(path, size, owners) for path, size in self._sizes.items())
        return [file for file in found if file is not None]

    def _state_file(self, path: str, size: int, owners: dict[str, str]) -> StateFile | None:
        """Return a file as one of a job or snapshot, None if it is no such file; `owners` is the job by snapshot."""
        folder = posixpath.dirname(path)
        if folder in owners:
            return StateFile(path, size, owners[folder], "exclusive")
        parts = path.split("/")
        for at, part in enumerate(parts[:-1]):
            owner = "/".join(parts[:at])
            is_job = _JOB.fullmatch(parts[at - 1] if at else self._name)
            if is_job and part in _AREAS:
                return StateFile(path, size, owner, _AREAS[part])
        return None


def _is_single_checkpoint(root: Root) -> bool:
    """Return whether a folder is one checkpoint in the folder of its job, by their names."""
    above, name = root.parent()
    return bool(_CHECKPOINT.fullmatch(name) and _JOB.fullmatch(above.parent()[1]))


def _name_above(folder: str, root: str) -> str:
    """Return the name of the folder that holds a folder; `root` is the name of PATH."""
    return posixpath.basename(posixpath.dirname(folder)) or root


def _count_common_end(one: Iterable[str], other: Iterable[str]) -> int:
    """Count the parts that two paths have in common at their ends.

    >>> _count_common_end(["a", "x", "y"], ["b", "x", "y"])
    2
    """
    count = 0
    for left, right in zip(reversed([*one]), reversed([*other]), strict=False):
        if left != right:
            break
        count += 1
    return count
