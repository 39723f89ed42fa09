"""`cklog scan` over many small run folders beside `find`: `scan_folders.py [FOLDERS] [PLACE]`.

Copies of the samples below, by turns, are made in PLACE (/dev/shm) and removed afterwards. Printed are files opened and
bytes read per folder, as strace sees them (of run folders only, not of Python's own modules), and wall and CPU time,
each beside those of `find -printf '%s'`, which looks at every file and opens none.
"""

from __future__ import annotations

import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLES = (
    "domino-cycle",
    "flink-orders",
    "spark-wordcount",
    "q3-coordinated",
    "kafka-broker",
    "spark-state-hdfs",
    "incremental",
    "kafka-streams-state",
)
COUNTED = 400
"""Folders of which opens and reads are counted: strace makes everything many times slower."""


def made(place: Path, count: int) -> Path:
    """A folder with so many run folders."""
    samples = Path(__file__).parent.parent / "sample_logs"
    for i in range(count):
        name = SAMPLES[i % len(SAMPLES)]
        shutil.copytree(samples / name, place / f"{i // 1000:03d}" / f"{name}-{i:06d}")
    return place


def timed(*command: str) -> tuple[float, float, int]:
    """Wall and CPU seconds of a command, and its exit code."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, code


def traced(place: Path, *command: str) -> tuple[int, int, int]:
    """Files opened, bytes read and folders listed below a place by a command, as strace tells."""
    with tempfile.NamedTemporaryFile("r") as log:
        calls = "trace=openat,open,read,pread64,readv,mmap,getdents64"
        subprocess.run(
            ("strace", "-f", "-y", "-qq", "-e", calls, "-o", log.name, *command),
            stdout=subprocess.DEVNULL,
            check=False,
        )
        found: collections.Counter[str] = collections.Counter()
        ended = {}
        for line in log:
            pid, _, call = line.partition(" ")
            if "<unfinished ...>" in call:
                ended[pid] = call
                continue
            if "resumed>" in call:
                call = ended.pop(pid, "") + call
            if f"{place}/" not in call and f"{place}>" not in call:
                continue
            name, result = call.lstrip().partition("(")[0], re.search(r"\) = (\d+)", call)
            if result is None:
                continue
            if name in ("openat", "open"):
                found["listed" if "O_DIRECTORY" in call else "opened"] += 1
            elif name in ("read", "pread64", "readv"):
                found["read"] += int(result[1])
        return found["opened"], found["read"], found["listed"]


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    room = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="cklog-scan-", dir=room)).resolve()
    program = str(Path(sys.executable).parent / "cklog")
    try:
        few = made(place / "few", min(COUNTED, count))
        size = sum(f.stat().st_size for f in few.rglob("*") if f.is_file())
        files = sum(f.is_file() for f in few.rglob("*"))
        folders = min(COUNTED, count)
        print(f"a folder has {files / folders:.1f} files, {size / folders / 1000:.1f} kB")
        for name, command in (
            ("cklog scan", (program, "scan", str(few), "--format", "jsonl", "-q")),
            ("find", ("find", str(few), "-type", "f", "-printf", "%s\n")),
        ):
            opened, read, listed = traced(place, *command)
            print(
                f"{name}: {opened / folders:.1f} files opened, {read / folders / 1000:.1f} kB read, "
                f"{listed / folders:.1f} folders listed, per run folder"
            )
        shutil.rmtree(few)
        many = made(place / "many", count)
        os.sync()
        find = timed("find", str(many), "-type", "f", "-printf", "%s\n")
        scan = timed(program, "scan", str(many), "--format", "jsonl", "-q")
        print(f"{count:,} folders: find {find[0]:.2f} s, cklog scan {scan[0]:.1f} s wall ({scan[0] / find[0]:.0f} x)")
        print(f"cklog scan: {scan[1] / count * 1000:.1f} ms CPU a folder, exit {scan[2]}")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
