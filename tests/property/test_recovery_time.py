"""How long a recovery takes, against a simulation of it, message by message, that shares no code with it."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.lines.recovery.time import bound_findings, recovery_time
from cklog.lines.recovery.work import Work, Works, exactly
from cklog.model.recovery_time import RecoveryRates, Span
from tests.examples import examples

SLACK = 0.002
"""Times are rounded to 0.001 ms."""


@dataclass
class Part:
    """A part as the simulation knows it: when it is restored, how long a message takes it, what it has in its log."""

    restore: int
    message_ms: int
    logged: int
    resent: dict[int, int] = field(default_factory=dict)


def simulate(parts: list[Part], rng: random.Random) -> list[int]:
    """Let every part restore and process one message after the other; return when each was ready.

    A part sends what it sends again at any moments of its own work, all of it by the end. Where all wait for each
    other, somebody sends: their messages cannot have caused one another all around the circle.
    """
    todo = [part.logged + sum(part.resent.values()) for part in parts]
    there = [part.logged for part in parts]
    unsent = {(s, r): count for r, part in enumerate(parts) for s, count in part.resent.items()}
    restored, busy = [False] * len(parts), [False] * len(parts)
    ready: list[int | None] = [None] * len(parts)
    events = [(part.restore, i, "restored") for i, part in enumerate(parts)]
    heapq.heapify(events)

    def send(sender: int, everything: bool) -> None:
        for (s, r), count in list(unsent.items()):
            if s == sender and count:
                now_sent = count if everything else rng.randint(0, count)
                unsent[s, r] -= now_sent
                there[r] += now_sent

    def begin(now: int) -> None:
        moved = True
        while moved:
            moved = False
            for i, part in enumerate(parts):
                if restored[i] and not busy[i] and ready[i] is None:
                    if todo[i] == 0:
                        ready[i] = now
                        send(i, everything=True)
                        moved = True
                    elif there[i]:
                        there[i] -= 1
                        busy[i] = moved = True
                        heapq.heappush(events, (now + part.message_ms, i, "processed"))

    now = 0
    while None in ready:
        if not events:  # a circle
            waiting = [s for (s, _), count in unsent.items() if count]
            send(rng.choice(waiting), everything=True)
            begin(now)
            continue
        now, i, what = heapq.heappop(events)
        if what == "restored":
            restored[i] = True
        else:
            busy[i] = False
            todo[i] -= 1
        send(i, everything=False)
        begin(now)
    return [at for at in ready if at is not None]


@st.composite
def runs(draw: st.DrawFn) -> list[Part]:
    count = draw(st.integers(1, 5))
    numbers = st.integers(0, 30)
    parts = [Part(draw(numbers), draw(st.integers(1, 9)), draw(numbers)) for _ in range(count)]
    for receiver, part in enumerate(parts):
        for sender in range(count):
            if sender != receiver and draw(st.integers(0, 2)) == 0:
                part.resent[sender] = draw(st.integers(1, 12))
    return parts


def works_of(parts: list[Part], input_rate: float | None = 0.0) -> Works:
    """The same parts as cklog takes them: it knows restore times and rates, and not when anybody sends."""
    return Works(
        [
            Work(
                name=str(i),
                bytes=1,
                logged=exactly(part.logged),
                resent={str(s): n for s, n in part.resent.items()},
                restore_ms=Span(part.restore, part.restore),
                replay_rate=Span(1000 / part.message_ms, 1000 / part.message_ms),
                input_rate=input_rate,
            )
            for i, part in enumerate(parts)
        ]
    )


@given(runs(), st.randoms(use_true_random=False))
@settings(max_examples=examples(400))
def test_every_recovery_ends_within_its_range(parts: list[Part], rng: random.Random) -> None:
    found = recovery_time(works_of(parts), RecoveryRates())
    ready = simulate(parts, rng)
    for part, at in zip(found.parts, ready, strict=True):
        assert part.ready_ms is not None
        assert part.ready_ms.high is not None
        assert part.ready_ms.low - SLACK <= at <= part.ready_ms.high + SLACK
    assert found.total_ms is not None
    assert found.total_ms.high is not None
    assert found.total_ms.low - SLACK <= max(ready) <= found.total_ms.high + SLACK


@given(runs(), st.randoms(use_true_random=False))
def test_without_messages_sent_again_the_time_is_exact(parts: list[Part], rng: random.Random) -> None:
    for part in parts:
        part.resent.clear()
    found = recovery_time(works_of(parts), RecoveryRates())
    latest = max(simulate(parts, rng))
    assert found.total_ms is not None
    assert [found.total_ms.low, found.total_ms.high] == pytest.approx([latest, latest], abs=SLACK)


@given(runs())
def test_a_chain_of_senders_can_take_all_of_the_high_end(parts: list[Part]) -> None:
    """The high end is no looser than it must be: where everybody sends at the very end, a chain takes that long."""
    for receiver, part in enumerate(parts):
        part.resent = {receiver - 1: part.resent.get(receiver - 1, 1)} if receiver else {}

    class Last(random.Random):
        def randint(self, low: int, high: int) -> int:
            return low

    found = recovery_time(works_of(parts), RecoveryRates())
    ready = simulate(parts, Last())
    assert [part.ready_ms.high for part in found.parts if part.ready_ms] == pytest.approx(ready, abs=SLACK)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 500))
def test_a_backlog_is_worked_off_as_when_it_is_counted_out(arrive_ms: int, message_ms: int, ready: int) -> None:
    """A message arrives every `arrive_ms`, one is processed every `message_ms`, from the moment `ready` on."""
    part = Work("p", 1, exactly(0), {}, Span(ready, ready), None, None, None, 1000 / arrive_ms)
    found = recovery_time(Works([part]), RecoveryRates(replay=1000 / message_ms))
    if message_ms >= arrive_ms:
        assert found.catches_up is False
        assert found.total_ms is None
        assert waiting_after(arrive_ms, message_ms, ready, 100_000) >= waiting_after(arrive_ms, message_ms, ready, 0)
        return
    assert found.catches_up is True
    assert found.total_ms is not None
    assert found.total_ms.high is not None
    after = [Fraction(end) - ready for end in (found.total_ms.low, found.total_ms.high)]
    assert [float(waiting_after(arrive_ms, message_ms, ready, ms)) for ms in after] == pytest.approx([0, 0], abs=SLACK)


def waiting_after(arrive_ms: int, message_ms: int, ready: int, since: Fraction | int) -> Fraction:
    """How many messages wait `since` ms after all was ready, the fluid way: what has arrived less what is done."""
    return Fraction(ready + since) / arrive_ms - Fraction(since) / message_ms


@given(runs(), st.floats(0.001, 10))
def test_an_error_only_where_no_recovery_is_fast_enough(parts: list[Part], bound: float) -> None:
    found = recovery_time(works_of(parts), RecoveryRates(most_s=bound))
    assert found.total_ms is not None
    assert found.total_ms.high is not None
    told = [f.severity for f in bound_findings(found)]
    soonest, latest = found.total_ms.low > 1000 * bound, found.total_ms.high > 1000 * bound
    near = abs(found.total_ms.low - 1000 * bound) < SLACK or abs(found.total_ms.high - 1000 * bound) < SLACK
    assert near or told == (["error"] if soonest else ["warning"] if latest else [])
