"""Make the samples of Spark queries that write to tables: `sample_logs/tables/spark-*`.

    python sample_logs/make_spark_tables.py

Needs pyspark, Java 17+, deltalake, pyiceberg and pypaimon. Real queries, whose foreachBatch writes to real tables, are
killed with SIGKILL between the table's commit and `commits/N`; then the tables are treated as the users of the threads
treated theirs. Hudi's timeline alone is written by hand, from its format: its library for Python does not write. The
queries run under `HOME`, a neutral path, as Iceberg stores absolute paths. Ids and times differ from run to run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the builders of the tests

import pyarrow as pa  # noqa: E402

from tests.builders.sinks import queries  # noqa: E402
from tests.builders.sinks.iceberg_folder import FolderCatalog  # noqa: E402
from tests.builders.spark_queries import session  # noqa: E402

HOME = Path("/srv/cklog-sample/tables")
HELD = {  # by name of the sample: the sink, and the batch whose `commits/N` is never written
    "spark-delta-restored": ("delta-txn", 4),
    "spark-delta-new-query": ("delta-txn", 3),
    "spark-delta-foreach-batch": ("delta", 3),
    "spark-iceberg-expired": ("iceberg-epoch", 3),
    "spark-iceberg-branch": ("iceberg-epoch", 3),
    "spark-paimon-twice": ("paimon", 3),
    "spark-hudi": ("hudi", 3),
}
_WAIT_S = 300


def main() -> None:
    """Run and kill all queries, treat their tables, keep the folders."""
    shutil.rmtree(HOME, ignore_errors=True)
    for name, (sink, batch) in HELD.items():
        (HOME / name).mkdir(parents=True)
        (HOME / name / "hold").write_text(json.dumps(["written", batch]))
        if sink.startswith(("delta", "iceberg")):
            queries.create(HOME / name, f"rate/{sink}")
    run_and_kill(list(HELD))
    take_delta_back(HOME / "spark-delta-restored")
    expire(HOME / "spark-iceberg-expired")
    branch(HOME / "spark-iceberg-branch")
    (HOME / "spark-hudi/table/batches.jsonl").unlink()
    newer = HOME / "spark-delta-new-query"
    newer.joinpath("ck").rename(newer / "ck-lost")
    newer.joinpath("hold").write_text(json.dumps(["taken", 0]))
    newer.joinpath("held").unlink()
    run_and_kill([newer.name])
    shutil.rmtree(newer / "ck-lost")
    for name in HELD:
        for part in ("ck", "table"):
            target = HERE / "tables" / name / part
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(HOME / name / part, target)
    shutil.rmtree(HOME)


def run_and_kill(names: list[str]) -> None:
    """Run queries in a process group of their own until each is held; kill it."""
    log = HOME / "query.log"
    with log.open("wb") as out:
        running = subprocess.Popen([sys.executable, __file__, *names], stdout=out, stderr=out, start_new_session=True)
    try:
        ends = time.monotonic() + _WAIT_S
        while not all((HOME / name / "held").exists() for name in names):
            if running.poll() is not None or time.monotonic() > ends:
                raise SystemExit(log.read_text()[-3000:])
            time.sleep(0.1)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def run_queries(names: list[str]) -> None:
    """Run queries until one fails, or all are killed."""
    queries.WRITERS["paimon"] = to_paimon
    queries.WRITERS["hudi"] = to_hudi
    spark = session(HOME / "scratch")
    running = [queries.start(spark, HOME / name, f"rate/{HELD[name][0]}") for name in names]
    while all(query.isActive for query in running):
        time.sleep(0.5)
    raise SystemExit("\n".join(str(query.exception()) for query in running))


def to_paimon(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    """What Paimon's Spark sink does: each batch is a batch write, of a commit user of its own."""
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(folder.parent / "warehouse")})
    if not folder.exists():
        catalog.create_database("shop", True)
        catalog.create_table("shop.orders", Schema.from_pyarrow_schema(rows.schema, options={"bucket": "-1"}), False)
        folder.symlink_to(folder.parent / "warehouse/shop.db/orders")
    builder = catalog.get_table("shop.orders").new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def to_hudi(folder: Path, rows: pa.Table, query: str, batch: int, branch: str) -> None:
    """A commit on a timeline of table version 6: requested, inflight, and complete with the sink's checkpoint."""
    timeline = folder / ".hoodie"
    if not timeline.exists():
        timeline.mkdir(parents=True)
        said = {
            "hoodie.table.name": "orders",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.base.file.format": "PARQUET",
            "hoodie.table.checksum": "2702244832",
        }
        (timeline / "hoodie.properties").write_text("".join(f"{key}={value}\n" for key, value in said.items()))
    instant = datetime.now().strftime("%Y%m%d%H%M%S%f")[:17]
    stat = {
        "fileId": f"{batch:08d}-0000-4000-8000-000000000000-0",
        "path": f"{batch:08d}-0000-4000-8000-000000000000-0_0-1-0_{instant}.parquet",
        "prevCommit": "null",
        "numWrites": rows.num_rows,
        "numInserts": rows.num_rows,
        "numDeletes": 0,
        "numUpdateWrites": 0,
        "totalWriteBytes": 435000,
        "partitionPath": "",
    }
    taken = json.dumps({"default_single_writer": str(batch)})
    commit = {
        "partitionToWriteStats": {"": [stat]},
        "compacted": False,
        "extraMetadata": {"_hudi_streaming_sink_checkpoint": taken, "schema": ""},
        "operationType": "INSERT",
    }
    (timeline / f"{instant}.commit.requested").touch()
    (timeline / f"{instant}.inflight").touch()
    (timeline / f"{instant}.commit").write_text(json.dumps(commit, indent=2))
    with (folder / "batches.jsonl").open("a") as seen:
        seen.write(f"{batch}\n")


def take_delta_back(home: Path) -> None:
    """Batch 3 and 4 were wrong: the table is restored to what it was after batch 2, and the checkpoint set back."""
    from deltalake import DeltaTable

    DeltaTable(str(home / "table")).restore(3)
    for path in [*home.glob("ck/commits/[0-9]*"), *home.glob("ck/offsets/[0-9]*")]:
        if int(path.name) > 2:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def expire(home: Path) -> None:
    """Another writer appends, the table is compacted, and all but the newest snapshot is expired."""
    catalog = FolderCatalog(home / "table")
    catalog.load_table("table").append(pa.table({"value": pa.array([1_000_000], pa.int64())}))
    now = catalog.load_table("table")
    now.overwrite(now.scan().to_arrow())
    expiring: Any = catalog.load_table("table").maintenance.expire_snapshots()
    expiring.older_than(datetime.now() + timedelta(days=1)).commit()


def branch(home: Path) -> None:
    """A branch is made from what the table was after batch 1; the query is to go on there."""
    table = FolderCatalog(home / "table").load_table("table")
    table.manage_snapshots().create_branch(table.snapshots()[1].snapshot_id, "audit").commit()


if __name__ == "__main__":
    run_queries(sys.argv[1:]) if sys.argv[1:] else main()
