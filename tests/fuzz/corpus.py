"""Crafted folders: encodings that no sample has, and small ones, in which every byte counts."""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.builders import flink_folders, native
from tests.builders import kafka as kb
from tests.builders.kafka import Row
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.conftest import SAMPLES

Files = dict[str, bytes]


def _written(write: Callable[[Path], None]) -> Files:
    """The files that a builder writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def records(sample: str, place: str) -> Mapping[str, list[dict[str, Any]]]:
    """The records of the JSON lines at a place of a sample, by file, without checksums."""
    found = {}
    for path in sorted((SAMPLES / sample / place).rglob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        name = path.relative_to(SAMPLES / sample).as_posix()
        found[name] = [{key: value for key, value in line.items() if key != "crc32c"} for line in lines]
    return found


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def join_plain() -> Files:
    """The join without any checksum."""
    places = {**records("uncoordinated-join", "checkpoints"), **records("uncoordinated-join", "channels")}
    return {name: _lines(rows) for name, rows in places.items()}


def join_gz() -> Files:
    """The join in gzip, of two members each."""
    return {
        f"{name}.gz": gzip.compress(data[: len(data) // 2], mtime=0) + gzip.compress(data[len(data) // 2 :], mtime=0)
        for name, data in join_plain().items()
    }


def join_zst() -> Files:
    """The join in Zstandard."""
    return {f"{name}.zst": native.zstd(data) for name, data in join_plain().items()}


def join_parquet() -> Files:
    """The join in Parquet, with page checksums, dictionaries, and many small pages and row groups."""
    numbers = pa.map_(pa.string(), pa.int64())
    kinds = {"sent": numbers, "received": numbers, "sources": numbers}
    found = {}
    places = {**records("uncoordinated-join", "checkpoints"), **records("uncoordinated-join", "channels")}
    for name, rows in places.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        text = {key for row in rows for key, value in row.items() if isinstance(value, str)}
        schema = pa.schema([(c, kinds.get(c, pa.string() if c in text else pa.int64())) for c in columns])
        plain = [{k: list(v.items()) if isinstance(v, dict) else v for k, v in row.items()} for row in rows]
        file = io.BytesIO()
        table = pa.Table.from_pylist(plain, schema)
        pq.write_table(table, file, row_group_size=20, data_page_size=64, compression="zstd", write_page_checksum=True)
        found[name.replace(".jsonl", ".parquet")] = file.getvalue()
    return found


def _cut(sample: str, places: tuple[str, ...], keep: Callable[[dict[str, Any]], bool]) -> Files:
    """The records of a sample that are kept, without checksums, and what the job tells of itself."""
    job = SAMPLES / sample / "job.json"
    found = {"job.json": job.read_bytes()} if job.exists() else {}
    for place in places:
        found |= {name: _lines([row for row in rows if keep(row)]) for name, rows in records(sample, place).items()}
    return found


def events_short() -> Files:
    """The first seconds of an execution, by the raw events of its subtasks."""
    first = min(row["time"] for rows in records("raw-events", "events").values() for row in rows)
    return _cut("raw-events", ("events", "channels"), lambda row: row["time"] <= first + _EVENTS_MS)


_EVENTS_MS = 4000


def chains_short() -> Files:
    """The first checkpoints of incremental ones: a few bases, and deltas on them."""
    return _cut("incremental", ("checkpoints",), lambda row: row["checkpoint"] <= _CHAIN)


_CHAIN = 9


def queues() -> Files:
    """The first records of two output queues that stand on each other, with checksums as they are."""
    found = {"job.json": (SAMPLES / "cec-aggregate" / "job.json").read_bytes()}
    for operator, most in (("agg1", 40), ("filter1", 220)):
        name = f"outputs/{operator}/part-00000.jsonl"
        found[name] = b"".join((SAMPLES / "cec-aggregate" / name).read_bytes().splitlines(keepends=True)[:most])
    return found


def queues_gz() -> Files:
    """The same in gzip, without checksums."""
    found = queues()
    packed = {name: found.pop(name) for name in list(found) if name.endswith(".jsonl")}
    for name, data in packed.items():
        rows = [json.loads(line) for line in data.splitlines()]
        plain = _lines([{key: value for key, value in row.items() if key != "crc32c"} for row in rows])
        found[f"{name}.gz"] = gzip.compress(plain, mtime=0)
    return found


def _flink_job(root: Path) -> None:
    flink_folders.job(root)
    flink_folders.checkpoint(
        root,
        flink_folders.OLD,
        8,
        flink_folders.Snapshot(
            shared={f"{flink_folders.OLD}/shared/s8": 108},
            own={"p8": 18},
            sources=[[("orders", 0, 40)], [("orders", 1, 70)]],
            coordinator=flink_folders.assigned([("orders", 0), ("orders", 1)]),
        ),
    )


def _flink_savepoint(root: Path) -> None:
    """Two checkpoints that have read on, and a savepoint taken before both: no folder's name has its number."""
    for number in (7, 9):
        sources = [[("orders", 0, 10 * number)], [("orders", 1, 20 * number)]]
        flink_folders.checkpoint(
            root, flink_folders.OLD, number, flink_folders.Snapshot(own={f"p{number}": 9}, sources=sources)
        )
    sources = [[("orders", 0, 40)], [("orders", 1, 80)]]
    saved = flink_folders.Snapshot(own={"s": 9}, sources=sources, savepoint=True)
    flink_folders.savepoint(root, f"savepoint-{flink_folders.OLD[:6]}-0123456789ab", 4, saved)


def _kafka_codecs(root: Path) -> None:
    dice = random.Random(0)
    log = TopicLog()
    for _ in range(3):
        log.data(3)
    log.roll()
    log.data(4)
    log.write(root / "orders-0")
    rows = [Row(dice.randbytes(dice.randrange(90)), b"key %d" % i, 1_700_000_000_000 + 40 * i) for i in range(40)]
    folder = root / "mixed-0"
    folder.mkdir()
    batches = [kb.batch(40 * at, rows, codec) for at, codec in enumerate(kb.CODECS)]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    commits = TopicLog()
    commits.segments[0] += commit_batch(0, [("billing", "orders", 0, 8), ("billing", "mixed", 0, 60)])
    commits.write(root / "__consumer_offsets-0")
    broker_files(root)


def flink_job() -> Files:
    """A job with four checkpoints that share files, the newest with sources."""
    return _written(_flink_job)


def flink_savepoint() -> Files:
    """A job with two checkpoints, and an older savepoint of it."""
    return _written(_flink_savepoint)


def kafka_codecs() -> Files:
    """A broker's folder: a log of two segments, one of every codec, and a group."""
    return _written(_kafka_codecs)


MADE: Mapping[str, Callable[[], Files]] = {
    "join-plain": join_plain,
    "join-gz": join_gz,
    "join-zst": join_zst,
    "join-parquet": join_parquet,
    "events-short": events_short,
    "chains-short": chains_short,
    "queues": queues,
    "queues-gz": queues_gz,
    "flink-job": flink_job,
    "flink-savepoint": flink_savepoint,
    "kafka-codecs": kafka_codecs,
}
