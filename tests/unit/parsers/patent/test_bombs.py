"""A LevelDB that becomes more than it may: refused before all of it is held."""

from __future__ import annotations

import struct
from pathlib import Path

import crc32c
import pytest

from tests.bombs import MIB
from tests.builders.patent import FIGURE
from tests.measured import measured


def test_a_store_that_snappy_made_small(tmp_path: Path) -> None:
    """3 MB of files that hold 60 MB."""
    plyvel = pytest.importorskip("plyvel", reason="plyvel is not installed: no LevelDB can be made or read")
    database = plyvel.DB(str(tmp_path / "window"), create_if_missing=True)
    for number in range(1, 61):
        database.put(b"%d NON" % number, bytes(MIB))
    database.compact_range()
    database.close()
    assert sum(file.stat().st_size for file in (tmp_path / "window").iterdir()) < 4 * MIB
    ended = measured("chain", tmp_path, "--max-memory", "64MiB")
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith("cklog: window: what its ")
    assert "bytes of files become is over the budget of 16777216" in ended.err
    assert ended.peak < 200


def store(tmp_path: Path) -> tuple[Path, bytes]:
    """A store with one table, and the table's bytes."""
    plyvel = pytest.importorskip("plyvel", reason="plyvel is not installed: no LevelDB can be made or read")
    database = plyvel.DB(str(tmp_path / "window"), create_if_missing=True)
    for key, value in FIGURE.items():
        database.put(key.encode(), value)
    database.compact_range()
    database.close()
    (table,) = (tmp_path / "window").glob("*.ldb")
    return table, table.read_bytes()


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def crc(block: bytes) -> bytes:
    """The checksum of a block with its compression, as LevelDB stores it."""
    value = crc32c.crc32c(block)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def table_with(block: bytes, size: int | None = None) -> bytes:
    """A table of one block, whose index says that it has so many bytes (None: as many as it has)."""
    named = varint(0) + varint(len(block) if size is None else size)
    entry = b"\0" + varint(1) + varint(len(named)) + b"z" + named
    index = entry + struct.pack("<II", 0, 1) + b"\0"
    nothing = struct.pack("<II", 0, 1) + b"\0"
    stored = block + b"\1"
    stored += crc(stored)
    metaindex = varint(len(stored)) + varint(len(nothing) - 1)
    stored += nothing + crc(nothing)
    footer = metaindex + varint(len(stored)) + varint(len(index) - 1)
    return stored + index + crc(index) + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


@pytest.mark.quarter
@pytest.mark.parametrize("size", [1 << 20, 1 << 31, 1 << 40, 1 << 62])
@pytest.mark.parametrize("where", ["footer", "index"])
def test_a_block_longer_than_its_table_is_not_given_to_leveldb(tmp_path: Path, where: str, size: int) -> None:
    """It asks for the memory before it looks; refused that, it ends the process."""
    table, data = store(tmp_path)
    if where == "footer":
        index = varint(0) + varint(9) + varint(9) + varint(size)
        table.write_bytes(data[:-48] + index.ljust(40, b"\0") + data[-8:])
    else:
        table.write_bytes(table_with(b"\1\0", size))
    ended = measured("chain", tmp_path)
    assert (ended.code, ended.out) == (65, "")
    assert f"{table.name}: part of the file cannot be read: LevelDB is not let at it" in ended.err
    assert f"a block of {size} bytes" in ended.err
    assert ended.peak < 200


@pytest.mark.parametrize("length", [17 << 20, 1 << 31, (1 << 32) - 1])
def test_a_block_is_not_inflated_beyond_the_budget(tmp_path: Path, length: int) -> None:
    """Snappy says first how long it becomes."""
    table, _ = store(tmp_path)
    table.write_bytes(table_with(varint(length) + b"\0x"))
    ended = measured("chain", tmp_path, "--max-memory", "64MiB")
    assert (ended.code, ended.out) == (65, "")
    assert f"{table.name}: a block that becomes {length} bytes is over the budget of " in ended.err
    assert ended.peak < 200


def test_an_index_in_whose_middle_reading_begins_is_not_given_to_leveldb(tmp_path: Path) -> None:
    table, _ = store(tmp_path)
    data = bytearray(table_with(b"\1\0"))
    at = data.rindex(struct.pack("<II", 0, 1))
    body = bytes(data[at - 6 : at]) + struct.pack("<II", 1, 1) + b"\0"
    data[at - 6 : at + 13] = body + crc(body)
    table.write_bytes(bytes(data))
    ended = measured("chain", tmp_path)
    assert (ended.code, ended.out) == (65, "")
    assert "its index begins to be read in the middle of an entry" in ended.err
