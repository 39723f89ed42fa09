"""Tables written by their formats' own libraries, with what streams stamp on their commits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

ROWS = pa.table({"a": [1, 2]})
CONNECT = "kafka.connect.offsets.control-iceberg.cg-control-orders"


def flink(job: str, checkpoint: int | str, operator: str = "") -> dict[str, str]:
    """What Flink's sink writes into a snapshot's summary; older ones name no operator."""
    stamp = {"flink.job-id": job, "flink.max-committed-checkpoint-id": str(checkpoint)}
    return {**stamp, "flink.operator-id": operator} if operator else stamp


def spark(query: str, epoch: int) -> dict[str, str]:
    """What Spark's sink writes into a snapshot's summary."""
    return {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(epoch)}


def iceberg_table(folder: Path, version: int = 2) -> Any:
    """Make an empty table of Iceberg by pyiceberg, with a catalog in a file of SQLite."""
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    return catalog.create_table("d.t", schema=ROWS.schema, properties={"format-version": str(version)})


def append(table: Any, stamp: Mapping[str, str], branch: str | None = None) -> int:
    """Append two rows and return the snapshot's id."""
    options = {"branch": branch} if branch else {}
    table.append(ROWS, snapshot_properties=dict(stamp), **options)
    table.refresh()
    found: int = (table.snapshot_by_name(branch) if branch else table.current_snapshot()).snapshot_id
    return found


def place(table: Any) -> Path:
    """The folder of a table of Iceberg."""
    return Path(table.metadata_location.removeprefix("file://")).parent.parent


def delta_commit(folder: Path, app: str = "", number: int = 0, updated: int | None = None, **options: Any) -> None:
    """Append two rows to a table of Delta by deltalake, with a transaction of an application if it is named."""
    from deltalake import CommitProperties, Transaction, write_deltalake

    stamps = [Transaction(app, number, updated)] if app else None
    properties = CommitProperties(app_transactions=stamps)
    write_deltalake(str(folder), ROWS, mode=options.pop("mode", "append"), commit_properties=properties, **options)


def without_data(folder: Path, metadata: str) -> None:
    """Remove every file of a table but those in its folder of metadata; what is left there of data is removed, too."""
    for path in sorted(folder.iterdir()):
        if path.name != metadata:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (folder / metadata).rglob("*.avro"):
        os.remove(path)
