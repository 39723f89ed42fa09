"""Which part of a large history a graph shows: chosen on arrays, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cklog.arrays.types import Ints, Mask
from cklog.errors import UsageError
from cklog.history.history import History
from cklog.lines.checkpoint_sets import owners
from cklog.lines.search import row_named
from cklog.zigzag.message_edges import MessageEdges, message_edges

GraphKind = Literal["checkpoint", "rollback"]
"""Which graph: nodes are checkpoints, or the intervals after them (`cklog.graphs.graph`)."""


@dataclass(frozen=True, slots=True)
class FormatLimits:
    """The most nodes and edges that a format is asked to hold."""

    nodes: int
    edges: int


_DRAWN = FormatLimits(10_000, 200_000)  # more is no picture; of many arrows only those that count are drawn
LIMITS: Mapping[str, FormatLimits] = {
    "svg": _DRAWN,
    "pdf": _DRAWN,
    "png": _DRAWN,
    "mermaid": FormatLimits(500, 500),  # `maxEdges`, above which viewers refuse to draw, and documents cannot raise it
}
ANY_LIMITS = FormatLimits(200_000, 1_000_000)
PICTURES = ("svg", "pdf", "png")
"""The formats that are space-time diagrams."""

PAGE = 2_400.0  # pixels that a picture is wide at most, unless all is asked for or another width
LEAST_PAGE, MOST_PAGE = 400.0, 20_000.0
_NAMES = 200.0  # pixels of a page that are left to names
_BOX_ROOM = 60.0  # pixels that a checkpoint takes with the ends of some arrows beside it
_WINDOW_NODES = 2_000  # that a window holds in all


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """The part of a graph that is asked for, and the format that will hold it.

    `last`: so many checkpoints of every subtask. `around`: what happened within `steps` of one checkpoint, given as
    ("op/sub", checkpoint). Neither: everything; but a picture shows what is around the line where `everything` does not
    fit a page. The format `form` limits how much can be shown.

    Of pictures alone: `fold` draws an operator's subtasks as one, `width` in pixels is that of the page, `marked`
    gives each box the id of its checkpoint, for scripts.
    """

    kind: GraphKind = "checkpoint"
    last: int | None = None
    around: tuple[str, int] | None = None
    steps: int = 1
    form: str = "table"
    everything: bool = False
    fold: bool = False
    marked: bool = False
    width: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(GraphKind):
            raise UsageError(f"--kind {self.kind}: not one of {', '.join(get_args(GraphKind))}")
        if self.last is not None and self.around is not None:
            raise UsageError("--last and --around choose different parts of the history", "give one of them")
        if self.last is not None and self.last < 1:
            raise UsageError(f"--last {self.last}: at least one checkpoint")
        if self.steps < 1:
            raise UsageError(f"--steps {self.steps}: at least one step")
        if self.everything and (self.last is not None or self.around is not None):
            raise UsageError("--all draws what --last or --around would leave out", "give one of them")
        if self.kind == "rollback" and self.form in PICTURES:
            message = (
                f"--kind rollback --format {self.form}: the space-time diagram has checkpoints and intervals in one"
            )
            raise UsageError(message, "leave --kind out, or take dot or mermaid")
        if self.width is not None and not LEAST_PAGE <= self.width <= MOST_PAGE:
            raise UsageError(f"--width: {self.width:.0f} pixels are not between {LEAST_PAGE:.0f} and {MOST_PAGE:.0f}")
        drawn = [*(["--fold"] if self.fold else []), *(["--width"] if self.width is not None else [])]
        if drawn and self.form not in PICTURES:
            raise UsageError(f"{drawn[0]} is about pictures", f"--format {', '.join(PICTURES)}")

    @property
    def limits(self) -> FormatLimits:
        """The most nodes and edges for the format."""
        return ANY_LIMITS if self.fold else LIMITS.get(self.form, ANY_LIMITS)

    @property
    def chosen(self) -> bool:
        """Whether it is said which part is wanted."""
        return self.everything or self.last is not None or self.around is not None

    @property
    def page(self) -> float | None:
        """The pixels that a picture may be wide; None: as many as it takes."""
        return self.width or (None if self.chosen else PAGE)

    @property
    def window(self) -> int | None:
        """The checkpoints of a subtask that a page has room for around the line; None: there is no page to fill."""
        if self.chosen or self.form not in PICTURES:
            return None
        return max(int(((self.width or PAGE) - _NAMES) / _BOX_ROOM), 2)


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Checkpoints `low` to `high` of each subtask (indices, inclusive), shape (n,); none where `high < low`.

    `row` is the row of the checkpoint that was asked for, -1 for none. Then only messages are shown that were sent
    or received in one of `intervals`, a bool per row.
    """

    low: Ints
    high: Ints
    row: int = -1
    intervals: Mask | None = None

    def holds(self, subtask: Ints, index: Ints) -> Mask:
        """Return whether checkpoint `index` of `subtask` is in it; all three of one shape."""
        found: Mask = (self.low[subtask] <= index) & (index <= self.high[subtask])
        return found

    def shows(self, history: History, edges: MessageEdges) -> Mask:
        """Return whether the messages of each edge are shown, shape (edges,)."""
        if self.intervals is None:
            return np.ones(len(edges.channel), np.bool_)
        return touching(history, edges, self.intervals)


def touching(history: History, edges: MessageEdges, intervals: Mask) -> Mask:
    """Return whether the messages of each edge were sent or received in one of `intervals`, shape (edges,).

    `intervals` is a bool per row of `History.label`, for the interval after that checkpoint.
    """
    received = intervals[history.first[history.dst[edges.channel]] + np.maximum(edges.receive, 0)]
    sent = intervals[history.first[history.src[edges.channel]] + edges.send]
    found: Mask = sent | (received & (edges.receive >= 0))
    return found


def select(history: History, asked: GraphQuestion, line: Ints | None = None) -> Selection:
    """Choose the checkpoints to show; `line` (index per subtask, shape (n,)) is what a page is filled around.

    Raises
    ------
    NotFound : there is no such checkpoint to look around
    UsageError : it is more than the format can hold; says how to ask for less
    """
    found = Selection(np.zeros(len(history.subtasks), np.int64), history.newest)
    if asked.last is not None:
        found = Selection(np.maximum(found.high - history.survivor - asked.last + 1, 0), found.high)
    if asked.around is not None:
        found = _select_around(history, row_named(history, "--around", *asked.around), asked.steps)
    if asked.window is not None:
        found = _select_page(history, asked, asked.window, line)
    nodes = int(np.maximum(found.high - found.low + 1, 0).sum())
    if nodes > asked.limits.nodes:
        raise too_much(nodes, "checkpoints", asked.limits.nodes, history, asked)
    return found


def too_much(count: int, what: str, limit: int, history: History, asked: GraphQuestion) -> UsageError:
    """Return the error that refuses `count` nodes or edges (`what`), with ways to ask for less."""
    longest = int(history.newest.max(initial=0)) + 1
    last = (asked.last or longest) * limit // count - 1
    ways = [f"--last {last} shows the last checkpoints of every subtask"] if last > 0 else []
    if asked.around is not None:
        ways = [f"--steps {asked.steps - 1}" if asked.steps > 1 else "--format csv lists them"]
    else:
        ways.append("--around OP/SUB=CKPT shows the neighbours of one checkpoint")
    if asked.form in PICTURES and not asked.fold:
        ways.insert(0, "--fold draws the subtasks of an operator as one")
    return UsageError(f"{count} {what} are more than --format {asked.form} can show ({limit})", "; ".join(ways))


def _select_page(history: History, asked: GraphQuestion, room: int, line: Ints | None) -> Selection:
    """Choose at most `room` checkpoints of every subtask, the line in their middle; without a line the newest.

    Subtasks that are drawn as one are looked at from the first to the last checkpoint that the line has of them.
    """
    newest = history.newest
    first = last = newest if line is None else line
    if asked.fold and line is not None:
        operators = {name: i for i, name in enumerate(dict.fromkeys(s.operator for s in history.subtasks))}
        member = np.array([operators[s.operator] for s in history.subtasks], np.int64)
        lowest, highest = np.full(len(operators), np.iinfo(np.int64).max), np.zeros(len(operators), np.int64)
        np.minimum.at(lowest, member, line)
        np.maximum.at(highest, member, line)
        first, last = lowest[member], highest[member]
    if not asked.fold:
        room = min(room, max(_WINDOW_NODES // max(len(newest), 1), 1))
    spare = np.maximum(room - 1 - (last - first), 0)
    # What one side of the line does not need goes to the other.
    after = np.minimum(np.maximum(newest - last, 0), spare - np.minimum(first, spare - spare // 2))
    before = np.minimum(first, spare - after)
    low = first - before
    high = np.minimum(newest, low + room - 1)
    return Selection(np.minimum(low, high), high)


def _select_around(history: History, row: int, steps: int) -> Selection:
    """Choose what happened in the intervals before and after a checkpoint, and where it was sent and received.

    Every further step takes what happened before and after each checkpoint found so far. E.g. of a/0 → b/0, one step
    around a/0's checkpoint 1 takes a/0's 0 to 2 and the checkpoints of b/0 around the receipt of what a/0 sent there.
    """
    first, count = history.first, int(history.first[-1])
    owner = owners(history)
    near, intervals = np.zeros((2, count), np.bool_)  # shape (rows,): checkpoints found, and intervals looked at
    near[row] = True
    for _ in range(steps):
        # The interval after each checkpoint found, and the one before it: the row before, of the same subtask.
        intervals = near | np.r_[near[1:] & (np.diff(owner) == 0), False]
        subtasks = np.zeros(len(history.subtasks), np.bool_)
        subtasks[owner[intervals]] = True
        edges = message_edges(history, np.flatnonzero(subtasks[history.src] | subtasks[history.dst]))
        touched = np.flatnonzero(touching(history, edges, intervals))
        src, dst = history.src[edges.channel[touched]], history.dst[edges.channel[touched]]
        send, receive = edges.send[touched], edges.receive[touched]
        for subtask, interval in ((src, send), (dst, receive)):  # with the checkpoints at both its ends
            near[first[subtask] + np.maximum(interval, 0)] = True
            near[first[subtask] + np.minimum(interval + 1, history.newest[subtask])] = True
        # The checkpoints at both ends of each interval.
        near |= np.r_[False, intervals[:-1] & (np.diff(owner) == 0)] | intervals
    rows = np.flatnonzero(near)
    low, high = np.zeros((2, len(history.subtasks)), np.int64)
    high -= 1  # subtasks without a row show nothing
    subtask, start = np.unique(owner[rows], return_index=True)
    end = np.r_[start[1:], len(rows)] - 1
    low[subtask] = rows[start] - first[subtask]
    high[subtask] = rows[end] - first[subtask]
    return Selection(low, high, row, intervals)
