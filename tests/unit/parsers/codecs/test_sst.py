"""Tables of RocksDB against tables that RocksDB wrote: none is called damaged, and no flipped bit is missed."""

from __future__ import annotations

import itertools
import random
import struct
from pathlib import Path

import pytest

from cklog.parsers.codecs.block_checksums import masked_crc32c
from cklog.parsers.codecs.sst import SstCheck, check_sst
from cklog.parsers.codecs.sst_blocks import SstFlaw, decode_handle, entries
from tests.builders.rocksdb import CHECKSUMS, COMPRESSIONS, VERSIONS, TableKind, table

MAGIC = bytes.fromhex("f7cff485b741e288")
LEGACY_MAGIC = bytes.fromhex("57fb808b247547db")
FLIPPED = (
    TableKind(2, "crc32c", "snappy"),
    TableKind(4, "crc32c", "zstd"),
    TableKind(5, "xxh3", "none"),
    TableKind(5, "xxh3", "snappy", parts=True),
    TableKind(5, "xxhash", "zlib"),
    TableKind(6, "crc32c", "lz4", parts=True),
    TableKind(6, "xxh3", "none"),
    TableKind(7, "xxhash64", "zstd"),
)


def check(data: bytes, every_block: bool = True) -> SstCheck:
    return check_sst(lambda at, count: data[at : at + count], len(data), every_block)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("checksum", CHECKSUMS)
def test_a_table_that_rocksdb_wrote_is_whole(version: int, checksum: str, tmp_path: Path) -> None:
    """And every byte of it is in a block that was checked, but the checksums themselves and the footer."""
    for compression, parts in itertools.product(COMPRESSIONS, (False, True)):
        kind = TableKind(version, checksum, compression, parts)
        data = table(tmp_path / "t.sst", kind)
        for every_block in (False, True):
            found = check(data, every_block)
            assert found.flaw is None, kind
            assert found.unchecked == ("its blocks have no checksums" if checksum == "no_checksum" else ""), kind
        if checksum != "no_checksum":
            assert found.bytes + 4 * found.blocks + 53 == len(data), kind


@pytest.mark.quarter
@pytest.mark.parametrize("kind", FLIPPED, ids=str)
def test_no_flipped_bit_is_missed(kind: TableKind, tmp_path: Path) -> None:
    """Every byte in turn: all by the full check; the footer, and what leads from it to the data, by the cheap one."""
    data = table(tmp_path / "t.sst", kind, entries=60)
    chance = random.Random(1)
    missed = {False: [], True: []}  # type: dict[bool, list[int]]
    for at in range(len(data)):
        bit = 1 << chance.randrange(8)
        if at == len(data) - 12 and kind.version < 6:
            bit = 8  # versions 2 to 5 differ in nothing that a flip between them would show
        flipped = bytearray(data)
        flipped[at] ^= bit
        for every_block, places in missed.items():
            found = check(bytes(flipped), every_block)
            if found.flaw is None and found.unknown is None:
                places.append(at)
    assert missed[True] == []
    assert missed[False] == list(range(len(missed[False])))  # one run of bytes from the start on: data and filters
    first_property = data.find(b"rocksdb.block.based.table.index.type")
    assert 0 < len(missed[False]) < first_property


def test_zeros_and_cuts_are_found(tmp_path: Path) -> None:
    data = table(tmp_path / "t.sst")
    for every_block in (False, True):
        assert check(bytes(len(data)), every_block).flaw is not None
        for size in (0, 1, 8, 47, 48, 52, 53, 60, 500, len(data) - 1):
            assert check(data[:size], every_block).flaw is not None, size
            assert check(data[-size or len(data) :], every_block).flaw is not None or not size, size
    half = len(data) // 2
    assert check(bytes(half) + data[half:]).flaw is not None


def test_a_version_to_come_is_not_called_damaged(tmp_path: Path) -> None:
    import crc32c

    data = table(tmp_path / "t.sst", TableKind(6, "crc32c"))
    footer = bytearray(data[-53:])
    footer[41:45] = struct.pack("<I", 9)
    footer[5:9] = bytes(4)
    crc = crc32c.crc32c(bytes(footer))
    at, (base,) = len(data) - 53, struct.unpack_from("<I", footer, 9)
    summed = ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF) + (base ^ at) & 0xFFFFFFFF
    footer[5:9] = struct.pack("<I", summed)
    found = check(data[:-53] + bytes(footer))
    assert (found.flaw, found.unchecked) == (None, "its version is 9, known are 0 to 7")
    footer[6] ^= 1
    assert check(data[:-53] + bytes(footer)).unknown is not None  # a later version may sum it in another way
    footer[41:45] = struct.pack("<I", 7)
    assert check(data[:-53] + bytes(footer)).flaw is not None


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_an_index_names_as_many_blocks_as_the_properties_say(more: int, tmp_path: Path) -> None:
    """In a table without checksums nothing else tells of an index that is another table's, or was cut."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "no_checksum"), entries=60))
    at = data.index(b"num.data.blocks") + len(b"num.data.blocks")
    blocks = data[at]
    assert 1 < blocks < 120, "a number of one byte"
    data[at] += more
    found = check(bytes(data)).flaw
    assert (found is None) == (more == 0)
    if found is not None:
        assert found.why == f"its index names {blocks} data blocks, its properties say {blocks + more}"


@pytest.mark.parametrize(
    ("version", "mark"), [(6, b"\0\0\0\0"), (1 << 20, b"\0\0\0\0"), (5, b"\x3e\0\x7a\0"), (0, b"\0" * 4)]
)
def test_a_footer_is_laid_out_as_its_version_says(version: int, mark: bytes, tmp_path: Path) -> None:
    """From 6 on it begins with a mark of its own, before with what leads to the index; 5 with the mark is neither."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "crc32c")))
    data[-12:-8] = struct.pack("<I", version)
    if any(mark):
        data[-52:-48] = mark
    found = check(bytes(data)).flaw
    assert found is not None
    if not any(mark):
        assert (found.at, found.why) == (len(data) - 12, f"its footer says version {version}, and is not laid out so")


def test_the_legacy_footer(tmp_path: Path) -> None:
    """Before version 1 a footer has neither type nor version: made of a table of version 2, which is laid out alike."""
    data = table(tmp_path / "t.sst", TableKind(2, "crc32c"))
    legacy = data[:-53] + data[-52:-12] + LEGACY_MAGIC
    assert data.endswith(MAGIC)
    assert check(legacy).flaw is None
    assert check(legacy).blocks == check(data).blocks
    assert check(legacy[:100] + b"\xff" + legacy[101:]).flaw is not None


def test_hostile_bytes_end_in_a_flaw(tmp_path: Path) -> None:
    """Whatever the footer and the blocks say, nothing else is raised, and nothing is read that is not there."""
    chance = random.Random(5)
    data = table(tmp_path / "t.sst", TableKind(5, "no_checksum"), entries=60)  # nothing stops a change of its blocks
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 2, 8))):
            at = len(data) - 1 - int(chance.expovariate(1 / 300)) % len(data)
            changed[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        found = check(bytes(changed))
        assert found.flaw is None or 0 <= found.flaw.at <= len(data) + 53


def test_real_tables_are_whole(shared_data: Path) -> None:
    """Those of Flink's RocksDB and ForSt, of Spark, and of Kafka Streams' layout."""
    count = 0
    for path in sorted(shared_data.rglob("*")):
        if path.is_file() and (data := path.read_bytes()).endswith(MAGIC):
            assert check(data).flaw is None, path
            count += 1
    assert count > 100


def test_properties_ascend(tmp_path: Path) -> None:
    """RocksDB refuses others, though their checksum holds."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "crc32c")))
    at = data.index(b"rocksdb.block.based.table.index.type") - 3
    ends = range(at, len(data) - 60)
    end = next(e for e in ends if data[e : e + 4] == struct.pack("<I", masked_crc32c(bytes(data[at:e]))))
    data[data.index(b"prefix.filtering")] = ord("a")
    struct.pack_into("<I", data, end, masked_crc32c(bytes(data[at:end])))
    found = check(bytes(data)).flaw
    assert found is not None
    assert (found.at, found.why) == (at, "its properties do not ascend")


def test_what_is_added_to_checksums_is_not_0(tmp_path: Path) -> None:
    data = bytearray(table(tmp_path / "t.sst", TableKind(6, "crc32c")))
    data[-44:-40] = bytes(4)
    footer = data[-53:]
    struct.pack_into("<I", data, len(data) - 48, masked_crc32c(bytes(footer[:5] + bytes(4) + footer[9:])))
    found = check(bytes(data)).flaw
    assert found is not None
    assert "0 for what is added to checksums" in found.why


def test_a_table_without_properties_is_none_of_rocksdb(tmp_path: Path) -> None:
    """It writes them into every table, and reads an index otherwise where they are not found."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "crc32c")))
    name = data.rindex(b"rocksdb.properties")
    ends = range(name, len(data) - 52)
    starts = range(name, name - 200, -1)
    sums = [(e, data[e : e + 4]) for e in ends]
    at, end = next(
        (s, e) for s in starts for e, stored in sums if stored == struct.pack("<I", masked_crc32c(bytes(data[s:e])))
    )
    data[name] = ord("t")
    struct.pack_into("<I", data, end, masked_crc32c(bytes(data[at:end])))
    found = check(bytes(data)).flaw
    assert found is not None
    assert (found.at, found.why) == (at, "its metaindex names no properties")


@pytest.mark.parametrize(
    ("restart", "why"),
    [
        (0, "a block whose first restart point is not its first entry"),
        (1, "a block whose restart point {} is no entry that has its whole key"),
    ],
)
def test_a_restart_point_is_an_entry(restart: int, why: str, tmp_path: Path) -> None:
    """RocksDB begins there to look for a name, and finds nothing of it: the checksum holds all the same."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "no_checksum")))
    metaindex, _ = decode_handle(bytes(data[-52:]), 0, 0)
    end = metaindex.at + metaindex.size
    (count,) = struct.unpack_from("<I", data, end - 4)
    assert count > 1
    at = end - 4 * (count + 1 - restart)
    (place,) = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, place + 1)
    found = check(bytes(data), False).flaw
    assert found is not None
    assert (found.at, found.why) == (metaindex.at, why.format(place + 1))


def test_a_metaindex_that_is_compressed_in_an_unknown_way_is_not_called_damaged(tmp_path: Path) -> None:
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "no_checksum")))
    metaindex, _ = decode_handle(bytes(data[-52:]), 0, 0)
    data[metaindex.at + metaindex.size] = 0xFF
    found = check(bytes(data))
    assert found.flaw is None
    assert found.unknown is not None
    assert found.unchecked == "its metaindex block has compression 255, known are 0 to 7"


def test_the_parts_of_an_index_are_not_taken_for_data(tmp_path: Path) -> None:
    """Where the property that says so is damaged, what the index leads to would be checked, and the data not at all."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "no_checksum", parts=True), entries=1))
    assert check(bytes(data)).flaw is None
    data[data.index(b"table.index.type") + len(b"table.index.")] = ord("T")
    found = check(bytes(data)).flaw
    assert found is not None
    assert "its first data block would be at byte" in found.why


def test_properties_that_cannot_be_read_hide_no_damage(tmp_path: Path) -> None:
    """A look at every block finds what a quick look finds, too, which does not read the properties."""
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "crc32c")))
    at = data.index(b"rocksdb.block.based.table.index.type") - 3
    ends = range(at, len(data) - 60)
    end = next(e for e in ends if data[e : e + 4] == struct.pack("<I", masked_crc32c(bytes(data[at:e]))))
    data[end - 1] = 0xFF
    struct.pack_into("<I", data, end, masked_crc32c(bytes(data[at:end])))
    assert check(bytes(data)).unchecked == "its properties block has compression 255, known are 0 to 7"
    _, place = decode_handle(bytes(data[-52:]), 0, 0)
    index, _ = decode_handle(bytes(data[-52:]), place, 0)
    data[index.at] ^= 1
    found = [check(bytes(data), every_block).flaw for every_block in (False, True)]
    assert [flaw and flaw.at for flaw in found] == [index.at, index.at]


@pytest.mark.parametrize("kind", [3, 114])
def test_an_index_of_another_type_is_not_called_damaged(kind: int, tmp_path: Path) -> None:
    data = bytearray(table(tmp_path / "t.sst", TableKind(5, "no_checksum")))
    data[data.index(b"table.index.type") + len(b"table.index.type")] = kind
    found = check(bytes(data))
    assert (found.flaw, found.unknown is None) == (None, kind == 3)
    assert found.unchecked == f"its index is of the type {kind}{'' if kind == 3 else ', known are 0 to 3'}"


def block(*rows: tuple[int, bytes, bytes], restarts: tuple[int, ...], deltas: bool = False) -> bytes:
    """A block of entries (shared bytes, rest of the key, value), whose rows of number `restarts` are restart points."""
    places, data = [], b""
    for shared, rest, value in rows:
        places.append(len(data))
        lengths = (shared, len(rest)) if deltas else (shared, len(rest), len(value))
        data += bytes(lengths) + rest + value
    points = [places[row] for row in restarts]
    return data + struct.pack(f"<{len(points) + 1}I", *points, len(points))


ROWS = ((0, b"apple", b"1"), (5, b"s", b"2"), (2, b"ricot", b""), (0, b"bee", b"3"), (2, b"t", b"4"))


def test_keys_between_restart_points_share_the_bytes_of_the_one_before() -> None:
    found = [row[:2] + row[3:] for row in entries(block(*ROWS, restarts=(0, 3)), 7, deltas=False)]
    assert found == [
        (b"apple", b"1", 0),
        (b"apples", b"2", 5),
        (b"apricot", b"", 2),
        (b"bee", b"3", 0),
        (b"bet", b"4", 2),
    ]


def test_handles_between_restart_points_are_one_number() -> None:
    rows = ((0, b"apple", bytes([0x80, 0x01, 40])), (5, b"s", bytes([3])), (0, b"bee", bytes([9, 41])))
    found = [row[:2] for row in entries(block(*rows, restarts=(0, 2), deltas=True), 7, deltas=True)]
    assert found == [(b"apple", bytes([0x80, 0x01, 40])), (b"apples", bytes([3])), (b"bee", bytes([9, 41]))]


@pytest.mark.parametrize("row", [1, 2, 4])
def test_an_entry_that_shares_bytes_is_no_restart_point(row: int) -> None:
    """A reader that begins there takes `s` for the whole key of `apples`."""
    data = block(*ROWS, restarts=tuple(sorted({0, 3, row})))
    with pytest.raises(SstFlaw, match=r"whose restart point \d+ is no entry that has its whole key") as found:
        list(entries(data, 7, deltas=False))
    assert found.value.at == 7


def test_an_entry_shares_no_more_than_there_is() -> None:
    rows = ((0, b"apple", b"1"), (6, b"s", b"2"))
    with pytest.raises(SstFlaw, match="an entry that is longer than the block"):
        list(entries(block(*rows, restarts=(0,)), 7, deltas=False))
