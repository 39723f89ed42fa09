"""Batches that both logs leave out: asynchronous progress tracking, as far as nothing speaks against it."""

from __future__ import annotations

import pytest

from cklog.runs.batches.plan import BatchPlan
from tests.builders.spark import Memory
from tests.reading.spark import said

HEAD = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'


def logged(
    plans: list[int], commits: list[int], more: dict[str, bytes] | None = None, at: int | None = None
) -> BatchPlan:
    """A query that reads Kafka and keeps no state."""
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b'\0v1\n{"t":{"0":0}}', **(more or {})}
    files |= {f"offsets/{n}": HEAD + b'{"t":{"0":%d}}' % (10 * n) for n in plans}
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in commits}
    return Memory("memory", (), files).plan(at=at)


def test_equal_gaps_are_one_finding_and_stop_nothing() -> None:
    plan = logged([0, 2, 5, 10], [0, 2, 5, 10])
    assert (plan.asynchronous, plan.fails, plan.skips, plan.committed) == (True, False, False, 10)
    assert said(plan) == [("info", "async-progress", "offsets")]
    assert "1, 3 to 4, 6 to 9" in plan.findings[0].message


def test_a_plan_in_flight_reads_on_from_the_last_one_that_is_here() -> None:
    plan = logged([0, 2, 5, 10], [0, 2, 5])
    assert (plan.asynchronous, plan.fails, plan.skips, plan.committed, plan.planned) == (True, False, False, 5, 10)
    assert [(s.start, s.end) for s in plan.sources] == [(50, 100)]


@pytest.mark.parametrize(
    ("plans", "commits", "gap", "which"),
    [
        ([0, 2, 5, 10], [0, 2, 10], "commits/5", "batch 5 is"),
        ([0, 2, 5, 10], [0, 5, 10], "commits/2", "batch 2 is"),
        ([0, 2, 10], [0, 2, 5, 10], "offsets/5", "batch 5 is"),
        ([0, 5, 10], [0, 2, 5, 10], "offsets/2", "batch 2 is"),
        ([0, 2, 5, 10], [0, 2, 4, 5, 10], "offsets/4", "batch 4 is"),
        ([0, 5, 10], [0, 10], "commits/5", "batch 5 is"),
    ],
)
def test_an_older_entry_that_one_log_lost_stops_nothing(
    plans: list[int], commits: list[int], gap: str, which: str
) -> None:
    """Read in Spark's AsyncOffsetSeqLog: the batch before is the newest one on the disk before."""
    plan = logged(plans, commits)
    assert (plan.asynchronous, plan.fails, plan.skips, plan.committed) == (True, False, False, 10)
    assert sorted(said(plan)) == [("info", "async-progress", "offsets"), ("warning", "batch-gap", gap)]
    assert any(f"{which} missing" in finding.message for finding in plan.findings)
    assert "Batches after it may have run" in plan.restart


@pytest.mark.parametrize(
    ("plans", "commits", "line", "ran"),
    [
        ([0, 2, 5, 10], [0, 2], 5, "batches 6 to 10"),  # the plan of 10 shows that 5 is done
        ([0, 2, 10], [0, 2, 5], 2, "batches 3 to 10"),  # what 5 committed is read again
        ([0, 2, 5, 6], [0, 2, 5], 5, "batch 6"),
    ],
)
def test_a_plan_in_flight_begins_at_the_plan_before_whatever_is_committed(
    plans: list[int], commits: list[int], line: int, ran: str
) -> None:
    plan = logged(plans, commits)
    assert (plan.asynchronous, plan.fails, plan.skips, plan.committed) == (True, False, False, line)
    assert [(s.start, s.end) for s in plan.sources] == [(10 * line, 10 * plans[-1])]
    assert f"Its range may have run already, as {ran} and later." in plan.restart


def test_it_goes_back_to_any_batch_that_is_here() -> None:
    plan = logged([0, 2, 5, 10], [0, 2, 5, 10], at=2)
    assert (plan.committed, plan.fails, plan.unreachable) == (2, False, False)
    assert plan.remove == ("commits/10", "commits/5", "offsets/10", "offsets/5")


@pytest.mark.parametrize(
    ("plans", "commits", "more"),
    [
        ([0, 1, 2, 4], [0, 1, 2, 4], {}),  # one alone may as well be lost
        ([0, 3, 5, 7], [0, 1, 2, 4, 6, 7], {}),  # more that one log lost than both leave out
        ([0, 2, 5, 10], [0, 2, 5, 10, 12], {}),
        ([0, 2, 5, 10], [0, 2, 5, 10], {"offsets/.9.crc": b"crc\0"}),
        ([0, 2, 5, 10], [0, 2, 5, 10], {"state/0/0/11.delta": b"x"}),
    ],
)
def test_other_gaps_are_damage(plans: list[int], commits: list[int], more: dict[str, bytes]) -> None:
    plan = logged(plans, commits, more)
    assert (plan.asynchronous, plan.fails) == (False, True)
    assert ("error", "missing-batch-file", f"offsets/{plans[-1] - 1}") in said(plan)


def test_several_gaps_of_one_log_are_one_finding() -> None:
    plan = logged([0, 2, 4, 6, 7], [*range(8)])
    assert said(plan) == [("warning", "batch-gap", "offsets/1")]
    assert "batches 1, 3, 5 are missing" in plan.findings[0].message


@pytest.mark.parametrize(
    ("plans", "commits", "more"),
    [([0], [], {"state/0/0/3.delta": b"x"}), ([0, 1], [], {}), ([1], [], {})],
)
def test_signs_of_later_batches_are_no_first_batch(
    plans: list[int], commits: list[int], more: dict[str, bytes]
) -> None:
    assert not logged(plans, commits, more).begins


def test_the_first_batch_may_have_written_state() -> None:
    assert logged([0], [], {"state/0/0/1.delta": b"x"}).begins


def test_two_batches_in_a_row_are_one_stretch() -> None:
    """And none that comes before the line's: it has a finding of its own."""
    plan = logged([0, 3, 4, 6, 7], [*range(8)])
    assert said(plan) == [("warning", "batch-gap", "offsets/1")]
    assert "batches 1 to 2, 5 are missing" in plan.findings[0].message
    plan = logged([0, 3, 4, 5, 6], [*range(7)])
    assert "batches 1 to 2 are missing" in plan.findings[0].message
    plan = logged([0, 2, 3, 4], [*range(5)])
    assert "batch 1 is missing" in plan.findings[0].message
