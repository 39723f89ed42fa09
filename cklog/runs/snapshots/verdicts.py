"""Can a snapshot be restored? What it names, held against what is there, folder by folder.

A checkpoint whose metadata is whole may still miss files: another job may have claimed and deleted them, or they never
were where the metadata says. So existence and size of every file decide, against one listing.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes
from cklog.arrays.types import Ints, Mask
from cklog.engine.reading import Reading
from cklog.engine.scan import Damage, Scan
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.partitions import UNREAD
from cklog.inputs.snapshots import SNAPSHOTS, ContentCheck, FilePlace, SnapshotFolder
from cklog.local_files import os_name, without_file_scheme
from cklog.model.findings import InputUsed
from cklog.progress import stage
from cklog.runs.snapshots.contents import ExaminedState
from cklog.runs.snapshots.heads import SnapshotHead, heads_of
from cklog.runs.snapshots.waiting import waiting_in

SnapshotVerdict = Literal[
    "restorable",
    "unchecked",
    "missing-state-file",
    "size-mismatch",
    "corrupt-state-file",
    "sink-file-missing",
    "no-metadata",
    "corrupt",
    "unread",
    "unknown-version",
]

VERDICTS: Mapping[str, str] = {
    "restorable": "the metadata is whole, and every file that it names is there, of its size, sound where looked at",
    "unchecked": "the metadata is whole, but files that it names were not looked at",
    "missing-state-file": "files that it names are gone: a restore is accepted and then fails when tasks start",
    "size-mismatch": "files that it names have another size than was stored",
    "corrupt-state-file": "files that it names are damaged, at their right size: a restore, or the job after it, fails",
    "sink-file-missing": "files of its sinks are gone or too short, and a restore fails on them",
    "no-metadata": "no metadata: it was in progress, or torn, when the job stopped",
    "corrupt": "its metadata cannot be read to the end, or contradicts itself",
    "unread": "its metadata may not be read, was refused, or is over a budget: nothing is known of it",
    "unknown-version": "its metadata, or a file that it names, has a version that cklog does not know",
}

NOT_READ: tuple[SnapshotVerdict, ...] = ("unread", "unknown-version")
"""Verdicts of snapshots that may well be whole: nothing is known of them."""

UNKNOWN_KIND = "Snapshot"
"""What is called neither checkpoint nor savepoint: metadata before version 4 does not say."""

WITH_PATH = pa.schema([*SNAPSHOTS, pa.field("_path", pa.string())])
_DAMAGED: Mapping[str, SnapshotVerdict] = {**dict.fromkeys(UNREAD, "unread"), "unknown-version": "unknown-version"}
"""What is no damage of the metadata; all else is."""


class SnapshotFlaw(NamedTuple):
    """A file that keeps a snapshot from being restored, or (`outside`) that nobody looked at.

    `found`: files of that name and size elsewhere below PATH. Of one with the right size `why` it is damaged, from byte
    `at` on; or `unread`, why nothing is known of what it holds; or `unknown`, which version in it is not known.
    `sink`: the sink that needs it, "" for a file of state.
    """

    file: str
    path: str
    needed: int
    size: int | None
    outside: bool
    found: tuple[str, ...] = ()
    why: str = ""
    at: int | None = None
    unread: str = ""
    unknown: str = ""
    sink: str = ""


class JudgedSnapshot(NamedTuple):
    """A snapshot and whether it can be restored.

    `numbers` are the checkpoint's by its folder's name and by its metadata, as far as these say, `id` the smaller one:
    a flipped bit or a renamed folder makes no old checkpoint the newest. Where the folder has none, and what the
    snapshot at `order` has read shows that the metadata's cannot be, the second is the smallest that can. `kind`
    Checkpoint, Savepoint, …, or Snapshot where nothing says; `uri` where it lay when it was written; `files` how many
    it names, `bytes` of state in it, inlined or in files; `uses` the files below PATH that it names; `moved` how many
    were found by the job's id only, 1 for a checkpoint that names none and was written elsewhere; `backends` the uuids
    of keyed state; `damage` what is wrong with its metadata.
    """

    folder: SnapshotFolder
    verdict: SnapshotVerdict
    id: int | None
    kind: str
    version: int | None
    uri: str | None
    files: int
    bytes: int
    uses: frozenset[str]
    flaws: tuple[SnapshotFlaw, ...] = ()
    moved: int = 0
    backends: frozenset[str] = frozenset()
    damage: Damage | None = None
    numbers: tuple[int, ...] = ()
    order: str = ""

    @property
    def disputed(self) -> bool:
        """Whether its folder's name, or what it has read, says another number than its metadata: one is wrong."""
        return len(set(self.numbers)) > 1

    @property
    def repairable(self) -> bool:
        """Whether it lacks nothing but files that are all found elsewhere."""
        return self.verdict == "missing-state-file" and all(flaw.found for flaw in self.flaws)

    @property
    def has_state(self) -> bool:
        """Whether its state is whole, for all that is known, though a sink may lack files."""
        return self.verdict in ("restorable", "unchecked", "sink-file-missing")

    @property
    def wanted(self) -> bool:
        """Whether it can be restored, may be for all that is known, or can be mended."""
        return self.verdict in ("restorable", "unchecked") or self.repairable


class Survey(NamedTuple):
    """Every snapshot, judged, sorted by folder; `tables` their rows by folder, and all damage.

    `contents` says how far state files were looked into; None: not at all.
    """

    judged: tuple[JudgedSnapshot, ...]
    tables: Mapping[str, pa.Table]
    damage: tuple[Damage, ...]
    inputs: tuple[InputUsed, ...]
    contents: ExaminedState | None = None


def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the kernel of a scan of snapshots: they are metadata, and every row goes to the driver."""
    return batch


def judge_snapshots(parser: OffersSnapshots, reading: Reading, check_files: bool, check_contents: bool) -> Survey:
    """Read every snapshot and judge it by itself; `check_contents`: by every byte of its state files."""
    splits = tuple(parser.splits("snapshots", reading.split_bytes))
    columns = tuple(WITH_PATH.names)
    scan = Scan(splits=splits, table="snapshots", columns=columns, kernel=whole, partial=WITH_PATH, reduce=None)
    scanned = reading.engine_for(parser.bytes_of("snapshots")).run(scan)
    table, folders = _in_order(scanned.table)
    tables = {name: table.slice(a, b - a) for name, a, b in folders}
    named, heads = _named_files(table, folders), heads_of(table, folders)
    damage = {posixpath.dirname(d.path): d for d in sorted(scanned.damage, key=lambda d: (d.path, d.offset or 0))}
    contents = ExaminedState(parser, check_contents) if check_files else None
    judged = []
    with stage("judging snapshots", "snapshots", len(parser.snapshots)) as told:
        for folder in parser.snapshots:
            at = folder.path
            found = tables.get(at), named.get(at), heads.get(at), damage.get(at)
            judged.append(_judge(parser, folder, *found, contents))
            told.advance(1)
    return Survey(tuple(judged), tables, scanned.damage, parser.inputs(table.num_rows), contents)


def _in_order(table: pa.Table) -> tuple[pa.Table, list[tuple[str, int, int]]]:
    """The rows of each metadata file, in its order and one file after the other; folder, begin and end of each."""
    path, names = codes(table["_path"])
    if (np.diff(path) < 0).any():  # else the files' rows lie one after the other already
        order = np.argsort(path, kind="stable")  # stable: rows of one file stay in order
        table, path = table.take(order), path[order]
    ends = np.searchsorted(path, np.arange(len(names) + 1)).tolist()
    return table.combine_chunks(), [
        (posixpath.dirname(n), a, b) for n, (a, b) in zip(names, pairwise(ends), strict=True)
    ]


def _judge(
    parser: OffersSnapshots,
    folder: SnapshotFolder,
    table: pa.Table | None,
    named: _NamedFiles | None,
    head: SnapshotHead | None,
    damage: Damage | None,
    contents: ExaminedState | None,
) -> JudgedSnapshot:
    if folder.metadata is None or damage is not None or table is None or named is None or head is None:
        verdict: SnapshotVerdict = "no-metadata" if folder.metadata is None else "corrupt"
        if damage is not None:
            verdict = _DAMAGED.get(damage.id, "corrupt")
        return JudgedSnapshot(
            folder=folder,
            verdict=verdict,
            id=folder.number,
            numbers=() if folder.number is None else (folder.number,),
            kind=_kind_by_name(folder),
            version=None,
            uri=None,
            files=0,
            bytes=0,
            uses=frozenset(),
            damage=damage,
        )
    numbers = tuple(n for n in (folder.number, head.row["checkpoint"]) if n is not None)
    places = parser.places(folder.path, named.file)
    check = contents is not None
    flaws: list[SnapshotFlaw] = []
    for i in named.doubtful([place.size for place in places] if check else None):
        flaws += _flaws(parser, named.row(i), places[i], check)
    if contents is not None and _verdict(flaws) in ("restorable", "unchecked"):
        flaws += [_damaged(named.row(i), places[i], seen) for i, seen in contents.damaged(table, named.file, places)]
    if contents is not None and _verdict(flaws) in ("restorable", "unchecked"):
        flaws += _of_sinks(parser, folder, table)
    return JudgedSnapshot(
        folder=folder,
        verdict=_verdict(flaws),
        id=min(numbers),
        numbers=numbers,
        kind=head.row["name"] or UNKNOWN_KIND,
        version=head.row["version"],
        uri=head.row["file"],
        files=len(named.file),
        bytes=head.bytes + (int(named.end.sum()) if head.whole_files else 0),
        uses=frozenset([folder.metadata, *(place.path for place in places if place.size is not None)]),
        flaws=tuple(flaws),
        moved=sum(place.moved for place in places) or int(not places and _lies_elsewhere(parser, folder, head)),
        backends=head.backends,
    )


def _lies_elsewhere(parser: OffersSnapshots, folder: SnapshotFolder, head: SnapshotHead) -> bool:
    """Whether a checkpoint, which names no file, was written in another folder than this one."""
    uri = head.row["file"]
    if uri is None or folder.number is None:
        return False
    there, here = without_file_scheme(uri), without_file_scheme(parser.original(folder.path))
    if "://" in there or "://" in here:
        return there.rstrip("/") != here.rstrip("/")
    return os.path.realpath(os_name(there)) != os.path.realpath(os_name(here))


def _kind_by_name(folder: SnapshotFolder) -> str:
    """What a folder without readable metadata is, as far as Flink names folders."""
    if folder.savepoint:
        return "Savepoint"
    return UNKNOWN_KIND if folder.number is None else "Checkpoint"


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


@dataclass(frozen=True, slots=True, eq=False)
class _NamedFiles:
    """The files that one snapshot's handles name, sorted, as `_Named` has them; shape (n,) each."""

    file: list[str]
    end: Ints
    low: Ints
    loose: Mask

    def row(self, i: int) -> _Named:
        return _Named(self.file[i], int(self.end[i]), int(self.low[i]), bool(self.loose[i]))

    def doubtful(self, sizes: list[int | None] | None) -> list[int]:
        """Return files that have not just the size that all handles need; all of them where no size was looked at."""
        if sizes is None:
            return list(range(len(self.file)))
        found = np.array([-1 if size is None else size for size in sizes], np.int64)
        rows: list[int] = np.flatnonzero((found != self.end) | (self.end != self.low)).tolist()
        return rows


def _named_files(table: pa.Table, folders: Sequence[tuple[str, int, int]]) -> dict[str, _NamedFiles]:
    """Each file that handles of a snapshot name, by the snapshot's folder."""
    row = np.flatnonzero(pc.and_(pc.equal(table["entry"], "handle"), pc.is_valid(table["file"])).to_numpy())
    table = table.select(("file", "name", "start", "bytes", "at_least")).take(row)
    file, names = codes(table["file"])
    start, size = (pc.min_element_wise(pc.fill_null(table[name], 0), _MOST) for name in ("start", "bytes"))
    end = pc.add(start, size).to_numpy()
    loose = pc.or_(pc.fill_null(table["at_least"], False), pc.equal(table["name"], "segment")).to_numpy()
    snapshot = np.searchsorted([a for _, a, _ in folders], row, side="right") - 1
    key = snapshot * len(names) + file
    order = np.argsort(key, kind="stable")
    begin = np.flatnonzero(np.diff(key[order], prepend=-1))
    of, file = np.divmod(key[order][begin], max(len(names), 1))
    if len(begin):  # else every array is empty already
        most, least = (f.reduceat(end[order], begin) for f in (np.maximum, np.minimum))
        loose = np.logical_or.reduceat(loose[order], begin)
    else:
        most = least = end
    text = np.array(names, object)[file]
    ends = np.searchsorted(of, np.arange(len(folders) + 1))
    return {
        folder: _NamedFiles(text[a:b].tolist(), most[a:b], least[a:b], loose[a:b])
        for (folder, _, _), (a, b) in zip(folders, pairwise(ends.tolist()), strict=True)
    }


def _flaws(parser: OffersSnapshots, one: _Named, place: FilePlace, check: bool) -> list[SnapshotFlaw]:
    """What is wrong with a file, if anything is."""
    if not check:
        return [SnapshotFlaw(file=one.file, path=place.path, needed=one.end, size=None, outside=True)]
    if place.outside or place.size is None:
        named = parser.named(posixpath.basename(place.path))
        found = tuple(p.path for p in named if _fits(p.size, one) and p.path != place.path)
        return [
            SnapshotFlaw(file=one.file, path=place.path, needed=one.end, size=None, outside=place.outside, found=found)
        ]
    needed = one.low if place.size == one.end else one.end
    return (
        []
        if _fits(place.size, one)
        else [SnapshotFlaw(file=one.file, path=place.path, needed=needed, size=place.size, outside=False)]
    )


def _damaged(one: _Named, place: FilePlace, seen: ContentCheck) -> SnapshotFlaw:
    """Return the flaw of a file that is there, and is damaged or cannot be read."""
    return SnapshotFlaw(
        file=one.file,
        path=place.path,
        needed=one.end,
        size=None if seen.unread else place.size,
        outside=bool(seen.unread),
        why=seen.flaw,
        at=seen.at,
        unread=seen.unread,
        unknown=seen.unknown,
    )


def _of_sinks(parser: OffersSnapshots, folder: SnapshotFolder, table: pa.Table) -> list[SnapshotFlaw]:
    """Return the files of sinks on which a restore fails."""
    return [
        SnapshotFlaw(file.file, file.path, file.needed, file.bytes, outside=False, sink=one.pending.sink)
        for one in waiting_in(parser, folder.path, table)
        for file in one.failing
    ]


def _fits(size: int | None, one: _Named) -> bool:
    """Whether a file of a size is what a snapshot names."""
    if size is None or one.loose:
        return size is not None and size >= one.end
    return size == one.end == one.low


def _verdict(flaws: Iterable[SnapshotFlaw]) -> SnapshotVerdict:
    flaws = list(flaws)
    if any(f.sink for f in flaws):
        return "sink-file-missing"
    if any(not f.outside and f.size is None for f in flaws):
        return "missing-state-file"
    if any(f.size is not None and not f.why and not f.unknown for f in flaws):
        return "size-mismatch"
    if any(f.why for f in flaws):
        return "corrupt-state-file"
    if any(f.unknown for f in flaws):
        return "unknown-version"
    return "unchecked" if flaws else "restorable"
