"""Can a snapshot be restored? What it names, held against what is there, folder by folder.

A checkpoint whose metadata is whole may still miss files: another job may have claimed and deleted them, or they never
were where the metadata says. So existence and size of every file decide, against one listing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine import Damage, Engine, Kernel, Reduce, Scan
from cklog.model import InputUsed
from cklog.snapshots import SNAPSHOTS, Place, SnapshotFolder, StateFile

Verdict = Literal[
    "restorable",
    "unchecked",
    "missing-state-file",
    "size-mismatch",
    "no-metadata",
    "corrupt",
    "unknown-version",
]

VERDICTS: Mapping[str, str] = {
    "restorable": "the metadata is whole, and every file that it names is there with its size",
    "unchecked": "the metadata is whole, but files that it names were not looked at",
    "missing-state-file": "files that it names are gone: a restore is accepted and then fails when tasks start",
    "size-mismatch": "files that it names have another size than was stored",
    "no-metadata": "no metadata: it was in progress, or torn, when the job stopped",
    "corrupt": "its metadata cannot be read to the end",
    "unknown-version": "its metadata has a version that cklog does not know",
}

WITH_PATH = pa.schema([*SNAPSHOTS, pa.field("_path", pa.string())])
_DAMAGED: Mapping[str, Verdict] = {"unknown-version": "unknown-version"}


class Snapshots(Protocol):
    """A parser of snapshots (`cklog.parsers.flink` is one)."""

    name: str
    only: str | None
    snapshots: tuple[SnapshotFolder, ...]

    def job_id(self, job: str) -> str: ...
    def original(self, path: str) -> str: ...
    def taken_from(self, folder: str) -> str | None: ...
    def bytes_of(self, table: str) -> int: ...
    def inputs(self, rows: int) -> tuple[InputUsed, ...]: ...
    def scan(
        self, table: str, columns: tuple[str, ...], kernel: Kernel, partial: pa.Schema, reduce: Reduce | None
    ) -> Scan: ...
    def place(self, snapshot: str, stored: str) -> Place: ...
    def named(self, name: str) -> list[Place]: ...
    def state_files(self) -> list[StateFile]: ...


@dataclass(frozen=True, slots=True)
class Flaw:
    """A file that keeps a snapshot from being restored, or (`outside`) that nobody looked at.

    `found`: files of that name and size elsewhere below PATH.
    """

    file: str
    path: str
    needed: int
    size: int | None
    outside: bool
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A snapshot and whether it can be restored.

    `id` is the checkpoint's number (by its metadata, else its folder's name), `kind` Checkpoint, Savepoint, …; `uri`
    where it lay when it was written; `files` how many it names, `bytes` of state in it, inlined or in files; `uses` the
    files below PATH that it names; `moved` how many were found by the job's id only; `backends` the uuids of keyed
    state; `damage` what is wrong with its metadata.
    """

    folder: SnapshotFolder
    verdict: Verdict
    id: int | None
    kind: str
    version: int | None
    uri: str | None
    files: int
    bytes: int
    uses: frozenset[str]
    flaws: tuple[Flaw, ...] = ()
    moved: int = 0
    backends: frozenset[str] = frozenset()
    damage: Damage | None = None

    @property
    def repairable(self) -> bool:
        """Whether it lacks nothing but files that are all found elsewhere."""
        return self.verdict == "missing-state-file" and all(flaw.found for flaw in self.flaws)

    @property
    def wanted(self) -> bool:
        """Whether it can be restored, may be for all that is known, or can be mended."""
        return self.verdict in ("restorable", "unchecked") or self.repairable


@dataclass(frozen=True, slots=True)
class Survey:
    """Every snapshot, judged, sorted by folder; `tables` their rows by folder, and all damage."""

    judged: tuple[Judged, ...]
    tables: Mapping[str, pa.Table]
    damage: tuple[Damage, ...]
    inputs: tuple[InputUsed, ...]


def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The kernel of a scan of snapshots: they are metadata, and every row goes to the driver."""
    return batch


def survey(parser: Snapshots, engine_for: Callable[[int], Engine], check_files: bool = True) -> Survey:
    """Read and judge every snapshot."""
    scan = parser.scan("snapshots", tuple(WITH_PATH.names), whole, WITH_PATH, None)
    scanned = engine_for(parser.bytes_of("snapshots")).run(scan)
    tables = _by_folder(scanned.table)
    damage = {posixpath.dirname(d.path): d for d in sorted(scanned.damage, key=lambda d: (d.path, d.offset or 0))}
    judged = tuple(
        _judge(parser, folder, tables.get(folder.path), damage.get(folder.path), check_files)
        for folder in parser.snapshots
    )
    return Survey(judged, tables, scanned.damage, parser.inputs(scanned.table.num_rows))


def _by_folder(table: pa.Table) -> dict[str, pa.Table]:
    """The rows of each metadata file, in its order, by its folder."""
    table = table.combine_chunks()
    path = table["_path"].combine_chunks()
    if isinstance(path, pa.ChunkedArray):
        path = pa.concat_arrays(path.chunks) if path.num_chunks else pa.array([], pa.string())
    encoded = path.cast(pa.string()).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if (np.diff(codes) < 0).any():  # else the files' rows lie one after the other already
        table = table.take(np.argsort(codes, kind="stable"))  # stable: rows of one file stay in order
    counts = {row["values"]: row["counts"] for row in pc.value_counts(encoded.indices).to_pylist()}
    found, start = {}, 0
    for i, name in enumerate(encoded.dictionary.to_pylist()):
        found[posixpath.dirname(name)] = table.slice(start, counts[i])
        start += counts[i]
    return found


_OF_HANDLES = ("entry", "name", "file", "start", "bytes", "at_least", "uid")


def _judge(
    parser: Snapshots, folder: SnapshotFolder, table: pa.Table | None, damage: Damage | None, check: bool
) -> Judged:
    if folder.metadata is None or damage is not None or table is None:
        verdict: Verdict = "no-metadata" if folder.metadata is None else "corrupt"
        if damage is not None:
            verdict = _DAMAGED.get(damage.id, "corrupt")
        kind = "Savepoint" if folder.savepoint else "Checkpoint"
        return Judged(folder, verdict, folder.number, kind, None, None, 0, 0, frozenset(), damage=damage)
    head = rows_of(table, "snapshot")[0]
    handles = table.select(_OF_HANDLES).filter(pc.equal(table["entry"], "handle"))
    named = _named_files(handles)
    uses, flaws, moved = {folder.metadata}, [], 0
    for one in named:
        place = parser.place(folder.path, one.file)
        moved += place.moved
        if place.size is not None:
            uses.add(place.path)
        if not check or place.size != one.end or one.end != one.low:
            flaws += _flaws(parser, one, place, check)
    return Judged(
        folder,
        _verdict(flaws),
        head["checkpoint"],
        head["name"] or ("Savepoint" if folder.savepoint else "Checkpoint"),
        head["version"],
        head["file"],
        len(named),
        _state_bytes(handles, named),
        frozenset(uses),
        tuple(flaws),
        moved,
        frozenset(pc.unique(handles["uid"].drop_null()).to_pylist()),
    )


def rows_of(table: pa.Table, entry: str) -> list[dict[str, Any]]:
    """The rows of one kind of entry."""
    found: list[dict[str, Any]] = table.filter(pc.equal(table["entry"], entry)).to_pylist()
    return found


_MOST = 1 << 61
"""Bytes of a file at the most, so that two numbers of a wrong file can be added."""


class _Named(NamedTuple):
    """A file that handles name, and the ends that they need: `end` the largest, `low` the smallest.

    `loose`: it may be longer.
    """

    file: str
    end: int
    low: int
    loose: bool


def _named_files(handles: pa.Table) -> list[_Named]:
    """Each file that handles name, sorted."""
    handles = handles.filter(pc.is_valid(handles["file"]))
    start, size = (pc.min_element_wise(pc.fill_null(handles[name], 0), _MOST) for name in ("start", "bytes"))
    end = pc.add(start, size)
    loose = pc.or_(pc.fill_null(handles["at_least"], False), pc.equal(handles["name"], "segment"))
    table = pa.table({"file": handles["file"], "end": end, "loose": loose})
    grouped = table.group_by("file", use_threads=False).aggregate([("end", "max"), ("end", "min"), ("loose", "max")])
    columns = (grouped[name].to_pylist() for name in ("file", "end_max", "end_min", "loose_max"))
    return sorted(map(_Named, *columns))


def _state_bytes(handles: pa.Table, named: Iterable[_Named]) -> int:
    """State inlined, and of files each part once, however many subtasks name it."""
    inlined = handles.filter(pc.is_null(handles["file"]))
    if handles["start"].null_count == len(handles):  # whole files
        return (pc.sum(inlined["bytes"]).as_py() or 0) + sum(one.end for one in named)
    stored = handles.filter(pc.is_valid(handles["file"]))
    parts = stored.group_by(["file", "start"], use_threads=False).aggregate([("bytes", "max")])
    return (pc.sum(inlined["bytes"]).as_py() or 0) + (pc.sum(parts["bytes_max"]).as_py() or 0)


def _flaws(parser: Snapshots, one: _Named, place: Place, check: bool) -> list[Flaw]:
    """What is wrong with a file, if anything is."""
    if not check:
        return [Flaw(one.file, place.path, one.end, None, True)]
    if place.outside or place.size is None:
        named = parser.named(posixpath.basename(place.path))
        found = tuple(p.path for p in named if _fits(p.size, one) and p.path != place.path)
        return [Flaw(one.file, place.path, one.end, None, place.outside, found)]
    needed = one.low if place.size == one.end else one.end
    return [] if _fits(place.size, one) else [Flaw(one.file, place.path, needed, place.size, False)]


def _fits(size: int | None, one: _Named) -> bool:
    """Whether a file of a size is what a snapshot names."""
    if size is None or one.loose:
        return size is not None and size >= one.end
    return size == one.end == one.low


def _verdict(flaws: Iterable[Flaw]) -> Verdict:
    flaws = list(flaws)
    if any(not f.outside and f.size is None for f in flaws):
        return "missing-state-file"
    if any(f.size is not None for f in flaws):
        return "size-mismatch"
    return "unchecked" if flaws else "restorable"
