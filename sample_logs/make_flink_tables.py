"""Make the samples of Flink jobs that write to Iceberg, and of one that writes to Paimon: `sample_logs/tables/flink-*`.

    python sample_logs/make_flink_tables.py

The tables are written by pyiceberg and pypaimon, with what Flink's sinks put into a snapshot. The checkpoints are
written from Flink's format, by the builders of the tests: no jar of the sinks is needed. Ids of snapshots and times
differ from run to run.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the builders of the tests

import pyarrow as pa  # noqa: E402
from pyiceberg.schema import Schema  # noqa: E402
from pyiceberg.types import LongType, NestedField  # noqa: E402

from tests.builders import flink as fb  # noqa: E402
from tests.builders.sinks.iceberg_folder import FolderCatalog  # noqa: E402

STORED = "file:///srv/cklog-sample/tables"
"""Where the tables say that they lie."""
JOB, ITS_HEIR = "5f0c3a86d1b94e27a4c9d80e6b7f1234", "c81e728d9d4c2f636f067f89cc14862c"
CLUSTER_ID = "0" * 32
"""The id of every job in application mode with high availability."""
SINK = "orders-sink"
FEW_FILES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
_ROWS = 3

_MANIFEST_FILE = (
    '{"type":"record","name":"manifest_file","fields":['
    '{"name":"manifest_path","type":"string","field-id":500},'
    '{"name":"manifest_length","type":"long","field-id":501},'
    '{"name":"partition_spec_id","type":"int","field-id":502},'
    '{"name":"content","type":"int","field-id":517},'
    '{"name":"sequence_number","type":"long","field-id":515},'
    '{"name":"min_sequence_number","type":"long","field-id":516},'
    '{"name":"added_snapshot_id","type":"long","field-id":503},'
    '{"name":"added_files_count","type":"int","field-id":504},'
    '{"name":"existing_files_count","type":"int","field-id":505},'
    '{"name":"deleted_files_count","type":"int","field-id":506},'
    '{"name":"added_rows_count","type":"long","field-id":512},'
    '{"name":"existing_rows_count","type":"long","field-id":513},'
    '{"name":"deleted_rows_count","type":"long","field-id":514}]}'
)


def main() -> None:
    """Make every sample anew, but for their READMEs."""
    older_checkpoint()
    summary_expired()
    response_lost()
    ids_start_over()
    paimon_expired()


def older_checkpoint() -> None:
    """The table has taken up to checkpoint 8; of what is retained, 6 is the newest that can be restored."""
    home = _empty("flink-older-checkpoint")
    table = _iceberg(home)
    for number in (6, 7, 8):
        _commit(table, JOB, number)
    for number in (6, 7):
        _checkpoint(home, JOB, number, _older_sink(home, JOB, {number: 1}))
    (home / "checkpoints" / JOB / "chk-7/_metadata").unlink()  # chk-7 was not completed by the time of the crash


def summary_expired() -> None:
    """After the newest commit, the table was compacted, and all but the newest snapshot was expired."""
    home = _empty("flink-summary-expired")
    table = _iceberg(home)
    for number in (7, 8, 9):
        _commit(table, JOB, number)
    now = table.load_table("orders")
    now.overwrite(now.scan().to_arrow())
    expiring = table.load_table("orders").maintenance.expire_snapshots()
    expiring.older_than(datetime.now() + timedelta(days=1)).commit()
    for number in (8, 9):
        _checkpoint(home, JOB, number, _older_sink(home, JOB, {number: 1}))


def response_lost() -> None:
    """The dynamic sink: checkpoint 9 is in the table, the job failed before it knew; another job id comes next."""
    home = _empty("flink-response-lost")
    table = _iceberg(home)
    for number in (8, 9):
        _commit(table, JOB, number)
    for number in (8, 9):
        manifest = _manifest_name(home, JOB, number)
        body = fb.utf("orders") + fb.utf("main") + fb.utf(JOB) + fb.utf(_operator())
        body += fb.i64(number) + fb.i32(1) + fb.blob(_manifests(manifest))
        state = {"streaming_committer_raw_states": [fb.versioned(2, _collector(number, body))]}
        _checkpoint(home, JOB, number, {}, state)
    newest = max((home / "table/metadata").glob("*-m0.avro"), key=lambda path: path.stat().st_mtime_ns)
    kept = home / "table" / manifest.removeprefix(_stored(home) + "/")
    shutil.copy(newest, kept)  # it is deleted when the committer hears that the commit succeeded


def ids_start_over() -> None:
    """A job in application mode was started without state: its id is that of before, its checkpoints begin at 1."""
    home = _empty("flink-ids-start-over")
    table = _iceberg(home)
    for number in (8, 12):  # no data came between these
        _commit(table, CLUSTER_ID, number)
    for number in (2, 3):
        _checkpoint(home, CLUSTER_ID, number, _older_sink(home, CLUSTER_ID, {number: 1}))


def paimon_expired() -> None:
    """A checkpoint has commit 4 pending; the table took it, expired that, and knows a newer job only."""
    from pypaimon import CatalogFactory, Schema as Fields  # noqa: I001

    home = _empty("flink-paimon-expired")
    warehouse = home / "warehouse"
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("shop", False)
    kinds = pa.schema([("value", pa.int64())])
    catalog.create_table("shop.orders", Fields.from_pyarrow_schema(kinds, options={"bucket": "-1"}), False)
    table = catalog.get_table("shop.orders")
    for user, number in ((USER, 4), (ITS_HEIR, 6), (ITS_HEIR, 7)):
        builder = table.new_stream_write_builder()
        builder.commit_user = user
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.table({"value": _numbers(number)}, kinds))
        commit.commit(write.prepare_commit(number), number)
        write.close()
        commit.close()
    shutil.move(warehouse / "shop.db/orders", home / "table")
    shutil.rmtree(warehouse)
    (home / "table/snapshot/snapshot-1").unlink()  # expired; its rows are in the later ones, which name its file
    (home / "table/snapshot/EARLIEST").write_text("2")
    user = {"commit_user_state": [_text(USER)]}
    messages = fb.i64(4) + b"\1" + fb.i32(0) + fb.i32(3, 0)  # identifier, no watermark, no offsets, no messages
    state = {"streaming_committer_raw_states": [fb.versioned(3, messages)]}
    _checkpoint(home, JOB, 4, user, state)


USER = "1a2b3c4d-0000-4000-8000-5e6f7a8b9c0d"


def _empty(name: str) -> Path:
    home = HERE / "tables" / name
    for part in ("table", "checkpoints", "warehouse"):
        shutil.rmtree(home / part, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    return home


def _stored(home: Path) -> str:
    return f"{STORED}/{home.name}/table"


def _iceberg(home: Path) -> FolderCatalog:
    catalog = FolderCatalog(home / "table", _stored(home))
    catalog.create(Schema(NestedField(1, "value", LongType(), required=False)), FEW_FILES)
    return catalog


def _numbers(number: int) -> Any:
    return pa.array(range(number * _ROWS, (number + 1) * _ROWS), pa.int64())


def _commit(catalog: FolderCatalog, job: str, number: int) -> None:
    """What Flink's sink commits when checkpoint `number` of a job is complete."""
    said = {
        "flink.job-id": job,
        "flink.operator-id": _operator(),
        "flink.max-committed-checkpoint-id": str(number),
    }
    catalog.load_table("orders").append(pa.table({"value": _numbers(number)}), snapshot_properties=said)


def _operator() -> str:
    from cklog.parsers.flink.derived import operator_id

    return operator_id(SINK)


# The checkpoints, by hand


def _checkpoint(
    home: Path,
    job: str,
    number: int,
    bare: Mapping[str, Sequence[bytes]],
    lists: Mapping[str, Sequence[bytes]] | None = None,
) -> None:
    """A checkpoint with a Kafka source of two partitions and a sink's committer; all state lies in `_metadata`."""
    splits = [fb.versioned(0, fb.kafka_split("orders", part, number * 100 + part)) for part in (0, 1)]
    data, places = fb.operator_state({"SourceReaderState": splits})
    reader = fb.subtask(6, managed=fb.states(fb.inline(data), places))
    source = fb.operator(6, [reader], name="Source: orders", uid="orders", parallelism=1)
    data, places = _state(bare, lists or {})
    committer = fb.subtask(6, managed=fb.states(fb.inline(data), places))
    sink = fb.operator(6, [committer], name="Sink: orders committer", uid=SINK, parallelism=1)
    kind = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    folder = home / "checkpoints" / job / f"chk-{number}"
    folder.mkdir(parents=True)
    (folder / "_metadata").write_bytes(fb.metadata(6, [source, sink], checkpoint=number, properties=kind).data)


def _state(
    bare: Mapping[str, Sequence[bytes]], lists: Mapping[str, Sequence[bytes]]
) -> tuple[bytes, dict[str, tuple[int, list[int]]]]:
    """Operator state whose `bare` lists hold values without their length before them."""
    named = {**bare, **{name: [fb.blob(one) for one in elements] for name, elements in lists.items()}}
    data = fb.i32(6) + b"\0" + len(named).to_bytes(2, "big")
    data += b"".join(fb.described_list(name) for name in named) + b"\0\0"
    places: dict[str, tuple[int, list[int]]] = {}
    for name, elements in named.items():
        found = []
        for element in elements:
            found.append(len(data))
            data += element
        places[name] = (0, found)
    return data, places


def _older_sink(home: Path, job: str, pending: Mapping[int, int]) -> dict[str, list[bytes]]:
    """What IcebergFilesCommitter keeps: manifests by checkpoint, and the id of its job."""
    waiting = fb.i32(len(pending))
    for number in pending:
        waiting += fb.i64(number) + b"\0" + fb.blob(_manifests(_manifest_name(home, job, number)))
    return {"iceberg-files-committer-state": [waiting], "iceberg-flink-job-id": [_text(job)]}


def _manifest_name(home: Path, job: str, number: int) -> str:
    """As FlinkManifestUtil names what it writes, and deletes once it is committed."""
    return f"{_stored(home)}/metadata/{job}-{_operator()}-00000-0-{number}-{number:05d}.avro"


def _manifests(path: str) -> bytes:
    """DeltaManifests, version 2: a manifest of data files, none of deletes, no data files that these refer to."""
    from io import BytesIO

    from fastavro import parse_schema, schemaless_writer

    values = {
        **dict.fromkeys(("partition_spec_id", "content", "sequence_number", "min_sequence_number"), 0),
        **dict.fromkeys(("existing_files_count", "deleted_files_count", "existing_rows_count"), 0),
        "manifest_path": path,
        "manifest_length": 7000,
        "added_snapshot_id": 0,
        "deleted_rows_count": 0,
        "added_files_count": 1,
        "added_rows_count": _ROWS,
    }
    record = BytesIO()
    schemaless_writer(record, parse_schema(json.loads(_MANIFEST_FILE)), values)
    manifest = bytes.fromhex("c201") + fb.utf(_MANIFEST_FILE) + record.getvalue()
    return fb.versioned(2, fb.blob(manifest) + fb.i32(0) + fb.i32(0))


def _collector(checkpoint: int, committable: bytes) -> bytes:
    """A committer's state, with one request that was received; committables of version 2."""
    requests = [fb.versioned(2, committable) + fb.i32(0, 0)]
    per_subtask = fb.i32(0) + fb.listed(0, requests) + fb.i32(1, 0)
    return fb.COLLECTOR + fb.listed(1, [fb.i64(checkpoint) + fb.i32(1) + fb.listed(2, [per_subtask])])


def _text(value: str) -> bytes:
    """A string as Flink's own serializer writes it: one more than its length, and its characters."""
    length, data = len(value) + 1, b""
    while length >= 0x80:
        data += bytes([length & 0x7F | 0x80])
        length >>= 7
    return data + bytes([length]) + value.encode("ascii")


if __name__ == "__main__":
    main()
