"""What reaches what in a directed graph, against networkx, by plain loops and compiled ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.arrays.digraph import Digraph, greatest_reaching, reached, strong_components
from tests.examples import examples
from tests.loop_forms import FORMS, forced


@pytest.fixture(params=FORMS, scope="module", autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both forms of the loops."""
    yield from forced(request.param)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Digraph, networkx.DiGraph[int]]:
    nodes = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    edges = sorted(draw(st.lists(pairs, max_size=3 * nodes)))  # some of them twice
    counts = np.bincount([a for a, _ in edges], minlength=nodes)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    known = networkx.DiGraph(edges)
    known.add_nodes_from(range(nodes))
    return Digraph(starts, np.array([b for _, b in edges], np.int32)), known


ANY_FORM = settings(deadline=None, max_examples=examples(200))


@ANY_FORM
@given(graphs())
def test_nodes_that_reach_each_other(drawn: tuple[Digraph, networkx.DiGraph[int]]) -> None:
    graph, known = drawn
    found = dict[int, set[int]]()
    for node, number in enumerate(strong_components(graph).tolist()):
        found.setdefault(number, set()).add(node)
    expected = {frozenset(group) for group in networkx.strongly_connected_components(known)}
    assert {frozenset(group) for group in found.values()} == expected


@ANY_FORM
@given(graphs())
def test_nodes_that_a_path_leads_to(drawn: tuple[Digraph, networkx.DiGraph[int]]) -> None:
    graph, known = drawn
    found = [*reached(graph, range(graph.nodes))]
    assert all(len(set(nodes.tolist())) == len(nodes) for nodes in found)
    assert [set(nodes.tolist()) for nodes in found] == [
        networkx.descendants(known, i) | {i} for i in sorted(known.nodes)
    ]


@ANY_FORM
@given(graphs(), st.randoms(use_true_random=False))
def test_the_greatest_value_that_gets_to_each(drawn: tuple[Digraph, networkx.DiGraph[int]], rng: random.Random) -> None:
    graph, known = drawn
    value = np.array([rng.randint(-3, 3) for _ in range(graph.nodes)], np.int64)
    found = greatest_reaching(graph, value).tolist()
    assert found == [max(value[[*networkx.ancestors(known, i), i]]) for i in sorted(known.nodes)]


def test_a_long_path_is_no_deep_recursion() -> None:
    nodes = 5000
    starts = np.minimum(np.arange(nodes + 1), nodes - 1).astype(np.int32)
    path = Digraph(starts, np.arange(1, nodes, dtype=np.int32))
    assert len(set(strong_components(path).tolist())) == nodes
    assert [len(found) for found in reached(path, [0, nodes - 1])] == [nodes, 1]
    assert greatest_reaching(path, np.arange(nodes)[::-1].copy()).tolist() == [nodes - 1] * nodes
