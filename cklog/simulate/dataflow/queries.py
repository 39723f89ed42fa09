"""The pipelines of CheckMate's evaluation (ICDE 2024, sections VI and VII), as operators and what each does.

The graphs are those of the published testbed: which operators there are, which of its channels are shuffled, and what
each message holds (`cklog.simulate.dataflow.wire`). Nothing about them is chosen to agree with the paper's results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from cklog.simulate.dataflow.reachability import ReachabilityEvents, reachability_task
from cklog.simulate.dataflow.wire import AUCTION, BID, PERSON, message_bytes, pickled

KEYS = 1 << 30
"""Keys that are drawn, all alike; the hot one is 0."""

WINDOW_US = 10_000_000
"""Length of the tumbling windows of Q8 and Q12, in simulated microseconds of processing time."""


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
    called : its name in the testbed, which HMNR's tables hold
    to : the operator that its records go to, "" if they leave the job
    shuffled : by key to any instance of that operator, or to the one on the same worker
    also : an operator to whose instance on the same worker every record goes, too
    share : of the records that the sources read; 0 if it is no source
    hot : a source among whose keys there are hot ones
    passes : records made for each one taken, on average
    message_bytes : size of a message that it sends, without a checkpointing protocol
    holds : "" no state, "all" every record taken, "window" those of the present window, "counts" a number per key
    held_bytes : state for each record that it holds
    """

    name: str
    kind: str
    called: str
    to: str = ""
    shuffled: bool = False
    also: str = ""
    share: float = 0.0
    hot: bool = False
    passes: float = 1.0
    message_bytes: int = 0
    holds: str = ""
    held_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DataflowQuery:
    """A pipeline: operators, upstream first.

    Attributes
    ----------
    nodes : of the graph whose reachability is asked for; 0: it is no such query
    keeps_sources : whether the join of that query keeps the sources that it is told of (`reachability.ReachJoin`)
    rate : records per second that a worker's sources read together, where nothing else is asked for
    failure_s : of the failure, after the deployment: 30 s of warm-up and 18 s (NexMark); the same in the cyclic query,
        whose "48th second" counts from the deployment: so Table IV's cells say (`benchmarks/fidelity_checkmate.py`)
    first_round_s : of the first coordinated round, after the deployment (chosen so that Table III's rounds complete)
    """

    name: str
    operators: tuple[SimulatedOperator, ...]
    rate: float
    failure_s: float = 48.0
    first_round_s: float = 10.0
    nodes: int = 0
    keeps_sources: bool = True

    def handled(self) -> float:
        """Return how many messages a worker handles per record that its sources read, feedback left out."""
        flow = {operator.name: operator.share for operator in self.operators}
        for operator in self.operators:
            for to in filter(None, (operator.to, operator.also)):
                flow[to] += flow[operator.name] * operator.passes
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

    def events(self, draws: Random) -> ReachabilityEvents | None:
        """Return the generator that the sources of all workers share; None if each has its own."""
        return ReachabilityEvents(draws, self.nodes) if self.nodes else None

    def task(
        self, operator: SimulatedOperator, draws: Random, hot: float, events: ReachabilityEvents | None
    ) -> InstanceTask:
        """Return what an instance of `operator` does; `hot` is the share of hot items.

        `draws` are the instance's own random numbers, `events` what `DataflowQuery.events` returned for the run.
        """
        if events is not None:
            return reachability_task(operator.name, events, self.keeps_sources)
        if operator.share:
            return Keyed(draws, hot if operator.hot else 0.0)
        return Relay(operator, draws)


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

    def __init__(self, operator: SimulatedOperator, draws: Random) -> None:
        self._passes = operator.passes if operator.to else 0.0
        self._holds = operator.holds
        self._draws = draws
        self._bytes = operator.held_bytes
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


_ROW = (AUCTION.as_row(), PERSON.as_row())
"""A result of Q3 and Q8: an auction and its seller."""

_NUMBER = 100_000

NEXMARK = {
    "q1": DataflowQuery(
        "q1",
        (
            SimulatedOperator(
                "bids",
                "source",
                "bidsSource",
                to="map",
                share=1.0,
                hot=True,
                message_bytes=message_bytes("bidsSource", "currencyMapper", "dollarToEuro", BID),
            ),
            SimulatedOperator(
                "map",
                "map",
                "currencyMapper",
                to="sink",
                message_bytes=message_bytes("currencyMapper", "sink", "output", (_NUMBER, _NUMBER, 0.82, _NUMBER)),
            ),
            SimulatedOperator("sink", "sink", "sink"),
        ),
        rate=100.0,
    ),
    "q3": DataflowQuery(
        "q3",
        (
            SimulatedOperator(
                "persons",
                "source",
                "personsSource",
                to="filter",
                shuffled=True,
                share=0.25,
                message_bytes=message_bytes("personsSource", "personsFilter", "filter", PERSON),
            ),
            SimulatedOperator(
                "auctions",
                "source",
                "auctionsSource",
                to="join",
                shuffled=True,
                share=0.75,
                hot=True,
                message_bytes=message_bytes("auctionsSource", "join", "stateful_join", AUCTION),
            ),
            SimulatedOperator(
                "filter",
                "filter",
                "personsFilter",
                to="join",
                passes=0.5,
                message_bytes=message_bytes("personsFilter", "join", "stateful_join", PERSON),
            ),
            SimulatedOperator(
                "join",
                "join",
                "join",
                to="sink",
                passes=0.75 * 0.5 / (0.75 + 0.25 * 0.5),
                message_bytes=message_bytes("join", "sink", "output", _ROW),
                holds="all",
                held_bytes=pickled(AUCTION.as_row()),
            ),
            SimulatedOperator("sink", "sink", "sink"),
        ),
        rate=100.0,
    ),
    "q8": DataflowQuery(
        "q8",
        (
            SimulatedOperator(
                "persons",
                "source",
                "personsSource",
                to="join",
                shuffled=True,
                share=0.25,
                message_bytes=message_bytes("personsSource", "join", "windowed_join", PERSON),
            ),
            SimulatedOperator(
                "auctions",
                "source",
                "auctionsSource",
                to="join",
                shuffled=True,
                share=0.75,
                hot=True,
                message_bytes=message_bytes("auctionsSource", "join", "windowed_join", AUCTION),
            ),
            SimulatedOperator(
                "join",
                "window-join",
                "join",
                to="sink",
                passes=0.75,
                message_bytes=message_bytes("join", "sink", "output", _ROW),
                holds="window",
                held_bytes=pickled(AUCTION.as_row()),
            ),
            SimulatedOperator("sink", "sink", "sink"),
        ),
        rate=100.0,
        first_round_s=5.0,
    ),
    "q12": DataflowQuery(
        "q12",
        (
            SimulatedOperator(
                "bids",
                "source",
                "bidsSource",
                to="count",
                shuffled=True,
                share=1.0,
                hot=True,
                message_bytes=message_bytes("bidsSource", "count", "count", BID),
            ),
            SimulatedOperator(
                "count",
                "window-count",
                "count",
                to="sink",
                message_bytes=message_bytes("count", "sink", "output", _NUMBER, 9),
                holds="counts",
                held_bytes=pickled({_NUMBER: 9}) - pickled({}),
            ),
            SimulatedOperator("sink", "sink", "sink"),
        ),
        rate=100.0,
    ),
}
"""NexMark queries, as the published testbed runs them.

Its generator makes one person for three auctions, and hot items are hot sellers (Q3, Q8) or bidders (Q12). Three of
its six states pass Q3's filter. Every auction finds its seller, if the filter let it through, for sellers are drawn
among the latest persons; a person finds no auction, for it comes before its own.
"""

_LINK = (_NUMBER, 2 * _NUMBER)

_SOURCE = (_NUMBER, _NUMBER, frozenset({(_NUMBER, _NUMBER), _LINK}))

CYCLIC = DataflowQuery(
    "reachability",
    (
        SimulatedOperator(
            "links",
            "source",
            "linksSource",
            to="join",
            shuffled=True,
            share=0.8,
            message_bytes=message_bytes("linksSource", "join", "join", _LINK),
        ),
        SimulatedOperator(
            "sources",
            "source",
            "sourcesSource",
            to="join",
            shuffled=True,
            share=0.2,
            message_bytes=message_bytes("sourcesSource", "join", "join", _SOURCE),
        ),
        SimulatedOperator(
            "join",
            "join",
            "join",
            to="select",
            passes=0.0,
            message_bytes=message_bytes("join", "select", "filter_ones", _LINK + _SOURCE),
            holds="all",
        ),
        SimulatedOperator(
            "select",
            "filter",
            "select",
            to="project",
            message_bytes=message_bytes("select", "project", "discard_and_update", _LINK + _SOURCE),
        ),
        SimulatedOperator(
            "project",
            "map",
            "project",
            to="join",
            shuffled=True,
            also="sink",
            message_bytes=message_bytes("project", "join", "join", _SOURCE),
        ),
        SimulatedOperator("sink", "sink", "sink"),
    ),
    rate=20.0,
    nodes=1_000_000,
)
"""Figure 6, with the sink of the published testbed. `rate` is assumed: the paper does not say at which it ran."""
