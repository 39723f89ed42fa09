"""Raw events reduced by cklog and by others, each after a first run: on the same, with Spark on a few.

cklog reads the events twice, for checkpoints and for intervals, and makes checkpoint records of them. The same
group-by (the highest number and the count per subtask, kind and channel) knows no intervals; with the interval of
each event found by a join with the checkpoint events it answers what cklog does. DuckDB joins as of a place (ASOF);
Spark SQL joins with the range of places of each interval, broadcast.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.engines import engine, plain_session
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import Command, counted, work
from cklog.engine.scan import Engine

SMALL = 10_000
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


def cklog_records(name: str, warm: str, folder: str) -> None:
    """Checkpoint records of the events; tells how many events."""
    from cklog.engine.scan import Scan
    from cklog.history.events.raw_events import read_events
    from cklog.model.options import SPLIT_BYTES
    from cklog.parsers.native.parser import Native
    from cklog.storage import Root

    def rows(place: str, chosen: Engine) -> int:
        tables, counts = Native(Root(place)), list[int]()

        def scan(columns: Any, kernel: Any, partial: Any, reduce: Any) -> Any:
            splits = tuple(tables.splits("events", SPLIT_BYTES))
            scan = Scan(splits=splits, table="events", columns=columns, kernel=kernel, partial=partial, reduce=reduce)
            scanned = chosen.run(scan)
            counts.append(sum(scanned.records.values()))
            return scanned.table, [], []

        raw, findings, _ = read_events(scan, None, (), (), None)
        assert len(raw.table)
        assert {f.severity for f in findings} <= {"info"}, findings
        return max(counts)

    with engine(name) as chosen:
        counted(lambda: rows(folder, chosen), warm=lambda: rows(warm, chosen))


def duckdb_query(query: str, warm: str, folder: str) -> None:
    """The rows that DuckDB has counted."""
    import duckdb

    duckdb.sql(f"set threads = {os.cpu_count()}")

    def rows(place: str) -> int:
        return sum(row[-1] for row in duckdb.sql(query.format(f"'{place}/events/*.parquet'")).fetchall())

    counted(lambda: rows(folder), warm=lambda: rows(warm))


def spark_query(query: str, small: str, folder: str) -> None:
    """The rows that Spark SQL has counted."""
    query = query.replace("group by all", "group by operator, subtask, event, channel")

    def rows(place: str, session: Any) -> int:
        session.read.parquet(f"{place}/events").createOrReplaceTempView("events")
        return sum(row["n"] for row in session.sql(query.format("events")).collect())

    with plain_session() as session:
        counted(lambda: rows(folder, session), warm=lambda: rows(small, session))


def _told(room: Room, rows: int, *commands: Command) -> Row:
    """CPU and wall seconds of each, and what cklog takes to its peers."""
    runs = room.pairs_of(*commands, pairs=5)
    own, *peers = runs.costs
    cells = [f"{runs.median(who, what):.2f}" for who in (own, *peers) for what in ("wall", "cpu")]
    ratios = [f"{runs.ratio(own, peer):.2f}" for peer in peers]
    return (f"{rows:,}", *cells, *ratios)


def events(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each number of events; the join counts no checkpoint events, so that only two counts are one."""
    for rows in sizes:
        places = (room.data.events(rows),) * 2
        own = work("cklog", cklog_records, "local", *places)
        peers = (work(name, duckdb_query, query, *places) for name, query in (("group", GROUP_BY), ("join", ASOF)))
        yield _told(room, rows, own, *peers)


def events_spark(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """The same on Spark."""
    for rows in sizes:
        places = (room.data.events(SMALL), room.data.events(rows))
        own = work("cklog", cklog_records, "spark", *places)
        peers = (work(name, spark_query, query, *places) for name, query in (("group", GROUP_BY), ("join", RANGES)))
        yield _told(room, rows, own, *peers)


def _columns(own: str, peer: str) -> Row:
    each = [f"{who}, {what}" for who in (own, f"{peer} group-by", f"{peer} join") for what in ("wall s", "CPU s")]
    return ("events", *each, "CPU to the group-by", "CPU to the join")


TABLES = (
    Table(
        name="events",
        columns=_columns("cklog", "DuckDB"),
        rows=events,
        quick=(100_000,),
        full=(1_000_000, 10_000_000, 100_000_000),
        needs=("duckdb",),
    ),
    Table(
        name="events-spark",
        columns=_columns("cklog on Spark", "Spark SQL"),
        rows=events_spark,
        quick=(100_000,),
        full=(100_000_000,),
        needs=("java",),
    ),
)
