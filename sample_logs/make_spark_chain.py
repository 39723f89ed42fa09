"""Make sample_logs/spark-chain: two real queries, of which one reads what the other writes, killed with SIGKILL.

    python sample_logs/make_spark_chain.py

`clean` reads files and writes files, `enrich` reads those and writes others. Needs pyspark and Java 17+. The queries
run under `HOME`, a neutral path, because Spark stores absolute paths; the result is copied beside this script and
`HOME` is removed. Ids and times differ from run to run, so a new run gives a new folder, not the same bytes. Data files
are left out, but for their names in the logs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path("/srv/cklog-sample/spark-chain")
HERE = Path(__file__).resolve().parent
JOBS = ("clean", "enrich")
PER_FILE = 3
BATCHES = 5
_START_S = 1_700_000_000
_WAIT_S = 300.0


def write_inputs(folder: Path, files: int) -> None:
    """Write files of numbered rows; file times give Spark the order."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        path = folder / f"part-{i:04}.json"
        path.write_text("".join(json.dumps({"id": i * PER_FILE + j}) + "\n" for j in range(PER_FILE)))
        os.utime(path, (_START_S + i, _START_S + i))


def session(scratch: Path) -> Any:
    """A quiet session."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = builder.config("spark.local.dir", str(scratch)).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def start(spark: Any, home: Path, job: str, files: int = 1, once: bool = False) -> Any:
    """Start a query that takes `files` a batch; `once`: it ends when all input that is there is read."""
    source = home / "clean" / ("in" if job == "clean" else "out")
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", files).json(str(source))
    writer = rows.coalesce(1).writeStream.format("json").option("path", str(home / job / "out"))
    writer = writer.option("checkpointLocation", str(home / job / "ck"))
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()


def committed(home: Path, job: str) -> int:
    """The newest committed batch of a query, -1 for none."""
    folder = home / job / "ck/commits"
    return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1) if folder.exists() else -1


def kill_when(home: Path, ready: Callable[[], bool]) -> None:
    """Run both queries in a process group of their own, and kill it as soon as something is so."""
    with (home / "log").open("wb") as out:
        command = [sys.executable, __file__, "run", str(home)]
        running = subprocess.Popen(command, cwd=home, stdout=out, stderr=out, start_new_session=True)
    ends = time.monotonic() + _WAIT_S
    try:
        while not ready():
            if running.poll() is not None or time.monotonic() > ends:
                raise SystemExit(f"the queries ended, or hung: see {home / 'log'}")
            time.sleep(0.002)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def run(home: Path) -> None:
    """Run both queries until the process is killed."""
    spark = session(home / "scratch")
    (home / "clean/out").mkdir(parents=True, exist_ok=True)
    first = start(spark, home, "clean")
    while committed(home, "clean") < 0:  # the folder is a sink's before anybody reads it
        time.sleep(0.05)
    second = start(spark, home, "enrich")
    while first.isActive and second.isActive:
        time.sleep(0.2)
    raise SystemExit(f"{first.exception()} {second.exception()}")


def main() -> None:
    """Run the queries, kill them, keep their logs."""
    shutil.rmtree(HOME, ignore_errors=True)
    write_inputs(HOME / "clean/in", BATCHES)
    kill_when(HOME, lambda: all(committed(HOME, job) == BATCHES - 1 for job in JOBS))
    target = HERE / "spark-chain"
    shutil.rmtree(target, ignore_errors=True)
    for job in JOBS:
        shutil.copytree(HOME / job / "ck", target / job / "ck")
        shutil.copytree(HOME / job / "out/_spark_metadata", target / job / "out/_spark_metadata")
    shutil.rmtree(HOME)


if __name__ == "__main__":
    run(Path(sys.argv[2])) if sys.argv[1:2] == ["run"] else main()
