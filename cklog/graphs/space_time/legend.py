"""What stands under a space-time diagram: the time axis, if it is to scale, and the meaning of its signs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cklog.graphs.graph import CheckpointGraph
from cklog.graphs.space_time.layout import DiagramLayout
from cklog.graphs.space_time.shapes import (
    INK,
    MUTED,
    SMALL,
    ArrowStyle,
    BoxStyle,
    arrow,
    box,
    box_style,
    centred,
    failure_mark,
    line_stroke,
)
from cklog.model.wording import utc
from cklog.render.svg import GLYPH, element, number, text_of

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
    graph: CheckpointGraph, styles: list[ArrowStyle], left: float, top: float, width: float
) -> tuple[str, float]:
    """Draw the signs that occur in the picture with what they mean; return them and the height that they take."""
    x, y, parts = left, top, []
    for meaning, sign in _signs(graph, styles):
        need = _SIGN_WIDTH + len(meaning) * SMALL * GLYPH + 18
        if x > left and x + need > left + width:
            x, y = left, y + _ROW_HEIGHT
        parts.append(sign(x + _SIGN_WIDTH / 2 - 4, y))
        parts.append(element("text", text_of(meaning), x=x + _SIGN_WIDTH, y=y + 4, font_size=SMALL, fill=INK))
        x += need
    return "\n".join(parts), y + _ROW_HEIGHT - top


def _signs(graph: CheckpointGraph, styles: list[ArrowStyle]) -> Iterator[tuple[str, _Sign]]:
    """Yield what each sign in the picture means, and a function that draws it around a place."""
    seen = {box_style(node) for node in graph.nodes}
    if any(s.on_line != "none" for s in graph.subtasks):
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
    if any(subtask.failed and not subtask.after for subtask in graph.subtasks):
        yield "failed: its state is lost", failure_mark
    for style in styles:
        yield style.legend, _arrow_sign(style)


def _box_sign(style: BoxStyle, label: str) -> _Sign:
    return lambda x, y: box(style, x, y, 28, label)


def _arrow_sign(style: ArrowStyle) -> _Sign:
    return lambda x, y: arrow(style, f"M{number(x - 16)} {number(y)}H{number(x + 16)}")
