"""What a progress bar costs: `progress.py FOLDER [PAIRS]`, FOLDER by `make_messages.py FOLDER --rows 12000000`.

Whole commands, `cklog inspect FOLDER --json`, in turn with a bar and without one (`-q`), each with its stderr on a
terminal of its own; who goes first alternates. CPU seconds of the process, since the machine may have other work. The
last row runs the same command against itself: what the machine's noise makes of no difference at all. As that may be
more than a bar costs, the drawing thread's own CPU time is told too, with all that it imports. Linux only.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import threading
from typing import NamedTuple

PAIRS = 12
PROGRAM = """
import os, time
from cklog.commands import main, keep_memory
keep_memory()
from cklog.commands.terminal.stages import _Shown
draw = _Shown._draw
def drawn(self):
    draw(self)
    os.write({}, str(time.thread_time()).encode())
_Shown._draw = drawn
main()
"""
"""It tells what the thread took that draws."""


class Cost(NamedTuple):
    """CPU seconds of a command, how often it drew a bar or wiped it, and the CPU seconds of the thread that did."""

    cpu: float
    frames: int
    drawing: float


def measured(folder: str, *options: str) -> Cost:
    """Run the command on a terminal of its own."""
    ours, its = pty.openpty()
    drawn = bytearray()

    def read() -> None:
        try:
            while data := os.read(ours, 1 << 16):
                drawn.extend(data)
        except OSError:  # the other end is closed
            return

    told, tells = os.pipe()
    command = [sys.executable, "-c", PROGRAM.format(tells), "inspect", folder, "--json", "--engine", "local", *options]
    env = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=its, stdout=subprocess.DEVNULL, stderr=its, env=env, pass_fds=[tells])
    os.close(its)
    os.close(tells)
    reader = threading.Thread(target=read)
    reader.start()
    _, status, used = os.wait4(process.pid, 0)
    reader.join()
    os.close(ours)
    assert status == 0, bytes(drawn)
    with os.fdopen(told) as pipe:
        drawing = float(pipe.read() or 0)
    return Cost(used.ru_utime + used.ru_stime, drawn.count(b"\x1b[2K"), drawing)


def compared(folder: str, pairs: int, one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """CPU of one way, of the other, the median of their ratios pair by pair, and the middle half of these."""
    found = []
    for i in range(pairs):
        first = measured(folder, *(one if i % 2 else other))
        second = measured(folder, *(other if i % 2 else one))
        found.append((first, second) if i % 2 else (second, first))
    a, b = (statistics.median(pair[k].cpu for pair in found) for k in (0, 1))
    ratios = [x.cpu / y.cpu - 1 for x, y in found]
    low, middle, high = statistics.quantiles(ratios, n=4)
    frames = statistics.median(pair[0].frames for pair in found)
    drawing = statistics.median(pair[0].drawing / pair[0].cpu for pair in found)
    least = min(pair[0].cpu for pair in found) / min(pair[1].cpu for pair in found) - 1
    middle_half = f"{low:+.2%} to {high:+.2%}"
    return f"{frames:.0f} | {drawing:.2%} | {a:.2f} | {b:.2f} | {middle:+.2%} | {middle_half} | {least:+.2%} |"


def main() -> None:
    """Print a table."""
    folder, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    size = sum(entry.stat().st_size for entry in os.scandir(os.path.join(folder, "channels")))
    measured(folder)
    print(f"{size / 1e6:,.0f} MB, {pairs} pairs\n")
    print("| | pictures | the thread that draws | CPU s | CPU s | ratio, median | middle half | of the least |")
    print("|---|---|---|---|---|---|---|---|")
    print(f"| with a bar beside `-q` | {compared(folder, pairs, (), ('-q',))}")
    print(f"| `-q` beside `-q` | {compared(folder, pairs, ('-q',), ('-q',))}")


if __name__ == "__main__":
    main()
