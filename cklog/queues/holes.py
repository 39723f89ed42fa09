"""Holes in an output queue: where records are missing, and how many results and open records may be among them.

Three things show a hole: bytes that cannot be read, a jump of the record numbers (`pos`), and a jump of N, the number
of open windows that footprints carry. Where none of these does, the grammar of a window, (open check* result)*, may:
a check record behind a result lacks the open record between the two.

Row numbers are those of the `QueueLog` at hand. A *pair* is two successive deciding records (open, check or result)
of one window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.queues.log import DELTA, OPEN, RESULT, UNKNOWN, QueueLog

_HOLES = 1000
"""Holes that are weighed one by one, the newest; what lies before them is one large hole."""


@dataclass(frozen=True, slots=True)
class QueueHole:
    """Records that are missing behind row `after` (-1: the head of the log) and before row `before`.

    `lost` is the number of missing records, `net` by how much they changed the number of open windows; None where
    nothing tells. `kind` says what showed the hole: "damage" (unreadable bytes), "pos" (a jump of the record numbers),
    "count" (a jump of N) or "order" (a window whose records break the grammar). `detail` is the reader's message about
    damage, or the window whose order is broken.
    """

    after: int
    before: int
    lost: int | None
    net: int | None
    kind: Literal["damage", "pos", "count", "order"]
    detail: str = ""

    @property
    def results(self) -> int | None:
        """The most results that may be among the lost records; None: any number."""
        return self._most_of(-1)

    @property
    def opens(self) -> int | None:
        """The most open records that may be among the lost records; None: any number."""
        return self._most_of(1)

    def _most_of(self, sign: int) -> int | None:
        """Solve opens + results <= lost and opens - results = net for the larger one, e.g. 3 lost, net 1 → 2 opens."""
        if self.lost is None or self.net is None or abs(self.net) > self.lost:
            return self.lost if self.net is None else None
        return (self.lost + sign * self.net) // 2


def holes_of(log: QueueLog) -> list[QueueHole]:
    """Return every place where records are missing, in log order."""
    holes = _visible_holes(log)
    return sorted_holes([*holes, *_holes_by_grammar(log, holes)])


def sorted_holes(holes: Iterable[QueueHole]) -> list[QueueHole]:
    """Sort holes by the row before them, then by the row behind them."""
    return sorted(holes, key=lambda hole: (hole.after, hole.before))


def most_lost(log: QueueLog, holes: Sequence[QueueHole], first: int) -> tuple[int | None, int | None]:
    """Return the most results and the most open records that the holes may hide; None: any number.

    Those that a later record of their window makes up for do not count: they belong to a pair, from row `first` on,
    between which one must be missing, so their windows are neither falsely open nor unknown.
    """
    earlier, later = _window_pairs(log, first)
    across = _hole_between(earlier, later, holes)
    result_lost, open_lost = _lost_between(log, earlier, later)
    return (
        _less_known([hole.results for hole in holes], int((across & result_lost).sum())),
        _less_known([hole.opens for hole in holes], int((across & open_lost).sum())),
    )


def reopened(log: QueueLog, holes: Sequence[QueueHole], first: int) -> Ints:
    """Return the rows, from `first` on, of open records whose window's result before them lies in a hole."""
    earlier, later = _window_pairs(log, first)
    result_lost, _ = _lost_between(log, earlier, later)
    found: Ints = np.sort(later[result_lost & _hole_between(earlier, later, holes)])
    return found


def opened_before(log: QueueLog) -> Ints:
    """Return for each row N less what all rows up to it did to N: constant along a log without holes.

    Its value is the number of windows that were open before the first row. Rows without N get a number without
    meaning. Shape (rows,).
    """
    found: Ints = log.open_windows - np.cumsum(DELTA[log.type])
    return found


def _less_known(bounds: list[int | None], known: int) -> int | None:
    """Sum up bounds, less the `known` ones that are accounted for; None if one of them is no bound."""
    return None if None in bounds else max(sum(bound or 0 for bound in bounds) - known, 0)


def _window_pairs(log: QueueLog, first: int) -> tuple[Ints, Ints]:
    """Return the rows of every pair, from row `first` on: the earlier and the later ones, by window.

    E.g. the windows [a, b, a, a] → earlier [0, 2], later [2, 3].
    """
    rows = first + np.flatnonzero(log.type[first:] <= RESULT)
    order = rows[np.argsort(log.window[rows], kind="stable")]  # by window, each in log order
    same = log.window[order[1:]] == log.window[order[:-1]]
    return order[:-1][same], order[1:][same]


def _lost_between(log: QueueLog, earlier: Ints, later: Ints) -> tuple[Mask, Mask]:
    """Tell between which pairs a result, and between which an open record, of their window must be missing."""
    opens, closes = log.type[later] == OPEN, log.type[earlier] == RESULT
    return opens & ~closes, ~opens & closes


def _hole_between(earlier: Ints, later: Ints, holes: Sequence[QueueHole]) -> Mask:
    """Tell which pairs have a whole hole between their rows, (pairs,); `holes` in order of their `after`.

    >>> hole = QueueHole(after=2, before=5, lost=None, net=None, kind="pos")
    >>> _hole_between(np.array([1, 1, 2, 1, 3]), np.array([6, 5, 5, 4, 6]), [hole]).tolist()
    [True, True, True, False, False]
    """
    after = np.array([hole.after for hole in holes], np.int64)
    before = np.array([*(hole.before for hole in holes), np.iinfo(np.int64).max])
    nearest = np.minimum.accumulate(before[::-1])[::-1]  # of the holes from the k-th on, where the first one ends
    found: Mask = nearest[np.searchsorted(after, earlier)] <= later
    return found


def _visible_holes(log: QueueLog) -> list[QueueHole]:
    """Return the holes that unreadable bytes, a jump of `pos` or a jump of N shows."""
    jump = np.diff(log.pos)
    counted = (log.pos[1:] != UNKNOWN) & (log.pos[:-1] != UNKNOWN)
    details = {row: item.detail for item, row in zip(log.damage, log.damage_at.tolist(), strict=True)}
    rows = np.union1d(np.flatnonzero(counted & (jump > 1)) + 1, log.damage_at)  # a hole lies before each of these
    whole = np.r_[log.pos[:1] == 0, counted & (jump == 1), True]  # nothing is missing there; nor behind the tail
    rows = rows[~whole[rows]]
    if not log.from_head:
        rows = rows[rows > 0]  # what lies before what was read has not been met yet
    found = []
    for row in rows[-_HOLES:].tolist():
        known = bool(counted[row - 1] and jump[row - 1] > 0) if row else log.pos[0] != UNKNOWN  # falls tell no count
        lost = int(log.pos[row] - (log.pos[row - 1] if row else -1)) - 1 if known else None
        found.append(
            QueueHole(
                after=row - 1,
                before=row,
                lost=lost,
                net=None,
                kind="damage" if row in details else "pos",
                detail=details.get(row, ""),
            )
        )
    return _with_net(log, _merged_hole(rows[:-_HOLES] - 1, rows[:-_HOLES], "pos") + found)


def _merged_hole(after: Ints, before: Ints, kind: Literal["pos", "count", "order"]) -> list[QueueHole]:
    """Make one hole, in which anything may have been lost, of many; none of none."""
    if not len(after):
        return []
    return [QueueHole(after=int(after.min()), before=int(before.max()), lost=None, net=None, kind=kind)]


def _with_net(log: QueueLog, holes: list[QueueHole]) -> list[QueueHole]:
    """Return the holes with the `net` that N gives, and those that only N shows.

    N is known at some rows. `opened_before` at two successive ones differs by what was lost between them, which is one
    hole's `net` if only one hole lies there. E.g. 3, 3, 1 → a hole with net -2 between the second and the third.
    """
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known):
        return holes
    base = opened_before(log)[known]
    slot = np.searchsorted(known, [h.before for h in holes])  # hole i lies behind known[slot[i] - 1], before the next
    sizes = np.bincount(slot, minlength=len(known) + 1)  # holes before each known row, and behind the last
    found = []
    for hole, k in zip(holes, slot.tolist(), strict=True):
        alone = sizes[k] == 1 and k < len(known) and (k > 0 or hole.after < 0) and hole.before - hole.after == 1
        net = int(base[k]) - (int(base[k - 1]) if k else 0) if alone else None
        found.append(replace(hole, net=net))
    breaks = np.flatnonzero((np.diff(base) != 0) & (sizes[1 : len(known)] == 0) & ~_uncounted(log, known, base)) + 1
    found += _merged_hole(known[breaks[:-_HOLES] - 1], known[breaks[:-_HOLES]], "count")
    found += [
        QueueHole(
            after=int(known[k - 1]), before=int(known[k]), lost=None, net=int(base[k] - base[k - 1]), kind="count"
        )
        for k in breaks[-_HOLES:].tolist()
    ]
    return sorted_holes(found)


def _uncounted(log: QueueLog, known: Ints, base: Ints) -> Mask:
    """Tell which rows, of `known[1:]`, are results of windows that were never counted, and leave nothing open.

    Operators that write no footprints have such results; they show no hole.
    """
    rows = known[1:]
    found: Mask = (np.diff(base) == 1) & (log.type[rows] == RESULT) & (log.open_windows[rows] == 0)
    return found


def _holes_by_grammar(log: QueueLog, holes: list[QueueHole]) -> list[QueueHole]:
    """Return the holes that only the grammar shows: a window goes on after its result, or opens while it is open."""
    earlier, later = _window_pairs(log, 0)
    result_lost, open_lost = _lost_between(log, earlier, later)
    rows = np.flatnonzero((result_lost | open_lost) & ~_hole_between(earlier, later, holes))
    rows = rows[np.argsort(later[rows], kind="stable")]
    few, many = rows[-_HOLES:], rows[:-_HOLES]
    return _merged_hole(earlier[many], later[many], "order") + [
        QueueHole(after=a, before=b, lost=None, net=None, kind="order", detail=log.window_of(b))
        for a, b in zip(earlier[few].tolist(), later[few].tolist(), strict=True)
    ]
