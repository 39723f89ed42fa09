"""Tell what is on the screen of a terminal while `cklog` runs, and when it has ended."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import NamedTuple

from tests.terminal import played

COLUMNS = 80
_PIECE = re.compile(r"\x1b\[2K|\x1b\[[0-9;]*m|\r|\n|[^\x1b\r\n]+|\x1b.{0,8}", re.DOTALL)

SLOW = """
import time
import cklog.engine.local as local
quick = local.run_splits
def slow(scan, splits):
    time.sleep({seconds})
    return quick(scan, splits)
local.run_splits = slow
"""
"""Makes every task of a scan take so long, whatever the machine."""

UNTIL_SHOWN = """
import time
import cklog.commands.terminal.bar as bar
import cklog.engine.local as local
seen, show, quick = [], bar.Bar.show, local.run_splits
def noted(self, stage):
    show(self, stage)
    seen.append(stage.what)
def slow(scan, splits):
    while seen.count(f"scanning {scan.table}") < 2:
        time.sleep(0.01)
    return quick(scan, splits)
bar.Bar.show, local.run_splits = noted, slow
"""
"""Makes every scan go on until the bar has shown it twice."""


class Shown(NamedTuple):
    """How a program ended, what it wrote to the terminal, and what it wrote to a stdout beside it."""

    code: int
    drawn: bytes
    out: bytes


def program(words: list[str], first: str = "") -> list[str]:
    """Return a command line that runs cklog after other Python code."""
    return [sys.executable, "-c", f"{first}\nfrom cklog.commands import main\nmain()", *words]


def watched(
    words: list[str],
    first: str = "",
    columns: int = COLUMNS,
    interrupt_at: bytes = b"",
    answer_too: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Shown:
    """Run cklog with its stderr on a terminal; with `answer_too` also its stdout.

    Once `interrupt_at` has been written there, if it is given, the program gets the signal of a Ctrl-C.
    """
    env = {"TERM": "xterm-256color", **(environment or {})}
    command = program(words, first)
    if answer_too:
        return Shown(*played(command, env, columns=columns, interrupt_at=interrupt_at), b"")
    with TemporaryFile() as out:
        code, drawn = played(command, env, columns=columns, stdout=os.dup(out.fileno()), interrupt_at=interrupt_at)
        out.seek(0)
        return Shown(code, drawn, out.read())


def screen(drawn: bytes, columns: int = COLUMNS) -> list[str]:
    """Return the lines that are on the screen; what a bar may write and nothing else is understood."""
    lines, at = [""], 0
    for piece in _PIECE.findall(drawn.decode()):
        if piece == "\n":
            lines.append("")
        elif piece == "\r":
            at = 0
        elif piece == "\x1b[2K":
            lines[-1] = ""
        elif piece.startswith("\x1b"):
            assert piece.endswith("m"), f"{piece!r}: it does more than to color"
        else:
            lines[-1] = lines[-1][:at].ljust(at) + piece + lines[-1][at + len(piece) :]
            at += len(piece)
            assert at <= columns, "it wraps, and can be wiped no more"
    return lines
