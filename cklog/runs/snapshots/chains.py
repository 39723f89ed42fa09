"""Snapshots of jobs (Flink) as chains: of each operator, which files a checkpoint is restored from, and since when.

Every checkpoint lists all of its files, those of older checkpoints among them, so each is a base by itself, and what
stands on older checkpoints are its files. A job is restored as one: its metadata is the chain without a store, its
operators are the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.chains.source import ChainSource, PieceFile
from cklog.engine.reading import Reading
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.pieces import PIECES, UNFINISHED, UNSEEN
from cklog.runs.snapshots.findings import snapshot_findings
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.lineage import candidates, owners_of
from cklog.runs.snapshots.order import survey
from cklog.runs.snapshots.state import operator_labels
from cklog.runs.snapshots.verdicts import VERDICTS, JudgedSnapshot, SnapshotFlaw

_NOTES = (
    "A Flink checkpoint is restored as a whole, with its job; the chain without an operator is its metadata.",
    "Pieces are files; those that older checkpoints of the job name too count as deltas.",
)


def snapshot_source(parser: OffersSnapshots, reading: Reading) -> ChainSource:
    """Return the pieces of all snapshots below a folder, one per operator, and what is wrong with snapshots."""
    found = survey(parser, reading)
    rows: list[dict[str, Any]] = []
    of: list[tuple[JudgedSnapshot, pa.Table, bool]] = []
    for judged in found.judged:
        if judged.id is not None:
            for piece, handles in _pieces(parser, judged, found.tables.get(judged.folder.path)):
                rows.append(piece)
                of.append((judged, handles, not piece["store"]))
    groups = candidates(parser, found, owners_of(parser))
    newest = {g.job: next((j for j in g.snapshots if j.verdict == "restorable"), None) for g in groups}
    findings = snapshot_findings(found, newest, groups)

    def parts(row: int) -> list[PieceFile]:
        judged, handles, of_job = of[row]
        own = [PieceFile(judged.folder.metadata or "", rows[row]["bytes"], judged.id or 0)] if of_job else []
        files = _parts(parser, judged, handles, [j for j in found.judged if j.folder.job == judged.folder.job])
        return own + files

    table = pa.Table.from_pylist(rows, schema=PIECES)
    return ChainSource(
        table=table, findings=findings, inputs=found.inputs, together="subtask", notes=_NOTES, parts=parts, unit="job"
    )


def _pieces(
    parser: OffersSnapshots, judged: JudgedSnapshot, table: pa.Table | None
) -> list[tuple[dict[str, Any], pa.Table]]:
    """What a snapshot has of its job and of each operator, each with the handles of its files."""
    found = []
    for label, handles in _by_operator(table):
        lost = [flaw for flaw in judged.flaws if pc.any(pc.equal(handles["file"], flaw.file)).as_py()]
        row = {
            "operator": judged.folder.job or parser.job_id(""),
            "subtask": 0,
            "store": label,
            "version": judged.id,
            "form": "base",
            "bytes": _sum(handles) + (0 if label or table is None else rows_of(table, "snapshot")[0]["bytes"] or 0),
            "path": judged.folder.metadata or judged.folder.path,
            "flaw": _flaw(lost) if label or table is not None else _unreadable(judged),
        }
        found.append((dict.fromkeys(PIECES.names) | row, handles))
    return found


def _by_operator(table: pa.Table | None) -> list[tuple[str, pa.Table]]:
    """The handles of files by the operator's label; "" what is of the job as a whole, which is always there."""
    if table is None:
        return [("", _NO_HANDLES)]
    stored = table.filter(pc.and_(pc.equal(table["entry"], "handle"), pc.is_valid(table["file"])))
    stored = stored.select(("operator", *_NO_HANDLES.column_names))
    labels = operator_labels(table)
    known = sorted({*labels, *pc.unique(stored["operator"].drop_null()).to_pylist()})
    names = [labels.get(id, id) for id in known]
    told = [f"{name} ({id[:8]})" if names.count(name) > 1 else name for id, name in zip(known, names, strict=True)]
    found = [("", stored.filter(pc.is_null(stored["operator"])))]
    return found + [
        (name, stored.filter(pc.equal(stored["operator"], id))) for id, name in zip(known, told, strict=True)
    ]


_NO_HANDLES = pa.table(
    {"file": pa.array([], pa.string()), "start": pa.array([], pa.int64()), "bytes": pa.array([], pa.int64())}
)


def _sum(handles: pa.Table) -> int:
    """Bytes in files, each part once, however many subtasks name it."""
    return sum(size for _, size in _files(handles))


def _files(handles: pa.Table) -> list[tuple[str, int]]:
    """Each file and the bytes of it that are used, by name."""
    once = handles.group_by(["file", "start"], use_threads=False).aggregate([("bytes", "max")])
    sizes: dict[str, int] = {}
    for file, size in zip(once["file"].to_pylist(), once["bytes_max"].to_pylist(), strict=True):
        sizes[file] = sizes.get(file, 0) + (size or 0)
    return sorted(sizes.items())


def _parts(
    parser: OffersSnapshots, judged: JudgedSnapshot, handles: pa.Table, of_job: Sequence[JudgedSnapshot]
) -> list[PieceFile]:
    """The files that handles name, each with the oldest checkpoint of the job that names it too."""
    files = _files(handles)
    places = parser.places(judged.folder.path, [file for file, _ in files])
    older = sorted((j for j in of_job if j.id is not None), key=lambda j: j.id or 0)
    found = []
    for (_, size), place in zip(files, places, strict=True):
        since = next((j.id for j in older if place.path in j.uses), judged.id)
        found.append(PieceFile(place.path, size, since or 0))
    return sorted(found, key=lambda part: (part.since, part.path))


def _unreadable(judged: JudgedSnapshot) -> str:
    """Why there is no metadata, or none that can be read."""
    return UNFINISHED if judged.verdict == "no-metadata" else VERDICTS[judged.verdict]


def _flaw(lost: Sequence[SnapshotFlaw]) -> str | None:
    """What keeps an operator from being restored: a file that is gone or has another size, or that nobody looked at."""
    seen = [flaw for flaw in lost if not flaw.outside]
    if not seen:
        return UNSEEN if lost else None
    first = seen[0]
    why = (
        f"is damaged: {first.why}"
        if first.why
        else f"is of a version that cklog does not know: {first.unknown}"
        if first.unknown
        else "is not there"
        if first.size is None
        else f"has {first.size} bytes, not {first.needed}"
    )
    more = f"; {len(seen) - 1} more files too" if len(seen) > 1 else ""
    return f"needs {first.path}, which {why}{more}"
