"""Hadoop's checksum side files: real bytes, then every way to break them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.parsers.codecs.hadoop_crc import HEADER, check, encode, file_of, is_readable, sidecar_of

# `.metadata.crc` and `metadata` of a checkpoint that Spark 4.3 wrote
METADATA = b'{"id":"b53f4f87-bba1-4ad4-b13d-79e2613ac394"}'
SIDECAR = bytes.fromhex("63726300 00000200 383b12b6")

chunks = st.integers(1, 70)


def test_a_file_of_spark_agrees_with_its_side_file() -> None:
    assert check(METADATA, SIDECAR) is None
    assert encode(METADATA) == SIDECAR


@given(st.binary(max_size=300), chunks)
def test_what_encode_writes_check_accepts(data: bytes, chunk: int) -> None:
    assert check(data, encode(data, chunk)) is None


@given(st.binary(min_size=1, max_size=300), chunks, st.data())
def test_a_flipped_bit_is_found_in_its_own_chunk(data: bytes, chunk: int, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = bytearray(data)
    damaged[at] ^= 1 << draw.draw(st.integers(0, 7))
    found = check(bytes(damaged), encode(data, chunk))
    assert found is not None
    assert found.offset == at // chunk * chunk


@given(st.binary(min_size=1, max_size=300), chunks, st.data())
def test_a_cut_file_never_agrees(data: bytes, chunk: int, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data) - 1))
    found = check(data[:cut], encode(data, chunk))
    assert found is not None
    assert found.offset <= cut


@given(st.binary(min_size=1, max_size=300), chunks, st.data())
def test_sums_of_the_wrong_length_never_agree(data: bytes, chunk: int, draw: st.DataObject) -> None:
    sums = encode(data, chunk)
    cut = draw.draw(st.integers(HEADER.size, len(sums) - 1))
    assert check(data, sums[:cut]) is not None
    assert check(data, sums + b"\0") is not None


@pytest.mark.parametrize("sidecar", [b"", b"crc\0", b"crc\0\0\0\2", b"xrc\0" + SIDECAR[4:]])
def test_a_side_file_without_a_header_checks_nothing(sidecar: bytes) -> None:
    """Hadoop warns and reads on."""
    assert not is_readable(sidecar)
    assert check(b"anything", sidecar) is None


@pytest.mark.parametrize("chunk", [0, -1, -512])
def test_a_chunk_size_that_makes_no_sense_is_a_mismatch(chunk: int) -> None:
    assert check(METADATA, HEADER.pack(b"crc\0", chunk) + SIDECAR[8:]) is not None


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_no_bytes_make_check_fail(data: bytes, sidecar: bytes) -> None:
    check(data, sidecar)
    check(data, b"crc\0" + sidecar)


@pytest.mark.parametrize("path", ["metadata", "ck/offsets/14", "out/_spark_metadata/9.compact"])
def test_names_go_both_ways(path: str) -> None:
    assert file_of(sidecar_of(path)) == path
    assert file_of(path) is None
