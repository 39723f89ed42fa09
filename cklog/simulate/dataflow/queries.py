"""The pipelines of CheckMate's evaluation (ICDE 2024, sections VI and VII), as operators and what each does.

The paper gives the number of operators by its totals of coordinated checkpoints (Table III) and draws the cyclic
query's graph (Figure 6). The other graphs are chosen to agree with it: a shuffle in all queries but Q1, and as many
operators behind it as its numbers of invalid checkpoints have instances that fall. Kafka is source and sink of the
testbed, so results leave the job from the last operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

KEYS = 1 << 30
"""Keys that are drawn, all alike; the hot one is 0."""

WINDOW_US = 10_000_000
"""Length of the tumbling windows of Q8 and Q12, in simulated microseconds of processing time."""

COUNT_BYTES = 16
"""State per key of a count: the key and the number."""


class InstanceTask(Protocol):
    """What one instance of an operator does with its records; a source is given None."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Take a record at simulated microsecond `now`; return key and content of each record that it makes."""

    def state_bytes(self) -> int:
        """Return the size of the state that a checkpoint holds, in bytes."""


@dataclass(frozen=True, slots=True)
class SimulatedOperator:
    """An operator with one instance on every worker.

    Attributes
    ----------
    kind : what it is, as the manifest says
    to : the operator that its records go to, "" if they leave the job
    shuffled : by key to any instance of that operator, or to the one on the same worker
    share : of the records that the sources read; 0 if it is no source
    passes : records made for each one taken, on average
    holds : "" no state, "all" every record taken, "window" those of the present window, "counts" a number per key
    """

    name: str
    kind: str
    to: str = ""
    shuffled: bool = False
    share: float = 0.0
    passes: float = 1.0
    holds: str = ""


@dataclass(frozen=True, slots=True)
class DataflowQuery:
    """A pipeline: operators, upstream first.

    Attributes
    ----------
    nodes : of the graph whose reachability is asked for; 0: it is no such query
    payload_bytes : mean size of a message without a checkpointing protocol (fitted to Table II)
    rate : records per second that a worker's sources read together, where nothing else is asked for
    failure_s : of the failure, after the deployment: 30 s of warm-up, and 18 s (NexMark) or 48 s into the run
    first_round_s : of the first coordinated round, after the deployment (chosen so that Table III's rounds complete)
    """

    name: str
    operators: tuple[SimulatedOperator, ...]
    payload_bytes: int
    rate: float
    failure_s: float = 48.0
    first_round_s: float = 10.0
    nodes: int = 0

    def handled(self) -> float:
        """Return how many messages a worker handles per record that its sources read, feedback left out."""
        flow = {operator.name: operator.share for operator in self.operators}
        for operator in self.operators:
            if operator.to:
                flow[operator.to] += flow[operator.name] * operator.passes
        return sum(flow.values())

    def cycle(self) -> tuple[str, ...]:
        """Return the operators of a cycle, the first again as the last; nothing if there is none."""
        to = {operator.name: operator.to for operator in self.operators}
        for operator in self.operators:
            path = [operator.name]
            while to[path[-1]] and to[path[-1]] not in path:
                path.append(to[path[-1]])
            if to[path[-1]] == path[0]:
                return (*path, path[0])
        return ()

    def task(self, operator: SimulatedOperator, draws: Random, hot: float) -> InstanceTask:
        """Return what an instance of `operator` does; `hot` is the share of its keys that are the hot one.

        `draws` are the instance's own random numbers.
        """
        if self.nodes:
            return _REACHABILITY[operator.name](draws, self.nodes)
        if operator.share:
            return Keyed(draws, hot)
        return Relay(operator, draws, self.payload_bytes)


class Keyed:
    """A source of records that are nothing but a key."""

    def __init__(self, draws: Random, hot: float) -> None:
        self._draws = draws
        self._hot = hot

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the next key."""
        hot = self._hot and self._draws.random() < self._hot
        key = 0 if hot else 1 + int(self._draws.random() * (KEYS - 1))
        return ((key, key),)

    def state_bytes(self) -> int:
        """Return 0: its state is an offset, which the checkpoint has anyway."""
        return 0


class Relay:
    """An operator of which only matters how many records it passes on, and how large its state grows."""

    def __init__(self, operator: SimulatedOperator, draws: Random, payload_bytes: int) -> None:
        self._passes = operator.passes if operator.to else 0.0
        self._holds = operator.holds
        self._draws = draws
        self._bytes = COUNT_BYTES if operator.holds == "counts" else payload_bytes
        self._records = 0
        self._keys: set[int] = set()
        self._window = 0

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Pass the record on, or drop it."""
        if self._holds:
            self._hold_record(record, now)
        if self._passes == 1.0 or (self._passes and self._draws.random() < self._passes):
            return ((record, record),)
        return ()

    def _hold_record(self, key: int, now: int) -> None:
        if self._holds != "all" and now // WINDOW_US != self._window:
            self._window = now // WINDOW_US
            self._records = 0
            self._keys.clear()
        if self._holds == "counts":
            self._keys.add(key)
            self._records = len(self._keys)
        else:
            self._records += 1

    def state_bytes(self) -> int:
        """Return the size of what it holds now."""
        return self._records * self._bytes


# --- the reachability query: records are tuples that begin with +1 (new) or -1 (deleted)

NEW, GONE = 1, -1

LINK_DELETED = 0.2 / 0.8
"""Of the events on links: 60 % of all events are new links, 20 % are links deleted (section VII.B)."""

SOURCE_DELETED = 0.05 / 0.2
"""Of the events on source nodes: 15 % of all events are new ones, 5 % are source nodes deleted."""

_TUPLE_BYTES = 100
"""State per link or reached node of a join."""


class LinkGraph:
    """What the events do to a set of links, or of source nodes: mostly new ones, some of the old ones deleted."""

    def __init__(self, draws: Random, nodes: int) -> None:
        self._draws = draws
        self._nodes = nodes
        self._present: list[Any] = []

    def _draw_node(self) -> int:
        return int(self._draws.random() * self._nodes)

    def _next_event(self, deleted: float, make: Callable[[], Any]) -> tuple[int, Any]:
        """A new thing, or, as often as `deleted` says, an old one that goes."""
        if self._present and self._draws.random() < deleted:
            at = int(self._draws.random() * len(self._present))
            self._present[at], self._present[-1] = self._present[-1], self._present[at]
            return GONE, self._present.pop()
        self._present.append(make())
        return NEW, self._present[-1]

    def state_bytes(self) -> int:
        """Return 0: its state is an offset, which the checkpoint has anyway, for the events come from outside."""
        return 0


class LinkEvents(LinkGraph):
    """Events on directed links: (NEW or GONE, "link", from, to), keyed by `from`."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the next event."""
        change, (start, end) = self._next_event(LINK_DELETED, lambda: (self._draw_node(), self._draw_node()))
        return ((start, (change, "link", start, end)),)


class Sources(LinkGraph):
    """Events on source nodes: (NEW or GONE, "reached", source, node, path), keyed by `node`, the source itself."""

    def handle(self, record: Any, now: int) -> Sequence[tuple[int, Any]]:
        """Make the next event."""
        change, node = self._next_event(SOURCE_DELETED, self._draw_node)
        return ((node, (change, "reached", node, node, (node,))),)


class ReachJoin:
    """Links by the node they start at, and which sources reach that node, by which path.

    What is deleted leaves the state of this instance; sources further on that were reached through it stay.
    """

    def __init__(self, draws: Random, nodes: int) -> None:
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


class _Stateless:
    """An operator that keeps nothing."""

    def __init__(self, draws: Random, nodes: int) -> None:
        pass

    def state_bytes(self) -> int:
        """Return 0."""
        return 0


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


_REACHABILITY: dict[str, Callable[[Random, int], InstanceTask]] = {
    "links": LinkEvents,
    "sources": Sources,
    "join": ReachJoin,
    "select": ReachSelect,
    "project": ReachProject,
}

NEXMARK = {
    "q1": DataflowQuery(
        "q1",
        (
            SimulatedOperator("bids", "source", to="map", share=1.0),
            SimulatedOperator("map", "map", to="sink"),
            SimulatedOperator("sink", "sink"),
        ),
        payload_bytes=121,
        rate=100.0,
    ),
    "q3": DataflowQuery(
        "q3",
        (
            SimulatedOperator("persons", "source", to="select", share=0.25),
            SimulatedOperator("auctions", "source", to="join", shuffled=True, share=0.75),
            SimulatedOperator("select", "filter", to="join", shuffled=True, passes=0.5),
            SimulatedOperator("join", "join", to="sink", passes=0.2, holds="all"),
            SimulatedOperator("sink", "sink"),
        ),
        payload_bytes=169,
        rate=100.0,
    ),
    "q8": DataflowQuery(
        "q8",
        (
            SimulatedOperator("persons", "source", to="select", share=0.25),
            SimulatedOperator("auctions", "source", to="join", shuffled=True, share=0.75),
            SimulatedOperator("select", "map", to="join", shuffled=True),
            SimulatedOperator("join", "window-join", holds="window"),
        ),
        payload_bytes=160,
        rate=100.0,
        first_round_s=5.0,
    ),
    "q12": DataflowQuery(
        "q12",
        (
            SimulatedOperator("bids", "source", to="map", share=1.0),
            SimulatedOperator("map", "map", to="count", shuffled=True),
            SimulatedOperator("count", "window-count", holds="counts"),
        ),
        payload_bytes=134,
        rate=100.0,
    ),
}
"""NexMark queries. Persons and auctions come one to three, as its generator makes them; what Q3 selects and matches
(half of the persons, one result for five records) is assumed."""

CYCLIC = DataflowQuery(
    "reachability",
    (
        SimulatedOperator("links", "source", to="join", shuffled=True, share=0.8),
        SimulatedOperator("sources", "source", to="join", shuffled=True, share=0.2),
        SimulatedOperator("join", "join", to="select", passes=0.0, holds="all"),
        SimulatedOperator("select", "filter", to="project"),
        SimulatedOperator("project", "map", to="join", shuffled=True),
    ),
    payload_bytes=150,
    rate=20.0,
    failure_s=78.0,
    nodes=1_000_000,
)
"""Figure 6. A match of the join is as rare as the events make it, and grows with the square of the rate."""
