"""Batches beside each other: a source that goes back, and what is done again from the line on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cklog.runs.batches.impact import _undone
from tests.builders.spark import Memory
from tests.reading.spark import said

HEAD = b'{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}'


def planned(ends: list[int]) -> Memory:
    """Batches with these ends of their one source; the last is in flight."""
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b"v1\n0"}
    files |= {f"offsets/{n}": b"v1\n" + HEAD + b"\n%d" % end for n, end in enumerate(ends)}
    return Memory(
        "memory", (), files | {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(len(ends) - 1)}
    )


@pytest.mark.parametrize("wrong", range(1, 6))
def test_a_source_that_goes_back_is_an_error_where_the_restart_reads(wrong: int) -> None:
    """It reads the newest plan and the one before; of older ones a wrong number is history."""
    ends = [10, 20, 30, 40, 50, 60]
    ends[wrong:] = [end - 15 for end in ends[wrong:]]
    severity = "error" if wrong >= len(ends) - 2 else "warning"
    assert (severity, "offset-went-back", f"offsets/{wrong}") in said(planned(ends).plan())


def _timed(ends: list[int], times: list[int]) -> Memory:
    """Batches with these ends and times; the last is in flight."""
    memory = planned(ends)
    for n, time in enumerate(times):
        path = f"offsets/{n}"
        memory.files[path] = memory.files[path].replace(b'"batchTimestampMs":5', b'"batchTimestampMs":%d' % time)
    return memory


@pytest.mark.parametrize("copied", range(1, 6))
def test_a_plan_that_is_a_copy_is_an_error_where_the_restart_reads(copied: int) -> None:
    ends, times = [10, 20, 30, 40, 50, 60], [1, 2, 3, 4, 5, 6]
    ends[copied], times[copied] = ends[copied - 1], times[copied - 1]
    severity = "error" if copied >= 4 else "warning"
    plan = _timed(ends, times).plan()
    assert [one for one in said(plan) if one[1] == "repeated-plan"] == [
        (severity, "repeated-plan", f"offsets/{copied}")
    ]
    assert {f.effect for f in plan.findings if f.id == "repeated-plan"} == {
        "data-duplicated" if severity == "error" else "none"
    }


def test_a_batch_without_data_is_no_copy() -> None:
    """A batch that only moves the watermark has the offsets of the one before, and a time of its own."""
    assert "repeated-plan" not in {id for _, id, _ in said(_timed([10, 20, 20, 20], [1, 2, 3, 4]).plan())}


@pytest.mark.parametrize(("first", "top"), [(0, 0), (0, 4), (3, 4)])
def test_every_batch_after_the_line_is_done_again_where_no_sink_log_says_otherwise(first: int, top: int) -> None:
    [told] = _undone(cast(Any, SimpleNamespace(sink="")), None, first, top)
    again = list(range(first, top + 1))
    assert (told.from_, told.to, told.count, told.fate) == (again[0], again[-1] + 1, len(again), "doubled")
