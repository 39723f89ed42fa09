"""`cklog impact --annotate` against copying: `annotate.py [MILLIONS]`, on Spark and in this process, median of rounds.

Results of a windowed count: a time every 10 ms, a key, a count, in files of 8 M rows, as Parquet or JSON lines. Copying
is Spark's own, with the JVM's full compiler: it reads the folder and writes it again. One session does both, after a
small query. Deterministic.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Engine
from cklog.engine.spark import SparkEngine, SparkOptions
from cklog.inputs.annotate import TrustInterval, annotate_results
from cklog.parsers.results.files import ResultFiles
from cklog.storage import Root

FILE_ROWS = 8_000_000
ROW_GROUP = 1 << 20
ROUNDS = 3
PERIOD_MS = 10
SPLIT_BYTES = 64 << 20
PLAIN = (("spark.driver.extraJavaOptions", "-XX:+UseSerialGC"), ("spark.sql.adaptive.enabled", "true"))
"""Copying runs in the JVM: it gets the full compiler, and Spark's default plans."""


def results(folder: Path, rows: int) -> None:
    """As Parquet; a restart in the middle yields the tenth before it again."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    keys = pa.array([f"key-{i:04}" for i in range(1000)])
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        n = np.arange(first, min(first + FILE_ROWS, rows))
        key = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 1000, len(n)).astype(np.int32)), keys)
        columns = {"time": PERIOD_MS * np.where(n < rows // 2, n, n - rows // 10), "key": key.cast(pa.string())}
        table = pa.table(columns | {"count": rng.integers(5_000, 6_000, len(n))})
        pq.write_table(table, folder / f"part-{number:03}.parquet", row_group_size=ROW_GROUP)


def annotated(engine: Engine, source: Path, target: Path, form: str, rows: int) -> None:
    """With a rollback's trust: indefinite from the checkpoint on."""
    checkpoint, crash, back = (PERIOD_MS * (rows * tenths // 10) for tenths in (4, 5, 6))
    spans = [TrustInterval(checkpoint, back, "indefinite")]
    found, findings = annotate_results(
        ResultFiles(Root(str(source))),
        spans,
        "time",
        str(target),
        form,
        (checkpoint, crash),
        lambda size: engine,
        SPLIT_BYTES,
    )
    assert found.rows == rows, found
    assert not findings, findings


def measured(work: Callable[[Path], None], folder: Path) -> float:
    """Seconds, median of rounds; each writes a folder that is then removed."""
    took = []
    for _ in range(ROUNDS):
        target = folder / "out"
        before = time.perf_counter()
        work(target)
        took.append(time.perf_counter() - before)
        shutil.rmtree(target)
    return statistics.median(took)


def main() -> None:
    rows = int(float(sys.argv[1]) * 1_000_000) if len(sys.argv) > 1 else 100_000_000
    folder = Path(tempfile.mkdtemp(prefix="cklog-annotate-"))
    try:
        results(folder / "in", rows)
        spark = SparkEngine(SparkOptions(conf=PLAIN))
        session = spark._start()
        session.range(1000).count()
        copy = measured(lambda out: session.read.parquet(str(folder / "in")).write.parquet(str(out)), folder)
        print(f"parquet: copied by Spark {copy:.1f} s, {rows / copy / 1e6:.2f} M rows/s", flush=True)
        for engine in (spark, LocalEngine()):
            took = measured(lambda out, e=engine: annotated(e, folder / "in", out, "parquet", rows), folder)  # type: ignore[misc]
            print(f"parquet: {engine.name} {took:.1f} s, {copy / took:.2f} of the rate of copying", flush=True)
        session.read.parquet(str(folder / "in")).write.json(str(folder / "lines"))
        for name in (folder / "lines").glob("*.json"):
            name.rename(name.with_suffix(".jsonl"))
        schema = "time long, key string, count long"
        copy = measured(
            lambda out: session.read.schema(schema).json(str(folder / "lines")).write.json(str(out)), folder
        )
        print(f"jsonl: copied by Spark {copy:.1f} s, {rows / copy / 1e6:.2f} M rows/s", flush=True)
        took = measured(lambda out: annotated(spark, folder / "lines", out, "jsonl", rows), folder)
        print(f"jsonl: spark {took:.1f} s, {copy / took:.2f} of the rate of copying", flush=True)
        spark.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
