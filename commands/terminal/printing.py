"""How an answer is shown: on a terminal by its size, as the verdict alone, or page by page."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
from dataclasses import dataclass

from cklog.commands.terminal.streams import encodable_json, write_out
from cklog.errors import UsageError
from cklog.isolation import find_program, run_on_terminal
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS, render, require_table_format

_LESS = "FRX"
"""What `less` is told, unless $LESS says otherwise: end at once where all fits, show colors, leave the screen."""


@dataclass(frozen=True, slots=True)
class Printing:
    """How an answer is shown; `to_file`: it goes to no terminal, whatever stdout is; `table`: only this list of it."""

    to_file: bool = False
    no_color: bool = False
    brief: bool = False
    pager: bool = False
    table: str = ""

    def rendered(self, answer: Answer[object], form: str) -> str:
        """Return the answer in one of `FORMATS`, laid out for the terminal if it goes to one."""
        self.require(form)
        if not self._on_terminal:
            return render(answer, form, brief=self.brief, table=self.table)
        size = shutil.get_terminal_size()
        plain = self.no_color or bool(os.environ.get("NO_COLOR")) or (self.pager and not _pages_color())
        height = None if self.pager and not self.brief else size.lines
        return render(answer, form, size.columns, not plain, height=height, brief=self.brief, table=self.table)

    def require(self, form: str) -> None:
        """Raise `UsageError` if options of printing do not go with the format; to be asked before a long run."""
        require_table_format(self.table, form)
        if self.brief and self.table:
            raise UsageError(f"--brief with --table {self.table}", "one or the other")
        if self.brief and form != "table":
            raise UsageError(
                f"--brief with --format {form}", "it is the verdict of a table; the others are printed whole"
            )

    def put(self, text: str, form: str) -> None:
        """Write a text of a format to stdout, or into a pager."""
        if self.pager and self._on_terminal and form in FORMATS:
            _page(text)
        else:
            write_out(encodable_json(text) if form in ("json", "jsonl") else text, exact=form not in FORMATS)

    @property
    def _on_terminal(self) -> bool:
        return not self.to_file and sys.stdout.isatty()


def _pager() -> list[str]:
    """The command of the pager: $PAGER, else what is there; none: "" or "cat" in $PAGER, or nothing is there."""
    asked = os.environ.get("PAGER")
    if asked is None:
        return next(([name] for name in ("less", "more") if find_program(name)), [])
    try:
        words = shlex.split(asked)
    except ValueError as error:
        raise UsageError(f"--pager: $PAGER is {asked}: {error}") from None
    return [] if words == ["cat"] else words


def _pages_color() -> bool:
    return os.path.basename(next(iter(_pager()), "")) == "less"


def _page(text: str) -> None:
    """Show a text in the pager; to stdout where there is none.

    Raises
    ------
    UsageError : $PAGER cannot be run
    """
    command = _pager()
    if not command:
        write_out(text)
        return
    encoded = text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None  # Ctrl-C is the pager's
    try:
        run_on_terminal(command, encoded, {"LESS": _LESS})
    except OSError as error:
        raise UsageError(f"--pager: $PAGER is {shlex.join(command)}: {error.strerror}", "leave --pager out") from None
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
