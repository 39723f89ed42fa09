"""Which commits of a table are in it: those on the way back from its head, by parents or by what was restored."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def way_back(head: K, parents: Mapping[K, K | None]) -> tuple[list[K], K | None, bool]:
    """Follow parents from a head: the commits on the way, the parent that is not there, whether it is a circle.

    >>> way_back(3, {1: 0, 3: 1}), way_back(2, {1: 2, 2: 1})
    (([3, 1], 0, False), ([2, 1], None, True))
    """
    way: list[K] = []
    seen: set[K] = set()
    at: K | None = head
    while at is not None and at not in seen:
        if at not in parents:
            return way, at, False
        seen.add(at)
        way.append(at)
        at = parents[at]
    return way, None, at is not None


def reached(heads: Iterable[K], parents: Mapping[K, K | None]) -> set[K]:
    """Return every commit on the way back from any of these heads, each visited once."""
    seen: set[K] = set()
    for head in heads:
        at: K | None = head
        while at is not None and at not in seen and at in parents:
            seen.add(at)
            at = parents[at]
    return seen
