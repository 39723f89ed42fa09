"""The eventual checkpoint of an operator, reconstructed from its output queue (CEC paper, section II.B).

Going down from the tail, the first record met of each window decides: a result, the window is closed; a footprint
(open or check record), it is open with that state. The search ends when as many open windows are found as the
tail's N announces: N windows are open there, so no older record can add one.

Where records are missing, a result may be among them, and its window would look open: a plain search would stop
too early. `holes_of` finds the places, and `judge` goes on behind them until what is found is all there can be.
With r results and o open records lost, N = found - ghosts + missing, ghosts <= r and missing <= o: where that
leaves one possibility the checkpoint is *proven*. Where it does not, every last visible record is used as it is
and the replay starts no later than the record before the hole: ghosts close again, missing windows open again,
and the state is exact *after replay*. Windows whose footprints lie before the head of the log are *lost*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cklog.output_log import DELTA, OPEN, RESULT, UNKNOWN, Flags, Ints, Log

Proof = Literal["proven", "after-replay", "lost"]


@dataclass(frozen=True, slots=True)
class Hole:
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
class Judgement:
    """What the end of a queue proves; rows number the records of `log`.

    `first` is the first record that was looked at. `open` are the last footprints of open windows, oldest
    first, `closed` the results that must be remembered during the replay, `start` the first record at or after
    T. `at` is T by input (one entry per channel, None without input numbers) and `ts` by timestamp, None: replay
    from the start of the input. `holes` are those that mattered, `ghosts` rows of `open` that may have closed,
    `missing` windows that are open and not here.
    """

    log: Log
    proof: Proof
    open_windows: int
    first: int
    open: Ints
    closed: Ints
    start: int
    at: Ints | None
    ts: int | None
    holes: tuple[Hole, ...]
    ghosts: Ints
    missing: int
    contradicts: bool


def judge(log: Log, open_tail: int | None) -> Judgement | None:
    """The eventual checkpoint at the tail of `log`, or None: read further back.

    Parameters
    ----------
    open_tail : N after the last record; None if no record of the whole log tells it
    """
    if open_tail is None and not log.from_head:
        return None
    log = _without_repeats(log)
    expected = open_tail or 0
    last = newest_of_windows(log)
    footprints = last[log.type[last] < RESULT][::-1]  # newest first
    region = _region(log, footprints, expected, holes_of(log))
    if region is None:
        return None
    first, holes = region
    judged = _decide(log, expected, footprints[footprints >= first][::-1], holes, first)
    return _with_replay(judged, last)


def newest_of_windows(log: Log) -> Ints:
    """The row of each window's newest record that decides, in log order. Data that closes nothing decides nothing."""
    decides = np.flatnonzero(log.type <= RESULT)
    newest = np.full(len(log.names) + 1, -1)
    newest[log.window[decides]] = decides
    found: Ints = np.sort(newest[newest >= 0])
    return found


def _region(log: Log, footprints: Ints, expected: int, holes: list[Hole]) -> tuple[int, tuple[Hole, ...]] | None:
    """The first record that must be looked at, and the holes from there on; None if it has not been read."""
    target = expected
    hidden = _out_of_order(log, holes)
    while True:
        first = len(log) if target == 0 else int(footprints[target - 1]) if target <= len(footprints) else -1
        inside = [h for h in [*holes, *hidden] if h.before > first and (h.kind != "order" or h.after >= first)]
        doubts = [h.results for h in inside]
        if None in doubts or first < 0:
            return (0, tuple(sorted(inside, key=_place))) if log.from_head else None
        wider = expected + sum(r for r in doubts if r is not None)
        if wider <= target:
            return first, tuple(sorted(inside, key=_place))
        target = wider


def _place(hole: Hole) -> tuple[int, int]:
    return hole.after, hole.before


def _decide(log: Log, expected: int, found: Ints, holes: tuple[Hole, ...], first: int) -> Judgement:
    """Weigh what was found against N: which of the visible footprints are windows that are open now?

    With g ghosts (found, yet closed in a hole) and m missing (open, yet not found): g - m = found - N.
    """
    known_results, known_opens = _accounted(log, holes, first)
    results = _rest([h.results for h in holes], known_results)
    before_head = _open_before_head(log, holes) if first == 0 and log.from_head else 0
    opens = _rest([h.opens for h in holes], known_opens)
    behind = max((h.before for h in holes), default=0)
    doubtful = found[found < behind] if results != 0 else found[:0]
    surplus = len(found) - expected
    least = max(surplus, 0)
    most = min([len(doubtful), *([] if results is None else [results])])
    most = most if opens is None else min(most, surplus + opens + before_head)
    proof: Proof = "lost" if before_head else "after-replay"
    if least == most and least == surplus and least in (0, len(doubtful)):
        proof = "proven"
        found, doubtful = np.setdiff1d(found, doubtful if least else doubtful[:0]), doubtful[:0]
    return Judgement(
        log=log,
        proof=proof,
        open_windows=expected,
        first=first,
        open=found,
        closed=found[:0],
        start=first,
        at=None,
        ts=None,
        holes=holes,
        ghosts=doubtful,
        missing=least - surplus,
        contradicts=most < least,
    )


def _rest(parts: list[int | None], known: int) -> int | None:
    """What is left of a bound when `known` of it are accounted for; None: no bound."""
    return None if None in parts else max(sum(part or 0 for part in parts) - known, 0)


def _accounted(log: Log, holes: tuple[Hole, ...], first: int) -> tuple[int, int]:
    """Results and open records that the grammar (open check* result)* of a window shows to be in a hole.

    They belong to windows with a record behind the hole, so they make no ghost and no missing window.
    """
    earlier, later = _pairs(log, first)
    straddles = _straddle(earlier, later, list(holes))
    result_lost, open_lost = _broken(log, earlier, later)
    return int((straddles & result_lost).sum()), int((straddles & open_lost).sum())


def lost_results(judged: Judgement) -> Ints:
    """Open records of windows whose result before must be among the lost records."""
    earlier, later = _pairs(judged.log, judged.first)
    result_lost, _ = _broken(judged.log, earlier, later)
    found: Ints = np.sort(later[result_lost & _straddle(earlier, later, list(judged.holes))])
    return found


def _straddle(earlier: Ints, later: Ints, holes: list[Hole]) -> Flags:
    """Pairs of rows with a hole between them."""
    after = np.array([hole.after for hole in holes], np.int64)
    before = np.array([*(hole.before for hole in holes), np.iinfo(np.int64).max])
    nearest = np.minimum.accumulate(before[::-1])[::-1]  # where the first hole at or behind a row ends
    found: Flags = nearest[np.searchsorted(after, earlier)] <= later
    return found


def _pairs(log: Log, first: int) -> tuple[Ints, Ints]:
    """Rows of successive deciding records of one window, from row `first` on."""
    rows = first + np.flatnonzero(log.type[first:] <= RESULT)
    order = rows[np.argsort(log.window[rows], kind="stable")]
    same = log.window[order[1:]] == log.window[order[:-1]]
    return order[:-1][same], order[1:][same]


def _broken(log: Log, earlier: Ints, later: Ints) -> tuple[Flags, Flags]:
    """Pairs between which a result, or an open record, of their window must be missing."""
    opens, closes = log.type[later] == OPEN, log.type[earlier] == RESULT
    return opens & ~closes, ~opens & closes


def _open_before_head(log: Log, holes: tuple[Hole, ...]) -> int:
    """Windows that were open before the first record of the log, unless a hole at the head explains them."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known) or any(hole.after < 0 for hole in holes):
        return 0
    before = [hole for hole in holes if hole.before <= known[0]]
    return 0 if before else max(int(_baselines(log)[known[0]]), 0)


def _baselines(log: Log) -> Ints:
    """N less what all records up to here did to it: constant along a whole log."""
    found: Ints = log.open_windows - np.cumsum(DELTA[log.type])
    return found


def holes_of(log: Log) -> list[Hole]:
    """Every place where records are missing: unreadable bytes, a jump of `pos`, a jump of N."""
    places: dict[int, Hole] = {}
    jump = np.diff(log.pos)
    counted = (log.pos[1:] != UNKNOWN) & (log.pos[:-1] != UNKNOWN)
    for row in (np.flatnonzero(counted & (jump > 1)) + 1).tolist():
        places[row] = Hole(row - 1, row, int(jump[row - 1]) - 1, None, "pos")
    for item, row in zip(log.damage, log.damage_at.tolist(), strict=True):
        if row == len(log) or (row == 0 and not log.from_head):
            continue  # behind the tail: an earlier crash; before what was read: not met yet
        if (counted[row - 1] and jump[row - 1] == 1) if row else log.pos[0] == 0:
            continue  # nothing is missing there
        at_head = int(log.pos[0]) if row == 0 and log.pos[0] != UNKNOWN else None
        lost = places[row].lost if row in places else at_head
        places[row] = Hole(row - 1, row, lost, None, "damage", item.detail)
    return _with_net(log, [places[row] for row in sorted(places)])


def _with_net(log: Log, holes: list[Hole]) -> list[Hole]:
    """The holes with what N says about them, and those that only N shows."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known):
        return holes
    base = _baselines(log)[known]
    slot = np.searchsorted(known, [h.before for h in holes])  # the interval of known N that a hole lies in
    sizes = np.bincount(slot, minlength=len(known) + 1)
    found = []
    for hole, k in zip(holes, slot.tolist(), strict=True):
        alone = sizes[k] == 1 and k < len(known) and (k > 0 or hole.after < 0)
        net = int(base[k]) - (int(base[k - 1]) if k else 0) if alone else None
        found.append(replace(hole, net=net))
    breaks = np.flatnonzero((np.diff(base) != 0) & (sizes[1 : len(known)] == 0)) + 1
    found += [
        Hole(int(known[k - 1]), int(known[k]), None, int(base[k] - base[k - 1]), "count") for k in breaks.tolist()
    ]
    return sorted(found, key=_place)


def _out_of_order(log: Log, holes: list[Hole]) -> list[Hole]:
    """Holes that only the grammar shows: a window goes on after its result, or opens while open."""
    earlier, later = _pairs(log, 0)
    result_lost, open_lost = _broken(log, earlier, later)
    unexplained = (result_lost | open_lost) & ~_straddle(earlier, later, holes)
    return [
        Hole(a, b, None, None, "order", log.names[log.window[b]])
        for a, b in zip(earlier[unexplained].tolist(), later[unexplained].tolist(), strict=True)
    ]


def _without_repeats(log: Log) -> Log:
    """The log without records that were written twice: the same `pos` with the same content."""
    if len(log) < 2 or (log.pos == UNKNOWN).any() or (np.diff(log.pos) > 0).all():
        return log
    _, first, group = np.unique(log.pos, return_index=True, return_inverse=True)
    original = first[group]
    same = np.ones(len(log), np.bool_)
    for column in (log.type, log.window, log.ts, log.open_windows):
        same &= column == column[original]
    if not same.all():
        return log
    return log.rows(np.sort(first))


def _with_replay(judged: Judgement, last: Ints) -> Judgement | None:
    """Add T, and the windows whose closing the replay must remember; None: read further back."""
    log = judged.log
    numbers = log.input if log.channels else log.ts[:, None]
    rows = judged.open if len(judged.open) else np.array([len(log) - 1])
    at, ts = numbers[rows].min(axis=0), int(log.ts[rows].min())
    if judged.proof != "proven" and judged.holes:
        after = min(hole.after for hole in judged.holes)
        if after < 0:
            closed = last[log.type[last] == RESULT]
            return replace(judged, closed=closed, start=0, at=None, ts=None)
        at, ts = np.minimum(at, numbers[after]), min(ts, int(log.ts[after]))
    start = int(np.argmax((numbers >= at).all(axis=1)))
    if start == 0 and not log.from_head:
        return None
    closed = last[(log.type[last] == RESULT) & (last >= start)]
    return replace(judged, closed=closed, start=start, at=at if log.channels else None, ts=ts)
