"""The boxes, arrows and marks of a space-time diagram, in the picture and in its legend alike.

What stands under a space-time diagram: the time axis, if it is to scale, and the meaning of its signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cklog.graphs.graph import Edge, GraphNode, Unreceived
from cklog.graphs.space_time.layout import DiagramLayout
from cklog.model.wording import utc
from cklog.render.svg import GLYPH, Attributes, element, number, text_of, wrapped
from cklog.render.text import visible

INK, MUTED, PAPER = "#1f2328", "#59636e", "#ffffff"
LINE, PAST, USELESS = "#1a7f37", "#8c959f", "#cf222e"
SMALL = 11.0
"""The size of numbers in boxes and on arrows."""

_BOX_HEIGHT = 22.0


@dataclass(frozen=True, slots=True)
class ArrowStyle:
    """How an arrow is drawn, and what the legend says of it.

    `name` is that of its head, `text` the color of its label; widths in pixels.
    """

    name: str
    color: str
    legend: str
    width: float = 1.4
    dash: str | None = None
    text: str = MUTED


MESSAGE = ArrowStyle("message", MUTED, "messages")
ORPHAN = ArrowStyle(
    name="orphan",
    color=USELESS,
    legend="orphan messages: received, but the line undoes their sending",
    width=1.8,
    text=USELESS,
)
IMPLIED = ArrowStyle(
    "implied", "#e5909a", "orphan messages that force no rollback which others do not force", text="#a8545f"
)
IN_FLIGHT = ArrowStyle(
    name="flight",
    color="#0969da",
    legend="in flight across the line: replayed from the log",
    dash="6 4",
    text="#0969da",
)
NOT_RECEIVED = ArrowStyle(
    name="nowhere", color="#afb8c1", legend="sent, and received by no checkpoint", width=1.2, dash="3 4"
)
ARROWS = (MESSAGE, ORPHAN, IMPLIED, IN_FLIGHT, NOT_RECEIVED)


def arrow_style(row: Edge | Unreceived) -> ArrowStyle:
    """Return the style of messages; an arrow that arrives nowhere but is in flight is drawn like all in flight."""
    if row.in_flight:
        return IN_FLIGHT
    if isinstance(row, Unreceived):
        return NOT_RECEIVED
    if row.orphan:
        return IMPLIED if row.dominated else ORPHAN
    return MESSAGE


def definitions() -> str:
    """Define the arrow heads, which arrows refer to by name."""
    heads = [
        element(
            "marker",
            element("path", d="M0 0 8 3.5 0 7Z", fill=style.color),
            id=f"cklog-{style.name}",
            markerWidth=8,
            markerHeight=7,
            refX=8,
            refY=3.5,
            orient="auto",
            markerUnits="userSpaceOnUse",
        )
        for style in ARROWS
    ]
    return element("defs", *heads)


def arrow(style: ArrowStyle, path: str, tooltip: str = "") -> str:
    """Draw an arrow along a path; `tooltip` is shown when it is pointed at."""
    return element(
        "path",
        *([element("title", text_of(tooltip))] if tooltip else []),
        d=path,
        fill="none",
        stroke=style.color,
        stroke_width=style.width,
        stroke_dasharray=style.dash,
        marker_end=f"url(#cklog-{style.name})",
    )


@dataclass(frozen=True, slots=True)
class BoxStyle:
    """What the looks of a box say of its checkpoint; `asked` is the one that is looked around."""

    on_line: bool = False
    rolled_past: bool = False
    useless: bool = False
    state: str = "stored"
    asked: bool = False


def box_style(node: GraphNode) -> BoxStyle:
    """Return the looks of a node."""
    return BoxStyle(
        on_line=node.on_line,
        rolled_past=node.rolled_past,
        useless=node.useless,
        state=node.state,
        asked=node.asked,
    )


def box(style: BoxStyle, x: float, y: float, width: float, label: str, tooltip: str = "", mark: str = "") -> str:
    """Draw a box around (x, y) with its number in it; `tooltip` is shown when it is pointed at, scripts find `mark`."""
    left, top, right, bottom = x - width / 2, y - _BOX_HEIGHT / 2, x + width / 2, y + _BOX_HEIGHT / 2
    shape: Attributes = {"x": left, "y": top, "width": width, "height": _BOX_HEIGHT, "rx": 2.0}
    color, fill = _box_colors(style)
    parts = [element("title", text_of(tooltip))] if tooltip else []
    if style.asked:
        ring: Attributes = {"x": left - 5, "y": top - 5, "width": width + 10, "height": _BOX_HEIGHT + 10, "rx": 5.0}
        parts.append(element("rect", **ring, fill=PAPER, stroke="#bf8700", stroke_width=2.5))
    dash = "3 2" if style.state == "current" else None
    line: Attributes = {"stroke": color, "stroke_width": 2.5 if style.on_line else 1.3, "stroke_dasharray": dash}
    parts.append(element("rect", **shape, fill=fill, **line))
    if style.rolled_past:
        parts.append(element("path", d=_hatching(left, top, right), stroke=PAST, stroke_width=0.8, stroke_opacity=0.7))
    if style.useless:
        cross = f"M{number(left)} {number(top)} {number(right)} {number(bottom)}"
        cross += f"M{number(right)} {number(top)} {number(left)} {number(bottom)}"
        parts.append(element("path", d=cross, stroke=USELESS, stroke_width=1.5))
    parts.append(centred(label, x, y, INK, bold=style.on_line, halo=style.rolled_past or style.useless))
    return element("g", *parts, data_checkpoint=visible(mark) or None)


def _box_colors(style: BoxStyle) -> tuple[str, str]:
    """Return the colors of a box's frame and of its inside."""
    if style.on_line:
        return LINE, "#d2f4d9"
    return (PAST, "#f6f8fa") if style.rolled_past else (INK, PAPER)


def _hatching(left: float, top: float, right: float) -> str:
    """Draw slanting lines over a box; lines, because not every viewer draws patterns."""
    found, x = [], left + 5.0
    while x < right + _BOX_HEIGHT - 3:
        up, down = min(x, right - 1), max(x - _BOX_HEIGHT, left + 1)
        found.append(f"M{number(up)} {number(top + x - up)} {number(down)} {number(top + x - down)}")
        x += 7.0
    return "".join(found)


def centred(label: str, x: float, y: float, color: str, bold: bool = False, halo: bool = False) -> str:
    """Write a small text around (x, y); with a halo it can be read on anything."""
    shape: Attributes = {"x": x, "y": y + SMALL * 0.36, "font_size": SMALL, "text_anchor": "middle"}
    weight = "bold" if bold else None
    under = element(
        "text",
        text_of(label),
        **shape,
        font_weight=weight,
        fill=PAPER,
        stroke=PAPER,
        stroke_width=4.0,
        stroke_linejoin="round",
    )
    return (under if halo else "") + element("text", text_of(label), **shape, font_weight=weight, fill=color)


def failure_mark(x: float, y: float) -> str:
    """Draw a bolt that ends a subtask's line."""
    corners = [(2, -14), (-6, 2), (-1, 2), (-3, 14), (7, -4), (1, -4), (6, -14)]
    points = " ".join(f"{number(x + a)},{number(y + b)}" for a, b in corners)
    return element("polygon", points=points, fill=USELESS, stroke=PAPER, stroke_width=1)


def line_stroke(points: str) -> str:
    """Draw the recovery line through these points."""
    return element(
        "polyline",
        element("title", "recovery line"),
        points=points,
        fill="none",
        stroke=LINE,
        stroke_width=5,
        stroke_opacity=0.55,
        stroke_linejoin="round",
        stroke_linecap="round",
    )


def line_area(points: str) -> str:
    """Draw the recovery line of many subtasks as the area between its leftmost and its rightmost checkpoints."""
    return element(
        "polygon",
        element("title", "recovery line"),
        points=points,
        fill=LINE,
        fill_opacity=0.18,
        stroke=LINE,
        stroke_width=4,
        stroke_opacity=0.55,
        stroke_linejoin="round",
    )


_TICK_PIXELS = 110.0  # between two times on the axis, at least
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
)
_ROW_HEIGHT = 32.0
_SIGN_WIDTH = 46.0


@dataclass(frozen=True, slots=True)
class Room:
    """Where a legend stands, how wide it may be, and how many times as large as usual it is."""

    left: float
    top: float
    width: float
    growth: float


_Sign = Callable[[float, float], str]
"""Draws a sign of the legend around a place (x, y)."""


def axis(layout: DiagramLayout, left: float, top: float) -> str:
    """Draw the times under the picture, in UTC, the first with its date; or say that it is not to scale."""
    right = left + layout.width
    if layout.scale is None:
        note = "left to right: an order that agrees with the logs, not to scale"
        return element("text", text_of(note), x=left, y=top + 16, font_size=SMALL, fill=MUTED)
    (oldest, x_oldest), (newest, x_newest) = layout.scale
    pixels = (x_newest - x_oldest) / (newest - oldest)
    step = next((ms for ms in _STEPS_MS if ms * pixels >= _TICK_PIXELS), 0)
    step = step or _DAY * max(1, -int(-_TICK_PIXELS // (_DAY * pixels)))
    ticks = list(range(-(-oldest // step) * step, newest + 1, step)) or [oldest]
    parts = [element("line", x1=left, y1=top, x2=right, y2=top, stroke=MUTED, stroke_width=1)]
    for i, time in enumerate(ticks):
        x = left + x_oldest + (time - oldest) * pixels
        parts.append(element("line", x1=x, y1=top, x2=x, y2=top + 5, stroke=MUTED, stroke_width=1))
        label = _tick_label(time, step, dated=i == 0)
        parts.append(centred(label, x, top + 13, MUTED))
    return "\n".join(parts)


def _tick_label(time: int, step: int, dated: bool) -> str:
    """Write a time (ms) as exactly as a `step` between two ticks needs it, e.g. 11:30:15; `dated`: with its date."""
    full = utc(time)
    if len(full) != len("2026-01-01 00:00:00.000Z"):
        return full
    if step >= _DAY:
        return full[:10]
    clock = full[11:23] if step < _SECOND else full[11:19]
    return f"{full[:10]} {clock}Z" if dated else clock


def legend(
    boxes: Iterable[BoxStyle], lined: bool, failed: bool, styles: list[ArrowStyle], words: Sequence[str], room: Room
) -> tuple[str, float]:
    """Draw the signs that occur in the picture with what they mean; return them and the height that they take.

    `lined`: there is a recovery line; `failed`: a lane ends in a failure. `words` are sentences under the signs.
    """
    x, y, parts = 0.0, 0.0, []
    size = GLYPH * SMALL
    width = room.width / room.growth
    for meaning, sign in _signs(set(boxes), lined, failed, styles):
        need = _SIGN_WIDTH + len(meaning) * size + 18
        if x > 0 and x + need > width:
            x, y = 0.0, y + _ROW_HEIGHT
        parts.append(sign(x + _SIGN_WIDTH / 2 - 4, y))
        for text in wrapped(meaning, max(int((width - _SIGN_WIDTH) / size), 8)):
            parts.append(element("text", text_of(text), x=x + _SIGN_WIDTH, y=y + 4, font_size=SMALL, fill=INK))
            y += SMALL * 1.3
        y -= SMALL * 1.3
        x += need
    for sentence in words:
        y += _ROW_HEIGHT * 0.75
        for text in wrapped(sentence, max(int(width / size), 8)):
            parts.append(element("text", text_of(text), x=0.0, y=y + 4, font_size=SMALL, fill=MUTED))
            y += SMALL * 1.3
        y -= SMALL * 1.3
    place = f"translate({number(room.left)} {number(room.top)})"
    if room.growth != 1:
        place += f" scale({room.growth:.2f})"
    return element("g", "\n".join(parts), transform=place), (y + _ROW_HEIGHT) * room.growth


def _signs(seen: set[BoxStyle], lined: bool, failed: bool, styles: list[ArrowStyle]) -> Iterator[tuple[str, _Sign]]:
    """Yield what each sign in the picture means, and a function that draws it around a place."""
    if lined:
        yield "recovery line", lambda x, y: line_stroke(f"{number(x - 16)},{number(y)} {number(x + 16)},{number(y)}")
    yield "checkpoint", _box_sign(BoxStyle(), "3")
    if any(style.state == "initial" for style in seen):
        yield "initial state", _box_sign(BoxStyle(state="initial"), "0")
    if any(style.state == "current" for style in seen):
        yield "current state: keeps running", _box_sign(BoxStyle(state="current"), "now")
    if any(style.rolled_past for style in seen):
        yield "rolled past: newer than the line", _box_sign(BoxStyle(rolled_past=True), "3")
    if any(style.useless for style in seen):
        yield "useless: on a Z-cycle, in no consistent line, ever", _box_sign(BoxStyle(useless=True), "3")
    if any(style.asked for style in seen):
        yield "looked around", _box_sign(BoxStyle(asked=True), "3")
    if failed:
        yield "failed: its state is lost", failure_mark
    for style in styles:
        yield style.legend, _arrow_sign(style)


def _box_sign(style: BoxStyle, label: str) -> _Sign:
    return lambda x, y: box(style, x, y, 28, label)


def _arrow_sign(style: ArrowStyle) -> _Sign:
    return lambda x, y: arrow(style, f"M{number(x - 16)} {number(y)}H{number(x + 16)}")
