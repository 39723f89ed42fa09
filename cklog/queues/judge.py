"""The eventual checkpoint of an operator, reconstructed from its output queue (CEC paper, section II.B).

Going down from the tail, the first record met of each window decides: a result, the window is closed; a footprint
(open or check record), it is open with that state. The search ends when as many open windows are found as the
tail's N announces: N windows are open there, so no older record can add one.

Where records are missing, a result may be among them: its window would look open, so that a plain search would
stop too early, and the replay would open it a second time. `holes_of` finds the places, and `judge` weighs them: N,
the grammar (open check* result)* of a window and dense record numbers bound the results and open records that are
lost. Without a lost result, N visible footprints are the open windows: the checkpoint is *proven*. Else every last
visible record is used as it is and the replay starts no later than the record before the hole: windows that closed
in it close again, windows that opened in it open again, and the state is exact *after replay*. Windows whose
footprints lay before the head of the log are *lost*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.queues.log import DELTA, OPEN, RESULT, UNKNOWN, QueueLog

Proof = Literal["proven", "after-replay", "lost"]


@dataclass(frozen=True, slots=True)
class QueueHole:
    """Records are missing behind record `after` (-1: the head) and before record `before`.

    `lost` is their number and `net` what they did to the number of open windows, None where nothing tells.
    `kind` damage / pos / count / order says how the hole was found, `detail` what a reader said of it.
    """

    after: int
    before: int
    lost: int | None
    net: int | None
    kind: Literal["damage", "pos", "count", "order"]
    detail: str = ""

    @property
    def results(self) -> int | None:
        """The most results that may be among the lost records."""
        return self._most(-1)

    @property
    def opens(self) -> int | None:
        """The most open records that may be among the lost records."""
        return self._most(1)

    def _most(self, sign: int) -> int | None:
        if self.lost is None or self.net is None or abs(self.net) > self.lost:
            return self.lost if self.net is None else None
        return (self.lost + sign * self.net) // 2


@dataclass(frozen=True, slots=True)
class QueueJudgement:
    """What the end of a queue proves; rows number the records of `log`.

    `open` are the last footprints of open windows, oldest first, `closed` the results that must be remembered
    during the replay, `start` the first record at or after T. `at` is T by input (one entry per channel, None
    without input numbers) and `ts` by timestamp, None: replay from the start of the input. `holes` are those
    that mattered, `ghosts` rows of `open` that may have closed, `missing` windows that are open and not here.
    """

    log: QueueLog
    proof: Proof
    open_windows: int
    open: Ints
    closed: Ints
    start: int
    at: Ints | None
    ts: int | None
    holes: tuple[QueueHole, ...]
    ghosts: Ints
    missing: int
    contradicts: bool


def judge(log: QueueLog, open_tail: int | None) -> QueueJudgement | None:
    """The eventual checkpoint at the tail of `log`, or None: read further back.

    Parameters
    ----------
    open_tail : N after the last record; None if no record of the whole log tells it
    """
    if open_tail is None and not log.from_head:
        return None
    if not len(log):
        return _of_nothing(log)
    log = _without_repeats(log)
    holes = _all_holes(log)
    needed: tuple[QueueHole, ...] = ()
    for attempt in range(_ROUNDS + 1):
        if attempt == _ROUNDS:
            needed = tuple(holes)
        judged = _judged(log, open_tail or 0, holes, needed)
        if judged is None or judged.proof != "after-replay" or not judged.start:
            return judged
        before = _before(judged)
        if before is None or before.proof == "proven":
            return judged if before is not None else None
        more = tuple(hole for hole in before.holes if hole not in needed)
        if not more:
            return replace(judged, proof="lost") if before.proof == "lost" else judged
        needed = (*needed, *more)
    return judged


def _before(judged: QueueJudgement) -> QueueJudgement | None:
    """The same question for the moment where the replay begins.

    A window that is open then and that no record shows, for its open record went into an older hole and its result
    into this one, would be missing in the replay; so the replay must begin before the older hole too.
    """
    log = judged.log
    known = np.flatnonzero(log.open_windows[: judged.start] != UNKNOWN)
    if not len(known) and not log.from_head:
        return None
    last = int(known[-1]) if len(known) else 0
    count = int(log.open_windows[last] + DELTA[log.type[last + 1 : judged.start]].sum()) if len(known) else 0
    prefix = log.rows(np.arange(judged.start))
    return _judged(prefix, max(count, 0), _all_holes(prefix), ())


def _all_holes(log: QueueLog) -> list[QueueHole]:
    holes = holes_of(log)
    return sorted([*holes, *_out_of_order(log, holes)], key=_place)


def _judged(
    log: QueueLog, expected: int, holes: list[QueueHole], needed: tuple[QueueHole, ...]
) -> QueueJudgement | None:
    """What the tail proves, with a replay from before the holes `needed` and before all that it meets by itself."""
    last = newest_of_windows(log)
    footprints = last[log.type[last] < RESULT][::-1]  # newest first
    view, low = _View(log, footprints, expected, needed, _doubt(log, needed, 0)[0] if needed else 0), len(log)
    for attempt in range(_ROUNDS + 1):
        start = view.start()
        if start is None or (attempt == _ROUNDS and not log.from_head):
            return None
        low = min(low, start) if attempt < _ROUNDS else 0
        inside = [h for h in holes if h.before >= low and (h.kind != "order" or h.after >= low)]
        if len(view.open()) < expected:
            inside = holes  # a window is missing that any of them may have held
        found = tuple(sorted({*inside, *needed}, key=_place))
        if found == view.holes:
            break
        view = replace(view, holes=found, results=_doubt(log, found, low)[0])
    start = view.start()
    return None if start is None else _decided(view, start, last)


_ROUNDS = 64
"""Each hole may move T to before another one; a log in which that goes on for longer is taken as a whole."""

_HOLES = 1000
"""Holes that are weighed one by one, the newest; what lies before them is one large hole."""


@dataclass(frozen=True, slots=True)
class _View:
    """How far down a search looks: `results` lost records may have closed windows (None: any number)."""

    log: QueueLog
    footprints: Ints
    expected: int
    holes: tuple[QueueHole, ...]
    results: int | None = 0

    def open(self) -> Ints:
        """The newest footprints, oldest first: N, and one more for every window that may have closed unseen."""
        target = len(self.footprints) if self.results is None else self.expected + self.results
        return self.footprints[:target][::-1]

    def since(self) -> tuple[Ints, int] | None:
        """T by number and by timestamp; None: the start of the input."""
        log = self.log
        rows = [*self.open().tolist()] or [len(log) - 1]
        if self.results != 0 or len(self.open()) < self.expected:
            rows += [hole.after for hole in self.holes]
        if min(rows) < 0:
            return None
        return _numbers(log)[rows].min(axis=0), int(log.ts[rows].min())

    def start(self) -> int | None:
        """The first record at or after T; None if it may lie before what was read."""
        enough = self.results is not None and len(self.footprints) >= self.expected + self.results
        since = self.since()
        if not self.log.from_head and (not enough or since is None):
            return None
        if since is None:
            return 0
        at, _ = since
        again = _numbers(self.log) >= (np.maximum(at, 0) if self.log.channels else at)  # any one input is enough
        start = int(np.argmax(again.any(axis=1)))
        return start if start or self.log.from_head else None


def _numbers(log: QueueLog) -> Ints:
    """What orders the input: its numbers, or timestamps where records have none."""
    return log.input if log.channels else log.ts[:, None]


def _decided(view: _View, start: int, last: Ints) -> QueueJudgement:
    """What a view proves. Its footprints are N windows, or more of which some have closed, or all there are."""
    log, found, since = view.log, view.open(), view.since()
    results, opens = _doubt(log, view.holes, start)
    missing = max(view.expected - len(found), 0)
    before_head = _open_before_head(log, view.holes) if log.from_head else 0
    proof: Proof = "after-replay"
    if start == 0 and _is_trimmed(log, view.holes):
        proof = "lost"  # a record of T's own tuple may lie before the head, the result of a window among them
    elif results == 0 and not missing:
        proof = "proven"
    elif before_head and (missing or results != 0):
        proof = "lost"
    behind = max((hole.before for hole in view.holes), default=0)
    return QueueJudgement(
        log=log,
        proof=proof,
        open_windows=view.expected,
        open=found,
        closed=last[(log.type[last] == RESULT) & (last >= start)],
        start=start,
        at=since[0] if since and log.channels else None,
        ts=since[1] if since else None,
        holes=view.holes,
        ghosts=found[found < behind] if results != 0 else found[:0],
        missing=missing,
        contradicts=bool(missing) and results == 0 and opens == 0 and not before_head,
    )


def _doubt(log: QueueLog, holes: tuple[QueueHole, ...], first: int) -> tuple[int | None, int | None]:
    """The most results and open records that are lost and that no later record of their window makes up for."""
    known_results, known_opens = _accounted(log, holes, first)
    return _rest([h.results for h in holes], known_results), _rest([h.opens for h in holes], known_opens)


def _of_nothing(log: QueueLog) -> QueueJudgement:
    """A queue in which no record has become durable: nothing to load, everything to replay."""
    none = log.type
    return QueueJudgement(log, "after-replay", 0, none, none, 0, None, None, (), none, 0, False)


def newest_of_windows(log: QueueLog) -> Ints:
    """The row of each window's newest record that decides, in log order. Data that closes nothing decides nothing."""
    decides = np.flatnonzero(log.type <= RESULT)
    newest = np.full(len(log.names) + 1, -1)
    newest[log.window[decides]] = decides
    found: Ints = np.sort(newest[newest >= 0])
    return found


def _place(hole: QueueHole) -> tuple[int, int]:
    return hole.after, hole.before


def _rest(parts: list[int | None], known: int) -> int | None:
    """What is left of a bound when `known` of it are accounted for; None: no bound."""
    return None if None in parts else max(sum(part or 0 for part in parts) - known, 0)


def _accounted(log: QueueLog, holes: tuple[QueueHole, ...], first: int) -> tuple[int, int]:
    """Results and open records that the grammar (open check* result)* of a window shows to be in a hole.

    They belong to windows with a record behind the hole, so they make no ghost and no missing window.
    """
    earlier, later = _pairs(log, first)
    straddles = _straddle(earlier, later, list(holes))
    result_lost, open_lost = _broken(log, earlier, later)
    return int((straddles & result_lost).sum()), int((straddles & open_lost).sum())


def lost_results(judged: QueueJudgement) -> Ints:
    """Open records of windows whose result before must be among the lost records."""
    earlier, later = _pairs(judged.log, judged.start)
    result_lost, _ = _broken(judged.log, earlier, later)
    found: Ints = np.sort(later[result_lost & _straddle(earlier, later, list(judged.holes))])
    return found


def _straddle(earlier: Ints, later: Ints, holes: list[QueueHole]) -> Mask:
    """Pairs of rows with a hole between them."""
    after = np.array([hole.after for hole in holes], np.int64)
    before = np.array([*(hole.before for hole in holes), np.iinfo(np.int64).max])
    nearest = np.minimum.accumulate(before[::-1])[::-1]  # where the first hole at or behind a row ends
    found: Mask = nearest[np.searchsorted(after, earlier)] <= later
    return found


def _pairs(log: QueueLog, first: int) -> tuple[Ints, Ints]:
    """Rows of successive deciding records of one window, from row `first` on."""
    rows = first + np.flatnonzero(log.type[first:] <= RESULT)
    order = rows[np.argsort(log.window[rows], kind="stable")]
    same = log.window[order[1:]] == log.window[order[:-1]]
    return order[:-1][same], order[1:][same]


def _broken(log: QueueLog, earlier: Ints, later: Ints) -> tuple[Mask, Mask]:
    """Pairs between which a result, or an open record, of their window must be missing."""
    opens, closes = log.type[later] == OPEN, log.type[earlier] == RESULT
    return opens & ~closes, ~opens & closes


def _open_before_head(log: QueueLog, holes: tuple[QueueHole, ...]) -> int:
    """Windows that were open before the first record of the log, unless a hole at the head explains them."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known) or any(hole.after < 0 for hole in holes):
        return 0
    before = [hole for hole in holes if hole.before <= known[0]]
    return 0 if before else max(int(_baselines(log)[known[0]]), 0)


def _is_trimmed(log: QueueLog, holes: tuple[QueueHole, ...]) -> bool:
    """Whether older records were there: windows are open before the first one, or it is not number 0 or 1."""
    if not log.from_head or any(hole.after < 0 for hole in holes):
        return False
    return bool(log.pos[0] > 1) or _open_before_head(log, holes) > 0


def _baselines(log: QueueLog) -> Ints:
    """N less what all records up to here did to it: constant along a whole log."""
    found: Ints = log.open_windows - np.cumsum(DELTA[log.type])
    return found


def holes_of(log: QueueLog) -> list[QueueHole]:
    """Every place where records are missing: unreadable bytes, a jump of `pos`, a jump of N."""
    jump = np.diff(log.pos)
    counted = (log.pos[1:] != UNKNOWN) & (log.pos[:-1] != UNKNOWN)
    details = {row: item.detail for item, row in zip(log.damage, log.damage_at.tolist(), strict=True)}
    rows = np.union1d(np.flatnonzero(counted & (jump > 1)) + 1, log.damage_at)
    whole = np.r_[log.pos[:1] == 0, counted & (jump == 1), True]  # nothing is missing there; behind the tail
    rows = rows[~whole[rows]]
    if not log.from_head:
        rows = rows[rows > 0]  # what lies before what was read has not been met yet
    found = []
    for row in rows[-_HOLES:].tolist():
        known = bool(counted[row - 1]) if row else log.pos[0] != UNKNOWN
        lost = int(log.pos[row] - (log.pos[row - 1] if row else -1)) - 1 if known else None
        found.append(QueueHole(row - 1, row, lost, None, "damage" if row in details else "pos", details.get(row, "")))
    return _with_net(log, _as_one(rows[:-_HOLES] - 1, rows[:-_HOLES], "pos") + found)


def _as_one(after: Ints, before: Ints, kind: Literal["pos", "count", "order"]) -> list[QueueHole]:
    """Many holes as one, in which anything may have been lost."""
    return [QueueHole(int(after.min()), int(before.max()), None, None, kind)] if len(after) else []


def _with_net(log: QueueLog, holes: list[QueueHole]) -> list[QueueHole]:
    """The holes with what N says about them, and those that only N shows."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known):
        return holes
    base = _baselines(log)[known]
    slot = np.searchsorted(known, [h.before for h in holes])  # the interval of known N that a hole lies in
    sizes = np.bincount(slot, minlength=len(known) + 1)
    found = []
    for hole, k in zip(holes, slot.tolist(), strict=True):
        alone = sizes[k] == 1 and k < len(known) and (k > 0 or hole.after < 0) and hole.before - hole.after == 1
        net = int(base[k]) - (int(base[k - 1]) if k else 0) if alone else None
        found.append(replace(hole, net=net))
    breaks = np.flatnonzero((np.diff(base) != 0) & (sizes[1 : len(known)] == 0) & ~_uncounted(log, known, base)) + 1
    found += _as_one(known[breaks[:-_HOLES] - 1], known[breaks[:-_HOLES]], "count")
    found += [
        QueueHole(int(known[k - 1]), int(known[k]), None, int(base[k] - base[k - 1]), "count")
        for k in breaks[-_HOLES:].tolist()
    ]
    return sorted(found, key=_place)


def _uncounted(log: QueueLog, known: Ints, base: Ints) -> Mask:
    """Results after which nothing is open, of windows that were never counted: operators without footprints."""
    rows = known[1:]
    found: Mask = (np.diff(base) == 1) & (log.type[rows] == RESULT) & (log.open_windows[rows] == 0)
    return found


def _out_of_order(log: QueueLog, holes: list[QueueHole]) -> list[QueueHole]:
    """Holes that only the grammar shows: a window goes on after its result, or opens while open."""
    earlier, later = _pairs(log, 0)
    result_lost, open_lost = _broken(log, earlier, later)
    rows = np.flatnonzero((result_lost | open_lost) & ~_straddle(earlier, later, holes))
    rows = rows[np.argsort(later[rows], kind="stable")]
    few, many = rows[-_HOLES:], rows[:-_HOLES]
    return _as_one(earlier[many], later[many], "order") + [
        QueueHole(a, b, None, None, "order", log.window_of(b))
        for a, b in zip(earlier[few].tolist(), later[few].tolist(), strict=True)
    ]


def _without_repeats(log: QueueLog) -> QueueLog:
    """The log without records that were written twice: the same `pos` with the same content."""
    if len(log) < 2 or (log.pos == UNKNOWN).any() or (log.pos[1:] > log.pos[:-1]).all():
        return log
    _, first, group = np.unique(log.pos, return_index=True, return_inverse=True)
    original = first[group]
    same = np.ones(len(log), np.bool_)
    for column in (log.type, log.window, log.ts, log.open_windows):
        same &= column == column[original]
    if not same.all():
        return log
    return log.rows(np.sort(first))
