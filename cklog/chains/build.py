"""From pieces in any order to the versions of chains: which piece stands for each, and what it stands on.

Of several pieces for one version the intact base counts first, then the intact delta. Two intact pieces of one form
that disagree are not used, nor is a delta whose parent is not older than itself: a link that is followed leads back,
so no cycle is ever walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import codes, holds, integers, true_rows
from cklog.arrays.types import Ints, Mask
from cklog.chains.flaws import PieceRows, bad_parents, bad_sizes, conflicts
from cklog.model.findings import Finding

LARGEST = 1 << 53
"""Bytes, or microseconds, above which a piece is not believed."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltChains:
    """n versions of c chains: arrays as in `cklog.chains.restorable.Chains`.

    `below` is the node that a version stands on, -1: none, or it needs none; `restores`: it needs none, shape (n,)
    each; `node`: of each piece, by row. `unused`: pieces that are left out although they name no flaw, by row: why.
    """

    names: list[tuple[str, int, str]]
    first: Ints
    version: Ints
    row: Ints
    below: Ints
    restores: Mask
    node: Ints
    unused: dict[int, str]
    findings: tuple[Finding, ...]


def ranks(values: Ints) -> tuple[Ints, Ints]:
    """Each value's place among the distinct ones, and those, sorted.

    >>> [found.tolist() for found in ranks(np.array([70, 7, 70]))]
    [[1, 0, 1], [7, 70]]
    """
    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[encoded.indices.to_numpy()], distinct[order]


def piece_sizes(table: pa.Table) -> Ints:
    """Bytes of each piece, -1 where they are not known or not believed."""
    found = integers(table["bytes"], -1)
    return np.where((found < 0) | (found > LARGEST), -1, found)


def piece_microseconds(table: pa.Table) -> Ints:
    """What taking each piece took in µs, -1 where that is not known or not believed."""
    found = 1000 * pc.fill_null(table["duration_ms"], np.nan).to_numpy()
    with np.errstate(invalid="ignore"):
        return np.where((found >= 0) & (found <= LARGEST), np.rint(found), -1).astype(np.int64)


def build_chains(table: pa.Table) -> BuiltChains:
    """Order the pieces (rows of `cklog.inputs.pieces.PIECES`) by chain and version."""
    pieces = _sorted(table)
    named = ~true_rows(pc.is_null(pieces.table["parent"]))
    parent, below = _parents(pieces, named)
    intact = true_rows(pc.is_null(pieces.table["flaw"]))
    younger = np.flatnonzero(pieces.delta & named & (parent >= pieces.version))
    findings = [*bad_sizes(pieces, LARGEST), *bad_parents(pieces, younger, parent)]
    unused = {i: f"stands on {parent[i]}, which is not older" for i in younger[intact[younger]].tolist()}
    intact[younger] = False
    if len(pieces.heads) < len(pieces.node):
        rows = _disagreeing(pieces, intact, parent)
        findings += conflicts(pieces, rows)
        unused |= dict.fromkeys(rows.tolist(), "disagrees with another piece of the same version and form")
        intact[rows] = False
    row = _chosen(pieces, intact)
    chain = pieces.chain[pieces.heads]
    node = np.empty(len(pieces.node), np.int64)
    node[pieces.order] = pieces.node
    return BuiltChains(
        names=pieces.names,
        first=np.searchsorted(chain, np.arange(len(pieces.names) + 1)),
        version=pieces.version[pieces.heads],
        row=pieces.order[row],
        below=np.where(intact[row] & pieces.delta[row], below[row], -1),
        restores=intact[row] & ~pieces.delta[row],
        node=node,
        unused={int(pieces.order[i]): why for i, why in unused.items()},
        findings=tuple(findings),
    )


def _sorted(table: pa.Table) -> PieceRows:
    chain, names = _chain_codes(table)
    rank, versions = ranks(integers(table["version"], -1))
    key = chain * max(len(versions), 1) + rank
    order = np.arange(len(key))
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        table, chain, rank, key = table.take(order), chain[order], rank[order], key[order]
    new = np.diff(key, prepend=-1) != 0
    delta = ~holds(table["form"], "base")
    return PieceRows(table, order, names, chain, versions[rank], np.cumsum(new) - 1, np.flatnonzero(new), delta)


def _chain_codes(table: pa.Table) -> tuple[Ints, list[tuple[str, int, str]]]:
    """The chain of each piece, and the name of each chain, sorted.

    Each column splits the chains that the columns before it tell apart; one of a single value splits none.
    """
    chain, operators = codes(table["operator"])
    names: list[tuple[Any, ...]] = [(operator,) for operator in operators]
    subtask, subtasks = ranks(integers(table["subtask"], -1))
    store, stores = codes(table["store"])
    parts: tuple[tuple[Ints, Sequence[Any]], ...] = ((subtask, subtasks.tolist()), (store, stores))
    for code, values in parts:
        if len(values) == 1:
            names = [(*name, values[0]) for name in names]
            continue
        chain, found = ranks(chain * max(len(values), 1) + code)
        before, own = np.divmod(found, max(len(values), 1))
        names = [(*names[i], values[k]) for i, k in zip(before.tolist(), own.tolist(), strict=True)]
    used = np.flatnonzero(np.bincount(chain, minlength=len(names)))
    if len(used) < len(names):  # a dictionary may hold words that no piece uses
        chain, names = np.searchsorted(used, chain), [names[i] for i in used.tolist()]
    return chain, [(operator, number, name) for operator, number, name in names]


def _parents(pieces: PieceRows, named: Mask) -> tuple[Ints, Ints]:
    """The version that each delta stands on, by name or as the one before it, and its node; -1: there is none."""
    chain, version = pieces.chain[pieces.heads], pieces.version[pieces.heads]
    same = np.diff(chain, prepend=-1) == 0  # whether the node before is of the same chain
    of_before = np.where(same, np.r_[-1, version[:-1]], -1)
    before = np.where(same, np.arange(len(version)) - 1, -1)
    if len(pieces.heads) < len(pieces.node):
        of_before, before = of_before[pieces.node], before[pieces.node]
    parent = integers(pieces.table["parent"], -1)
    if not named.all():
        parent = np.where(named, parent, of_before)
    below = np.where(pieces.delta & (of_before == parent), before, -1)
    far = np.flatnonzero(pieces.delta & named & (below < 0) & (parent < pieces.version))
    if len(far):
        below[far] = _nodes(pieces, pieces.chain[far], parent[far])
    return parent, below


def _nodes(pieces: PieceRows, chain: Ints, version: Ints) -> Ints:
    """Where these versions of these chains stand, -1: nowhere."""
    distinct = np.unique(np.r_[pieces.version[pieces.heads], version])
    keys = pieces.chain[pieces.heads] * len(distinct) + np.searchsorted(distinct, pieces.version[pieces.heads])
    key = chain * len(distinct) + np.searchsorted(distinct, version)
    at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[at] == key, at, -1) if len(keys) else key


def _disagreeing(pieces: PieceRows, intact: Mask, parent: Ints) -> Ints:
    """Intact pieces of one version and form that do not say the same of parent and size, all of them."""
    rows = np.flatnonzero(intact)
    group = 2 * pieces.node[rows] + pieces.delta[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    which = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(rows)]))
    first = rows[starts][which]
    size = integers(pieces.table["bytes"], -1)
    other = (size[rows] != size[first]) | (pieces.delta[rows] & (parent[rows] != parent[first]))
    bad: Ints = np.sort(rows[np.isin(which, which[other])])
    return bad


def _chosen(pieces: PieceRows, intact: Mask) -> Ints:
    """The piece that stands for each version: an intact base, an intact delta, else one that is not intact.

    Of equals it is the one whose path comes first, so that the order of the pieces does not matter.
    """
    if len(pieces.heads) == len(pieces.node):
        return pieces.heads
    choice = 4 * pieces.node + 2 * ~intact + pieces.delta
    several = np.flatnonzero(np.bincount(pieces.node)[pieces.node] > 1)
    path = np.zeros(len(choice), np.int64)
    path[several] = codes(pieces.table["path"].take(several))[0]
    order = np.lexsort((path, choice))
    return order[pieces.heads]
