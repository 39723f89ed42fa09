"""Signals at any moment, processes that are killed, a reader that goes away, and another command at the same time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.faults.cases import Asked, Outcome
from tests.faults.process import Left, children, run
from tests.program import Ended

_SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def signalled(asked: Asked) -> Outcome:
    """Ctrl-C, or what a scheduler sends, at any moment of a run; twice in a row, sometimes."""
    number = asked.dice.choice([*_SIGNALS])
    after, again = asked.dice.uniform(0, 25 if asked.engine == "spark" else 1.2), asked.dice.random() < 0.3

    def poke(child: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(after)
        for _ in range(1 + again):
            child.send_signal(number)
            time.sleep(0.05)

    left = run(asked.words(), poke=poke)
    may = frozenset({_SIGNALS[number], *_before_python(left, number)})
    return Outcome(f"{number.name} after {after:.2f} s{', twice' if again else ''}", left, may, alike=True)


def _before_python(left: Left, number: signal.Signals) -> set[int]:
    """The end of a process that had not begun to run cklog: the interpreter itself is ended by the signal."""
    import_cut = number == signal.SIGINT and left.ended.code == 1 and "KeyboardInterrupt" in left.ended.err
    return {-number} | ({1} if import_cut else set())


_LOST = frozenset({69})


def killed(asked: Asked) -> Outcome:
    """A process of Spark dies: the JVM of the driver, or a Python worker."""
    which = asked.dice.choice(["java", "pyspark.daemon"])
    after = asked.dice.uniform(0, 8)

    def poke(child: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < until and not children(child, which):
            time.sleep(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(after if which == "java" else after / 8)
        for pid in children(child, which):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    left = run(asked.words(), poke=poke)
    return Outcome(
        f"SIGKILL of {which} after {after:.2f} s",
        left,
        alike=which != "java",
        may=_LOST if which == "java" else frozenset(),
    )


def unread(asked: Asked) -> Outcome:
    """The reader of the answer goes away: `cklog … | head -1`."""
    most = asked.dice.choice([0, 1, 100, 4096])
    reading, writing = os.pipe()

    def poke(child: subprocess.Popen[bytes]) -> None:
        os.close(writing)
        if most:
            os.read(reading, most)
        os.close(reading)

    left = run(asked.words(), poke=poke, stdout=writing)
    base = asked.base.ended  # who has read enough of an answer has had it
    ended = Ended(base.code if left.ended.code in {0, 141, base.code} else left.ended.code, base.out, left.ended.err)
    calm = Left(ended, left.files, left.processes, left.seconds)
    return Outcome(f"stdout closed after {most} bytes (exit {left.ended.code})", calm)


def together(asked: Asked) -> Outcome:
    """Two commands at the same time on one folder."""
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(run, [asked.words()] * 2)
    return Outcome("two at once", max(first, second, key=lambda one: one.ended != asked.base.ended), alike=True)


assert sys.platform == "linux", "processes are found in /proc"
