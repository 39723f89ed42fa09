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
from cklog.history.history import History
from cklog.history.watermarks import UNBOUNDED
from cklog.model.lines import LineEntry, Protocol, RecoveryLine
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader
from cklog.zigzag.message_edges import MessageEdges, cut_history, message_edges


@dataclass(frozen=True, slots=True)
class GraphSubtask:
    """A subtask and how much of it is in the graph.

    `checkpoints` counts all its nodes, `before` and `after` those left out at either end. `line` is its checkpoint on
    the line, None where that has no number; `on_line` says whether it is shown or left out.
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
    """An edge to the next node of the same subtask (kind local), or messages [seq_from, seq_to) of a channel.

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
    """The answer of `graph`; `line`, `rolled_back`, `useless` and `domino` are those of the whole history."""

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
    planned = plan_line(reader, question, everyone=True)
    line = planned.line if planned.result.consistent else None
    return planned.draft("graph", graph_of(planned.evidence.history, line, planned.result, asked))


def graph_of(history: History, line: Ints | None, found: RecoveryLine, asked: GraphQuestion) -> CheckpointGraph:
    """Build the part of the graph that is asked for.

    Parameters
    ----------
    history : all checkpoints
    line : index per subtask, shape (n,); None if no line is consistent
    found : the same line with checkpoint numbers instead of indices

    Raises
    ------
    NotFound, UsageError : see `select`
    """
    selection = select(history, asked, line)
    builder = _GraphRows(history, line=line, selection=selection, kind=asked.kind, useless=frozenset(found.useless))
    edges, local = builder.message_edges(), builder.local_edges()
    count = len(edges.channel) + len(local)
    if count > asked.limits.edges:
        raise too_much(count, "edges", asked.limits.edges, history, asked)
    return CheckpointGraph(
        kind=asked.kind,
        consistent=found.consistent,
        protocol=found.protocol,
        domino=found.domino,
        line=found.line,
        rolled_back=found.rolled_back,
        useless=found.useless,
        subtasks=builder.subtasks(),
        nodes=builder.nodes(),
        edges=(*local, *builder.edges(edges)),
        unreceived=builder.unreceived(),
    )


class _GraphRows:
    """The rows of a selection: takes indices and arrays of a history, gives rows with names.

    A subtask is an index i, a checkpoint of it an index x, as in `History`.
    """

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
        """Return the edges with both ends in the selection, by indices of the whole history.

        One row more at both ends is looked at: a run of messages ends with the next watermark.
        """
        history, chosen = self._history, self._selection
        shown = chosen.low <= chosen.high  # shape (n,), like `low` and `high`
        low = np.where(shown, np.maximum(chosen.low - 1, 0), 0)
        high = np.where(shown, np.minimum(chosen.high + 1, history.newest), -1)
        part, channels = cut_history(history, low, high)
        found = message_edges(part)
        channel = channels[found.channel]  # shape (edges,), like all below
        send = found.send + low[history.src[channel]]
        receive = found.receive + low[history.dst[channel]]
        head = receive + (self._kind == "checkpoint")
        keep = chosen.holds(history.src[channel], send) & chosen.holds(history.dst[channel], head)
        edges = replace(found, channel=channel, send=send, receive=receive).where(keep)
        return edges.where(chosen.shows(history, edges))

    def subtasks(self) -> tuple[GraphSubtask, ...]:
        """Return one row per subtask with a node in the graph."""
        history, rows = self._history, []
        last = history.newest - (history.survivor if self._kind == "rollback" else 0)
        for i, low, high in self._shown_ranges():
            on_line: Literal["shown", "before", "after", "none"] = "none"
            label = -1
            if self._line is not None:
                at = int(self._line[i])
                label = int(history.label[history.first[i] + at])
                on_line = "shown"
                if at < low:
                    on_line = "before"
                elif at > high:
                    on_line = "after"
            rows.append(
                GraphSubtask(
                    operator=history.subtasks[i].operator,
                    subtask=history.subtasks[i].subtask,
                    checkpoints=int(last[i]) + 1,
                    before=low,
                    after=int(last[i]) - high,
                    failed=not history.survivor[i],
                    line=None if label == -1 else label,
                    on_line=on_line,
                )
            )
        return tuple(rows)

    def nodes(self) -> tuple[GraphNode, ...]:
        """Return the nodes of each subtask in order."""
        return tuple(self._graph_node(i, x) for i, low, high in self._shown_ranges() for x in range(low, high + 1))

    def local_edges(self) -> tuple[Edge, ...]:
        """Return the edges from each node to the next one of its subtask."""
        found = []
        for i, low, high in self._shown_ranges():
            ids = [self._node_id(i, x) for x in range(low, high + 1)]
            found += [Edge("local", a, b) for a, b in pairwise(ids)]
        return tuple(found)

    def edges(self, found: MessageEdges) -> tuple[Edge, ...]:
        """Return message edges, shape (m,), with names, and with what the line makes of them."""
        history = self._history
        src, dst = history.src[found.channel], history.dst[found.channel]
        head = found.receive + (self._kind == "checkpoint")
        orphan, in_flight = np.zeros((2, len(src)), np.bool_)
        if self._line is not None:
            orphan = found.send >= self._line[src]
            in_flight = ~orphan & (found.receive >= self._line[dst])
        places = (found.channel, src, found.send, dst, head)
        numbers = (found.first, found.end)
        flags = (found.dominated, orphan, in_flight)
        return tuple(
            Edge(
                kind="message",
                from_=self._node_id(i, a),
                to=self._node_id(j, b),
                channel=history.channels[k],
                messages=None if end == UNBOUNDED else end - first,
                seq_from=first,
                seq_to=None if end == UNBOUNDED else end,
                dominated=is_dominated,
                orphan=is_orphan,
                in_flight=is_in_flight,
            )
            for k, i, a, j, b, first, end, is_dominated, is_orphan, is_in_flight in zip(
                *(column.tolist() for column in (*places, *numbers, *flags)), strict=True
            )
        )

    def unreceived(self) -> tuple[Unreceived, ...]:
        """Return what was sent between two checkpoints of the selection and received by none, as far as records go."""
        history, chosen, rows = self._history, self._selection, []
        known = history.received[history.received_at[1:] - 1]  # the newest watermark of each channel's receiver
        shown = chosen.low <= chosen.high
        channels = np.flatnonzero(
            shown[history.src] & shown[history.dst] & (known < history.sent[history.sent_at[1:] - 1])
        )
        for k in channels.tolist():
            i, at = int(history.src[k]), int(history.sent_at[k])
            low, high = int(chosen.low[i]), min(int(chosen.high[i]), int(history.newest[i]) - 1)
            sent = history.sent[at + low : at + high + 2].tolist()
            for a, (first, end) in enumerate(pairwise(sent), low):
                first = max(first, int(known[k]))
                if first < end:
                    rows.append(
                        Unreceived(
                            from_=self._node_id(i, a),
                            channel=history.channels[k],
                            messages=end - first,
                            seq_from=first,
                            seq_to=end,
                            in_flight=bool(self._line is not None and a < self._line[i]),
                        )
                    )
        return tuple(rows)

    def _shown_ranges(self) -> list[tuple[int, int, int]]:
        """List the subtasks with a node: subtask, first and last index shown."""
        bounds = zip(self._selection.low.tolist(), self._selection.high.tolist(), strict=True)
        return [(i, low, high) for i, (low, high) in enumerate(bounds) if low <= high]

    def _node_id(self, i: int, x: int) -> str:
        label = int(self._history.label[self._history.first[i] + x])
        return f"{self._history.subtasks[i]}={'current' if label < 0 else label}"

    def _graph_node(self, i: int, x: int) -> GraphNode:
        history = self._history
        row = int(history.first[i]) + x
        label, time = int(history.label[row]), int(history.time[row])
        operator, subtask = history.subtasks[i]
        current = bool(history.survivor[i]) and x == int(history.newest[i])
        at = -1 if self._line is None else int(self._line[i])
        state: Literal["stored", "initial", "current"] = "initial" if x == 0 and label == 0 else "stored"
        return GraphNode(
            id=self._node_id(i, x),
            operator=operator,
            subtask=subtask,
            checkpoint=None if current else label,
            time=None if time < 0 or current else time,
            state="current" if current else state,
            on_line=x == at,
            rolled_past=self._line is not None and x > at and not current,
            useless=not current and CheckpointId(operator, subtask, label) in self._useless,
            asked=row == self._selection.row,
        )
