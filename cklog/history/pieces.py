"""Checkpoint records as pieces of chains, one a record or one a variable that it lists, and which records they restore.

A record that lists variables can be restored if every one of them can; what it says of itself as a whole does not
count then. The time that it took is shared out among its variables by their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import holds, true_rows
from cklog.arrays.types import Ints, Mask
from cklog.chains.flaws import place_at
from cklog.chains.restorable import Chains, chains_of
from cklog.history.records import CheckpointRecords
from cklog.history.variables import FORMS, ListedVariables
from cklog.inputs.pieces import UNFINISHED
from cklog.model.findings import Finding

_LISTED = 100
"""Checkpoints that are listed one by one."""

_MAYBE_LOST = "names no parent, and a record before it may be lost"


@dataclass(frozen=True, slots=True, eq=False)
class RecordPieces:
    """Rows of `cklog.inputs.pieces.PIECES` with their offsets, and the record that each is of, by row; shape (p,)."""

    table: pa.Table
    record: Ints


def record_pieces(records: CheckpointRecords, lost: bool, flaws: pa.Array | None = None) -> RecordPieces:
    """Return the pieces of all records; those of incomplete records have a flaw.

    Parameters
    ----------
    lost : records may be missing, so that a delta that names no parent may stand on one of them
    flaws : what else is wrong with the state of each record, null for nothing
    """
    table = _piece_per_record(records, flaws)
    record = np.arange(len(table))
    if records.table["variables"].null_count < len(table):
        table, record = _piece_per_variable(table, records.variables)
    unnamed = holds(table["form"], "delta") & true_rows(pc.is_null(table["parent"]))
    if unnamed.any():
        table = _with_parents_before(table, unnamed, record, records, lost)
    return RecordPieces(table, record)


def has_chains(records: CheckpointRecords) -> bool:
    """Say whether any record is a delta, or lists variables that may be."""
    table = records.table
    forms = table["form"].cast(pa.string())
    return pc.any(pc.equal(forms, "delta")).as_py() is True or table["variables"].null_count < len(table)


def restorable_records(records: CheckpointRecords, lost: bool, flaws: pa.Array | None) -> tuple[Mask, list[Finding]]:
    """Return whether each record can be restored with all of its variables, and a finding for each that cannot.

    There is no finding for a record that was not completed, nor for one with a flaw of its own: the caller has those.
    `lost` and `flaws` are as in `record_pieces`.
    """
    pieces = record_pieces(records, lost, flaws)
    chains = chains_of(pieces.table)
    broken = ~chains.restorable[chains.node_of]
    restorable = np.ones(len(records.table), np.bool_)
    restorable[pieces.record[broken]] = False
    findings = [f for f in chains.findings if f.severity == "error"]
    if flaws is not None:
        broken &= ~np.asarray(pc.is_valid(flaws))[pieces.record]
    return restorable, [*findings, *_broken_pieces(records, pieces, chains, np.flatnonzero(broken))]


def _broken_pieces(records: CheckpointRecords, pieces: RecordPieces, chains: Chains, rows: Ints) -> Iterator[Finding]:
    """Report pieces (`rows`) that cannot be restored although they were stored completely."""
    rows = rows[~holds(pieces.table["flaw"].take(pa.array(rows)), UNFINISHED)]
    for row in rows[:_LISTED].tolist():
        store, version = (pieces.table[name][row].as_py() for name in ("store", "version"))
        subject = f"{records.subtasks[records.subtask[pieces.record[row]]]}={version}"
        what = f"variable {store} of checkpoint {subject}" if store else f"checkpoint {subject}"
        why = chains.flaw(row) or f"is a delta on {chains.parent(row)}, which is missing or cannot be restored"
        yield Finding(
            "broken-chain", "error", subject, f"{what} {why}", where=place_at(pieces.table, row), effect="older-line"
        )
    if len(rows) > _LISTED:
        more = f"{len(rows) - _LISTED} more"
        yield Finding(
            "broken-chain",
            "error",
            f"{more} checkpoints",
            f"{more} parts of checkpoints cannot be restored",
            effect="older-line",
        )


def _with_parents_before(
    table: pa.Table, unnamed: Mask, record: Ints, records: CheckpointRecords, lost: bool
) -> pa.Table:
    """Give deltas that name no parent the record before theirs, whether that has the variable or not.

    `unnamed` (p,) are those pieces, `record` (p,) the record of each piece. With `lost`, those of a record behind a gap
    in the numbers get a flaw: e.g. of records 4, 5, 7 that of 7, because 6 may be missing (and that of 4).
    """
    has_before = np.diff(records.subtask, prepend=-1) == 0
    before = pa.array(np.r_[0, records.number[:-1]], mask=~has_before)
    parent = pc.if_else(pa.array(unnamed), before.take(pa.array(record)), table["parent"])
    table = table.set_column(table.column_names.index("parent"), "parent", parent)
    if not lost:
        return table
    after_gap = ~has_before | (np.diff(records.number, prepend=-1) != 1)
    doubtful = unnamed & after_gap[record]
    return _with_flaw(table, doubtful, pa.array([_MAYBE_LOST] * int(doubtful.sum()), pa.string()))


def _piece_per_record(records: CheckpointRecords, flaws: pa.Array | None) -> pa.Table:
    """Make one piece of each record."""
    found, n = records.table, len(records.table)
    unfinished = holds(found["status"], "incomplete") | holds(found["kind"], "volatile")
    path, offset = _state_places(found)
    return pa.table(
        {
            "operator": found["operator"],
            "subtask": pc.fill_null(found["subtask"], 0),
            "store": _words_of(np.zeros(n), [""]),
            "version": found["checkpoint"],
            "form": _words_of(holds(found["form"], "delta"), FORMS),
            "parent": found["parent"],
            "bytes": found["bytes"],
            "duration_ms": found["duration_ms"],
            "path": path,
            "flaw": pc.if_else(pa.array(unfinished), UNFINISHED, pa.nulls(n, pa.string()) if flaws is None else flaws),
            "offset": offset,
        }
    )


def _state_places(found: pa.Table) -> tuple[pa.Array | pa.ChunkedArray, pa.Array | pa.ChunkedArray]:
    """Return path and offset of each record's state if the record names it, else of the record itself."""
    n = len(found)
    placed = "_path" in found.column_names
    path = found["_path"] if placed else _words_of(np.zeros(n), [""])
    offset = found["_offset"] if placed else pa.nulls(n, pa.int64())
    uri = found["uri"]
    if uri.null_count == n:
        return path, offset
    return pc.coalesce(uri.cast(pa.string()), path.cast(pa.string())), pc.if_else(pc.is_valid(uri), None, offset)


def _piece_per_variable(table: pa.Table, listed: ListedVariables) -> tuple[pa.Table, Ints]:
    """Put pieces of variables in place of those of records that list some, and return the record of each piece.

    `table` holds one piece for each record.
    """
    owner, wrong = listed.owner, listed.wrong
    if wrong:
        table = _with_flaw(table, np.isin(np.arange(len(table)), [*wrong]), pa.array([*wrong.values()]))
    whole = np.setdiff1d(np.arange(len(table)), owner)
    parts = table.take(owner)
    for name, column in (
        ("store", listed.store),
        ("form", _words_of(listed.delta, FORMS)),
        ("parent", listed.parent),
        ("bytes", listed.bytes),
        ("duration_ms", _shared_time(parts["duration_ms"], owner, listed.bytes)),
    ):
        parts = parts.set_column(parts.column_names.index(name), name, column)
    return pa.concat_tables([table.take(whole), parts]), np.r_[whole, owner]


def _shared_time(took: pa.ChunkedArray, owner: Ints, stored: pa.Array) -> pa.Array:
    """Share out the time that each record took among its variables by their sizes (`stored`, in bytes).

    All have shape (variables,); `owner` is the record of each variable, rising. A share is not known if the size of
    one of the record's variables is not. E.g. 6 ms of variables of 10 and 20 bytes are 2 ms and 4 ms.
    """
    size = pc.fill_null(stored.cast(pa.float64(), safe=False), np.nan).to_numpy()
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    counts = np.diff(np.r_[starts, len(owner)])
    total = np.repeat(np.add.reduceat(size, starts), counts) if len(size) else size
    part = np.divide(size, total, out=1 / np.repeat(counts, counts), where=total != 0)  # equal parts of no bytes
    alone = np.repeat(counts == 1, counts)
    return pa.array(pc.fill_null(took, np.nan).to_numpy() * np.where(alone, 1.0, part), from_pandas=True)


def _with_flaw(table: pa.Table, which: Mask, flaws: pa.Array) -> pa.Table:
    """Give the pieces in `which` these flaws, in their order; a piece that has a flaw already keeps it."""
    at = table.column_names.index("flaw")
    stated = table["flaw"].combine_chunks()
    found = pc.coalesce(stated, pc.replace_with_mask(stated, pa.array(which), flaws))
    return table.set_column(at, "flaw", found)


def _words_of(code: NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of words from their indices in `words`."""
    return pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), pa.array(words))
