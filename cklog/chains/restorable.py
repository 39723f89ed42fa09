"""Chains of base and delta checkpoints: what of them can still be restored, from what, and where the first link fails.

A version of a chain can be restored by an intact base, else by an intact delta whose parent can be restored. Parents
are older than their deltas, so every chain is a forest over its versions, and each version has one way down to the
base that it rests on (US patent 9,471,438: a delta is merged with the deltas before it and their base). All ways are
followed at once, by pointer doubling: O(pieces · log longest way).

What chains must be restored together, a parser says in `restored_together`:

run       all chains of the run go back to one version, which every one of them must hold (Spark's state stores)
subtask   all chains of a subtask, of which a version counts those that it names: variables come and go (native
          records, a patent store). Whoever makes the pieces gives one with a flaw for what is named but not there
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints, Mask
from cklog.chains.build import build_chains, ranks
from cklog.chains.ways import Ways, ways
from cklog.inputs.pieces import ChainName, Together
from cklog.model.findings import Finding

_GONE = "is not there"


@dataclass(frozen=True, slots=True)
class Link:
    """The link at which a way down fails: `row` of the piece that cannot be read for a `flaw`, None: none is there.

    `needed_by`: the version that stands on it, None: the one asked for is not there itself. `version` None: the first
    delta of a chain says nothing of its parent.
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
    first : where the versions of each chain begin, shape (c + 1,)
    version : shape (n,)
    row : the piece that a restart reads for it; where none is intact, one that is not, shape (n,)
    restorable : shape (n,)
    ways : where each version's way down ends, over n nodes
    node_of : the version that each piece is of, by row of the table, shape (p,)
    unused : pieces that are left out although they name no flaw of their own, by row: why
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
        """The chain of this (operator, subtask, store); None if there is none."""
        at = bisect_left(self.names, name)
        return at if at < len(self.names) and self.names[at] == name else None

    def node(self, chain: int, version: int) -> int | None:
        """Where a version stands in the arrays; None if the chain does not have it."""
        start, end = int(self.first[chain]), int(self.first[chain + 1])
        at = start + int(np.searchsorted(self.version[start:end], version))
        return at if at < end and self.version[at] == version else None

    def can_restore(self, chain: int, version: int) -> bool:
        """Whether the chain has this version, and can restore it."""
        node = self.node(chain, version)
        return node is not None and bool(self.restorable[node])

    def reading(self, chain: int, version: int) -> list[int]:
        """Rows of `table` that restore a version, in reading order: the base first; [] if it cannot be restored."""
        node = self.node(chain, version)
        if node is None or not self.restorable[node]:
            return []
        found = [int(self.row[node])]
        while (node := int(self.ways.below[node])) >= 0:
            found.append(int(self.row[node]))
        return found[::-1]

    def why_not(self, chain: int, version: int) -> Link | None:
        """The link nearest to a version at which its way down fails; None if it can be restored."""
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
        """The version that stands on `end`, on the way down from `node`."""
        while (below := int(self.ways.below[node])) != end:
            node = below
        return int(self.version[node])

    def parent(self, row: int) -> int | None:
        """The version that a delta stands on: the one that it names, else the one before it in its chain."""
        named: int | None = self.table["parent"][row].as_py()
        node = int(self.node_of[row])
        if named is not None or node in self.first:
            return named
        return int(self.version[node - 1])

    def flaw(self, row: int) -> str | None:
        """Why a piece is not read; None: it is intact."""
        stated: str | None = self.table["flaw"][row].as_py()
        return self.unused.get(row) if stated is None else stated

    def newest(self, chain: int) -> int | None:
        """The newest version of a chain that can be restored; None: none can."""
        node = int(self.newest_nodes[chain])
        return int(self.version[node]) if node >= 0 else None

    @property
    def newest_nodes(self) -> Ints:
        """Where the newest restorable version of each chain stands, -1 for none; shape (c,)."""
        return self.last(self.restorable)

    def last(self, which: Mask) -> Ints:
        """The last of each chain's nodes of which `which` holds, -1 for none; shape (c,)."""
        last = np.r_[-1, np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))]
        node = last[self.first[1:]]
        return np.where(node >= self.first[:-1], node, -1)

    def common(self, together: Together) -> list[int | None]:
        """The newest version that all chains that must be restored together can restore, for each chain."""
        group = self._groups(together)
        members = np.bincount(group)[group]
        node = self.newest_nodes.copy()
        shared = members > 1
        if shared.any():
            node[shared] = self._common_nodes(group, shared, every=together == "run")[shared]
        return [int(self.version[i]) if i >= 0 else None for i in node.tolist()]

    def _common_nodes(self, group: Ints, shared: Mask, every: bool) -> Ints:
        """A node of the newest version that a whole group can restore, for each of its chains; -1 for none.

        `every` chain of the group must have it; else those that do. `shared`: chains that are in groups of several.
        """
        counts = np.diff(self.first)
        nodes = np.flatnonzero(np.repeat(shared, counts))
        owner = np.repeat(group[shared], counts[shared])
        rank, versions = ranks(self.version[nodes])
        key, distinct = ranks(owner * len(versions) + rank)
        held = np.bincount(key, minlength=len(distinct))
        able = np.bincount(key[self.restorable[nodes]], minlength=len(distinct))
        whose = distinct // len(versions)
        good = (able == (np.bincount(group)[whose] if every else held))[key]
        newest = np.full(int(group.max()) + 1, -1, np.int64)
        order = np.argsort(rank[good], kind="stable")
        newest[owner[good][order]] = nodes[good][order]  # of one group's the last one stays
        return newest[group]

    def _groups(self, together: Together) -> Ints:
        """Which chains are restored together, numbered from 0; shape (c,)."""
        if together == "run":
            return np.zeros(len(self.names), np.int64)
        owners = [name[:2] for name in self.names]
        return np.cumsum([i > 0 and owners[i] != owners[i - 1] for i in range(len(owners))]).astype(np.int64)


def chains_of(table: pa.Table) -> Chains:
    """Order the pieces and follow every chain; `table` holds rows of `PIECES`, in any order."""
    built = build_chains(table)
    found = ways(built.below)
    return Chains(
        table,
        tuple(ChainName(*name) for name in built.names),
        built.first,
        built.version,
        built.row,
        built.restores[found.end],
        found,
        built.node,
        built.unused,
        built.findings,
    )
