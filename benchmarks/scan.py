"""Channel logs scanned by cklog's local engine and by DuckDB, in turn: `scan.py FOLDER…`; prints rows per second.

`group-by` is what DuckDB does in one pass: count, bytes, least and greatest number per channel. `islands` is what
cklog answers: the same per contiguous range, so that a hole shows. Both read the same files with all cores.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan
from cklog.parsers.native.parser import Native
from cklog.run import SPLIT_BYTES
from cklog.runs.records import channel_logs as message_log
from cklog.storage import Root

GROUP_BY = "select channel, count(*), sum(bytes), min(seq), max(seq) from {0} group by channel"
ISLANDS = """
with marked as (
  select channel, seq, bytes, seq - row_number() over (partition by channel order by seq) as island from {0}
)
select channel, min(seq), max(seq) + 1, count(*), sum(bytes) from marked group by channel, island"""
COLUMNS = "{channel: 'VARCHAR', seq: 'BIGINT', time: 'BIGINT', bytes: 'BIGINT'}"
ROUNDS = 5


def cklog(folder: str) -> int:
    """Islands of every channel; the number of rows read."""
    scan = Scan(
        splits=tuple(Native(Root(folder)).splits("channels", SPLIT_BYTES)),
        table="channels",
        columns=message_log.columns(None),
        kernel=message_log.runs,
        partial=message_log.RUNS,
        reduce=message_log.RUNS_REDUCE,
    )
    return sum(LocalEngine().run(scan).records.values())


def peer(folder: str, query: str) -> int:
    """The same by DuckDB."""
    files = f"{folder}/channels/*.parquet"
    source = f"'{files}'"
    if not list(Path(folder, "channels").glob("*.parquet")):
        source = f"read_json('{folder}/channels/*.jsonl', format='newline_delimited', columns={COLUMNS})"
    return len(duckdb.sql(query.format(source)).fetchall())


WORK: dict[str, Callable[[str], int]] = {
    "cklog": cklog,
    "group-by": lambda folder: peer(folder, GROUP_BY),
    "islands": lambda folder: peer(folder, ISLANDS),
}


def child(name: str, folder: str) -> None:
    """Median wall seconds of one kind of scan, the first not counted."""
    if name != "cklog":
        duckdb.sql(f"set threads = {os.cpu_count()}")
    repeats = 2 if name == "islands" else 5
    walls = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        WORK[name](folder)
        walls.append(time.perf_counter() - start)
    print(statistics.median(walls[1:]))


def seconds(name: str, folder: str) -> float:
    """`child` in a process of its own: allocators and thread pools of one do not slow the other."""
    told = subprocess.run([sys.executable, __file__, "--one", name, folder], capture_output=True, text=True, check=True)
    return float(told.stdout)


def main() -> None:
    """One line per folder: medians of processes taken in turn."""
    if sys.argv[1:2] == ["--one"]:
        child(sys.argv[2], sys.argv[3])
        return
    print("| logs | rows | cklog rows/s | DuckDB group-by rows/s | ratio | DuckDB islands rows/s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for folder in sys.argv[1:]:
        rows = cklog(folder)
        walls = {name: [seconds(name, folder) for _ in range(1)] for name in WORK}
        for _ in range(ROUNDS - 1):
            for name in ("cklog", "group-by"):
                walls[name].append(seconds(name, folder))
        own, simple, full = (rows / statistics.median(walls[name]) / 1e6 for name in WORK)
        pairs = [b / a for a, b in zip(walls["cklog"], walls["group-by"], strict=True)]
        print(
            f"| {Path(folder).name} | {rows / 1e6:.0f} M | {own:.1f} M | {simple:.1f} M "
            f"| {statistics.median(pairs):.2f} | {full:.1f} M | {own / full:.1f} |"
        )


if __name__ == "__main__":
    main()
