"""How long a store is waited for: in one request, and in all that fail."""

from __future__ import annotations

import threading

import pytest

from cklog.stores import deadlines, patience
from cklog.stores.deadlines import Deadline, run_within
from cklog.stores.patience import NotServed, Patience


class Clock:
    """A clock that goes when it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(deadlines, "time", made)
    monkeypatch.setattr(patience, "time", made)
    return made


def test_a_deadline_ends_and_is_renewed(clock: Clock) -> None:
    deadline = Deadline(10)
    clock.now += 9
    assert deadline.left() == 1
    assert deadline.sooner(5).left() == 1
    assert deadline.allows(0.5)
    assert not deadline.allows(1)
    deadline.renew()
    assert deadline.left() == 10
    clock.now += 10
    with pytest.raises(TimeoutError):
        deadline.left()


def test_time_that_requests_lose_at_once_is_lost_once(clock: Clock) -> None:
    lost = Patience(10)
    clock.now += 4
    for began in (1000.0, 1001.0, 1003.0):
        lost.lose(began)
    assert lost.left() == 6
    clock.now += 5
    lost.lose(1008.0)
    assert lost.left() == 5


def test_a_store_that_has_lost_all_its_time_is_asked_no_more(clock: Clock) -> None:
    lost = Patience(10)
    clock.now += 9.5
    lost.lose(1000.0)
    with pytest.raises(NotServed, match="not asked any more"):
        lost.left()


def test_work_that_takes_too_long_is_left_alone() -> None:
    ended = threading.Event()
    with pytest.raises(TimeoutError):
        run_within(lambda: ended.wait(30), 0.01)
    ended.set()
    assert run_within(lambda: 5, 30) == 5
    with pytest.raises(ZeroDivisionError):
        run_within(lambda: 1 / 0, 30)
