"""A command in a process group of its own: how it ends, and what it leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.program import Ended

_MARK = "CKLOG_FAULT"
"""An environment variable that all processes of a command inherit: by it those that outlive it are found."""

CAME = "CKLOG_FAULT_CAME"
"""The environment variable that names a file which code for the command's process makes when the fault has come."""

_GRACE = 20.0
"""Seconds that processes of a command that has ended may take to end, too: a JVM that was told to stop."""

SECONDS = 300.0
"""No command of these takes so long, on any machine: it hangs."""


@dataclass(frozen=True)
class Left:
    """How a command ended, and what was there afterwards that was not before.

    `came`: whether what was to happen meanwhile did.
    """

    ended: Ended
    files: tuple[str, ...]
    processes: tuple[str, ...]
    seconds: float
    came: bool = True


Poke = Callable[[subprocess.Popen[bytes]], None]
"""What is done to a running command: it returns when it is done, or when the command has ended."""


def run(
    words: Sequence[str],
    first: str = "",
    poke: Poke | None = None,
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
) -> Left:
    """Run cklog after other Python code, `first`, poke it, and look for what it leaves.

    `stdout` : a file descriptor that takes the answer instead of `Left`
    """
    place = Path(tempfile.mkdtemp(prefix="cklog-fault-"))
    temporary = place / "tmp"
    temporary.mkdir()
    mark = f"{os.getpid()}-{place.name}"
    came = place / "came"
    known = {**os.environ, "TMPDIR": str(temporary), _MARK: mark, CAME: str(came), **(environment or {})}
    (place / "run.py").write_text(f"{first}\nfrom cklog.commands import main\nmain()\n")
    begun = time.monotonic()
    try:
        with open(place / "out", "w+b") as out, open(place / "err", "w+b") as err:
            child = subprocess.Popen(
                [sys.executable, place / "run.py", *words],
                cwd=REPOSITORY,
                env=known,
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
            )
            if poke is not None:
                poke(child)
            try:
                code_ = child.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                code_ = child.wait()
                return Left(Ended(-1, "", f"hung for {SECONDS} s"), (), (), SECONDS)
            seconds = time.monotonic() - begun
            alive = _outliving(mark)
            out.seek(0)
            err.seek(0)
            ended = Ended(code_, out.read().decode(errors="replace"), err.read().decode(errors="replace"))
        files = tuple(sorted(str(path.relative_to(temporary)) for path in temporary.rglob("*")))
        return Left(ended, files, alive, seconds, CAME not in first or came.exists())
    finally:
        for pid in _marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)


def _outliving(mark: str) -> tuple[str, ...]:
    """The processes of a command that has ended which do not end soon."""
    until = time.monotonic() + _GRACE
    while (found := _marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return tuple(_name_of(pid) for pid in found)


def _marked(mark: str) -> list[int]:
    """The processes that have the mark in their environment."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def children(child: subprocess.Popen[bytes], named: str) -> list[int]:
    """The running processes below a command whose command line has a word in it."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(folder.name)
                parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                lines[pid] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    below = {child.pid}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(pid for pid in below - {child.pid} if named in lines.get(pid, ""))


def _name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:80]
    return str(pid)
