"""Checkpoint records put in order: one per checkpoint, over numbered subtasks and channels.

Records arrive in any order and some of them twice. Equal records of one checkpoint count once; records that
disagree count not at all and are a finding, and so are records that speak of another subtask's channels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import codes, entries, integers
from cklog.arrays.order import stable_order, taken
from cklog.arrays.types import Ints
from cklog.model.findings import Finding, Where
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.schemas import CHECKPOINTS


@dataclass(frozen=True, slots=True)
class Watermarks:
    """One direction of all channels: entry e says channel[e] was at value[e] in record row[e]."""

    row: Ints
    channel: Ints
    value: Ints


@dataclass(frozen=True, slots=True)
class CheckpointRecords:
    """Checkpoint records sorted by (subtask, number), one per checkpoint, over numbered subtasks and channels.

    `table` has every column but `sent` and `received`, which are the watermarks by row of it.
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


def records_of(
    table: pa.Table, known: Iterable[Subtask] = (), channels: Iterable[str] = (), as_of: int | None = None
) -> CheckpointRecords:
    """Order and de-duplicate checkpoint records.

    Parameters
    ----------
    table : rows of `cklog.model.schemas.CHECKPOINTS`, strings plain or dictionary-encoded, in any order
    known, channels : subtasks and channels that exist although no record may name them
    as_of : milliseconds; later checkpoints, and those without a time, are left out
    """
    findings: list[Finding] = []
    if as_of is not None:
        table = table.filter(pc.fill_null(pc.less_equal(table["time"], as_of), False))
    operator, operators = codes(table["operator"])
    number, part = integers(table["checkpoint"]), integers(table["subtask"])
    order = stable_order(operator, part, number)
    same = _same(operator[order], part[order], number[order])
    chosen = order[_distinct(table, order, same, findings)]
    place = np.full(len(order), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    sent, received = entries(table["sent"]), entries(table["received"])
    table = taken(table.drop_columns(["sent", "received"]), chosen)
    operator, part, number = operator[chosen], part[chosen], number[chosen]
    parsed = {name: parse_channel(name) for name in sorted({*sent[2], *received[2], *channels})}
    good = {name: c for name, c in parsed.items() if c is not None}
    owners = [Subtask(operators[o], p) for o, p in _pairs(operator, part)]
    subtasks = tuple(sorted({*owners, *known, *(end for c in good.values() for end in (c.sender, c.receiver))}))
    index = {subtask: i for i, subtask in enumerate(subtasks)}
    numbers = np.array([index[owner] for owner in owners], np.int64)
    built = CheckpointRecords(
        table,
        subtasks,
        tuple(good.values()),
        tuple(good),
        numbers[_starts_new(operator, part).cumsum() - 1] if len(operator) else np.zeros(0, np.int64),
        number,
        _numbered(sent, good, place),
        _numbered(received, good, place),
        tuple(findings),
    )
    return _own_channels(built, [name for name in parsed if name not in good and name not in channels], index)


def tells_no_watermarks(table: pa.Table) -> bool:
    """Whether no checkpoint record holds what its subtask had sent or received."""
    return not any(len(entries(table[side])[0]) for side in ("sent", "received"))


def _starts_new(operator: Ints, part: Ints) -> NDArray[np.bool_]:
    """Whether a sorted row is the first of its subtask."""
    new: NDArray[np.bool_] = np.r_[True, (np.diff(operator) != 0) | (np.diff(part) != 0)]
    return new


def _pairs(operator: Ints, part: Ints) -> list[tuple[int, int]]:
    """Distinct (operator, subtask number) of sorted rows."""
    if not len(operator):
        return []
    new = _starts_new(operator, part)
    return list(zip(operator[new].tolist(), part[new].tolist(), strict=True))


def _same(operator: Ints, part: Ints, number: Ints) -> NDArray[np.bool_]:
    """Whether a sorted row speaks of the same checkpoint as the row before it."""
    same: NDArray[np.bool_] = (np.diff(operator) == 0) & (np.diff(part) == 0) & (np.diff(number) == 0)
    return np.r_[False, same] if len(operator) else np.zeros(0, np.bool_)


def _distinct(table: pa.Table, order: Ints, same: NDArray[np.bool_], findings: list[Finding]) -> NDArray[np.bool_]:
    """Which sorted rows stay: one of each group of equal records; none of a group that disagrees."""
    keep = ~same
    firsts = np.flatnonzero(keep)
    sizes = np.diff(np.r_[firsts, len(same)])
    for first, size in zip(firsts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        rows = table.take(order[first : first + size])
        contents = [_content(row) for row in rows.select(CHECKPOINTS.names).to_pylist()]
        if any(content != contents[0] for content in contents):
            keep[first] = False
            subject = f"{contents[0]['operator']}/{contents[0]['subtask']}={contents[0]['checkpoint']}"
            message = f"{len(contents)} records of checkpoint {subject} disagree; none of them is used"
            findings.append(Finding("conflicting-checkpoint", "error", subject, message, _places(rows)))
    return keep


def _content(row: dict[str, Any]) -> dict[str, Any]:
    maps = {name: sorted(row[name] or []) for name in ("sent", "received", "sources")}
    return row | maps | {"subtask": row["subtask"] or 0}


def _places(rows: pa.Table) -> tuple[Where, ...]:
    if "_path" not in rows.column_names:
        return ()
    pairs = zip(rows["_path"].to_pylist(), rows["_offset"].to_pylist(), strict=True)
    return tuple(Where(path, offset) for path, offset in sorted(pairs))


def _numbered(entries: tuple[Ints, Ints, list[str], Ints], good: dict[str, Channel], place: Ints) -> Watermarks:
    """Entries with channels numbered as in `good` (-1: no channel's name), rows as in `place` (-1: left out)."""
    row, code, names, value = entries
    index = {name: i for i, name in enumerate(good)}
    to = np.array([index.get(name, -1) for name in names] or [0], np.int64)
    row, channel = place[row], to[code] if len(code) else code
    if len(row) and row.min() < 0:
        kept = row >= 0
        row, channel, value = row[kept], channel[kept], value[kept]
    return Watermarks(row, channel, value)


def _own_channels(records: CheckpointRecords, misnamed: list[str], index: dict[Subtask, int]) -> CheckpointRecords:
    """Leave out records that speak of channels which are not theirs: they were not written by that subtask."""
    sender = np.array([index[c.sender] for c in records.channels] or [-1], np.int64)
    receiver = np.array([index[c.receiver] for c in records.channels] or [-1], np.int64)
    bad = np.zeros(len(records.number), np.bool_)
    for marks, owner in ((records.sent, sender), (records.received, receiver)):
        foreign = (marks.channel < 0) | (owner[marks.channel] != records.subtask[marks.row])
        bad[marks.row[foreign]] = True
    if not bad.any():
        return records
    rows = records.table.filter(bad)
    first = f"{records.subtasks[records.subtask[np.flatnonzero(bad)[0]]]}={records.number[np.flatnonzero(bad)[0]]}"
    what = f"misnamed channel {misnamed[0]!r}" if misnamed else "a channel of another subtask"
    message = f"{bad.sum()} checkpoint records hold {what}, {first} among them; they are not used"
    finding = Finding("foreign-channel", "error", first, message, _places(rows)[:10])
    return _select(replace(records, findings=(*records.findings, finding)), ~bad)


def _select(records: CheckpointRecords, keep: NDArray[np.bool_]) -> CheckpointRecords:
    to = np.cumsum(keep) - 1
    marks = [
        Watermarks(to[m.row[keep[m.row]]], m.channel[keep[m.row]], m.value[keep[m.row]])
        for m in (records.sent, records.received)
    ]
    return replace(
        records,
        table=records.table.filter(keep),
        subtask=records.subtask[keep],
        number=records.number[keep],
        sent=marks[0],
        received=marks[1],
    )
