"""`impact --annotate` on results of a windowed count beside copying them with Spark, which reads and writes as much.

A time every 10 ms, a key, a count, in files of 8 M rows; each after a first run on a few rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines import engine, plain_session
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work

FILE_ROWS = 8_000_000
ROW_GROUP = 1 << 20
PERIOD_MS = 10
SMALL = 10_000
SCHEMA = "time long, key string, count long"


def _results(folder: Path, rows: int, form: str) -> None:
    """A restart in the middle yields the tenth before it again."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    keys = pa.array([f"key-{i:04}" for i in range(1000)])
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        n = np.arange(first, min(first + FILE_ROWS, rows))
        key = keys.take(pa.array(rng.integers(0, 1000, len(n))))
        time = PERIOD_MS * np.where(n < rows // 2, n, n - rows // 10)
        table = pa.table({"time": time, "key": key, "count": rng.integers(5_000, 6_000, len(n))})
        path = folder / f"part-{number:03}.{form}"
        if form == "parquet":
            pq.write_table(table, path, row_group_size=ROW_GROUP)
            continue
        with path.open("w", encoding="utf-8") as file:
            for part in table.to_batches(max_chunksize=ROW_GROUP):
                columns = (part.column(name).to_pylist() for name in table.column_names)
                rows_of = zip(*columns, strict=True)
                file.writelines(f'{{"time":{at},"key":"{key}","count":{count}}}\n' for at, key, count in rows_of)


def annotated(name: str, form: str, rows: str, small: str, folder: str) -> None:
    """With a rollback's trust: indefinite from the checkpoint on."""
    from cklog.engine.reading import Reading
    from cklog.inputs.annotate import TrustInterval, annotate_results
    from cklog.model.options import SPLIT_BYTES
    from cklog.parsers.results.files import ResultFiles
    from cklog.storage import Root

    checkpoint, crash, back = (PERIOD_MS * (int(rows) * tenths // 10) for tenths in (4, 5, 6))
    spans = [TrustInterval(checkpoint, back, "indefinite")]

    def once(place: str, reading: Reading) -> int:
        target = f"{place}.out-{name}"
        try:
            results = ResultFiles(Root(place))
            found, findings = annotate_results(results, spans, "time", target, form, (checkpoint, crash), reading)
        finally:
            shutil.rmtree(target, ignore_errors=True)
        assert not findings, findings
        return found.rows

    with engine(name) as chosen:
        reading = Reading(lambda size: chosen, SPLIT_BYTES, False)
        counted(lambda: once(folder, reading), warm=lambda: once(small, reading))


def copied(form: str, rows: str, small: str, folder: str) -> None:
    """Spark reads the folder and writes it again."""

    def once(place: str, count: int, session: Any) -> int:
        target = f"{place}.out-copy"
        try:
            frame = session.read.schema(SCHEMA)
            if form == "parquet":
                frame.parquet(place).write.parquet(target)
            else:
                frame.json(place).write.json(target)
        finally:
            shutil.rmtree(target, ignore_errors=True)
        return count

    with plain_session() as session:
        counted(lambda: once(folder, int(rows), session), warm=lambda: once(small, SMALL, session))


def annotate(room: Room, sizes: Sequence[tuple[str, int]]) -> Iterator[Row]:
    """A row for each engine; a size is the form of the results, and their number."""
    for form, rows in sizes:
        places = [
            room.data.made(f"results-{form}-{n}", lambda to, n=n, f=form: _results(to, n, f))  # type: ignore[misc]
            for n in (SMALL, rows)
        ]
        ways = ("local", "spark")
        runs = room.pairs_of(
            *(work(where, annotated, where, form, rows, *places) for where in ways),
            work("copy", copied, form, rows, *places),
            pairs=3,
        )
        runs.count()
        copy = [f"{runs.median('copy', what):.1f}" for what in ("wall", "cpu")]
        for where in ways:
            took = [f"{runs.median(where, what):.1f}" for what in ("wall", "cpu")]
            ratios = [f"{runs.ratio(where, 'copy', what):.2f}" for what in ("wall", "cpu")]
            yield (f"{rows:,}, {form}", f"cklog, {where}", *took, *copy, *ratios)


TABLES = (
    Table(
        name="annotate",
        columns=("results", "who", "wall s", "CPU s", "Spark copies, wall s", "CPU s", "wall, ratio", "CPU, ratio"),
        rows=annotate,
        quick=(("parquet", 100_000),),
        full=(("parquet", 100_000_000), ("jsonl", 20_000_000)),
        needs=("java",),
    ),
)
