"""What each checkpoint stands on, as a delta or in one of its variables, and which marked ones may therefore go now.

US patent 9,471,438: a checkpoint that is to be deleted while a delta depends on it is marked, and stays. One that
nothing depends on is deleted, and with it the checkpoints that it stood on, as far as they are marked. The patent takes
those all at once; where chains branch, or one on the way is not marked, that would take what another still needs, so
here each goes only when nothing is left that stands on it. In a single chain the two agree.
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
        """For each checkpoint the newest of those that stand on it directly and stay themselves; -1: none. Shape (n,).

        One goes that neither `stays` nor has anything on it that stays: it is marked, and deferred (`deletable`).
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
        """What is lost with these checkpoints: they, and all that stand on them, directly or not; shape (n,)."""
        found = lost.copy()
        for child, parent in zip(self.child.tolist(), self.parent.tolist(), strict=True):
            found[child] |= found[parent]
        return found


def links_between(chains: Chains, owner: Ints) -> CheckpointLinks:
    """The links of chains between the checkpoints that own their versions; `owner` of each version, shape (n,)."""
    below = chains.ways.below
    node = np.flatnonzero(below >= 0)
    pairs = np.unique(np.stack([owner[node], owner[below[node]]], 1), axis=0)
    pairs = pairs[pairs[:, 1] < pairs[:, 0]]
    return CheckpointLinks(pairs[:, 0], pairs[:, 1])


def without_flaws(chains: Chains) -> Chains:
    """The same pieces as if all could be read: another copy may be found of what cannot."""
    return chains_of(_unflawed(chains.table))


def links_of(records: CheckpointRecords) -> CheckpointLinks:
    """The links between checkpoint records, incomplete and broken ones too: a missing link may be found again."""
    pieces = record_pieces(records, False)
    chains = chains_of(_unflawed(pieces.table))
    return links_between(chains, pieces.record[chains.row])


def _unflawed(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("flaw"), "flaw", pa.nulls(len(table), pa.string()))


def floors(owner: Ints, number: Ints, whole: Mask, count: int | None, owners: int) -> Ints:
    """Above which number a checkpoint would be among the `count` newest (None: the newest) if it were whole.

    Parameters
    ----------
    owner, number, whole : of each checkpoint, sorted by owner and number, shape (n,)

    Returns
    -------
    array, shape (owners,) : -1 where fewer are whole
    """
    total = np.bincount(owner[whole], minlength=owners)
    rank = np.cumsum(total)[owner] - np.cumsum(whole)
    at = whole & (rank == (count or 1) - 1)
    found = np.full(owners, -1)
    found[owner[at]] = number[at]
    return found


def deletable(
    nodes: Collection[NodeT], parents: Mapping[NodeT, Iterable[NodeT]], marked: Collection[NodeT]
) -> set[NodeT]:
    """The marked nodes on which, directly or over others, only marked nodes stand.

    Parameters
    ----------
    nodes : what is stored, n of it
    parents : what each node stands on, m links in all; a parent that is not among `nodes` is gone already
    marked : what is to be deleted; what is not among `nodes` is no matter

    Notes
    -----
    Nodes are taken away one by one, those first on which nothing stands: O(n + m). So nodes that stand on each other
    in a circle, which only damage can write, stay.

    Examples
    --------
    >>> sorted(deletable([1, 2, 3, 4], {2: [1], 3: [2], 4: [3]}, {1, 2}))  # 3 and 4 still need them
    []
    >>> sorted(deletable([1, 2, 3, 4], {2: [1], 3: [2], 4: [3]}, {1, 3, 4}))  # 1 stays for 2
    [3, 4]
    """
    stored, wanted = set(nodes), set(marked)
    standing = dict.fromkeys(stored, 0)
    below = {node: {parent for parent in parents.get(node, ()) if parent in stored} for node in stored}
    for found in below.values():
        for parent in found:
            standing[parent] += 1
    free = [node for node in stored if node in wanted and not standing[node]]
    gone: set[NodeT] = set()
    while free:
        node = free.pop()
        gone.add(node)
        for parent in below[node]:
            standing[parent] -= 1
            if parent in wanted and not standing[parent]:
                free.append(parent)
    return gone
