"""Headers of Parquet's pages: what pyarrow writes is what is read there, and values that nobody asks for are passed."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.parsers.tables.compact import I32, Compact, Field
from cklog.parsers.tables.parquet_pages import DICTIONARY, Page, pages

PLAIN, RLE_DICTIONARY, DELTA_BYTE_ARRAY = 0, 8, 7
DATA, DATA_2 = 0, 3
"""Numbers of parquet.thrift: encodings, and types of pages."""


def pages_of(path: Path) -> list[Page]:
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    with path.open("rb") as file:
        return list(pages(file, start, column.total_compressed_size))


@pytest.mark.parametrize(("version", "type"), [("1.0", DATA), ("2.0", DATA_2)])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_page_has_the_values_bytes_and_encoding_that_were_written(
    tmp_path: Path, version: str, type: int, codec: str
) -> None:
    """1000 numbers of eight bytes each, none of them null; and two of a dictionary."""
    path = tmp_path / "x.parquet"
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    plain = pa.table({"n": pa.array(range(1000), pa.int64())}, schema=schema)
    pq.write_table(plain, path, compression=codec, use_dictionary=False, data_page_version=version)
    assert pages_of(path) == [Page(type, 8000, 1000, PLAIN)]
    few = pa.table({"n": pa.array([7, 9] * 500, pa.int64())}, schema=schema)
    pq.write_table(few, path, compression=codec, data_page_version=version)
    dictionary, data = pages_of(path)
    assert (dictionary.type, dictionary.bytes, dictionary.values) == (DICTIONARY, 16, 2)
    assert (data.type, data.values, data.encoding) == (type, 1000, RLE_DICTIONARY)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_that_repeat_what_stands_before_them_are_told(tmp_path: Path, version: str) -> None:
    path = tmp_path / "x.parquet"
    encoding = {"t": "DELTA_BYTE_ARRAY"}
    table = pa.table({"t": ["one", "oner", "two"] * 9})
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding, data_page_version=version)
    assert [(page.values, page.encoding) for page in pages_of(path)] == [(27, DELTA_BYTE_ARRAY)]


VALUES = {
    "a true": (1, b""),
    "a false": (2, b""),
    "a byte": (3, b"\x7f"),
    "a short": (4, b"\xff\x01"),
    "a number": (5, b"\xff\xff\x01"),
    "a long": (6, b"\x01"),
    "a double": (7, struct.pack("<d", 0.1)),
    "bytes": (8, b"\x03abc"),
    "a list of doubles": (9, b"\x27" + struct.pack("<dd", 0.1, 7.0)),
    "a list of truths": (9, b"\x31\x01\x02\x01"),
    "a set of many bytes": (10, b"\xf3\x10" + bytes(16)),
    "a map": (11, b"\x02\x85" + b"\x01a\x02" + b"\x01b\x04"),
    "an empty map": (11, b"\x00"),
    "a struct": (12, b"\x15\x02\x17" + struct.pack("<d", 1.5) + b"\x00"),
}
"""By the compact protocol of Thrift: the kind, and the value's bytes."""


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_nobody_asks_for_is_passed_over_to_its_last_byte(name: str) -> None:
    kind, data = VALUES[name]
    written = bytes([0x10 | kind]) + data + b"\x15\x0a" + b"\x00"  # then field 2, the number 5, and the end
    compact = Compact(written + b"?")
    assert compact.fields({2: Field(I32, Compact.integer)}) == {2: 5}
    assert compact.at == len(written)
