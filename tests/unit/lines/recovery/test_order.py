"""Which part of a run waits for which, where they send each other messages again."""

from __future__ import annotations

from cklog.lines.recovery.order import ready_times
from cklog.lines.recovery.work import Timed, Work
from cklog.model.recovery_time import Span


def part(name: str, restore: float, own: float, **again: float) -> Timed:
    """A part that is restored in so many ms, and takes so long for its own log and for what each sender sends."""
    times = {sender: Span(ms, ms) for sender, ms in again.items()}
    return Timed(Work(name, resent=dict.fromkeys(again, 1)), Span(restore, restore), Span(own, own), times, None, None)


def test_parts_in_a_cycle_wait_for_the_last_and_for_all_work_of_the_cycle() -> None:
    """At the latest each of them waits for the other, message by message: 5 ms to restore, then 1 + 2 + 3 + 4."""
    parts = [part("a", 5, 1, b=2), part("b", 3, 3, a=4)]
    _, latest, waited = ready_times(parts)
    assert latest == [15.0, 15.0]
    assert waited == [None, None]


def test_a_cycle_waits_for_who_sends_into_it() -> None:
    parts = [part("s", 40, 2), part("a", 5, 1, b=2, s=1), part("b", 3, 3, a=4)]
    _, latest, waited = ready_times(parts)
    assert latest == [42.0, 53.0, 53.0]
    assert waited == [None, 0, 0]
