"""Channel logs scanned by cklog's local engine and by DuckDB, in turn: `scan.py FOLDER…`; prints rows per second.

`group-by` is what DuckDB does in one pass: count, bytes, least and greatest number per channel. `islands` is what
cklog answers: the same per contiguous range, so that a hole shows. Both read the same files with all cores.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from cklog import message_log
from cklog.engine.local import LocalEngine
from cklog.parsers.native import Native
from cklog.run import SPLIT_BYTES
from cklog.storage import Root

GROUP_BY = "select channel, count(*), sum(bytes), min(seq), max(seq) from {0} group by channel"
ISLANDS = """
with marked as (select channel, seq, bytes, seq - row_number() over (partition by channel order by seq) as island from {0})
select channel, min(seq), max(seq) + 1, count(*), sum(bytes) from marked group by channel, island"""
COLUMNS = "{channel: 'VARCHAR', seq: 'BIGINT', time: 'BIGINT', bytes: 'BIGINT'}"
ROUNDS = 7


def cklog(folder: str) -> int:
    """Islands of every channel; the number of rows read."""
    scan = Native(Root(folder)).scan(
        "channels", message_log.columns(None), message_log.runs, message_log.RUNS, message_log.RUNS_REDUCE, SPLIT_BYTES
    )
    return sum(LocalEngine().run(scan).records.values())


def peer(folder: str, query: str) -> int:
    """The same by DuckDB."""
    files = f"{folder}/channels/*.parquet"
    source = f"'{files}'"
    if not list(Path(folder, "channels").glob("*.parquet")):
        source = f"read_json('{folder}/channels/*.jsonl', format='newline_delimited', columns={COLUMNS})"
    return len(duckdb.sql(query.format(source)).fetchall())


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - wall, cpu


def main() -> None:
    """One line per folder and query: medians of pairs taken in turn."""
    duckdb.sql(f"set threads = {os.cpu_count()}")
    print("| logs | rows | cklog rows/s | DuckDB group-by rows/s | ratio | DuckDB islands rows/s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for folder in sys.argv[1:]:
        rows = cklog(folder)
        peer(folder, GROUP_BY)
        walls: list[list[float]] = [[], [], []]
        for _ in range(ROUNDS):
            walls[0].append(measured(lambda: cklog(folder))[0])
            walls[1].append(measured(lambda: peer(folder, GROUP_BY))[0])
        for _ in range(2):
            walls[2].append(measured(lambda: peer(folder, ISLANDS))[0])
        own, simple, full = (rows / statistics.median(w) / 1e6 for w in walls)
        pairs = [b / a for a, b in zip(walls[0], walls[1], strict=True)]
        print(
            f"| {Path(folder).name} | {rows / 1e6:.0f} M | {own:.1f} M | {simple:.1f} M "
            f"| {statistics.median(pairs):.2f} | {full:.1f} M | {own / full:.1f} |"
        )


if __name__ == "__main__":
    main()
