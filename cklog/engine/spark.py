"""The Spark engine: a row per split, tasks read their splits themselves, Spark reduces the partial rows.

Only the DataFrame API that Spark Connect has is used (no RDD, no JVM object), so a scan runs on a local
session, a cluster (`--master`) or a Connect server (`--remote`). Raw rows never cross between Python and the
JVM: `mapInArrow` returns partial rows only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cklog.budgets import budgets, over, use
from cklog.engine.damage import DamageTally, refuse_over_budget
from cklog.engine.scan import DAMAGE_LISTED, Damage, Reduce, Scan, Scanned, scan_stage
from cklog.engine.spark_tasks import counted_by_tasks
from cklog.errors import EngineError
from cklog.progress import Stage, stage

_META = pa.schema(
    [
        pa.field("__path", pa.string()),
        pa.field("__what", pa.string()),
        pa.field("__offset", pa.int64()),
        pa.field("__detail", pa.string()),
        pa.field("__count", pa.int64()),
    ]
)
"""Beside the partial columns: damage and record counts travel in rows of their own, the partial columns null."""

_RECORDS = "records"
"""What the row says that counts intact records, in the place of a damage's id."""

_MOST_TASKS = 4096

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),  # partial rows are few
    "spark.sql.adaptive.enabled": "false",  # it plans each stage anew, which costs more than the reduce
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",  # Python reads; the JVM plans
}
"""Defaults of a local session, each of which `--spark-conf` may override."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options `--master`, `--remote`, `--spark-conf K=V`, and whether Spark's own logs are wanted (`-v`)."""

    master: str = ""
    remote: str = ""
    conf: tuple[tuple[str, str], ...] = ()
    verbose: bool = False


class SparkEngine:
    """Scans on a Spark session; one that it had to start, on first use, it stops on `close`."""

    name = "spark"

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._session: Any = None
        self._borrowed = False

    def run(self, scan: Scan) -> Scanned:
        """Read every split in tasks, apply the kernel there, and reduce with groupBy."""
        if not scan.splits:
            return Scanned(scan.partial.empty_table())
        session = self._started_session()
        with scan_stage(scan, self.name, "splits") as told:
            return self._run(session, scan, told)

    def _run(self, session: Any, scan: Scan, told: Stage) -> Scanned:
        schema = pa.schema([f.with_nullable(True) for f in [*scan.partial, *_META]])
        count = len(scan.splits)
        frame = session.range(0, count, 1, min(count, _MOST_TASKS))
        frame = frame.mapInArrow(_split_reader(scan, schema), _spark_schema(schema))
        if scan.reduce is not None:
            frame = _reduced(frame, scan, scan.reduce)
        try:
            with counted_by_tasks(session, told):
                table = frame.toArrow()
        except Exception as error:  # whatever Spark raises, the user needs one line; -v shows the rest
            raise EngineError(f"the Spark job failed: {_first_line(error)}", "-v shows Spark's log") from error
        return _scanned_of(table, scan)

    def close(self) -> None:
        """Stop the session, if one was started; a notebook's own goes on."""
        if self._session is not None and not self._borrowed:
            self._session.stop()
        self._session = None

    def _started_session(self) -> Any:
        """Return the active session, or start one as the options say."""
        if self._session is None:
            from pyspark.sql import SparkSession

            self._borrowed = SparkSession.getActiveSession() is not None
            with stage("starting Spark"):
                self._session = _session(self._options)
        return self._session


def _split_reader(scan: Scan, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function by which a Spark task reads the splits whose numbers it gets; the scan travels with it.

    So do the budgets in force: a task has a process of its own.
    """
    allowed = budgets()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cklog.engine.local import run_splits, tasks_of

        use(allowed)
        for batch in batches:
            for splits in tasks_of([scan.splits[number] for number in batch.column(0).to_pylist()]):
                parts, tally = run_splits(scan, splits)
                for part in parts:
                    yield _with_empty_meta(part, scan.partial, schema)
                yield from _meta_rows(tally, schema)

    return read


def _with_empty_meta(part: pa.RecordBatch, partial: pa.Schema, schema: pa.Schema) -> pa.RecordBatch:
    """Return partial rows with columns of `_META` that are null."""
    columns = [part.column(i).cast(field.type) for i, field in enumerate(partial)]
    empty = [pa.nulls(part.num_rows, field.type) for field in _META]
    return pa.RecordBatch.from_arrays([*columns, *empty], schema=schema)


def _meta_rows(tally: DamageTally, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield damage and counts of records, if there are any, as rows of which the partial columns are null."""
    rows = [(d.path, d.id, d.offset, d.detail, d.count) for d in tally.damage()]
    rows += [(path, _RECORDS, None, "", count) for path, count in tally.records.items()]
    if rows:
        empty = [pa.nulls(len(rows), field.type) for field in schema][: len(schema) - len(_META)]
        columns = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), _META, strict=True)]
        yield pa.RecordBatch.from_arrays([*empty, *columns], schema=schema)


def _reduced(frame: Any, scan: Scan, reduce: Reduce) -> Any:
    """Reduce a frame by Spark's own aggregates; meta rows are groups of their own.

    Islands of spans: a row opens one if it starts behind all that rows before it, of its keys, have reached; a running
    count of those that open one numbers the islands.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = [*reduce.keys, "__path", "__what", "__offset", "__detail"]
    found = {name: getattr(F, how)(name).alias(name) for name, how in reduce.aggregates.items()}
    group = list(keys)
    if reduce.span is not None:
        start, end = reduce.span
        order = Window.partitionBy(*keys).orderBy(F.col(start), F.col(end))
        reach = F.max(end).over(order.rowsBetween(Window.unboundedPreceding, -1))
        opens = F.when(F.col(start) <= reach, 0).otherwise(1)
        frame = frame.withColumn("__opens", opens).withColumn("__island", F.sum("__opens").over(order))
        group = [*keys, "__island"]
        found |= {start: F.min(start).alias(start), end: F.max(end).alias(end)}
    frame = frame.groupBy(*group).agg(*found.values(), F.sum("__count").alias("__count"))
    if scan.without is not None:
        name, modulus, rest = scan.without
        frame = frame.filter(F.col("__what").isNotNull() | (F.col(name) % modulus != rest))
    return frame.select(*scan.partial.names, *_META.names)


def _scanned_of(table: pa.Table, scan: Scan) -> Scanned:
    """Split what Spark returned into reduced rows, damage and record counts."""
    import pyarrow.compute as pc

    meta = table.filter(pc.is_valid(table["__what"])).select(_META.names).to_pylist()
    tally = DamageTally(DAMAGE_LISTED)
    for row in meta:
        if row["__what"] == _RECORDS:
            tally.count(row["__path"], row["__count"])
        else:
            damage = Damage(
                path=row["__path"],
                id=row["__what"],
                offset=row["__offset"],
                detail=row["__detail"],
                count=row["__count"],
            )
            tally.add(damage)
    refuse_over_budget(tally.damage())
    if table.nbytes > budgets().held:
        raise over("what has to be kept of its rows", budgets().held, f"{scan.table}/")
    rows = table.filter(pc.is_null(table["__what"])).select(scan.partial.names)
    return Scanned(rows.cast(scan.partial), tally.damage(), tally.records)


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _session(options: SparkOptions) -> Any:
    """Start a session as the options say; a local one survives a killed Python worker (`local[N,4]`)."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if options.remote:
        return _connected_session(options)
    if not options.master or options.master.startswith("local"):
        _require_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("cklog")
    builder = builder.master(options.master or f"local[{os.cpu_count() or 1},4]")
    for key, value in {**_QUIET, **dict(options.conf)}.items():
        builder = builder.config(key, value)
    try:
        with _launched_with_logs_to(2 if options.verbose else None):
            return builder.getOrCreate()
    except Exception as error:  # the JVM gateway raises whatever it met; the user needs one line
        raise EngineError(f"Spark did not start: {_first_line(error)}", "-v shows Spark's log") from error


def _connected_session(options: SparkOptions) -> Any:
    """Connect to the Spark Connect server that `--remote` names."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(options.remote)
    for key, value in options.conf:
        builder = builder.config(key, value)
    try:
        with _launched_with_logs_to(2 if options.verbose else None):  # `local[N]` launches a server
            return builder.getOrCreate()
    except Exception as error:  # grpc raises its own kinds; the user needs one line
        raise EngineError(f"{options.remote}: {_first_line(error)}", "is the Connect server up?") from error


def _require_java() -> None:
    """Raise `EngineError` unless there is a Java 17 or newer: one clear line instead of the launcher's script error."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    hint = "install Java 17 or newer, or use --engine local, which needs none"
    if not java or not os.path.exists(java):
        raise EngineError("--engine spark needs Java 17 or newer, and none was found", hint)
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = printed.partition('version "')[2].partition(".")[0].strip('"')
    if version.isdigit() and int(version) < 17:
        raise EngineError(f"--engine spark needs Java 17 or newer; {java} is version {version}", hint)


@contextmanager
def _launched_with_logs_to(target: int | None) -> Iterator[None]:
    """Let the JVM inherit `target` (None: nowhere) as its stdout and stderr: answers own our stdout."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY) if target is None else os.dup(target)
    try:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, sink):
            os.close(descriptor)


def _first_line(error: Exception) -> str:
    """Say what happened in a line: the first of the message, and what a Python traceback inside it ends with."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    cause = [line for line in lines[1:] if _RAISED.match(line)]
    return f"{type(error).__name__}: {lines[0]}{' ' + cause[0] if cause else ''}"[:300]


_RAISED = re.compile(r"[A-Za-z_.]*(Error|Exception): ")
