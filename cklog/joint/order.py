"""In which order jobs restart: whoever writes before whoever reads it; jobs in a cycle together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from cklog.joint.graph import Link


@dataclass(frozen=True, slots=True)
class Turn:
    """A job's turn. `after` are jobs that must have written again first; `cycle` jobs that restart together with it."""

    job: int
    after: tuple[int, ...]
    cycle: tuple[int, ...]


def restart_order(jobs: int, links: Sequence[Link], points: Sequence[int]) -> list[Turn]:
    """Return the jobs in an order in which none reads what is not there yet, where there is one.

    Any order would do between jobs of which none is in `after` of the other: a reader waits for what is to come.
    """
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(jobs))
    graph.add_edges_from((link.producer, link.consumer) for link in links)
    together = nx.condensation(graph)
    turns = []
    for part in nx.lexicographical_topological_sort(together, key=lambda part: min(together.nodes[part]["members"])):
        members = sorted(together.nodes[part]["members"])
        for job in members:
            after = {link.producer for link in links if link.consumer == job and must_wait(link, points)}
            turns.append(Turn(job, tuple(sorted(after)), tuple(j for j in members if j != job)))
    return turns


def must_wait(link: Link, points: Sequence[int]) -> bool:
    """Return whether the reader would find what is not there yet, or what other records will take the place of."""
    effect, read = link.effects[points[link.producer]], link.read[points[link.consumer]]
    if effect is None or read is None:
        return False
    return effect.replaced is not None or (effect.there is not None and read > effect.there)
