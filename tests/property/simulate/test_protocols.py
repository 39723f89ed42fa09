"""The rules of communication-induced protocols, driven on small executions and held against the definitions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.policies.induced import Hmnr, Independent, Rules, rules_of
from cklog.simulate.dataflow.protocols import carried_bytes
from cklog.simulate.dataflow.wire import hmnr_bytes
from cklog.zigzag.intervals import useless
from tests.examples import examples
from tests.oracles.lines import Event, Execution, history, messages, useless_by_enumeration, useless_by_zigzag

Move = tuple[str, int, int]

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=8)
MOVES = st.lists(
    st.tuples(st.sampled_from(["send", "send", "take", "take", "checkpoint"]), st.integers(0, 63), st.integers(0, 3)),
    max_size=60,
)


class Driven:
    """A schedule of sends, receipts and timers, with the forced checkpoints that rules add to it.

    `indices` are those of each subtask's checkpoints, the initial state first. `skip`: a message that carries what
    the last one of its channel carried is taken without asking the rules, as the simulator does.
    """

    def __init__(self, rules: list[Rules], pairs: list[tuple[int, int]], fifo: bool, skip: bool = True) -> None:
        self.rules, self.fifo, self.skip = rules, fifo, skip
        self.names = tuple(f"a/{i}" for i in range(len(rules)))
        kept = dict.fromkeys((a % len(rules), b % len(rules)) for a, b in pairs if a % len(rules) != b % len(rules))
        self.ends = {f"a/{a}->a/{b}": (a, b) for a, b in kept}
        self.flying: dict[str, list[tuple[int, Any]]] = {channel: [] for channel in self.ends}
        self.heard: dict[str, Any] = dict.fromkeys(self.ends)
        self.sent = dict.fromkeys(self.ends, 0)
        self.indices = [[rule.index or 0] for rule in rules]
        self.events: list[Event] = []
        self.forced = 0

    def play(self, moves: list[Move]) -> Driven:
        for kind, where, which in moves:
            if kind == "checkpoint":
                self.checkpoint(where % len(self.rules))
            elif self.ends:
                channel = list(self.ends)[where % len(self.ends)]
                if kind == "send":
                    self.send(channel)
                elif self.flying[channel]:
                    self.take(channel, 0 if self.fifo else which % len(self.flying[channel]))
        return self

    def checkpoint(self, i: int, carried: Any = None) -> None:
        self.rules[i].checkpoint(carried)
        self.events.append(Event("ckpt", self.names[i], "", len(self.indices[i])))
        self.indices[i].append(self.rules[i].index or 0)

    def send(self, channel: str) -> None:
        a, b = self.ends[channel]
        self.flying[channel].append((self.sent[channel], self.rules[a].send(b)))
        self.events.append(Event("send", self.names[a], channel, self.sent[channel]))
        self.sent[channel] += 1

    def take(self, channel: str, at: int) -> None:
        seq, carried = self.flying[channel].pop(at)
        b = self.ends[channel][1]
        if not (self.skip and carried is self.heard[channel]):
            if self.rules[b].forces(carried):
                self.forced += 1
                self.checkpoint(b, carried)
            self.rules[b].receive(carried)
        self.heard[channel] = carried
        self.events.append(Event("recv", self.names[b], channel, seq))

    def execution(self) -> Execution:
        ends = {channel: (self.names[a], self.names[b]) for channel, (a, b) in self.ends.items()}
        return Execution(self.names, ends, tuple(self.events))


def hmnr(n: int) -> list[Rules]:
    return rules_of("cic-hmnr", n)


def bcs(n: int) -> list[Rules]:
    return rules_of("cic-bcs", n)


def useless_of(execution: Execution) -> set[tuple[str, int]]:
    """By the code under test, as (subtask, checkpoint)."""
    found = history(execution, ())
    rows = useless(found).nonzero()[0].tolist()
    owner = [int((found.first <= row).sum()) - 1 for row in rows]
    return {(str(found.subtasks[i]), row - int(found.first[i])) for i, row in zip(owner, rows, strict=True)}


def schedules(seed: int, count: int) -> list[tuple[int, list[tuple[int, int]], list[Move], bool]]:
    """Random schedules with enough traffic both ways for zigzag cycles."""
    draws = random.Random(seed)
    found = []
    for _ in range(count):
        n = draws.randint(2, 4)
        every = [(a, b) for a in range(n) for b in range(n) if a != b]
        pairs = draws.sample(every, draws.randint(2, len(every)))
        words = draws.choices(["send", "take", "checkpoint"], [4, 4, 1], k=draws.randint(10, 80))
        moves = [(word, draws.randrange(64), draws.randrange(4)) for word in words]
        found.append((n, pairs, moves, draws.random() < 0.5))
    return found


class ByTheBook:
    """HMNR once more, in the words of its paper: one instance at a time, and copies of everything."""

    def __init__(self, i: int, n: int) -> None:
        self.i, self.others = i, [k for k in range(n) if k != i]
        self.lc = -1  # so that the initial checkpoint has index 0
        self.ckpt = [0] * n
        self.sent_to, self.taken, self.greater = [False] * n, [False] * n, [False] * n
        self.index: int | None = None
        self.checkpoint()

    def checkpoint(self, carried: Any = None) -> None:
        self.sent_to = [False] * len(self.sent_to)
        for k in self.others:
            self.taken[k] = self.greater[k] = True
        self.lc += 1
        self.ckpt[self.i] += 1
        self.index = self.lc

    def send(self, receiver: int) -> Any:
        self.sent_to[receiver] = True
        return self.lc, list(self.greater), list(self.ckpt), list(self.taken)

    def forces(self, carried: Any) -> bool:
        lc, greater, ckpt, taken = carried
        behind = any(self.sent_to[k] and greater[k] for k in range(len(ckpt))) and lc > self.lc
        return bool(behind or (ckpt[self.i] == self.ckpt[self.i] and taken[self.i]))

    def receive(self, carried: Any) -> None:
        lc, greater, ckpt, taken = carried
        for k in self.others:
            if lc > self.lc:
                self.greater[k] = greater[k]
            elif lc == self.lc:
                self.greater[k] = self.greater[k] and greater[k]
            if ckpt[k] > self.ckpt[k]:
                self.ckpt[k], self.taken[k] = ckpt[k], taken[k]
            elif ckpt[k] == self.ckpt[k]:
                self.taken[k] = self.taken[k] or taken[k]
        self.lc = max(self.lc, lc)


@given(n=st.integers(2, 4), pairs=PAIRS, moves=MOVES, fifo=st.booleans())
@settings(max_examples=examples(150))
def test_hmnr_decides_as_its_paper_says(n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool) -> None:
    _same_as_the_book(n, pairs, moves, fifo)


def test_hmnr_decides_as_its_paper_says_on_busy_schedules() -> None:
    for schedule in schedules(seed=7, count=1500):
        _same_as_the_book(*schedule)


def _same_as_the_book(n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool) -> None:
    fast = Driven(hmnr(n), pairs, fifo).play(moves)
    book = Driven([ByTheBook(i, n) for i in range(n)], pairs, fifo, skip=False).play(moves)
    assert fast.events == book.events
    assert fast.indices == book.indices


@pytest.mark.parametrize("make", [hmnr, bcs])
@given(n=st.integers(2, 4), pairs=PAIRS, moves=MOVES, fifo=st.booleans())
@settings(max_examples=examples(150))
def test_a_communication_induced_history_has_no_z_cycle(
    make: Any, n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool
) -> None:
    """The theorems of both papers; also by the definition, message by message."""
    execution = Driven(make(n), pairs, fifo).play(moves).execution()
    assert useless_of(execution) == useless_by_zigzag(execution) == set()


@pytest.mark.parametrize("make", [hmnr, bcs])
@given(pairs=PAIRS, moves=MOVES)
@settings(max_examples=examples(60))
def test_every_checkpoint_is_in_some_consistent_line(
    make: Any, pairs: list[tuple[int, int]], moves: list[Move]
) -> None:
    execution = Driven(make(3), pairs, fifo=True).play(moves[:30]).execution()
    assert useless_by_enumeration(execution) == set()


def test_without_forced_checkpoints_the_same_schedules_have_z_cycles() -> None:
    """The tests above mean nothing if no schedule needs a forced checkpoint; and HMNR forces fewer than BCS."""
    lost, forced = {"unc": 0, "cic-hmnr": 0, "cic-bcs": 0}, {"unc": 0, "cic-hmnr": 0, "cic-bcs": 0}
    for n, pairs, moves, fifo in schedules(seed=5, count=400):
        for protocol in lost:
            driven = Driven(rules_of(protocol, n), pairs, fifo).play(moves)
            found = useless_by_zigzag(driven.execution())
            assert useless_of(driven.execution()) == found
            lost[protocol] += len(found)
            forced[protocol] += driven.forced
    assert lost["unc"] > 100
    assert lost["cic-hmnr"] == lost["cic-bcs"] == forced["unc"] == 0
    assert 0 < forced["cic-hmnr"] < forced["cic-bcs"]


class OnlyClocks(Hmnr):
    """HMNR without its second condition."""

    def forces(self, carried: Any) -> bool:
        return carried.clock > self._clock and bool((self._sent_to & carried.greater).any())


class OnlyPaths(Hmnr):
    """HMNR without its first condition."""

    def forces(self, carried: Any) -> bool:
        return bool(carried.checkpoints[self._me] == self._checkpoints[self._me] and carried.taken[self._me])


@pytest.mark.parametrize("broken", [OnlyClocks, OnlyPaths])
def test_hmnr_needs_both_of_its_conditions(broken: type[Hmnr]) -> None:
    lost = 0
    for n, pairs, moves, fifo in schedules(seed=6, count=1500):
        rules: list[Rules] = [broken(i, n) for i in range(n)]
        lost += len(useless_by_zigzag(Driven(rules, pairs, fifo).play(moves).execution()))
    assert lost > 0


@given(n=st.integers(2, 4), pairs=PAIRS, moves=MOVES, fifo=st.booleans(), make=st.sampled_from([hmnr, bcs]))
@settings(max_examples=examples(200))
def test_the_index_rises_along_zigzag_paths(
    n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool, make: Any
) -> None:
    """What an audit of a logged index rests on: C(i,x) to C(j,y) by a zigzag path means index(i,x) < index(j,y)."""
    driven = Driven(make(n), pairs, fifo).play(moves)
    received = messages(driven.execution())
    for i, name in enumerate(driven.names):
        for x, index in enumerate(driven.indices[i]):
            path = [m for m in received if m.sender == name and m.send >= x]
            reached = set(path)
            while path:
                last = path.pop()
                following = {m for m in received if m.sender == last.receiver and m.send >= last.receive}
                path += following - reached
                reached |= following
            for m in reached:
                later = driven.indices[driven.names.index(m.receiver)][m.receive + 1 :]
                assert all(index < after for after in later)


@given(n=st.integers(2, 4), pairs=PAIRS, moves=MOVES, fifo=st.booleans())
@settings(max_examples=examples(100))
def test_under_bcs_no_message_comes_from_a_later_index(
    n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool
) -> None:
    driven = Driven(bcs(n), pairs, fifo).play(moves)
    for m in messages(driven.execution()):
        sender, receiver = driven.names.index(m.sender), driven.names.index(m.receiver)
        assert driven.indices[sender][m.send] <= driven.indices[receiver][m.receive]


@given(n=st.integers(2, 4), pairs=PAIRS, moves=MOVES, fifo=st.booleans(), make=st.sampled_from([hmnr, bcs]))
@settings(max_examples=examples(200))
def test_nothing_is_missed_where_the_same_is_carried_again(
    n: int, pairs: list[tuple[int, int]], moves: list[Move], fifo: bool, make: Any
) -> None:
    asked = Driven(make(n), pairs, fifo, skip=False).play(moves)
    skipped = Driven(make(n), pairs, fifo, skip=True).play(moves)
    assert asked.events == skipped.events
    assert asked.indices == skipped.indices


def test_what_is_carried_is_as_of_the_sending() -> None:
    """A message under way does not change when its sender goes on; until then the same object is carried."""
    for make in (hmnr, bcs):
        rule, other = make(2)
        early = rule.send(1)
        assert rule.send(1) is early
        was = repr(early)
        other.checkpoint()
        other.checkpoint()
        rule.receive(other.send(0))
        rule.checkpoint()
        assert repr(early) == was != repr(rule.send(1))


def test_nothing_is_carried_without_a_protocol_in_the_messages() -> None:
    rule = Independent()
    rule.checkpoint()
    assert (rule.send(1), rule.forces(None), rule.index) == (None, False, None)
    names = ("bidsSource", "currencyMapper", "sink")
    carried = [carried_bytes(protocol, names, 10) for protocol in ("unc", "coor", "cic-bcs", "cic-hmnr")]
    assert carried == [0, 0, 8, hmnr_bytes(names, 10)]
