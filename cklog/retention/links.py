"""Links between checkpoints that are deltas, as a whole or in one of their variables, and what may go because of them.

US patent 9,471,438: a checkpoint that is to be deleted while a delta depends on it is marked, and stays. One that
nothing depends on is deleted, and with it the checkpoints that it was a delta on, as far as they are marked. The patent
takes those all at once; where chains branch, or one on the way is not marked, that would take what another still needs,
so here each goes only when no delta on it is left. In a single chain the two agree.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from cklog.arrays.types import Ints, Mask
from cklog.chains.restorable import Chains, chains_of
from cklog.history.pieces import record_pieces
from cklog.history.records import CheckpointRecords

NodeT = TypeVar("NodeT", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointLinks:
    """Checkpoint `child[e]` is a delta on checkpoint `parent[e]`, which is older; sorted by child, then by parent."""

    child: Ints
    parent: Ints

    def kept_by(self, stays: Mask) -> Ints:
        """Return for each checkpoint the newest one that is a delta on it and stays itself; -1: none. Shape (n,).

        A checkpoint goes if neither it `stays`, shape (n,), nor anything that is a delta on it, directly or not: it
        is marked, and its deletion deferred (`deletable`).

        >>> links = CheckpointLinks(child=np.array([1, 2]), parent=np.array([0, 1]))
        >>> links.kept_by(np.array([False, False, True])).tolist()
        [1, 2, -1]
        """
        parents: dict[int, list[int]] = {}
        pairs = list(zip(self.child.tolist(), self.parent.tolist(), strict=True))
        for child, parent in pairs:
            parents.setdefault(child, []).append(parent)
        linked = np.unique(np.r_[self.child, self.parent]).tolist()
        gone = deletable(linked, parents, [node for node in linked if not stays[node]])
        found = np.full(len(stays), -1)
        for child, parent in pairs:  # the newest child comes last
            if child not in gone:
                found[parent] = child
        return found

    def resting_on(self, lost: Mask) -> Mask:
        """Return what is lost with `lost` checkpoints: they, and all deltas on them, directly or not; shape (n,).

        >>> CheckpointLinks(child=np.array([1, 2]), parent=np.array([0, 1])).resting_on(np.array([False, True, False]))
        array([False,  True,  True])
        """
        found = lost.copy()
        for child, parent in zip(self.child.tolist(), self.parent.tolist(), strict=True):
            found[child] |= found[parent]  # by child, and parents are older: they are decided before
        return found


def links_between(chains: Chains, owner: Ints) -> CheckpointLinks:
    """Return the links of chains between the checkpoints that own their versions (`owner` of each, shape (n,))."""
    below = chains.ways.below  # the version that each is a delta on, -1: none; shape (n,)
    node = np.flatnonzero(below >= 0)
    pairs = np.unique(np.stack([owner[node], owner[below[node]]], 1), axis=0)
    pairs = pairs[pairs[:, 1] < pairs[:, 0]]
    return CheckpointLinks(pairs[:, 0], pairs[:, 1])


def without_flaws(chains: Chains) -> Chains:
    """Return the chains as if all pieces could be read: another copy may be found of what cannot."""
    return chains_of(_pieces_without_flaws(chains.table))


def links_of(records: CheckpointRecords) -> CheckpointLinks:
    """Return the links between checkpoint records, incomplete and broken ones too: what is missing may be found."""
    pieces = record_pieces(records, False)
    chains = chains_of(_pieces_without_flaws(pieces.table))
    return links_between(chains, pieces.record[chains.row])


def _pieces_without_flaws(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("flaw"), "flaw", pa.nulls(len(table), pa.string()))


def floors(owner: Ints, number: Ints, whole: Mask, count: int | None, owners: int) -> Ints:
    """Return, by owner, above which number a checkpoint would be among the `count` newest if it were whole.

    Parameters
    ----------
    owner, number, whole : of each checkpoint, sorted by owner and number, shape (n,)
    count : None: 1

    Returns
    -------
    array, shape (owners,) : the number of the `count`-th newest whole one; -1 where fewer are whole

    Examples
    --------
    >>> floors(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 1]), np.array([True, True, True, False]), 2, 2).tolist()
    [2, -1]
    """
    total = np.bincount(owner[whole], minlength=owners)
    rank = np.cumsum(total)[owner] - np.cumsum(whole)  # how many newer ones of the owner are whole
    at = whole & (rank == (count or 1) - 1)
    found = np.full(owners, -1)
    found[owner[at]] = number[at]
    return found


def deletable(
    nodes: Collection[NodeT], parents: Mapping[NodeT, Iterable[NodeT]], marked: Collection[NodeT]
) -> set[NodeT]:
    """Return the marked nodes that only marked nodes depend on, directly or over others.

    Parameters
    ----------
    nodes : what is stored, n of it
    parents : what each node depends on, m links in all; a parent that is not among `nodes` is gone already
    marked : what is to be deleted; what is not among `nodes` is no matter

    Notes
    -----
    Nodes are taken away one by one, those first that nothing depends on: O(n + m). So nodes that depend on each other
    in a circle, which only damage can write, stay.

    Examples
    --------
    >>> sorted(deletable([1, 2, 3, 4], {2: [1], 3: [2], 4: [3]}, {1, 2}))  # 3 and 4 still need them
    []
    >>> sorted(deletable([1, 2, 3, 4], {2: [1], 3: [2], 4: [3]}, {1, 3, 4}))  # 1 stays for 2
    [3, 4]
    """
    stored, wanted = set(nodes), set(marked)
    dependants = dict.fromkeys(stored, 0)
    below = {node: {parent for parent in parents.get(node, ()) if parent in stored} for node in stored}
    for found in below.values():
        for parent in found:
            dependants[parent] += 1
    free = [node for node in stored if node in wanted and not dependants[node]]
    gone: set[NodeT] = set()
    while free:
        node = free.pop()
        gone.add(node)
        for parent in below[node]:
            dependants[parent] -= 1
            if parent in wanted and not dependants[parent]:
                free.append(parent)
    return gone
