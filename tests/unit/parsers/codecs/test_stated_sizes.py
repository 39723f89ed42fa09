"""Formats whose blocks state what they hold: a block that holds something else is damage, in each of them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.parsers.codecs.avro import NotAvro, records_of
from cklog.parsers.codecs.block_checksums import decompress_block
from cklog.parsers.codecs.decompression import DecompressionError
from cklog.parsers.sink_tables.files import NoJson
from cklog.parsers.sink_tables.iceberg import _inflated
from cklog.parsers.spark.metadata_log import Damaged
from cklog.parsers.spark.state.lz4_blocks import HEADER, MAGIC, decoded
from tests.builders.compressed import short_pages
from tests.builders.compressed.codecs import CODECS
from tests.builders.lakes.avro import SYNC, container, long

PLAIN = b"a state of 64 bytes or so, again a state of 64 bytes or so, again"
ROCKSDB = {2: "deflate", 3: "bz2", 4: "lz4_raw", 5: "lz4_raw", 7: "zstd"}
OTHER_SIZES = [len(PLAIN) + 1, len(PLAIN) + 40, len(PLAIN) - 1]


def rocksdb_block(size: int, compression: int) -> bytes:
    return bytes([size]) + CODECS[ROCKSDB[compression]](PLAIN)


@pytest.mark.parametrize("compression", ROCKSDB)
def test_a_block_of_rocksdb_holds_what_its_length_says(compression: int) -> None:
    assert decompress_block(rocksdb_block(len(PLAIN), compression), compression, 5, 1 << 20) == PLAIN
    for size in OTHER_SIZES:
        with pytest.raises(DecompressionError, match=ROCKSDB[compression]):
            decompress_block(rocksdb_block(size, compression), compression, 5, 1 << 20)
    with pytest.raises(DecompressionError, match=ROCKSDB[compression]):
        decompress_block(rocksdb_block(len(PLAIN), compression) + b"\0", compression, 5, 1 << 20)


def spark_stream(size: int) -> bytes:
    """A stream whose only block states so many bytes; nothing proves its bytes but the checksum of the whole file."""
    packed = CODECS["lz4_raw"](PLAIN)
    return HEADER.pack(MAGIC, 0x25, len(packed), size, 0) + packed + HEADER.pack(MAGIC, 0x15, 0, 0, 0)


def test_a_block_of_a_spark_state_file_holds_what_its_header_says() -> None:
    assert b"".join(decoded([spark_stream(len(PLAIN))], prove=False)) == PLAIN
    for size in OTHER_SIZES:
        with pytest.raises(Damaged, match="cannot be decompressed"):
            list(decoded([spark_stream(size)], prove=False))


CHECKSUM = zlib.adler32(long(7)).to_bytes(4, "big")


@pytest.mark.parametrize(("rest", "right"), [(CHECKSUM[:3], True), (b"", True), (b"\0\0\0", False), (b"x", False)])
def test_after_a_deflated_block_of_avro_nothing_stands_but_a_checksum(rest: bytes, right: bool) -> None:
    """Avro's library and pyiceberg write zlib's stream without its header and its last byte."""
    empty = container("long", [], "deflate")
    head = empty[: empty.index(SYNC) + len(SYNC)]
    block = zlib.compress(long(7), wbits=-15) + rest
    data = head + long(1) + long(len(block)) + block + SYNC
    if right:
        assert list(records_of(data)) == [7]
    else:
        with pytest.raises(NotAvro, match="follow"):
            list(records_of(data))


@pytest.mark.parametrize(
    "damaged", [lambda data: data[:-1], lambda data: data + b"rest", lambda data: data[:20] + b"\0" + data[21:]]
)
def test_compressed_metadata_of_iceberg_are_one_complete_stream(damaged: Callable[[bytes], bytes]) -> None:
    data = gzip.compress(PLAIN)
    assert _inflated(data) == PLAIN
    assert _inflated(data + data) == 2 * PLAIN
    with pytest.raises(NoJson):
        _inflated(damaged(data))


@pytest.mark.parametrize("dictionary", [False, True], ids=["values", "dictionary"])
@pytest.mark.parametrize("size", ["shorter", "longer"])
@pytest.mark.parametrize("codec", short_pages.CODECS)
def test_arrow_refuses_pages_of_another_size(codec: str, size: short_pages.Size, dictionary: bool) -> None:
    """What loops do not decode, Arrow's reader does: in every version that is allowed it has to compare both sizes."""
    table = pa.table({"channel": ["a"] * 900, "seq": range(900)})
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(pa.BufferReader(short_pages.file_with_page(table, codec, "seq", size, dictionary)))
