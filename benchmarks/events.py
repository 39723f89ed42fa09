"""Raw events reduced by cklog and by others: `events.py [--spark] SMALL FOLDER…`, folders of `make_events.py`.

cklog reads the events twice, for checkpoints and for intervals, and makes checkpoint records of them. The same
group-by (the highest number and the count per subtask, kind and channel) knows no intervals; with the interval of
each event found by a join with the checkpoint events it answers what cklog does. DuckDB joins as of a place (ASOF);
Spark SQL joins with the range of places of each interval, broadcast. Each in a process of its own after a first run
on SMALL: wall seconds, and CPU seconds of all its processes. Linux only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cklog.commands import keep_memory
from cklog.engine.scan import Scan

keep_memory()  # as the program does, before pyarrow is loaded

import duckdb  # noqa: E402
from scan_spark import PLAIN, session_cpu  # noqa: E402

from cklog.engine.local import LocalEngine  # noqa: E402
from cklog.engine.spark import SparkEngine, SparkOptions  # noqa: E402
from cklog.history.events.raw_events import read_events  # noqa: E402
from cklog.parsers.native.parser import Native  # noqa: E402
from cklog.run import SPLIT_BYTES  # noqa: E402
from cklog.storage import Root  # noqa: E402

ROUNDS = 3
GROUP_BY = "select operator, subtask, event, channel, max(seq), count(*) as n from {0} group by all"
ASOF = """
with taken as (select operator, subtask, lsn as place, checkpoint as interval from {0} where event = 'checkpoint')
select e.channel, e.event, coalesce(t.interval, 0), min(e.seq), max(e.seq), count(*) as n
from {0} e asof left join taken t on e.operator = t.operator and e.subtask = t.subtask and e.lsn >= t.place
where e.event <> 'checkpoint' group by all"""
RANGES = """
with taken as (
  select operator, subtask, lsn as low, coalesce(lead(lsn) over (partition by operator, subtask order by lsn),
    9223372036854775807) as high, checkpoint as interval from {0} where event = 'checkpoint'
)
select /*+ BROADCAST(t) */ e.channel, e.event, coalesce(t.interval, 0) as k, min(e.seq), max(e.seq), count(*) as n
from {0} e left join taken t
  on e.operator = t.operator and e.subtask = t.subtask and e.lsn >= t.low and e.lsn < t.high
where e.event <> 'checkpoint' group by e.channel, e.event, coalesce(t.interval, 0)"""


def cklog(engine: Any, folder: str) -> int:
    """Checkpoint records of the events; how many events."""
    tables = Native(Root(folder))

    def scan(columns: Any, kernel: Any, partial: Any, reduce: Any) -> Any:
        splits = tuple(tables.splits("events", SPLIT_BYTES))
        scan = Scan(splits=splits, table="events", columns=columns, kernel=kernel, partial=partial, reduce=reduce)
        scanned = engine.run(scan)
        return scanned.table, [], [sum(scanned.records.values())]

    raw, findings, (rows,) = read_events(scan, None, (), (), None)
    assert len(raw.table)
    assert {f.severity for f in findings} <= {"info"}, findings
    return int(rows)


def duck(query: str, folder: str) -> int:
    """The rows that DuckDB has counted."""
    source = f"'{folder}/events/*.parquet'"
    return sum(row[-1] for row in duckdb.sql(query.format(source)).fetchall())


def plain(session: Any, query: str, folder: str) -> int:
    """The rows that Spark SQL has counted."""
    session.read.parquet(f"{folder}/events").createOrReplaceTempView("events")
    query = query.replace("group by all", "group by operator, subtask, event, channel")
    return sum(row["n"] for row in session.sql(query.format("events")).collect())


def work(name: str) -> Callable[[str], int]:
    """What a name stands for, its engine started."""
    if name == "cklog":
        return lambda folder: cklog(LocalEngine(), folder)
    if name.startswith("DuckDB"):
        duckdb.sql(f"set threads = {os.cpu_count()}")
        return lambda folder: duck(ASOF if name.endswith("join") else GROUP_BY, folder)
    engine = SparkEngine(SparkOptions(conf=() if name == "cklog on Spark" else PLAIN))
    if name == "cklog on Spark":
        return lambda folder: cklog(engine, folder)
    session = engine._start()
    return lambda folder: plain(session, RANGES if name.endswith("join") else GROUP_BY, folder)


LOCAL = ("cklog", "DuckDB group-by", "DuckDB join")
SPARK = ("cklog on Spark", "Spark SQL group-by", "Spark SQL join")


def child(name: str, small: str, folder: str) -> None:
    """Rows, wall seconds and CPU seconds of the second run."""
    run = work(name)
    run(small)
    cpu, wall = session_cpu(), time.perf_counter()
    rows = run(folder)
    print(rows, time.perf_counter() - wall, session_cpu() - cpu)


def measured(name: str, small: str, folder: str) -> tuple[int, float, float]:
    """`child` in a session of its own."""
    command = [sys.executable, __file__, "--one", name, small, folder]
    told = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    rows, wall, cpu = told.stdout.split()
    return int(rows), float(wall), float(cpu)


def main() -> None:
    """A line per folder: medians of processes taken in turn; ratios are medians of the rounds' ratios."""
    if sys.argv[1:2] == ["--one"]:
        child(*sys.argv[2:])
        return
    names = SPARK if "--spark" in sys.argv else LOCAL
    small, *folders = [path for path in sys.argv[1:] if path != "--spark"]
    print("| events | rows | " + " | ".join(f"{n}, rows/s | wall s | CPU s" for n in names) + " | ratios |")
    print("|---" * (3 + 3 * len(names)) + "|")
    for folder in folders:
        rounds = [[measured(name, small, folder) for name in names] for _ in range(ROUNDS)]
        rows = rounds[0][0][0]
        cells = [Path(folder).name, f"{rows:,}"]
        for i in range(len(names)):
            wall, cpu = (statistics.median(r[i][k] for r in rounds) for k in (1, 2))
            cells += [f"{rows / wall / 1e6:.1f} M", f"{wall:.2f}", f"{cpu:.1f}"]
        ratios = [statistics.median(r[i][1] / r[0][1] for r in rounds) for i in range(1, len(names))]
        print("| " + " | ".join([*cells, ", ".join(f"{ratio:.2f}" for ratio in ratios)]) + " |", flush=True)


if __name__ == "__main__":
    main()
