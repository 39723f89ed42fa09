"""What reaches what in a directed graph, against networkx, by plain loops and by SciPy."""

from __future__ import annotations

import random

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.arrays import digraph
from cklog.arrays.digraph import Digraph, greatest_reaching, reached, strong_components


@pytest.fixture(params=["plain", "scipy"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(digraph, "_FEW", 1 << 40 if request.param == "plain" else -1)
    return str(request.param)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Digraph, networkx.DiGraph[int]]:
    nodes = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    edges = sorted(draw(st.sets(pairs, max_size=3 * nodes)))
    counts = np.bincount([a for a, _ in edges], minlength=nodes)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    known = networkx.DiGraph(edges)
    known.add_nodes_from(range(nodes))
    return Digraph(starts, np.array([b for _, b in edges], np.int32)), known


ANY_FORM = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)


@ANY_FORM
@given(graphs())
def test_nodes_that_reach_each_other(form: str, drawn: tuple[Digraph, networkx.DiGraph[int]]) -> None:
    graph, known = drawn
    found = dict[int, set[int]]()
    for node, number in enumerate(strong_components(graph).tolist()):
        found.setdefault(number, set()).add(node)
    expected = {frozenset(group) for group in networkx.strongly_connected_components(known)}
    assert {frozenset(group) for group in found.values()} == expected


@ANY_FORM
@given(graphs())
def test_nodes_that_a_path_leads_to(form: str, drawn: tuple[Digraph, networkx.DiGraph[int]]) -> None:
    graph, known = drawn
    found = [*reached(graph, range(graph.nodes))]
    assert all(len(set(nodes.tolist())) == len(nodes) for nodes in found)
    assert [set(nodes.tolist()) for nodes in found] == [
        networkx.descendants(known, i) | {i} for i in sorted(known.nodes)
    ]


@ANY_FORM
@given(graphs(), st.randoms(use_true_random=False))
def test_the_greatest_value_that_gets_to_each(
    form: str, drawn: tuple[Digraph, networkx.DiGraph[int]], rng: random.Random
) -> None:
    graph, known = drawn
    value = np.array([rng.randint(-3, 3) for _ in range(graph.nodes)], np.int64)
    found = greatest_reaching(graph, value).tolist()
    assert found == [max(value[[*networkx.ancestors(known, i), i]]) for i in sorted(known.nodes)]


def test_a_long_path_is_no_deep_recursion(form: str) -> None:
    nodes = 5000
    starts = np.minimum(np.arange(nodes + 1), nodes - 1).astype(np.int32)
    path = Digraph(starts, np.arange(1, nodes, dtype=np.int32))
    assert len(set(strong_components(path).tolist())) == nodes
    assert [len(found) for found in reached(path, [0, nodes - 1])] == [nodes, 1]
    assert greatest_reaching(path, np.arange(nodes)[::-1].copy()).tolist() == [nodes - 1] * nodes
