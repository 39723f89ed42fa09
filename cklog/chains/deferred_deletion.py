"""Deletion of checkpoints that others stand on, deferred: which of the marked ones can go now.

US patent 9,471,438: a checkpoint that is to be deleted while a delta depends on it is marked, and stays. One that
nothing depends on is deleted, and with it the checkpoints that it stood on, as far as they are marked. The patent takes
those all at once; where chains branch, or one on the way is not marked, that would take what another still needs, so
here each goes only when nothing is left that stands on it. In a single chain the two agree.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=Hashable)


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
