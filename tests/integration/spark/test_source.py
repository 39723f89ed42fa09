"""Parsers as Python Data Sources of Spark: what a notebook reads is what cklog reads."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cklog.engine.scan import Engine
from cklog.errors import CklogError, CorruptInput, NotFound, UsageError
from cklog.inputs.snapshots import SNAPSHOTS
from cklog.kinds.opening import PARSERS
from cklog.model.schemas import TABLES
from cklog.parsers.checkmate.parser import CheckMate
from cklog.parsers.flink.parser import Flink
from cklog.parsers.kafka.parser import Kafka
from cklog.parsers.kafka.streams import KafkaStreams
from cklog.parsers.native.parser import Native
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from cklog.spark_source import SourceTable, register
from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.reading.tables import scan_whole


@pytest.fixture(scope="module")
def session(spark: Engine) -> Any:
    """A session of Spark's with cklog's data sources; its workers run this Python and this tree."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    found = spark._started_session()  # type: ignore[attr-defined]
    assert {f"cklog.{name}" for name in PARSERS} <= set(register(found))
    return found


def rows(table: pa.Table) -> list[str]:
    """Each row as text, sorted: a scan promises no order."""
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in table.to_pylist())


def scanned(parser: Any, table: str, schema: pa.Schema) -> pa.Table:
    """The same rows by cklog's own engine."""
    columns = pa.schema([pa.field(f.name, f.type) for f in schema])
    return scan_whole(parser, table, columns).table.cast(columns)


@pytest.mark.slow
@pytest.mark.quarter
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


OTHERS = {
    ("checkpoints", "checkmate-uncoordinated"): CheckMate,
    ("channels", "checkmate-uncoordinated"): CheckMate,
    ("entries", "kafka-streams-state/state"): KafkaStreams,
    ("batches", "spark-wordcount"): SparkCheckpoint,
    ("batches", "kafka-broker"): Kafka,
    ("commits", "kafka-broker"): Kafka,
}


@pytest.mark.spark
@pytest.mark.parametrize(("table", "sample"), OTHERS)
def test_every_other_table_is_what_a_scan_reads(session: Any, table: str, sample: str) -> None:
    parser: Any = OTHERS[table, sample]
    frame = session.read.format(f"cklog.{parser.name}").option("table", table).load(str(SAMPLES / sample))
    assert frame.columns == parser.tables[table].names
    found = rows(frame.toArrow())
    assert found
    assert found == rows(scanned(parser(Root(str(SAMPLES / sample))), table, parser.tables[table]))


@pytest.mark.spark
def test_entries_of_stores_can_be_asked_in_sql(session: Any) -> None:
    source = session.read.format("cklog.kafka-streams").option("places", "true")
    source.load(str(SAMPLES / "kafka-streams-state" / "state")).createOrReplaceTempView("entries")
    found = session.sql(
        "SELECT task, topic, `offset` + 1, _offset FROM entries WHERE partition = 1 ORDER BY task, topic"
    )
    assert [tuple(row) for row in found.collect()] == [
        ("1/1", "wordcount-counts-changelog", 310, 4),
        ("1/1", "wordcount-last-changelog", 87, 37),
    ]


def test_every_parser_has_tables() -> None:
    for value in PARSERS.values():
        module, _, name = value.partition(":")
        parser = getattr(importlib.import_module(module), name)
        assert parser.tables
        assert all(isinstance(schema, pa.Schema) for schema in parser.tables.values())
        assert callable(parser.splits)


def of(parser: Any, folder: Path, **given: str) -> list[dict[str, Any]]:
    """All rows of a table, read in this process."""
    table = SourceTable(parser, {"path": str(folder), "places": "true", **given})
    return [row for split in table.splits() for batch in table.read(split) for row in batch.to_pylist()]


def test_batches_of_a_query_are_the_plan_s() -> None:
    folder = SAMPLES / "spark-wordcount"
    plan = plan_of(SparkCheckpoint(Root(str(folder))))
    found = of(SparkCheckpoint, folder)
    assert [(r["batch"], r["planned"], r["committed"], r["time"], r["watermark"]) for r in found] == [
        (b.batch, b.planned, b.committed, b.time, b.watermark) for b in plan.batches
    ]
    assert [json.loads(row["offsets"]) for row in found] == [batch.offsets for batch in plan.batches]
    assert [row["_path"] for row in found] == [f"ck/offsets/{batch.batch}" for batch in plan.batches]


def test_a_damaged_batch_is_told_and_its_row_says_what_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run")
    (folder / "ck" / "offsets" / ".3.crc").unlink()
    (folder / "ck" / "offsets" / "3").write_text("v1\n{")
    row = of(SparkCheckpoint, folder)[3]
    assert [row[name] for name in ("batch", "planned", "time", "offsets")] == [3, True, None, None]
    assert "torn-batch-file" in caplog.text
    far = '{"batchWatermarkMs":' + "9" * 30 + ',"batchTimestampMs":5}'
    (folder / "ck" / "offsets" / "3").write_text(f'v1\n{far}\n{{"logOffset":3}}')
    row = of(SparkCheckpoint, folder)[3]
    assert [row["time"], row["watermark"], row["offsets"]] == [5, None, '{"0":{"logOffset":3}}']


def test_a_damaged_list_of_entries_is_told_and_has_no_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = shutil.copytree(SAMPLES / "kafka-streams-state" / "state", tmp_path / "state")
    whole = of(KafkaStreams, folder)
    (folder / "wordcount" / "1_1" / ".checkpoint").write_text("0\n2\ntopic 0 5\n")
    assert of(KafkaStreams, folder) == [row for row in whole if row["task"] != "1/1"]
    assert "corrupt-file" in caplog.text
    with pytest.raises(CorruptInput, match="announces 2 entries"):
        of(KafkaStreams, folder, damage="fail")


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
        SourceTable(Native, given).splits()


def test_a_file_that_is_corrupt_as_a_whole_is_told_or_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.parquet").write_bytes(b"PAR1")
    with gzip.open(tmp_path / "events" / "b.jsonl.gz", "wt") as file:
        file.write('{"event":"send","operator":"a"}\n')
    given = options(path=str(tmp_path), table="events")
    assert [split.path for split in SourceTable(Native, given).splits()] == ["events/b.jsonl.gz"]
    assert "corrupt-file" in caplog.text
    with pytest.raises(CorruptInput, match="no Parquet footer"):
        SourceTable(Native, given | {"damage": "fail"}).splits()
