"""The checkpoint graph and the rollback-dependency graph of a run, as rows to show, and the line through them.

Checkpoint graph [1]_: nodes are checkpoints, an edge c(i, a) → c(j, b + 1) stands for messages that i sent after its
checkpoint a and before the next, and that j received after its checkpoint b and before b + 1. It has no cycle.
Rollback-dependency graph [2]_: nodes are the intervals after checkpoints, the same messages are the edge
I(i, a) → I(j, b): if the tail is undone, the head must be. Its cycles are the Z-cycles.

References
----------
.. [1] G. Siachamis et al., "CheckMate: Evaluating Checkpointing Protocols for Streaming Dataflows", ICDE 2024,
   section III-B and Figure 4.
.. [2] Y.-M. Wang, "Consistent global checkpoints that contain a given set of local checkpoints", IEEE Trans.
   Computers 46(4), 1997.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from cklog.arrays.types import Ints
from cklog.graphs.selection import GraphKind, GraphQuestion, Selection, select, too_much
from cklog.history.arrays import History
from cklog.history.watermarks import UNBOUNDED
from cklog.lines.entries import useless_checkpoints
from cklog.model.lines import LineEntry, Protocol, RecoveryLine
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader
from cklog.zigzag.message_edges import MessageEdges, cut_history, message_edges


@dataclass(frozen=True, slots=True)
class GraphSubtask:
    """A subtask and how much of it is in the graph; `checkpoints` counts all nodes of it.

    `before` and `after` are those left out at either end. `line` is its checkpoint on the line, None where it has no
    number; `on_line` says where that is.
    """

    operator: str
    subtask: int
    checkpoints: int
    before: int
    after: int
    failed: bool
    line: int | None
    on_line: Literal["shown", "before", "after", "none"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A checkpoint, or the interval after it; `id` is `op/sub=checkpoint`.

    `rolled_past`: stored, and newer than the line. An interval is undone exactly if its checkpoint is on the line or
    rolled past. `asked`: the one that --around names.
    """

    id: str
    operator: str
    subtask: int
    checkpoint: int | None
    time: int | None
    state: Literal["stored", "initial", "current"]
    on_line: bool
    rolled_past: bool
    useless: bool
    asked: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """What is done next by the same subtask (kind local), or messages [seq_from, seq_to) of a channel.

    `dominated`: another edge of the channel forces every rollback that this one forces. `orphan`: the line undoes
    the sending, and a checkpoint newer than the line has received them. `in_flight`: sent before the line, received
    after it. `messages` and `seq_to` are None if a damaged log does not tell.
    """

    kind: Literal["local", "message"]
    from_: str
    to: str
    channel: str | None = None
    messages: int | None = None
    seq_from: int | None = None
    seq_to: int | None = None
    dominated: bool = False
    orphan: bool = False
    in_flight: bool = False


@dataclass(frozen=True, slots=True)
class Unreceived:
    """Messages [seq_from, seq_to) sent in the interval after `from_` that no checkpoint has received.

    `in_flight`: the line keeps their sending, so they are replayed.
    """

    from_: str
    channel: str
    messages: int
    seq_from: int
    seq_to: int
    in_flight: bool


@dataclass(frozen=True, slots=True)
class CheckpointGraph:
    """What `graph` answers. `line`, `rolled_back`, `useless` and `domino` are those of the whole history."""

    kind: GraphKind
    consistent: bool
    protocol: Protocol
    domino: bool
    line: tuple[LineEntry, ...]
    rolled_back: tuple[CheckpointId, ...]
    useless: tuple[CheckpointId, ...]
    subtasks: tuple[GraphSubtask, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    unreceived: tuple[Unreceived, ...]


def graph_answer(reader: RecordReader, question: Question, asked: GraphQuestion) -> Draft[CheckpointGraph]:
    """Draw the graph of a run around the line that `question` asks for."""
    planned = plan_line(reader, question)
    line = planned.line if planned.result.consistent else None
    return planned.draft("graph", graph_of(planned.evidence.history, line, planned.result, asked))


def graph_of(history: History, line: Ints | None, found: RecoveryLine, asked: GraphQuestion) -> CheckpointGraph:
    """Build the part of the graph that is asked for.

    Parameters
    ----------
    history : all checkpoints
    line : index per subtask, shape (n,); None if no line is consistent
    found : the same line by labels

    Raises
    ------
    NotFound, UsageError : see `select`
    """
    useless = found.useless if found.consistent else useless_checkpoints(history)
    selection = select(history, asked)
    builder = _GraphRows(history, line, selection, asked.kind, frozenset(useless))
    edges, local = builder.message_edges(), builder.local_edges()
    count = len(edges.channel) + len(local)
    if count > asked.limits.edges:
        raise too_much(count, "edges", asked.limits.edges, history, asked)
    return CheckpointGraph(
        asked.kind,
        found.consistent,
        found.protocol,
        found.domino,
        found.line,
        found.rolled_back,
        useless,
        builder.subtasks(),
        builder.nodes(),
        (*local, *builder.edges(edges)),
        builder.unreceived(),
    )


class _GraphRows:
    """Rows of a selection: indices in, names out."""

    def __init__(
        self,
        history: History,
        line: Ints | None,
        selection: Selection,
        kind: GraphKind,
        useless: frozenset[CheckpointId],
    ) -> None:
        self._history = history
        self._line = line
        self._kind = kind
        self._useless = useless
        # Nothing happens after a survivor's current state: it is a checkpoint, but no interval.
        intervals = history.newest - history.survivor
        high = selection.high if kind == "checkpoint" else np.minimum(selection.high, intervals)
        self._selection = replace(selection, high=high)

    def message_edges(self) -> MessageEdges:
        """The edges with both ends in the selection, by indices of the whole history.

        One row more at both ends is looked at: a run of messages ends with the next watermark.
        """
        history, chosen = self._history, self._selection
        shown = chosen.low <= chosen.high
        low = np.where(shown, np.maximum(chosen.low - 1, 0), 0)
        high = np.where(shown, np.minimum(chosen.high + 1, history.newest), -1)
        part, channels = cut_history(history, low, high)
        found = message_edges(part)
        channel = channels[found.channel]
        send = found.send + low[history.src[channel]]
        receive = found.receive + low[history.dst[channel]]
        head = receive + (self._kind == "checkpoint")
        keep = chosen.holds(history.src[channel], send) & chosen.holds(history.dst[channel], head)
        edges = MessageEdges(channel, send, receive, found.first, found.end, found.dominated).where(keep)
        return edges.where(chosen.shows(history, edges))

    def subtasks(self) -> tuple[GraphSubtask, ...]:
        """One row per subtask with a node in the graph."""
        history, rows = self._history, []
        last = history.newest - (history.survivor if self._kind == "rollback" else 0)
        for i, low, high in self._shown():
            on_line: Literal["shown", "before", "after", "none"] = "none"
            label = None
            if self._line is not None:
                at = int(self._line[i])
                on_line = "before" if at < low else "after" if at > high else "shown"
                label = int(history.label[history.first[i] + at])
            count = int(last[i]) + 1
            line = None if label == -1 else label
            failed = not bool(history.survivor[i])
            rows.append(GraphSubtask(*history.subtasks[i], count, low, count - 1 - high, failed, line, on_line))
        return tuple(rows)

    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes of each subtask in order."""
        return tuple(self._node(i, x) for i, low, high in self._shown() for x in range(low, high + 1))

    def local_edges(self) -> tuple[Edge, ...]:
        """From each node to the next one of its subtask."""
        pairs = ((i, pair) for i, low, high in self._shown() for pair in pairwise(range(low, high + 1)))
        return tuple(Edge("local", self._id(i, x), self._id(i, y)) for i, (x, y) in pairs)

    def edges(self, found: MessageEdges) -> tuple[Edge, ...]:
        """Message edges by name."""
        history = self._history
        src, dst = history.src[found.channel], history.dst[found.channel]
        head = found.receive + (self._kind == "checkpoint")
        orphan, in_flight = np.zeros((2, len(src)), np.bool_)
        if self._line is not None:
            orphan = found.send >= self._line[src]
            in_flight = ~orphan & (found.receive >= self._line[dst])
        columns = (found.channel, src, found.send, dst, head, found.first, found.end)
        flags = zip(found.dominated.tolist(), orphan.tolist(), in_flight.tolist(), strict=True)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(
            Edge(
                "message",
                self._id(i, a),
                self._id(j, b),
                history.channels[k],
                None if end == UNBOUNDED else end - first,
                first,
                None if end == UNBOUNDED else end,
                *told,
            )
            for (k, i, a, j, b, first, end), told in zip(rows, flags, strict=True)
        )

    def unreceived(self) -> tuple[Unreceived, ...]:
        """What was sent between two checkpoints of the selection and received by none, as far as records go."""
        history, chosen, rows = self._history, self._selection, []
        known = history.received[history.received_at[1:] - 1]
        shown = chosen.low <= chosen.high
        pairs = np.flatnonzero(
            shown[history.src] & shown[history.dst] & (known < history.sent[history.sent_at[1:] - 1])
        )
        for k in pairs.tolist():
            i, at = int(history.src[k]), int(history.sent_at[k])
            low, high = int(chosen.low[i]), min(int(chosen.high[i]), int(history.newest[i]) - 1)
            sent = history.sent[at + low : at + high + 2].tolist()
            for a, (first, end) in enumerate(pairwise(sent), low):
                first = max(first, int(known[k]))
                if first < end:
                    kept = self._line is not None and a < self._line[i]
                    rows.append(Unreceived(self._id(i, a), history.channels[k], end - first, first, end, bool(kept)))
        return tuple(rows)

    def _shown(self) -> list[tuple[int, int, int]]:
        """Subtask, first and last index of those with a node."""
        bounds = zip(self._selection.low.tolist(), self._selection.high.tolist(), strict=True)
        return [(i, low, high) for i, (low, high) in enumerate(bounds) if low <= high]

    def _id(self, i: int, x: int) -> str:
        label = int(self._history.label[self._history.first[i] + x])
        return f"{self._history.subtasks[i]}={'current' if label < 0 else label}"

    def _node(self, i: int, x: int) -> GraphNode:
        history = self._history
        row = int(history.first[i]) + x
        label, time = int(history.label[row]), int(history.time[row])
        operator, subtask = history.subtasks[i]
        current = bool(history.survivor[i]) and x == int(history.newest[i])
        at = -1 if self._line is None else int(self._line[i])
        return GraphNode(
            self._id(i, x),
            operator,
            subtask,
            None if current else label,
            None if time < 0 or current else time,
            "current" if current else "initial" if x == 0 and label == 0 else "stored",
            on_line=x == at,
            rolled_past=self._line is not None and x > at and not current,
            useless=not current and CheckpointId(operator, subtask, label) in self._useless,
            asked=row == self._selection.row,
        )
