"""The verdict alone: the first sentence of an answer, what to do, and as many findings as a screen has room for."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cklog.model.findings import Finding
from cklog.model.wording import many
from cklog.render.text import visible, visible_lines, wrapped_lines
from cklog.render.view import View

_SCREEN = 24
"""Lines of a screen, where the answer does not go to one."""

_STYLES = {"error": "red", "warning": "yellow"}


def brief_text(
    headline: str, shown: View, findings: Sequence[Finding], width: int | None, height: int | None, color: bool
) -> str:
    """Write the verdict, what to do and the worst findings in fewer lines than a screen has; what is left out is said.

    Parameters
    ----------
    width, height : of the terminal; None where the output is none
    """
    room = (height or _SCREEN) - 1  # one is the shell's, for its next prompt
    lines = [_Line(text, "bold") for text in wrapped_lines(headline, width)]
    room -= len(lines)
    steps = _fitting(_shown_steps(shown, width), room - 2 if findings else room, width)
    left = len(shown.steps) - len(steps)
    lines += [_Line(text) for step in steps for text in step]
    lines += [_Line(f"and {left} more: without --brief")] if left else []
    room -= sum(_lines_taken(step, width) for step in steps) + bool(left)
    grave = [f for f in findings if f.severity != "info"]
    told = [wrapped_lines(f"{f.severity} [{f.id}] {visible(f.message)}", width) for f in grave]
    kept = 0
    while kept < len(told) and len(told[kept]) <= room - 1:
        lines += [_Line(text, "", grave[kept].severity if i == 0 else "") for i, text in enumerate(told[kept])]
        room -= len(told[kept])
        kept += 1
    rest = [*grave[kept:], *(f for f in findings if f.severity == "info")]
    lines += [_Line(_left_out(rest, kept > 0))] if rest else []
    return _printed(lines, color)


def verdict_again(headline: str, shown: View, width: int | None, color: bool) -> str:
    """Write what ends an answer that is longer than the screen: its first sentence again, and what to do."""
    lines = [_Line(text, "bold") for text in wrapped_lines(headline, width)]
    steps = _fitting(_shown_steps(shown, width), _SCREEN // 3, width)
    return "\n" + _printed([*lines, *(_Line(text) for step in steps for text in step)], color)


class _Line(NamedTuple):
    """A line, its style, and the severity that it begins with."""

    text: str
    style: str = ""
    severity: str = ""


def _printed(lines: Sequence[_Line], color: bool) -> str:
    """Lines as a terminal takes them; it wraps longer ones itself, so that commands can be copied whole."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=10_000, no_color=not color, force_terminal=color, highlight=False)
    for line in lines:
        text = Text(line.text, style=line.style)
        text.stylize(_STYLES.get(line.severity, ""), 0, len(line.severity))
        console.print(text, soft_wrap=True)
    return out.getvalue()


def _shown_steps(shown: View, width: int | None) -> list[list[str]]:
    """What to do, each step in lines: sentences are wrapped, commands are not."""
    rooms = [width if step in shown.sentences else None for step in shown.steps]
    return [
        [line for text in visible_lines(step).split("\n") for line in wrapped_lines(text, room)]
        for step, room in zip(shown.steps, rooms, strict=True)
    ]


def _lines_taken(step: Sequence[str], width: int | None) -> int:
    """How many lines of a terminal a step takes, of which those that are too long are not wrapped between words."""
    from rich.cells import cell_len

    return len(step) if width is None else sum(max(1, math.ceil(cell_len(text) / width)) for text in step)


def _fitting(texts: Sequence[list[str]], room: int, width: int | None) -> list[list[str]]:
    """The first texts that fit in `room` lines; one line is left to say that there are more, if there are."""
    kept: list[list[str]] = []
    taken = 0
    for i, text in enumerate(texts):
        taken += _lines_taken(text, width)
        if taken > room - (i + 1 < len(texts)):
            break
        kept.append(text)
    return kept


def _left_out(findings: Sequence[Finding], more: bool) -> str:
    """How many findings are not shown, by severity."""
    counts = Counter(finding.severity for finding in findings)
    named = ", ".join(many(counts[severity], severity) for severity in ("error", "warning") if counts[severity])
    rest = [named] if named else []
    rest += [many(counts["info"], "note")] if counts["info"] else []
    return f"and {' and '.join(rest)}{' more' if more else ''}: without --brief"
