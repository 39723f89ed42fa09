"""The stages of an answer on stderr: a line for each with -v, and on a terminal a bar while an answer takes long."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from cklog.endings import tidied_at_end
from cklog.model.wording import many, unit_for
from cklog.progress import Stage, stage, watched_by
from cklog.render.text import visible

if TYPE_CHECKING:
    from cklog.commands.terminal.bar import Bar

_PATIENCE_SECONDS = 1.0
"""An answer that takes no longer is told of by itself."""

_FRAME_SECONDS = 0.5
"""Between two pictures of the bar: each takes a millisecond or two from the threads that read."""

_NO_CURSOR = ("dumb", "unknown", "")
"""Terminals that cannot go back to the beginning of a line."""


@contextmanager
def told_on_stderr(quiet: bool, verbose: bool, color: bool) -> Iterator[None]:
    """Tell on stderr how far what is done inside is: a bar on a terminal, lines if `verbose`; `quiet`: nothing."""
    drawn = not quiet and _is_terminal()
    if quiet or not (drawn or verbose):
        yield
        return
    shown = _Shown(verbose, color)
    with watched_by(shown), tidied_at_end(shown.wipe):
        if drawn:
            shown.start()
        try:
            with stage("answering"):
                yield
        finally:
            shown.stop()


def _is_terminal() -> bool:
    """Return whether stderr is a terminal that can show a bar."""
    try:
        return os.isatty(sys.stderr.fileno()) and os.environ.get("TERM", "") not in _NO_CURSOR
    except (OSError, ValueError):  # it is closed, or is none of the operating system's
        return False


class _Shown:
    """An `Observer` that shows stages. A thread draws the bar, once there has been patience enough."""

    def __init__(self, verbose: bool, color: bool) -> None:
        self._verbose, self._color = verbose, color
        self._open: list[Stage] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._bar: Bar | None = None

    def begin(self, stage: Stage) -> None:
        """Show this stage from now on."""
        self._open.append(stage)

    def end(self, stage: Stage) -> None:
        """Show the one around it again, and tell of this one."""
        self._open.remove(stage)
        if self._verbose:
            with self._lock:
                if self._bar is not None:
                    self._bar.clear()
                print(visible(told(stage)), file=sys.stderr, flush=True)

    def start(self) -> None:
        """Draw from now on, if it takes long."""
        self._terminal = os.dup(sys.stderr.fileno())
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take the bar away, and draw no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)  # a terminal may have been stopped by Ctrl-S
            os.close(self._terminal)

    def wipe(self) -> None:
        """Take the bar away at once, whatever another thread is doing; nothing more is drawn."""
        self._over.set()
        if self._bar is not None:
            self._bar.wipe()

    def _draw(self) -> None:
        if self._over.wait(_PATIENCE_SECONDS):
            return
        with suppress(Exception):  # such as of a terminal that is gone: no answer is lost for a bar
            from cklog.commands.terminal.bar import Bar

            with closing(Bar(self._terminal, self._color)) as self._bar:
                while not self._over.is_set():
                    current = self._open[-1:]
                    with self._lock:
                        if current:
                            self._bar.show(current[0])
                    self._over.wait(_FRAME_SECONDS)


def told(stage: Stage) -> str:
    """Return a stage that is over as a line.

    >>> scan = Stage("scanning channels", "bytes", 9, splits=2, size=123_456_789, by="local")
    >>> scan.end(), told(scan)[:54]
    (None, 'scanning channels: 2 splits, 123.5 MB on local engine,')
    """
    parts = [many(stage.splits, "split")] if stage.by else []
    size = stage.done if stage.size is None and stage.unit == "bytes" else stage.size
    if size is not None:
        parts.append(f"{size:,} B" if size < 10_000 else unit_for(size).spoken(size))
    elif stage.done:
        parts.append(many(stage.done, stage.unit.removesuffix("s"), grouped=True))
    engine = f" on {stage.by} engine" if stage.by else ""
    what = f"{stage.what}: {', '.join(parts)}{engine}"
    return f"{what.rstrip(': ')}{',' if parts else ':'} {stage.seconds:.1f} s"
