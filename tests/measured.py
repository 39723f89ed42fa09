"""Run the `cklog` program in a process of its own, and say how much memory that took at its peak."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY

_PROGRAM = "from cklog.commands.app import main; main()"
_EACH_SECONDS = 0.1


@dataclass(frozen=True)
class Measured:
    """How a process ended, and the most memory that it, or a Python process that it began, held at once, in MiB."""

    code: int
    out: str
    err: str
    peak: int


def measured(*args: str | Path) -> Measured:
    """`cklog ARGS…`. Of Spark's processes those count that read: its Python workers, and not the JVM."""
    return measured_code(_PROGRAM, *args)


def measured_code(code: str, *args: str | Path) -> Measured:
    """`python -c CODE ARGS…`.

    The peak is Linux' VmHWM, asked for again and again: it only grows, so that no peak is missed but one at the very
    end. `ru_maxrss` would not do: a process begins with that of the process which started it.
    """
    watched = f"{_TELL_PEAK}\n{code}"
    command = [sys.executable, "-c", watched, *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    peaks = [0]
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
    watcher.start()
    try:
        out, err = process.communicate(timeout=500)
    finally:
        process.kill()
        ended.set()
        watcher.join()
    err, _, own = err.rpartition("\nPEAK ")
    return Measured(process.returncode, out, err, max(int(own), *peaks))


_TELL_PEAK = """
import atexit, sys
def tell():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            print("\\nPEAK", int(line.split()[1]) >> 10, file=sys.stderr)
atexit.register(tell)
"""


def _watch(first: int, peaks: list[int], ended: threading.Event) -> None:
    while not ended.wait(_EACH_SECONDS):
        peaks.append(max(map(_peak, _descendants(first)), default=0))


def _descendants(first: int) -> list[int]:
    """The Python processes below one, and itself."""
    below: dict[int, list[int]] = {}
    names = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            front, _, behind = place.read_text().rpartition(")")
            pid = int(place.parent.name)
            names[pid] = front.partition("(")[2]
            below.setdefault(int(behind.split()[1]), []).append(pid)
    found, waiting = [], [first]
    while waiting:
        found.append(waiting.pop())
        waiting += below.get(found[-1], [])
    return [pid for pid in found if names.get(pid, "").startswith("python")]


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) >> 10
    return 0
