"""A bar on the terminal, drawn by Rich: what is being done, how much of it is, how fast, and how long it will take.

It draws to a file of its own, as stderr is turned away for a while when Spark starts, and for good by a Ctrl-C. It is
one line, and the cursor stays visible: however the process ends, nothing has to be put back. Rich's bar is used alone,
without its live display, which takes longer to load and to draw than a short scan may pay.
"""

from __future__ import annotations

import os

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments

from cklog.model.wording import unit_for
from cklog.progress import Stage
from cklog.render.text import visible

_WIPE = b"\r\x1b[2K"
"""To the beginning of the line, and nothing in it."""


_BAR_WIDTH, _MOST_NAME = 24, 48


class Bar:
    """A bar that shows one stage at a time on the terminal that is open as `terminal`."""

    def __init__(self, terminal: int, color: bool) -> None:
        self._terminal = terminal
        self._file = os.fdopen(os.dup(terminal), "w", encoding="utf-8", errors="replace")
        self._console = Console(
            file=self._file, force_terminal=True, color_system="auto" if color else None, legacy_windows=False
        )

    def show(self, stage: Stage) -> None:
        """Draw how far a stage is."""
        done, seconds = stage.done, stage.seconds
        room = self._console.width - 1
        said = set_cell_size(f"{visible(stage.what)} ", min(room, _MOST_NAME)).rstrip() + " "
        more = " " + amount(stage, done, seconds)
        room -= cell_len(said) + cell_len(more)
        bar = ProgressBar(total=stage.total, completed=done, pulse=stage.total is None)
        width = max(min(room, _BAR_WIDTH), 1)
        lines = self._console.render_lines(bar, self._console.options.update_width(width))
        drawn = Segments(lines[0] if lines else [Segment(" " * width)])  # an empty bar without color is no line
        self.clear()
        with self._console:  # what is printed inside is written at once
            self._console.out(said, end="", highlight=False)
            if room > 0:
                self._console.print(drawn, end="")
                self._console.out(more, end="", highlight=False)

    def clear(self) -> None:
        """Take it away until it is drawn again."""
        if not self._file.closed:
            self._file.write(_WIPE.decode())
            self._file.flush()

    def close(self) -> None:
        """Take it away."""
        self.clear()
        self._file.close()

    def wipe(self) -> None:
        """Take it away in the midst of drawing: what is drawn after goes nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)
        os.write(self._terminal, _WIPE)


def amount(stage: Stage, done: int, seconds: float) -> str:
    """Return how much is done, of how much, how fast, and how long the rest will take; else how long it takes already.

    >>> amount(Stage("", "bytes", 838_000_000), 120_400_000, 2.5)
    '120.4/838.0 MB, 48.2 MB/s, 0:15 left'
    >>> amount(Stage("", "splits", 64), 12, 3.0), amount(Stage("", "files", None), 1234, 61.0)
    ('12/64 splits, 0:13 left', '1,234 files, 1:01')
    """
    if stage.unit == "bytes":
        unit = unit_for(stage.total or done)
        of = "" if stage.total is None else f"/{unit.number(stage.total)}"
        parts = [f"{unit.number(done)}{of} {unit.name}", f"{unit_for(done / seconds).spoken(done / seconds)}/s"]
    else:
        of = "" if stage.total is None else f"/{stage.total:,}"
        parts = [f"{done:,}{of} {stage.unit}"] if done or of else []
    if stage.total is None or not done:
        return ", ".join([*parts, _clock(seconds)])
    return ", ".join([*parts, f"{_clock(seconds * (stage.total - done) / done)} left"])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
