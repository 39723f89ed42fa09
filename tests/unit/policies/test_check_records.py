"""Extent, replay and the policies on logs that a person can follow."""

from __future__ import annotations

import numpy as np
import pytest

from cklog.errors import UsageError
from cklog.policies.check_records import CHECK, EMIT, OPEN, RESULT, CostBenefit, Ledger, Pace, Targets
from cklog.policies.load_time import LoadTime

GOLDEN = [(OPEN, 1, 1), (OPEN, 2, 2), (RESULT, 1, 3), (OPEN, 3, 4), (CHECK, 2, 5), (OPEN, 4, 6)]


def ledger_of(*records: tuple[int, int, int]) -> Ledger:
    """A ledger with records (kind, window, input); a timestamp is a second per input."""
    ledger = Ledger()
    kinds, windows, inputs = np.array(records).T
    ledger.append(kinds, windows, inputs, inputs * 1000)
    return ledger


@pytest.mark.parametrize(
    ("records", "extent", "oldest", "open_windows"),
    [
        (GOLDEN, 3, 4, 3),
        ([r for r in GOLDEN if r[0] != CHECK], 4, 2, 3),
        ([*GOLDEN, (RESULT, 4, 7)], 4, 4, 2),
        ([*GOLDEN, (OPEN, 1, 7)], 4, 4, 4),
    ],
)
def test_the_example_log_of_the_paper(
    records: list[tuple[int, int, int]], extent: int, oldest: int, open_windows: int
) -> None:
    """Without the check of window 2 the oldest footprint is its open record, before two records that are no more
    footprints; a window that opens again is open whatever it did before."""
    ledger = ledger_of(*records)
    assert (ledger.extent(), ledger.replay(), ledger.open_windows) == (extent, ledger.input - oldest, open_windows)


def test_an_empty_log_has_no_extent() -> None:
    ledger = Ledger()
    assert (ledger.extent(), ledger.replay(), ledger.open_windows) == (0, 0, 0)
    assert ledger.check(Targets(q=0)).tolist() == []


def test_where_every_window_has_closed_nothing_is_left_to_check() -> None:
    ledger = ledger_of((OPEN, 0, 1), (RESULT, 0, 9))
    assert (ledger.extent(), ledger.replay()) == (0, 0)
    assert ledger.check(Targets(q=0)).tolist() == []


def test_other_records_lengthen_the_extent_but_leave_no_footprint() -> None:
    ledger = ledger_of((OPEN, 0, 1), (EMIT, -1, 2), (EMIT, -1, 3))
    assert (ledger.extent(), ledger.replay(), ledger.open_windows) == (3, 2, 1)
    assert ledger_of((EMIT, -1, 2)).extent() == 0


def test_tuples_without_a_record_count_for_the_replay() -> None:
    ledger = ledger_of(*GOLDEN)
    ledger.advance(16, 16_000)
    assert (ledger.extent(), ledger.replay()) == (3, 12)


def test_a_target_that_is_just_met_asks_for_no_check() -> None:
    log = [*GOLDEN, (RESULT, 4, 7)]
    assert ledger_of(*log).check(Targets(q=4, u=3)).tolist() == []
    assert ledger_of(*log).check(Targets(q=3)).tolist() == [3, 2]  # renewing one leaves four records still
    assert ledger_of(*log).check(Targets(u=2)).tolist() == [3]


def test_the_oldest_footprints_are_renewed_first_and_no_more_than_needed() -> None:
    ledger = ledger_of(*[(OPEN, w, w) for w in range(8)], *[(RESULT, w, 8) for w in (0, 2, 4)])
    assert ledger.extent() == 10
    assert ledger.check(Targets(u=3)).tolist() == [1, 3]
    assert (ledger.extent(), ledger.replay()) == (8, 3)


def test_a_round_ends_with_its_time() -> None:
    ledger = ledger_of(*[(OPEN, w, w) for w in range(8)])
    pace = {"period_ms": 10.0, "interval_ms": 5.0, "cost_us": 2000.0}
    assert ledger.check(Targets(u=0, **pace)).tolist() == [0, 1]
    assert ledger.check(Targets(u=0, **pace), budget=1).tolist() == [2]


def test_no_window_is_checked_twice_in_a_round() -> None:
    """A target below the number of open windows cannot be met, however many checks the round has time for."""
    ledger = ledger_of(*GOLDEN)
    assert ledger.check(Targets(q=1)).tolist() == [3, 2, 4]
    assert (ledger.extent(), ledger.replay()) == (3, 0)


def test_a_multiple_of_the_open_windows_is_a_target() -> None:
    assert Targets(q_windows=2).most_records(90_000) == 180_000
    assert Targets(q=100, q_windows=2).most_records(90_000) == 100
    ledger = ledger_of(*[(OPEN, w, w) for w in range(4)], (RESULT, 1, 4), (RESULT, 2, 5))
    assert ledger.check(Targets(q_windows=2.5)).tolist() == [0]


def test_without_targets_nothing_is_checked() -> None:
    ledger = ledger_of(*[(OPEN, w, w) for w in range(4)])
    ledger.advance(10**9, 10**9)
    assert ledger.check(Targets()).tolist() == []


def test_checks_that_cost_more_than_they_save_are_not_written() -> None:
    ledger = ledger_of((OPEN, 0, 0), (OPEN, 1, 100))
    often = CostBenefit(mtbf_s=1000, load=LoadTime.per_record(0), replay_s_per_tuple=1e-3, cost_us=100)
    seldom = CostBenefit(mtbf_s=1e9, load=LoadTime.per_record(0), replay_s_per_tuple=1e-3, cost_us=100)
    assert ledger.check(seldom).tolist() == []
    assert ledger.check(often).tolist() == [0]  # 100 s / 1000 s * 0.1 s saved for 100 µs; window 1 saves nothing


def test_one_check_alone_may_gain_nothing_where_two_gain_a_lot() -> None:
    """The tuple that opens two windows leaves two footprints of the same age."""
    ledger = ledger_of((OPEN, 0, 0), (OPEN, 1, 0), (OPEN, 2, 100))
    policy = CostBenefit(mtbf_s=1000, load=LoadTime.per_record(0), replay_s_per_tuple=1e-3, cost_us=100)
    assert policy.saved_s(np.array([3, 3, 3, 3]), np.array([100, 100, 0, 0]), 100.0) == pytest.approx(
        [0, -1e-4, 1e-2 - 2e-4, 1e-2 - 3e-4]
    )
    assert ledger.check(policy).tolist() == [0, 1]


def test_a_long_log_takes_the_memory_of_its_extent() -> None:
    ledger = Ledger()
    for n in range(2000):
        inputs = np.arange(100) + 100 * n
        ledger.append(np.tile([OPEN, RESULT], 50), np.zeros(100, np.int64), inputs, inputs)
        ledger.append(np.array([OPEN]), np.array([n % 7]), inputs[-1:], inputs[-1:])
        ledger.append(np.array([RESULT]), np.array([n % 7]), inputs[-1:], inputs[-1:])
    assert ledger.length == 204_000
    assert ledger._rows.shape[1] < 5_000


@pytest.mark.parametrize(
    "pace", [{"cost_us": 0}, {"interval_ms": 100}, {"interval_ms": -1}, {"period_ms": float("inf")}, {"cost_us": -1}]
)
def test_a_pace_that_leaves_no_time_is_refused(pace: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Pace(**pace)
    with pytest.raises(UsageError):
        Targets(q=1, **pace)


def test_targets_and_rates_without_meaning_are_refused() -> None:
    for make in (
        lambda: Targets(q=-1),
        lambda: Targets(u=float("nan")),
        lambda: CostBenefit(0, LoadTime.per_record(1), 1),
        lambda: CostBenefit(1, LoadTime.per_record(1), -1),
    ):
        with pytest.raises(UsageError):
            make()
