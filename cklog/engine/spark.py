"""The Spark engine: a row per split, tasks read their splits themselves, Spark reduces the partial rows.

Only the DataFrame API that Spark Connect has is used (no RDD, no JVM object), so a scan runs on a local
session, a cluster (`--master`) or a Connect server (`--remote`). Raw rows never cross between Python and the
JVM: `mapInArrow` returns partial rows only.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cklog.budgets import budgets, too_much_kept, use
from cklog.engine.damage import DamageTally, refuse_over_budget
from cklog.engine.local import run_splits, tasks_of
from cklog.engine.patience import LONGER, impatient
from cklog.engine.scan import DAMAGE_LISTED, Damage, Reduce, Scan, Scanned, scan_stage
from cklog.engine.spark_errors import job_failed
from cklog.engine.spark_session import SparkOptions, StartedSession
from cklog.engine.spark_tasks import counted_by_tasks
from cklog.errors import EngineError
from cklog.progress import Stage, stage
from cklog.stores.local import listed_roots, take_listed
from cklog.stores.store import handed_over, take_over

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

_MANY_TASKS, _MOST_TASKS = 64, 4096
"""Of more than many, a task takes two splits: beside a tenth of a second of work each costs the JVMs a fortieth."""


class SparkEngine:
    """Scans on a Spark session; one that it had to start, on first use, it stops on `close`.

    `say` takes lines for the user.
    """

    name = "spark"

    def __init__(self, options: SparkOptions, say: Callable[[str], None] = lambda line: None) -> None:
        self._options = options
        self._say = say
        self._session: Any = None
        self._started: StartedSession | None = None

    def run(self, scan: Scan) -> Scanned:
        """Read every split in tasks, apply the kernel there, and reduce with groupBy."""
        if not scan.splits:
            return Scanned(scan.partial.empty_table())
        session = self._started_session()
        with scan_stage(scan, self.name, "splits") as told:
            return self._run(session, scan, told)

    def _run(self, session: Any, scan: Scan, told: Stage) -> Scanned:
        schema = pa.schema([f.with_nullable(True) for f in [*scan.partial, *_META]])
        rows = rows_of_tasks(scan)
        waited, gave_up = self._options.timeout, _never
        try:
            frame = session.createDataFrame(rows)
            frame = frame.repartitionByRange(len(rows), "task") if len(rows) > 1 else frame.coalesce(1)
            frame = frame.mapInArrow(
                _split_reader(replace(scan, splits=()), stores_of(scan), schema), _spark_schema(schema)
            )
            if scan.reduce is not None:
                frame = _reduced(frame, scan, scan.reduce)
            with (
                counted_by_tasks(session, told, len(rows)) as job,
                impatient(waited, job.is_working, job.cancel) as gave_up,
            ):
                table = frame.toArrow()
        except Exception as error:  # whatever Spark raises, at whichever call, the user needs one line; -v has the rest
            if gave_up():
                raise _nobody_works(self._options, job.has_begun) from error
            raise job_failed(error, self._options.where) from error
        return _scanned_of(table, scan)

    def close(self) -> None:
        """Stop the session, if one was started; a notebook's own goes on."""
        if self._started is not None:
            self._started.close()
        self._session = self._started = None

    def _started_session(self) -> Any:
        """Return the active session, or start one as the options say."""
        if self._session is None:
            from pyspark.sql import SparkSession

            self._session = SparkSession.getActiveSession()
        if self._session is None:
            with stage("starting Spark"):
                self._started = StartedSession(self._options)
            self._session = self._started.session
            for line in self._started.spoken:
                self._say(line)
        return self._session


def _never() -> bool:
    """Whether a job was given up that has not begun."""
    return False


def _nobody_works(options: SparkOptions, has_begun: bool) -> EngineError:
    """Say that no executor has taken a task, or that none works any more."""
    if has_begun:
        what = f"{options.where}: no task has run for {options.timeout:g} s, and the job is not done"
        return EngineError(what, f"are its workers, or the server, still there? {LONGER}")
    what = f"{options.where}: no executor took a task within {options.timeout:g} s"
    hint = "has the cluster workers with free cores and memory, and can they reach this host (spark.driver.host)?"
    return EngineError(what, f"{hint} {LONGER}")


def rows_of_tasks(scan: Scan) -> pa.Table:
    """Return one row per task, for a partition of its own: the splits that it reads, and no others.

    What travels with the function that reads them comes to every task: of 100,000 files that is most of what it does.
    """
    tasks = [*tasks_of(scan.splits)]
    held = max(-(-len(tasks) // _MOST_TASKS), 1 + (len(tasks) > _MANY_TASKS))
    rows = [tasks[i : i + held] for i in range(0, len(tasks), held)]
    return pa.table({"task": range(len(rows)), "splits": [pickle.dumps(row) for row in rows]})


def stores_of(scan: Scan) -> dict[str, Any]:
    """Return how the stores are reached that the splits of a scan lead to."""
    return handed_over({place for split in scan.splits for place in (split.uri, *(new for _, new in split.maps))})


def _split_reader(
    scan: Scan, stores: Mapping[str, Any], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function by which a Spark task reads the splits that it gets; the scan without splits travels with it.

    So do the budgets in force, and how stores are reached: a task has a process of its own.
    """
    allowed, listed = budgets(), listed_roots()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use(allowed)
        take_over(stores)
        take_listed(listed)
        for batch in batches:
            for row in batch.column("splits").to_pylist():
                for splits in pickle.loads(row):  # of `rows_of_tasks`: nothing of the input's is ever unpickled
                    parts, tally = run_splits(scan, splits)
                    for part in parts:
                        yield _with_empty_meta(part, scan.partial, schema)
                    yield from _meta_rows(tally, schema)
        _keep_libraries()

    return read


def _keep_libraries() -> None:
    """Have the garbage collector pass over what is loaded: Spark calls it after each task, which may take as long.

    Libraries stay as long as their process. Where none was loaded since, nothing is to be done.
    """
    global _libraries
    if len(sys.modules) != _libraries:
        gc.freeze()
        _libraries = len(sys.modules)


_libraries = 0
"""How many modules this process had when they were passed over last."""


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
        raise too_much_kept(scan.table, table.nbytes, 1.0)
    rows = table.filter(pc.is_null(table["__what"])).select(scan.partial.names)
    return Scanned(rows.cast(scan.partial), tally.damage(), tally.records)


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
