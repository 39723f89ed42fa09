"""What a log tells of the elements around a moment, and when it cannot tell."""

from __future__ import annotations

import pytest

from cklog.impact.elements import Listed
from cklog.impact.logs import AskedElements, LoggedElements, LogPart


@pytest.mark.parametrize(("first", "taken", "expected"), [(0, 0, None), (2, 2, 3), (2, 0, 3)])
def test_nothing_comes_before_the_first_of_all_elements(first: int, taken: int, expected: int | None) -> None:
    """A log that begins with number 0 has lost none; one that begins with 2 is silent on 0 and 1: others answer."""
    behind = LogPart(elements=3, first_time=10, last_time=30, first=first, last=first + 2)
    beside = Listed((1, 3, 10, 20, 30))
    log = LoggedElements((5,), (None, behind), {}, AskedElements(), beside, ((5, taken),))
    assert log.last_before(5) == expected


def test_a_log_on_both_sides_of_a_moment_knows_the_last_before_it() -> None:
    before, behind = LogPart(2, 1, 4, 0, 1), LogPart(3, 10, 30, 2, 4)
    assert LoggedElements((5,), (before, behind), {}, AskedElements(), Listed(()), ()).last_before(5) == 4
