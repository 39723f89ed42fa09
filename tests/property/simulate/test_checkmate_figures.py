"""The tables of CheckMate's evaluation, from the simulator (Siachamis et al., ICDE 2024, section VII).

The simulator has the published testbed's graphs, generators, messages and timers; assumed are the rates, which are
scaled down, how long a record, a message and a checkpoint take, and the moment of the first coordinated round
(`docs/fidelity.md`). Counts come from the simulated history. Each test says what the paper has, how far off the
simulation may be and why, and fails when the effect is absent: with no invalid checkpoint, no overhead, no delay.
"""

from __future__ import annotations

import pytest

from benchmarks.fidelity_checkmate import (
    CYCLIC_INVALID,
    FAILURES_S,
    INVALID,
    PROTOCOLS,
    RATIOS,
    TOTALS,
    checkpoints_implied,
    failure_rows,
    feedback,
    figure_8_row,
    figure_12_row,
    hot_load_row,
    percent,
    percent_between,
    percent_useless,
    rounds_row,
    run,
    table_2_rest,
    table_2_row,
    table_3_row,
    table_4_row,
)
from cklog.simulate.dataflow.journal import Figures
from cklog.simulate.dataflow.queries import CYCLIC, NEXMARK
from tests.conftest import REPOSITORY

SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3)))

WORKERS = (10, pytest.param(50, marks=pytest.mark.slow))

CASES = (
    (10, 1),
    *(pytest.param(workers, seed, marks=pytest.mark.slow) for workers, seed in ((10, 2), (10, 3), (50, 1))),
)
"""Workers and seed."""

SHUFFLED = ("q3", "q8", "q12")

BEHIND_THE_SHUFFLE = {"q1": 0, "q3": 3, "q8": 2, "q12": 2}
"""Operators of the published graphs behind a channel that other workers send on."""

TAKE_FROM_OTHER_WORKERS = {"q1": 0, "q3": 2, "q8": 1, "q12": 1}


def milliseconds(figures: Figures) -> float:
    assert figures.checkpointing_ms is not None
    return figures.checkpointing_ms


def median(figures: Figures) -> float:
    assert figures.latency_p50_ms is not None
    return figures.latency_p50_ms


def missing(rows: list[str]) -> list[str]:
    """Those that docs/checkmate.md does not show."""
    page = (REPOSITORY / "docs" / "checkmate.md").read_text(encoding="utf-8").splitlines()
    return [row for row in rows if row not in page]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [10, 50])
def test_the_page_shows_tables_2_and_3_as_they_come_out(workers: int) -> None:
    rows = [table_2_row(query, workers) for query in NEXMARK] + [table_2_rest(workers)]
    rows += [table_3_row(query, workers, protocol) for query in NEXMARK for protocol in PROTOCOLS]
    assert missing(rows) == []


def test_the_page_shows_the_other_moments_of_the_first_round_and_figure_8() -> None:
    assert missing([rounds_row(query) for query in NEXMARK] + [figure_8_row(query) for query in SHUFFLED]) == []


@pytest.mark.slow
def test_the_page_shows_table_4_as_it_comes_out() -> None:
    rows = [
        table_4_row(workers, p, 20.0, keeps, failure_s)
        for keeps, failure_s in ((True, 48.0), (False, 48.0), (True, 78.0))
        for workers in (5, 10)
        for p in CYCLIC_INVALID
    ]
    assert missing(rows) == []


@pytest.mark.slow
def test_the_page_shows_figure_12_as_it_comes_out() -> None:
    rows = [figure_12_row(query, load, p) for load in (0.5, 0.8) for query in SHUFFLED for p in PROTOCOLS]
    rows += [figure_12_row(query, load, "coor", orders_first=True) for load in (0.5, 0.8) for query in SHUFFLED]
    assert missing(rows + [hot_load_row(query, load) for load in (0.5, 0.8) for query in SHUFFLED]) == []


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("query", NEXMARK)
def test_table_3_coordinated_rounds(query: str, workers: int) -> None:
    """Exactly: complete rounds, all of them of every instance; nothing is rolled past."""
    found = run(NEXMARK[query], "coor", workers)
    assert found.checkpoints == found.coordinated == TOTALS[query]["coor"][workers]
    assert (found.rounds_complete, found.rounds_incomplete) == (9 if query == "q8" else 8, 0)
    assert found.rolled_past == found.rolled_past_between_workers == INVALID[query]["coor"][workers] == 0


@pytest.mark.quarter
@pytest.mark.parametrize(("workers", "seed"), CASES)
@pytest.mark.parametrize("protocol", ["unc", "cic-hmnr"])
@pytest.mark.parametrize("query", NEXMARK)
def test_table_3_totals(query: str, protocol: str, workers: int, seed: int) -> None:
    """Within 10 %: in 48 s a timer of 5 ± 1 s fires 9 or 10 times, and the moment of its first time is not known."""
    found = run(NEXMARK[query], protocol, workers, seed)
    assert found.checkpoints == pytest.approx(TOTALS[query][protocol][workers], rel=0.1)
    assert found.useless == 0  # no cycle, no Z-cycle: what the table calls invalid is rolled past


@pytest.mark.slow
@pytest.mark.parametrize("workers", [10, 50])
@pytest.mark.parametrize("protocol", ["unc", "cic-hmnr"])
@pytest.mark.parametrize("query", SHUFFLED)
def test_table_3_invalid_checkpoints_as_the_testbed_counts_them(query: str, protocol: str, workers: int) -> None:
    """The paper: 2 to 4 %, of one run, in whole percent. Within 1.5 points of it: half a point of rounding, and one by
    which runs differ (five seeds on ten workers under CIC: 3.0 to 4.5, 2.0 to 3.5 and 2.0 to 3.7 %, where it has 3, 3
    and 4). Without invalid checkpoints it is off by 2 or more."""
    paper, seeds = INVALID[query][protocol][workers], (1, 2, 3) if workers == 10 else (1,)
    shares = [percent_between(run(NEXMARK[query], protocol, workers, seed)) for seed in seeds]
    assert sum(shares) / len(shares) == pytest.approx(paper, abs=1.5)
    assert paper >= 2


@pytest.mark.parametrize(("workers", "seed"), CASES)
@pytest.mark.parametrize("query", SHUFFLED)
def test_table_3_invalid_checkpoints_are_more_than_the_testbed_counts(query: str, workers: int, seed: int) -> None:
    """Timers of workers differ by seconds, and a message takes milliseconds: on every worker but the one whose newest
    checkpoint is the oldest, all operators behind the shuffle go back by one. The testbed's rule sees those alone
    that take from other workers themselves. So 5.7, 4.8 and 6.4 % where the paper has 4, 2 and 3 %. A worker whose
    timer fired at nearly the same time as the oldest may have no message from it yet: one in nine."""
    found = run(NEXMARK[query], "unc", workers, seed)
    for counted, operators in (
        (found.rolled_past, BEHIND_THE_SHUFFLE[query]),
        (found.rolled_past_between_workers, TAKE_FROM_OTHER_WORKERS[query]),
    ):
        assert 8 / 9 * (workers - 1) * operators <= counted <= (workers - 1) * operators
    assert percent(found) > INVALID[query]["unc"][workers] + 0.5  # more than was rounded


@pytest.mark.parametrize("workers", WORKERS)
def test_table_3_without_a_shuffle_the_testbed_sees_nothing(workers: int) -> None:
    """Q1: 0 % in the paper. Under UNC that is so, as a worker's operators checkpoint at once; under CIC they do not,
    and some are rolled past, but no channel leaves a worker, so that its rule cannot see them."""
    assert run(NEXMARK["q1"], "unc", workers).rolled_past == 0
    cic = run(NEXMARK["q1"], "cic-hmnr", workers)
    assert percent_between(cic) == 0
    assert percent(cic) > 1


@pytest.mark.parametrize("query", NEXMARK)
def test_table_2_message_overhead_on_ten_workers(query: str) -> None:
    """1.74 to 2.10 in the paper; predicted from what is pickled, without a constant: within 10 %, and 30 % for Q12,
    whose messages are the smallest, so that the records' strings, of which only the mean is known, weigh least."""
    found = run(NEXMARK[query], "cic-hmnr", 10).ratio
    assert found == pytest.approx(RATIOS[query]["cic-hmnr"][10], rel=0.3 if query == "q12" else 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("query", NEXMARK)
def test_table_2_message_overhead_on_fifty_workers_does_not_come_out(query: str) -> None:
    """2.49 to 2.58 in the paper. The dicts of the published testbed have five times the entries, so that the overhead
    grows five times: at least 1.5 times the paper's ratio. What it measured there is not known."""
    few, many = (run(NEXMARK[query], "cic-hmnr", workers).ratio or 0.0 for workers in (10, 50))
    assert (many - 1) / (few - 1) == pytest.approx(4.2, rel=0.05)
    assert many > 1.5 * RATIOS[query]["cic-hmnr"][50]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("protocol", ["unc", "coor"])
@pytest.mark.parametrize("query", NEXMARK)
def test_table_2_other_protocols_send_little(query: str, protocol: str, workers: int) -> None:
    """1.00 or 1.01 in the paper: at most 0.02 more here, as rates are scaled down and the protocols' own messages are
    not. Some bytes they do send."""
    found = run(NEXMARK[query], protocol, workers).ratio
    assert found is not None
    assert 1 < found < RATIOS[query][protocol][workers] + 0.02


def test_table_4_implies_a_failure_48_s_after_the_deployment() -> None:
    """Of six operators the join alone takes from other workers, and goes back by one on all workers but one: 4 of 30
    instances, or 9 of 60. Checkpoints come every 5 s: 9.6 per instance until 48 s, and 15.6 until 78 s."""
    cells = {(w, p): checkpoints_implied(w, share) for p, found in CYCLIC_INVALID.items() for w, share in found.items()}
    assert {cell: round(found, 1) for cell, found in cells.items()} == {
        (5, "unc"): 9.5,
        (10, "unc"): 10.7,
        (5, "cic-hmnr"): 7.8,
        (10, "cic-hmnr"): 9.4,
    }
    for (workers, protocol), found in cells.items():
        assert 100 * (workers - 1) / (6 * workers * found) == pytest.approx(CYCLIC_INVALID[protocol][workers])
        assert found < 12.6  # nearer to 48 s than to 78 s, each by itself
    assert min(FAILURES_S, key=lambda at: abs(at / 5 - sum(cells.values()) / 4)) == CYCLIC.failure_s == 48
    assert missing(list(failure_rows())) == []


@pytest.mark.quarter
@pytest.mark.parametrize("workers", [5, 10])
@pytest.mark.parametrize("protocol", ["unc", "cic-hmnr"])
def test_table_4_is_what_the_testbed_counts(workers: int, protocol: str) -> None:
    """1.4 to 1.7 % in the paper, of one run; the mean of five seeds within 0.4 points. 78 s after the deployment the
    share is below 1 % in all four cells, and off by half a point or more."""
    paper, seeds = CYCLIC_INVALID[protocol][workers], range(1, 6)
    found = [percent_between(run(CYCLIC, protocol, workers, seed)) for seed in seeds]
    assert sum(found) / len(found) == pytest.approx(paper, abs=0.4)
    later = percent_between(run(CYCLIC, protocol, workers, failure_s=78.0))
    assert later < min(1.0, paper - 0.5)


@pytest.mark.parametrize("workers", [5, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_table_4_hides_the_domino_effect(workers: int, seed: int) -> None:
    """ "The uncoordinated protocol does not introduce a domino effect": with its own generator it does. Over a quarter
    of all checkpoints are useless, and rollbacks go further than one checkpoint, on 10 workers ten; under HMNR none is
    useless. On 5 workers it differs by seed how far: from two checkpoints to nine."""
    uncoordinated = run(CYCLIC, "unc", workers, seed)
    assert feedback(uncoordinated) > 50 * workers
    assert percent_useless(uncoordinated) > 25
    assert uncoordinated.deepest > (5 if workers == 10 else 1)
    assert run(CYCLIC, "cic-hmnr", workers, seed).useless == 0


def test_communication_induced_checkpoints_are_forced_where_there_is_a_successor() -> None:
    """In all queries: every operator but the sources and the sink both receives and sends on."""
    assert all(run(NEXMARK[query], "cic-hmnr", 10).forced > 0 for query in NEXMARK)


@pytest.mark.parametrize("query", SHUFFLED)
def test_figure_8_coordinated_rounds_take_much_longer_than_a_checkpoint(query: str) -> None:
    """ "Up to two magnitudes higher for Q3, Q8, and Q12, which involve shuffling": at least one, at most two. The text
    gives no number, and milliseconds follow the assumed rates, so nothing closer can be tested."""
    once = milliseconds(run(NEXMARK[query], "unc", 10))
    assert 10 * once < milliseconds(run(NEXMARK[query], "coor", 10)) < 100 * once


@pytest.mark.slow
@pytest.mark.parametrize("query", SHUFFLED)
def test_figure_12_skew_delays_coordinated_checkpoints_alone(query: str) -> None:
    """At 80 % load 10 % of hot items raise the time of a round and the median latency by more than a magnitude; at 50 %
    those of 30 % do. The other protocols keep both, and the paper's shares of invalid checkpoints stay."""
    for load, hot in ((0.8, 0.1), (0.5, 0.3)):
        even, skewed = (run(NEXMARK[query], "coor", 10, load=load, hot=h, failure_s=90.0) for h in (0.0, hot))
        assert milliseconds(skewed) > 10 * milliseconds(even)
        assert median(skewed) > 10 * median(even)
        for protocol in ("unc", "cic-hmnr"):
            even, skewed = (run(NEXMARK[query], protocol, 10, load=load, hot=h, failure_s=90.0) for h in (0.0, hot))
            assert milliseconds(skewed) < 2 * milliseconds(even)
            assert median(skewed) < 2 * median(even)
            assert percent(skewed) == pytest.approx(percent(even), abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("query", SHUFFLED)
def test_figure_12_latency_rises_because_orders_wait(query: str) -> None:
    """The hot worker takes the order to begin a round after all that waits there, and all others wait for its markers.
    Were the order taken first, only what comes to the hot worker would be late, and the median would stay."""
    taken = {"load": 0.8, "hot": 0.1, "failure_s": 90.0}
    turn, first = (run(NEXMARK[query], "coor", 10, orders_first=first, **taken) for first in (False, True))
    assert median(turn) > 50 * median(first)


@pytest.mark.slow
@pytest.mark.parametrize("query", SHUFFLED)
def test_figure_12_does_not_come_out_step_by_step_at_half_load(query: str) -> None:
    """ "With every increase in the hot items ratio, latency and checkpointing time increase by at least an order of
    magnitude for the lower throughput": not from 0 to 10 %, where the hot worker has time left."""
    even, skewed = (run(NEXMARK[query], "coor", 10, load=0.5, hot=hot, failure_s=90.0) for hot in (0.0, 0.1))
    assert milliseconds(even) < milliseconds(skewed) < 2 * milliseconds(even)
