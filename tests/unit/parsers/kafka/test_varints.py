"""Numbers of Kafka's records: one at a time and many at once, from bytes worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.builders.kafka as kb
from cklog.parsers.codecs.varints import BadVarint, unsigned_varint
from cklog.parsers.kafka.varints import varint, varints


@pytest.mark.parametrize(
    ("raw", "bits", "number", "width"),
    [
        ("00", 32, 0, 1),
        ("01", 32, -1, 1),
        ("ac02", 32, 150, 2),
        ("feffffff0f", 32, (1 << 31) - 1, 5),
        ("ffffffff0f", 32, -(1 << 31), 5),
        ("8080808010", 32, None, 5),
        ("ffffffffff01", 32, None, 5),
        ("ffffffffffffffffff01", 64, -(1 << 63), 10),
        ("ffffffffffffffffff02", 64, None, 10),
        ("ffffffffffffffffffff", 64, None, 10),
    ],
)
def test_numbers_of_any_width(raw: str, bits: int, number: int | None, width: int) -> None:
    data = bytes.fromhex(raw) + bytes(16)
    found, after, wrong = varints(np.frombuffer(data, np.uint8), np.zeros(2, np.int64), bits)
    assert wrong.tolist() == [number is None] * 2
    if number is None:
        with pytest.raises(BadVarint, match=f"beyond {bits} bits"):
            varint(data, 0, bits)
    else:
        assert (found.tolist(), after.tolist()) == ([number] * 2, [width] * 2)
        assert varint(data, 0, bits) == (number, width)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_64_bits_come_back(number: int) -> None:
    data = kb.varint(number)
    assert varint(data, 0, bits=64) == (number, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_a_number_that_the_bytes_end_inside_is_none(data: bytes) -> None:
    with pytest.raises(BadVarint, match="cut short"):
        unsigned_varint(data, 0)
