"""Run the `cklog` program on a pseudo terminal, and tell what is on its screen when it has ended."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from typing import NamedTuple

from tests.conftest import REPOSITORY

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


def on_terminal(
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
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    env |= {"TERM": "xterm-256color", **(environment or {})}
    read, write = os.pipe()
    stdout = its if answer_too else write
    process = subprocess.Popen(program(words, first), cwd=REPOSITORY, stdin=its, stdout=stdout, stderr=its, env=env)
    os.close(its)
    os.close(write)
    drawn = b""
    try:
        while data := os.read(ours, 1 << 16):
            drawn += data
            if interrupt_at and interrupt_at in drawn:
                process.send_signal(signal.SIGINT)
                interrupt_at = b""
    except OSError:  # the other end is closed
        pass
    with os.fdopen(read, "rb") as pipe:
        out = pipe.read()
    os.close(ours)
    return Shown(process.wait(), drawn, out)


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
