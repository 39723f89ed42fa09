"""Spark, as a campaign runs it: queries until they are killed, and restarts in a session that stays warm.

    python -m tests.live.spark.engine run FOLDER KIND...
    python -m tests.live.spark.engine serve SCRATCH

`run` runs each kind below FOLDER/KIND until it is killed; one that cannot is named in FOLDER/.failed. `serve` reads one
request in JSON a line from stdin, and answers with one line on stdout. Nothing here imports cklog.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.live.spark.kinds import FILES, KINDS, Kind, write_inputs
from tests.live.spark.streams import stream

WAIT_S = 90.0
"""Seconds that a restarted query may take."""
_STATE = "spark.sql.streaming.stateStore."
_QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    "spark.ui.showConsoleProgress": "false",
}
"""Batches of a few records are quicker so."""


def session(scratch: Path, settings: dict[str, str]) -> Any:
    """Return a quiet session with two partitions of state."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[6]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.local.dir", str(scratch)).config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    for key, value in {**_QUICK, **settings}.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


class Ledger:
    """A sink that is given records one by one: a line for each, by batch."""

    def __init__(self, path: str) -> None:
        self.path, self.batch = path, -1

    def open(self, partition: int, batch: int) -> bool:
        """Remember the batch."""
        self.batch = batch
        return True

    def process(self, row: Any) -> None:
        """Write the record down."""
        with open(self.path, "a") as ledger:
            ledger.write(json.dumps({"batch": self.batch, "rows": [row.asDict()]}) + "\n")


def start(spark: Any, home: Path, name: str, again: bool) -> Any:
    """Start a kind in a session of its own; `again`: to read all that is left, in few batches."""
    kind = KINDS[name]
    own = spark.newSession()
    for key, value in kind.settings.items():
        own.conf.set(key, value)
    writer = stream(own, home, kind, FILES if again else 1).writeStream.outputMode(kind.mode)
    writer = writer.option("checkpointLocation", str(home / "ck"))
    if kind.how == "continuous":
        writer = writer.trigger(continuous="1 second")
    elif kind.how == "async":
        writer = writer.option("asyncProgressTrackingEnabled", "true").trigger(processingTime="200 milliseconds")
        writer = writer.option("asyncProgressTrackingCheckpointIntervalMs", "2000")
    elif kind.how == "available" or (again and not timed(kind)):
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime="200 milliseconds")
    if "SinkEvolution" in str(kind.conf):
        writer._jwrite.name("results")
    (home / "out").mkdir(exist_ok=True)
    if kind.sink == "noop":
        return writer.format("noop").start()
    if kind.sink == "foreach":
        return writer.foreach(Ledger(str(home / "out/ledger.jsonl"))).start()
    if kind.sink != "each":
        return _to_files(writer, kind).option("path", str(home / "out")).start()

    def note(rows: Any, batch: int) -> None:
        found = [row.asDict() for row in rows.collect()]
        with (home / "out/ledger.jsonl").open("a") as ledger:
            ledger.write(json.dumps({"batch": batch, "rows": found}) + "\n")

    return writer.foreachBatch(note).start()


def _to_files(writer: Any, kind: Kind) -> Any:
    writer = writer.format(kind.sink)
    return writer.partitionBy("k") if kind.sink == "parquet" else writer


def timed(kind: Kind) -> bool:
    """Return whether its input never ends."""
    return kind.how in ("timed", "async", "continuous") or kind.query == "rate_per_batch"


def progress_of(query: Any) -> list[dict[str, Any]]:
    """Return what each batch reported, in order."""
    return [json.loads(progress.json()) for progress in query._jsq.recentProgress()]


def _commits(home: Path) -> int:
    return max((int(path.name) for path in (home / "ck/commits").glob("[0-9]*") if path.name.isdigit()), default=-1)


def restart(spark: Any, home: Path, name: str) -> dict[str, Any]:
    """Start a kind where it was killed, and return why it failed ("": it did not) and what its batches reported."""
    query, failed, before = None, "", _commits(home)
    try:
        query = start(spark, home, name, again=True)
        ends = time.monotonic() + WAIT_S
        while query.isActive and time.monotonic() < ends:
            query.awaitTermination(0.3)
            if timed(KINDS[name]) and _commits(home) >= max(before, 0) + 3:
                break
        else:
            failed = "it does not end" if query.isActive else ""
        if query.exception() is not None:
            failed = str(query.exception())
    except Exception as error:
        failed = f"{type(error).__name__}: {error}"
    batches = []
    if query is not None:
        batches = progress_of(query)
        query.stop()
    return {"failed": failed, "batches": batches}


def read(spark: Any, home: Path, name: str) -> dict[str, Any]:
    """Return what readers of a file sink see."""
    kind = KINDS[name]
    try:
        rows = spark.read.format(kind.sink).load(str(home / "out")).collect()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}", "rows": []}
    return {"failed": "", "rows": [row.asDict() for row in rows]}


def serve(scratch: Path) -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = session(scratch, {_STATE + "maintenanceInterval": "10h"})  # nothing is written once a query has ended
    version = {"version": spark.version}
    print(json.dumps(version), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        home, name = Path(asked["home"]), asked["kind"]
        answer = restart(spark, home, name) if asked["do"] == "restart" else read(spark, home, name)
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


MAINTAINED = {_STATE + "maintenanceInterval": "500ms", _STATE + "minDeltasForSnapshot": "3"}
"""State is maintained twice a second."""


def run(folder: Path, names: list[str]) -> None:
    """Run kinds until the process is killed."""
    spark = session(folder / ".scratch", MAINTAINED)
    (folder / ".failed").mkdir(exist_ok=True)
    for name in names:
        threading.Thread(target=_keep_running, args=(spark, folder, name), daemon=True).start()
    threading.Event().wait()


def _keep_running(spark: Any, folder: Path, name: str) -> None:
    home, kind = folder / name, KINDS[name]
    for last in (False, False, True):
        try:
            if kind.how in ("available", "repartition"):
                _in_turns(spark, home, name)
            else:
                start(spark, home, name, again=False).awaitTermination()
            return
        except Exception as error:  # on a busy machine Python's workers may be late
            if last or "connect back" not in str(error):
                (folder / ".failed" / name).write_text(f"{type(error).__name__}: {error}")
                return


def _in_turns(spark: Any, home: Path, name: str) -> None:
    """Give the query a few files at a time; between two runs the state may be divided anew."""
    for turn in range(FILES // 3):
        write_inputs(home / "in", range(turn * 3, turn * 3 + 3))
        query = start(spark, home, name, again=KINDS[name].how == "repartition")
        query.awaitTermination()
        if KINDS[name].how == "repartition":
            own = spark.newSession()
            for key, value in KINDS[name].settings.items():
                own.conf.set(key, value)
            own._streamingCheckpointManager.repartition(str(home / "ck"), 3 if turn % 2 == 0 else 2)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]), sys.argv[3:])
    else:
        serve(Path(sys.argv[2]))
