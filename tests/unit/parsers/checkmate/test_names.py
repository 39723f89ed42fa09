"""Which worker hosts which partition, inferred from the names of channels, against deployments that are known."""

from __future__ import annotations

from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.parsers.checkmate.names import SentChannel, deployment_of, endings, snapshot_of


def sent_channels(workers: int, each: int, edges: dict[str, bool]) -> dict[SentChannel, tuple[int, int]]:
    """Every channel of a deployment, and the workers that it joins, by the testbed's numbering.

    `edges` are operators joined, as "a_b", and whether every partition sends to every other one or to its own alone.
    """
    count = workers * each
    found = {}
    for edge, shuffled in edges.items():
        for start in range(count):
            for end in range(count) if shuffled else (start,):
                channel = SentChannel(start % workers + 1, f"{edge}_{start * count + end}")
                found[channel] = (start % workers + 1, end % workers + 1)
    return found


EDGES = st.dictionaries(st.sampled_from(["a_b", "b_c", "a_c", "c_a", "b_b"]), st.booleans(), min_size=1)


@given(st.integers(1, 5), st.integers(1, 3), EDGES)
def test_channels_join_the_workers_that_they_join(workers: int, each: int, edges: dict[str, bool]) -> None:
    every = sent_channels(workers, each, edges)
    deployment = deployment_of([], every)
    for channel, (sender, receiver) in every.items():
        start, end, _ = channel.channel.split("_")
        name = deployment.channel(channel.channel)
        assert name is not None
        assert name.partition("#")[0] == f"{start}/{sender}->{end}/{receiver}"
        assert ("#" in name) == (each > 1)


@given(st.integers(2, 5), EDGES, st.data())
def test_a_worker_that_died_before_its_first_snapshot_is_still_one(
    workers: int, edges: dict[str, bool], data: st.DataObject
) -> None:
    every = sent_channels(workers, 1, edges)
    dead = data.draw(st.integers(1, workers))
    left = {channel: ends for channel, ends in every.items() if channel.worker != dead}
    deployment = deployment_of([], left)
    for channel, (sender, receiver) in left.items():
        start, end, _ = channel.channel.split("_")
        assert deployment.channel(channel.channel) == f"{start}/{sender}->{end}/{receiver}"


@given(st.integers(2, 4), st.integers(1, 2), EDGES, st.data())
def test_logs_that_are_gone_cost_no_other_channel_its_ends(
    workers: int, each: int, edges: dict[str, bool], data: st.DataObject
) -> None:
    """As long as of every partition that sends to an operator one log is left."""
    every = sent_channels(workers, each, edges)
    kept: dict[tuple[str, int], SentChannel] = {}
    for channel in every:
        edge, _, number = channel.channel.rpartition("_")
        kept.setdefault((edge, int(number) // (workers * each)), channel)
    rest = [channel for channel in every if channel not in kept.values()]
    gone = data.draw(st.sets(st.sampled_from(rest))) if rest else set()
    deployment = deployment_of([], [channel for channel in every if channel not in gone])
    for channel in every.keys() - gone:
        start, end, _ = channel.channel.split("_")
        sender, receiver = every[channel]
        name = deployment.channel(channel.channel)
        assert name is not None
        assert name.partition("#")[0] == f"{start}/{sender}->{end}/{receiver}"


def test_every_other_deployment_that_leaves_the_same_names_is_told() -> None:
    """Held against all deployments of three workers at the most, with any of them dead before its first snapshot."""
    true: dict[frozenset[SentChannel], set[tuple[int, int]]] = {}
    for workers, each in ((w, e) for w in (1, 2, 3) for e in (1, 2)):
        for shuffled in ((True,), (False,), *product((True, False), repeat=2)):
            edges = dict(zip(("a_b", "b_c"), shuffled, strict=False))
            every = sent_channels(workers, each, edges)
            numbers = range(1, workers + 1)
            for dead in chain.from_iterable(combinations(numbers, k) for k in range(workers)):
                left = frozenset(channel for channel in every if channel.worker not in dead)
                true.setdefault(left, set()).add((workers, workers * each))
    assert any(len(deployments) > 1 for deployments in true.values())
    for left, deployments in true.items():
        found = deployment_of([], left)
        told = {(len(found.workers), found.count("a")), *((len(w), count) for w, count in found.others)}
        assert found.fits
        if all(channel.channel.endswith("_0") for channel in left):  # of these there is no end
            assert len(told) > 1, sorted(left)
        else:
            assert {(w, count) for w, count in told if w <= 3 and count <= 2 * w} == deployments, sorted(left)


@given(st.integers(2, 4), EDGES, st.data())
def test_a_channel_that_is_missing_is_named(workers: int, edges: dict[str, bool], data: st.DataObject) -> None:
    every = sorted(sent_channels(workers, 1, edges))
    gone = data.draw(st.sampled_from(every))
    found = deployment_of([], [channel for channel in every if channel != gone])
    if any(channel.channel.startswith(gone.channel.rpartition("_")[0]) for channel in every if channel != gone):
        assert found.others or not found.fits or gone.channel in found.unseen()
    assert not [*deployment_of([], every).unseen()]


@pytest.mark.parametrize("each", [1, 2])
def test_without_channels_every_worker_is_taken_to_host_one_of_each(each: int) -> None:
    found = [snapshot_of(f"snapshot_{worker}_map_{stamp}.bin", 9) for worker in (1, 2) for stamp in range(each)]
    deployment = deployment_of([one for one in found if one], [])
    assert (deployment.workers, deployment.count("map")) == ((1, 2), 2)


def test_an_operator_that_is_sent_to_has_no_more_partitions_than_its_senders_see() -> None:
    """Taken alone, b_c_0 and b_c_2 could be the third of b's partitions sending to an only one of c."""
    left = {1: ("b_b_0", "b_b_1", "b_c_0"), 2: ("b_b_2", "b_b_3", "b_c_2")}
    found = deployment_of([], [SentChannel(worker, name) for worker, names in left.items() for name in names])
    assert (found.count("b"), found.channel("b_b_2"), found.channel("b_c_2")) == (2, "b/2->b/1", "b/2->c/1")
    assert [*found.unseen()] == ["b_c_1", "b_c_3"]


def test_numbers_of_any_size_end_soon() -> None:
    sent = [SentChannel(999_999_999, "a_b_999999999"), SentChannel(1, "a_b_0"), SentChannel(0, "b_a_999999998")]
    assert deployment_of([], sent).operators == ("a", "b")


@pytest.mark.parametrize("name", ["_b_0", "a__0", "__0", "_0", "a_0", "a_b_", "a_b_x", ""])
def test_a_channel_joins_two_operators_that_have_names(name: str) -> None:
    assert endings(name, ["a", "b", ""]) is None


def test_a_name_is_split_where_both_sides_are_operators() -> None:
    """One that is none leaves it open, whatever the other is."""
    assert endings("a_b_c_0", ["a"]) is None
    assert endings("a_b_c_0", ["c"]) is None
    assert endings("a_b_c_0", []) is None
    assert endings("a_b_c_12", ["a_b", "c"]) == ("a_b", "c", 12)
    assert endings("a_b_c_12", ["a", "b_c", "c"]) == ("a", "b_c", 12)


def test_operators_may_differ_in_their_partitions() -> None:
    """a has a partition on each of three workers, b two in all: no deployment of equal numbers has these channels."""
    sent = {SentChannel(worker, f"a_b_{2 * (worker - 1) + to}"): None for worker in (1, 2, 3) for to in range(2)}
    deployment = deployment_of([], sent)
    assert {operator: deployment.count(operator) for operator in "ab"} == {"a": 3, "b": 2}
    assert (deployment.fits, [deployment.host("a", partition) for partition in range(3)]) == (True, [1, 2, 3])
    del sent[SentChannel(1, "a_b_0")]
    assert not deployment_of([], sent).fits
