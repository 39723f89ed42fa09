"""What looking into tables of RocksDB costs: the cheap check and that of every block, beside reading the file.

One table for each kind of checksum, in blocks of 4 kB, from a warm cache; CPU of the check alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work

VALUE_BYTES = 100
CHUNK_BYTES = 4 << 20
CHECKSUMS = {"crc32c": "CRC-32C", "xxhash": "XXH32", "xxhash64": "XXH64", "xxh3": "XXH3 (RocksDB's default)"}


def write_table(path: Path, checksum: str, entries: int) -> None:
    import rocksdict

    blocks = rocksdict.BlockBasedOptions()
    blocks.set_checksum_type(getattr(rocksdict.ChecksumType, checksum)())
    blocks.set_format_version(5)
    blocks.set_block_size(4096)
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    writer = rocksdict.SstFileWriter(options)
    writer.open(str(path))
    chance = random.Random(1)
    for number in range(entries):
        writer[b"key%012d" % number] = chance.randbytes(VALUE_BYTES)
    writer.finish()


def read_all(path: str) -> None:
    """The peer: its bytes, as they are."""

    def once() -> int:
        with open(path, "rb", buffering=0) as file:
            while file.read(CHUNK_BYTES):
                pass
        return 1

    counted(once, warm=once, times=5)


def checked(every_block: str, path: str) -> None:
    """The check that cklog makes."""
    from cklog.parsers.codecs.sst import check_sst

    def once() -> int:
        with open(path, "rb", buffering=0) as file:

            def read(at: int, count: int) -> bytes:
                file.seek(at)
                return file.read(count)

            found = check_sst(read, Path(path).stat().st_size, every_block == "every")
            assert found.flaw is None, found
            return 1

    counted(once, warm=once, times=1 if every_block == "every" else 100)


def state_files(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each checksum; a size is a number of entries."""
    for entries in sizes:
        for kind, name in CHECKSUMS.items():
            path = room.data.made(f"table-{kind}-{entries}.sst", lambda to, k=kind, n=entries: write_table(to, k, n))  # type: ignore[misc]
            runs = room.pairs_of(
                work("reading", read_all, path),
                work("cheap", checked, "cheap", path),
                work("every", checked, "every", path),
            )
            ms = {way: runs.median(way) * 1e3 for way in runs.costs}
            size = path.stat().st_size / 1e6
            cells = (f"{ms['reading']:.0f} ms", f"{ms['cheap']:.1f} ms", f"{ms['every']:.0f} ms")
            rate = f"{size / ms['every'] * 1e3:.0f}"
            yield (name, f"{size:.0f} MB", *cells, rate, f"{runs.ratio('every', 'reading'):.1f}")


TABLES = (
    Table(
        name="state-files",
        columns=("checksum", "table", "reading", "cheap check", "every block", "MB/s", "to the reading"),
        rows=state_files,
        quick=(50_000,),
        full=(1_000_000,),
        needs=("rocksdict",),
    ),
)
