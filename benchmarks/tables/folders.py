"""`cklog scan` over many small run folders beside `find`, which looks at every file and opens none.

Copies of the samples below, by turns. Files opened, bytes read and folders listed are as strace sees them, of run
folders only and not of Python's own modules, in a few of the folders: strace makes everything many times slower.
"""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import size_of
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import REPOSITORY, Command, cklog

SAMPLES = (
    *("domino-cycle", "flink-orders", "spark-wordcount", "q3-coordinated", "kafka-broker", "spark-state-hdfs"),
    *("incremental", "kafka-streams-state"),
)
CALLS = "trace=openat,open,read,pread64,readv,mmap,getdents64"


def _copies(place: Path, count: int) -> None:
    for i in range(count):
        name = SAMPLES[i % len(SAMPLES)]
        shutil.copytree(REPOSITORY / "sample_logs" / name, place / f"{i // 1000:03d}" / f"{name}-{i:06d}")


def _commands(place: Path) -> tuple[Command, Command]:
    scan = cklog("`cklog scan`", "scan", place, "--format", "jsonl", "-q", codes=(0, 3, 4, 5))
    return scan, Command("`find`", ("find", str(place), "-type", "f", "-printf", "%s\n"))


def _traced(place: Path, command: Command) -> collections.Counter[str]:
    """Files `opened`, folders `listed` and bytes `read` below a place, as strace tells."""
    found: collections.Counter[str] = collections.Counter()
    with tempfile.NamedTemporaryFile("r", prefix="cklog-benchmark-") as log:
        traced = ["strace", "-f", "-y", "-qq", "-e", CALLS, "-o", log.name, *command.words]
        subprocess.run(traced, stdout=subprocess.DEVNULL, check=False, cwd=REPOSITORY)
        begun: dict[str, str] = {}
        for line in log:
            pid, _, call = line.partition(" ")
            if "<unfinished ...>" in call:
                begun[pid] = call
                continue
            if "resumed>" in call:
                call = begun.pop(pid, "") + call
            result = re.search(r"\) = (\d+)", call)
            if result is None or (f"{place}/" not in call and f"{place}>" not in call):
                continue
            name = call.lstrip().partition("(")[0]
            if name in ("openat", "open"):
                found["listed" if "O_DIRECTORY" in call else "opened"] += 1
            elif name in ("read", "pread64", "readv"):
                found["read"] += int(result[1])
    return found


def folders(room: Room, sizes: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """A row for each command; a size is how many folders are timed, and in how many calls are counted."""
    for many, few in sizes:
        counted = room.data.made(f"folders-{few}", lambda place, n=few: _copies(place, n))  # type: ignore[misc]
        timed = room.data.made(f"folders-{many}", lambda place, n=many: _copies(place, n))  # type: ignore[misc]
        scan, find = _commands(timed)
        runs = room.pairs_of(scan, find, pairs=3)
        for command, traced in zip((scan, find), _commands(counted), strict=True):
            calls = _traced(counted, traced)
            each = (f"{calls['listed'] / few:.1f}", f"{calls['opened'] / few:.1f}", f"{calls['read'] / few / 1e3:.1f}")
            wall, cpu = runs.median(command.name, "wall"), runs.median(command.name)
            ratio = runs.ratio(command.name, find.name, "wall")
            size = f"{many:,} of {size_of(counted) / few / 1e3:.0f} kB"
            yield (command.name, size, *each, f"{wall:.2f}", f"{cpu / many * 1e3:.1f}", f"{ratio:.0f}")


TABLES = (
    Table(
        name="folders",
        columns=("", "folders", "listed", "files opened", "kB read", "wall s", "CPU ms a folder", "wall to `find`"),
        rows=folders,
        quick=((160, 40),),
        full=((10_000, 400),),
        needs=("strace", "find"),
    ),
)
