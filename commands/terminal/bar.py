"""A bar on the terminal, drawn by Rich: what is being done, how much of it is, how fast, and how long it will take.

It has a file of its own for stderr, so that it draws while Spark starts, which turns stderr away for a moment. It is
one line, and the cursor stays visible: however the process ends, nothing has to be put back.
"""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from cklog.model.wording import unit_for
from cklog.progress import Stage
from cklog.render.text import masked, visible

_WIPE = b"\r\x1b[2K"
"""To the beginning of the line, and nothing in it."""


class _CalmConsole(Console):
    """A console whose cursor is never hidden."""

    def show_cursor(self, show: bool = True) -> bool:
        """Leave it as it is."""
        return False


class Bar:
    """A bar that shows one stage at a time."""

    def __init__(self, color: bool) -> None:
        self._terminal = os.dup(2)
        self._file = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
        console = _CalmConsole(
            file=self._file, force_terminal=True, color_system="auto" if color else None, legacy_windows=False
        )
        line = Column(no_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}", markup=False, table_column=line),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True, table_column=line),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._shown: Stage | None = None
        self._task = TaskID(0)
        self._progress.start()

    def show(self, stage: Stage) -> None:
        """Draw how far a stage is."""
        done = stage.done
        if stage is self._shown:
            said = amount(stage, done, self._progress.tasks[0].speed)
            self._progress.update(self._task, completed=done, amount=said, refresh=True)
            return
        if self._shown is not None:
            self._progress.remove_task(self._task)
        self._shown, what = stage, masked(visible(stage.what))
        self._task = self._progress.add_task(what, total=stage.total, completed=done, amount=amount(stage, done, None))

    def clear(self) -> None:
        """Take it away until it is drawn again."""
        self._file.write(_WIPE.decode())
        self._file.flush()

    def close(self) -> None:
        """Take it away. Rich's own end would scroll the terminal by a line."""
        self.clear()
        self._file.close()
        os.close(self._terminal)

    def wipe(self) -> None:
        """Take it away in the midst of drawing: what is drawn after goes nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)
        os.write(self._terminal, _WIPE)


def amount(stage: Stage, done: int, speed: float | None) -> str:
    """Return how much is done, of how much, and how fast.

    >>> amount(Stage("", "bytes", 838_000_000), 120_400_000, 48_100_000.0)
    '120.4/838.0 MB 48.1 MB/s'
    >>> amount(Stage("", "splits", 64), 12, 3.0), amount(Stage("", "files", None), 1234, None)
    ('12/64 splits', '1,234 files')
    """
    if stage.unit != "bytes":
        of = "" if stage.total is None else f"/{stage.total:,}"
        return f"{done:,}{of} {stage.unit}" if done or of else ""
    unit = unit_for(stage.total or done)
    of = "" if stage.total is None else f"/{unit.number(stage.total)}"
    rate = f" {unit_for(speed).spoken(speed)}/s" if speed else ""
    return f"{unit.number(done)}{of} {unit.name}{rate}"
