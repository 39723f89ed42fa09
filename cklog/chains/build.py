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

from cklog.arrays.columns import arrow_integers, codes, holds, integers, true_rows
from cklog.arrays.types import Ints, Mask
from cklog.chains.flaws import PieceRows, bad_parents, bad_sizes, conflicts
from cklog.model.findings import Finding

LARGEST = 1 << 53
"""Bytes, or microseconds, above which a piece is not believed."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltChains:
    """n versions (nodes) of c chains; `names`, `first`, `version` and `row` as in `cklog.chains.restorable.Chains`.

    Attributes
    ----------
    below : the node that each version stands on, -1 if there is none or an intact base needs none, shape (n,)
    restores : whether an intact base stands for the version, shape (n,)
    node : the node of each piece, by row of the table, shape (p,)
    unused : why a piece is left out although it names no flaw, by row of the table
    findings : what is wrong with the pieces themselves
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
    """Return each value's place among the distinct values, and the distinct values, sorted.

    >>> [found.tolist() for found in ranks(np.array([70, 7, 70]))]
    [[1, 0, 1], [7, 70]]
    """
    encoded = arrow_integers(np.ascontiguousarray(values)).dictionary_encode()  # pa.array imports numpy.ma: it is slow
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[encoded.indices.to_numpy()], distinct[order]


def piece_sizes(table: pa.Table) -> Ints:
    """Return the bytes of each piece, -1 where they are not known or not believed."""
    found = integers(table["bytes"], -1)
    return np.where((found < 0) | (found > LARGEST), -1, found)


def piece_microseconds(table: pa.Table) -> Ints:
    """Return how long each piece took to be stored, in µs, -1 where that is not known or not believed."""
    found = 1000 * pc.fill_null(table["duration_ms"], np.nan).to_numpy()
    with np.errstate(invalid="ignore"):
        return np.where((found >= 0) & (found <= LARGEST), np.rint(found), -1).astype(np.int64)


def build_chains(table: pa.Table) -> BuiltChains:
    """Order the pieces (rows of `cklog.inputs.pieces.PIECES`) by chain and version, and choose one for each version."""
    pieces = _sorted_pieces(table)
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
    row = _chosen_pieces(pieces, intact)
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


def _sorted_pieces(table: pa.Table) -> PieceRows:
    """Put the pieces in the order of their chains and versions, and number the distinct versions."""
    chain, names = _chain_codes(table)
    rank, versions = ranks(integers(table["version"], -1))
    key = chain * max(len(versions), 1) + rank  # chain and version of each piece as one number
    order = np.arange(len(key))
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        table, chain, rank, key = table.take(order), chain[order], rank[order], key[order]
    new = np.diff(key, prepend=-1) != 0
    delta = ~holds(table["form"], "base")
    return PieceRows(
        table=table,
        order=order,
        names=names,
        chain=chain,
        version=versions[rank],
        node=np.cumsum(new) - 1,
        heads=np.flatnonzero(new),
        delta=delta,
    )


def _chain_codes(table: pa.Table) -> tuple[Ints, list[tuple[str, int, str]]]:
    """Return the chain of each piece, shape (p,), and the name of each chain, sorted.

    Each column splits the chains that the columns before it tell apart; one of a single value splits none. E.g. pieces
    of (a, 0, ""), (b, 1, ""), (a, 1, ""): operators give chains [0, 1, 0], and with the subtasks they are [0, 2, 1].
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
    """Return the version that each delta stands on, and the node of that version; -1: there is none. Shape (p,) each.

    A delta stands on the version that it names (`named`), else on the one before it in its chain: versions 3, 5, 6 of
    which 6 names 3 have the parents -1, 3, 3, which are nodes -1, 0, 0.
    """
    chain, version = pieces.chain[pieces.heads], pieces.version[pieces.heads]
    same = np.diff(chain, prepend=-1) == 0  # whether the node before is of the same chain
    of_before = np.where(same, np.r_[-1, version[:-1]], -1)  # the version of the node before, shape (n,)
    before = np.where(same, np.arange(len(version)) - 1, -1)  # that node, shape (n,)
    if len(pieces.heads) < len(pieces.node):  # several pieces of one version: from nodes to pieces, shape (p,)
        of_before, before = of_before[pieces.node], before[pieces.node]
    parent = integers(pieces.table["parent"], -1)
    if not named.all():
        parent = np.where(named, parent, of_before)
    below = np.where(pieces.delta & (of_before == parent), before, -1)  # nearly all of them: no search is needed
    far = np.flatnonzero(pieces.delta & named & (below < 0) & (parent < pieces.version))
    if len(far):
        below[far] = _nodes_of(pieces, pieces.chain[far], parent[far])
    return parent, below


def _nodes_of(pieces: PieceRows, chain: Ints, version: Ints) -> Ints:
    """Return the nodes of (chain, version) pairs, -1 where there is no such version; shapes (k,)."""
    distinct = np.unique(np.r_[pieces.version[pieces.heads], version])
    keys = pieces.chain[pieces.heads] * len(distinct) + np.searchsorted(distinct, pieces.version[pieces.heads])
    key = chain * len(distinct) + np.searchsorted(distinct, version)
    at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[at] == key, at, -1) if len(keys) else key


def _disagreeing(pieces: PieceRows, intact: Mask, parent: Ints) -> Ints:
    """Return the rows of all intact pieces that differ in parent or size from another of their version and form.

    Pieces are compared with the first of their group: if one differs from it, all of the group disagree.
    """
    rows = np.flatnonzero(intact)
    group = 2 * pieces.node[rows] + pieces.delta[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    which = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(rows)]))  # e.g. groups 4, 4, 7 → 0, 0, 1
    first = rows[starts][which]
    size = integers(pieces.table["bytes"], -1)
    other = (size[rows] != size[first]) | (pieces.delta[rows] & (parent[rows] != parent[first]))
    bad: Ints = np.sort(rows[np.isin(which, which[other])])
    return bad


def _chosen_pieces(pieces: PieceRows, intact: Mask) -> Ints:
    """Return the piece that stands for each version: an intact base, an intact delta, else one that is not intact.

    Of equals it is the one whose path comes first, so that the order of the pieces does not matter.
    """
    if len(pieces.heads) == len(pieces.node):
        return pieces.heads
    choice = 4 * pieces.node + 2 * ~intact + pieces.delta  # within a node: intact base 0, intact delta 1, else 2, 3
    several = np.flatnonzero(np.bincount(pieces.node)[pieces.node] > 1)
    path = np.zeros(len(choice), np.int64)
    path[several] = codes(pieces.table["path"].take(several))[0]
    order = np.lexsort((path, choice))
    return order[pieces.heads]  # nodes stay where they were: at each head now stands the best piece of its node
