"""Channel logs scanned by cklog's Spark engine and by plain Spark SQL: `scan_spark.py FOLDER…`; CPU seconds.

Both run on local[*], plain Spark SQL with the full compiler and adaptive plans, in processes of their own, each after
a first query that starts what Spark starts lazily; CPU is that of all processes of the session (JVM and Python workers)
during one scan. Spark SQL does count, bytes, least and greatest number per channel; cklog finds every contiguous range
as well. Linux only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cklog.engine.scan import Scan
from cklog.engine.spark import SparkEngine, SparkOptions
from cklog.parsers.native.parser import Native
from cklog.run import SPLIT_BYTES
from cklog.runs.records import channel_logs as message_log
from cklog.storage import Root

ROUNDS = 3
PLAIN = (("spark.driver.extraJavaOptions", "-XX:+UseSerialGC"), ("spark.sql.adaptive.enabled", "true"))
"""Spark SQL scans in the JVM: it gets the full compiler, and Spark's default plans."""


def session_cpu() -> float:
    """CPU seconds so far of every process in this process's session."""
    ticks, mine = 0, os.getsid(0)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == mine:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def cklog(engine: SparkEngine, folder: str) -> int:
    """Islands of every channel on Spark; the number of rows read."""
    scan = Scan(
        splits=tuple(Native(Root(folder)).splits("channels", SPLIT_BYTES)),
        table="channels",
        columns=message_log.columns(None),
        kernel=message_log.runs,
        partial=message_log.RUNS,
        reduce=message_log.RUNS_REDUCE,
    )
    return sum(engine.run(scan).records.values())


def plain(session: Any, folder: str) -> int:
    """A group-by of Spark SQL over the same files."""
    from pyspark.sql import functions as F

    reader = session.read.schema("channel string, seq bigint, time bigint, bytes bigint")
    parquet = list(Path(folder, "channels").glob("*.parquet"))
    frame = (reader.parquet if parquet else reader.json)(f"{folder}/channels")
    rows = frame.groupBy("channel").agg(F.count("*"), F.sum("bytes"), F.min("seq"), F.max("seq")).collect()
    return sum(row[1] for row in rows)


def child(name: str, folder: str, small: str) -> None:
    """CPU and wall seconds of the second scan."""
    conf = () if name == "cklog" else PLAIN
    engine = SparkEngine(SparkOptions(conf=conf))
    session = engine._start()
    work = (lambda path: cklog(engine, path)) if name == "cklog" else (lambda path: plain(session, path))
    work(small)
    cpu, wall = session_cpu(), time.perf_counter()
    rows = work(folder)
    print(rows, session_cpu() - cpu, time.perf_counter() - wall)
    engine.close()


def measured(name: str, folder: str, small: str) -> tuple[int, float, float]:
    """`child` in a session of its own."""
    command = [sys.executable, __file__, "--one", name, folder, small]
    told = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    rows, cpu, wall = told.stdout.split()
    return int(rows), float(cpu), float(wall)


def main() -> None:
    """One line per folder: medians of processes taken in turn. The first folder also serves as the warm-up."""
    if sys.argv[1:2] == ["--one"]:
        child(*sys.argv[2:])
        return
    small, *folders = sys.argv[1:]
    print("| logs | rows | cklog on Spark, CPU s | Spark SQL, CPU s | ratio | wall s | wall s |")
    print("|---|---|---|---|---|---|---|")
    for folder in folders:
        pairs = [[measured(name, folder, small) for name in ("cklog", "spark")] for _ in range(ROUNDS)]
        own, other = (statistics.median(pair[i][1] for pair in pairs) for i in (0, 1))
        walls = [statistics.median(pair[i][2] for pair in pairs) for i in (0, 1)]
        ratio = statistics.median(pair[0][1] / pair[1][1] for pair in pairs)
        rows = pairs[0][0][0] / 1e6
        name = Path(folder).name
        print(f"| {name} | {rows:.0f} M | {own:.1f} | {other:.1f} | {ratio:.2f} | {walls[0]:.1f} | {walls[1]:.1f} |")


if __name__ == "__main__":
    main()
