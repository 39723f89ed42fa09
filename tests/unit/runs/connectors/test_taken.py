"""What is looked at of records that a connector has written: from the end of a log backwards, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator

from cklog.inputs.connectors import TakenRecord
from cklog.runs.connectors.taken import LOOKED_BACK, Taken, taken_of

STORED = {"file": "b.000003", "pos": 500}


def records(*places: int) -> Iterator[TakenRecord]:
    """From the end of a log backwards."""
    for number, pos in enumerate(places):
        yield TakenRecord("t-0", -number, {"file": "b.000003", "pos": pos})


def test_behind_so_many_that_do_not_come_again_nothing_is_looked_for() -> None:
    """A crash leaves what it wrote twice close to the end: what lies far before it was written once."""
    places = [600, *[400] * LOOKED_BACK, 700]
    rest = records(*places)
    assert taken_of(STORED, "t-0", rest) == Taken("t-0", 1, {"file": "b.000003", "pos": 600}, exact=True)
    assert [record.source for record in rest] == [{"file": "b.000003", "pos": 700}]


def test_one_that_comes_again_begins_the_count_anew() -> None:
    places = [600, *[400] * (LOOKED_BACK - 1), 650, *[400] * (LOOKED_BACK - 1), 700]
    assert taken_of(STORED, "t-0", records(*places)).again == 3
