"""Streams and zips of Spark's state files: hashes, cuts, flips, hostile lengths."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.errors import OverBudget
from cklog.parsers.codecs.byte_stream import ByteStream
from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.spark.metadata_log import Damaged
from cklog.parsers.spark.state.files import SnapshotFile, parts_of
from cklog.parsers.spark.state.lz4_blocks import HEADER, MAGIC, SEED, decoded
from tests.builders.spark_state import snapshot, stream, zipped

P1, P2, P3, P4, P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def one_by_one(data: bytes, seed: int) -> int:
    """XXH32 as its specification tells it, for one block."""
    at, value = 0, (seed + P5) & 0xFFFFFFFF
    if len(data) >= 16:
        sums = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while at + 16 <= len(data):
            lanes = struct.unpack_from("<4I", data, at)
            sums = [rotated(s + lane * P2, 13) * P1 for s, lane in zip(sums, lanes, strict=True)]
            at += 16
        value = sum(rotated(s, bits) for s, bits in zip(sums, (1, 7, 12, 18), strict=True))
    value += len(data)
    while at + 4 <= len(data):
        value = rotated(value + struct.unpack_from("<I", data, at)[0] * P3, 17) * P4
        at += 4
    for byte in data[at:]:
        value = rotated(value + byte * P5, 11) * P1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * P2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * P3 & 0xFFFFFFFF
    return value ^ value >> 16


@given(st.lists(st.binary(max_size=90), max_size=12), st.sampled_from([0, SEED, 2**32 - 1]))
def test_many_hashes_at_once_are_those_of_each_block(blocks: list[bytes], seed: int) -> None:
    assert xxh32(blocks, seed) == [one_by_one(block, seed) for block in blocks]


@given(st.binary(max_size=200), st.integers(1, 60), st.integers(1, 50))
def test_a_stream_in_any_pieces_gives_its_bytes(plain: bytes, size: int, piece: int) -> None:
    data = stream(plain, size)
    chunks = [data[at : at + piece] for at in range(0, len(data), piece)]
    assert b"".join(decoded(chunks)) == plain


@given(st.binary(min_size=1, max_size=120), st.data())
def test_no_cut_and_no_flipped_bit_of_a_stream_goes_unseen(plain: bytes, data: st.DataObject) -> None:
    """But for bits that do not matter: the level in a token, and a stored block is not told from its twin."""
    whole = stream(plain, 50)
    with pytest.raises(Damaged):
        list(decoded([whole[: data.draw(st.integers(0, len(whole) - 1))]]))
    at, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    flipped = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    with contextlib.suppress(Damaged):
        assert b"".join(decoded([flipped])) == plain


@pytest.mark.parametrize(
    "hostile",
    [
        HEADER.pack(MAGIC, 0x2F, 2**31 - 1, 2**31 - 1, 0),
        HEADER.pack(MAGIC, 0x2F, 2**31 - 1, 10, 0),
        HEADER.pack(MAGIC, 0x25, -1, 10, 0),
        HEADER.pack(MAGIC, 0x15, 9, 10, 0) + b"x" * 9,
        HEADER.pack(MAGIC, 0x25, 5, 30000, 0) + b"\xff" * 5,
        b"LZ4Block",
        b"",
    ],
)
def test_a_hostile_length_is_refused_before_it_is_believed(hostile: bytes) -> None:
    with pytest.raises(Damaged):
        list(decoded([hostile]))


def test_a_snapshot_names_its_files() -> None:
    assert parts_of(snapshot(("b.sst", 2), ("a.sst", 1))) == (
        SnapshotFile("SSTs/a.sst", 1),
        SnapshotFile("SSTs/b.sst", 2),
    )
    logs = {"sstFiles": [], "logFiles": [{"localFileName": "1.log", "dfsLogFileName": "1-x.log", "sizeBytes": 3}]}
    assert parts_of(zipped(b"v1\n" + json.dumps(logs).encode())) == (SnapshotFile("logs/1-x.log", 3),)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        zipped(None),
        zipped(b""),
        zipped(b"v1\n"),
        zipped(b"v1\n[]"),
        zipped(b"v1\n" + b"[" * 100_000),
        zipped(b'v1\n{"sstFiles":[{"localFileName":"a","sizeBytes":-1}]}'),
        zipped(b'v1\n{"sstFiles":[{"localFileName":"../../../etc/passwd","sizeBytes":1}]}'),
        zipped(b'v1\n{"sstFiles":[{"localFileName":"a","sizeBytes":true}]}'),
        zipped(b'v1\n{"sstFiles":7}'),
        zipped(b"v2\n{}"),
        zipped(b"v1\n{}")[:-30],
    ],
    ids=range(13),
)
def test_a_hostile_zip_is_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        parts_of(data)


@given(st.data())
def test_random_damage_to_a_zip_is_damage_or_none(data: st.DataObject) -> None:
    whole = bytearray(snapshot(("a.sst", 1), ("b.sst", 2)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Damaged):
        parts_of(bytes(whole))


def test_a_zip_of_another_method_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("metadata", b'v1\n{"sstFiles":[]}')
    with pytest.raises(Damaged, match="method 14"):
        parts_of(file.getvalue())


def test_a_zip_bomb_is_refused() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("metadata", "w") as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    with pytest.raises(OverBudget, match="what the archive unpacks to is over the budget of 268435456"):
        parts_of(bomb.getvalue())


def test_a_stream_of_blocks_reads_no_further_than_it_is_asked_for() -> None:
    """What lies behind may be damaged, or not be there: it is no business of the bytes before it."""

    def chunks() -> Iterator[bytes]:
        yield b"abc"
        yield b"d"
        raise OSError("there is no more")

    stream = ByteStream(chunks())
    assert (stream.take(3), stream.at) == (b"abc", 3)
    assert (stream.take(1), stream.at) == (b"d", 4)
    with pytest.raises(OSError, match="no more"):
        stream.take(1)
    short = ByteStream([b"ab", b"c"])
    assert (short.take(2), short.take(5), short.take(1), short.at) == (b"ab", b"c", b"", 3)


def test_the_end_of_an_lz4_stream_has_no_checksum() -> None:
    """lz4-java refuses another one: a bit of the end block is as damaged as any other."""
    plain = HEADER.pack(MAGIC, 0x15, 3, 3, xxh32([b"abc"], SEED)[0] & 0x0FFFFFFF) + b"abc"
    assert list(decoded([plain + HEADER.pack(MAGIC, 0x15, 0, 0, 0)])) == [b"abc"]
    with pytest.raises(Damaged, match="the end of its stream has a checksum"):
        list(decoded([plain + HEADER.pack(MAGIC, 0x15, 0, 0, 1)]))
