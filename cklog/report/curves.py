"""What a failure would have cost, moment by moment, as a curve; the page has a slider below it."""

from __future__ import annotations

from cklog.protocols.failures_over_time import FailuresOverTime
from cklog.render.svg import element, number, text_of

WIDTH, HEIGHT = 1_000.0, 160.0
_LEFT, _TOP, _BOTTOM = 46.0, 12.0, 24.0


def failures_curve(found: FailuresOverTime) -> str:
    """Draw the checkpoints that a failure at each moment rolls past, as steps; "" for fewer than two moments."""
    moments = found.moments
    if len(moments) < 2:
        return ""
    most = max(max(moment.rolled_past for moment in moments), 1)
    high = HEIGHT - _TOP - _BOTTOM
    step = (WIDTH - _LEFT) / (len(moments) - 1)

    def place(i: int) -> tuple[str, str]:
        return number(_LEFT + i * step), number(_TOP + high * (1 - moments[i].rolled_past / most))

    path = "M" + "L".join(" ".join(place(i)) for i in range(len(moments)))
    base = number(_TOP + high)
    parts = [
        element("title", "checkpoints rolled past by a failure at each moment"),
        element("path", d=f"{path}L{number(WIDTH)} {base}L{number(_LEFT)} {base}Z", class_="area"),
        element("path", d=path, class_="curve"),
        element("text", text_of(f"{most:,}"), x=_LEFT - 6, y=_TOP + 8, text_anchor="end"),
        element("text", "0", x=_LEFT - 6, y=_TOP + high, text_anchor="end"),
        element("line", x1=_LEFT, x2=_LEFT, y1=_TOP, y2=_TOP + high, class_="cursor", id="cursor"),
    ]
    drawn = element("svg", *parts, viewBox=f"0 0 {number(WIDTH)} {number(HEIGHT)}", role="img", id="curve")
    return drawn.replace(' class-="', ' class="')
