"""A space-time diagram as SVG, in the form of the papers: subtasks as lines, checkpoints as boxes, messages as arrows.

The file needs nothing else: no script, no font and no other file; it has its own background and legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cklog.graphs.graph import CheckpointGraph, Edge, GraphNode, GraphSubtask, Unreceived
from cklog.graphs.space_time.layout import Arrow, Lane, flow_order, lay_out
from cklog.graphs.space_time.shapes import (
    ARROWS,
    INK,
    LINE,
    MUTED,
    PAPER,
    SMALL,
    USELESS,
    arrow,
    arrow_style,
    axis,
    box,
    box_style,
    centred,
    definitions,
    failure_mark,
    legend,
    line_stroke,
)
from cklog.graphs.view import graph_headline, left_out, line_word, messages_word, useless_note
from cklog.model.findings import Finding
from cklog.model.names import parse_channel
from cklog.model.verdict import Answer
from cklog.model.wording import utc
from cklog.render.svg import GLYPH, Attributes, element, number, shortened, text_of, wrapped

_MARGIN = 24.0
_NAME_SIZE = 13.0
_TITLE_SIZE = 15.0
_LEAST_WIDTH = 760.0
_DRAWN_ARROWS = 300  # above, only those that are not dominated are drawn
_LABELLED_ARROWS = 150  # above, sequence numbers are shown only where an arrow is pointed at
_LANE_HEIGHTS = ((12, 84.0), (40, 60.0))  # up to so many lanes; more have 44
_LABEL_PLACES = (0.5, 0.38, 0.62, 0.26, 0.74)  # along an arrow, in the order in which they are tried


def space_time(answer: Answer[CheckpointGraph]) -> str:
    """Draw the diagram of a `graph` answer whose nodes are checkpoints."""
    return _Diagram(answer).text()


@dataclass(frozen=True, slots=True)
class _SubtaskRow:
    """A subtask's line in the picture, at height `y`; `boxes` are the places of its nodes in x."""

    subtask: GraphSubtask
    nodes: tuple[GraphNode, ...]
    boxes: tuple[float, ...]
    y: float

    @property
    def name(self) -> str:
        """The subtask as operator/subtask."""
        return f"{self.subtask.operator}/{self.subtask.subtask}"


@dataclass(frozen=True, slots=True)
class _DrawnArrow:
    """An arrow in its place; `head_y` is short of the line if the messages never arrive."""

    message: Edge | Unreceived
    x: float
    y: float
    head_x: float
    head_y: float
    bow: float = 0.0

    def path(self) -> str:
        """Return the path to draw: a line, or a bow over the line of a subtask that sends to itself."""
        ends = f"M{number(self.x)} {number(self.y)}", f"{number(self.head_x)} {number(self.head_y)}"
        middle = f"{number((self.x + self.head_x) / 2)} {number(self.y - self.bow)}"
        return f"{ends[0]}Q{middle} {ends[1]}" if self.bow else f"{ends[0]}L{ends[1]}"

    def at(self, part: float) -> tuple[float, float]:
        """Return the place (x, y) after some part of the way."""
        lift = 2 * part * (1 - part) * self.bow
        return self.x + part * (self.head_x - self.x), self.y + part * (self.head_y - self.y) - lift


class _Diagram:
    """The picture of one answer: places are found first, then the parts are drawn from back to front."""

    def __init__(self, answer: Answer[CheckpointGraph]) -> None:
        self._answer = answer
        self._graph = answer.result
        self._notes = left_out(self._graph)
        subtasks, nodes = self._in_order()
        self._box = max([28.0, *(len(_box_label(n)) * SMALL * GLYPH + 10 for row in nodes for n in row)])
        self._messages = self._chosen_messages()
        place = {node.id: (i, k) for i, row in enumerate(nodes) for k, node in enumerate(row)}
        arrows = [_layout_arrow(message, place) for message in self._messages]
        self._layout = lay_out([_layout_lane(row) for row in nodes], arrows, self._box)
        names = [len(shortened(f"{s.operator}/{s.subtask}", 30)) * _NAME_SIZE * GLYPH for s in subtasks]
        self._left = _MARGIN + max(names, default=0.0) + 36 + self._box / 2
        self._right = self._left + self._layout.width + self._box / 2 + 22
        self._width = max(self._right + _MARGIN, _LEAST_WIDTH)
        self._head, top = self._heading()
        pitch = next((height for most, height in _LANE_HEIGHTS if len(subtasks) <= most), 44.0)
        boxes = [tuple(self._left + x for x in row) for row in self._layout.boxes]
        rows = zip(subtasks, nodes, boxes, strict=True)
        self._rows = [_SubtaskRow(*row, top + pitch * (i + 0.6)) for i, row in enumerate(rows)]
        self._bottom = top + pitch * (len(subtasks) + 0.1)
        self._drawn = [self._drawn_arrow(m, a, k) for k, (m, a) in enumerate(zip(self._messages, arrows, strict=True))]

    def text(self) -> str:
        """Return the whole file."""
        styles = [style for style in ARROWS if any(arrow_style(d.message) == style for d in self._drawn)]
        below = self._bottom + 34
        signs, height = legend(self._graph, styles, _MARGIN, below + 24, self._width - 2 * _MARGIN)
        self._height = below + 24 + height + _MARGIN / 2
        title = graph_headline(self._answer)
        parts = [
            element("title", text_of(f"cklog graph: {title}")),
            definitions(),
            element("rect", width=self._width, height=self._height, rx=6.0, fill=PAPER, stroke="#d1d9e0"),
            self._head,
            *(self._subtask_line(row) for row in self._rows),
            self._recovery_line(),
            *(arrow(arrow_style(d.message), d.path(), _arrow_tooltip(d.message)) for d in self._drawn),
            *(part for row in self._rows for part in self._drawn_boxes(row)),
            *self._arrow_labels(),
            axis(self._layout, self._left, self._bottom),
            signs,
        ]
        size = f"0 0 {number(self._width)} {number(self._height)}"
        return (
            element(
                "svg",
                "\n" + "\n".join(part for part in parts if part) + "\n",
                xmlns="http://www.w3.org/2000/svg",
                viewBox=size,
                width=self._width,
                height=self._height,
                font_family="Helvetica, Arial, sans-serif",
                role="img",
            )
            + "\n"
        )

    # --- what is in it

    def _in_order(self) -> tuple[list[GraphSubtask], list[tuple[GraphNode, ...]]]:
        """Return the subtasks and the nodes of each, every operator below those that send to it."""
        graph = self._graph
        nodes: dict[tuple[str, int], list[GraphNode]] = {(s.operator, s.subtask): [] for s in graph.subtasks}
        operator = {}
        for node in graph.nodes:
            nodes[node.operator, node.subtask].append(node)
            operator[node.id] = node.operator
        pairs = {(operator[e.from_], operator[e.to]) for e in graph.edges}
        order = {name: i for i, name in enumerate(flow_order({s.operator for s in graph.subtasks}, pairs))}
        subtasks = sorted(graph.subtasks, key=lambda s: (order[s.operator], s.subtask))
        return subtasks, [tuple(nodes[s.operator, s.subtask]) for s in subtasks]

    def _chosen_messages(self) -> list[Edge | Unreceived]:
        """Choose the messages that are drawn: all, or where there are too many, those that others do not dominate."""
        edges = [e for e in self._graph.edges if e.kind == "message"]
        lost = list(self._graph.unreceived)
        if len(edges) + len(lost) <= _DRAWN_ARROWS:
            return [*edges, *lost]
        kept = [e for e in edges if not e.dominated]
        note = f"Arrows are drawn for {len(kept)} of {len(edges)} groups of messages: those that others do not dominate"
        self._notes.append(note)
        return [*kept, *lost]

    def _drawn_arrow(self, message: Edge | Unreceived, found: Arrow, k: int) -> _DrawnArrow:
        """Put arrow number k of the layout in its place."""
        x, y = self._left + self._layout.tails[k], self._rows[found.source].y
        head = self._layout.heads[k]
        if head is not None and found.target is not None:
            return _DrawnArrow(
                message=message,
                x=x,
                y=y,
                head_x=self._left + head,
                head_y=self._rows[found.target].y,
                bow=44.0 if found.target == found.source else 0.0,
            )
        assert isinstance(message, Unreceived)
        channel = parse_channel(message.channel)
        assert channel is not None
        target = next(r for r in self._rows if (r.subtask.operator, r.subtask.subtask) == channel.receiver)
        short = 26.0 if target.y > y else -26.0
        head_y = target.y - short if target.y != y else y - 30
        return _DrawnArrow(message=message, x=x, y=y, head_x=x + 34, head_y=head_y)

    # --- how it looks

    def _heading(self) -> tuple[str, float]:
        """Write title, what was left out and what is wrong with the input; return it and where the picture begins."""
        columns = int((self._width - 2 * _MARGIN) / (SMALL * GLYPH))
        title = wrapped(graph_headline(self._answer), int(columns * SMALL / _TITLE_SIZE))
        lines = [(text, _TITLE_SIZE, INK) for text in title]
        for note in [useless_note(self._graph), *self._notes]:
            lines += [(text, SMALL + 1, MUTED) for text in wrapped(note, int(columns * SMALL / (SMALL + 1))) if text]
        for note in _findings_notes(self._answer.findings):
            lines += [(text, SMALL + 1, USELESS) for text in wrapped(note, int(columns * SMALL / (SMALL + 1)))]
        y, parts = _MARGIN - 4, []
        for text, size, color in lines:
            y += size * 1.45
            weight = "bold" if size == _TITLE_SIZE else None
            shape: Attributes = {"x": _MARGIN, "y": y, "font_size": size, "fill": color}
            parts.append(element("text", text_of(text), **shape, font_weight=weight))
        return "\n".join(parts), y + 14

    def _subtask_line(self, row: _SubtaskRow) -> str:
        """Draw a subtask's name and its line."""
        left, right = self._left - self._box / 2 - 14, self._right
        shape: Attributes = {
            "x": left - 10,
            "y": row.y + 4.5,
            "font_size": _NAME_SIZE,
            "fill": INK,
            "text_anchor": "end",
        }
        name = element("text", element("title", text_of(row.name)), text_of(shortened(row.name, 30)), **shape)
        dash = "2 4" if row.subtask.before else None
        stem: Attributes = {"y1": row.y, "y2": row.y, "stroke": INK, "stroke_width": 1.3}
        parts = [name, element("line", x1=left, x2=row.boxes[0], stroke_dasharray=dash, **stem)]
        parts.append(element("line", x1=row.boxes[0], x2=row.boxes[-1], **stem))
        if row.subtask.after:
            parts.append(element("line", x1=row.boxes[-1], x2=right, stroke_dasharray="2 4", **stem))
        elif row.subtask.failed:
            parts.append(element("line", x1=row.boxes[-1], x2=right - 6, **stem))
            parts.append(failure_mark(right - 4, row.y))
        return "\n".join(parts)

    def _recovery_line(self) -> str:
        """Draw the recovery line, from above the first lane to below the last; what is not shown lies at an edge."""
        at = [(x, row.y) for row in self._rows if (x := self._on_line(row)) is not None]
        if not at:
            return ""
        ends = [(at[0][0], at[0][1] - 30), *at, (at[-1][0], at[-1][1] + 30)]
        parts = [line_stroke(" ".join(f"{number(x)},{number(y)}" for x, y in ends))]
        for row in self._rows:
            if row.subtask.on_line in ("before", "after"):
                word, x = line_word(row.subtask), self._on_line(row) or 0.0
                aside = 12 + len(word) * SMALL * GLYPH / 2
                label, x = (f"← {word}", x + aside) if row.subtask.on_line == "before" else (f"{word} →", x - aside)
                parts.append(centred(label, x, row.y - 11, LINE, bold=True, halo=True))
        return "\n".join(parts)

    def _on_line(self, row: _SubtaskRow) -> float | None:
        """Return the x at which the line crosses a subtask; None if it does not."""
        if row.subtask.on_line == "none":
            return None
        if row.subtask.on_line == "shown":
            return next(x for x, node in zip(row.boxes, row.nodes, strict=True) if node.on_line)
        return self._left - self._box / 2 - 8 if row.subtask.on_line == "before" else self._right - 4

    def _drawn_boxes(self, row: _SubtaskRow) -> Iterator[str]:
        """Draw the boxes of a subtask."""
        for x, node in zip(row.boxes, row.nodes, strict=True):
            yield box(box_style(node), x, row.y, self._box, _box_label(node), _box_tooltip(node))

    def _arrow_labels(self) -> Iterator[str]:
        """Write sequence numbers on the arrows, where there is room."""
        if len(self._drawn) > _LABELLED_ARROWS:
            return
        half = self._box / 2 + 2
        taken = [(x - half, row.y - 13, x + half, row.y + 13) for row in self._rows for x in row.boxes]
        for drawn in self._drawn:
            label = messages_word(drawn.message.seq_from or 0, drawn.message.seq_to, drawn.message.messages)
            width = len(label) * SMALL * GLYPH / 2 + 3
            for part in _LABEL_PLACES:
                x, y = drawn.at(part)
                place = (x - width, y - 7, x + width, y + 7)
                crosses = any(abs(row.y - y) < 8 for row in self._rows)
                if not crosses and not any(_rectangles_overlap(place, other) for other in taken):
                    taken.append(place)
                    yield centred(label, x, y, arrow_style(drawn.message).text, halo=True)
                    break


def _layout_lane(nodes: tuple[GraphNode, ...]) -> Lane:
    """Return the nodes of a subtask as a lane of the layout."""
    times = tuple(node.time for node in nodes)
    return Lane(times, nodes[0].state == "initial" and nodes[0].time is None, nodes[-1].state == "current")


def _layout_arrow(message: Edge | Unreceived, place: dict[str, tuple[int, int]]) -> Arrow:
    """Return a message as an arrow of the layout; `place` is the lane and the number in it of each node."""
    source, tail = place[message.from_]
    channel, seq = message.channel or "", message.seq_from or 0
    if isinstance(message, Unreceived):
        return Arrow(channel, seq, source, tail)
    target, head = place[message.to]
    return Arrow(channel=channel, seq=seq, source=source, tail=tail, target=target, head=head - 1)


def _box_label(node: GraphNode) -> str:
    """Write what stands in a box; the end of a long number tells more than its beginning."""
    if node.checkpoint is None:
        return "now"
    text = str(node.checkpoint)
    return text if len(text) <= 7 else f"…{text[-6:]}"


def _box_tooltip(node: GraphNode) -> str:
    """Write what is shown where a box is pointed at."""
    words = [*(["on the line"] if node.on_line else []), *(["rolled past"] if node.rolled_past else [])]
    words += ["useless"] if node.useless else []
    when = [utc(node.time)] if node.time is not None else []
    return ", ".join([node.id, *when, *words])


def _arrow_tooltip(message: Edge | Unreceived) -> str:
    """Write what is shown where an arrow is pointed at."""
    label = messages_word(message.seq_from or 0, message.seq_to, message.messages)
    return f"{message.channel}: {label}, {arrow_style(message).legend}"


def _findings_notes(findings: tuple[Finding, ...]) -> list[str]:
    """Say what a reader of the picture alone must know of the input: errors and warnings by their id."""
    counts = Counter((f.severity, f.id) for f in findings if f.severity != "info")
    names = [f"{severity} {id}{f' ({n} times)' if n > 1 else ''}" for (severity, id), n in sorted(counts.items())]
    return [f"Findings: {', '.join(names)}"] if names else []


def _rectangles_overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
