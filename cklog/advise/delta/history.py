"""Histories of base and delta checkpoints: forms, sizes and times by subtask, and what each other form would have cost.

They come from the checkpoint records of a run, without the watermarks (`read_records`), or from what a store holds
(`records_of_pieces`).

A history has one price of each checkpoint, that of the form it was taken in. The other is estimated as the patent's
method does it at run time, from what came before (US patent 9,471,438): a base costs what the newest base did, a delta
the weighted average of the deltas so far (before the first delta, what the first did). A delta holds the changes since
the checkpoint before it, whatever the form of that one, so a recorded price holds in every schedule.

A history begins with a subtask's first base. Checkpoints without a size or time that others of the subtask have, and
deltas on a checkpoint older than the one before, cannot be priced and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, holds, integers
from cklog.arrays.order import stable_order, taken
from cklog.arrays.types import Floats, Ints, Mask
from cklog.errors import NotFound
from cklog.history.records import records_of
from cklog.inputs.tables import as_it_is
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.schemas import CHECKPOINTS
from cklog.policies.delta_number import BenefitMeasure, Prices, averages
from cklog.runs.records.reading import RecordReader

NO_RECORDS = "no records of base and delta checkpoints here"

_COLUMNS = ("operator", "subtask", "checkpoint", "time", "kind", "status", "form", "parent", "bytes", "duration_ms")
_READ = pa.schema([CHECKPOINTS.field(name) for name in _COLUMNS])

_CELLS = 1 << 24
"""Cells of a block of histories that are looked at together: about 128 MB for each measure and form."""

_MOST = 1 << 53
"""Bytes or ms above which a checkpoint is not believed, nor a sum exact."""


@dataclass(frozen=True, slots=True, eq=False)
class DeltaRecords:
    """Checkpoint records in order of subtask and number, one for each of n checkpoints.

    Attributes
    ----------
    table : `_READ` without the columns that the others hold, n rows
    subtasks : in order; some may have no checkpoint
    owner : the subtask of each row, as an index into `subtasks`, shape (n,)
    number : of each checkpoint, shape (n,)
    """

    table: pa.Table
    subtasks: tuple[Subtask, ...]
    owner: Ints
    number: Ints


def read_records(reader: RecordReader) -> tuple[DeltaRecords, list[Finding], list[InputUsed]]:
    """Read the checkpoint records of a run.

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
    """Make records of what a store holds of each checkpoint (`cklog.inputs.pieces.PIECES`).

    A checkpoint is a delta if any variable of it is one. Its size is that of all its pieces, if each is there and of
    known size; its time is not known. Its parent is the oldest checkpoint that any of its deltas is based on.
    """
    whole = pc.and_(pc.is_null(pieces["flaw"]), pc.is_valid(pieces["bytes"]))
    table = pa.table(
        {
            "operator": pieces["operator"].cast(pa.string()),
            "subtask": pieces["subtask"],
            "checkpoint": pieces["version"],
            "delta": pc.equal(pieces["form"].cast(pa.string()), "delta").cast(pa.int8()),
            "parent": pieces["parent"],
            "bytes": pc.if_else(whole, pieces["bytes"].cast(pa.float64(), safe=False), np.nan),
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
    """Put records in order, whatever their order was; None if a checkpoint has several. `known` subtasks may lack any.

    Parameters
    ----------
    table : rows of `_READ`, at least one
    """
    operator, names = codes(table["operator"])
    part = integers(table["subtask"])
    number = table["checkpoint"].to_numpy()
    order = stable_order(operator, part, number)
    operator, part, number = operator[order], part[order], number[order]
    new = np.r_[True, (operator[1:] != operator[:-1]) | (part[1:] != part[:-1])]  # the first row of each subtask
    if (~new[1:] & (number[1:] == number[:-1])).any():
        return None
    owners = [Subtask(names[o], s) for o, s in zip(operator[new].tolist(), part[new].tolist(), strict=True)]
    subtasks = tuple(sorted({*owners, *known}))
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    owner = np.repeat([index[o] for o in owners], np.diff(np.r_[np.flatnonzero(new), len(new)]))
    kept = table.drop_columns(["operator", "subtask", "checkpoint"])
    return DeltaRecords(taken(kept, order), subtasks, owner, number)


@dataclass(frozen=True, slots=True, eq=False)
class Histories:
    """The checkpoints of s subtasks that can be priced, one subtask after the other.

    Attributes
    ----------
    first : where each subtask's checkpoints begin, shape (s + 1,)
    number, time, delta, size, ms : of each checkpoint; time in ms, -1: unknown; size in bytes, ms its duration, NaN:
        no checkpoint of the subtask has one
    unmeasured, older, early : how many were left out: without size or time; deltas on an older checkpoint than the
        one before; before the first base; shape (s,) each
    """

    subtasks: tuple[Subtask, ...]
    first: Ints
    number: Ints
    time: Ints
    delta: Mask
    size: Floats
    ms: Floats
    unmeasured: Ints
    older: Ints
    early: Ints

    def known(self, by: BenefitMeasure) -> Mask:
        """Tell whose checkpoints have durations, or sizes; shape (s,)."""
        measure = np.r_[self.ms if by == "time" else self.size, np.nan]
        found: Mask = ~np.isnan(measure[self.first[:-1]]) & (np.diff(self.first) > 0)
        return found

    def missing(self, by: BenefitMeasure) -> list[tuple[str, ...]]:
        """Say what each subtask's history lacks for a schedule by one measure; () if nothing."""
        counts, known = np.diff(self.first), self.known(by)
        deltas = _count_by_subtask(self.delta, self.first)
        words = {
            "checkpoints with a size or a duration": (counts == 0) & (self.early == 0),
            "base checkpoints": (counts == 0) & (self.early > 0),
            "delta checkpoints": (counts > 0) & (deltas == 0),
            "durations" if by == "time" else "sizes": (counts > 0) & ~known,
        }
        return [tuple(word for word, lacks in words.items() if lacks[i]) for i in range(len(counts))]


def histories(records: DeltaRecords) -> Histories:
    """Take the stored checkpoints of every subtask that can be priced.

    Checkpoints that were not completed, the current state of survivors and initial states are none.
    """
    table, owner = records.table, records.owner
    first = np.searchsorted(owner, np.arange(len(records.subtasks) + 1))
    stored = ~holds(table["status"], "incomplete") & ~holds(table["kind"], "volatile") & (records.number > 0)
    size, ms = _believable(table["bytes"]), _believable(table["duration_ms"])
    delta = holds(table["form"], "delta")
    parent = integers(table["parent"], np.iinfo(np.int64).max)  # no parent given: the checkpoint before
    older = stored & delta & (parent < _number_before(owner, records.number, stored))
    complete = stored & ~older
    there = [~np.isnan(measure) for measure in (size, ms)]
    some = [_count_by_subtask(complete & known, first) > 0 for known in there]  # subtasks that have the measure at all
    priced = complete & np.repeat(some[0] | some[1], np.diff(first))
    for known, wanted in zip(there, some, strict=True):
        priced &= known | np.repeat(~wanted, np.diff(first))
    begun = _from_first_base(owner, priced & ~delta, len(records.subtasks))
    kept = priced & begun
    time = integers(table["time"], -1)
    return Histories(
        subtasks=records.subtasks,
        first=np.r_[0, np.cumsum(_count_by_subtask(kept, first))],
        number=records.number[kept],
        time=time[kept],
        delta=delta[kept],
        size=size[kept],
        ms=ms[kept],
        unmeasured=_count_by_subtask(complete & ~priced, first),
        older=_count_by_subtask(older, first),
        early=_count_by_subtask(priced & ~begun, first),
    )


def _believable(column: pa.ChunkedArray) -> Floats:
    """Return sizes or durations; NaN where there is none, or none that a checkpoint can have. Shape (n,)."""
    found: Floats = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return np.where((found >= 0) & (found <= _MOST), found, np.nan)


def _count_by_subtask(rows: Mask, first: Ints) -> Ints:
    """Count each subtask's chosen rows, (s,); those of subtask i are `[first[i], first[i + 1])`.

    >>> _count_by_subtask(np.array([True, False, True, True]), np.array([0, 1, 1, 4])).tolist()
    [1, 0, 2]
    """
    found: Ints = np.diff(np.r_[0, np.cumsum(rows)][first])
    return found


def _number_before(owner: Ints, number: Ints, stored: Mask) -> Ints:
    """Return the number of the stored checkpoint before each stored row of its subtask, -1 if there is none; (n,).

    >>> _number_before(np.array([0, 0, 0, 1]), np.array([4, 5, 6, 2]), np.array([True, False, True, True])).tolist()
    [-1, -1, 4, -1]
    """
    before = np.full(len(number), -1, np.int64)
    if stored.all():
        before[1:] = np.where(owner[1:] == owner[:-1], number[:-1], -1)
        return before
    rows = np.flatnonzero(stored)
    same = owner[rows[1:]] == owner[rows[:-1]]
    before[rows[1:][same]] = number[rows[:-1][same]]
    return before


def _from_first_base(owner: Ints, base: Mask, s: int) -> Mask:
    """Tell which rows are at or behind their subtask's first base, of s subtasks; shape (n,).

    >>> _from_first_base(np.array([0, 0, 0, 1]), np.array([False, True, False, False]), 2).tolist()
    [False, True, True, False]
    """
    first = np.full(s, len(owner), np.int64)
    rows = np.flatnonzero(base)
    np.minimum.at(first, owner[rows], rows)
    begun: Mask = np.arange(len(owner)) >= first[owner]
    return begun


def blocks(found: Histories, usable: Mask) -> Iterator[tuple[Ints, Prices]]:
    """Yield the usable subtasks with their prices, in blocks of bounded size.

    The subtasks of a block have the same measures, and the longest history is at most twice the shortest.
    """
    counts = np.diff(found.first)
    measures = 2 * found.known("size") + found.known("time")
    order = np.lexsort((-counts, measures))  # by their measures, then the longest history first
    order = order[usable[order]]
    while len(order):
        longest, kind = counts[order[0]], measures[order[0]]
        alike = (measures[order] == kind) & (2 * counts[order] >= longest)
        take = max(1, min(_CELLS // int(longest), int(np.count_nonzero(alike))))
        yield order[:take], prices_by_form(found, order[:take])
        order = order[take:]


def prices_by_form(found: Histories, which: Ints) -> Prices:
    """Return what each checkpoint of some subtasks costs as a base and as a delta; each subtask has both forms."""
    count = np.diff(found.first)[which]
    cell = np.arange(int(count.max()))[:, None]
    taken = cell < count
    rows = np.concatenate([np.arange(found.first[i], found.first[i + 1]) for i in which.tolist()])

    def padded(values: Floats | Mask) -> Floats:
        """Return values of the subtasks' checkpoints, shape (n, s); 0 behind the last."""
        by_subtask = np.zeros(taken.T.shape)
        by_subtask[taken.T] = values[rows]
        return np.ascontiguousarray(by_subtask.T)

    delta = padded(found.delta) > 0
    newest = np.maximum.accumulate(np.where(taken & ~delta, cell, 0), axis=0)  # (n, s): the newest base up to each cell
    base_bytes, delta_bytes = _both_forms(padded(found.size), delta, newest, taken)
    base_ms, delta_ms = _both_forms(padded(found.ms), delta, newest, taken)
    return Prices(
        count=count,
        recorded=delta,
        base_bytes=base_bytes,
        delta_bytes=delta_bytes,
        base_ms=base_ms,
        delta_ms=delta_ms,
    )


def _both_forms(price: Floats, delta: Mask, newest: Ints, taken: Mask) -> tuple[Floats, Floats] | tuple[None, None]:
    """Return prices as bases and as deltas, from those of the form taken; None without the measure. All (n, s).

    `newest` is the row of the newest base up to each cell. E.g. base 9, delta 2, base 8 → bases 9, 9, 8 and deltas
    2, 2, 2.
    """
    if np.isnan(price[0]).any():
        return None, None
    base = np.where(taken, np.take_along_axis(price, newest, axis=0), 0.0)
    first = np.take_along_axis(price, delta.argmax(axis=0)[None], axis=0)[0]  # (s,): each subtask's first delta
    other = np.empty_like(price)
    for k, average in zip(range(len(price)), averages(price, delta), strict=False):
        other[k] = average
    np.copyto(other, first, where=np.isnan(other))
    other[~taken] = 0.0
    np.copyto(other, price, where=delta)
    return base, other
