"""Offsets of Kafka as Spark writes them."""

from __future__ import annotations

import pytest

from cklog.runs.batches.offsets import records_between


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        ({"t": {"0": 3, "1": 4}}, {"t": {"0": 5, "1": 4}}, 2),
        ({"t": {"0": 3}}, {"t": {"0": 1}}, 0),
        ({}, {"t": {"0": 5}}, None),  # a topic that came later: from where it was read nothing says
        ({"t": {"0": 3}}, {"t": {"0": 5, "1": 4}}, None),
        ({"t": 3}, {"t": {"0": 5}}, None),
        ({"t": {"0": 3}}, {"t": 5}, None),
        ({"t": {"0": 3}}, {"t": {"0": "5"}}, None),
        ({"logOffset": 3}, {"logOffset": 5}, None),
        (3, {"t": {"0": 5}}, None),
        (None, None, None),
    ],
)
def test_records_are_counted_where_all_offsets_are_known(start: object, end: object, count: int | None) -> None:
    assert records_between(start, end) == count
