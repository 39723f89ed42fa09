"""Checkpoint records put in order: one per checkpoint, with subtasks and channels as numbers.

Records arrive in any order and some of them twice. Equal records of one checkpoint count once; records that
disagree count not at all and are a finding, and so are records that speak of another subtask's channels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import MapEntries, codes, entries, integers, map_rows
from cklog.arrays.order import stable_order, taken
from cklog.arrays.types import Ints, Mask
from cklog.history.variables import ListedVariables, listed_variables
from cklog.model.findings import Finding, Where
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.schemas import CHECKPOINTS
from cklog.model.wording import among, many


class Watermarks(NamedTuple):
    """Watermarks of one side of all channels: record `row[e]` says that channel `channel[e]` was at `value[e]`.

    All have shape (entries,).
    """

    row: Ints
    channel: Ints
    value: Ints


@dataclass(frozen=True)
class CheckpointRecords:
    """Checkpoint records sorted by (subtask, number), one per checkpoint.

    Attributes
    ----------
    table : the records, with every column but `sent` and `received`
    subtasks : n names, sorted
    channels, names : c channels, and their names, sorted
    subtask : index of each record's subtask, shape (records,)
    number : checkpoint number of each record, shape (records,)
    sent, received : what the records say of channels, by row of the table
    findings : what is wrong with the records
    """

    table: pa.Table
    subtasks: tuple[Subtask, ...]
    channels: tuple[Channel, ...]
    names: tuple[str, ...]
    subtask: Ints
    number: Ints
    sent: Watermarks
    received: Watermarks
    findings: tuple[Finding, ...]

    @cached_property
    def variables(self) -> ListedVariables:
        """The variables that records list; their JSON is read once, whoever asks."""
        return listed_variables(self.table["variables"])


def records_of(
    table: pa.Table, known: Iterable[Subtask] = (), channels: Iterable[str] = (), as_of: int | None = None
) -> CheckpointRecords:
    """Put checkpoint records in order, once each.

    Parameters
    ----------
    table : rows of `cklog.model.schemas.CHECKPOINTS`, strings plain or dictionary-encoded, in any order
    known, channels : subtasks and channels that exist although no record may name them
    as_of : milliseconds; later checkpoints, and those without a time, are left out
    """
    findings: list[Finding] = []
    table = records_until(table, as_of)
    operator, operators = codes(table["operator"])
    number, part = integers(table["checkpoint"]), integers(table["subtask"])
    order = stable_order(operator, part, number)
    same = _same_as_before(operator[order], part[order], number[order])
    chosen = order[_undisputed(table, order, same, findings)]
    place = np.full(len(order), -1, np.int64)  # the new row of each record, -1 if it is left out
    place[chosen] = np.arange(len(chosen))
    sent, received = entries(table["sent"]), entries(table["received"])
    table = taken(table.drop_columns(["sent", "received"]), chosen)
    operator, part, number = operator[chosen], part[chosen], number[chosen]
    parsed = {name: parse_channel(name) for name in sorted({*sent.names, *received.names, *channels})}
    good = {name: c for name, c in parsed.items() if c is not None}
    owners = [Subtask(operators[o], p) for o, p in _owner_codes(operator, part)]
    ends = {c.sender for c in good.values()} | {c.receiver for c in good.values()}
    subtasks = tuple(sorted({*owners, *known, *ends}))
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    numbers = np.array([index[owner] for owner in owners], np.int64)
    built = CheckpointRecords(
        table=table,
        subtasks=subtasks,
        channels=tuple(good.values()),
        names=tuple(good),
        subtask=numbers[_begins_subtask(operator, part).cumsum() - 1] if len(operator) else np.zeros(0, np.int64),
        number=number,
        sent=_watermarks(sent, good, place),
        received=_watermarks(received, good, place),
        findings=tuple(findings),
    )
    return _without_foreign_channels(
        built, [name for name in parsed if name not in good and name not in channels], index
    )


def records_until(table: pa.Table, as_of: int | None) -> pa.Table:
    """Return checkpoint records up to `as_of` (ms), without those that have no time; None: all."""
    return table if as_of is None else table.filter(pc.fill_null(pc.less_equal(table["time"], as_of), False))


def tells_no_watermarks(table: pa.Table) -> bool:
    """Say whether no checkpoint record holds what its subtask had sent or received."""
    return not any(map_rows(maps)[1].any() for side in ("sent", "received") for maps in table[side].chunks)


def _begins_subtask(operator: Ints, part: Ints) -> Mask:
    """Find the sorted rows that are the first of their subtask: (0, 0), (0, 0), (0, 3) → True, False, True."""
    new: Mask = np.r_[True, (np.diff(operator) != 0) | (np.diff(part) != 0)]
    return new


def _owner_codes(operator: Ints, part: Ints) -> list[tuple[int, int]]:
    """Return the distinct (operator code, subtask number) of sorted rows."""
    if not len(operator):
        return []
    new = _begins_subtask(operator, part)
    return list(zip(operator[new].tolist(), part[new].tolist(), strict=True))


def _same_as_before(operator: Ints, part: Ints, number: Ints) -> Mask:
    """Find the sorted rows that speak of the same checkpoint as the row before them."""
    same: Mask = (np.diff(operator) == 0) & (np.diff(part) == 0) & (np.diff(number) == 0)
    return np.r_[False, same] if len(operator) else np.zeros(0, np.bool_)


def _undisputed(table: pa.Table, order: Ints, same: Mask, findings: list[Finding]) -> Mask:
    """Choose the sorted rows that stay: the first of each group of equal records, none of a group that disagrees.

    `order` are the rows of the table, sorted; `same` marks those of the same checkpoint as the row before, shape (n,)
    each. Groups that disagree are added to `findings`.
    """
    keep = ~same
    firsts = np.flatnonzero(keep)
    sizes = np.diff(np.r_[firsts, len(same)])
    for first, size in zip(firsts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        rows = table.take(order[first : first + size])
        contents = [_comparable(row) for row in rows.select(CHECKPOINTS.names).to_pylist()]
        if any(content != contents[0] for content in contents):
            keep[first] = False
            subject = f"{contents[0]['operator']}/{contents[0]['subtask']}={contents[0]['checkpoint']}"
            message = f"{len(contents)} records of checkpoint {subject} disagree; none of them is used"
            findings.append(
                Finding(
                    "conflicting-checkpoint", "error", subject, message, where=_places_read(rows), effect="older-line"
                )
            )
    return keep


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a record with what may differ between equal ones made the same: order of maps, subtask null or 0."""
    maps = {name: sorted(row[name] or []) for name in ("sent", "received", "sources")}
    return row | maps | {"subtask": row["subtask"] or 0}


def _places_read(rows: pa.Table) -> tuple[Where, ...]:
    """Return where the records were read, if that is known."""
    if "_path" not in rows.column_names:
        return ()
    pairs = zip(rows["_path"].to_pylist(), rows["_offset"].to_pylist(), strict=True)
    return tuple(Where(path, offset) for path, offset in sorted(pairs))


def _watermarks(marks: MapEntries, good: dict[str, Channel], place: Ints) -> Watermarks:
    """Number channels as in `good` (-1: no channel's name), and rows as in `place`, where -1 is left out.

    E.g. entries of rows [0, 1] with `place` [-1, 0] are one entry, of row 0.
    """
    index = {name: i for i, name in enumerate(good)}
    to = np.array([index.get(name, -1) for name in marks.names] or [0], np.int64)
    row, channel, value = place[marks.row], to[marks.key] if len(marks.key) else marks.key, marks.value
    if len(row) and row.min() < 0:
        kept = row >= 0
        row, channel, value = row[kept], channel[kept], value[kept]
    return Watermarks(row, channel, value)


def _without_foreign_channels(
    records: CheckpointRecords, misnamed: list[str], index: dict[Subtask, int]
) -> CheckpointRecords:
    """Leave out records that speak of channels which are not theirs: they were not written by that subtask.

    `misnamed` are names in the records that are no channel's; `index` numbers the subtasks.
    """
    sender = np.array([index[c.sender] for c in records.channels] or [-1], np.int64)
    receiver = np.array([index[c.receiver] for c in records.channels] or [-1], np.int64)
    bad = np.zeros(len(records.number), np.bool_)
    for marks, owner in ((records.sent, sender), (records.received, receiver)):
        foreign = (marks.channel < 0) | (owner[marks.channel] != records.subtask[marks.row])
        bad[marks.row[foreign]] = True
    if not bad.any():
        return records
    rows = records.table.filter(bad)
    row = int(np.flatnonzero(bad)[0])
    first = f"{records.subtasks[records.subtask[row]]}={records.number[row]}"
    what = f"misnamed channel {misnamed[0]!r}" if misnamed else "a channel of another subtask"
    count = int(bad.sum())
    unused = "it is not used" if count == 1 else "they are not used"
    message = f"{many(count, 'checkpoint record', 'hold')} {what}, {among(count, first)}; {unused}"
    finding = Finding("foreign-channel", "error", first, message, where=_places_read(rows)[:10], effect="older-line")
    return _of_rows(replace(records, findings=(*records.findings, finding)), ~bad)


def _of_rows(records: CheckpointRecords, keep: Mask) -> CheckpointRecords:
    """Return the records that `keep` (records,) marks, with their watermarks."""
    to = np.cumsum(keep) - 1  # the new row of each record that is kept
    marks = []
    for old in (records.sent, records.received):
        entry = keep[old.row]
        marks.append(Watermarks(to[old.row[entry]], old.channel[entry], old.value[entry]))
    return replace(
        records,
        table=records.table.filter(keep),
        subtask=records.subtask[keep],
        number=records.number[keep],
        sent=marks[0],
        received=marks[1],
    )
