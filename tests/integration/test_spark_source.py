"""Parsers as Python Data Sources of Spark: what a notebook reads is what cklog reads."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cklog.engine import Engine, Scan
from cklog.engine.local import LocalEngine
from cklog.errors import CklogError, CorruptInput, NotFound, UsageError
from cklog.model import TABLES
from cklog.parsers.flink import Flink
from cklog.parsers.native import Native
from cklog.snapshots import SNAPSHOTS
from cklog.spark_source import Table, register
from cklog.storage import Root
from tests.conftest import SAMPLES


@pytest.fixture(scope="module")
def session(spark: Engine) -> Any:
    """A session of Spark's with cklog's data sources; its workers run this Python and this tree."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    found = spark._start()  # type: ignore[attr-defined]
    assert {"cklog.native", "cklog.flink"} <= set(register(found))
    return found


def rows(table: pa.Table) -> list[str]:
    """Each row as text, sorted: a scan promises no order."""
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in table.to_pylist())


def scanned(parser: Any, table: str, schema: pa.Schema) -> pa.Table:
    """The same rows by cklog's own engine."""
    columns = pa.schema([pa.field(f.name, f.type) for f in schema])
    scan: Scan = parser.scan(table, tuple(columns.names), lambda batch: batch, columns, None, split_bytes=1 << 20)
    return LocalEngine().run(scan).table.cast(columns)


@pytest.mark.spark
@pytest.mark.parametrize("sample", ["uncoordinated-join", "uncoordinated-join-parquet"])
@pytest.mark.parametrize("table", ["checkpoints", "channels", "events"])
def test_a_native_table_is_the_records_of_its_files(session: Any, sample: str, table: str) -> None:
    frame = session.read.format("cklog.native").option("table", table).load(str(SAMPLES / sample))
    assert frame.columns == TABLES[table].names
    found = rows(frame.toArrow())
    assert found
    assert found == rows(scanned(Native(Root(str(SAMPLES / sample))), table, TABLES[table]))


@pytest.mark.spark
def test_the_first_table_is_the_default_and_small_splits_change_nothing(session: Any) -> None:
    folder = str(SAMPLES / "uncoordinated-join")
    lines = [json.loads(line) for path in Path(folder, "checkpoints").glob("*.jsonl") for line in path.open()]
    frame = session.read.format("cklog.native").option("split_bytes", "999").load(folder)
    assert frame.rdd.getNumPartitions() > 2
    told = sorted((r["operator"], r["subtask"] or 0, r["checkpoint"], r["sources"] or {}) for r in frame.collect())
    want = [(r["operator"], r.get("subtask", 0), r["checkpoint"], r.get("sources", {})) for r in lines]
    assert [str(row) for row in told] == [str(row) for row in sorted(want, key=lambda row: row[:3])]


@pytest.mark.spark
def test_flink_snapshots_can_be_asked_in_sql(session: Any) -> None:
    folder = str(SAMPLES / "flink-orders")
    frame = session.read.format("cklog.flink").option("places", "true").load(folder)
    assert rows(frame.drop("_path", "_offset").toArrow()) == rows(scanned(Flink(Root(folder)), "snapshots", SNAPSHOTS))
    frame.createOrReplaceTempView("snapshots")
    newest = session.sql(
        "SELECT name, offset FROM snapshots WHERE entry = 'source' AND _path LIKE '%chk-13/_metadata' ORDER BY name"
    )
    assert [tuple(row) for row in newest.collect()] == [
        ("orders-0", 2088),
        ("orders-1", 2086),
        ("orders-2", 2086),
        ("orders-3", 2084),
    ]


def damaged(folder: Path) -> str:
    shutil.copytree(SAMPLES / "uncoordinated-join", folder)
    with (folder / "channels" / "more.jsonl").open("w", encoding="utf-8") as file:
        file.write('{"channel":"orders/0->join/0","seq":900}\n{"channel":"orders/0->join/0","seq":"x"}\n')
    return str(folder)


@pytest.mark.spark
def test_damage_is_left_out_or_fails_the_query(session: Any, tmp_path: Path) -> None:
    folder = damaged(tmp_path / "run")
    source = session.read.format("cklog.native").option("table", "channels")
    assert source.load(folder).filter("seq >= 900").count() == 1
    with pytest.raises(Exception, match="bad-record"):
        source.option("damage", "fail").load(folder).count()


@pytest.mark.spark
def test_a_table_without_files_has_no_rows(session: Any, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    assert session.read.format("cklog.native").option("table", "events").load(str(tmp_path)).count() == 0


def options(**given: str) -> dict[str, str]:
    return {"path": str(SAMPLES / "uncoordinated-join"), **given}


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        (options(table="batches"), UsageError, "not one of checkpoints, channels"),
        (options(damage="maybe"), UsageError, "not one of skip, fail"),
        (options(split_bytes="0"), UsageError, "not a number of bytes"),
        (options(split_bytes="1e6"), UsageError, "not a number of bytes"),
        (options(map="here"), UsageError, "OLD=NEW"),
        ({}, UsageError, "no path"),
        (options(path="no/such/folder"), NotFound, "no such folder"),
        (options(path=str(SAMPLES / "flink-orders")), NotFound, "nothing here that native reads"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, str], error: type[CklogError], why: str) -> None:
    with pytest.raises(error, match=why):
        Table(Native, given).splits()


def test_a_file_that_is_corrupt_as_a_whole_is_told_or_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.parquet").write_bytes(b"PAR1")
    with gzip.open(tmp_path / "events" / "b.jsonl.gz", "wt") as file:
        file.write('{"event":"send","operator":"a"}\n')
    given = options(path=str(tmp_path), table="events")
    assert [split.path for split in Table(Native, given).splits()] == ["events/b.jsonl.gz"]
    assert "corrupt-file" in caplog.text
    with pytest.raises(CorruptInput, match="no Parquet footer"):
        Table(Native, given | {"damage": "fail"}).splits()
