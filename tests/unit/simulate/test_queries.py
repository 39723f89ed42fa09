"""The queries of the simulated dataflow, operator by operator."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise, permutations
from typing import Any

import pytest

from cklog.simulate.dataflow.queries import CYCLIC, NEXMARK, WINDOW_US, Keyed, Relay, SimulatedOperator
from cklog.simulate.dataflow.reachability import (
    GONE,
    NEW,
    LinkEvents,
    ReachabilityEvents,
    ReachJoin,
    ReachProject,
    ReachSelect,
    Sources,
)
from tests.builders.dataflow_runs import setting


def test_reachability_finds_every_simple_path() -> None:
    """Links and sources in any order, one join for all: as many results as the definition, by brute force."""
    for seed in range(20):
        draws = random.Random(seed)
        links = draws.sample([(a, b) for a in range(5) for b in range(5) if a != b], 8)
        sources = draws.sample(range(5), 2)
        events: list[Any] = [(NEW, "link", a, b) for a, b in links]
        events += [(NEW, "reached", s, s, (s,)) for s in sources]
        draws.shuffle(events)
        assert sorted(_reached(events)) == sorted(
            path
            for n in range(2, 6)
            for path in permutations(range(5), n)
            if path[0] in sources and all(pair in links for pair in pairwise(path))
        )


def _reached(events: list[Any], keeps_sources: bool = True) -> list[tuple[int, ...]]:
    """The paths that the operators put out for these events, fed back as the query does."""
    join, select, project = ReachJoin(keeps_sources), ReachSelect(), ReachProject()
    found, waiting = [], list(events)
    while waiting:
        for _, pair in join.handle(waiting.pop(0), 0):
            for _, kept in select.handle(pair, 0):
                for key, made in project.handle(kept, 0):
                    assert key == made[3]
                    found.append(made[4])
                    waiting.append(made)
    return found


def test_what_is_deleted_matches_nothing_any_more() -> None:
    link, source = (NEW, "link", 1, 2), (NEW, "reached", 1, 1, (1,))
    assert _reached([link, source]) == [(1, 2)]
    assert _reached([link, (GONE, *link[1:]), source]) == []
    assert _reached([source, (GONE, *source[1:]), link]) == []
    assert _reached([(GONE, *link[1:]), (GONE, *source[1:]), link, source]) == [(1, 2)]
    join = ReachJoin()
    for record in (link, source, link, (GONE, *link[1:])):
        join.handle(record, 0)
    assert join.state_bytes() == 200


def test_events_on_the_graph_come_as_often_as_the_paper_says() -> None:
    """60 % new links, 20 % deleted ones; 15 % new source nodes, 5 % deleted ones; only what is there is deleted."""
    events = ReachabilityEvents(random.Random(1), 1000)
    for task, deleted in ((LinkEvents(events), 0.25), (Sources(events), 0.25)):
        there: Counter[Any] = Counter()
        changes: Counter[int] = Counter()
        for _ in range(20_000):
            ((key, (change, _, *rest)),) = task.handle(None, 0)
            assert key == rest[-2 if len(rest) == 2 else 1]
            changes[change] += 1
            there[tuple(rest)] += change
            assert there[tuple(rest)] >= 0
        assert changes[GONE] / 20_000 == pytest.approx(deleted, abs=0.01)
    assert sum(o.share for o in CYCLIC.operators if o.name == "links") == 0.8


def test_new_links_start_where_the_published_generator_lets_them() -> None:
    """10 % at a node that is a source, 20 % where a link ends, the others anywhere; none ends where it starts.

    Of so many nodes that chance hardly ever finds one that is a source or the end of a link.
    """
    events = ReachabilityEvents(random.Random(3), 1_000_000_000)
    sources: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    begun: Counter[str] = Counter()
    for _ in range(400):
        change, node = events.next_source()
        sources[node] += change
    for _ in range(20_000):
        change, (start, end) = events.next_link()
        assert start != end
        if change == NEW:
            begun["source" if sources[start] > 0 else "end" if ends[start] > 0 else "anywhere"] += 1
        ends[end] += change
    assert begun["source"] / begun.total() == pytest.approx(0.1, abs=0.01)
    assert begun["end"] / begun.total() == pytest.approx(0.2, abs=0.01)


def test_the_join_as_published_finds_only_links_that_came_before_their_source() -> None:
    """Testbed, e216b55: a source is added to the entry of one that is there already, so that there never is one."""
    link, further, source = (NEW, "link", 1, 2), (NEW, "link", 2, 3), (NEW, "reached", 1, 1, (1,))
    assert _reached([link, further, source], keeps_sources=False) == [(1, 2), (1, 2, 3)]
    assert _reached([source, link, further], keeps_sources=False) == []
    assert _reached([source, link, further]) == [(1, 2), (1, 2, 3)]


def test_state_grows_by_what_an_operator_holds() -> None:
    """A join holds all it took, a windowed one what its window did, a count one number per key of the window."""
    second = WINDOW_US // 10
    sizes: dict[str, list[int]] = {}
    for holds in ("", "all", "window", "counts"):
        held = 16 if holds == "counts" else 100
        relay = Relay(SimulatedOperator("x", "x", "x", holds=holds, held_bytes=held), random.Random(1))
        sizes[holds] = []
        for now, key in enumerate([1, 2, 1, 1, 5, 1, 7, 8, 9, 9, 9, 9]):
            assert relay.handle(key, now * second) == ()
            sizes[holds].append(relay.state_bytes())
    assert sizes[""] == [0] * 12
    assert sizes["all"] == [100 * n for n in range(1, 13)]
    assert sizes["window"] == [*(100 * n for n in range(1, 11)), 100, 200]
    assert sizes["counts"] == [16, 32, 32, 32, 48, 48, 64, 80, 96, 96, 16, 16]


def test_a_relay_passes_on_as_many_as_it_should() -> None:
    relay = Relay(SimulatedOperator("x", "x", "x", to="y", passes=0.2), random.Random(1))
    assert sum(len(relay.handle(key, 0)) for key in range(20_000)) / 20_000 == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("name", "handled"), [("q1", 3.0), ("q3", 2.5), ("q8", 2.75), ("q12", 3.0)])
def test_a_worker_is_as_busy_as_asked(name: str, handled: float) -> None:
    """Messages per record: every operator once, by what reaches it."""
    query = NEXMARK[name]
    assert query.handled() == pytest.approx(handled)
    assert setting(query, rate=100.0, load=0.6).processing_us == round(6000 / handled)


def test_hot_items_go_to_one_instance() -> None:
    for hot, share in ((0.0, 0.25), (0.4, 0.55)):
        keyed = Keyed(random.Random(1), hot)
        keys = [keyed.handle(None, 0)[0][0] for _ in range(20_000)]
        assert sum(key % 4 == 0 for key in keys) / 20_000 == pytest.approx(share, abs=0.01)
        assert keys.count(0) / 20_000 == pytest.approx(hot, abs=0.01)


def test_only_the_reachability_query_has_a_cycle() -> None:
    assert CYCLIC.cycle() == ("join", "select", "project", "join")
    assert [query.cycle() for query in NEXMARK.values()] == [(), (), (), ()]
