"""Make sample_logs/spark-state-hdfs and spark-state-rocksdb: real word counts, each killed with SIGKILL in batch 7.

    python sample_logs/make_spark_state.py

Needs pyspark and Java 17+. Both queries run under `HOME`, a neutral path, because Spark and RocksDB store absolute
paths; what they leave is copied beside this script. Nothing is overwritten: neither `HOME` nor a sample may be there
already. Ids and times differ from run to run, so a new run gives new folders, not the same bytes.
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
from typing import Any

HOME = Path("/srv/cklog-words")
HERE = Path(__file__).resolve().parent
LAST = 7  # the batch that never ends
_FILE_S = 1_700_000_000  # time of the first input file
_WAIT_S = 240
_STATE = "spark.sql.streaming.stateStore."
_CLASSES = "org.apache.spark.sql.execution.streaming.state."

LINES = (
    "the stream runs down to the sea",
    "the sea keeps what the stream gives",
    "a stone in the stream is a small dam",
    "the dam breaks and the stream runs on",
    "what runs on runs down",
    "down in the sea a stone is a small stone",
    "a dam keeps the stream and gives a sea",
    "crash",
)

PROVIDERS = {
    "hdfs": {_STATE + "providerClass": _CLASSES + "HDFSBackedStateStoreProvider"},
    "rocksdb": {
        _STATE + "providerClass": _CLASSES + "RocksDBStateStoreProvider",
        _STATE + "rocksdb.changelogCheckpointing.enabled": "true",
    },
}
"""What each sample sets; a snapshot is due after three deltas."""


def main() -> None:
    """Run each query in a process group of its own, kill it in batch `LAST`, keep its checkpoint and inputs."""
    for provider in PROVIDERS:
        home, target = HOME / provider, HERE / f"spark-state-{provider}"
        if home.exists() or (target / "ck").exists():
            raise SystemExit(f"{home} or {target / 'ck'} is there already")
        write_inputs(home / "in")
        with (home / "query.log").open("wb") as log:
            command = [sys.executable, __file__, provider]
            query = subprocess.Popen(command, cwd=home, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for_last_batch(query, home)
        finally:
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()
        for name in ("ck", "in"):
            shutil.copytree(home / name, target / name)


def write_inputs(folder: Path) -> None:
    """One file a batch; file times give Spark the order."""
    folder.mkdir(parents=True)
    for i, line in enumerate(LINES):
        path = folder / f"line-{i}.json"
        path.write_text(json.dumps({"line": line}) + "\n", encoding="utf-8")
        os.utime(path, (_FILE_S + i, _FILE_S + i))


def wait_for_last_batch(query: subprocess.Popen[bytes], home: Path) -> None:
    """Return in mid-batch: the last batch is planned, the one before is committed, and the task has its line."""
    ends = time.monotonic() + _WAIT_S
    while not (home / "hanging").exists():
        if query.poll() is not None or time.monotonic() > ends:
            raise SystemExit(f"the query ended or hung too early; see {home / 'query.log'}")
        time.sleep(0.1)
    planned, committed = home / "ck/offsets" / str(LAST), home / "ck/commits" / str(LAST)
    assert planned.exists()
    assert not committed.exists()


def session(provider: str, home: Path) -> Any:
    """A session whose state is kept by `provider`, in two partitions, with maintenance twice a second."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.local.dir", str(home / "scratch")).config("spark.sql.shuffle.partitions", 2)
    builder = builder.config(_STATE + "maintenanceInterval", "500ms").config(_STATE + "minDeltasForSnapshot", 3)
    for key, value in PROVIDERS[provider].items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def counts(spark: Any, home: Path, words_of: Any) -> Any:
    """The stream of words and how often each was seen; `words_of` splits a line."""
    from pyspark.sql import functions as F

    lines = spark.readStream.schema("line STRING").option("maxFilesPerTrigger", 1).json(str(home / "in"))
    return lines.select(F.explode(words_of("line")).alias("word")).groupBy("word").count()


def run_query(provider: str) -> None:
    """Count words; the word `crash` makes its task hang. Batches are a second apart, so that maintenance runs."""
    from pyspark.sql import functions as F

    home = HOME / provider

    def split(line: str) -> list[str]:
        if line == "crash":
            (home / "hanging").touch()
            time.sleep(_WAIT_S)
        return line.split()

    stream = counts(session(provider, home), home, F.udf(split, "array<string>"))
    sink = stream.writeStream.format("noop").outputMode("update").trigger(processingTime="2 seconds")
    sink.option("checkpointLocation", str(home / "ck")).start().awaitTermination()


if __name__ == "__main__":
    run_query(sys.argv[1]) if sys.argv[1:] else main()
