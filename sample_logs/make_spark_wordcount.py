"""Make sample_logs/spark-wordcount: a real Structured Streaming word count, killed with SIGKILL in batch 6.

    python sample_logs/make_spark_wordcount.py

Needs pyspark and Java 17+. The query runs under `HOME`, a neutral path, because Spark stores absolute paths; the
result is copied beside this script and `HOME` is removed. Ids and times differ from run to run, so a new run gives
a new folder, not the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path("/srv/cklog-sample/wordcount")
HERE = Path(__file__).resolve().parent
LAST = 6  # the batch that never ends
_START_S = 1_700_000_000  # event time and file time of the first line
_WAIT_S = 180

LINES = (
    "the stream runs down to the sea",
    "the sea keeps what the stream gives",
    "a stone in the stream is a small dam",
    "the dam breaks and the stream runs on",
    "what runs on runs down",
    "down in the sea a stone is a small stone",
    "crash",
)


def main() -> None:
    """Write the inputs, run the query in a process group of its own, kill it in batch `LAST`, keep the folders."""
    shutil.rmtree(HOME, ignore_errors=True)
    write_inputs(HOME / "in")
    log = HOME.parent / "query.log"
    with log.open("wb") as out:
        command = [sys.executable, __file__, "query"]
        query = subprocess.Popen(command, cwd=HOME, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_for_last_batch(query)
    finally:
        os.killpg(query.pid, signal.SIGKILL)
        query.wait()
    for name in ("ck", "in", "out"):
        target = HERE / "spark-wordcount" / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(HOME / name, target)
    shutil.rmtree(HOME.parent)


def write_inputs(folder: Path) -> None:
    """One file a batch, one line a minute of event time; file times give Spark the order."""
    folder.mkdir(parents=True)
    for i, line in enumerate(LINES):
        path = folder / f"minute-{i}.json"
        second = _START_S + 60 * i
        path.write_text(json.dumps({"time": second, "line": line}) + "\n", encoding="utf-8")
        os.utime(path, (second, second))


def wait_for_last_batch(query: subprocess.Popen[bytes]) -> None:
    """Return in mid-batch: the last batch is planned, the one before is committed, and the task has its line."""
    ends = time.monotonic() + _WAIT_S
    while not (HOME / "hanging").exists():
        if query.poll() is not None or time.monotonic() > ends:
            raise SystemExit(f"the query ended or hung too early; see {HOME.parent / 'query.log'}")
        time.sleep(0.1)
    planned, committed = HOME / "ck/offsets" / str(LAST), HOME / "ck/commits" / str(LAST)
    assert planned.exists()
    assert not committed.exists()


def run_query() -> None:
    """Count words per minute, append mode; the word `crash` makes its task hang."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    def split(line: str) -> list[str]:
        if line == "crash":
            (HOME / "hanging").touch()
            time.sleep(_WAIT_S)
        return line.split()

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    lines = spark.readStream.schema("time LONG, line STRING").option("maxFilesPerTrigger", 1).json(str(HOME / "in"))
    words = lines.select(
        F.timestamp_seconds("time").alias("time"),
        F.explode(F.udf(split, "array<string>")("line")).alias("word"),
    )
    counts = words.withWatermark("time", "1 minute").groupBy(F.window("time", "1 minute"), "word").count()
    sink = counts.coalesce(1).writeStream.format("json").outputMode("append")
    sink.option("path", str(HOME / "out")).option("checkpointLocation", str(HOME / "ck")).start().awaitTermination()


if __name__ == "__main__":
    run_query() if sys.argv[1:] == ["query"] else main()
