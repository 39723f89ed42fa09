"""A discrete-event simulation of a stream-processing job under a checkpointing protocol, up to its failure.

The model follows CheckMate's testbed (ICDE 2024, sections IV and VII). Every worker has one processor and hosts one
instance of every operator. Sources read records at a fixed mean rate; a worker takes what has arrived in order of
arrival, one record at a time, each for the same processing time. Messages between workers take the network's delay
and a random part of the jitter; channels are FIFO, and those inside a worker take no time.

Uncoordinated and communication-induced: each worker has a timer, and its instances checkpoint together when it fires
and the record in process is done. A forced checkpoint is of one instance, and moves no timer; where every instance has
a timer of its own, as in the testbed under HMNR, it puts that off to an interval after it. Coordinated: a round begins
at the sources, and markers go through the channels; the next begins after the interval, or when the round is complete
if that takes longer. The order to begin waits its turn at a worker, like everything that comes there: the testbed
takes orders, markers and records from one queue.

Time is in whole simulated microseconds since the deployment.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from cklog.policies.induced import rules_of
from cklog.simulate.dataflow.protocols import RoundInProgress, bytes_carried
from cklog.simulate.dataflow.queries import InstanceTask
from cklog.simulate.dataflow.setting import (
    CONTROL_BYTES,
    MARKER,
    MARKER_BYTES,
    METADATA_BYTES,
    METADATA_CHANNEL_BYTES,
    SECOND,
    WARM_UP_S,
    DataflowSetting,
    InstanceLayout,
    Item,
    RunLog,
    Taken,
    Traffic,
)


class _Worker:
    """A processor: what has come for it, in order, and which instances' checkpoints are due, since when."""

    def __init__(self) -> None:
        self.come: deque[Item] = deque()
        self.busy = False
        self.due: dict[int, int] = {}


class _Timer:
    """A timer of a worker, for the checkpoints of some of its instances; `gap_us` was drawn when it fired last."""

    def __init__(self, number: int, instances: Sequence[int], seed: str) -> None:
        self.worker = number
        self.instances = instances
        self.draws = Random(seed)
        self.gap_us = 0


class _Reader:
    """When records are there for a source: gaps from half to one and a half times the mean, evenly drawn."""

    def __init__(self, source: int, mean_us: float, seed: str) -> None:
        self.source = source
        self._mean_us = mean_us
        self._draws = Random(seed)

    def draw_gap(self) -> int:
        """Draw the time until the next record, in microseconds."""
        return round(self._mean_us * (0.5 + self._draws.random()))


class DataflowRun:
    """One simulated run: call `run` once, then read the attributes.

    Memory: per channel its watermarks and what is on its way; the state of the query's tasks; no history.

    Attributes
    ----------
    sent, received : next number, by channel
    rounds_begun : coordinated rounds, complete or not
    round_us : how long each complete one took, from its beginning until the coordinator knew of its end
    traffic : messages between instances, and their bytes
    latency_us : of every result after the warm-up: from when its record was there until the last operator had it
    """

    def __init__(self, setting: DataflowSetting, layout: InstanceLayout, log: RunLog) -> None:
        self._setting = setting
        self._log = log
        self.layout = layout
        self.traffic = Traffic()
        self.sent = [0] * len(self.layout.channels)
        self.received = [0] * len(self.layout.channels)
        self.rounds_begun = 0
        self.round_us: list[int] = []
        self.latency_us = array("q")
        instances = len(self.layout.subtasks)
        self._taken = [0] * instances
        self._last = [0] * instances  # when each took its last checkpoint
        self._read = [0] * instances
        self._rules = rules_of(setting.protocol, instances)
        self._rounds = RoundInProgress(self.layout)
        self._heard: list[Any] = [None] * len(self.sent)  # what the last message of each channel carried
        self._arrival = [0] * len(self.sent)  # of the last message of each channel
        self._events = setting.query.events(Random(f"{setting.seed}/events"))
        self._tasks = [self._task_of(i) for i in range(instances)]
        self._network = Random(f"{setting.seed}/network")
        self._workers = [_Worker() for _ in range(setting.workers)]
        self._agenda: list[tuple[int, int, Callable[[int, Any], None], Any]] = []
        self._planned = 0
        self._carried_bytes = bytes_carried(setting)
        self._processing_us = setting.processing_us
        self._snapshot_us = round(setting.snapshot_ms * 1000)
        self._delay_us, self._jitter_us = setting.delay_ms * 1000, setting.jitter_ms * 1000
        self._end = round(setting.failure_s * SECOND)
        self._warm = min(WARM_UP_S * SECOND, self._end // 2)

    def _task_of(self, instance: int) -> InstanceTask:
        setting = self._setting
        draws = Random(f"{setting.seed}/task/{self.layout.subtasks[instance]}")
        operator = setting.query.operators[instance // setting.workers]
        return setting.query.task(operator, draws, setting.hot_items, self._events)

    def run(self) -> None:
        """Simulate from the deployment to the failure."""
        setting = self._setting
        for number in range(setting.workers):
            for source in self.layout.sources(number):
                share = self.layout.operators[source // setting.workers].share
                seed = f"{setting.seed}/source/{self.layout.subtasks[source]}"
                reader = _Reader(source, SECOND / (setting.rate * share), seed)
                self._plan_event(reader.draw_gap(), self._read_next, reader)
            for timer in self._timers_of(number):
                self._plan_event(round(timer.draws.random() * setting.interval_s * SECOND), self._timer_fires, timer)
        if setting.protocol == "coor":
            self._plan_event(round(setting.first_round_s * SECOND), self._begin_round, None)
        while self._agenda and self._agenda[0][0] < self._end:
            now, _, happens, to = heappop(self._agenda)
            happens(now, to)

    def _timers_of(self, number: int) -> list[_Timer]:
        """One timer for all instances of a worker, or one for each; none under a coordinator."""
        setting, seed = self._setting, f"{self._setting.seed}/timer/{number}"
        if setting.protocol == "coor":
            return []
        if setting.own_timers:
            return [_Timer(number, [i], f"{seed}/{self.layout.subtasks[i]}") for i in self.layout.on(number)]
        return [_Timer(number, self.layout.on(number), seed)]

    def _plan_event(self, time: int, happens: Callable[[int, Any], None], to: Any) -> None:
        """Plan that something happens; of things at the same time, what was planned first comes first."""
        heappush(self._agenda, (time, self._planned, happens, to))
        self._planned += 1

    # --- records

    def _read_next(self, now: int, reader: _Reader) -> None:
        """A record is there for a source to read."""
        self._plan_event(now + reader.draw_gap(), self._read_next, reader)
        self._item_arrives(now, Item(reader.source, -1, 0, since=now))

    def _item_arrives(self, now: int, item: Item) -> None:
        """Something has come for an instance."""
        number = item.instance % len(self._workers)
        worker = self._workers[number]
        worker.come.append(item)
        if not worker.busy:
            self._worker_proceeds(now, number)

    def _worker_proceeds(self, now: int, number: int) -> None:
        """A free worker takes the checkpoint that is due, or the next thing that has come."""
        worker = self._workers[number]
        took = 0
        while not took:
            if worker.due:
                took = self._checkpoint_due(now, worker)
            elif worker.come:
                took = self._take_item(now, worker, worker.come.popleft())
            else:
                worker.busy = False
                return
        worker.busy = True
        self._plan_event(now + took, self._worker_proceeds, number)

    def _take_item(self, now: int, worker: _Worker, item: Item) -> int:
        """Process what has come. How long it takes: 0 if nothing can be done yet."""
        instance, channel, number, carried, record, since = item
        if channel in self._rounds.blocked[instance]:
            self._rounds.put_aside(instance, item)
            return 0
        if number == MARKER:
            return self._marker_arrives(now, worker, item)
        took = self._processing_us
        if channel < 0:
            self._read[instance] += 1
        else:
            if carried is not self._heard[channel]:
                self._heard[channel] = carried
                took += self._heed_message(now, instance, carried)
            self.received[channel] = number + 1
            self._log.event(instance, "receive", channel, number, self._epoch_ms(now))
        for key, made in self._tasks[instance].handle(record, now):
            self._send_record(now + took, instance, key, made, since)
        if not self.layout.ways[instance] and now >= self._warm:
            self.latency_us.append(now + took - since)
        return max(took, 1)

    def _heed_message(self, now: int, instance: int, carried: Any) -> int:
        """Do what a message asks for before it is taken. How long that takes."""
        rules, took = self._rules[instance], 0
        if rules.forces(carried):
            rules.checkpoint(carried)
            took = self._checkpoint_instance(now, now, instance, "forced")
        rules.receive(carried)
        return took

    def _send_record(self, time: int, instance: int, key: int, record: Any, since: int) -> None:
        """Send a record on, unless it leaves the job or the failure comes first."""
        if time < self._end:
            for first, ways in self.layout.ways[instance]:
                self._send_message(time, instance, first + key % ways, record, since)

    def _send_message(self, time: int, instance: int, channel: int, record: Any, since: int) -> None:
        receiver, number = self.layout.receiver[channel], self.sent[channel]
        self.sent[channel] = number + 1
        self.traffic.messages += 1
        self.traffic.payload += self.layout.operators[instance // self.layout.workers].message_bytes
        self.traffic.carried += self._carried_bytes
        self._log.message(channel, number, self._epoch_ms(time))
        self._log.event(instance, "send", channel, number, self._epoch_ms(time))
        self._transmit_item(
            time,
            Item(
                instance=receiver,
                channel=channel,
                number=number,
                carried=self._rules[instance].send(receiver),
                record=record,
                since=since,
            ),
        )

    def _transmit_item(self, time: int, item: Item) -> None:
        """Through the network; or at once inside the worker, which is busy until `time`."""
        channel, workers = item.channel, len(self._workers)
        if self.layout.inside(channel):
            self._workers[item.instance % workers].come.append(item)
            return
        self._arrival[channel] = max(self._arrival[channel], time + self._draw_network_us())  # FIFO
        self._plan_event(self._arrival[channel], self._item_arrives, item)

    def _draw_network_us(self) -> int:
        """How long a message takes between two workers."""
        return round(self._delay_us + self._jitter_us * self._network.random())

    # --- checkpoints

    def _timer_fires(self, now: int, timer: _Timer) -> None:
        """A timer's instances checkpoint as soon as the worker is free; one with a timer of its own not too soon."""
        setting, worker = self._setting, self._workers[timer.worker]
        put_off = self._last[timer.instances[0]] + timer.gap_us
        if setting.own_timers and put_off > now:
            self._plan_event(put_off, self._timer_fires, timer)
            return
        timer.gap_us = round((setting.interval_s + setting.spread_s * (2 * timer.draws.random() - 1)) * SECOND)
        self._plan_event(now + timer.gap_us, self._timer_fires, timer)
        for instance in timer.instances:
            worker.due.setdefault(instance, now)
        if not worker.busy:
            self._worker_proceeds(now, timer.worker)

    def _checkpoint_due(self, now: int, worker: _Worker) -> int:
        """All instances whose timers have fired, at one moment. How long it takes."""
        due, worker.due, took = worker.due, {}, 0
        for instance, since in due.items():
            self._rules[instance].checkpoint()
            took += self._checkpoint_instance(now, since, instance, "local")
        return max(took, 1)

    def _checkpoint_instance(self, now: int, due: int, instance: int, kind: str) -> int:
        """One instance, asked to at `due`. How long it takes."""
        self._taken[instance] += 1
        self._last[instance] = now
        layout = self.layout
        taken = Taken(
            instance=instance,
            number=self._taken[instance],
            time=self._epoch_ms(now),
            kind=kind,
            round=self.rounds_begun if kind == "coordinated" else None,
            index=self._rules[instance].index,
            duration_us=now - due + self._snapshot_us,
            bytes=self._tasks[instance].state_bytes(),
            sent=[self.sent[c] for c in layout.out[instance]],
            received=[self.received[c] for c in layout.into[instance]],
            offset=None if layout.into[instance] else self._read[instance],
        )
        self._log.checkpoint(taken)
        self._log.event(instance, "checkpoint", -1, taken.number, taken.time)
        if kind != "coordinated":
            channels = len(taken.sent) + len(taken.received)
            self.traffic.control += METADATA_BYTES + METADATA_CHANNEL_BYTES * channels
        return self._snapshot_us

    def _epoch_ms(self, time: int) -> int:
        return self._setting.start_ms + time // 1000

    # --- coordinated rounds

    def _begin_round(self, now: int, _: None) -> None:
        """The coordinator tells every worker."""
        self.rounds_begun += 1
        self._rounds.begin(now)
        for number in range(len(self._workers)):
            self.traffic.control += CONTROL_BYTES
            self._plan_event(now + self._draw_network_us(), self._order_arrives, number)

    def _order_arrives(self, now: int, number: int) -> None:
        """A worker is told: its sources checkpoint when it comes to that, behind what came before or ahead of it."""
        worker = self._workers[number]
        orders = [Item(source, -1, MARKER) for source in self.layout.sources(number)]
        if self._setting.orders_first:
            worker.come.extendleft(orders)
        else:
            worker.come.extend(orders)
        if not worker.busy:
            self._worker_proceeds(now, number)

    def _marker_arrives(self, now: int, worker: _Worker, item: Item) -> int:
        """A marker has come. If it is the last one: checkpoint, send markers on, and take up what was put aside."""
        instance = item.instance
        since = self._rounds.take_marker(now, instance, item.channel)
        if since is None:
            return 0
        took = self._checkpoint_instance(now, since, instance, "coordinated")
        worker.come.extendleft(reversed(self._rounds.take_up(instance)))
        for way in self.layout.out[instance]:
            self.traffic.control += MARKER_BYTES
            self._transmit_item(now + took, Item(self.layout.receiver[way], way, MARKER))
        if self._rounds.ends_worker(instance):
            self.traffic.control += CONTROL_BYTES
            self._plan_event(now + took + self._draw_network_us(), self._report_arrives, None)
        return max(took, 1)

    def _report_arrives(self, now: int, _: None) -> None:
        """A worker tells the coordinator that its instances are done; the last one ends the round."""
        if self._rounds.ends_round():
            begun = self._rounds.begun_us
            self.round_us.append(now - begun)
            self._plan_event(max(now, begun + round(self._setting.interval_s * SECOND)), self._begin_round, None)
