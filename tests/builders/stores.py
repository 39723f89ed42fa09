"""State folders for tests: tasks of Kafka Streams, stores in RocksDB, the changelogs that they are restored from."""

from __future__ import annotations

import importlib
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cklog.parsers.codecs.block_checksums import masked_crc32c
from tests.builders.kafka import Log, Row, batch

APP = "shop"


_MANIFEST = struct.pack("<IHB", masked_crc32c(b"\1" + bytes(3)), 3, 1) + bytes(3)
"""A log of RocksDB with one record."""


def checkpoint(entries: Mapping[str, int], count: int | None = None, version: int = 0) -> bytes:
    """A checkpoint file; entries by "topic partition"."""
    lines = [f"{version}", f"{len(entries) if count is None else count}", *(f"{k} {n}" for k, n in entries.items())]
    return ("\n".join(lines) + "\n").encode()


def put_task(folder: Path, name: str, stores: tuple[str, ...], entries: Mapping[str, int] | None) -> Path:
    """A task's folder below `folder`, which is the application's."""
    task = folder / name
    task.mkdir(parents=True)
    for store in stores:
        (task / "rocksdb" / store).mkdir(parents=True)
        (task / "rocksdb" / store / "MANIFEST-000005").write_bytes(_MANIFEST)
        (task / "rocksdb" / store / "OPTIONS-000007").touch()
        (task / "rocksdb" / store / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    if entries is not None:
        (task / ".checkpoint").write_bytes(checkpoint(entries))
    return task


def put_log(folder: Path, topic: str, partition: int, end: int, start: int = 0) -> None:
    """A partition with offsets [start, end), ten records a batch."""
    log = Log(base=start)
    for base in range(start, end, 10):
        log.add(batch(base, [Row(b"v" * 20, b"k", time=1_700_000_000_000 + base) for _ in range(min(10, end - base))]))
    log.write(folder / f"{topic}-{partition}")


def put_store(folder: Path, family: str, pairs: Mapping[bytes, int]) -> Path:
    """A RocksDB with data and a column family of 64-bit integers, as its library leaves it without closing well."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    rocksdict: Any = importlib.import_module("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    database = rocksdict.Rdict(str(folder), options=options, column_families={"default": options, family: options})
    inside = database.get_column_family(family)
    database[b"key"] = b"value"
    for key, number in pairs.items():
        inside[key] = struct.pack(">q", number)
    inside.flush()
    inside.close()
    database.close()
    return folder


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes of every file, and when it was written."""
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}
