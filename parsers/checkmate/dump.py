"""What a dump of the CheckMate testbed holds, by its listing alone: units with their snapshots, and senders' logs.

A unit of checkpointing is an operator's part on one worker. Uncoordinated workers take the snapshots of all their
operators at one moment, so that one whose upload failed (the testbed drops the error) is seen to be missing; with
independent moments (communication-induced) nothing shows it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cklog.errors import NotFound, UsageError
from cklog.parsers.checkmate.names import (
    ROUND_BELOW,
    Deployment,
    SenderLog,
    Snapshot,
    deployment_of,
    log_of,
    snapshot_of,
)
from cklog.storage import FileEntry, Root


@dataclass(frozen=True, slots=True)
class Unit:
    """The snapshots of one operator on one worker, numbered from 1 in order; a missing one's number is left out."""

    worker: int
    operator: str
    snapshots: tuple[tuple[int, Snapshot], ...]

    @property
    def bytes(self) -> int:
        """Size of all snapshots of the unit."""
        return sum(snapshot.size for _, snapshot in self.snapshots)


@dataclass(frozen=True, slots=True)
class Missing:
    """A snapshot that should be there; `newest`: of the worker's last moment, when its upload may not have ended."""

    worker: int
    operator: str
    stamp: int
    newest: bool


@dataclass(frozen=True, slots=True)
class Dump:
    """A listing, put in order. `folder` holds the snapshot objects ("" is the root)."""

    folder: str
    units: tuple[Unit, ...]
    missing: tuple[Missing, ...]
    logs: tuple[SenderLog, ...]
    deployment: Deployment


def is_dump(entries: Iterable[FileEntry]) -> bool:
    """Return whether anything here is named as the testbed names things."""
    return any(snapshot_of(e.path, 0) or log_of(e.path, 0) or _is_in_store(e.path) for e in entries)


def folders_of(entries: Iterable[FileEntry]) -> list[str]:
    """The folders above those of snapshots and logs, by the names that the testbed gives to things."""
    objects = [e.path for e in entries if snapshot_of(e.path, 0) or log_of(e.path, 0)]
    stored = [posixpath.dirname(e.path) for e in entries if _is_in_store(e.path)]
    return sorted({posixpath.dirname(posixpath.dirname(path)) for path in [*objects, *stored]})


def dump_of(root: Root) -> Dump:
    """List the dump below a root and put it in order.

    Raises
    ------
    NotFound : the objects are in an object store's own layout
    UsageError : snapshots of several dumps
    """
    entries = root.list()
    snapshots = [s for s in (snapshot_of(e.path, e.size) for e in entries) if s]
    logs = tuple(log for log in (log_of(e.path, e.size) for e in entries) if log)
    if not snapshots and any(_is_in_store(e.path) for e in entries):
        message = f"{root.path}: the snapshots are in the object store's own files (xl.meta)"
        raise NotFound(message, "copy the bucket through its S3 interface, for example with `mc mirror`")
    folders = sorted({posixpath.dirname(s.path) for s in snapshots})
    if len(folders) > 1:
        message = f"{root.path}: snapshots in {len(folders)} folders, {folders[0] or '.'} and {folders[1]} among them"
        raise UsageError(message, "PATH is the folder of one run")
    missing = missing_of(snapshots)
    units = _number_units(snapshots, missing)
    deployment = deployment_of(snapshots, logs)
    return Dump(folder="".join(folders), units=units, missing=missing, logs=logs, deployment=deployment)


def _is_in_store(path: str) -> bool:
    """Return whether a file is a snapshot as an object store itself keeps it."""
    return posixpath.basename(path) == "xl.meta" and snapshot_of(posixpath.dirname(path), 0) is not None


def missing_of(snapshots: Iterable[Snapshot]) -> tuple[Missing, ...]:
    """Find snapshots that are missing from moments at which a worker took those of all its operators.

    A worker is taken to do so if at half of its moments at least all its operators have one.
    """
    moments: dict[int, dict[int, set[str]]] = {}
    for s in snapshots:
        if s.stamp >= ROUND_BELOW:
            moments.setdefault(s.worker, {}).setdefault(s.stamp, set()).add(s.operator)
    found = []
    for worker, taken in sorted(moments.items()):
        operators = set().union(*taken.values())
        whole = sum(there == operators for there in taken.values())
        if len(operators) > 1 and 2 * whole >= len(taken):
            for stamp, there in sorted(taken.items()):
                found += [Missing(worker, name, stamp, stamp == max(taken)) for name in sorted(operators - there)]
    return tuple(found)


def _number_units(snapshots: Sequence[Snapshot], missing: Iterable[Missing]) -> tuple[Unit, ...]:
    """Number the snapshots of each unit by their stamps, missing ones included."""
    stamps: dict[tuple[int, str], dict[int, Snapshot | None]] = {}
    for gone in missing:
        stamps.setdefault((gone.worker, gone.operator), {})[gone.stamp] = None
    for s in snapshots:
        stamps.setdefault((s.worker, s.operator), {})[s.stamp] = s
    units = []
    for (worker, operator), taken in sorted(stamps.items()):
        numbered = [(n, taken[stamp]) for n, stamp in enumerate(sorted(taken), 1)]
        units.append(Unit(worker, operator, tuple((n, s) for n, s in numbered if s is not None)))
    return tuple(units)
