"""RocksDB's log format against logs that RocksDB wrote: manifests, and a write-ahead log of several blocks."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import crc32c
import pytest

from cklog.parsers.codecs.record_log import LogFlaw, check_record_log, joined_records
from tests.builders.rocksdb import store

BLOCK = 32 << 10


def check(data: bytes) -> LogFlaw | None:
    return check_record_log(lambda at, count: data[at : at + count], len(data))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = store(tmp_path_factory.mktemp("rocks") / "db")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("MANIFEST-")}


@pytest.mark.parametrize("before", range(BLOCK - 40, BLOCK, 3))
def test_what_goes_on_in_the_next_block_is_joined(before: int) -> None:
    """A record is parted where a block ends; so few bytes that no head fits into them are zeros."""
    data, at, rest = bytearray(struct.pack("<IHB", 0, before - 7, 1) + b"x" * (before - 7)), before, b"a column family"
    if BLOCK - at < 7:
        data += bytes(BLOCK - at)
        at = BLOCK
    first = rest[: BLOCK - at - 7] if at < BLOCK else b""
    kinds = (2, 4) if first != rest and at < BLOCK else (1, 1)
    for part, kind in ((first, kinds[0]), (rest[len(first) :], kinds[1])):
        data += struct.pack("<IHB", 0, len(part), kind) + part if part or at < BLOCK else b""
    assert joined_records(bytes(data)) == b"x" * (before - 7) + rest


def long_log(tmp_path: Path) -> bytes:
    """A write-ahead log that was never flushed."""
    import rocksdict

    opened = rocksdict.Rdict(str(tmp_path / "db"), rocksdict.Options(raw_mode=True))
    chance = random.Random(3)
    for number in range(120):
        opened[b"key%d" % number] = chance.randbytes(chance.choice((10, 900, 40_000)))
    opened.flush_wal(True)
    data = max((path.read_bytes() for path in (tmp_path / "db").glob("*.log")), key=len)
    opened.close()
    return data


def test_a_manifest_is_whole_and_no_flipped_bit_is_missed(logs: dict[str, bytes]) -> None:
    chance = random.Random(1)
    assert logs
    for data in logs.values():
        assert check(data) is None
        for at in range(len(data)):
            flipped = bytearray(data)
            flipped[at] ^= 1 << chance.randrange(8)
            assert check(bytes(flipped)) is not None, at


def test_a_log_of_several_blocks(tmp_path: Path) -> None:
    """Records that go on over blocks; zeros from any place on are found there, or where the record before begins."""
    data = long_log(tmp_path)
    assert len(data) > 10 * (32 << 10)
    assert check(data) is None
    chance = random.Random(2)
    for at in [chance.randrange(len(data)) for _ in range(40)]:
        found = check(data[:at] + bytes(len(data) - at))
        assert found is not None
        assert found.at <= at + 11
        assert check(data[: at + 1] + bytes([data[at + 1] ^ 1]) + data[at + 2 :]) is not None


def record(kind: int, data: bytes, number: bytes = b"") -> bytes:
    """A record by the format: masked CRC-32C of all behind the length, length, kind, the log's number if recycled."""
    crc = crc32c.crc32c(bytes([kind]) + number + data)
    masked = (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF
    return struct.pack("<IHB", masked, len(data), kind) + number + data


FULL, FIRST, LAST = 1, 2, 4
RECYCLED = 4
"""Kinds of a recycled log are that much higher; its heads are of 11 bytes instead of 7."""


@pytest.mark.parametrize("left", range(12))
@pytest.mark.parametrize("recycled", [False, True])
def test_what_is_left_of_a_block_takes_a_head_or_zeros(left: int, recycled: bool) -> None:
    """Where a head fits a record begins, be it with none of its bytes; where none fits, zeros do."""
    number, more, head = (b"\7\0\0\0", RECYCLED, 11) if recycled else (b"", 0, 7)
    first = record(FULL + more, b"x" * (BLOCK - left - head), number)
    begun = record(FIRST + more, b"y" * (left - head), number) if left >= head else bytes(left)
    rest = record((LAST if left >= head else FULL) + more, b"z" * 9, number)
    assert len(first + begun) == BLOCK
    assert check(first + begun + rest) is None
    if 0 < left < head:
        found = check(first + bytes(left - 1) + b"\1" + rest)
        assert found is not None
        assert found.at == BLOCK - left


def test_zeros_are_no_log() -> None:
    for size in (0, 1, 6, 7, 10, 11, 100, 40_000):
        assert check(bytes(size)) is not None, size


def test_real_manifests_are_whole(shared_data: Path) -> None:
    count = 0
    for path in sorted(shared_data.rglob("*")):
        if path.is_file() and 0 < path.stat().st_size < 20_000 and b"leveldb.BytewiseComp" in path.read_bytes()[:40]:
            assert check(path.read_bytes()) is None, path
            count += 1
    assert count > 20


@pytest.mark.parametrize(("kind", "why"), [(9, ""), (12, "unknown type 12"), (0, "unknown type 0"), (130, "")])
def test_records_of_other_kinds_are_passed_over_or_unknown(kind: int, why: str) -> None:
    """What a log says of itself is no record; of other kinds RocksDB passes over those from 128 on."""

    def record(kind: int, body: bytes) -> bytes:
        crc = crc32c.crc32c(bytes([kind]) + body)
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        return struct.pack("<IHB", masked, len(body), kind) + body

    data = record(1, b"one") + record(kind, b"more") + record(1, b"two")
    found = check(data)
    assert (found is not None and why in found.why) if why else found is None
    assert joined_records(data) == b"onetwo"
