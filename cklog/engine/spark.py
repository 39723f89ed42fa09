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

from cklog.engine import DAMAGE_LISTED, Damage, Scan, Scanned
from cklog.engine.damage import DamageTally
from cklog.errors import EngineError

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
    """`--master`, `--remote`, `--spark-conf K=V` and whether Spark's own logs are wanted (`-v`)."""

    master: str = ""
    remote: str = ""
    conf: tuple[tuple[str, str], ...] = ()
    verbose: bool = False


class SparkEngine:
    """Runs scans on a Spark session; one that it had to start, on first use, it stops on `close`."""

    name = "spark"

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._session: Any = None
        self._borrowed = False

    def run(self, scan: Scan) -> Scanned:
        """Read every split in tasks, apply the kernel there, reduce with groupBy."""
        if not scan.splits:
            return Scanned(scan.partial.empty_table())
        session = self._start()
        schema = pa.schema([f.with_nullable(True) for f in [*scan.partial, *_META]])
        count = len(scan.splits)
        frame = session.range(0, count, 1, min(count, _MOST_TASKS))
        frame = frame.mapInArrow(_task(scan, schema), _spark_schema(schema))
        if scan.reduce is not None:
            frame = _reduced(frame, scan)
        try:
            table = frame.toArrow()
        except Exception as error:  # whatever Spark raises, the user needs one line; -v shows the rest
            raise EngineError(f"the Spark job failed: {_first_line(error)}", "-v shows Spark's log") from error
        return _scanned(table, scan)

    def close(self) -> None:
        """Stop the session, if one was started; a notebook's own goes on."""
        if self._session is not None and not self._borrowed:
            self._session.stop()
        self._session = None

    def _start(self) -> Any:
        if self._session is None:
            from pyspark.sql import SparkSession

            self._borrowed = SparkSession.getActiveSession() is not None
            self._session = _session(self._options)
        return self._session


def _task(scan: Scan, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with its numbers of splits; the scan itself travels with the task."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cklog.engine.local import run_split

        for batch in batches:
            for number in batch.column(0).to_pylist():
                parts, tally = run_split(scan, scan.splits[number])
                for part in parts:
                    yield _widened(part, scan.partial, schema)
                yield from _meta_rows(tally, schema)

    return read


def _widened(part: pa.RecordBatch, partial: pa.Schema, schema: pa.Schema) -> pa.RecordBatch:
    columns = [part.column(i).cast(field.type) for i, field in enumerate(partial)]
    empty = [pa.nulls(part.num_rows, field.type) for field in _META]
    return pa.RecordBatch.from_arrays([*columns, *empty], schema=schema)


def _meta_rows(tally: DamageTally, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = [(d.path, d.id, d.offset, d.detail, d.count) for d in tally.damage()]
    rows += [(path, _RECORDS, None, "", count) for path, count in tally.records.items()]
    if rows:
        empty = [pa.nulls(len(rows), field.type) for field in schema][: len(schema) - len(_META)]
        columns = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), _META, strict=True)]
        yield pa.RecordBatch.from_arrays([*empty, *columns], schema=schema)


def _reduced(frame: Any, scan: Scan) -> Any:
    """`Reduce` in Spark's own aggregates; meta rows are groups of their own."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    assert scan.reduce is not None
    keys = [*scan.reduce.keys, "__path", "__what", "__offset", "__detail"]
    found = {name: getattr(F, how)(name).alias(name) for name, how in scan.reduce.aggregates.items()}
    group = list(keys)
    if scan.reduce.span is not None:
        start, end = scan.reduce.span
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


def _scanned(table: pa.Table, scan: Scan) -> Scanned:
    """Split Spark's answer into partial rows, damage and record counts."""
    import pyarrow.compute as pc

    meta = table.filter(pc.is_valid(table["__what"])).select(_META.names).to_pylist()
    tally = DamageTally(DAMAGE_LISTED)
    for row in meta:
        if row["__what"] == _RECORDS:
            tally.count(row["__path"], row["__count"])
        else:
            tally.add(Damage(row["__path"], row["__what"], row["__offset"], row["__detail"], row["__count"]))
    rows = table.filter(pc.is_null(table["__what"])).select(scan.partial.names)
    return Scanned(rows.cast(scan.partial), tally.damage(), tally.records)


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _session(options: SparkOptions) -> Any:
    """A session as the options say; local sessions survive a killed Python worker (`local[N,4]`)."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if options.remote:
        return _connect(options)
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


def _connect(options: SparkOptions) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(options.remote)
    for key, value in options.conf:
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # grpc raises its own kinds; the user needs one line
        raise EngineError(f"{options.remote}: {_first_line(error)}", "is the Connect server up?") from error


def _require_java() -> None:
    """One clear line instead of the launcher's shell script error."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    hint = "install Java 17 or newer, or use --engine local, which needs none"
    if not java or not os.path.exists(java):
        raise EngineError("--engine spark needs Java 17 or newer, and none was found", hint)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('version "')[2].partition(".")[0].strip('"')
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
    """What happened, in a line: the first, and what a Python traceback inside ends with."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    cause = [line for line in lines[1:] if _RAISED.match(line)]
    return f"{type(error).__name__}: {lines[0]}{' ' + cause[0] if cause else ''}"[:300]


_RAISED = re.compile(r"[A-Za-z_.]*(Error|Exception): ")
