"""Input files that a restart reads: those of the batch in flight, and those that the source listed for the next one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import plan_of
from tests.builders.spark import Memory, batch_time, sample
from tests.reading.spark import said


def listed_only() -> Memory:
    """Killed after the source listed the files of batch 6, and before the plan of the batch was written."""
    root = sample()
    root.remove("ck/offsets/6")
    return root


@pytest.mark.parametrize("made", [sample, listed_only])
def test_a_file_that_is_still_to_be_read_is_missed(made: Callable[[], Memory]) -> None:
    root = made()
    del root.files["in/minute-6.json"]
    assert said(root.plan()) == [("error", "missing-input-file", "source/0")]


def test_a_file_of_the_next_batch_is_named_as_such() -> None:
    root = listed_only()
    root.files["in/minute-6.json"] = b""
    [finding] = root.plan().findings
    assert (finding.id, finding.effect) == ("empty-input-file", "none")
    assert "1 input file of the next batch is empty" in finding.message


def test_a_file_whose_plan_is_damaged_is_missed() -> None:
    """Once the plan is removed, its batch is planned again from the source's log."""
    root = sample()
    root.write("ck/offsets/6", root.files["ck/offsets/6"][:40])
    del root.files["in/minute-6.json"]
    assert ("error", "missing-input-file", "source/0") in said(root.plan())


def test_files_that_were_read_are_not_looked_for() -> None:
    root = listed_only()
    del root.files["in/minute-5.json"]
    assert said(root.plan()) == []


def test_going_back_reads_listed_files_again() -> None:
    root = sample()
    del root.files["in/minute-5.json"]
    plan = plan_of(SparkCheckpoint(root), at=4)
    assert ("error", "missing-input-file", "source/0") in said(plan)
    assert said(plan_of(SparkCheckpoint(root), as_of=batch_time(4))) == []
