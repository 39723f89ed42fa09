"""JSON lines of results: what is no time is none, whatever the line holds instead."""

from __future__ import annotations

import pyarrow as pa

from cklog.parsers.results.lines import columns_of, times_of

BLOCK = b'{"time":7}\n{"time":9223372036854775808,"x":1}\n{"time":-9223372036854775808}\n{"time":"7"}\n'
"""The second number is an integer of JSON, and too great for a column of integers."""


def test_a_number_that_no_column_holds_is_no_time() -> None:
    times, _ = times_of(BLOCK, "time")
    assert times.to_pylist() == [7, None, -(1 << 63), None]


def test_columns_are_read_as_times_are() -> None:
    (read,) = columns_of(BLOCK, 0, "sink.jsonl", ("time", "x"))
    assert isinstance(read, pa.RecordBatch)
    assert read.to_pydict() == {"time": [7, None, -(1 << 63), None], "x": [None, 1, None, None]}


def test_a_member_may_have_the_name_of_a_place() -> None:
    (read,) = columns_of(b'{"_offset":5}\n{"_offset":6}\n', 100, "sink.jsonl", ("_offset",))
    assert isinstance(read, pa.RecordBatch)
    assert read.to_pydict() == {"_offset": [5, 6]}
