"""Findings about pieces of chains by themselves: impossible parents and sizes, pieces that disagree."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.types import Ints
from cklog.inputs.pieces import subject_of
from cklog.model.findings import Finding, Severity, Where, effect_of_error

_LISTED = 40
"""Findings of one kind: the first ones; the last says how many more chains there are."""

_LONGEST = 8
"""Checkpoints of a cycle that are named."""


@dataclass(frozen=True, slots=True, eq=False)
class PieceRows:
    """p pieces sorted by (chain, version), of n different versions (nodes).

    Attributes
    ----------
    table : the pieces in this order
    order : the row that each had in the table that was given, shape (p,)
    names : (operator, subtask, store) of each chain, sorted
    chain, version : of each piece, shape (p,)
    node : its version, numbered from 0 over all chains, shape (p,)
    heads : the first piece of each node, shape (n,)
    delta : whether it is a delta, shape (p,)
    """

    table: pa.Table
    order: Ints
    names: list[tuple[str, int, str]]
    chain: Ints
    version: Ints
    node: Ints
    heads: Ints
    delta: NDArray[np.bool_]


def place_of(path: str, offset: int | None = None) -> tuple[Where, ...]:
    """Return the place that a piece's path names, with its offset, which may stand behind the path.

    >>> place_of("checkpoints/a.jsonl:120"), place_of("")
    ((Where(path='checkpoints/a.jsonl', offset=120),), ())
    """
    if path and offset is not None:
        return (Where(path, offset),)
    before, colon, digits = path.rpartition(":")
    if colon and digits.isascii() and digits.isdigit() and len(digits) < 19 and posixpath.basename(before):
        return (Where(before, int(digits)),)
    return (Where(path),) if path else ()


def place_at(table: pa.Table, row: int) -> tuple[Where, ...]:
    """Return the place of a piece: its path, with the offset from the column `offset` if there is one."""
    offset = table["offset"][row].as_py() if "offset" in table.column_names else None
    return place_of(table["path"][row].as_py(), offset)


def bad_parents(pieces: PieceRows, rows: Ints, parent: Ints) -> Iterator[Finding]:
    """Report deltas (`rows`) that name a parent which is not older than they are; `parent` is that of every piece."""
    named = _NamedParents(pieces, parent)

    def message(row: int, count: int) -> str:
        name = pieces.names[pieces.chain[row]]
        cycle = named.cycle(row)
        lead = f"{subject_of(name, int(pieces.version[row]))} is a delta on {parent[row]}, which is not older"
        more = f"; {count - 1} more deltas of this chain too" if count > 1 else ""
        ring = f": {' on '.join(map(str, cycle))} is a cycle" if cycle else ""
        return f"{lead}{ring}; such a link is not followed{more}"

    return _finding_each_chain(pieces, rows, "bad-parent", "error", message)


class _NamedParents:
    """The parents that deltas name, followed from one to the next."""

    def __init__(self, pieces: PieceRows, parent: Ints) -> None:
        self._pieces, self._parent = pieces, parent

    def cycle(self, row: int) -> list[int]:
        """Return the versions from a row's own along its parents back to itself; [] if they do not lead there soon."""
        own = int(self._pieces.version[row])
        way = [own]
        while len(way) < _LONGEST:
            way.append(int(self._parent[row]))
            if way[-1] == own:
                return way
            found = self._delta_row(int(self._pieces.chain[row]), way[-1])
            if found is None:
                return []
            row = found
        return []

    def _delta_row(self, chain: int, version: int) -> int | None:
        """Return the row of the first piece of a version if that is a delta."""
        start, end = np.searchsorted(self._pieces.chain, [chain, chain + 1]).tolist()
        at = start + int(np.searchsorted(self._pieces.version[start:end], version))
        there = at < end and self._pieces.version[at] == version and self._pieces.delta[at]
        return at if there else None


def bad_sizes(pieces: PieceRows, largest: int) -> Iterator[Finding]:
    """Report sizes and durations that cannot be: negative, no number, or above `largest` (bytes, µs)."""
    size = pc.fill_null(pieces.table["bytes"], 0).to_numpy()
    took = pc.fill_null(pieces.table["duration_ms"], 0.0).to_numpy()
    sized, timed = (size >= 0) & (size <= largest), (took >= 0) & (1000 * took <= largest)

    def message(row: int, count: int) -> str:
        what = f"{size[row]} bytes" if not sized[row] else f"a duration of {took[row]:g} ms"
        subject = subject_of(pieces.names[pieces.chain[row]], int(pieces.version[row]))
        more = f"; {count - 1} more pieces of this chain too" if count > 1 else ""
        return f"{subject} says that it has {what}, which is not believed{more}"

    return _finding_each_chain(pieces, np.flatnonzero(~(sized & timed)), "bad-size", "warning", message)


def conflicts(pieces: PieceRows, rows: Ints) -> Iterator[Finding]:
    """Report pieces (`rows`) of one version and form that say different things."""

    def message(row: int, count: int) -> str:
        subject = subject_of(pieces.names[pieces.chain[row]], int(pieces.version[row]))
        form = "delta" if pieces.delta[row] else "base"
        return f"{count} pieces of this chain, among them the {form} {subject}, disagree; none of them is used"

    return _finding_each_chain(pieces, rows, "conflicting-piece", "error", message)


def _finding_each_chain(
    pieces: PieceRows, rows: Ints, id: str, severity: Severity, message: Callable[[int, int], str]
) -> Iterator[Finding]:
    """Yield one finding for each chain that some of the rows are of, up to a limit.

    `message` makes a sentence of the first of the chain's rows and how many there are.
    """
    effect = effect_of_error(severity, "older-line")
    chains, first, counts = np.unique(pieces.chain[rows], return_index=True, return_counts=True)
    shown = zip(chains[:_LISTED].tolist(), rows[first][:_LISTED].tolist(), counts[:_LISTED].tolist(), strict=True)
    for chain, row, count in shown:
        place, subject = place_at(pieces.table, row), subject_of(pieces.names[chain])
        yield Finding(id, severity, subject, message(row, count), where=place, effect=effect)
    if len(chains) > _LISTED:
        more = f"{len(chains) - _LISTED} more chains"
        yield Finding(id, severity, more, f"the same in {more}", effect=effect)
