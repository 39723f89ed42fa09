"""Streaming queries whose foreachBatch writes numbered records to a table: to be killed, and run again.

    python -m tests.builders.sinks.queries FOLDER SOURCE/SINK...

runs one query of each name below FOLDER/NAME until it is killed. Each leaves `ck`, `in` and `table`. Every record has a
number of its own, so that a table tells which came never, once or twice. They are independent of cklog.

A query that reads `FOLDER/NAME/hold` (a moment of a batch and its number) waits there forever, having written `held`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.builders.spark_queries import session, wait

SOURCES = ("rate", "files")
"""rate: offsets and nothing else, as Kafka's topics have them; files: a log of its own tells which file is which."""
SINKS = ("delta-txn", "iceberg-epoch", "delta", "iceberg")
"""With what the sinks of the projects themselves stamp on a commit and look for; and as most people write it."""
PER_BATCH = 3
MOMENTS = ("taken", "written")
"""Of a batch that a query may be held at: given to the sink, and committed by the table."""
FILES = 200
_FILE_S = 1_700_000_000


def names() -> list[str]:
    """Return every source and sink."""
    return [f"{source}/{sink}" for source in SOURCES for sink in SINKS]


def write_inputs(folder: Path, count: int = FILES) -> None:
    """Write one file a batch; file times give Spark the order."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        path = folder / f"f{i:05d}.json"
        path.write_text("".join(json.dumps({"value": i * PER_BATCH + j}) + "\n" for j in range(PER_BATCH)))
        os.utime(path, (_FILE_S + i, _FILE_S + i))


def create(home: Path, name: str) -> None:
    """An empty table, which is there before the query starts."""
    if name.partition("/")[2].startswith("delta"):
        from deltalake import DeltaTable
        from deltalake.schema import Field, PrimitiveType, Schema

        DeltaTable.create(str(home / "table"), Schema([Field("value", PrimitiveType("long"))]))
    else:
        from pyiceberg.schema import Schema as Fields
        from pyiceberg.types import LongType, NestedField

        from tests.builders.sinks.iceberg_folder import FolderCatalog

        FolderCatalog(home / "table").create(Fields(NestedField(1, "value", LongType(), required=False)))


def _delta(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(folder), rows, mode="append")


def _delta_txn(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    """What Delta's own sink does: appId is the query's id, version the batch; what is not newer is skipped."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    newest = DeltaTable(str(folder)).transaction_version(query)
    if newest is None or batch > newest:
        said = CommitProperties(app_transactions=[Transaction(query, batch, int(time.time() * 1000))])
        write_deltalake(str(folder), rows, mode="append", commit_properties=said)


def _iceberg(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    from tests.builders.sinks.iceberg_folder import FolderCatalog

    FolderCatalog(folder).load_table("table").append(rows, branch=branch)


def _iceberg_epoch(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    """What Iceberg's own Spark sink does: the newest snapshot of this query in main tells the newest batch."""
    from tests.builders.sinks.iceberg_folder import FolderCatalog, last_epoch

    table = FolderCatalog(folder).load_table("table")
    newest = last_epoch(table, query)
    if newest is None or batch > newest:
        said = {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(batch)}
        table.append(rows, snapshot_properties=said, branch=branch)


Write = Callable[[Path, pa.Table, str, int, str], None]
"""Writes rows to a table in a folder, of a query and a batch, to a branch."""
WRITERS: dict[str, Write] = {
    "delta-txn": _delta_txn,
    "iceberg-epoch": _iceberg_epoch,
    "delta": _delta,
    "iceberg": _iceberg,
}


def start(spark: Any, home: Path, name: str, until: int | None = None, branch: str = "main") -> Any:
    """Start a query; with `until`, it takes records below that number only, and writes `done` when it has them."""
    source, _, sink = name.partition("/")
    own = spark.newSession()
    if source == "rate":
        reader = own.readStream.format("rate-micro-batch").option("rowsPerBatch", PER_BATCH).option("numPartitions", 1)
        rows = reader.option("startTimestamp", _FILE_S * 1000).load().select("value")
    else:
        rows = own.readStream.schema("value LONG").option("maxFilesPerTrigger", 1).json(str(home / "in"))
    writer = rows.writeStream.option("checkpointLocation", str(home / "ck"))
    writer = writer.trigger(availableNow=True) if source == "files" and until else writer
    return writer.foreachBatch(_sink(home, sink, until, branch)).start()


def _sink(home: Path, sink: str, until: int | None, branch: str) -> Callable[[Any, int], None]:
    def reached(moment: str, batch: int) -> None:
        hold = home / "hold"
        if hold.exists() and json.loads(hold.read_text()) == [moment, batch]:
            (home / "held").touch()
            while True:
                time.sleep(60)

    def write(rows: Any, batch: int) -> None:
        reached("taken", batch)
        values = sorted(row.value for row in rows.collect())
        if until is not None and values and values[0] >= until:
            (home / "done").touch()  # it goes on with nothing to do until it is stopped
            time.sleep(0.2)
            return
        query = json.loads((home / "ck/metadata").read_text())["id"]
        table = pa.table({"value": pa.array(values, pa.int64())})
        WRITERS[sink](home / "table", table, query, batch, branch)
        reached("written", batch)

    return write


def main(folder: Path, which: list[str]) -> None:
    """Run the queries until the process is killed, or one of them fails."""
    spark = session(folder / "scratch")
    wait({name: start(spark, folder / name, name) for name in which})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
