"""Run the `cklog` program on a terminal of some size, as a person does."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.program import Ended

_WIPED = re.compile(r"[^\n]*\r\x1b\[2K")
"""What was on a line before it was wiped: a progress bar, on a machine on which the answer takes over a second."""


def on_terminal(*args: str | Path, lines: int = 24, columns: int = 80, **environment: str) -> Ended:
    """`cklog ARGS…` with stdin, stdout and stderr on a terminal, in the project's folder; what came is in `out`."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "PAGER")}
    command = [sys.executable, "-m", "cklog", *map(str, args)]
    surroundings = {**inherited, "NO_COLOR": "1", "TERM": "xterm", **environment}
    with subprocess.Popen(
        command, env=surroundings, cwd=REPOSITORY, stdin=follower, stdout=follower, stderr=follower
    ) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:  # everybody who had the terminal open has ended
                break
            shown += data
    os.close(leader)
    return Ended(child.returncode, _WIPED.sub("", shown.decode().replace("\r\n", "\n")), "")
