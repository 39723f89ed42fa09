"""Spark's state files, streams of blocks and zips, as Spark writes them, and whole checkpoints in memory with such."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import pyarrow as pa

from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.spark.state.lz4_blocks import HEADER, MAGIC, SEED
from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark import Memory

CODEC = pa.Codec("lz4_raw")


def block(plain: bytes, stored: bool = False) -> bytes:
    """A block as lz4-java writes it, of 32 KiB at most."""
    packed = CODEC.compress(plain, asbytes=True)
    stored = stored or len(packed) >= len(plain)
    checksum = xxh32([plain], SEED)[0] & 0x0FFFFFFF
    payload = plain if stored else packed
    return HEADER.pack(MAGIC, (0x10 if stored else 0x20) | 5, len(payload), len(plain), checksum) + payload


END = HEADER.pack(MAGIC, 0x15, 0, 0, 0)


def stream(plain: bytes, size: int = 1 << 15) -> bytes:
    return b"".join(block(plain[at : at + size]) for at in range(0, len(plain), size)) + END


def zipped(metadata: bytes | None, extra: bytes = b"manifest") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST-000005", extra)
        if metadata is not None:
            archive.writestr("metadata", metadata)
    return file.getvalue()


def snapshot(*ssts: tuple[str, int], name: str = "dfsSstFileName") -> bytes:
    rows = [{"localFileName": n, name: n, "sizeBytes": size} for n, size in ssts]
    return zipped(b"v1\n" + json.dumps({"sstFiles": rows, "numKeys": 1}).encode())


CLASSES = "org.apache.spark.sql.execution.streaming.state."
HDFS, ROCKS = CLASSES + "HDFSBackedStateStoreProvider", CLASSES + "RocksDBStateStoreProvider"
DELTA = stream(b"\0\0\0\1k\0\0\0\1v" + b"\xff" * 4)


KEY, NULL = ("string",), ("void",)
"""Types of the key's fields, of an operator with a key and of `limit`; `groupBy()` has none."""


def schema_of(key: tuple[str, ...]) -> bytes:
    """A schema as Spark 4.3 writes it, version 2: each part in one chunk."""
    fields = [{"name": f"k{i}", "type": type, "nullable": True, "metadata": {}} for i, type in enumerate(key)]
    parts = [json.dumps({"type": "struct", "fields": some}).encode() for some in (fields, [])]
    return b"\0\2v2" + b"".join(b"\0\0\0\1" + struct.pack(">H", len(part)) + part for part in parts)


NEWER = (
    "spark.sql.streaming.stateStore.rowChecksum.enabled",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion",
)
"""Settings that plans have from Spark 4.1 and from 4.2 on."""


def checkpoint(
    provider: str,
    commits: int,
    codec: str = "lz4",
    watermark: int = 0,
    partitions: int = 2,
    newer: tuple[str, ...] = NEWER,
) -> dict[str, bytes]:
    """Batches 0 to `commits` - 1, and one in flight, of Spark 4.3; of an older one without what is `newer`."""
    conf = dict.fromkeys(newer, "1") | {
        "spark.sql.streaming.stateStore.providerClass": provider,
        "spark.sql.streaming.stateStore.compression.codec": codec,
        "spark.sql.shuffle.partitions": str(partitions),
    }
    head = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": 5, "conf": conf}).encode()
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b"v1\n0"}
    files |= {f"offsets/{n}": b"v1\n" + head + b"\n%d" % n for n in range(commits + 1)}
    return files | {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(commits)}


def operator(number: int = 0, stores: tuple[str, ...] = ("default",), partitions: int = 2) -> dict[str, bytes]:
    rows = [{"storeName": name, "numColsPrefixKey": 0, "numPartitions": partitions} for name in stores]
    value = {"operatorInfo": {"operatorId": number, "operatorName": "stateStoreSave"}, "stateStoreInfo": rows}
    places = (f"state/{number}/0/{name}/".replace("/default/", "/") for name in stores)
    schema = {f"{place}_metadata/schema": schema_of(KEY) for place in places}
    return schema | {f"state/{number}/_metadata/metadata": b"v1\n" + json.dumps(value).encode()}


def deltas(versions: range, snapshots: tuple[int, ...] = (), place: str = "state/0/{}") -> dict[str, bytes]:
    """In partitions 0 and 1."""
    files: dict[str, bytes] = {}
    for partition in range(2):
        folder = place.format(partition)
        files |= {f"{folder}/{v}.delta": DELTA for v in versions}
        files |= {f"{folder}/{v}.snapshot": DELTA for v in snapshots}
    return files


def memory(*parts: dict[str, bytes]) -> Memory:
    return Memory("memory", (), {path: data for part in parts for path, data in part.items()})


def hdfs(commits: int = 7) -> Memory:
    """Snapshots 3 and 6 of `commits` versions."""
    return memory(checkpoint(HDFS, commits), operator(), deltas(range(1, commits + 1), (3, 6)))


def plan_without(root: Memory, *paths: str) -> BatchPlan:
    root = root.copy()
    for path in paths:
        root.remove(path)
    return root.plan()


def changelog(version: int, lineage: list[tuple[int, str]]) -> bytes:
    text = json.dumps([{"version": v, "checkpointUniqueId": id} for v, id in lineage]).encode()
    head = b"\0\2v%d" % version + len(text).to_bytes(2, "big") + text
    return stream(head + (b"\0" if version in (2, 4) else b"\xff" * 4))


def by_ids(commits: int = 4) -> Memory:
    """State checkpoint format 2, one partition, changelogs only; version V has the id "iV"; nothing is in flight."""
    files = checkpoint(ROCKS, commits)
    del files[f"offsets/{commits}"]
    for n in range(commits):
        ids = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[f"i{n + 1}"]]}}
        files[f"commits/{n}"] = b"v2\n" + json.dumps(ids).encode()
        lineage = [(v, f"i{v}") for v in range(1, n + 1)]
        files[f"state/0/0/{n + 1}_i{n + 1}.changelog"] = changelog(3, lineage)
    return memory(files, operator(partitions=1))
