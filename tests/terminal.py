"""Run the `cklog` program on a terminal of some size, as a person does."""

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
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.program import Ended

_WIPED = re.compile(r"[^\n]*\r\x1b\[2K")
"""What was on a line before it was wiped: a progress bar, on a machine on which the answer takes over a second."""

_OF_ANOTHER_TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "PAGER")


def on_terminal(*args: str | Path, lines: int = 24, columns: int = 80, **environment: str) -> Ended:
    """`cklog ARGS…` with stdin, stdout and stderr on a terminal, in the project's folder; what came is in `out`."""
    command = [sys.executable, "-m", "cklog", *map(str, args)]
    code, drawn = played(command, {"NO_COLOR": "1", "TERM": "xterm", **environment}, lines, columns)
    return Ended(code, _WIPED.sub("", drawn.decode().replace("\r\n", "\n")), "")


def played(
    command: list[str],
    environment: Mapping[str, str],
    lines: int = 24,
    columns: int = 80,
    *,
    stdout: int | None = None,
    interrupt_at: bytes = b"",
) -> tuple[int, bytes]:
    """Run a command on a terminal, in the project's folder; return its exit code and the bytes that came.

    `stdout` : a file to write to in the terminal's place, closed here
    `interrupt_at` : once these bytes have come, the program gets the signal of a Ctrl-C
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_TERMINAL}
    taken = follower if stdout is None else stdout
    child = subprocess.Popen(
        command, env={**kept, **environment}, cwd=REPOSITORY, stdin=follower, stdout=taken, stderr=follower
    )
    for descriptor in {follower, taken}:
        os.close(descriptor)
    drawn = b""
    while True:
        try:
            data = os.read(leader, 1 << 16)
        except OSError:  # everybody who had the terminal open has ended
            break
        drawn += data
        if interrupt_at and interrupt_at in drawn:
            child.send_signal(signal.SIGINT)
            interrupt_at = b""
    os.close(leader)
    return child.wait(), drawn
