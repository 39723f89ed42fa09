"""Blocks are decompressed to exactly the stated size: what the codecs' own libraries produce, or an error."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from typing import Any

import pyarrow as pa
import pytest

from cklog.parsers.codecs.decompression import (
    DecompressionError,
    ExcessOutput,
    decompress,
    decompress_to_array,
    inflate,
    lz4_size,
    snappy_size,
)
from cklog.parsers.codecs.zip_archives import BadArchive, read_member
from tests.builders.compressed.codecs import CODECS
from tests.loop_forms import FORMS, forced

TEXT = b"".join(b'{"key":%d,"value":"%d"}\n' % (i % 7, i * i) for i in range(900))
PLAINS = {
    "nothing": b"",
    "a byte": b"x",
    "zeros": bytes(70_000),
    "text": TEXT,
    "noise": random.Random(1).randbytes(999),
}
PLAINS |= {f"noise of {size} bytes": random.Random(size).randbytes(size) for size in (1 << 16, 1 << 22, (1 << 22) + 1)}
"""Compressed it is longer; up to 4 MiB it could be in a frame of LZ4."""


@pytest.mark.quarter
@pytest.mark.parametrize("plain", PLAINS.values(), ids=PLAINS)
@pytest.mark.parametrize("codec", CODECS)
def test_a_block_of_the_stated_size_is_what_was_compressed(codec: str, plain: bytes) -> None:
    packed = CODECS[codec](plain)
    assert decompress(codec, packed, len(plain)) == plain
    assert decompress_to_array(codec, packed, len(plain)).tobytes() == plain


@pytest.mark.parametrize("plain", [PLAINS["zeros"], TEXT], ids=["zeros", "text"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_block_of_another_size_is_an_error(codec: str, plain: bytes) -> None:
    """Shorter by a byte, by a dozen (where LZ4 has rules of its own for a block's end), by half; and longer."""
    packed, size = CODECS[codec](plain), len(plain)
    for stated in (*range(size + 1, size + 14), 2 * size, size - 1, size - 13, 1, 0, -1):
        for way in (decompress, decompress_to_array):
            with pytest.raises(DecompressionError, match=codec):
                way(codec, packed, stated)


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_after_the_end_of_a_block_are_an_error(codec: str) -> None:
    packed = CODECS[codec](TEXT)
    for rest in (b"\0", b"\0\0\0\0", b"more", CODECS[codec](b"")):
        if codec == "zstd" and rest == CODECS[codec](b""):
            continue  # frames may follow each other: Zstandard's own decoder goes on with them
        with pytest.raises(DecompressionError):
            decompress(codec, packed + rest, len(TEXT))


@pytest.mark.parametrize("codec", CODECS)
def test_an_incomplete_block_is_an_error(codec: str) -> None:
    packed = CODECS[codec](TEXT)
    for cut in (*range(1, 40), len(packed) // 2, len(packed) - 1):
        with pytest.raises(DecompressionError):
            decompress(codec, packed[:-cut], len(TEXT))


def other_size(lz4: Any, packed: bytes, most: int) -> int | None:
    """How many bytes LZ4's own decoder produces within a limit; None where it refuses the block."""
    try:
        return len(lz4.decompress(packed, uncompressed_size=most))
    except lz4.LZ4BlockError:
        return None


@pytest.mark.parametrize("form", FORMS)
def test_the_size_of_a_damaged_lz4_block_is_what_lz4_produces(form: str) -> None:
    """LZ4's own decoder tells how much it produced, as Arrow's does not."""
    block = pytest.importorskip("lz4.block", reason="python-lz4, the other decoder, is not installed")
    chance, agreed = random.Random(7), 0
    for _ in forced(form):
        for _ in range(400):
            packed = bytearray(CODECS["lz4_raw"](chance.choice([TEXT[: chance.randrange(900)], bytes(300)])))
            for _ in range(chance.randrange(3)):
                packed[chance.randrange(len(packed))] = chance.choice([0, 1, 15, 31, 240, 255, chance.randrange(256)])
            expected = other_size(block, bytes(packed), 1 << 16)
            if expected is None:
                continue
            assert lz4_size(bytes(packed)) == expected
            for stated in {expected, expected + 1, max(expected - 1, 0)}:
                try:
                    found = decompress("lz4_raw", bytes(packed), stated)
                except DecompressionError:
                    continue
                assert stated == expected
                assert found == block.decompress(bytes(packed), uncompressed_size=stated)
                agreed += 1
    assert agreed > 200


@pytest.mark.parametrize("packed", [b"", b"\x80", b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x1f"])
def test_a_snappy_block_without_a_length_is_an_error(packed: bytes) -> None:
    """The last has more than 32 bits, which Snappy refuses as well."""
    with pytest.raises(DecompressionError):
        snappy_size(packed)
    with pytest.raises((OSError, pa.ArrowInvalid)):
        pa.Codec("snappy").decompress(packed, 0)


def test_a_deflated_stream_may_be_followed_and_may_not_be_larger_than_allowed() -> None:
    packed = CODECS["deflate"](TEXT)
    assert inflate(packed + b"rest", len(TEXT)) == (TEXT, b"rest")
    with pytest.raises(ExcessOutput):
        inflate(packed, len(TEXT) - 1)


def zipped(stated: int) -> bytes:
    """An archive whose metadata hold 6 bytes, and are said to hold so many."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", b"orders")
    data, central = bytearray(file.getvalue()), file.getvalue().index(b"PK\x01\x02")
    struct.pack_into("<I", data, 22, stated)
    struct.pack_into("<I", data, central + 24, stated)
    return bytes(data)


def test_a_member_of_a_zip_archive_holds_what_the_archive_states() -> None:
    """Its CRC-32 is right in each."""
    assert read_member(zipped(6), "metadata") == b"orders"
    for stated in (5, 7):
        with pytest.raises(BadArchive):
            read_member(zipped(stated), "metadata")
    with pytest.raises(BadArchive, match="no manifest"):
        read_member(zipped(6), "manifest")
