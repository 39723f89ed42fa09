"""Tables of many commits read once, beside what their own library takes to go through the same metadata.

Iceberg: one metadata file, which pyiceberg parses for both. Delta and Hudi: a file a commit. Each commit has a stamp.
The peer of Paimon is Python's `json` on every snapshot: its library goes with an older pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work

START = 1_767_225_600_000
STEP = 60_000
SCHEMA = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}


def iceberg(folder: Path, commits: int) -> None:
    """A table as Flink's sink leaves it, of so many snapshots."""
    ids = range(1, commits + 1)
    counts = ("records", "data-files", "files-size")
    snapshots = [
        {
            "snapshot-id": n,
            **({"parent-snapshot-id": n - 1} if n > 1 else {}),
            "sequence-number": n,
            "timestamp-ms": START + STEP * n,
            "manifest-list": f"file:///t/metadata/snap-{n}.avro",
            "schema-id": 0,
            "summary": {
                "operation": "append",
                "flink.job-id": f"{n // 1000:032x}",
                "flink.operator-id": "cbc357ccb763df2852fee8c4fc7d55f2",
                "flink.max-committed-checkpoint-id": str(n),
                **{f"added-{what}": "10" for what in counts},
                **{f"total-{what}": str(10 * n) for what in counts},
            },
        }
        for n in ids
    ]
    metadata = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:///t",
        "last-sequence-number": commits,
        "last-updated-ms": START + STEP * commits,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": commits,
        "refs": {"main": {"snapshot-id": commits, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": n, "timestamp-ms": START + STEP * n} for n in ids],
        "metadata-log": [],
    }
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / f"v{commits}.metadata.json").write_text(json.dumps(metadata))


def delta(folder: Path, commits: int) -> None:
    """A table as a streaming query leaves it, of so many commits and no checkpoint."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for n in range(commits):
        add = {
            "path": f"part-{n}.parquet",
            "partitionValues": {},
            "size": 9,
            "modificationTime": START,
            "dataChange": True,
        }
        metrics = {"numOutputRows": "10", "numAddedFiles": "1"}
        info = {"timestamp": START + STEP * n, "operation": "STREAMING UPDATE", "operationMetrics": metrics}
        actions: list[dict[str, object]] = [
            {"commitInfo": info},
            {"txn": {"appId": "query", "version": n}},
            {"add": add},
        ]
        if not n:
            form = {"format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {}}
            table = {"id": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "schemaString": json.dumps(SCHEMA), **form}
            actions += [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": table}]
        (log / f"{n:020}.json").write_text("\n".join(map(json.dumps, actions)))


def paimon(folder: Path, commits: int) -> None:
    """A table of so many snapshots of one stream."""
    (folder / "snapshot").mkdir(parents=True)
    (folder / "schema").mkdir()
    for n in range(1, commits + 1):
        told = {
            "version": 3,
            "id": n,
            "schemaId": 0,
            "commitUser": "user",
            "commitIdentifier": n,
            "commitKind": "APPEND",
        }
        counts = {"timeMillis": START + STEP * n, "totalRecordCount": 10 * n, "deltaRecordCount": 10}
        lists = {f"{of}ManifestList": f"manifest-list-{n}" for of in ("base", "delta")}
        (folder / "snapshot" / f"snapshot-{n}").write_text(json.dumps(told | counts | lists, indent=2))


def hudi(folder: Path, commits: int) -> None:
    """A table of version 6, of so many commits of one streaming query."""
    (folder / ".hoodie").mkdir(parents=True)
    lines = ("name=t", "type=COPY_ON_WRITE", "version=6", "timeline.timezone=UTC")
    text = "hoodie.timeline.layout.version=1\n" + "".join(f"hoodie.table.{line}\n" for line in lines)
    (folder / ".hoodie" / "hoodie.properties").write_text(text)
    for n in range(commits):
        stats = {"": [{"fileId": "f", "path": "f.parquet", "numWrites": 10, "numInserts": 10}]}
        extra = {"_hudi_streaming_sink_checkpoint": json.dumps({"query": str(n)}), "schema": json.dumps(SCHEMA)}
        told = {"partitionToWriteStats": stats, "extraMetadata": extra, "operationType": "UPSERT"}
        day, minute = divmod(n, 1440)
        instant = f"2026{1 + day // 28:02}{1 + day % 28:02}{minute // 60:02}{minute % 60:02}00000"
        (folder / ".hoodie" / f"{instant}.commit").write_text(json.dumps(told))


def read(path: str) -> None:
    """What cklog takes."""
    from cklog.parsers.sink_tables.opening import read_table

    def once() -> int:
        return len(read_table(path).commits)

    counted(once, warm=once)


def scan(format: str, path: str) -> None:
    """What the library takes to go through the same commits."""
    scans: dict[str, Callable[[], int]] = {
        "iceberg": lambda: _scan_iceberg(path),
        "delta": lambda: _scan_delta(path),
        "paimon": lambda: _scan_paimon(path),
        "hudi": lambda: _scan_hudi(path),
    }
    counted(scans[format], warm=scans[format])


def _scan_iceberg(path: str) -> int:
    from pyiceberg.table import StaticTable

    (file,) = (Path(path) / "metadata").iterdir()
    table = StaticTable.from_metadata(str(file))
    return sum(1 for snapshot in table.snapshots() if snapshot.summary is not None)


def _scan_delta(path: str) -> int:
    from deltalake import DeltaTable

    table = DeltaTable(path)
    table.transaction_version("query")
    return len(table.history())


def _scan_paimon(path: str) -> int:
    return sum(1 for file in (Path(path) / "snapshot").iterdir() if json.loads(file.read_bytes())["commitUser"])


def _scan_hudi(path: str) -> int:
    import hudi

    timeline = hudi.HudiTable(path).get_timeline()
    found = [json.loads(timeline.get_instant_metadata_in_json(i)) for i in timeline.get_completed_commits()]
    return len(found)


FORMATS = {
    "iceberg": (iceberg, "pyiceberg"),
    "delta": (delta, "deltalake"),
    "paimon": (paimon, "json"),
    "hudi": (hudi, "hudi"),
}


def sinks(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each format; a size is a number of commits."""
    for commits in sizes:
        for name, (make, library) in FORMATS.items():
            path = room.data.made(f"sink-{name}-{commits}", lambda to, m=make, n=commits: m(to, n))  # type: ignore[misc]
            runs = room.pairs_of(work("library", scan, name, path), work("cklog", read, path), pairs=5)
            times = (f"{runs.median(way):.2f} s" for way in ("library", "cklog"))
            yield (name.capitalize(), f"{commits:,}", library, *times, f"{runs.ratio('cklog', 'library'):.1f}")


TABLES = (
    Table(
        name="sink-tables",
        columns=("format", "commits", "library", "its scan", "cklog", "to the scan"),
        rows=sinks,
        quick=(1_000,),
        full=(100_000,),
        needs=("pyiceberg", "deltalake", "hudi"),
    ),
)
