"""A warm Kafka segment of 1 GB, read in several ways: `kafka_segments.py [--bytes N]`; two tables, medians of CPU time.

The segment holds batches of 16 KB, each of 100 records of about 160 bytes. The first table reads all of it: the peer
reads one byte of every 16 KB through `mmap`, which is what looking at each batch must cost at least. The second
decodes the records of its first 100 MB: cklog as arrays and as an Arrow table, then kafka-python and aiokafka, record
by record, which is how clients give them.
"""

from __future__ import annotations

import argparse
import importlib
import mmap
import random
import statistics
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))

from cklog.engine.scan import Damage, Split
from cklog.inputs.record_batches import BATCHES
from cklog.parsers.kafka.groups import read_records
from cklog.parsers.kafka.headers import read, read_unchecked
from tests.builders.kafka import Row, batch

ROUNDS, STEP, RECORDS = 7, 16 << 10, 100
DECODED = 100 << 20
RANGES = ("base", "last", "records", "bytes")


def write(path: Path, size: int) -> int:
    """A segment of about `size` bytes; the bytes of its first batches, about `DECODED`."""
    dice = random.Random(1)
    rows = [Row(dice.randbytes(146), b"key%05d" % i, 1_700_000_000_000 + i) for i in range(RECORDS)]
    one = bytearray(batch(0, rows))
    with path.open("wb") as file:
        for i in range(size // len(one)):
            struct.pack_into(">q", one, 0, i * RECORDS)  # no CRC covers it
            file.write(one)
    return min(DECODED, size) // len(one) * len(one)


def split_of(path: Path, end: int) -> Split:
    return Split(str(path), path.name, "", 0, end, path.stat().st_size)


def peer(path: Path) -> int:
    """One byte of every 16 KB."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        n = 0
        for at in range(0, len(pages), STEP):
            pages[at]
            n += 1
        return n


def rows(found: object) -> int:
    assert isinstance(found, pa.RecordBatch), found
    return int(found.num_rows)


def walked(path: Path, columns: tuple[str, ...], checked: bool) -> int:
    """Batches of the whole segment."""
    reader = read if checked else read_unchecked
    return sum(rows(one) for one in reader(split_of(path, path.stat().st_size), "batches", columns))


def decoded(path: Path, end: int, checked: bool, table: bool) -> int:
    """Records of the first `end` bytes."""
    n = 0
    for part in read_records(split_of(path, end), checked):
        assert not isinstance(part, Damage), part
        n += part.records.to_table().num_rows if table else len(part.records.offset)
    return n


def client(name: str, path: Path, end: int) -> int:
    """The same by the record reader of a client."""
    memory_records = importlib.import_module(f"{name}.record.memory_records").MemoryRecords
    with path.open("rb") as file:
        found, n = memory_records(file.read(end)), 0
    while (one := found.next_batch()) is not None:
        for record in one:
            n += record.value is not None
    return n


def measured(work: Callable[[], int], rounds: int = ROUNDS) -> tuple[float, int]:
    """Median CPU seconds, and what was counted; the first round warms and does not count."""
    n = work()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        n = work()
        times.append(time.process_time() - began)
    return statistics.median(times), n


def headers(path: Path) -> None:
    """The first table."""
    size = path.stat().st_size
    ways: dict[str, Callable[[], int]] = {
        "one byte of every 16 KB": lambda: peer(path),
        "headers, 4 columns": lambda: walked(path, RANGES, False),
        "headers, all columns": lambda: walked(path, tuple(BATCHES.names), False),
        "the same, every CRC-32C verified": lambda: walked(path, tuple(BATCHES.names), True),
    }
    print(f"segment of {size / 1e9:.2f} GB\n\n| way | CPU ms | to the peer | GB/s |\n|---|---|---|---|")
    least = 0.0
    for name, work in ways.items():
        took, _ = measured(work)
        least = least or took
        print(f"| {name} | {took * 1e3:.0f} | {took / least:.2f} | {size / took / 1e9:.1f} |", flush=True)


def records(path: Path, end: int) -> None:
    """The second table."""
    ways: dict[str, tuple[Callable[[], int], int]] = {
        "cklog, arrays": (lambda: decoded(path, end, False, False), ROUNDS),
        "cklog, arrays, CRC verified": (lambda: decoded(path, end, True, False), ROUNDS),
        "cklog, Arrow table": (lambda: decoded(path, end, False, True), ROUNDS),
        "aiokafka (C)": (lambda: client("aiokafka", path, end), 3),
        "kafka-python": (lambda: client("kafka", path, end), 1),
    }
    print(f"\nrecords of {end / 1e6:.0f} MB\n\n| decoder | CPU ms | million records/s |\n|---|---|---|")
    for name, (work, rounds) in ways.items():
        try:
            took, n = measured(work, rounds)
        except ImportError:
            print(f"| {name} | not installed | |")
            continue
        print(f"| {name} | {took * 1e3:.0f} | {n / took / 1e6:.2f} |", flush=True)


def main() -> None:
    """Make the segment, then print both tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bytes", type=int, default=1 << 30)
    chosen = options.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020}.log"
        end = write(path, chosen.bytes)
        headers(path)
        records(path, end)


if __name__ == "__main__":
    main()
