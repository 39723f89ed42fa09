"""Chains of base and delta checkpoints: what each can still restore, from which pieces, and where its first link fails.

A version of a chain can be restored by an intact base, else by an intact delta whose parent can be restored. Parents
are older than their deltas, so every chain is a forest over its versions, and each version has one way down to the
base that it needs (US patent 9,471,438: a delta is merged with the deltas before it and their base). All ways are
followed at once, by pointer doubling: O(pieces · log longest way).

Which chains must be restored together, a parser says in `restored_together`:

run       all chains of the run go back to one version, which every one of them must hold (Spark's state stores)
subtask   all chains of a subtask go back to one version; only those that have it count, because variables come and go
          (native records, a patent store). For a variable that is named but not there, there must be a flawed piece
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints, Mask
from cklog.chains.build import build_chains, ranks
from cklog.chains.ways import Ways, ways
from cklog.inputs.pieces import ChainName, Together
from cklog.model.findings import Finding

_GONE = "is not there"


class Link(NamedTuple):
    """The link at which a way down fails.

    Attributes
    ----------
    version : the version that cannot be read; None if nothing says which one it is (the chain begins with a delta that
        names no parent)
    row : of the table, its piece; None if it has none
    flaw : why it cannot be read
    needed_by : the version that stands on it; None if it is itself the one asked for
    """

    version: int | None
    row: int | None
    flaw: str
    needed_by: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """c chains with n versions in all, sorted by (chain, version).

    Attributes
    ----------
    table : the pieces, rows of `PIECES`
    names : c names, sorted
    first : where the versions of each chain begin in the arrays, shape (c + 1,)
    version : the number of each version, shape (n,); its index is called a node
    row : of the table, the piece that a restart reads for it; where none is intact, one that is not, shape (n,)
    restorable : whether it can be restored, shape (n,)
    ways : the way of each node down to its base
    node_of : the node that each piece is of, by row of the table, shape (p,)
    unused : why a piece is left out although it names no flaw of its own, by row of the table
    findings : what is wrong with the pieces themselves
    """

    table: pa.Table
    names: tuple[ChainName, ...]
    first: Ints
    version: Ints
    row: Ints
    restorable: Mask
    ways: Ways
    node_of: Ints
    unused: dict[int, str]
    findings: tuple[Finding, ...]

    @property
    def chain(self) -> Ints:
        """The chain of each version, shape (n,)."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.first))

    def chain_named(self, name: tuple[str, int, str]) -> int | None:
        """Return the chain of this (operator, subtask, store), or None if there is none."""
        at = bisect_left(self.names, name)
        return at if at < len(self.names) and self.names[at] == name else None

    def node(self, chain: int, version: int) -> int | None:
        """Return the node of a version, or None if the chain does not have it."""
        start, end = int(self.first[chain]), int(self.first[chain + 1])
        at = start + int(np.searchsorted(self.version[start:end], version))
        return at if at < end and self.version[at] == version else None

    def can_restore(self, chain: int, version: int) -> bool:
        """Say whether the chain has this version and can restore it."""
        node = self.node(chain, version)
        return node is not None and bool(self.restorable[node])

    def reading(self, chain: int, version: int) -> list[int]:
        """Return the rows of `table` that restore a version, the base first; [] if it cannot be restored."""
        node = self.node(chain, version)
        if node is None or not self.restorable[node]:
            return []
        found = [int(self.row[node])]
        while (node := int(self.ways.below[node])) >= 0:
            found.append(int(self.row[node]))
        return found[::-1]

    def why_not(self, chain: int, version: int) -> Link | None:
        """Return the first link at which the way down from a version fails, or None if it can be restored."""
        node = self.node(chain, version)
        if node is None:
            return Link(version, None, _GONE, None)
        if self.restorable[node]:
            return None
        end = int(self.ways.end[node])
        row = int(self.row[end])
        flaw, here = self.flaw(row), int(self.version[end])
        if flaw is None:
            return Link(self.parent(row), None, _GONE, here)
        return Link(here, row, flaw, None if end == node else self._above(node, end))

    def _above(self, node: int, end: int) -> int:
        """Return the version that stands on `end`, on the way down from `node`."""
        while (below := int(self.ways.below[node])) != end:
            node = below
        return int(self.version[node])

    def parent(self, row: int) -> int | None:
        """Return the version that a delta stands on: the one that it names, else the one before it in its chain."""
        named: int | None = self.table["parent"][row].as_py()
        node = int(self.node_of[row])
        if named is not None or node in self.first:
            return named
        return int(self.version[node - 1])

    def flaw(self, row: int) -> str | None:
        """Return why a piece is not read, or None if it is intact."""
        stated: str | None = self.table["flaw"][row].as_py()
        return self.unused.get(row) if stated is None else stated

    def newest(self, chain: int) -> int | None:
        """Return the newest version of a chain that can be restored, or None."""
        node = int(self.newest_nodes[chain])
        return int(self.version[node]) if node >= 0 else None

    @property
    def newest_nodes(self) -> Ints:
        """The node of the newest restorable version of each chain, -1 for none; shape (c,)."""
        return self.last(self.restorable)

    def last(self, which: Mask) -> Ints:
        """Return the last node of each chain at which `which` (n,) is True, -1 for none; shape (c,).

        E.g. chains of 2 and 1 nodes and `which` [True, False, False] give [0, -1].
        """
        last = np.r_[-1, np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))]
        node = last[self.first[1:]]
        return np.where(node >= self.first[:-1], node, -1)

    def common(self, together: Together) -> list[int | None]:
        """Return for each chain the newest version that all chains restored together with it can restore, or None."""
        group = self._groups(together)
        members = np.bincount(group)[group]
        node = self.newest_nodes.copy()
        shared = members > 1
        if shared.any():
            node[shared] = self._common_nodes(group, shared, every=together == "run")[shared]
        return [int(self.version[i]) if i >= 0 else None for i in node.tolist()]

    def _common_nodes(self, group: Ints, shared: Mask, every: bool) -> Ints:
        """Return for each chain a node of the newest version that its whole group can restore, -1 for none; shape (c,).

        Versions are counted: one is good if as many chains can restore it as must. E.g. of two chains with versions
        1, 2 and 1, 2, 3, all intact, version 2 is the newest that both have, and 3 the newest that those restore that
        have it.

        Parameters
        ----------
        group : the number of each chain's group, shape (c,)
        shared : the chains that are in groups of several, shape (c,); the others are not looked at
        every : all chains of the group must be able to restore it; else those that have it
        """
        counts = np.diff(self.first)
        nodes = np.flatnonzero(np.repeat(shared, counts))
        owner = np.repeat(group[shared], counts[shared])  # the group of each of these nodes
        rank, versions = ranks(self.version[nodes])
        key, distinct = ranks(owner * len(versions) + rank)  # one key for each version of a group
        held = np.bincount(key, minlength=len(distinct))  # chains that have it
        able = np.bincount(key[self.restorable[nodes]], minlength=len(distinct))  # chains that can restore it
        whose = distinct // len(versions)  # its group
        good = (able == (np.bincount(group)[whose] if every else held))[key]
        newest = np.full(int(group.max()) + 1, -1, np.int64)
        order = np.argsort(rank[good], kind="stable")
        newest[owner[good][order]] = nodes[good][order]  # of those of one group the last one, the newest, stays
        return newest[group]

    def _groups(self, together: Together) -> Ints:
        """Number the groups of chains that are restored together from 0, and return that of each chain; shape (c,)."""
        if together == "run":
            return np.zeros(len(self.names), np.int64)
        owners = [name[:2] for name in self.names]
        return np.cumsum([i > 0 and owners[i] != owners[i - 1] for i in range(len(owners))]).astype(np.int64)


def chains_of(table: pa.Table) -> Chains:
    """Order the pieces and follow every chain; `table` holds rows of `PIECES`, in any order."""
    built = build_chains(table)
    found = ways(built.below)
    return Chains(
        table=table,
        names=tuple(ChainName(*name) for name in built.names),
        first=built.first,
        version=built.version,
        row=built.row,
        restorable=built.restores[found.end],
        ways=found,
        node_of=built.node,
        unused=built.unused,
        findings=built.findings,
    )
