"""What looking into tables of RocksDB costs: `rocksdb_tables.py`, or `rocksdb_tables.py ENTRIES` for another size.

One table for each kind of checksum, of some hundred MB in blocks of 4 kB: seconds of CPU and MB/s of reading it as it
is (the peer), of the cheap check and of the check of every block, the best of three, from a warm cache.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import rocksdict

from cklog.parsers.codecs.sst import check_sst

VALUE_BYTES = 100
CHUNK_BYTES = 4 << 20


def write_table(path: Path, checksum: str, entries: int) -> None:
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


def best(work: Callable[[], object]) -> float:
    """CPU seconds."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def read_all(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK_BYTES):
            pass


def check(path: Path, every_block: bool) -> None:
    with path.open("rb", buffering=0) as file:

        def read(at: int, count: int) -> bytes:
            file.seek(at)
            return file.read(count)

        found = check_sst(read, path.stat().st_size, every_block)
        assert found.flaw is None, found


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        for checksum in ("crc32c", "xxhash", "xxhash64", "xxh3"):
            path = Path(folder) / f"{checksum}.sst"
            write_table(path, checksum, entries)
            size = path.stat().st_size / 1e6
            peer = best(lambda path=path: read_all(path))  # type: ignore[misc]
            cheap = best(lambda path=path: check(path, False))  # type: ignore[misc]
            full = best(lambda path=path: check(path, True))  # type: ignore[misc]
            rates = [f"{size / seconds:.0f} MB/s" for seconds in (peer, full)]
            print(
                f"{checksum}: {size:.0f} MB; read {peer:.3f} s, {rates[0]}; cheap check {cheap * 1e3:.1f} ms", end="; "
            )
            print(f"every block {full:.3f} s, {rates[1]}, {full / peer:.1f} times the reading", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
