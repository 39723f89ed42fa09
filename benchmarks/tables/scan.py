"""Channel logs scanned by cklog, here and on Spark, beside DuckDB and plain Spark SQL, each after a first query: of
the same logs, on Spark of a few.

`islands` is what cklog answers: count, bytes and every contiguous range of numbers per channel, so that a hole shows.
`group-by` is less: count, bytes, least and greatest number.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines import engine, plain_session
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work
from cklog.engine.scan import Engine
from tests.integration.spark.cluster import cluster

GROUP_BY = "select channel, count(*), sum(bytes), min(seq), max(seq) from {0} group by channel"
ISLANDS = """
with marked as (
  select channel, seq, bytes, seq - row_number() over (partition by channel order by seq) as island from {0}
)
select channel, count(*), sum(bytes), min(seq), max(seq) + 1 from marked group by channel, island"""
COLUMNS = "{channel: 'VARCHAR', seq: 'BIGINT', time: 'BIGINT', bytes: 'BIGINT'}"
SMALL = 100_000


def cklog_islands(name: str, warm: str, folder: str, times: str = "1") -> None:
    """Islands of every channel, the mean of so many queries after a first; tells the rows read."""
    from cklog.engine.scan import Scan
    from cklog.model.options import SPLIT_BYTES
    from cklog.parsers.native.parser import Native
    from cklog.runs.records import channel_logs
    from cklog.storage import Root

    def rows(place: str, chosen: Engine) -> int:
        scan = Scan(
            splits=tuple(Native(Root(place)).splits("channels", SPLIT_BYTES)),
            table="channels",
            columns=channel_logs.columns(None),
            kernel=channel_logs.runs,
            partial=channel_logs.RUNS,
            reduce=channel_logs.RUNS_REDUCE,
        )
        return sum(chosen.run(scan).records.values())

    with engine(name) as chosen:
        counted(lambda: rows(folder, chosen), warm=lambda: rows(warm, chosen), times=int(times))


def duckdb_query(query: str, warm: str, folder: str) -> None:
    """The same, or less, by DuckDB."""
    import duckdb

    duckdb.sql(f"set threads = {os.cpu_count()}")

    def rows(place: str) -> int:
        source = f"'{place}/channels/*.parquet'"
        if not list(Path(place, "channels").glob("*.parquet")):
            source = f"read_json('{place}/channels/*.jsonl', format='newline_delimited', columns={COLUMNS})"
        return sum(row[1] for row in duckdb.sql(query.format(source)).fetchall())

    counted(lambda: rows(folder), warm=lambda: rows(warm))


def spark_group_by(small: str, folder: str) -> None:
    """The group-by in plain Spark SQL."""
    from pyspark.sql import functions as F

    def rows(place: str, session: Any) -> int:
        reader = session.read.schema("channel string, seq bigint, time bigint, bytes bigint")
        parquet = list(Path(place, "channels").glob("*.parquet"))
        frame = (reader.parquet if parquet else reader.json)(f"{place}/channels")
        found = frame.groupBy("channel").agg(F.count("*"), F.sum("bytes"), F.min("seq"), F.max("seq")).collect()
        return sum(row[1] for row in found)

    with plain_session() as session:
        counted(lambda: rows(folder, session), warm=lambda: rows(small, session))


Logs = tuple[str, int, bool]


def _folders(room: Room, form: str, rows: int, long_runs: bool) -> tuple[str, Path, Path]:
    """What a table calls the logs, a few of them, and the logs."""
    how = "long runs" if long_runs else "channels interleaved"
    small = room.data.messages(SMALL, form)
    return f"{form}, {how}, {rows / 1e6:g} M rows", small, room.data.messages(rows, form, long_runs=long_runs)


def scan(room: Room, sizes: Sequence[Logs]) -> Iterator[Row]:
    """A row for each log: form, rows, whether a channel's messages are together."""
    for size in sizes:
        name, _, folder = _folders(room, *size)
        runs = room.pairs_of(
            work("cklog", cklog_islands, "local", folder, folder),
            work("group-by", duckdb_query, GROUP_BY, folder, folder),
            work("islands", duckdb_query, ISLANDS, folder, folder),
        )
        count = runs.count()
        rates = {who: f"{count / runs.median(who, 'wall') / 1e6:.1f} M" for who in runs.costs}
        to = {
            (who, what): f"{runs.ratio('cklog', who, what):.2f}"
            for who in ("group-by", "islands")
            for what in ("wall", "cpu")
        }
        yield (
            *(name, rates["cklog"], rates["islands"], to["islands", "wall"], to["islands", "cpu"]),
            *(rates["group-by"], to["group-by", "wall"], to["group-by", "cpu"]),
        )


def scan_spark(room: Room, sizes: Sequence[Logs]) -> Iterator[Row]:
    """The same on Spark."""
    for size in sizes:
        name, small, folder = _folders(room, *size)
        runs = room.pairs_of(
            work("cklog", cklog_islands, "spark", small, folder),
            work("Spark SQL", spark_group_by, small, folder),
            pairs=5,
        )
        runs.count()
        cells = [f"{runs.median(who, what):.1f}" for what in ("cpu", "wall") for who in runs.costs]
        ratios = [f"{runs.ratio('cklog', 'Spark SQL', what):.2f}" for what in ("cpu", "wall")]
        yield (name, *cells[:2], ratios[0], *cells[2:], ratios[1])


def channels(room: Room, sizes: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """A row for each number of channels, beside the group-by: of many, each has few rows."""
    for rows, count in sizes:
        folder = room.data.messages(rows, channels=count)
        ours = work("cklog", cklog_islands, "local", folder, folder)
        peer = work("group-by", duckdb_query, GROUP_BY, folder, folder)
        runs = room.pairs_of(ours, peer, pairs=5)
        runs.count()
        told = [(f"{runs.median(who, 'cpu'):.1f}", f"{runs.median(who, 'peak'):,.0f}") for who in runs.costs]
        yield (f"{count:,}", f"{rows / 1e6:g} M", *told[0], *told[1], f"{runs.ratio('cklog', 'group-by', 'cpu'):.2f}")


def workers(room: Room, sizes: Sequence[Logs]) -> Iterator[Row]:
    """A row for each log: a standalone cluster of one worker beside one of two, each worker with one core."""
    for size in sizes:
        name, _, folder = _folders(room, *size)
        with (
            tempfile.TemporaryDirectory() as one,
            tempfile.TemporaryDirectory() as two,
            cluster(Path(one), 1) as single,
            cluster(Path(two), 2) as double,
        ):
            clusters = (("one", single), ("two", double))
            ours = [work(who, cklog_islands, url, folder, folder, 3) for who, url in clusters]
            runs = room.pairs_of(*ours, pairs=5)
        runs.count()
        cells = [f"{runs.median(who, 'wall'):.1f}" for who in runs.costs]
        yield name, *cells, f"{runs.ratio('one', 'two', 'wall'):.2f}"


TABLES = (
    Table(
        name="scan",
        columns=(
            *("logs", "cklog islands, rows/s", "DuckDB islands, rows/s", "wall, ratio", "CPU, ratio"),
            *("DuckDB group-by, rows/s", "wall, ratio", "CPU, ratio"),
        ),
        rows=scan,
        quick=(("parquet", 1_000_000, False), ("jsonl", 300_000, False)),
        full=(("parquet", 160_000_000, False), ("parquet", 40_000_000, True), ("jsonl", 8_000_000, False)),
        needs=("duckdb",),
    ),
    Table(
        name="channels",
        columns=("channels", "rows", "cklog, CPU s", "peak MiB", "DuckDB group-by, CPU s", "peak MiB", "CPU, ratio"),
        rows=channels,
        quick=((200_000, 10_000),),
        full=((10_000_000, 1_000), (10_000_000, 1_000_000)),
        needs=("duckdb",),
    ),
    Table(
        name="scan-spark",
        columns=(
            *("logs", "cklog on Spark, CPU s", "Spark SQL, CPU s", "ratio"),
            *("cklog on Spark, wall s", "Spark SQL, wall s", "ratio"),
        ),
        rows=scan_spark,
        quick=(("parquet", 1_000_000, False),),
        full=(("parquet", 160_000_000, False), ("jsonl", 8_000_000, False)),
        needs=("java",),
    ),
    Table(
        name="workers",
        columns=("logs", "one worker, wall s", "two workers, wall s", "ratio"),
        rows=workers,
        quick=(("parquet", 1_000_000, False),),
        full=(("parquet", 100_000_000, False), ("jsonl", 100_000_000, False)),
        needs=("java",),
    ),
)
