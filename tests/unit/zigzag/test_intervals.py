"""Staircases and the search they are made with, each beside the loop that it must equal."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.arrays.search import first_at_least
from cklog.budgets import Budgets, budgets, use
from cklog.errors import OverBudget
from cklog.history.history import History, history_of
from cklog.lines.fixpoint import recovery_line
from cklog.zigzag import intervals
from cklog.zigzag.intervals import staircases, useless

LARGEST = 2**63 - 1
NUMBERS = st.one_of(st.integers(0, 9), st.integers(LARGEST - 9, LARGEST), st.just(-(2**63)))
RISING = st.lists(st.integers(0, 9), min_size=1, max_size=6).map(sorted)


@given(st.lists(st.tuples(st.lists(NUMBERS, max_size=9).map(sorted), NUMBERS), min_size=1, max_size=9))
def test_the_search_equals_bisect_in_every_range(ranges: list[tuple[list[int], int]]) -> None:
    values = np.array([v for row, _ in ranges for v in row], np.int64)
    ends = np.cumsum([len(row) for row, _ in ranges])
    low = ends - [len(row) for row, _ in ranges]
    limit = np.array([limit for _, limit in ranges], np.int64)
    if len(values):
        expected = [int(at) + bisect_left(row, v) for at, (row, v) in zip(low, ranges, strict=True)]
        assert first_at_least(values, low, ends, limit).tolist() == expected


def pairs(history: History) -> list[tuple[int, int, int]]:
    found = staircases(history)
    return list(zip(found.channel.tolist(), found.send.tolist(), found.receive.tolist(), strict=True))


def one_channel(sent: list[int], received: list[int], survivors: frozenset[str] = frozenset()) -> History:
    stored = {
        "a/0": list(range(1, len(sent) - ("a/0" in survivors))),
        "b/0": list(range(1, len(received) - ("b/0" in survivors))),
    }
    return history_of(stored, {"a/0->b/0": sent}, {"a/0->b/0": received}, survivors)


def test_dominated_pairs_are_left_out() -> None:
    """Received in intervals 0, 1, 2, all of it sent in interval 0: the earliest receipt says it all."""
    assert pairs(one_channel([0, 9], [0, 1, 2, 3])) == [(0, 0, 0)]


def test_equal_watermarks_put_the_message_into_the_interval_before() -> None:
    """b received 2 by its checkpoint 1; a had sent 2 by its checkpoint 1, so message 1 is of interval 0."""
    assert pairs(one_channel([0, 2, 4], [0, 2, 3])) == [(0, 0, 0), (0, 1, 1)]


def test_sent_after_the_newest_checkpoint_is_of_the_volatile_interval() -> None:
    assert pairs(one_channel([0, 2], [0, 5])) == [(0, 1, 0)]


def test_what_a_survivor_sent_since_its_newest_checkpoint_is_of_that_interval() -> None:
    assert pairs(one_channel([0, 2, 3], [0, 5], frozenset({"a/0"}))) == [(0, 1, 0)]


def test_sent_before_checkpoint_0_has_no_edge() -> None:
    assert pairs(one_channel([5, 6], [0, 5, 6])) == [(0, 0, 1)]


def test_received_before_checkpoint_0_is_interval_minus_one() -> None:
    assert pairs(one_channel([0, 6], [3, 7])) == [(0, 0, -1), (0, 1, 0)]


@given(st.lists(st.tuples(RISING, RISING), max_size=6))
def test_staircases_equal_the_loop_over_messages(channels: list[tuple[list[int], list[int]]]) -> None:
    names = [f"a/{k}->b/{k}" for k in range(len(channels))]
    history = history_of(
        {f"{op}/{k}": list(range(1, len(c[side]))) for k, c in enumerate(channels) for side, op in enumerate("ab")},
        {name: sent for name, (sent, _) in zip(names, channels, strict=True)},
        {name: received for name, (_, received) in zip(names, channels, strict=True)},
    )
    assert pairs(history) == [pair for k, c in enumerate(channels) for pair in by_message(k, *c)]


def by_message(channel: int, sent: list[int], received: list[int]) -> list[tuple[int, int, int]]:
    """Message m: sent after the last checkpoint without it, received before the first with it. Then prune."""
    edges = []
    for m in range(received[-1]):
        send = bisect_left(sent, m + 1) - 1
        if send >= 0:
            edges.append((channel, send, bisect_left(received, m + 1) - 1))
    return [
        e for e in dict.fromkeys(edges) if not any(o != e and o[1] >= e[1] and o[2] <= e[2] for o in edges)
    ]  # fmt: skip


def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {f"a/0->b/{k}": [0, 1, 3, 4] for k in range(7)}
    history = history_of(
        {"a/0": [1, 2, 3]} | {f"b/{k}": [1, 2, 3] for k in range(7)}, marks, {c: [0, 1, 2, 4] for c in marks}
    )
    whole = pairs(history)
    monkeypatch.setattr(intervals, "_BLOCK_ROWS", 5)
    assert pairs(history) == whole


@pytest.mark.parametrize("most", [1, 3, 8, 12, 20, 1000])
def test_blocks_are_of_whole_senders_and_only_one_alone_exceeds_the_size(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut by hand: what a sender costs are its checkpoints, initial and current state, and receivers' rows."""
    monkeypatch.setattr(intervals, "_BLOCK_PAIRS", most)
    sent = {"a/0->b/0": [0, 1, 3, 4], "a/0->c/0": [0, 1, 3, 4], "b/0->c/0": [0, 1, 1], "c/0->d/0": [0, 2, 2, 5]}
    received = {"a/0->b/0": [0, 1, 4], "a/0->c/0": [0, 2, 3, 4], "b/0->c/0": [0, 0, 1, 1], "c/0->d/0": [0, 5]}
    history = history_of({"a/0": [1, 2, 3], "b/0": [1, 2], "c/0": [1, 2, 3], "d/0": [1]}, sent, received)
    sender = {name: name[0] for name in received}
    rows = {i: sum(len(received[name]) for name in received if sender[name] == i) for i in "abcd"}
    cost = [int(history.first[i + 1] - history.first[i]) + rows["abcd"[i]] for i in range(4)]
    blocks = list(itertools.islice(intervals._sender_blocks(history, np.arange(4)), 5))
    assert [i for low, high in blocks for i in range(low, high)] == [0, 1, 2, 3]
    for low, high in blocks:
        assert high == low + 1 or sum(cost[low:high]) < most
        assert high == 4 or sum(cost[low : high + 1]) >= most


def test_an_acyclic_job_has_no_useless_checkpoint_and_builds_no_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(intervals, "interval_graph")
    marks = {"a/0->b/0": [0, 2], "a/0->c/0": [0, 2], "b/0->c/0": [0, 2]}
    history = history_of({"a/0": [1], "b/0": [1], "c/0": [1]}, marks, {c: [0, 5] for c in marks})
    assert not useless(history).any()


def test_an_edge_twice_does_not_stop_the_search_for_components() -> None:
    """Two ports between the same pair give the same edges."""
    marks = {"a/0->b/0": [0, 0], "a/0->b/0#1": [0, 0], "b/0->a/0": [0, 1]}
    history = history_of({"a/0": [1], "b/0": [1]}, marks, {c: [0, 1] for c in marks})
    assert useless(history).tolist() == [False, True, False, False]


MARKS = {"a/0->b/0": [0, 2, 4], "b/0->a/0": [0, 2, 4]}
PING_PONG = {"a/0": [1, 2], "b/0": [1, 2]}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Fewer bytes than the graph of the smallest history takes."""
    before = budgets()
    use(Budgets(memory=256))
    yield
    use(before)


@pytest.mark.usefixtures("little_memory")
def test_a_graph_that_does_not_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how much it would take: 4 bytes a pair, 32 a node, and the watermarks that are held."""
    monkeypatch.delattr(intervals, "_edges_out_of")
    history = history_of(PING_PONG, MARKS, MARKS)
    with pytest.raises(OverBudget, match=r"the graph of 6 checkpoints and 2 channels needs 1 MiB \(--max-memory 0MiB"):
        useless(history)


@pytest.mark.parametrize("most", [99, 2**30 - 1, 2**30, 2**62])
def test_great_watermarks_give_the_pairs_of_small_ones(most: int) -> None:
    """Only their order counts, whether they are held in 32 bits or in 64."""
    sent = {"a/0->b/0": [0, most - 3, most], "b/0->a/0": [0, most - 2, most]}
    received = {key: [0, most - 2, most] for key in sent}
    history = history_of(PING_PONG, sent, received)
    assert history.sent.itemsize == (4 if most < 2**30 else 8)
    small = history_of(PING_PONG, {"a/0->b/0": [0, 1, 4], "b/0->a/0": [0, 2, 4]}, {key: [0, 2, 4] for key in sent})
    assert pairs(history) == pairs(small) == [(0, 1, 0), (1, 0, 0), (1, 1, 1)]
    assert useless(history).tolist() == useless(small).tolist()
    assert recovery_line(history).tolist() == recovery_line(small).tolist()
