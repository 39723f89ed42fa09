"""The setting of a simulated dataflow run, its instances and channels, and the facts that it hands to its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from cklog.errors import UsageError
from cklog.model.names import Channel, Subtask
from cklog.simulate.dataflow.queries import DataflowQuery

SECOND = 1_000_000
"""A second in microseconds, the simulator's unit of time."""

WARM_UP_S = 30
"""Seconds whose latencies do not count, as in the paper; of a run that is shorter than twice that, its first half."""

MARKER_BYTES = 32
"""Of a marker of a coordinated round."""

CONTROL_BYTES = 64
"""Of a message between coordinator and worker: begin a round, or done with it."""

METADATA_BYTES, METADATA_CHANNEL_BYTES = 144, 20
"""Of a message to the coordinator about an independent checkpoint: a part of its own and one per channel. Measured on
the testbed: 304 bytes with 4 channels each way, 4,136 with 100."""

PROTOCOLS = ("unc", "cic-hmnr", "cic-bcs", "coor")


@dataclass(frozen=True, slots=True)
class DataflowSetting:
    """All that a run depends on. The defaults are the paper's where it has them.

    Parameters
    ----------
    protocol : one of `PROTOCOLS`
    rate : records per second that the sources of a worker read together
    failure_s : then the run ends
    first_round_s : of the first coordinated round
    load : share of a worker's time that records take if keys are spread evenly (the paper: 80 % of what it sustains)
    interval_s, spread_s : a worker's timer fires every `interval_s` more or less `spread_s`, evenly drawn; its first
        time at any moment of the first interval. Rounds begin every `interval_s`
    hot_items : share of the records of hot sources (`SimulatedOperator.hot`) that have one and the same key
    own_timers : every instance checkpoints by a timer of its own, not with the others of its worker
    orders_first : sources checkpoint for a coordinated round before what came before the order, not after it
    delay_ms, jitter_ms : of a message between two workers
    snapshot_ms : for which a checkpoint of one instance stops its worker
    start_ms : of the deployment, since the epoch
    """

    query: DataflowQuery
    protocol: str
    workers: int
    rate: float
    failure_s: float
    first_round_s: float
    load: float = 0.8
    interval_s: float = 5.0
    spread_s: float = 1.0
    hot_items: float = 0.0
    own_timers: bool = False
    orders_first: bool = False
    delay_ms: float = 1.0
    jitter_ms: float = 1.0
    snapshot_ms: float = 1.0
    seed: int = 1
    start_ms: int = 1_700_000_000_000

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UsageError(f"protocol {self.protocol}: not one of {', '.join(PROTOCOLS)}")
        for name, value, low, high in (
            ("workers", self.workers, 1, 1000),
            ("rate", self.rate, 0.001, 1e6),
            ("load", self.load, 0.0, 10.0),
            ("interval", self.interval_s, 0.001, 1e6),
            ("spread of the interval", self.spread_s, 0.0, self.interval_s * 0.999),
            ("failure", self.failure_s, 0.0, 1e7),
            ("first round", self.first_round_s, 0.0, 1e7),
            ("share of hot items", self.hot_items, 0.0, 1.0),
            ("delay", self.delay_ms, 0.0, 1e7),
            ("jitter", self.jitter_ms, 0.0, 1e7),
            ("time of a snapshot", self.snapshot_ms, 0.0, 1e7),
            ("start", self.start_ms, 0, 1 << 50),
        ):
            if not low <= value <= high:
                raise UsageError(f"{name}: {value:g} is not from {low:g} to {high:g}")
        if self.protocol == "coor":
            _refuse_cycle(self.query)

    @property
    def processing_us(self) -> int:
        """How long a record takes of its worker's processor, in microseconds."""
        return round(self.load * SECOND / (self.rate * self.query.handled()))


def _refuse_cycle(query: DataflowQuery) -> None:
    cycle = query.cycle()
    if not cycle:
        return
    first, last = cycle[0], cycle[-2]
    message = (
        f"coordinated checkpoints deadlock on {query.name}: {first} waits for a marker on its feedback channel "
        f"{last}->{first}, which only its own checkpoint could send on (the cycle {' -> '.join(cycle)})"
    )
    raise UsageError(message, "choose --protocol unc, cic-hmnr or cic-bcs")


class InstanceLayout:
    """Operators on workers as numbered instances, and their channels as numbers with names.

    There is one instance of every operator on every worker: instance `operator * workers + worker`.

    Attributes
    ----------
    subtasks : by instance
    ways : by instance, where its records go: of each operator the first of its channels and how many there are
    sender, receiver : instance, by channel
    channels : name, by channel
    out, into : by instance, its channels
    """

    def __init__(self, query: DataflowQuery, workers: int) -> None:
        names = [operator.name for operator in query.operators]
        self.workers = workers
        self.operators = query.operators
        self.subtasks = [Subtask(name, w) for name in names for w in range(workers)]
        self.ways: list[list[tuple[int, int]]] = []
        self.sender: list[int] = []
        self.receiver: list[int] = []
        for instance in range(len(self.subtasks)):
            operator, worker = query.operators[instance // workers], instance % workers
            ways = []
            for to, shuffled in ((operator.to, operator.shuffled), (operator.also, False)):
                if not to:
                    continue
                first = names.index(to) * workers
                receivers = range(first, first + workers) if shuffled else [first + worker]
                ways.append((len(self.sender), len(receivers)))
                self.sender += [instance] * len(receivers)
                self.receiver += receivers
            self.ways.append(ways)
        ends = zip(self.sender, self.receiver, strict=True)
        self.channels = [str(Channel(self.subtasks[a], self.subtasks[b])) for a, b in ends]
        self.out: list[list[int]] = [[] for _ in self.subtasks]
        self.into: list[list[int]] = [[] for _ in self.subtasks]
        for channel, (a, b) in enumerate(zip(self.sender, self.receiver, strict=True)):
            self.out[a].append(channel)
            self.into[b].append(channel)

    def on(self, worker: int) -> range:
        """Return the instances of a worker."""
        return range(worker, len(self.subtasks), self.workers)

    def inside(self, channel: int) -> bool:
        """Return whether sender and receiver of a channel are on one worker."""
        return self.sender[channel] % self.workers == self.receiver[channel] % self.workers

    def sources(self, worker: int) -> list[int]:
        """Return the instances of a worker that are sources."""
        return [i for i in self.on(worker) if self.operators[i // self.workers].share]


class Item(NamedTuple):
    """What comes to a worker: a message on a channel, or (channel -1) a record for a source to read.

    `number` is the message's on its channel, `carried` what it carries for the protocol, `since` when a source could
    have read the record that it came of, in simulated microseconds. A marker of a coordinated round has the number
    `MARKER`.
    """

    instance: int
    channel: int
    number: int
    carried: Any = None
    record: Any = None
    since: int = 0


MARKER = -1
"""The number of a marker, in place of a message's."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A checkpoint that an instance took.

    `number` : from 1
    `time` : in milliseconds since the epoch
    `kind` : local, forced or coordinated
    `duration_us` : from when it was asked for until it was there
    `sent`, `received` : watermarks of the channels of `InstanceLayout.out` and `InstanceLayout.into`
    `offset` : the next record that a source reads, None if it is no source
    """

    instance: int
    number: int
    time: int
    kind: str
    round: int | None
    index: int | None
    duration_us: int
    bytes: int
    sent: list[int]
    received: list[int]
    offset: int | None


class RunLog(Protocol):
    """Where a run is written to as it goes; times in milliseconds since the epoch."""

    def message(self, channel: int, seq: int, time: int) -> None:
        """Note that a message was sent."""

    def event(self, instance: int, word: str, channel: int, number: int, time: int) -> None:
        """Note a send or receipt of message `number` of a channel, or checkpoint `number` (channel -1)."""

    def checkpoint(self, taken: Taken) -> None:
        """Note that a checkpoint was taken."""


@dataclass(slots=True)
class Traffic:
    """Messages between instances, and bytes.

    `payload` : of records
    `carried` : of what records carry for the protocol
    `control` : of messages that the protocol alone sends
    """

    messages: int = 0
    payload: int = 0
    carried: int = 0
    control: int = 0
