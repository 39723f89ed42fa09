"""Tables and logs of RocksDB, written by RocksDB itself (`rocksdict`)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

VERSIONS = (2, 3, 4, 5, 6, 7)
CHECKSUMS = ("no_checksum", "crc32c", "xxhash", "xxhash64", "xxh3")
COMPRESSIONS = ("none", "snappy", "zlib", "bz2", "lz4", "lz4hc", "zstd")


def rocksdict() -> Any:
    return pytest.importorskip("rocksdict", reason="rocksdict writes the tables")


class TableKind(NamedTuple):
    """How a table is written; `parts`: index and filter in parts, with an index of their own."""

    version: int = 5
    checksum: str = "xxh3"
    compression: str = "none"
    parts: bool = False


def table(path: Path, kind: TableKind = TableKind(), entries: int = 400) -> bytes:
    """The bytes of a table, written to `path`; its blocks are of 1 kB, half of a value is random."""
    rocks = rocksdict()
    blocks = rocks.BlockBasedOptions()
    blocks.set_format_version(kind.version)
    blocks.set_checksum_type(getattr(rocks.ChecksumType, kind.checksum)())
    blocks.set_bloom_filter(10, False)
    blocks.set_block_size(1024)
    if kind.parts:
        blocks.set_index_type(rocks.BlockBasedIndexType.two_level_index_search())
        blocks.set_metadata_block_size(256)
        blocks.set_partition_filters(True)
    options = rocks.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(getattr(rocks.DBCompressionType, kind.compression)())
    writer = rocks.SstFileWriter(options)
    writer.open(str(path))
    chance = random.Random(7)
    for number in range(entries):
        writer[b"key%08d" % number] = chance.randbytes(20) + b"a" * 20
    writer.finish()
    return path.read_bytes()


def store(path: Path, values: int = 300, bytes_of_each: int = 700) -> Path:
    """A store, closed after one flush and with some more records in its write-ahead log, of several blocks."""
    rocks = rocksdict()
    options = rocks.Options(raw_mode=True)
    opened = rocks.Rdict(str(path), options)
    chance = random.Random(3)
    for number in range(values):
        opened[b"key%08d" % number] = chance.randbytes(bytes_of_each)
    opened.close()
    return path
