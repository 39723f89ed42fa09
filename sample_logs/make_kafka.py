"""Make sample_logs/kafka-broker: the data folder of a Kafka broker that was killed, written by kafka-python's encoder.

    pip install kafka-python
    python sample_logs/make_kafka.py

A client's encoder makes batches as a producer sends them. What a broker adds is added here: base offsets, markers of
transactions (control batches), segments, checkpoint files. Every run makes the same bytes.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

from kafka.record._crc32c import crc  # type: ignore[import-untyped]
from kafka.record.default_records import DefaultRecordBatchBuilder  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent / "kafka-broker"
START_MS = 1_700_000_000_000
ABORT, COMMIT = 0, 1
_CONTROL = 0x20
_NONE, _GZIP = 0, 1


@dataclass
class Partition:
    """A log in the making; `end` is its next offset, `segments` its files by base offset."""

    end: int = 0
    segments: dict[int, bytearray] = field(default_factory=lambda: {0: bytearray()})
    places: list[tuple[int, int]] = field(default_factory=list)

    def add(self, records: list[tuple[bytes | None, bytes | None]], producer: int = -1, codec: int = _NONE) -> None:
        """A batch of (key, value); with a producer it is part of that producer's transaction."""
        self._append(encoded(records, START_MS + self.end * 1000, producer, codec), len(records))

    def marker(self, producer: int, kind: int) -> None:
        """The end of a producer's transaction."""
        key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
        made = bytearray(encoded([(key, value)], START_MS + self.end * 1000, producer, _NONE))
        attributes = struct.unpack_from(">h", made, 21)[0] | _CONTROL
        struct.pack_into(">h", made, 21, attributes)
        self._append(sealed(made), 1)

    def roll(self) -> None:
        """Begin a new segment."""
        self.segments[self.end] = bytearray()

    def _append(self, batch: bytearray, count: int) -> None:
        struct.pack_into(">q", batch, 0, self.end)
        newest = max(self.segments)
        self.places.append((newest, len(self.segments[newest])))
        self.segments[newest] += batch
        self.end += count

    def write(self, name: str) -> None:
        folder = HERE / name
        folder.mkdir(parents=True)
        for base, data in self.segments.items():
            (folder / f"{base:020}.log").write_bytes(data)
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def encoded(records: list[tuple[bytes | None, bytes | None]], time: int, producer: int, codec: int) -> bytearray:
    """One batch, as a client sends it."""
    transactional = producer >= 0
    sequence = 0 if transactional else -1
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer,
        producer_epoch=sequence,
        base_sequence=sequence,
        batch_size=1 << 20,
    )
    for i, (key, value) in enumerate(records):
        builder.append(i, time + i, key, value, [])
    made = bytearray(builder.build())
    if codec == _GZIP:
        made[65:69] = bytes(4)  # the time of compression, which would differ from run to run
    return sealed(made)


def sealed(batch: bytearray) -> bytearray:
    """The batch with the CRC-32C of its bytes."""
    struct.pack_into(">I", batch, 17, crc(bytes(batch[21:])))
    return batch


def orders(first: int, count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(b"order-%d" % n, b'{"order":%d,"amount":%d}' % (n, n * 7 % 100)) for n in range(first, first + count)]


def commit(group: str, topic: str, partition: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value of a committed offset, as Kafka 3.9 writes them."""
    key = struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)
    return key, struct.pack(">hqi", 3, offset, -1) + text("") + struct.pack(">q", START_MS + 99_000)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def with_transactions() -> Partition:
    """orders-0: committed, aborted and open transactions, and a last batch that is cut short."""
    log = Partition()
    log.add(orders(0, 10), codec=_GZIP)
    log.add(orders(10, 4), producer=11)
    log.add(orders(14, 3), producer=12)
    log.add(orders(17, 2), producer=11)
    log.marker(11, COMMIT)
    log.marker(12, ABORT)
    log.roll()
    log.add(orders(30, 8))
    log.add(orders(38, 3), producer=12)
    log.add(orders(41, 5))
    whole = Partition(log.end)
    whole.add(orders(50, 6))
    log.segments[max(log.segments)] += next(iter(whole.segments.values()))[:100]
    return log


def with_a_bad_byte() -> Partition:
    """orders-1: a flipped byte in the middle of the first segment, and a second segment."""
    log = Partition()
    for first in (0, 10, 20, 30):
        log.add(orders(first, 10))
    log.roll()
    log.add(orders(40, 10))
    base, at = log.places[1]
    log.segments[base][at + 120] ^= 0x10
    return log


def groups() -> Partition:
    """__consumer_offsets-0: one commit that a later one replaces, one that is not in the log any more, or yet."""
    log = Partition()
    log.add([commit("billing", "orders", 0, 4), commit("billing", "orders", 1, 10)])
    log.add([commit("audit", "orders", 0, 2), commit("audit", "orders", 1, 0)])
    log.add([commit("billing", "orders", 0, 12), commit("billing", "orders", 1, 45)])
    return log


def checkpoint(name: str, entries: dict[str, int]) -> None:
    lines = [f"{partition.replace('-', ' ')} {offset}" for partition, offset in entries.items()]
    (HERE / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def main() -> None:
    """Write the folder anew; README.md and expected.json stay."""
    for name in ("orders-0", "orders-1", "__consumer_offsets-0"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    logs = {"orders-0": with_transactions(), "orders-1": with_a_bad_byte(), "__consumer_offsets-0": groups()}
    for name, log in logs.items():
        log.write(name)
    (HERE / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=cklog-sample\n")
    checkpoint("replication-offset-checkpoint", {name: log.end for name, log in logs.items()})
    checkpoint("recovery-point-offset-checkpoint", dict.fromkeys(logs, 0))
    checkpoint("log-start-offset-checkpoint", {"orders-0": 3})


if __name__ == "__main__":
    main()
