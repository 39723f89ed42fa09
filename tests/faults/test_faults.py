"""Some faults of every kind, and (slow) some on Spark; `python -m tests.faults` injects a thousand."""

from __future__ import annotations

import pytest

from tests.faults.__main__ import LOCAL, SPARK, attempts, turns_of

_ROUND = sum(share for _, share in LOCAL.values())


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_no_fault_brings_a_wrong_answer_or_leaves_anything(part: int) -> None:
    """Every kind comes in a round; a part of it is every sixth case."""
    turns = [turn for turn in turns_of("local", LOCAL, 0, _ROUND) if turn.case % 6 == part]
    told = {f"{one.family} {one.case}": one.wrong for one in attempts(turns, 1) if one.wrong}
    assert not told


@pytest.mark.slow
@pytest.mark.spark
def test_no_fault_of_spark_brings_a_wrong_answer_or_leaves_anything() -> None:
    told = {
        f"{one.family} {one.case}": one.wrong for one in attempts([*turns_of("spark", SPARK, 0, 15)], 1) if one.wrong
    }
    assert not told
