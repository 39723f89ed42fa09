"""A file that is fetched by ranges reads as its bytes do, and fetches no byte twice in a row."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.local_files import SelfExplained
from cklog.stores.files import AHEAD_BYTES, StoreFile

STEP = st.tuples(st.integers(-3, 70_000), st.integers(-1, 40_000))


@given(st.integers(0, 60_000), st.lists(STEP, max_size=12))
def test_any_order_of_reads_gives_the_bytes_of_the_file(size: int, steps: list[tuple[int, int]]) -> None:
    data = bytes(i * 7 % 251 for i in range(size))
    file, plain = StoreFile(lambda start, length: data[start : start + length], size), io.BytesIO(data)
    for to, wanted in steps:
        if to >= 0:
            assert file.seek(to) == plain.seek(to)
        assert file.read(wanted) == plain.read(wanted)
        assert file.tell() == plain.tell()


def test_reading_on_in_small_steps_fetches_each_byte_once() -> None:
    data, asked = bytes(100_000), list[tuple[int, int]]()

    def fetch(start: int, length: int) -> bytes:
        asked.append((start, length))
        return data[start : start + length]

    file = StoreFile(fetch, len(data))
    while file.read(10):
        pass
    assert sum(length for _, length in asked) == len(data)
    assert len(asked) == -(-len(data) // AHEAD_BYTES)


def test_what_a_store_refuses_gets_through_arrow_as_it_was_raised() -> None:
    """Else it would look like a file that is damaged."""

    def fetch(start: int, length: int) -> bytes:
        raise SelfExplained(13, "the store says no")

    with pytest.raises(SelfExplained, match="the store says no") as raised:
        pa.CompressedInputStream(pa.PythonFile(StoreFile(fetch, 100), mode="r"), "zstd").read()
    assert raised.value.errno == 13
