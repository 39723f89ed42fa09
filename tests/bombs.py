"""Small files that ask for much, and the folders that they lie in."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

RECORD = b'{"operator":"a","subtask":0,"checkpoint":1}\n'
MIB = 1 << 20
_LZ4_SEED, _LZ4_BITS = 0x9747B28C, 0x0FFFFFFF


def run_with(folder: Path, write: Callable[[Path], object] | None = None) -> Path:
    """A run with one checkpoint, and what else is written among its checkpoints."""
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints/a.jsonl").write_bytes(RECORD)
    if write is not None:
        write(folder / "checkpoints")
    return folder


def one_text_in_every_row(path: Path, rows: int, column: str = "operator", length: int = 1_000) -> None:
    """Parquet with a dictionary of one long text: 2 kB for whatever number of rows."""
    index, text = pa.array(np.zeros(rows, np.int32)), pa.array(["x" * length])
    number = pa.array(np.zeros(rows, np.int64))
    columns = {"operator": number, "subtask": number, "checkpoint": number, "ts": number}
    columns[column] = pa.DictionaryArray.from_arrays(index, text)
    pq.write_table(pa.table(columns), path, compression="zstd")


def zipped(*parts: bytes, times: int = 1) -> bytes:
    """A zip archive with the metadata of a snapshot, which is `parts` so many times."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("metadata", "w") as file:
        for _ in range(times):
            for part in parts:
                file.write(part)
    return target.getvalue()


def gzipped(part: bytes, times: int) -> bytes:
    """A gzip stream of a part so many times, made without holding them."""
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=9) as file:
        for _ in range(times):
            file.write(part)
    return target.getvalue()


def zstd(part: bytes, times: int) -> bytes:
    """A Zstandard stream of a part so many times."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for _ in range(times):
            stream.write(part)
    return bytes(sink.getvalue().to_pybytes())


def lz4_blocks(part: bytes, times: int) -> bytes:
    """A stream in which Spark writes changelogs, of a part so many times; its checksums hold."""
    packed = bytes(pa.Codec("lz4_raw").compress(part, asbytes=True))
    level = max(len(part).bit_length() - 11, 0)
    head = struct.Struct("<8sBiiI")
    checksum = xxhash.xxh32_intdigest(part, _LZ4_SEED) & _LZ4_BITS
    block = head.pack(b"LZ4Block", 0x20 | level, len(packed), len(part), checksum) + packed
    return block * times + head.pack(b"LZ4Block", 0x20 | level, 0, 0, 0)


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def sst_block(entries: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """A block of RocksDB's tables: entries as bytes shared with the key before, the rest of the key, and the value."""
    parts = [varint(shared) + varint(len(rest)) + varint(len(value)) + rest + value for shared, rest, value in entries]
    return b"".join(parts) + struct.pack("<II", 0, 1)


def sst(index: bytes, claimed: int | None = None) -> bytes:
    """A table of version 5 with an index block and no data; `claimed`: that is packed with zlib and claims so much."""
    found = b""

    def placed(block: bytes, compression: int) -> bytes:
        nonlocal found
        at = len(found)
        crc = int(crc32c.crc32c(block + bytes([compression])))
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        found += block + bytes([compression]) + struct.pack("<I", masked)
        return varint(at) + varint(len(block))

    top = placed(index if claimed is None else varint(claimed) + index, 0 if claimed is None else 2)
    properties = placed(sst_block([(0, b"rocksdb.num.entries", b"\0")]), 0)
    handles = placed(sst_block([(0, b"rocksdb.properties", properties)]), 0) + top
    return found + b"\x01" + handles.ljust(40, b"\0") + struct.pack("<I", 5) + bytes.fromhex("f7cff485b741e288")


_P1, _P2, _P5, _MASK = 11400714785074694791, 14029467366897019727, 2870177450012600261, (1 << 64) - 1
_MODULUS = (1 << 61) - 1


def tuples_of_one_hash(count: int, hashed: int = 12345) -> Iterator[tuple[int, int]]:
    """Tuples that Python gives one hash: its function, xxHash's rounds, is solved for the second number."""
    found = first = 0
    while found < count:
        first += 1
        state = (_rotated((_P5 + first * _P2) & _MASK, 31) * _P1) & _MASK
        wanted = _rotated(hashed * pow(_P1, -1, 1 << 64) & _MASK, 33)
        second = (wanted - state) * pow(_P2, -1, 1 << 64) & _MASK
        second = second if second < _MODULUS else second - (1 << 64)
        if -_MODULUS < second < _MODULUS and second not in (-1, -2):
            found += 1
            yield first, second


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK
