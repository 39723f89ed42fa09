"""The reachability query of CheckMate's evaluation (ICDE 2024, section VI): its events, and what its operators do.

Records are tuples that begin with `NEW` or `GONE`. Events follow the generator of the published testbed: of the new
links, 10 % start at a node that is a source then and 20 % where a link ends that is there then; everything else is
drawn evenly. The testbed runs two such generators side by side, each of which knows its own events only, and it sends
what is deleted straight to all instances of the join; here there is one, and deletions go through the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

_Thing = TypeVar("_Thing")

NEW, GONE = 1, -1

LINK_DELETED = 0.2 / 0.8
"""Of the events on links: 60 % of all events are new links, 20 % are links deleted (section VII.B)."""

SOURCE_DELETED = 0.05 / 0.2
"""Of the events on source nodes: 15 % of all events are new ones, 5 % are source nodes deleted."""

FROM_SOURCE, FROM_END = 0.1, 0.2
"""Of the new links: those that start at a source node, and those that start where another link ends."""

_TUPLE_BYTES = 100
"""State per link or reached node of a join."""


class ReachabilityEvents:
    """All links and source nodes that there are, and the events that make and delete them."""

    def __init__(self, draws: Random, nodes: int) -> None:
        self._draws = draws
        self._nodes = nodes
        self._links: list[tuple[int, int]] = []
        self._sources: list[int] = []

    def next_link(self) -> tuple[int, tuple[int, int]]:
        """Make a new link, or delete one that is there: `NEW` or `GONE`, and its two ends."""
        if self._links and self._draws.random() < LINK_DELETED:
            return GONE, self._take_out(self._links)
        start = self._draw_start()
        end = self._draw_node()
        while end == start:
            end = self._draw_node()
        self._links.append((start, end))
        return NEW, (start, end)

    def next_source(self) -> tuple[int, int]:
        """Make a node a source, or let one be none any more: `NEW` or `GONE`, and the node."""
        if self._sources and self._draws.random() < SOURCE_DELETED:
            return GONE, self._take_out(self._sources)
        self._sources.append(self._draw_node())
        return NEW, self._sources[-1]

    def _draw_start(self) -> int:
        coin = self._draws.random()
        if coin < FROM_SOURCE and self._sources:
            return self._sources[int(self._draws.random() * len(self._sources))]
        if coin < FROM_SOURCE + FROM_END and self._links:
            return self._links[int(self._draws.random() * len(self._links))][1]
        return self._draw_node()

    def _draw_node(self) -> int:
        return int(self._draws.random() * self._nodes)

    def _take_out(self, there: list[_Thing]) -> _Thing:
        at = int(self._draws.random() * len(there))
        there[at], there[-1] = there[-1], there[at]
        return there.pop()


class _Stateless:
    """An operator that keeps nothing; the offset of a source is in its checkpoint anyway."""

    def state_bytes(self) -> int:
        """Return 0."""
        return 0


class LinkEvents(_Stateless):
    """Events on directed links: (NEW or GONE, "link", from, to), keyed by `from`."""

    def __init__(self, events: ReachabilityEvents) -> None:
        self._events = events

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the next event."""
        change, (start, end) = self._events.next_link()
        return ((start, (change, "link", start, end)),)


class Sources(_Stateless):
    """Events on source nodes: (NEW or GONE, "reached", source, node, path), keyed by `node`, the source itself."""

    def __init__(self, events: ReachabilityEvents) -> None:
        self._events = events

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the next event."""
        change, node = self._events.next_source()
        return ((node, (change, "reached", node, node, (node,))),)


class ReachJoin:
    """Links by the node they start at, and which sources reach that node, by which path.

    What is deleted leaves the state of this instance; sources further on that were reached through it stay.

    `keeps_sources`: False is the join that the testbed published (commit e216b55): it adds a source only to the entry
    of one that it has, and so never has any. Then links match nothing, and a source only the links before it.
    """

    def __init__(self, keeps_sources: bool = True) -> None:
        self._keeps_sources = keeps_sources
        self._ends: dict[int, list[int]] = {}
        self._reached: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self._size = 0

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make a pair (source, path, end of the link) for every match."""
        change, what, *rest = record
        if what == "link":
            return self._join_link(change, *rest)
        return self._join_reached(change, *rest)

    def _join_link(self, change: int, start: int, end: int) -> Sequence[tuple[int, Any]]:
        ends = self._ends.setdefault(start, [])
        if change == NEW:
            ends.append(end)
            self._size += 1
            return [(source, (source, path, end)) for source, path in self._reached.get(start, ())]
        if end in ends:
            ends.remove(end)
            self._size -= 1
        return ()

    def _join_reached(self, change: int, source: int, node: int, path: tuple[int, ...]) -> Sequence[tuple[int, Any]]:
        reached = self._reached.setdefault(node, [])
        if change == NEW:
            if self._keeps_sources:
                reached.append((source, path))
                self._size += 1
            return [(source, (source, path, end)) for end in self._ends.get(node, ())]
        kept = [(other, way) for other, way in reached if other != source]
        self._size -= len(reached) - len(kept)
        self._reached[node] = kept
        return ()

    def state_bytes(self) -> int:
        """Return the size of its links and reached nodes."""
        return self._size * _TUPLE_BYTES


class ReachSelect(_Stateless):
    """Drops pairs whose link leads back into the path."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Pass the pair on, or drop it."""
        source, path, end = record
        return () if end in path else ((source, record),)


class ReachProject(_Stateless):
    """Makes a pair a node that the source reaches: output, and input of the join again."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the reached node."""
        source, path, end = record
        return ((end, (NEW, "reached", source, end, (*path, end))),)


class ReachSink(_Stateless):
    """Takes the results."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make nothing."""
        return ()


def reachability_task(
    operator: str, events: ReachabilityEvents, keeps_sources: bool
) -> LinkEvents | Sources | ReachJoin | ReachSelect | ReachProject | ReachSink:
    """Return what an instance of the operator of this name does."""
    match operator:
        case "links":
            return LinkEvents(events)
        case "sources":
            return Sources(events)
        case "join":
            return ReachJoin(keeps_sources)
        case "select":
            return ReachSelect()
        case "project":
            return ReachProject()
    return ReachSink()
