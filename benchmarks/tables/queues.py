"""Output queues: their extent read from the end, and all of them by the forward pass, beside group-bys of others."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import size_of
from benchmarks.engines import engine, plain_session
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import Command, cklog, counted, work
from cklog.engine.scan import Engine

JSON_COLUMNS = "{'type': 'VARCHAR', 'window': 'VARCHAR', 'pos': 'BIGINT'}"
LAST = "max(pos * 4 + case type when 'open' then 0 when 'check' then 1 else 2 end)"
OPERATOR = "agg1"
SMALL = 100_000
PEER = "import duckdb, sys; print(len(duckdb.sql(sys.argv[1]).fetchall()))"


def _open_windows(source: str, quote: str) -> str:
    """Windows whose last record is no result; `window` is a word of SQL's own, and dialects quote names differently."""
    name = f"{quote}window{quote}"
    return f"select {name}, {LAST} as last from {source} group by {name} having {LAST} % 4 <> 2"


def _files(folder: str) -> tuple[Path, bool]:
    """Where the queue's files are, and whether they are Parquet."""
    place = Path(folder, "outputs", OPERATOR)
    return place, bool(list(place.glob("*.parquet")))


def _duckdb_query(folder: str | Path) -> str:
    place, parquet = _files(str(folder))
    source = f"'{place}/*.parquet'"
    if not parquet:
        source = f"read_json('{place}/*.jsonl', format='newline_delimited', columns={JSON_COLUMNS})"
    return _open_windows(source, '"')


def duckdb_warm(small: str, folder: str) -> None:
    """Open windows by DuckDB."""
    import duckdb

    duckdb.sql(f"set threads = {os.cpu_count()}")

    def count(place: str) -> int:
        return len(duckdb.sql(_duckdb_query(place)).fetchall())

    counted(lambda: count(folder), warm=lambda: count(small))


def cklog_forward(name: str, small: str, folder: str) -> None:
    """How many windows the forward pass leaves."""
    from cklog.model.names import Subtask
    from cklog.model.options import SPLIT_BYTES
    from cklog.parsers.native.parser import Native
    from cklog.queues.full_scans import forward_scan
    from cklog.storage import Root

    def count(place: str, chosen: Engine) -> int:
        queue = Native(Root(place)).queues()[Subtask(OPERATOR, 0)]
        return len(chosen.run(forward_scan(queue, SPLIT_BYTES)).table)

    with engine(name) as chosen:
        counted(lambda: count(folder, chosen), warm=lambda: count(small, chosen))


def spark_sql(small: str, folder: str) -> None:
    """The same windows by Spark SQL."""

    def count(place: str, session: Any) -> int:
        files, parquet = _files(place)
        reader = session.read.schema("type string, window string, pos bigint")
        (reader.parquet if parquet else reader.json)(str(files)).createOrReplaceTempView("queue")
        return len(session.sql(_open_windows("queue", "`")).collect())

    with plain_session() as session:
        counted(lambda: count(folder, session), warm=lambda: count(small, session))


def tail(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each question, and the peer's; a size is a number of tuples."""
    for tuples in sizes:
        folder = room.data.queue(tuples)
        size = size_of(folder / "outputs" / OPERATOR)
        peer = Command("DuckDB, open windows by a group-by", (sys.executable, "-c", PEER, _duckdb_query(folder)))
        own = [
            cklog(f"`cklog {words}`", *words.split(), "--operator", OPERATOR, folder)
            for words in ("extent", "eventual-checkpoint --json")
        ]
        runs = room.pairs_of(*own, peer, pairs=5)
        for command in (*own, peer):
            told = re.search(r"read ([0-9,]+) of", runs.costs[command.name][0].err)
            read = int(told[1].replace(",", "")) if told else size
            took = (f"{runs.median(command.name, what):.2f}" for what in ("wall", "cpu"))
            ratio = f"{runs.ratio(command.name, peer.name, 'wall'):.2f}"
            yield (command.name, f"{size / 1e9:.2f} GB", *took, f"{read / 1e6:.1f} MB", f"{read / size:.2%}", ratio)


def forward(room: Room, sizes: Sequence[tuple[int, str, str]]) -> Iterator[Row]:
    """cklog's engine, then its peer; a size is a number of tuples, the form of the queue, and the engine."""
    for tuples, form, where in sizes:
        small, folder = room.data.queue(SMALL, form), room.data.queue(tuples, form)
        own = work(f"cklog, {where}", cklog_forward, where, small, folder)
        name, function = ("DuckDB", duckdb_warm) if where == "local" else ("Spark SQL", spark_sql)
        runs = room.pairs_of(own, work(name, function, small, folder), pairs=5)
        runs.count()
        size = size_of(folder / "outputs" / OPERATOR)
        took = [f"{runs.median(who, what):.2f}" for who in (own.name, name) for what in ("wall", "cpu")]
        ratios = [f"{runs.ratio(own.name, name, what):.2f}" for what in ("wall", "cpu")]
        yield (f"{form}, {size >> 20:,} MiB", own.name, *took[:2], name, *took[2:], *ratios)


TABLES = (
    Table(
        name="queues",
        columns=("", "queue", "wall s", "CPU s", "bytes read", "of the queue", "wall to the peer"),
        rows=tail,
        quick=(400_000,),
        full=(40_000_000,),
        needs=("duckdb",),
    ),
    Table(
        name="forward",
        columns=("queue", "who", "wall s", "CPU s", "peer", "wall s", "CPU s", "wall, ratio", "CPU, ratio"),
        rows=forward,
        quick=((400_000, "parquet", "local"), (400_000, "parquet", "spark")),
        full=(
            *((40_000_000, form, "local") for form in ("jsonl", "parquet")),
            *((40_000_000, form, "spark") for form in ("jsonl", "parquet")),
        ),
        needs=("duckdb", "java"),
    ),
)
