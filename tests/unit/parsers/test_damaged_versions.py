"""A version of which one bit is damaged against a later version, wherever a checksum covers the version.

The checksum decides: it fails, and holds with the known version, or the bytes are of a later one.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from cklog.engine.scan import Damage
from cklog.parsers.codecs.hadoop_crc import encode
from cklog.parsers.codecs.record_log import check_record_log
from cklog.parsers.codecs.sst import check_sst
from cklog.parsers.codecs.sst_blocks import decode_handle
from cklog.parsers.codecs.streams import open_stream
from cklog.parsers.kafka.segment import Segment, step
from cklog.parsers.native import file_formats
from cklog.parsers.spark import metadata_log
from cklog.parsers.spark.state.files import parts_of
from cklog.unknown_formats import UnknownFormat
from tests.builders.kafka import Row, batch, messages
from tests.builders.rocksdb import TableKind, table

UNKNOWN, DAMAGED, SOUND = "unknown", "damaged", "sound"


class Covered(NamedTuple):
    """A number that a checksum covers.

    `make`: sound bytes, and the place of the number; `bits`: those that make a later number of it, one bit and two;
    `sum`: bytes with the right checksum; `judge`: what a decoder makes of bytes, the last of them perhaps by a file
    """

    make: Callable[[Path], tuple[bytes, int]]
    one: int
    two: int
    sum: Callable[[bytes, int], bytes]
    judge: Callable[[bytes, Path], str]


def put(data: bytes, at: int, part: bytes) -> bytes:
    return data[:at] + part + data[at + len(part) :]


def masked(data: bytes) -> int:
    crc: int = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(kind: int) -> bytes:
    body = bytes([kind]) + b"body"
    return struct.pack("<IH", masked(body), 4) + body


def judge_record(data: bytes, _: Path) -> str:
    found = check_record_log(lambda at, count: data[at : at + count], len(data))
    return SOUND if found is None else UNKNOWN if found.unknown else DAMAGED


def judge_table(data: bytes, _: Path) -> str:
    found = check_sst(lambda at, count: data[at : at + count], len(data), True)
    return UNKNOWN if found.unknown else DAMAGED if found.flaw else SOUND


def sum_footer(data: bytes, _: int) -> bytes:
    footer = put(data[-53:], 5, bytes(4))
    at, (base,) = len(data) - 53, struct.unpack_from("<I", footer, 9)
    return data[:-53] + put(footer, 5, struct.pack("<I", masked(footer) + (base ^ at) & 0xFFFFFFFF))


def metaindex_end(data: bytes) -> tuple[bytes, int]:
    handle, _ = decode_handle(data[-52:], 0, 0)
    return data, handle.at + handle.size


def sum_metaindex(data: bytes, at: int) -> bytes:
    handle, _ = decode_handle(data[-52:], 0, 0)
    return put(data, at + 1, struct.pack("<I", masked(data[handle.at : at + 1])))


def judge_batch(data: bytes, folder: Path) -> str:
    path = folder / f"{0:020}.log"
    path.write_bytes(data)
    found = {}
    for check in (True, False):
        with Segment(path.as_uri(), path.name, len(data)) as segment:
            one, _ = step(segment, 0, check, ordinary=True)
        kind = one.id if isinstance(one, Damage) else SOUND
        found[check] = {SOUND: SOUND, "unknown-version": UNKNOWN}.get(kind, DAMAGED)
    assert found[False] in (found[True], SOUND)
    return found[True]


def judge_lz4(data: bytes, _: Path) -> str:
    try:
        with open_stream(pa.BufferReader(data), "lz4") as stream:
            stream.read(100)
    except OSError as error:
        return UNKNOWN if isinstance(error, UnknownFormat) else DAMAGED
    return SOUND


COVERED = {
    "kind of a record": Covered(
        lambda _: (record(1), 6), 32, 34, lambda data, at: struct.pack("<I", masked(data[at:])) + data[4:], judge_record
    ),
    "version of a table": Covered(
        lambda folder: ((data := table(folder / "t.sst", TableKind(6, "crc32c"))), len(data) - 12),
        *(8, 9),
        sum_footer,
        judge_table,
    ),
    "compression of a block": Covered(
        lambda folder: metaindex_end(table(folder / "t.sst", TableKind(5, "crc32c"))),
        16,
        24,
        sum_metaindex,
        judge_table,
    ),
    "attributes of a batch": Covered(
        lambda _: (batch(0, [Row(b"v")]), 21),
        *(2, 3),
        lambda data, _: put(data, 17, struct.pack(">I", crc32c.crc32c(data[21:]))),
        judge_batch,
    ),
    "codec of a batch": Covered(
        lambda _: (batch(0, [Row(b"v")], "gzip"), 22),
        *(4, 6),
        lambda data, _: put(data, 17, struct.pack(">I", crc32c.crc32c(data[21:]))),
        judge_batch,
    ),
    "format of a message": Covered(
        lambda _: (messages(0, [Row(b"v")], 1), 16),
        *(2, 6),
        lambda data, _: put(data, 12, struct.pack(">I", zlib.crc32(data[16:]))),
        judge_batch,
    ),
    "version of an lz4 frame": Covered(
        lambda _: (pa.compress(b"text" * 9, codec="lz4", asbytes=True), 4),
        *(0x80, 0xC0),
        lambda data, _: put(data, 6, bytes([xxhash.xxh32_intdigest(data[4:6]) >> 8 & 0xFF])),
        judge_lz4,
    ),
}


@pytest.mark.parametrize("name", COVERED)
def test_a_checksum_tells_a_damaged_bit_of_a_version_from_a_later_version(name: str, tmp_path: Path) -> None:
    make, one, two, sum_again, judge = COVERED[name]
    data, at = make(tmp_path)
    assert judge(data, tmp_path) == SOUND

    def changed(bits: int) -> bytes:
        return put(data, at, bytes([data[at] ^ bits]))

    assert judge(changed(one), tmp_path) == DAMAGED
    assert judge(changed(two), tmp_path) == UNKNOWN
    for bits in (one, two):
        assert judge(sum_again(changed(bits), at), tmp_path) == UNKNOWN
    other = put(changed(one), len(data) - 1, bytes([data[-1] ^ 1]))  # the checksum holds with no known version
    if name not in ("compression of a block", "version of an lz4 frame", "version of a table"):
        assert judge(other, tmp_path) == UNKNOWN


def zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("metadata", b'v1\n{"sstFiles":[],"logFiles":[],"numKeys":0}')
    return made.getvalue()


def parquet() -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"n": range(900)}), made)
    return made.getvalue()


def parquet_version(data: bytes) -> int:
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert data[start : start + 2] == b"\x15\x04"
    return start + 1


def is_damaged_file(path: str) -> Callable[[bytes, bytes], bool]:
    def is_damaged(data: bytes, sums: bytes) -> bool:
        assert isinstance(file_formats.format_fault(path, lambda: pa.BufferReader(data), True), UnknownFormat)
        return file_formats.is_bit_damaged(path, data, sums)

    return is_damaged


FILES: dict[str, tuple[bytes, Callable[[bytes], int], int, int, Callable[[bytes, bytes], bool]]] = {
    "gzip": (gzip.compress(b"lines" * 900, mtime=0), lambda _: 2, 1, 3, is_damaged_file("a.jsonl.gz")),
    "parquet": (parquet(), parquet_version, 2, 10, is_damaged_file("a.parquet")),
    "text of Spark": (
        b'v1\n{"nextBatchWatermarkMs":0}',
        lambda _: 1,
        *(8, 6),
        lambda data, sums: metadata_log.is_bit_damaged(data, sums, metadata_log.decode_commit),
    ),
    "snapshot of Spark": (
        zipped(),
        lambda _: 8,
        *(16, 24),
        lambda data, sums: metadata_log.is_bit_damaged(data, sums, parts_of),
    ),
}


@pytest.mark.parametrize("chunk", [512, 77])
@pytest.mark.parametrize("name", FILES)
def test_a_side_file_tells_a_damaged_bit_of_a_version_from_a_later_version(name: str, chunk: int) -> None:
    data, place, one, two, is_damaged = FILES[name]
    at, sums = place(data), encode(data, chunk)
    for bits in (one, two):
        changed = put(data, at, bytes([data[at] ^ bits]))
        assert is_damaged(changed, sums) == (bits == one)
        assert not is_damaged(changed, encode(changed, chunk))
        assert not is_damaged(changed, b"")
        assert not is_damaged(changed, sums[:-4])
        later = put(changed, len(data) - 9, bytes([data[-9] ^ 1]))
        if bits == two and name == "gzip":
            assert not is_damaged(later, encode(changed, chunk))  # one bit is damaged, and the version is unknown
