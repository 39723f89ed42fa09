"""The eventual checkpoint of an operator, reconstructed from its output queue (CEC paper, section II.B).

Going down from the tail, the first record met of each window decides: a result, the window is closed; a footprint
(open or check record), it is open with that state. The search ends when as many open windows are found as the
tail's N announces: N windows are open there, so no older record can add one.

Where records are missing, a result may be among them: its window would look open, so that a plain search would
stop too early, and the replay would open it a second time. `cklog.queues.holes` finds the places, and `judge` weighs
them: N, the grammar (open check* result)* of a window and dense record numbers bound the results and open records that
are lost. Without a lost result, N visible footprints are the open windows: the checkpoint is *proven*. Else every last
visible record is used as it is and the replay starts no later than the record before the hole: windows that closed
in it close again, windows that opened in it open again, and the state is exact *after replay*. Windows whose
footprints lay before the head of the log are *lost*.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from cklog.arrays.types import Ints
from cklog.queues.holes import QueueHole, holes_of, most_lost, opened_before, reopened, sorted_holes
from cklog.queues.log import DELTA, OPEN, RESULT, UNKNOWN, QueueLog

Proof = Literal["proven", "after-replay", "lost"]

_ROUNDS = 64
"""Each hole may move T to before another one; a log in which that goes on for longer is taken as a whole."""


class QueueJudgement(NamedTuple):
    """What the end of a queue proves; rows number the records of `log`.

    Attributes
    ----------
    proof : how sure the checkpoint is, see the module
    open_windows : N at the tail
    open : rows of the last footprints of open windows, oldest first
    closed : rows of the results that must be remembered during the replay
    start : the first row at or after T
    at : T by input, one entry per channel; None without input numbers, or if the replay starts with the input
    ts : T by timestamp; None: replay from the start of the input
    holes : the holes that mattered
    ghosts : those rows of `open` whose windows may have closed in a hole
    missing : how many windows are open and have no footprint here
    contradicts : N announces windows that neither a footprint, nor a hole, nor a cut-off head accounts for
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
    """Reconstruct the eventual checkpoint at the tail of `log`; None: read further back and ask again.

    Parameters
    ----------
    open_tail : N after the last record; None if no record of the whole log tells it
    """
    if open_tail is None and not log.from_head:
        return None
    if not len(log):
        return _judgement_of_nothing(log)
    read = log
    log = _without_repeats(read)
    if len(log) < len(read):
        open_tail = _count_at_tail(log, open_tail)
    holes = holes_of(log)
    needed: tuple[QueueHole, ...] = ()
    for attempt in range(_ROUNDS + 1):
        if attempt == _ROUNDS:
            needed = tuple(holes)
        judged = _judgement_of_tail(log, open_tail or 0, holes, needed)
        if judged is None or judged.proof != "after-replay" or not judged.start:
            return judged
        before = _judged_at_start(judged)
        if before is None or before.proof == "proven":
            return judged if before is not None else None
        more = tuple(hole for hole in before.holes if hole not in needed)
        if not more:
            return judged._replace(proof="lost") if before.proof == "lost" else judged
        needed = (*needed, *more)
    return judged


def lost_results(judged: QueueJudgement) -> Ints:
    """Return the rows of open records of windows whose result before must be among the lost records."""
    return reopened(judged.log, judged.holes, judged.start)


def _judged_at_start(judged: QueueJudgement) -> QueueJudgement | None:
    """Answer the same question for the moment where the replay begins; None: read further back.

    A window that is open then and that no record shows, for its open record went into an older hole and its result
    into this one, would be missing in the replay; so the replay must begin before the older hole too.
    """
    log = judged.log
    prefix = log.rows(np.arange(judged.start))
    count = _count_at_tail(prefix, 0 if log.from_head else None)
    return None if count is None else _judgement_of_tail(prefix, max(count, 0), holes_of(prefix), ())


def _count_at_tail(log: QueueLog, unknown: int | None) -> int | None:
    """Return N after the last record: that of the last one to give it, and what the records since did to it."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known):
        return unknown
    last = int(known[-1])
    return int(log.open_windows[last] + DELTA[log.type[last + 1 :]].sum())


def _judgement_of_tail(
    log: QueueLog, expected: int, holes: list[QueueHole], needed: tuple[QueueHole, ...]
) -> QueueJudgement | None:
    """Judge the tail, with a replay from before the holes `needed` and before all holes that it meets by itself.

    Taking in a hole may move the start of the replay down, where it meets more holes: repeated until nothing moves.
    None: read further back.
    """
    last = _newest_of_windows(log)
    footprints = last[log.type[last] < RESULT][::-1]  # newest first
    results = most_lost(log, needed, 0)[0] if needed else 0
    view = _TailView(log=log, footprints=footprints, expected=expected, holes=needed, results=results)
    low = len(log)
    for attempt in range(_ROUNDS + 1):
        start = view.start()
        if start is None or (attempt == _ROUNDS and not log.from_head):
            return None
        low = min(low, start) if attempt < _ROUNDS else 0
        inside = [h for h in holes if h.before >= low and (h.kind != "order" or h.after >= low)]
        if len(view.open()) < expected:
            inside = holes  # a window is missing that any of them may have held
        found = tuple(sorted_holes({*inside, *needed}))
        if found == view.holes:
            break
        view = view._replace(holes=found, results=most_lost(log, found, low)[0])
    start = view.start()
    return None if start is None else _judgement_of_view(view, start, last, holes)


class _TailView(NamedTuple):
    """How far down a search looks.

    `footprints` are the rows of the newest footprints of windows without a later result, newest first; `expected` is
    N at the tail. Lost in `holes` are `results` that may have closed windows (None: any number).
    """

    log: QueueLog
    footprints: Ints
    expected: int
    holes: tuple[QueueHole, ...]
    results: int | None = 0

    def open(self) -> Ints:
        """Return the newest footprints, oldest first: N, and one more for every window that may have closed unseen."""
        target = len(self.footprints) if self.results is None else self.expected + self.results
        return self.footprints[:target][::-1]

    def since(self) -> tuple[Ints, int] | None:
        """Return T by number (one entry per channel) and by timestamp; None: the start of the input."""
        log = self.log
        rows = [*self.open().tolist()] or [len(log) - 1]
        if self.results != 0 or len(self.open()) < self.expected:
            rows += [hole.after for hole in self.holes]
        if min(rows) < 0:
            return None
        return _input_order(log)[rows].min(axis=0), int(log.ts[rows].min())

    def start(self) -> int | None:
        """Return the first row at or after T; None if it may lie before what was read."""
        enough = self.results is not None and len(self.footprints) >= self.expected + self.results
        since = self.since()
        if not self.log.from_head and (not enough or since is None):
            return None
        if since is None:
            return 0
        at, _ = since
        # a record that has taken a tuple at or after T from any one input comes again
        again = _input_order(self.log) >= (np.maximum(at, 0) if self.log.channels else at)
        start = int(np.argmax(again.any(axis=1)))
        return start if start or self.log.from_head else None


def _input_order(log: QueueLog) -> Ints:
    """Return what orders the input, (rows, channels): its numbers, or (rows, 1) timestamps where there are none."""
    return log.input if log.channels else log.ts[:, None]


def _judgement_of_view(view: _TailView, start: int, last: Ints, holes: list[QueueHole]) -> QueueJudgement:
    """Say what a view proves. Its footprints are N windows, or more of which some have closed, or all there are.

    `holes` are all of the log's, those too that the view has nothing to do with.
    """
    log, found, since = view.log, view.open(), view.since()
    results, opens = most_lost(log, view.holes, start)
    missing = max(view.expected - len(found), 0)
    before_head = max(_open_before_head(log, view.holes), _begun_before_head(log, holes)) if log.from_head else 0
    proof: Proof = "after-replay"
    if start == 0 and (before_head or _has_later_number(log, view.holes)):
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


def _judgement_of_nothing(log: QueueLog) -> QueueJudgement:
    """Judge a queue in which no record has become durable: nothing to load, everything to replay."""
    none = log.type
    return QueueJudgement(
        log=log,
        proof="after-replay",
        open_windows=0,
        open=none,
        closed=none,
        start=0,
        at=None,
        ts=None,
        holes=(),
        ghosts=none,
        missing=0,
        contradicts=False,
    )


def _newest_of_windows(log: QueueLog) -> Ints:
    """Return the row of each window's newest deciding record (open, check or result), in log order.

    E.g. open a, open b, result a → [1, 2].
    """
    decides = np.flatnonzero(log.type <= RESULT)
    newest = np.full(len(log.names) + 1, -1)
    newest[log.window[decides]] = decides  # of one window's rows the last one stays
    found: Ints = np.sort(newest[newest >= 0])
    return found


def _open_before_head(log: QueueLog, holes: tuple[QueueHole, ...]) -> int:
    """Count by N the windows that were open before the first record, unless a hole explains them."""
    known = np.flatnonzero(log.open_windows != UNKNOWN)
    if not len(known) or any(hole.before <= known[0] for hole in holes):
        return 0
    return max(int(opened_before(log)[known[0]]), 0)


def _begun_before_head(log: QueueLog, holes: list[QueueHole]) -> int:
    """Count the windows whose open record was before the first record: the first one here is another, and no hole is
    before it. N need not tell of them: results may come without it.

    E.g. result a, open b, check c, open d, with a hole before open d: 2.
    """
    behind = min((hole.before for hole in holes), default=len(log))
    rows = np.flatnonzero(log.type[:behind] <= RESULT)
    _, first = np.unique(log.window[rows], return_index=True)
    return int((log.type[rows[first]] != OPEN).sum())


def _has_later_number(log: QueueLog, holes: tuple[QueueHole, ...]) -> bool:
    """Tell whether the number of the first record shows that there were older ones: it is neither 0 nor 1."""
    return log.from_head and not any(hole.after < 0 for hole in holes) and bool(log.pos[0] > 1)


def _without_repeats(log: QueueLog) -> QueueLog:
    """Return the log without records that were written twice: the same `pos` with the same content.

    A log in which records of one `pos` differ is returned as it is. A copy of older records may lie before or behind
    those that it was made of: what is kept are the first or the last of the same records, whichever are in order.
    """
    if len(log) < 2 or (log.pos == UNKNOWN).any() or (log.pos[1:] > log.pos[:-1]).all():
        return log
    _, first, group = np.unique(log.pos, return_index=True, return_inverse=True)
    original = first[group]  # (rows,): the first row with the same number
    same = np.ones(len(log), np.bool_)
    for column in (log.type, log.window, log.ts, log.open_windows):
        same &= column == column[original]
    if not same.all():
        return log
    _, behind = np.unique(log.pos[::-1], return_index=True)
    last = np.sort(len(log) - 1 - behind)
    in_order = bool((np.diff(log.pos[last]) > 0).all())
    return log.rows(last if in_order else np.sort(first))
