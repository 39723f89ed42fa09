"""Queries of `spark_queries` killed with SIGKILL at a moment that their files show."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark_queries import write_inputs

MOMENTS = ("offsets", "state", "sink", "commits")
"""What a batch writes, in its order; a query is killed as soon as it is there."""
WAIT_S = 600.0
"""Seconds for a batch on a busy machine."""
_ROOT = Path(__file__).resolve().parents[2]


def kill(folder: Path, which: list[str], chance: random.Random) -> None:
    """Run queries in a process of their own until each has committed two batches and one has written a certain file."""
    for name in which:
        write_inputs(folder / name / "in")
    command = [sys.executable, "-m", "tests.builders.spark_queries", str(folder), *which]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log, start_new_session=True)

    def wait(what: Callable[[], bool], every: float) -> None:
        """A busy machine may take its time, but batches have to be committed."""
        size, since = -1, time.monotonic()
        while not what():
            assert running.poll() is None, (folder / "log").read_text()[-2000:]
            now, written = time.monotonic(), sum(written_at("commits", folder / name) for name in which)
            if written != size:
                size, since = written, now
            assert now - since < WAIT_S, (folder / "log").read_text()[-2000:]
            time.sleep(every)

    try:
        wait(lambda: all(written_at("commits", folder / name) >= 2 for name in which), 0.1)
        moment, home = chance.choice(MOMENTS), folder / chance.choice(which)
        before = written_at(moment, home)
        wait(lambda: written_at(moment, home) > before, 0.001)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def written_at(moment: str, home: Path) -> int:
    """The newest batch, or version, of which there is what is written at a moment of it; -1 for none."""
    if moment == "sink":
        return max([newest(home / "out/_spark_metadata"), *ledger(home)])
    return newest(home / "ck" / moment)


def newest(folder: Path) -> int:
    """The highest number that a file begins with, in a folder and all below it."""
    numbers = (re.match(r"\d+", name) for _, _, names in os.walk(folder) for name in names)
    return max((int(found[0]) for found in numbers if found), default=-1)


def ledger(home: Path) -> list[int]:
    """The batches that a foreachBatch sink got."""
    path = home / "out" / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line)["batch"] for line in lines if line.endswith("\n")]


def keep_few_inputs(home: Path, plan: BatchPlan) -> None:
    """Leave the input files that were read or planned, and two more: a restart that ends soon."""
    logged = {path.rpartition("/")[2] for source in (home / "ck/sources").iterdir() for path in _paths_of(source)}
    later = [path for path in sorted((home / "in").iterdir()) if path.name not in logged]
    for path in later[2:]:
        path.unlink()


def _paths_of(source: Path) -> Iterator[str]:
    for log in source.iterdir():
        if not log.name.startswith("."):
            for line in log.read_text().splitlines()[1:]:
                yield json.loads(line)["path"]
