"""Parquet files of which one page holds less, or more, than its header states; nothing else of them is wrong."""

from __future__ import annotations

import struct
import zlib
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cklog.arrays.loops import only_read
from cklog.parsers.tables.parquet_headers import AT, BYTES, FIELDS, HEADERS, STORED, TYPE

Size = Literal["shorter", "longer"]
CODECS = ("gzip", "snappy", "zstd")

_DICTIONARY_PAGE = 2
_PAGE_BYTES = 4096
_SKIPPABLE = 0x184D2A50


def file_with_page(table: pa.Table, codec: str, column: str, size: Size | None, dictionary: bool = False) -> bytes:
    """Write a table, and put in place of a column's last page a valid block that holds fewer or more bytes.

    A shorter block holds the beginning of what the page held. `dictionary`: replace the page of the dictionary instead,
    of which the others have indices. `size`: None for the file as it is, with the same footer.
    """
    sink = pa.BufferOutputStream()
    encoded = [*{"channel", column}] if dictionary else ["channel"]
    more = {"data_page_size": _PAGE_BYTES, "write_statistics": False}  # by statistics a reader passes over the rows
    pq.write_table(table, sink, compression=codec, use_dictionary=encoded, **more)
    data = bytearray(sink.getvalue().to_pybytes())
    if size is None:
        return bytes(data)
    about = pq.read_metadata(pa.BufferReader(bytes(data))).row_group(0).column(table.column_names.index(column))
    start = about.dictionary_page_offset or about.data_page_offset
    chunk = np.frombuffer(bytes(data[start : start + about.total_compressed_size]), np.uint8)
    found = np.zeros(FIELDS << 10, np.int64)
    count = HEADERS.interpreted((only_read(chunk), np.zeros(8, np.int64), found))
    page = [row for row in found.reshape(-1, FIELDS)[:count] if (row[TYPE] == _DICTIONARY_PAGE) == dictionary][-1]
    at, stored, stated = int(page[AT]), int(page[STORED]), int(page[BYTES])
    plain: bytes = pa.Codec(codec).decompress(chunk[at : at + stored], stated, asbytes=True)
    data[start + at : start + at + stored] = _block(codec, plain, stored, size)
    return bytes(data)


def _block(codec: str, plain: bytes, stored: int, size: Size) -> bytes:
    """Compress other bytes into a block that is as long as the one of `plain` was."""
    if codec == "snappy":
        return _snappy(plain, stored, size)
    other = plain[: len(plain) // 2] if size == "shorter" else bytes(len(plain) + 64)
    if codec == "gzip":  # its header has a name of the length that makes up for the rest
        packed = zlib.compress(other, 9, wbits=31)
        found = packed[:3] + b"\x08" + packed[4:10] + b"n" * (stored - len(packed) - 1) + b"\0" + packed[10:]
    else:  # a frame that decoders skip makes up for the rest
        packed = pa.compress(other, "zstd", asbytes=True)
        spare = stored - len(packed) - 8
        found = struct.pack("<II", _SKIPPABLE, spare) + bytes(spare) + packed
    assert len(found) == stored, (len(found), stored)
    return found


def _snappy(plain: bytes, stored: int, size: Size) -> bytes:
    """Return a literal, and behind it copies of 64 bytes each, enough of them to hold more than `plain` does."""
    copies = 0 if size == "shorter" else len(plain) // 64 + 1
    for head in range(4, 16):  # bytes of the length of all, and of the literal's
        literal = stored - head - 3 * copies
        length, value = b"", literal + 64 * copies
        while value > 127:
            length, value = length + bytes([value & 127 | 128]), value >> 7
        begin = length + bytes([value, 62 << 2]) + (literal - 1).to_bytes(3, "little")
        if len(begin) == head:
            assert literal >= 64, "too small a page"
            assert (literal + 64 * copies < len(plain)) == (size == "shorter")
            return begin + (plain * 2)[:literal] + copies * bytes([63 << 2 | 2, 64, 0])
    raise AssertionError(stored)
