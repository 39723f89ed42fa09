"""Two clients of Kafka, each with its own decoder, read the same records from the same bytes as cklog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.engine.scan import Damage, Split
from cklog.parsers.kafka.groups import read_records
from tests.builders import kafka as kb
from tests.builders.kafka import Row

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS if magic == 2 or codec != "zstd"]
Told = tuple[int, int | None, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def written(magic: int, codec: str, sizes: tuple[int, ...] = (1, 2, 7, 40)) -> bytes:
    """Batches by kafka-python's own builder: nulls, empty values, headers where the format has them, long values."""
    memory_records = pytest.importorskip("kafka.record.memory_records", reason="kafka-python is not installed")
    log, offset = b"", 0
    for size in sizes:
        builder = memory_records.MemoryRecordsBuilder(magic, CODECS.index(codec), 1 << 20)
        for i in range(size):
            value = None if i % 7 == 3 else b"v%d " % (offset + i) * (i % 5 * 40)
            headers = [("h", b"x"), ("é", None)] if magic == 2 and i % 3 == 0 else []
            assert builder.append(1_700_000_000_000 + i * 300, None if i % 4 == 1 else b"k%d" % i, value, headers)
        builder.close()
        log += based(builder.buffer(), magic, codec, offset, size)
        offset += size
    return log


def based(data: bytes, magic: int, codec: str, offset: int, size: int) -> bytes:
    """What a broker does to a producer's batch: it writes the offsets."""
    if magic == 2:
        return offset.to_bytes(8, "big") + data[8:]
    if codec != "none":
        return (offset + size - 1).to_bytes(8, "big") + data[8:]  # those inside format 0 stay as they are
    found, at = b"", 0
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        found += offset.to_bytes(8, "big") + data[at + 8 : end]
        at, offset = end, offset + 1
    return found


def told(memory_records: Any, data: bytes) -> Iterator[Told]:
    """What a client's decoder gives."""
    found = memory_records(data)
    while (batch := found.next_batch()) is not None:
        assert batch.validate_crc()
        if getattr(batch, "is_control_batch", False):
            continue
        for record in batch:
            yield record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


def ours(folder: Path, data: bytes) -> Iterator[Told]:
    """The same by cklog, headers by the careful decoder."""
    path = folder / f"{0:020}.log"
    path.write_bytes(data)
    for part in read_records(Split(str(path), path.name, "", 0, len(data), len(data))):
        assert not isinstance(part, Damage), part
        control = [head.control for head in part.heads]
        for i, row in enumerate(part.records.to_table().to_pylist()):
            if control[row["batch"]]:
                continue
            time = row["timestamp"] if part.heads[row["batch"]].magic else None
            headers = part.records.headers_of(i)
            assert len(headers) == row["headers"]
            yield row["offset"], time, row["key"], row["value"], headers


@pytest.fixture(params=["kafka", "aiokafka"])
def client(request: pytest.FixtureRequest) -> Any:
    """The class MemoryRecords of kafka-python (Python) and of aiokafka (C)."""
    name = f"{request.param}.record.memory_records"
    return pytest.importorskip(name, reason=f"{request.param} is not installed").MemoryRecords


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_batches_of_kafka_python_s_builder(client: Any, tmp_path: Path, magic: int, codec: str) -> None:
    if (magic, codec) == (0, "lz4"):
        pytest.importorskip("xxhash", reason="kafka-python writes the checksum of old lz4 frames with xxhash")
        if client.__module__.startswith("aiokafka."):
            pytest.skip("aiokafka does not read the lz4 frames of format 0")
    sizes = (1, 2, 7, 40) if magic or codec == "none" else (40,)  # the builder counts from 0 in each wrapper
    data = written(magic, codec, sizes)
    expected = list(told(client, data))
    assert len(expected) == sum(sizes)
    assert list(ours(tmp_path, data)) == expected


@pytest.mark.parametrize("codec", [*kb.CODECS])
@pytest.mark.parametrize("flags", [0, kb.LOG_APPEND_TIME, kb.TRANSACTIONAL])
def test_batches_of_the_tests_own_builder(client: Any, tmp_path: Path, codec: str, flags: int) -> None:
    if codec == "snappy" and client.__module__.startswith("kafka."):
        pytest.skip("kafka-python reads snappy in the framing of the Java client only")
    rows = [Row(b"v" * i, None if i % 3 else b"k", i * 1000, [("n", b"h")] * (i % 3), 3 * i) for i in range(50)]
    data = kb.batch(5, rows, codec, flags) + kb.marker(400, kb.COMMIT, 9) + kb.batch(500, rows[:1], codec, flags)
    assert list(ours(tmp_path, data)) == list(told(client, data))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "xerial", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("append_time", [False, True])
def test_old_messages_of_the_tests_own_builder(
    client: Any, tmp_path: Path, magic: int, codec: str, append_time: bool
) -> None:
    if codec == "snappy" and client.__module__.startswith("kafka."):
        pytest.skip("kafka-python reads snappy in the framing of the Java client only")
    if (magic, codec) == (0, "lz4"):
        pytest.skip("the builder's wrong checksum is not the one that old clients wrote")
    rows = [Row(b"value" * i, None if i % 3 else b"k", 1000 + i) for i in range(20)]
    data = kb.messages(70, rows, magic, codec, append_time) + kb.messages(90, rows, magic, codec)
    assert list(ours(tmp_path, data)) == list(told(client, data))


def test_every_real_segment_that_the_clients_can_read(client: Any, shared_data: Path, tmp_path: Path) -> None:
    names = [
        "codec_gzip-0",
        "codec_none-0",
        "codec_zstd-0",
        "compacted-0",
        "txn-0",
        "legacy_v0_gzip-0",
        "legacy_v1_none-0",
    ]
    for name in names:
        (path,) = (shared_data / "kafka" / "segments" / name).glob("*.log")
        data = path.read_bytes()
        assert list(ours(tmp_path, data)) == list(told(client, data)), name
