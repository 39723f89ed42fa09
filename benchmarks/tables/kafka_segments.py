"""A warm Kafka segment in batches of 16 KB: headers beside touching one byte of every 16 KB, records beside clients.

The peer of the headers reads through `mmap`; cklog copies what it reads and maps nothing, since a file that is cut
while it is mapped ends the process. CPU is that of the reading alone, after a first round.
"""

from __future__ import annotations

import importlib
import mmap
import random
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work
from cklog.engine.scan import Damage, Split
from cklog.inputs.record_batches import BATCHES
from cklog.parsers.kafka.groups import read_records
from cklog.parsers.kafka.headers import read, read_unchecked
from tests.builders.kafka import Row as Record
from tests.builders.kafka import batch

STEP, RECORDS = 16 << 10, 100
RANGES = ("base", "last", "records", "bytes")


def _write(path: Path, size: int) -> None:
    """A segment of about `size` bytes."""
    dice = random.Random(1)
    rows = [Record(dice.randbytes(146), b"key%05d" % i, 1_700_000_000_000 + i) for i in range(RECORDS)]
    one = bytearray(batch(0, rows))
    with path.open("wb") as file:
        for i in range(size // len(one)):
            struct.pack_into(">q", one, 0, i * RECORDS)  # no CRC covers it
            file.write(one)


def segment(room: Room, size: int) -> Path:
    """A folder with one segment."""

    def make(folder: Path) -> None:
        folder.mkdir()
        _write(folder / f"{0:020}.log", size)

    return room.data.made(f"segment-{size}", make) / f"{0:020}.log"


def _split_of(path: Path) -> Split:
    size = path.stat().st_size
    return Split(str(path), path.name, "", 0, size, size)


def touched(path: str) -> None:
    """One byte of every 16 KB, through a map."""

    def once() -> int:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
            return len([pages[at] for at in range(0, len(pages), STEP)])

    counted(once, warm=once, times=5)


def _rows(found: object) -> int:
    assert isinstance(found, pa.RecordBatch), found
    return int(found.num_rows)


def walked(columns: str, checked: str, path: str) -> None:
    """Batches of the whole segment."""
    names = RANGES if columns == "few" else tuple(BATCHES.names)
    reader = read if checked == "checked" else read_unchecked

    def once() -> int:
        return sum(_rows(one) for one in reader(_split_of(Path(path)), "batches", names))

    counted(once, warm=once, times=5)


def decoded(what: str, checked: str, path: str) -> None:
    """Records, as arrays or as Arrow's table."""

    def once() -> int:
        n = 0
        for part in read_records(_split_of(Path(path)), checked == "checked"):
            assert not isinstance(part, Damage), part
            n += part.records.to_table().num_rows if what == "table" else len(part.records.offset)
        return n

    counted(once, warm=once)


def client(name: str, path: str) -> None:
    """The same by the record reader of a client."""
    memory_records = importlib.import_module(f"{name}.record.memory_records").MemoryRecords
    data = Path(path).read_bytes()

    def once() -> int:
        found, n = memory_records(data), 0
        while (one := found.next_batch()) is not None:
            for record in one:
                n += record.value is not None
        return n

    counted(once)


def headers(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each way; a size is bytes of the segment."""
    for size in sizes:
        path = segment(room, size)
        peer = work("one byte of every 16 KB", touched, path)
        ways = (
            peer,
            work("batch headers, 4 columns", walked, "few", "unchecked", path),
            work("batch headers, all columns", walked, "all", "unchecked", path),
            work("the same, every CRC-32C verified", walked, "all", "checked", path),
        )
        runs = room.pairs_of(*ways)
        for way in ways:
            took = runs.median(way.name)
            rate = f"{path.stat().st_size / took / 1e9:.1f}"
            yield (
                way.name,
                f"{size / 1e9:.2f} GB",
                f"{took * 1e3:.0f}",
                f"{runs.ratio(way.name, peer.name):.2f}",
                rate,
            )


def records(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """A row for each decoder."""
    for size in sizes:
        path = segment(room, size)
        own = work("cklog, arrays", decoded, "arrays", "unchecked", path)
        ways = (
            own,
            work("cklog, arrays, CRC verified", decoded, "arrays", "checked", path),
            work("cklog, Arrow table", decoded, "table", "unchecked", path),
            work("aiokafka (C)", client, "aiokafka", path),
            work("kafka-python", client, "kafka", path),
        )
        runs = room.pairs_of(*ways, pairs=5)
        count = runs.count()
        for way in ways:
            took = runs.median(way.name)
            ratio = f"{runs.ratio(own.name, way.name):.2f}"
            yield (way.name, f"{size / 1e6:.0f} MB", f"{took * 1e3:.0f}", f"{count / took / 1e6:.2f}", ratio)


TABLES = (
    Table(
        name="kafka-headers",
        columns=("way", "segment", "CPU ms", "to the peer", "GB/s"),
        rows=headers,
        quick=(32 << 20,),
        full=(1 << 30,),
    ),
    Table(
        name="kafka-records",
        columns=("decoder", "segment", "CPU ms", "million records/s", "CPU of cklog's arrays to it"),
        rows=records,
        quick=(4 << 20,),
        full=(100 << 20,),
        needs=("aiokafka", "kafka"),
    ),
)
