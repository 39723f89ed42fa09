"""Six kinds of streaming query, with every kind of state store and two kinds of sink: to be killed, and run again.

    python -m tests.builders.spark_queries FOLDER QUERY/STATE/SINK...

runs one query of each name below FOLDER/NAME until it is killed. Each leaves `ck`, `in` and `out`; a foreachBatch sink
writes a line a batch to `out/ledger.jsonl`. They are independent of cklog.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_STATE = "spark.sql.streaming.stateStore."
_HDFS = {_STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"}
_ROCKSDB = {_STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"}
_WHOLE = {**_ROCKSDB, _STATE + "rocksdb.changelogCheckpointing.enabled": "false"}
_CHANGELOGS = {**_ROCKSDB, _STATE + "rocksdb.changelogCheckpointing.enabled": "true"}
_JOIN, _AGGREGATION = (f"spark.sql.streaming.{what}.stateFormatVersion" for what in ("join", "aggregation"))
STATES: dict[str, dict[str, str]] = {
    "hdfs": {**_HDFS, _JOIN: "2", _AGGREGATION: "2"},
    "hdfs-1": {**_HDFS, _JOIN: "2", _AGGREGATION: "1"},
    "rocksdb": {**_WHOLE, _JOIN: "2", _AGGREGATION: "1"},
    "rocksdb-3": {**_WHOLE, _JOIN: "3", _AGGREGATION: "2"},
    "changelogs": {**_CHANGELOGS, _JOIN: "4", _AGGREGATION: "2"},
    "ids": {**_CHANGELOGS, _JOIN: "3", _AGGREGATION: "2", _STATE + "checkpointFormatVersion": "2"},
}
"""Settings by state store: each provider, with and without changelogs, state checkpoint format 2 (`ids`; else 1), and
each format of the state of joins (2, 3, 4: Spark 4.3 starts none of format 1) and of aggregations (1, 2)."""
APPENDING = ("dedup", "within", "join", "windows")
QUERIES = ("counts", "total", *APPENDING)
SINKS = ("file", "each")
FILES = 400
"""More batches than any query runs before it is killed."""
_PER_FILE = 6
_FILE_S = 1_700_000_000


def names() -> list[str]:
    """Return every query, state and sink that go together; a file sink takes queries that append."""
    return [f"{q}/{s}/{k}" for q in QUERIES for s in STATES for k in SINKS if k == "each" or q in APPENDING]


def write_inputs(folder: Path, files: int = FILES) -> None:
    """Write one file a batch; file times give Spark the order."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        rows = ({"k": f"k{(i * 7 + j * 3) % 11}", "t": _FILE_S + i * 10 + j} for j in range(_PER_FILE))
        path = folder / f"f{i:05d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (_FILE_S + i, _FILE_S + i))


MAINTAINED = {
    _STATE + "maintenanceInterval": "500ms",
    _STATE + "minDeltasForSnapshot": "3",
    "spark.sql.streaming.minBatchesToRetain": "4",
}
"""State is maintained twice a second, and little is kept."""


def session(scratch: Path, settings: Mapping[str, str] | None = None) -> Any:
    """A quiet session with two partitions of state, and Spark's other defaults but for some settings."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.local.dir", str(scratch)).config("spark.sql.shuffle.partitions", "2")
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def wait(running: Mapping[str, Any]) -> None:
    """Wait until the process is killed, or one of these queries fails."""
    while all(query.isActive for query in running.values()):
        time.sleep(0.5)
    raise SystemExit("\n".join(f"{name}: {query.exception()}" for name, query in running.items()))


def start(spark: Any, home: Path, name: str, once: bool = False) -> Any:
    """Start a query in a session of its own; `once`: it ends when all input that is there is read."""
    query, state, sink = name.split("/")
    own = spark.newSession()
    for key, value in STATES[state].items():
        own.conf.set(key, value)
    writer = _stream(own, home / "in", query).writeStream.option("checkpointLocation", str(home / "ck"))
    writer = writer.outputMode("append" if query in APPENDING else "update")
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")
    if sink == "file":
        return writer.format("json").option("path", str(home / "out")).start()
    (home / "out").mkdir(exist_ok=True)

    def note(rows: Any, batch: int) -> None:
        found = sorted(map(str, rows.collect()))
        with (home / "out" / "ledger.jsonl").open("a") as ledger:
            ledger.write(json.dumps({"batch": batch, "rows": found}) + "\n")

    return writer.foreachBatch(note).start()


def _stream(spark: Any, folder: Path, query: str) -> Any:
    """The query's stream of results."""
    from pyspark.sql import functions as F

    rows = spark.readStream.schema("k STRING, t LONG").option("maxFilesPerTrigger", 1).json(str(folder))
    rows = rows.withColumn("at", F.timestamp_seconds("t"))
    if query == "counts":
        return rows.groupBy("k").count()
    if query == "total":
        return rows.groupBy().count()  # one partition of state, whatever is set
    if query == "dedup":
        return rows.withWatermark("at", "30 seconds").dropDuplicates(["k", "at"])
    if query == "within":
        return rows.withWatermark("at", "30 seconds").dropDuplicatesWithinWatermark(["k"])
    if query == "windows":
        windows = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "20 seconds"), "k").count()
        return windows.groupBy(F.window("window", "40 seconds")).agg(F.sum("count").alias("n"))
    left, right = (rows.withWatermark("at", "20 seconds").alias(side) for side in "ab")
    near = F.expr("a.k = b.k AND a.at < b.at AND b.at < a.at + interval 30 seconds")
    return left.join(right, near).select("a.k", F.col("a.at").alias("first"), F.col("b.at").alias("then"))


def main(folder: Path, which: list[str]) -> None:
    """Run the queries until the process is killed, or one of them fails."""
    spark = session(folder / "scratch", MAINTAINED)
    wait({name: start(spark, folder / name, name) for name in which})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
