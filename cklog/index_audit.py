"""Did a communication-induced protocol keep its promise? Its logged index must rise along every zigzag path.

Two rules, the first of which implies the second. *Along messages* (BCS [1]_): no message is received in an interval
of a lower index than the one it was sent in, and every checkpoint's index is above that of the one before. *Along
zigzag paths* (the property by which HMNR [2]_ and its kin exclude Z-cycles): if a zigzag path leads from checkpoint
A to B, index(A) < index(B). A history without Z-cycles can be numbered in such a way, so an index that breaks both
rules has not been computed as its protocol says, or the log is wrong.

.. [1] D. Briatico, A. Ciuffoletti, L. Simoncini, "A distributed domino-effect free recovery algorithm", SRDS 1984.
.. [2] J.-M. Hélary, A. Mostéfaoui, R. Netzer, M. Raynal, "Communication-based prevention of useless checkpoints in
   distributed computations", Distributed Computing 13(1), 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cklog.errors import SelfCheckFailed
from cklog.history import History, Ints
from cklog.intervals import staircases
from cklog.reaching import greatest_reaching
from cklog.zigzag import Hop, Zigzags


@dataclass(frozen=True, slots=True)
class Breach:
    """A checkpoint `end` (row) whose index is not above that of `start`, though a zigzag path leads there.

    `hops` is a shortest such path; empty if `end` merely follows `start` in its subtask.
    """

    start: int
    end: int
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class IndexAudit:
    """`rule` is the strictest that holds; `falling` counts the non-dominated messages whose index falls.

    `breaches` are one per checkpoint that breaks the rule of zigzag paths, the first ones; `broken` counts them all.
    `by_message` is the first message that breaks the rule of messages.
    """

    rule: Literal["messages", "zigzag paths", "none"]
    messages: int
    falling: int
    by_message: Hop | None
    broken: int
    breaches: tuple[Breach, ...]


def index_audit(history: History, index: Ints, most: int = 10) -> IndexAudit:
    """Hold the index of every row of `history.label` against both rules.

    Parameters
    ----------
    index : shape (first[n],); of current states anything: they are checkpoints of no index
    most : breaches to give a path for

    Notes
    -----
    The first rule takes one scan of the non-dominated messages, the others follow from them; only if it fails is
    the second one looked at: O((rows + pairs) log rows), and a search for each path.
    """
    points = staircases(history)
    sender = history.first[history.src[points.channel]] + points.send
    receiver = history.first[history.dst[points.channel]] + np.maximum(points.receive, 0)
    falling = np.flatnonzero((index[sender] > index[receiver]) & (points.receive >= 0))
    last = history.first[1:] - 1 - history.survivor
    follows = np.setdiff1d(
        np.arange(len(history.label)), np.concatenate([history.first[:-1], last[history.survivor] + 1])
    )
    flat = follows[index[follows] <= index[follows - 1]]
    if not len(falling) and not len(flat):
        return IndexAudit("messages", len(points.send), 0, None, 0, ())
    search = Zigzags(history, points)
    first = search.hop(int(falling[0])) if len(falling) else None
    highest = greatest_reaching(history, points, index)
    broken = follows[highest[follows - 1] >= index[follows]]
    breaches = tuple(_breach(history, search, index, int(row)) for row in broken[:most].tolist())
    rule: Literal["zigzag paths", "none"] = "none" if len(broken) else "zigzag paths"
    return IndexAudit(rule, len(points.send), len(falling), first, len(broken), breaches)


def _breach(history: History, search: Zigzags, index: Ints, row: int) -> Breach:
    """The shortest zigzag path to `row` from a checkpoint whose index is not below its own."""
    owner = int(np.searchsorted(history.first, row, "right")) - 1
    own, high = int(history.first[owner]), index >= index[row]
    if high[own:row].any():
        return Breach(own + int(np.flatnonzero(high[own:row])[-1]), row, ())
    found = search.path_from_any(high, (owner, row - own))
    if found is None:
        raise SelfCheckFailed(f"no zigzag path to row {row}, which a higher index reaches")
    sender = int(history.first[history.src[found[0].channel]])
    start = sender + int(np.flatnonzero(high[sender : sender + found[0].send + 1])[-1])
    return Breach(start, row, tuple(found))
