"""The ledger and its policies against a list of records and the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.policies import check_records as check_policy
from cklog.policies.check_records import CHECK, EMIT, OPEN, RESULT, CheckPolicy, CostBenefit, Ledger, Targets
from cklog.policies.load_time import LoadTime
from tests.examples import examples
from tests.oracles.ledger import PlainLedger

targets = st.builds(
    Targets,
    q=st.none() | st.integers(0, 30),
    u=st.none() | st.integers(0, 60),
    q_windows=st.none() | st.sampled_from([0.5, 1, 1.5, 2, 4]),
)
CURVED = LoadTime(((4, 1e-3), (9, 5e-3)), beyond=2.0)
"""As the published one, the time per record grows; so few records reach every part of it."""

trade_offs = st.builds(
    CostBenefit,
    mtbf_s=st.sampled_from([1.0, 50.0, 1000.0]),
    load=st.sampled_from([0.0, 1e-4, 1e-3]).map(LoadTime.per_record) | st.just(CURVED),
    replay_s_per_tuple=st.sampled_from([0.0, 1e-4, 1e-3]),
    cost_us=st.sampled_from([1.0, 100.0, 5000.0]),
    interval_ms=st.just(50.0),
)
tuples = st.tuples(st.just("tuple"), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=3))
rounds = st.tuples(st.just("round"), st.tuples(targets | trade_offs, st.integers(0, 12)))
histories = st.lists(tuples | tuples | tuples | rounds | st.tuples(st.just("look"), st.none()), max_size=80)


@pytest.fixture(autouse=True, scope="module")
def _small_steps() -> Iterator[None]:
    """Short logs must reach the code for long ones: forgetting, growing, looking further."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check_policy, "_FIRST_ROWS", 4)
        patch.setattr(check_policy, "_FIRST_STEP", 2)
        yield


class Both:
    """A ledger and its plain twin, fed alike; the ledger in chunks."""

    def __init__(self) -> None:
        self.plain, self.ledger = PlainLedger(), Ledger()
        self.waiting = 0
        self.open: set[int] = set()

    def tuple(self, touched: list[tuple[int, bool]]) -> None:
        """A tuple opens windows, closes them, or checks them in between; a negative code is a record without one."""
        self.plain.input += 1
        self.plain.time_ms = 7 * self.plain.input
        for window, closes in touched:
            kind = OPEN if window not in self.open else RESULT if closes else CHECK
            if window == 9:
                kind = EMIT
            self.plain.append(kind, -1 if kind == EMIT else window)
            if kind != EMIT:
                (self.open.discard if kind == RESULT else self.open.add)(window)
            self.waiting += 1

    def flush(self) -> None:
        if self.waiting:
            kinds, windows, inputs, times = np.array(self.plain.log[-self.waiting :]).T
            self.ledger.append(kinds, windows, inputs, times)
        self.ledger.advance(self.plain.input, self.plain.time_ms)
        self.waiting = 0

    def look(self) -> None:
        self.flush()
        assert self.ledger.extent() == self.plain.extent()
        assert self.ledger.replay() == self.plain.replay()
        assert self.ledger.open_windows == len(self.plain.footprints()) == len(self.open)
        assert self.ledger.length == len(self.plain.log)

    def round(self, policy: CheckPolicy, budget: int) -> None:
        self.flush()
        if isinstance(policy, Targets):
            assert self.ledger.check(policy, budget).tolist() == self.plain.check(policy, budget)
            return
        choices = range(min(budget, len(self.open)) + 1)
        saved = [self.plain.saved_s(policy, checks) for checks in choices] if self.open else [0.0]
        checked = self.ledger.check(policy, budget)
        assert saved[len(checked)] == pytest.approx(max(saved), abs=1e-12)
        assert [self.plain.check_oldest() for _ in checked] == checked.tolist()


@settings(max_examples=examples(400))
@given(histories)
def test_the_ledger_is_the_list_of_records(history: list[tuple[str, tuple[CheckPolicy, int]]]) -> None:
    both = Both()
    for what, given_ in history:
        if what == "tuple":
            both.tuple(given_)  # type: ignore[arg-type]
        elif what == "round":
            both.round(*given_)
        else:
            both.look()
    both.look()


@given(histories)
def test_more_checks_never_lengthen_the_extent_or_the_replay(
    history: list[tuple[str, tuple[CheckPolicy, int]]],
) -> None:
    """What makes the smallest number that meets the targets the one that checking one by one arrives at."""
    both = Both()
    for what, given_ in history:
        if what == "tuple":
            both.tuple(given_)  # type: ignore[arg-type]
    states = [both.plain.after(checks) for checks in range(len(both.open) + 1)]
    for fewer, more in pairwise(states):
        assert more.extent() <= fewer.extent()
        assert more.replay() <= fewer.replay()
