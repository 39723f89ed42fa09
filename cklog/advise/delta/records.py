"""Forms, sizes and times of checkpoints: from their records, without the watermarks, or from the pieces of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes
from cklog.arrays.order import stable_order, taken
from cklog.arrays.types import Ints
from cklog.errors import NotFound
from cklog.history.records import records_of
from cklog.inputs.tables import as_it_is
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.schemas import CHECKPOINTS
from cklog.runs.records.reading import RecordReader

NO_RECORDS = "no records of base and delta checkpoints here"

_COLUMNS = ("operator", "subtask", "checkpoint", "time", "kind", "status", "form", "parent", "bytes", "duration_ms")
_READ = pa.schema([CHECKPOINTS.field(name) for name in _COLUMNS])


@dataclass(frozen=True, slots=True, eq=False)
class DeltaRecords:
    """Rows of `table` in order of subtask and number, one for each checkpoint; `owner` indexes `subtasks`, (n,)."""

    table: pa.Table
    subtasks: tuple[Subtask, ...]
    owner: Ints
    number: Ints


def read_records(reader: RecordReader) -> tuple[DeltaRecords, list[Finding], list[InputUsed]]:
    """The checkpoint records of a run.

    Where records of one checkpoint occur twice they are read as every other command reads them: whole, to see whether
    they agree.

    Raises
    ------
    NotFound : there are none; CorruptInput : none can be read
    """
    tables = reader.tables
    if not tables.has("checkpoints") and not tables.findings("checkpoints"):
        raise NotFound(NO_RECORDS, "D is advised from the records of checkpoints/")
    table, findings, inputs = reader.scan_all("checkpoints", _COLUMNS, as_it_is, _READ, None)
    found = in_order(table, reader.named()[0]) if len(table) else None
    if found is not None:
        return found, findings, inputs
    whole = reader.checkpoints()
    records = records_of(whole.table, *reader.named())
    found = DeltaRecords(records.table, records.subtasks, records.subtask, records.number)
    return found, [*whole.findings, *records.findings], whole.inputs


def records_of_pieces(pieces: pa.Table) -> DeltaRecords:
    """Checkpoints from what is stored of each (`cklog.inputs.pieces.PIECES`): a delta if any variable of it is one.

    Its size is that of all its pieces, if each is there and of known size; a time is not known. It stands on the oldest
    checkpoint that any of its deltas stands on.
    """
    whole = pc.and_(pc.is_null(pieces["flaw"]), pc.is_valid(pieces["bytes"]))
    table = pa.table(
        {
            "operator": pieces["operator"].cast(pa.string()),
            "subtask": pieces["subtask"],
            "checkpoint": pieces["version"],
            "delta": pc.equal(pieces["form"].cast(pa.string()), "delta").cast(pa.int8()),
            "parent": pieces["parent"],
            "bytes": pc.if_else(whole, pieces["bytes"].cast(pa.float64()), np.nan),
        }
    )
    sums = {"delta": "max", "parent": "min", "bytes": "sum"}
    found = table.group_by(["operator", "subtask", "checkpoint"]).aggregate(list(sums.items()))
    columns = {name: found[name] for name in ("operator", "subtask", "checkpoint")}
    columns |= {"form": pc.if_else(pc.equal(found["delta_max"], 1), "delta", "base")}
    columns |= {"parent": found["parent_min"], "bytes": found["bytes_sum"]}
    every = [columns.get(field.name, pa.nulls(len(found), field.type)) for field in _READ]
    ordered = in_order(pa.table(every, names=_READ.names), ())
    assert ordered is not None  # each checkpoint is one group
    return ordered


def in_order(table: pa.Table, known: Sequence[Subtask]) -> DeltaRecords | None:
    """Records in any order, put in order; None if a checkpoint has several. `known` subtasks may have none."""
    operator, names = codes(table["operator"])
    part = pc.fill_null(table["subtask"], 0).to_numpy()
    number = table["checkpoint"].to_numpy()
    order = stable_order(operator, part, number)
    operator, part, number = operator[order], part[order], number[order]
    new = np.r_[True, (operator[1:] != operator[:-1]) | (part[1:] != part[:-1])]
    if (~new[1:] & (number[1:] == number[:-1])).any():
        return None
    owners = [Subtask(names[o], s) for o, s in zip(operator[new].tolist(), part[new].tolist(), strict=True)]
    subtasks = tuple(sorted({*owners, *known}))
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    owner = np.repeat([index[o] for o in owners], np.diff(np.r_[np.flatnonzero(new), len(new)]))
    kept = table.drop_columns(["operator", "subtask", "checkpoint"])
    return DeltaRecords(taken(kept, order), subtasks, owner, number)
