"""The forward pass over an output queue and the same group-by elsewhere: `forward.py SMALL FOLDER…`; wall seconds.

Per window the last record, then the windows whose last record is no result. Folders are runs with `outputs/agg1`;
DuckDB reads Parquet, Spark SQL whatever is there, each with all cores, each in a process of its own after a first
query on SMALL. Spark SQL gets the full compiler and adaptive plans.
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

keep_memory()  # as the program does, before pyarrow is loaded

import duckdb  # noqa: E402

from cklog.engine.local import LocalEngine  # noqa: E402
from cklog.engine.spark import SparkEngine, SparkOptions  # noqa: E402
from cklog.model.names import Subtask  # noqa: E402
from cklog.parsers.native.parser import Native  # noqa: E402
from cklog.queues.full_scans import forward_scan  # noqa: E402
from cklog.run import SPLIT_BYTES  # noqa: E402
from cklog.storage import Root  # noqa: E402

ROUNDS = 3
PLAIN = (("spark.driver.extraJavaOptions", "-XX:+UseSerialGC"), ("spark.sql.adaptive.enabled", "true"))
CODE = "case type when 'open' then 0 when 'check' then 1 else 2 end"
LAST = f"max(pos * 4 + {CODE})"


def query_of(source: str, quote: str) -> str:
    """`window` is a word of SQL's own; dialects quote names differently."""
    name = f"{quote}window{quote}"
    return f"select {name}, {LAST} as last from {source} group by {name} having {LAST} % 4 <> 2"


def cklog(engine: Any) -> Callable[[str], int]:
    """The number of windows that the forward scan leaves."""

    def count(folder: str) -> int:
        queue = Native(Root(folder)).queues()[Subtask("agg1", 0)]
        return len(engine.run(forward_scan(queue, SPLIT_BYTES)).table)

    return count


def spark_sql() -> Callable[[str], int]:
    session = SparkEngine(SparkOptions(conf=PLAIN))._start()

    def query(folder: str) -> int:
        place = Path(folder, "outputs", "agg1")
        reader = session.read.schema("type string, window string, pos bigint")
        frame = (reader.parquet if list(place.glob("*.parquet")) else reader.json)(str(place))
        frame.createOrReplaceTempView("queue")
        return len(session.sql(query_of("queue", "`")).collect())

    return query


def duck() -> Callable[[str], int]:
    duckdb.sql(f"set threads = {os.cpu_count()}")
    return lambda folder: len(duckdb.sql(query_of(f"'{folder}/outputs/agg1/*.parquet'", '"')).fetchall())


WORK: dict[str, Callable[[], Callable[[str], int]]] = {
    "cklog, local": lambda: cklog(LocalEngine()),
    "DuckDB": duck,
    "cklog, Spark": lambda: cklog(SparkEngine(SparkOptions())),
    "Spark SQL": spark_sql,
}


def child(name: str, small: str, folder: str) -> None:
    """Windows found and wall seconds of the second query."""
    work = WORK[name]()
    work(small)
    start = time.perf_counter()
    found = work(folder)
    print(found, time.perf_counter() - start)


def measured(name: str, small: str, folder: str) -> tuple[int, float]:
    """`child` in a process of its own."""
    command = [sys.executable, __file__, "--one", name, small, folder]
    found, wall = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(found), float(wall)


def main() -> None:
    """Pairs taken in turn: cklog's engine, then its peer."""
    if sys.argv[1:2] == ["--one"]:
        child(*sys.argv[2:])
        return
    small, *folders = sys.argv[1:]
    print("| queue | bytes | who | wall s | peer | wall s | rate |")
    print("|---|---|---|---|---|---|---|")
    for folder in folders:
        size = sum(path.stat().st_size for path in Path(folder, "outputs", "agg1").iterdir())
        parquet = bool(list(Path(folder, "outputs", "agg1").glob("*.parquet")))
        pairs = [("cklog, Spark", "Spark SQL"), *([("cklog, local", "DuckDB")] if parquet else [])]
        for own, peer in pairs:
            rounds = [(measured(own, small, folder), measured(peer, small, folder)) for _ in range(ROUNDS)]
            assert len({found for pair in rounds for found, _ in pair}) == 1, rounds
            walls = [statistics.median(pair[i][1] for pair in rounds) for i in (0, 1)]
            ratio = statistics.median(pair[1][1] / pair[0][1] for pair in rounds)
            name = Path(folder).name
            print(
                f"| {name} | {size >> 20} MiB | {own} | {walls[0]:.1f} | {peer} | {walls[1]:.1f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
