"""Which checkpoint records can be restored, by the chains of their base and delta checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.types import Mask
from cklog.chains.flaws import place_at
from cklog.chains.restorable import Chains, chains_of
from cklog.history.pieces import RecordPieces, record_pieces
from cklog.history.records import CheckpointRecords
from cklog.inputs.pieces import UNFINISHED
from cklog.model.findings import Finding

_TOLD = 100
"""Checkpoints that are told one by one."""


def has_chains(records: CheckpointRecords) -> bool:
    """Whether any record is a delta, or lists variables that may be."""
    table = records.table
    forms = table["form"].cast(pa.string())
    return pc.any(pc.equal(forms, "delta")).as_py() is True or table["variables"].null_count < len(table)


def restorable_records(records: CheckpointRecords, lost: bool, flaws: pa.Array | None) -> tuple[Mask, list[Finding]]:
    """Whether each record can be restored, with all of its variables; and a finding for each that cannot.

    Records that were not completed cannot be; that needs no finding. `lost`: records may be missing; `flaws`: what else
    is wrong with each (null: nothing), which is told elsewhere.
    """
    pieces = record_pieces(records, lost, flaws)
    chains = chains_of(pieces.table)
    broken = ~chains.restorable[chains.node_of]
    restorable = np.ones(len(records.table), np.bool_)
    restorable[pieces.record[broken]] = False
    findings = [f for f in chains.findings if f.severity == "error"]
    if flaws is not None:
        broken &= ~np.asarray(pc.is_valid(flaws))[pieces.record]
    return restorable, [*findings, *_broken(records, pieces, chains, np.flatnonzero(broken))]


def _broken(
    records: CheckpointRecords, pieces: RecordPieces, chains: Chains, rows: NDArray[np.int64]
) -> Iterator[Finding]:
    """Why pieces cannot be restored that were stored completely."""
    rows = rows[pc.fill_null(pc.not_equal(pieces.table["flaw"].take(pa.array(rows)), UNFINISHED), True).to_numpy()]
    for row in rows[:_TOLD].tolist():
        store, version = (pieces.table[name][row].as_py() for name in ("store", "version"))
        subject = f"{records.subtasks[records.subtask[pieces.record[row]]]}={version}"
        what = f"variable {store} of checkpoint {subject}" if store else f"checkpoint {subject}"
        why = chains.flaw(row) or f"is a delta on {chains.parent(row)}, which is missing or cannot be restored"
        yield Finding("broken-chain", "error", subject, f"{what} {why}", place_at(pieces.table, row))
    if len(rows) > _TOLD:
        more = f"{len(rows) - _TOLD} more"
        yield Finding("broken-chain", "error", f"{more} checkpoints", f"{more} parts of checkpoints cannot be restored")
