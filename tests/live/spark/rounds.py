"""A round: several kinds of query run in one JVM, stopped at random moments, copied, and killed at the last of them."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.live.spark.ask import ROOT, environment
from tests.live.spark.kinds import KINDS, write_inputs

MOMENTS = 4
"""Images of a round: the last after SIGKILL, those before of a process that SIGSTOP holds."""
RUNNING: set[int] = set()
"""Process groups to be killed."""
_WAIT_S = 240.0


@dataclass
class Round:
    """What a round left: by kind, the folders of its images, oldest first; and why a kind could not run."""

    folder: Path
    images: dict[str, list[Path]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run(folder: Path, names: Sequence[str], chance: random.Random) -> Round:
    """Run a round of these kinds in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in names:
        for read in ("in", "in2") if KINDS[name].how not in ("available", "repartition") else ():
            write_inputs(folder / name / read)
        (folder / name).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.live.spark.engine", "run", str(folder), *names]
    with (folder / ".log").open("wb") as log:
        running = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=log, stderr=log, start_new_session=True)
    made = Round(folder)

    RUNNING.add(running.pid)

    def alive(what: Callable[[], bool], seconds: float, every: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and running.poll() is None and not what():
            time.sleep(every)

    try:
        alive(lambda: all(newest(folder / n, "commits") >= 2 or n in _failed(folder) for n in names), _WAIT_S, 0.2)
        made.failed = {
            n: _failed(folder).get(n, "no batch in time") for n in names if newest(folder / n, "commits") < 1
        }
        going = [name for name in names if name not in made.failed]
        for moment in range(MOMENTS if going else 0):
            alive(_moment(folder, going, chance), 5.0, 0.0005)
            time.sleep(chance.choice((0.0, 0.0, chance.random() / 20, chance.random() * 2)))
            last = moment == MOMENTS - 1
            os.killpg(running.pid, signal.SIGKILL if last else signal.SIGSTOP)
            time.sleep(0.1)
            for name in going:
                image = folder / ".images" / f"{name}.{moment}"
                shutil.copytree(folder / name, image, copy_function=shutil.copy2)
                made.images.setdefault(name, []).append(image)
            if not last:
                os.killpg(running.pid, signal.SIGCONT)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        RUNNING.discard(running.pid)
    shutil.rmtree(folder / ".scratch", ignore_errors=True)
    return made


def end() -> None:
    """Kill what still runs."""
    for group in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _failed(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / ".failed").glob("*")}


def _moment(folder: Path, names: Sequence[str], chance: random.Random) -> Callable[[], bool]:
    """A moment that the files of one query show: something is written that belongs to a new batch."""
    home, what = folder / chance.choice(names), chance.choice(("offsets", "state", "sources", "sink", "commits"))
    before = newest(home, what)
    return lambda: newest(home, what) > before


def newest(home: Path, what: str) -> int:
    """Return the highest number that a file begins with, below a folder of the checkpoint, or in the sink's log."""
    top = home / "out/_spark_metadata" if what == "sink" else home / "ck" / what
    numbers = (re.match(r"\d+", name) for _, _, names in os.walk(top) for name in names)
    return max((int(found[0]) for found in numbers if found), default=-1)
