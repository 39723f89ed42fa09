"""What each snapshot says of itself, and the state that its handles have: of all snapshots at once, in one pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, holds, integers
from cklog.arrays.types import Ints


class SnapshotHead(NamedTuple):
    """A snapshot's own row; the bytes of its state, but for whole files; whether it names none but whole ones; and
    the uuids of its keyed state."""

    row: dict[str, Any]
    bytes: int
    whole_files: bool
    backends: frozenset[str]


def inlined_bytes(table: pa.Table) -> int:
    """Count the bytes of state that stand inside the metadata of a snapshot, where no checksum covers them."""
    inlined = pc.and_(pc.equal(table["entry"], "handle"), pc.fill_null(pc.equal(table["name"], "inline"), False))
    return pc.sum(table["bytes"].filter(inlined)).as_py() or 0


def rows_of(table: pa.Table, entry: str) -> list[dict[str, Any]]:
    """Return the rows of one kind of entry; the next question about the same table gets the same ones."""
    global _last
    of, kept = _last
    if of() is not table:
        _last = of, kept = weakref.ref(table), {}
    if entry not in kept:
        kept[entry] = _as_dicts(table, np.flatnonzero(holds(table["entry"], entry)))
    return kept[entry]


_last: tuple[Callable[[], pa.Table | None], dict[str, list[dict[str, Any]]]] = (lambda: None, {})
"""The table that was asked about last, and the rows of each kind that were asked for."""


def _as_dicts(table: pa.Table, rows: Ints) -> list[dict[str, Any]]:
    if not len(rows):
        return []
    nothing: dict[str, Any] = dict.fromkeys(table.column_names)
    together = rows[-1] - rows[0] == len(rows) - 1  # as the rows of one kind are most often: they need no gathering
    part = table.slice(rows[0], len(rows)) if together else table
    found = part.select([name for name in nothing if part[name].null_count < len(part)])  # the others need no reading
    return [nothing | row for row in (found if together else found.take(rows)).to_pylist()]


def heads_of(table: pa.Table, folders: Sequence[tuple[str, int, int]]) -> dict[str, SnapshotHead]:
    """Return the head of each snapshot by its folder; none of a snapshot without a row of its own.

    Parameters
    ----------
    table : the rows of all snapshots, one after the other
    folders : the folder of each, in order, and where its rows begin and end
    """
    begin = np.array([a for _, a, _ in folders], np.int64)
    own = np.flatnonzero(holds(table["entry"], "snapshot"))
    of = np.searchsorted(begin, own, side="right") - 1
    first = np.flatnonzero(np.diff(of, prepend=-1))
    rows = dict(zip(of[first].tolist(), _as_dicts(table, own[first]), strict=True))
    row = np.flatnonzero(holds(table["entry"], "handle"))
    handles = table.select(("file", "start", "bytes", "uid")).take(row)
    of = np.searchsorted(begin, row, side="right") - 1
    size, whole = _state_bytes(handles, of, len(folders))
    backends = _backends(handles["uid"], of, len(folders))
    return {
        folder: SnapshotHead(rows[i], size[i], whole[i], backends[i])
        for i, (folder, _, _) in enumerate(folders)
        if i in rows
    }


def _state_bytes(handles: pa.Table, of: Ints, count: int) -> tuple[list[int], list[bool]]:
    """State inlined, and of files each part once, however many subtasks name it; and who names whole files alone."""
    placed = pc.is_valid(handles["start"]).to_numpy()
    parted = np.zeros(count, bool)
    parted[of[placed]] = True
    size, total = integers(handles["bytes"]), np.zeros(count, np.int64)
    stored = pc.is_valid(handles["file"]).to_numpy()
    np.add.at(total, of[~stored], size[~stored])
    parts = np.flatnonzero(stored & parted[of])
    if len(parts):
        file, start = codes(handles["file"].take(parts))[0], integers(handles["start"].take(parts), -1)
        owner, size = of[parts], size[parts]
        order = np.lexsort((start, file, owner))
        owner, file, start = owner[order], file[order], start[order]
        changes = (np.diff(one) != 0 for one in (owner, file, start))
        begin = np.flatnonzero(np.append(True, np.logical_or.reduce([*changes])))
        np.add.at(total, owner[begin], np.maximum.reduceat(size[order], begin))
    return total.tolist(), (~parted).tolist()


def _backends(uid: pa.ChunkedArray, of: Ints, count: int) -> list[frozenset[str]]:
    """Return the uuids of each snapshot."""
    known = np.flatnonzero(pc.is_valid(uid).to_numpy())
    if not len(known):
        return [frozenset()] * count
    code, names = codes(uid.take(known))
    owner, code = np.divmod(np.unique(of[known] * len(names) + code), len(names))
    ends = np.searchsorted(owner, np.arange(count + 1)).tolist()
    return [frozenset(names[k] for k in code[a:b].tolist()) for a, b in pairwise(ends)]
