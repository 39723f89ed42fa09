"""What is at fault in columns of records that Arrow has decoded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cklog.model.schemas import CHECKPOINTS
from cklog.parsers.tables.column_rules import faults


@pytest.mark.parametrize("word", [b"\x80\xff", b"alignee\xff", b"\xc3(", b"\xed\xa0\x80"])
def test_a_word_that_is_no_utf_8_is_a_bad_word_and_of_no_later_version(word: bytes) -> None:
    """A Parquet file may hold any bytes where it says that they are a text."""
    ends = pa.array([0, 7, 7 + len(word)], pa.int32()).buffers()[1]
    kinds = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"aligned" + word)])
    batch = pa.RecordBatch.from_arrays([kinds], ["kind"])
    told = [fault for fault in faults(batch, CHECKPOINTS) if fault.rows.to_pylist()[1]]
    assert [fault.id for fault in told] == ["bad-record"]
