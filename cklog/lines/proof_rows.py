"""The checkpoint records that a proof of a line looks at: those of the line, and newer ones if none newer may be right.

A record below the line says nothing of it, except where a later one leaves a channel out, whose watermark then goes on
to count, and where a delta stands on it. So a proof of a long history takes what that of a short one does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.model.names import Subtask, parse_channel

_LAST = 16
"""Records of a subtask that are looked at where the line names none of them: the newest."""

_AT_ONCE = 64
"""Records that are looked through at once for the watermark that a channel had below the line."""

_BATCH = 1 << 12

Side = tuple[str, str]
""" "sent" or "received", and the channel."""


class ProofRows(NamedTuple):
    """Records as Python values, one per checkpoint, and the watermarks of channels that the first of them leave out."""

    rows: list[dict[str, Any]]
    before: dict[Side, int]


def rows_to_judge(
    table: pa.Table, line: Mapping[str, int | None], channels: Iterable[str], as_of: int | None, maximal: bool
) -> ProofRows:
    """Return the records that a line is judged by; with `maximal` also those of all checkpoints that are newer.

    Records after `as_of` (ms) are left out.
    """
    groups = _Groups(table, as_of)
    chosen = {name: groups.chosen(name, line.get(name, ""), maximal) for name in groups.names}
    rows = _distinct(table, chosen, as_of)
    first = _first(rows)
    hanging = [name for name, row in first.items() if row["form"] == "delta" and row["parent"] is None]
    whole = {name: groups.rows[name] for name in hanging if len(groups.rows[name]) > len(chosen[name])}
    if whole:  # what a delta stands on was left out: records of one checkpoint that disagree
        rows = _distinct(table, chosen | whole, as_of)
    return ProofRows(rows, _marks_before(groups, rows, channels, as_of))


def _distinct(table: pa.Table, chosen: Mapping[str, Ints], as_of: int | None) -> list[dict[str, Any]]:
    taken = np.sort(np.concatenate([np.zeros(0, np.int64), *chosen.values()]))
    return distinct_rows(table.take(pa.array(taken)).to_batches(_BATCH), as_of)


def _first(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the oldest of some records, by subtask."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = f"{row['operator']}/{row['subtask']}"
        if name not in found or row["checkpoint"] < found[name]["checkpoint"]:
            found[name] = row
    return found


def distinct_rows(batches: Iterable[Any], as_of: int | None) -> list[dict[str, Any]]:
    """Return the checkpoint records of Arrow batches, one per checkpoint, maps as dicts; none where records disagree.

    Records after `as_of` (ms), and those that name a channel which their subtask has no end of, are left out.
    """
    found: dict[tuple[str, int, int], dict[str, Any] | None] = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        if as_of is not None and (row["time"] is None or row["time"] > as_of):
            continue
        row |= {side: dict(row[side] or ()) for side in ("sent", "received", "sources")}
        row |= {"subtask": row["subtask"] or 0, "_path": None, "_offset": None}
        key = (row["operator"], row["subtask"], row["checkpoint"])
        found[key] = row if found.get(key, row) == row else None
    return [row for row in found.values() if row is not None and _names_own_channels(row)]


def _names_own_channels(row: Mapping[str, Any]) -> bool:
    """Return whether a record's subtask sends all channels of `sent` and receives all of `received`."""
    subtask = Subtask(row["operator"], row["subtask"])
    sent, received = map(parse_channel, row["sent"]), map(parse_channel, row["received"])
    sends = all(channel is not None and channel.sender == subtask for channel in sent)
    return sends and all(channel is not None and channel.receiver == subtask for channel in received)


class _Groups:
    """The records of a table by subtask, in the order of their numbers, without their maps."""

    def __init__(self, table: pa.Table, as_of: int | None) -> None:
        self.table = table
        names, group = _owners(table)
        number = _numbers(table["checkpoint"])
        order = np.lexsort((number, group))
        if as_of is not None:
            there = pc.fill_null(pc.less_equal(table["time"], as_of), False).to_numpy()
            order = order[there[order]]
        bounds = np.searchsorted(group[order], np.arange(len(names) + 1))
        self.rows = {name: order[bounds[i] : bounds[i + 1]] for i, name in enumerate(names)}
        self._number, self._parent = number, _numbers(table["parent"], -1)
        self._stands = pc.fill_null(pc.equal(table["form"].cast(pa.string()), "delta"), False).to_numpy()
        self._parts = pc.is_valid(table["variables"]).to_numpy()

    @property
    def names(self) -> Collection[str]:
        """The subtasks, as the line calls them."""
        return self.rows.keys()

    def chosen(self, name: str, at: int | str | None, maximal: bool) -> Ints:
        """Return the rows of a subtask whose checkpoint in the line is `at`; None: its current state, "": none."""
        rows = self.rows[name]
        numbers = self._number[rows]
        if not isinstance(at, int) or (at != 0 and not (numbers == at).any()):
            low, high = max(len(rows) - _LAST, 0), len(rows)
        else:
            low = int(np.searchsorted(numbers, at, "left"))
            high = len(rows) if maximal else int(np.searchsorted(numbers, at, "right"))
        return rows[self._with_chains(rows, numbers, low, high) : high]

    def _with_chains(self, rows: Ints, numbers: Ints, low: int, high: int) -> int:
        """Return where the rows begin that those from `low` on stand on, deltas on a parent or on the one before."""
        checked = high
        while low < checked:
            part = rows[low:checked]
            checked = low
            if self._parts[part].any():  # what variables stand on is in their JSON
                return 0
            for i in np.flatnonzero(self._stands[part]).tolist():
                parent = int(self._parent[part[i]])
                on = int(np.searchsorted(numbers, parent, "left")) if parent >= 0 else checked + i - 1
                low = max(min(low, on), 0)
            if low:  # records of one checkpoint stay together
                low = int(np.searchsorted(numbers, numbers[low], "left"))
        return low

    def below(self, name: str, number: int) -> Iterator[pa.Table]:
        """Yield the records of a subtask that are older than a checkpoint, newest first, some at once."""
        rows = self.rows[name]
        numbers = self._number[rows]
        high = int(np.searchsorted(numbers, number, "left"))
        while high:
            low = int(np.searchsorted(numbers, numbers[max(high - _AT_ONCE, 0)], "left"))
            yield self.table.take(pa.array(rows[low:high]))
            high = low


def _owners(table: pa.Table) -> tuple[list[str], Ints]:
    """Return the names of all subtasks, and which of them each record is of, shape (rows,)."""
    operators = table["operator"].combine_chunks().cast(pa.string()).dictionary_encode()
    if isinstance(operators, pa.ChunkedArray):
        operators = operators.combine_chunks()
    subtasks, subtask = np.unique(_numbers(table["subtask"]), return_inverse=True)
    pairs = operators.indices.to_numpy().astype(np.int64) * max(len(subtasks), 1) + subtask
    known, group = np.unique(pairs, return_inverse=True)
    words = operators.dictionary.to_pylist()
    names = [f"{words[pair // len(subtasks)]}/{subtasks[pair % len(subtasks)]}" for pair in known.tolist()]
    return names, group


def _numbers(column: pa.ChunkedArray, absent: int = 0) -> Ints:
    found: Ints = pc.fill_null(column, absent).to_numpy().astype(np.int64, copy=False)
    return found


def _marks_before(
    groups: _Groups, rows: Iterable[dict[str, Any]], channels: Iterable[str], as_of: int | None
) -> dict[Side, int]:
    """Return what the last record below says of each channel that the first record of its subtask leaves out."""
    first = _first(row for row in rows if row["checkpoint"] != 0)
    silent: dict[str, set[Side]] = {}
    for name in channels:
        channel = parse_channel(name)
        for side, end in (("sent", channel.sender), ("received", channel.receiver)) if channel else ():
            row = first.get(str(end))
            if row is not None and row[side].get(name) is None:
                silent.setdefault(str(end), set()).add((side, name))
    found: dict[Side, int] = {}
    for owner, wanted in silent.items():
        for part in groups.below(owner, first[owner]["checkpoint"]) if owner in groups.names else ():
            for row in sorted(distinct_rows(part.to_batches(), as_of), key=lambda row: -row["checkpoint"]):
                told = {one: row[one[0]].get(one[1]) for one in wanted}
                found |= {one: value for one, value in told.items() if value is not None}
                wanted -= found.keys()
            if not wanted:
                break
    return found
