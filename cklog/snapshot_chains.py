"""Snapshots of jobs (Flink) as chains: of each operator, which files a checkpoint is restored from, and since when.

Every checkpoint lists all of its files, those of older checkpoints among them, so each is a base by itself, and what
stands on older checkpoints are its files. A job is restored as one: its metadata is the chain without a store, its
operators are the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.chain_sources import ChainSource, Part
from cklog.chains import PIECES, UNFINISHED, UNSEEN
from cklog.engine import Engine
from cklog.snapshot_findings import snapshot_findings
from cklog.snapshot_lineage import candidates, owners_of
from cklog.snapshot_state import operator_labels
from cklog.snapshot_verdicts import VERDICTS, Flaw, Judged, Snapshots, survey

_NOTES = (
    "A Flink checkpoint is restored as a whole, with its job; the chain without an operator is its metadata.",
    "Pieces are files; those that older checkpoints of the job name too count as deltas.",
)
_UNREAD = ("corrupt", "unknown-version")

Handles = pa.Table
"""The handles of one operator in one snapshot: `file` (null: inlined), `start`, `bytes`."""


def snapshot_source(parser: Snapshots, engine_for: Callable[[int], Engine]) -> ChainSource:
    """The pieces of all snapshots below a folder, one for each operator of each, and what is wrong with snapshots."""
    found = survey(parser, engine_for)
    rows: list[dict[str, Any]] = []
    of: list[tuple[Judged, Handles]] = []
    for judged in found.judged:
        if judged.id is not None:
            for piece, handles in _pieces(parser, judged, found.tables.get(judged.folder.path)):
                rows.append(piece)
                of.append((judged, handles))
    groups = candidates(parser, found.judged, owners_of(parser))
    newest = {g.job: next((j for j in g.snapshots if j.verdict == "restorable"), None) for g in groups}
    findings = snapshot_findings(found, newest, groups)

    def parts(row: int) -> list[Part]:
        judged, handles = of[row]
        return _parts(parser, judged, handles, [j for j in found.judged if j.folder.job == judged.folder.job])

    table = pa.Table.from_pylist(rows, schema=PIECES)
    return ChainSource(table, findings, found.inputs, "subtask", _NOTES, parts)


def _pieces(parser: Snapshots, judged: Judged, table: pa.Table | None) -> list[tuple[dict[str, Any], Handles]]:
    """What a snapshot has of its job and of each operator, each with its handles."""
    found = []
    for label, handles in _by_operator(table):
        lost = [f for f in judged.flaws if pc.any(pc.equal(handles["file"], f.file)).as_py()]
        row = {
            "operator": judged.folder.job or parser.job_id(""),
            "subtask": 0,
            "store": label,
            "version": judged.id,
            "form": "base",
            "bytes": _size(handles) + ((judged.folder.bytes if table is None else 0) if label == "" else 0),
            "path": judged.folder.metadata or judged.folder.path,
            "flaw": _flaw(judged, lost) if label else _flaw_of_metadata(judged),
        }
        found.append((dict.fromkeys(PIECES.names) | row, handles))
    return found
