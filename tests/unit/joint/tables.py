"""A query that writes a table, and one that reads it as a stream.

The logs of both queries are Spark's; the offsets of the reader and the table's log are written from their formats, as
the connectors need jars that are not here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import SAMPLES

QUERY = json.loads((SAMPLES / "spark-chain/clean/ck/metadata").read_text())["id"]
TABLE = "2f0c59c6-6f5a-4f0e-9b51-3c60d1d5a111"


def delta(version: int, index: int = -1, initial: bool = False) -> dict[str, Any]:
    """An offset of a stream that reads a Delta table, in the form that its source writes."""
    return {
        "sourceVersion": 1,
        "reservoirId": TABLE,
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": initial,
    }


def end(n: int) -> dict[str, Any]:
    """Where batch n of the reader ends: version n + 1, which batch n of the writer made, is read to its end."""
    return delta(n + 2)


def chain(tmp_path: Path) -> Path:
    """`clean` writes a Delta table, batch n as version n + 1; `enrich` reads version n + 1 with its batch n."""
    for name in ("clean", "enrich"):
        shutil.copytree(SAMPLES / "spark-chain" / name, tmp_path / name, ignore=shutil.ignore_patterns("out", ".*.crc"))
    (tmp_path / "clean/job.json").write_text(json.dumps({"sinks": {"orders": "table"}}))
    log = tmp_path / "clean/table/_delta_log"
    log.mkdir(parents=True)
    commit(log, 0, {"metaData": {"id": TABLE, "configuration": {}}}, {"protocol": {"minReaderVersion": 1}})
    for n in range(5):
        commit(log, n + 1, {"txn": {"appId": QUERY, "version": n}})
    shutil.rmtree(tmp_path / "enrich/ck/sources")
    read_until(tmp_path / "enrich", end)
    return tmp_path


def commit(log: Path, version: int, *actions: dict[str, Any]) -> None:
    info = {"commitInfo": {"timestamp": 1795462000000 + version, "operation": "STREAMING UPDATE"}}
    (log / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))


def read_until(query: Path, end: Callable[[int], dict[str, Any]]) -> None:
    """Give every planned batch of a query another end."""
    for n in range(5):
        path = query / "ck/offsets" / str(n)
        head = path.read_text().split("\n")[:2]
        path.write_text("\n".join([*head, json.dumps(end(n), separators=(",", ":"))]))


class Iceberg:
    """The same with a table of Iceberg, which the library writes: batch n is its snapshot number n."""

    def __init__(self, jobs: Path) -> None:
        pytest.importorskip("pyiceberg")
        from pyiceberg.schema import Schema
        from pyiceberg.types import LongType, NestedField

        from tests.builders.sinks.iceberg_folder import FolderCatalog

        shutil.rmtree(jobs / "clean/table")
        self.catalog = FolderCatalog(jobs / "clean/table")
        self.catalog.create(Schema(NestedField(1, "value", LongType(), required=False)))
        for n in range(5):
            self.append(n)
        self.ids = [snapshot.snapshot_id for snapshot in self.table.snapshots()]
        read_until(jobs / "enrich", self.offset)

    @property
    def table(self) -> Any:
        return self.catalog.load_table("table")

    def append(self, batch: int, query: str = QUERY) -> None:
        said = {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(batch)}
        self.table.append(pa.table({"value": [batch]}), snapshot_properties=said)

    def offset(self, n: int) -> dict[str, Any]:
        return {"version": 1, "snapshot_id": self.ids[n], "position": 1, "scan_all_files": False}
