"""A space-time diagram as SVG, in the form of the papers: subtasks as lines, checkpoints as boxes, messages as arrows.

The file needs nothing else: no script, no font and no other file; it has its own background and legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cklog.graphs.graph import CheckpointGraph
from cklog.graphs.selection import GraphQuestion
from cklog.graphs.space_time.fold import folded_scene
from cklog.graphs.space_time.layout import DiagramLayout, lay_out
from cklog.graphs.space_time.scene import MOST_ARROWS, SceneArrow, SceneLane, arrows_note, choices, scene_of
from cklog.graphs.space_time.shapes import (
    ARROWS,
    INK,
    LINE,
    MUTED,
    PAPER,
    SMALL,
    USELESS,
    Room,
    arrow,
    axis,
    box,
    centred,
    definitions,
    failure_mark,
    legend,
    line_area,
    line_stroke,
)
from cklog.graphs.view import graph_headline, left_out, useless_note
from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.svg import GLYPH, Attributes, element, number, shortened, text_of, wrapped

_MARGIN = 24.0
_NAME_SIZE = 13.0
_TITLE_SIZE = 15.0
_LEAST_WIDTH = 760.0
_LABELLED_ARROWS = 150  # above, sequence numbers are shown only where an arrow is pointed at
_LANE_HEIGHTS = ((12, 84.0), (40, 60.0), (120, 44.0))  # up to so many lanes; more have 30
_TALL = 60  # lanes of a picture that has its legend and a time axis above it, too
_GROWN = 1_600.0  # pixels, as a square's side: title and legend of a larger picture grow with it,
_MOST_GROWTH = 2.5  # up to so many times
_TITLE_COLUMNS = 60  # but a line of the title has as many letters at least
_WIDER = (0.5, 0.75, 1.0)  # of a page: tried for a picture to scale where one is not as wide as its events need
_ALL_OF_IT = "This is a window around the recovery line: --all draws everything, --last N or --around another part"
_LABEL_PLACES = (0.5, 0.38, 0.62, 0.26, 0.74)  # along an arrow, in the order in which they are tried


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture as SVG, and what it leaves out, in sentences."""

    svg: str
    notes: tuple[str, ...]


def space_time(answer: Answer[CheckpointGraph], asked: GraphQuestion = GraphQuestion()) -> Drawing:
    """Draw the diagram of a `graph` answer whose nodes are checkpoints, as wide as `asked` and folded if asked."""
    diagram = _Diagram(answer, asked)
    return Drawing(diagram.text(), tuple(diagram.notes))


@dataclass(frozen=True, slots=True)
class _Row:
    """A lane in the picture, at height `y`; `boxes` are the places of its boxes in x."""

    lane: SceneLane
    boxes: tuple[float, ...]
    y: float


@dataclass(frozen=True, slots=True)
class _DrawnArrow:
    """An arrow in its place; `head_y` is short of the line if the messages never arrive."""

    message: SceneArrow
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

    def __init__(self, answer: Answer[CheckpointGraph], asked: GraphQuestion) -> None:
        self._answer = answer
        self._graph = answer.result
        self._marked = asked.marked
        self._scene = folded_scene(self._graph) if asked.fold else scene_of(self._graph)
        left = left_out(self._graph)
        self.notes = [*left, *([_ALL_OF_IT] if left and not asked.chosen else []), *self._scene.notes]
        lanes = self._scene.lanes
        self._box = max([28.0, *(len(box.label) * SMALL * GLYPH + 10 for lane in lanes for box in lane.boxes)])
        names = [len(shortened(lane.name, 30)) * _NAME_SIZE * GLYPH for lane in lanes]
        self._left = _MARGIN + max(names, default=0.0) + 36 + self._box / 2
        beside = self._left + self._box / 2 + 22 + _MARGIN
        self._chosen, self._layout = self._arrows_that_fit(asked, beside)
        self._right = self._left + self._layout.width + self._box / 2 + 22
        self._width = max(self._right + _MARGIN, asked.width or _LEAST_WIDTH)
        self._page = asked.width or self._width
        pitch = next((height for most, height in _LANE_HEIGHTS if len(lanes) <= most), 30.0)
        self._tall = len(lanes) > _TALL
        side = (self._width * pitch * len(lanes)) ** 0.5
        readable = self._width / (_TITLE_COLUMNS * _TITLE_SIZE * GLYPH)
        self._growth = max(min(max(side / _GROWN, self._width / self._page), _MOST_GROWTH, readable), 1.0)
        self._head, top = self._heading()
        boxes = [tuple(self._left + x for x in row) for row in self._layout.boxes]
        rows = zip(lanes, boxes, strict=True)
        self._rows = [_Row(*row, top + pitch * (i + 0.6)) for i, row in enumerate(rows)]
        self._bottom = top + pitch * (len(lanes) + 0.1)
        self._drawn = [self._drawn_arrow(arrow, k) for k, arrow in enumerate(self._chosen)]

    def text(self) -> str:
        """Return the whole file."""
        below = self._bottom + 34
        signs, height = self._legend(below + 24)
        self._height = below + 24 + height + _MARGIN / 2
        title = graph_headline(self._answer)
        parts = [
            element("title", text_of(f"cklog graph: {title}")),
            definitions(),
            element("rect", width=self._width, height=self._height, rx=6.0, fill=PAPER, stroke="#d1d9e0"),
            self._head,
            *(self._lane_line(row) for row in self._rows),
            self._recovery_line(),
            *(arrow(d.message.style, d.path(), d.message.tooltip) for d in self._drawn),
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
                width=self._page,
                height=self._height * self._page / self._width,
                font_family="Helvetica, Arial, sans-serif",
                role="img",
            )
            + "\n"
        )

    # --- what is in it

    def _arrows_that_fit(self, asked: GraphQuestion, beside: float) -> tuple[list[SceneArrow], DiagramLayout]:
        """Choose the arrows, as many as the page has room for, and lay them out; `beside` is taken by names and edges.

        Where not even the boxes fit, the number of arrows alone decides, and the picture is made smaller.
        """
        lanes = [lane.placed for lane in self._scene.lanes]
        room = None if asked.page is None else asked.page - beside
        exact = room if asked.width is not None else None
        whole = self._scene.arrows
        tried: list[tuple[list[SceneArrow], str, DiagramLayout]] = []
        for kept, which in choices(whole):
            if len(kept) > MOST_ARROWS and not (asked.chosen and which and len(kept) <= 10 * MOST_ARROWS):
                continue
            if tried and len(kept) == len(tried[-1][0]):
                continue
            tried.append((kept, which, lay_out(lanes, [a.placed for a in kept], self._box, exact)))
            if room is None or tried[-1][2].width <= room + 0.5:
                break
        else:
            tried = tried[:1]
        kept, which, layout = tried[-1]
        if len(kept) < len(whole):
            self.notes.append(arrows_note(len(kept), len(whole), which))
        if room is not None and exact is None and layout.scale is None and (asked.fold or len(kept) < len(whole)):
            wider = (lay_out(lanes, [a.placed for a in kept], self._box, room * part) for part in _WIDER)
            layout = next((found for found in wider if found.scale and found.width <= room + 0.5), layout)
        return kept, layout

    def _drawn_arrow(self, message: SceneArrow, k: int) -> _DrawnArrow:
        """Put arrow number k of the layout in its place."""
        source, target = self._rows[message.placed.source], self._rows[message.toward]
        x, head = self._left + self._layout.tails[k], self._layout.heads[k]
        if head is not None:
            return _DrawnArrow(
                message=message,
                x=x,
                y=source.y,
                head_x=self._left + head,
                head_y=target.y,
                bow=44.0 if target is source else 0.0,
            )
        short = 26.0 if target.y > source.y else -26.0
        head_y = target.y - short if target is not source else source.y - 30
        return _DrawnArrow(message=message, x=x, y=source.y, head_x=x + 34, head_y=head_y)

    # --- how it looks

    def _heading(self) -> tuple[str, float]:
        """Write title, what was left out and what is wrong with the input; return it and where the picture begins.

        A tall picture has its legend and times here, too: nobody should scroll down to read what is at the top.
        """
        small, large = (SMALL + 1) * self._growth, _TITLE_SIZE * self._growth
        columns = (self._width - 2 * _MARGIN) / GLYPH
        title = wrapped(graph_headline(self._answer), int(columns / large))
        lines = [(text, large, INK) for text in title]
        for note in [useless_note(self._graph), *self.notes]:
            lines += [(text, small, MUTED) for text in wrapped(note, int(columns / small)) if text]
        for note in _findings_notes(self._answer.findings):
            lines += [(text, small, USELESS) for text in wrapped(note, int(columns / small))]
        y, parts = _MARGIN - 4, []
        for text, size, color in lines:
            y += size * 1.45
            weight = "bold" if size == large else None
            shape: Attributes = {"x": _MARGIN, "y": y, "font_size": size, "fill": color}
            parts.append(element("text", text_of(text), **shape, font_weight=weight))
        if self._tall:
            signs, height = self._legend(y + 32 * self._growth)
            parts.append(signs)
            y += 32 * self._growth + height
            parts.append(axis(self._layout, self._left, y))
            y += 30
        return "\n".join(parts), y + 14

    def _legend(self, top: float) -> tuple[str, float]:
        """Draw the legend and return it with its height."""
        lanes = self._scene.lanes
        return legend(
            boxes=(box.style for lane in lanes for box in lane.boxes),
            lined=any(lane.line or lane.line_before or lane.line_after for lane in lanes),
            failed=any(lane.failed and not lane.after for lane in lanes),
            styles=[style for style in ARROWS if any(a.style == style for a in self._chosen)],
            words=self._scene.legend,
            room=Room(_MARGIN, top, self._width - 2 * _MARGIN, self._growth),
        )

    def _lane_line(self, row: _Row) -> str:
        """Draw a lane's name and its line."""
        left, right = self._left - self._box / 2 - 14, self._right
        shape: Attributes = {
            "x": left - 10,
            "y": row.y + 4.5,
            "font_size": _NAME_SIZE,
            "fill": INK,
            "text_anchor": "end",
        }
        name = element("text", element("title", text_of(row.lane.name)), text_of(shortened(row.lane.name, 30)), **shape)
        dash = "2 4" if row.lane.before else None
        stem: Attributes = {"y1": row.y, "y2": row.y, "stroke": INK, "stroke_width": 1.3}
        parts = [name, element("line", x1=left, x2=row.boxes[0], stroke_dasharray=dash, **stem)]
        parts.append(element("line", x1=row.boxes[0], x2=row.boxes[-1], **stem))
        if row.lane.after:
            parts.append(element("line", x1=row.boxes[-1], x2=right, stroke_dasharray="2 4", **stem))
        elif row.lane.failed:
            parts.append(element("line", x1=row.boxes[-1], x2=right - 6, **stem))
            parts.append(failure_mark(right - 4, row.y))
        return "\n".join(parts)

    def _recovery_line(self) -> str:
        """Draw the recovery line, from above the first lane to below the last; what is not shown lies at an edge.

        Where lanes stand for many subtasks it is as broad as their checkpoints on it are apart.
        """
        at = [(*ends, row.y) for row in self._rows if (ends := self._on_line(row)) is not None]
        if not at:
            return ""
        at = [(at[0][0], at[0][1], at[0][2] - 30), *at, (at[-1][0], at[-1][1], at[-1][2] + 30)]
        first = [f"{number(x)},{number(y)}" for x, _, y in at]
        last = [f"{number(x)},{number(y)}" for _, x, y in at]
        parts = [line_stroke(" ".join(first)) if first == last else line_area(" ".join([*first, *last[::-1]]))]
        for row in self._rows:
            for word, sign in ((row.lane.line_before, -1), (row.lane.line_after, 1)):
                if word:
                    x = self._left - self._box / 2 - 8 if sign < 0 else self._right - 4
                    aside = 12 + len(word) * SMALL * GLYPH / 2
                    label, x = (f"← {word}", x + aside) if sign < 0 else (f"{word} →", x - aside)
                    parts.append(centred(label, x, row.y - 11, LINE, bold=True, halo=True))
        return "\n".join(parts)

    def _on_line(self, row: _Row) -> tuple[float, float] | None:
        """Return the x between which the line crosses a lane; None if it does not."""
        places = [row.boxes[k] for k in row.lane.line or ()]
        places += [self._left - self._box / 2 - 8] if row.lane.line_before else []
        places += [self._right - 4] if row.lane.line_after else []
        return (min(places), max(places)) if places else None

    def _drawn_boxes(self, row: _Row) -> Iterator[str]:
        """Draw the boxes of a lane."""
        for x, shown in zip(row.boxes, row.lane.boxes, strict=True):
            yield box(shown.style, x, row.y, self._box, shown.label, shown.tooltip, shown.id if self._marked else "")
            if shown.note:
                yield centred(shown.note, x, row.y + 20, LINE, halo=True)

    def _arrow_labels(self) -> Iterator[str]:
        """Write what the arrows are on them, where there is room."""
        if len(self._drawn) > _LABELLED_ARROWS:
            return
        half = self._box / 2 + 2
        taken = [(x - half, row.y - 13, x + half, row.y + 13) for row in self._rows for x in row.boxes]
        for drawn in self._drawn:
            width = len(drawn.message.label) * SMALL * GLYPH / 2 + 3
            for part in _LABEL_PLACES:
                x, y = drawn.at(part)
                place = (x - width, y - 7, x + width, y + 7)
                crosses = any(abs(row.y - y) < 8 for row in self._rows)
                if not crosses and not any(_rectangles_overlap(place, other) for other in taken):
                    taken.append(place)
                    yield centred(drawn.message.label, x, y, drawn.message.style.text, halo=True)
                    break


def _findings_notes(findings: tuple[Finding, ...]) -> list[str]:
    """Say what a reader of the picture alone must know of the input: errors and warnings by their id."""
    counts = Counter((f.severity, f.id) for f in findings if f.severity != "info")
    names = [f"{severity} {id}{f' ({n} times)' if n > 1 else ''}" for (severity, id), n in sorted(counts.items())]
    return [f"Findings: {', '.join(names)}"] if names else []


def _rectangles_overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
