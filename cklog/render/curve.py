"""A curve drawn as text, for terminals and files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_ROWS, _TICKS, _TICK_WIDTH, _LABEL_WIDTH = 12, 6, 10, 10
"""A figure has up to 12 rows and 6 ticks of 10 columns each: with labels it is 80 columns wide."""

_BLANK = "\u2800"
"""The empty cell of a curve, which not every font has."""


def figure(
    title: str,
    seconds: list[float],
    values: Sequence[float],
    target: int | None,
    name: str = "target",
) -> str:
    """Draw a curve as text, 80 columns wide at most, with a dashed line at `target` unless that is far above.

    Parameters
    ----------
    seconds, values : of the points of the curve, n of each
    name : what the title calls `target`
    """
    from plotille import Figure  # here, because only people need it

    top, right = max(values), max(seconds)
    near = target is not None and target <= 2 * top
    if target is not None:
        title += f" (- - {name} {target:,})" if near else f" ({name} {target:,})"
    top = max(top, target or 0) if near else top
    row = _round_step(max(top / _ROWS, 1), (1, 2, 5) if top < 10 * _ROWS else (1, 2, 2.5, 4, 5))  # labels are integers
    tick = _round_step(right / _TICKS, (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8))
    # one row over a highest value that would lie on the upper rim, where it is not seen
    rows, ticks = max(math.floor(top / row) + 1, 5), math.ceil(right / tick - 1e-9)
    plot = Figure()
    plot.width, plot.height = ticks * _TICK_WIDTH, rows
    plot.with_colors, plot.origin, plot.linesep = False, False, "\n"
    plot.x_label, plot.y_label = "s", ""
    plot.set_x_limits(0, ticks * tick)
    plot.set_y_limits(0, rows * row)
    plot.y_ticks_fkt = lambda value, _: _tick_label(round(value), _LABEL_WIDTH).rjust(_LABEL_WIDTH)
    plot.x_ticks_fkt = lambda value, _: _tick_label(value, _TICK_WIDTH - 1)
    plot.plot(seconds, values)
    lines = plot.show().splitlines()[1:]  # the first is the name of the y axis
    if near:
        at = rows - int((target or 0) // row)
        lines[at] = _dashed_line(lines[at], plot.width)
    return "\n".join(line.replace(_BLANK, " ").rstrip() for line in (title, *lines))


def _dashed_line(line: str, width: int) -> str:
    """A row of a figure with dashes where its curve is not."""
    cells = line[_LABEL_WIDTH + 3 :].ljust(width, _BLANK)
    dashes = ("-" if cell == _BLANK and i % 2 == 0 else cell for i, cell in enumerate(cells))
    return line[: _LABEL_WIDTH + 3].ljust(_LABEL_WIDTH + 3) + "".join(dashes)


def _tick_label(value: float, width: int) -> str:
    """A number in at most `width` characters, never cut.

    >>> _tick_label(20_000, 9), _tick_label(0.1 + 0.2, 9), _tick_label(200_000_000, 9), _tick_label(200_000_000_000, 9)
    ('20,000', '0.3', '200000000', '2e+11')
    """
    texts = (f"{value:,.10g}", f"{value:.10g}", f"{value:.3g}")
    return next((text for text in texts if len(text) <= width), texts[-1])


def _round_step(least: float, bases: Iterable[float]) -> float:
    """The smallest round number that is not below `least`.

    >>> _round_step(0.13, (1, 2, 5)), _round_step(290, (1, 2, 5)), _round_step(0, (1, 2, 5))
    (0.2, 500, 1)
    """
    if least <= 0:
        return 1
    power = math.floor(math.log10(least))
    candidates: list[float] = []
    for p in (power, power + 1):
        candidates += [base * 10**p if p >= 0 else base / 10**-p for base in sorted(bases)]
    return next(c for c in candidates if c >= least)
